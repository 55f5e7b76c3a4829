//! The claim protocol and the stores that keep its records.
//!
//! A store keeps one record for each [`Identity`]. A delivery asks for the right to run with [`Store::claim`], naming its
//! [`Turn`] and an [`Owner`] token of its own; how the run ends is told with [`Store::settle`]. Leases are measured on the
//! store's clock. Every store gives these answers:
//!
//! | record | a claim is answered |
//! |---|---|
//! | none, or pending with a next turn not after the asker's | [`Granted`](Claim::Granted): processing, owner and lease stored |
//! | pending, next turn after the asker's | [`Stale`](Claim::Stale): a later copy exists |
//! | processing, lease alive | [`Busy`](Claim::Busy) with the time left; an older turn: [`Stale`](Claim::Stale) |
//! | processing, lease lapsed | one crash more, [`Granted`](Claim::Granted); past `max_crashes` failed, [`Letter`](Claim::Letter); an older turn: [`Stale`](Claim::Stale) |
//! | failed, letter owed, lease alive | [`Busy`](Claim::Busy) with the time left; a newer generation: [`Granted`](Claim::Granted), no crashes |
//! | failed, letter owed, lease lapsed | [`Letter`](Claim::Letter): the asker is the owner now; a newer generation: [`Granted`](Claim::Granted), no crashes |
//! | failed, letter out | [`Duplicate`](Claim::Duplicate); a newer generation: [`Granted`](Claim::Granted), no crashes |
//! | success | [`Duplicate`](Claim::Duplicate), whatever the turn |
//!
//! A step is compare-and-set on the owner:
//!
//! | step | applies to | becomes |
//! |---|---|---|
//! | [`Complete`](Step::Complete) | processing | success |
//! | [`Release`](Step::Release) | processing | pending, with the next turn |
//! | [`Condemn`](Step::Condemn) | processing | failed, letter owed, with the error and a new lease |
//! | [`Lettered`](Step::Lettered) | failed, letter owed | failed, letter out |
//! | [`Renew`](Step::Renew) | processing, or failed with the letter owed | the same, with a new lease |
//!
//! Everything else is [`Refused`](Settled::Refused) and changes nothing. An owner whose lease has lapsed is still the owner until
//! somebody else has claimed. A question repeated by the same owner, after an answer was lost, is answered as the first time: a
//! claim that was granted is granted again without another crash counted (while its lease lives), and a step that was applied is
//! applied.
//!
//! A record is forgotten `ttl` after its last change, but never under a live lease, and not for 30 days while a letter is owed.
//!
//! The transitions are pure functions in [`protocol`], for stores that run them in this process and for a store of your own.

#[cfg(any(feature = "redis", feature = "mysql", feature = "postgres", feature = "sqlite"))]
mod backoff;
#[cfg(any(feature = "redis", feature = "mysql", feature = "postgres", feature = "sqlite"))]
mod batch;
mod contract;
mod fingerprint;
mod identity;
mod invalid_url;
mod keeper;
mod ledger;
mod memory;
mod outage;
pub mod protocol;
#[cfg(feature = "redis")]
mod redis;
#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
mod sql;
mod transaction;

#[cfg(feature = "redis")]
pub use self::redis::RedisStore;
#[cfg(feature = "mysql")]
pub use self::sql::MySqlStore;
#[cfg(feature = "postgres")]
pub use self::sql::PostgresStore;
#[cfg(feature = "sqlite")]
pub use self::sql::SqliteStore;
#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
pub(crate) use self::sql::passes;
#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
pub use self::sql::{Stuck, Tx};
pub use contract::{Claim, ClaimRequest, Hold, Mode, Owner, Settled, Step, Store, StoreError, Turn};
pub use fingerprint::Fingerprint;
pub use identity::Identity;
pub use invalid_url::InvalidUrl;
pub(crate) use keeper::Kept;
#[cfg(feature = "testing")]
pub(crate) use ledger::identity;
pub(crate) use ledger::{Granted, Ledger, MAX_CRASHES, NotGranted, OwedLetter};
pub use memory::MemoryStore;
pub(crate) use outage::{Outage, RECORD_PATIENCE};
pub use transaction::{Database, NotCommitted, Session, Transaction, Transactions};
