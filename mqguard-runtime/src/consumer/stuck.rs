//! Messages that cannot be put where they have to go: told once, and shown by health until they are there.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use super::courier::Destination;

/// What passes sooner, as a connection that is opened again, is not shown.
const SHOWN_AFTER: Duration = Duration::from_secs(1);

/// The deliveries of a consumer that are kept because their copies or letters were not taken.
#[derive(Debug, Default)]
pub(crate) struct Stuck {
    state: Mutex<State>,
    /// Why one of them is kept, when there is one.
    why: watch::Sender<Option<String>>,
}

#[derive(Debug, Default)]
struct State {
    next: u64,
    kept: BTreeMap<u64, String>,
    /// What the log was told since the last one got through.
    told: HashSet<Kind>,
}

/// Troubles of one kind have one cause, and are told once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Kind {
    pub(super) letter: bool,
    pub(super) trouble: Trouble,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Trouble {
    /// The user may not do it.
    Forbidden,
    /// The broker does not take it.
    Refused,
    /// Nothing is there to take it.
    Missing,
    /// The broker cannot be reached, or does not answer.
    Unavailable,
}

/// One message on its way. It is kept for as long as this lives once it [`is_kept`](Self::is_kept).
#[derive(Debug)]
pub(super) struct Passage<'a> {
    stuck: &'a Stuck,
    began: Instant,
    number: Option<u64>,
}

impl Stuck {
    /// Why a message is kept that cannot be put where it has to go, whenever that changes.
    pub(crate) fn why(&self) -> watch::Receiver<Option<String>> {
        self.why.subscribe()
    }

    pub(super) fn passage(&self) -> Passage<'_> {
        Passage { stuck: self, began: Instant::now(), number: None }
    }

    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let answer = change(&mut state);
        let why = state.kept.values().next().cloned();
        self.why.send_if_modified(|before| {
            let is_new = *before != why;
            *before = why;
            is_new
        });
        answer
    }
}

impl Passage<'_> {
    /// A try failed; whether the log has not been told of the like yet.
    pub(super) fn is_kept(&mut self, kind: Kind, why: impl fmt::Display) -> bool {
        let why = why.to_string();
        let is_shown = kind.trouble == Trouble::Forbidden || self.began.elapsed() >= SHOWN_AFTER;
        self.stuck.change(|state| {
            let number = *self.number.get_or_insert_with(|| {
                state.next += 1;
                state.next
            });
            if is_shown {
                state.kept.insert(number, why);
            }
            state.told.insert(kind)
        })
    }

    /// It got through.
    pub(super) fn through(self, to: Destination) {
        if self.number.is_some() {
            let letter = to == Destination::DeadLetters;
            self.stuck.change(|state| state.told.retain(|kind| kind.letter != letter));
        }
    }
}

impl Drop for Passage<'_> {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            self.stuck.change(|state| state.kept.remove(&number));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REFUSED: Kind = Kind { letter: true, trouble: Trouble::Refused };

    #[tokio::test(start_paused = true)]
    async fn one_trouble_is_told_once_until_it_has_passed_and_shown_when_it_lasts() {
        let stuck = Stuck::default();
        let (mut one, mut other) = (stuck.passage(), stuck.passage());
        assert!(one.is_kept(REFUSED, "full"));
        assert_eq!(*stuck.why().borrow(), None);
        tokio::time::advance(SHOWN_AFTER).await;
        assert!(!one.is_kept(REFUSED, "still full") && !other.is_kept(REFUSED, "full too"));
        assert!(other.is_kept(Kind { trouble: Trouble::Missing, ..REFUSED }, "gone"));
        assert_eq!(stuck.why().borrow().as_deref(), Some("still full"));
        one.through(Destination::DeadLetters);
        assert_eq!(stuck.why().borrow().as_deref(), Some("gone"));
        assert!(other.is_kept(REFUSED, "full again"));
        drop(other);
        assert_eq!(*stuck.why().borrow(), None);
        assert!(stuck.passage().is_kept(Kind { trouble: Trouble::Forbidden, ..REFUSED }, "no"));
    }
}
