//! What is known of a key: whether it was written, where, and its value.

use proc_macro2::Span;

use super::entries::Entry;
use crate::diag::{Place, Sink};

/// A value that was read, with its place in the source.
#[derive(Debug, Clone)]
pub(crate) struct Given<T> {
    /// Where its key is.
    pub(crate) key: Span,
    /// Where it is itself.
    pub(crate) at: Place,
    /// The entry as the user wrote it.
    pub(crate) text: String,
    pub(crate) value: T,
}

/// What is known of a key: not given, given but unreadable, or a value.
#[derive(Debug)]
pub(crate) struct Slot<T> {
    first: Option<String>,
    value: Option<Given<T>>,
}

impl<T> Default for Slot<T> {
    fn default() -> Self {
        Self { first: None, value: None }
    }
}

impl<T> Slot<T> {
    /// Reads the entry into the slot; a key that was there before is reported.
    pub(crate) fn read(&mut self, entry: &Entry, sink: &mut Sink, read: impl FnOnce(&Entry, &mut Sink) -> Option<T>) {
        let text = entry.text();
        if let Some(first) = &self.first {
            let name = entry.key.name;
            sink.error(entry.at, format!("`{name}` is given twice (first as `{first}`): keep one of the two"));
            return;
        }
        self.first = Some(text.clone());
        self.value = read(entry, sink).map(|value| Given { key: entry.at, at: entry.value_at(), text, value });
    }

    /// Whether the key was written, readable or not.
    pub(crate) fn is_given(&self) -> bool {
        self.first.is_some()
    }

    pub(crate) fn get(&self) -> Option<&Given<T>> {
        self.value.as_ref()
    }

    /// Takes the value out; the key stays given.
    pub(crate) fn take(&mut self) -> Option<Given<T>> {
        self.value.take()
    }

    pub(crate) fn value(&self) -> Option<&T> {
        self.value.as_ref().map(|given| &given.value)
    }
}
