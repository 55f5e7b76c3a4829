//! What has to hold at the end of a schedule.

use std::collections::HashSet;

use super::known::Name;
use super::violation::Invariant;
use super::world::{Ack, Book, World, generation_of, id_of};
use crate::broker::Message;
use crate::consumer::{ConsumerSpec, OnStoreDown};
use crate::wire;

/// What does not hold, of all that was seen. What has not ended, for the world is not at rest, is not called lost.
pub(super) fn judge(world: &World, faults: u32, is_at_rest: bool) -> Vec<(Invariant, String)> {
    let mut book = world.book();
    let mut found = std::mem::take(&mut book.witness.found);
    if is_at_rest {
        found.extend(ends(world, &book));
    }
    found.extend(runs(world, &book, faults));
    found
}

/// Each published message ends once.
fn ends(world: &World, book: &Book) -> Vec<(Invariant, String)> {
    let judge = |(name, ids): (&Name, &HashSet<String>)| {
        let (queue, identity) = match name {
            Name::Identity(identity) => (identity.consumer(), Some(identity)),
            Name::Message(queue, _) => (*queue, None),
        };
        let spec = world.known.of_queue(queue)?;
        // A consumer that does without its store may leave no record of a success.
        let has_record = identity.is_some() && spec.idempotent.is_some_and(|spec| spec.on_store_down == OnStoreDown::Wait);
        let is_acked = || {
            let is_success = |ack: &&Ack| matches!(ack.event, Some("processed" | "skipped"));
            book.acks.iter().filter(is_success).any(|ack| ack.queue == queue && ids.contains(&ack.id))
        };
        let completed = identity.and_then(|identity| book.witness.completed(identity));
        let succeeded = completed.is_some() || (!has_record && is_acked());
        let letters = letters(world, book, spec, ids);
        // One that failed and was replayed may succeed then.
        let is_both = completed.is_some_and(|generation| letters.iter().any(|letter| *letter >= generation));
        match (succeeded || !letters.is_empty(), is_both) {
            (false, _) => Some((Invariant::NothingLost, format!("`{name}` has neither succeeded nor left a dead letter"))),
            // Without a record, a message that is delivered twice may end in both.
            (true, true) if has_record => Some((Invariant::OneEnd, format!("`{name}` has succeeded and left a dead letter"))),
            _ => None,
        }
    };
    book.published.iter().filter_map(judge).collect()
}

/// The generations of which there are letters of one of these messages, in the dead-letter queue or consumed from it.
fn letters(world: &World, book: &Book, spec: &ConsumerSpec, ids: &HashSet<String>) -> HashSet<u32> {
    let place = spec.dead_letter_place().queue;
    let is_its_own = |letter: &Message| {
        ids.contains(id_of(letter)) && letter.headers.text(wire::QUEUE).is_none_or(|queue| queue == spec.queue)
    };
    let waiting = world.queues.messages(&place).into_iter().filter(is_its_own).map(|letter| generation_of(&letter));
    let consumed = book.acks.iter().filter(|ack| ack.queue == place && ids.contains(&ack.id)).map(|ack| ack.generation);
    waiting.chain(consumed).collect()
}

/// No message runs more often than its retries and the faults explain.
fn runs(world: &World, book: &Book, faults: u32) -> Vec<(Invariant, String)> {
    let judge = |(identity, runs, deferrals): (&crate::idempotency::Identity, u32, u32)| {
        let retry = world.known.of_queue(identity.consumer())?.retry;
        let most = retry.map_or(0, |retry| retry.max).saturating_add(1 + deferrals + faults);
        let text = || format!("`{identity}` was granted {runs} runs; {most} are explained");
        (runs > most).then(|| (Invariant::BoundedRuns, text()))
    };
    book.witness.runs().filter_map(judge).collect()
}
