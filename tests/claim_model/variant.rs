//! The product, and what would be wrong.

/// What a worker or a store does other than the product's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Variant {
    /// Nothing: this is the product.
    Product,
    /// A letter that an earlier owner owed says the generation of the delivery that found it owed, not that of the record.
    LetterOfDelivery,
    /// `release`, then the copy.
    ReleaseBeforeCopy,
    /// The letter, then `condemn`.
    LetterBeforeCondemn,
    /// A busy delivery is acknowledged, without a copy.
    AckBusy,
    /// A delivery whose step was refused is acknowledged, without a copy.
    AckRefused,
    /// A step applies whoever owns the record.
    SettleForAnyone,
    /// A transaction is committed whatever the record says of its claim.
    CommitAnyway,
    /// An older turn is granted like the one that is due.
    IgnoreTurns,
    /// A lease that lives is taken over like one that has lapsed.
    IgnoreLeases,
    /// Lapsed leases are not counted.
    ForgetCrashes,
    /// A success is forgotten before the copies of its message are through.
    ForgetSuccess,
}
