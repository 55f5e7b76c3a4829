//! What may go wrong, and how often.

/// A budget of faults, each to happen wherever the explorer likes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct Faults {
    /// A worker ends; its delivery returns to the queue.
    pub(crate) crashes: u8,
    /// A delivery returns to the queue while its worker goes on.
    pub(crate) losses: u8,
    /// A shutdown's grace period ends: a run is cut short, and its delivery and claim are given back.
    pub(crate) aborts: u8,
    /// What was published is stored, and its publisher is not told.
    pub(crate) unknown_publishes: u8,
    /// The store has done as asked, and the asker is not told.
    pub(crate) lost_answers: u8,
    /// A lease ends although its owner lives (frozen, or cut off from the store). That of an owner who is gone ends for free.
    pub(crate) lapses: u8,
    /// The database undoes a transaction in place of its commit, because of others, or because its session is lost.
    pub(crate) undone: u8,
    /// A dead letter is sent to the queue again. No fault, but bounded like one.
    pub(crate) replays: u8,
}

impl Faults {
    pub(crate) const NONE: Self =
        Self { crashes: 0, losses: 0, aborts: 0, unknown_publishes: 0, lost_answers: 0, lapses: 0, undone: 0, replays: 0 };

    /// How many of the faults that may cost a run have happened, when this many are left.
    pub(crate) fn spent_on_runs(&self, left: &Self) -> u8 {
        let count = |faults: &Self| faults.crashes + faults.losses + faults.aborts + faults.lapses + faults.undone;
        count(self) - count(left)
    }
}
