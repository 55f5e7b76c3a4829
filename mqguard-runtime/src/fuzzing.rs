//! What the fuzz targets reach of the parts that read foreign bytes. Only in builds with `--cfg fuzzing`.
#![allow(missing_docs, clippy::panic)]

use crate::broker::rabbitmq::fuzzing as amqp;
use std::sync::Arc;

use crate::broker::{Delivery, Message, Receipt, Settle, Settlement};
use crate::consumer::{ConsumerSpec, ErrorText};
use crate::dead_letter::{Death, Reason, fit_copy, letter as letter_of};
use crate::retry::{Progress, copy};
use crate::wire;

pub use amqp::{message, publish, received};

/// The names of the headers that are read.
#[must_use]
pub fn header_names() -> Vec<&'static str> {
    let others = [wire::ATTEMPT, wire::DEFERRALS, wire::BUSY, wire::CRASHES, wire::GENERATION, wire::EXCHANGE, wire::ROUTING_KEY];
    let deaths = ["x-death", "x-first-death-reason", "x-first-death-queue", "x-first-death-exchange", "CC", "BCC"];
    let attempts = ["attempt", "at", "kind", "error", "queue", "reason", "count", "exchange", "routing-keys", "time"];
    [&wire::OF_LETTERS[..], &others, &deaths, &attempts].concat()
}

#[derive(Debug)]
struct Nowhere;

#[async_trait::async_trait]
impl Settle for Nowhere {
    fn settle(&self, _: u64, _: Settlement) {}
    fn is_open(&self) -> bool {
        false
    }
    async fn closed(&self) {}
}

/// How far a message has come is told the same after a hop.
pub fn progress(message: &Message) {
    let progress = Progress::arriving(&message.headers);
    let mut headers = message.headers.clone();
    headers.remove(wire::DIED);
    progress.write(&mut headers);
    let after = Progress::read(&headers);
    assert_eq!((after.turn(), after.crashes, after.busy), (progress.turn(), progress.crashes, progress.busy));
}

/// A letter fits, and so does the copy that says so.
pub fn letter(message: &Message, frame_max: usize) {
    static SPEC: ConsumerSpec = ConsumerSpec::new("fuzzed", "fuzzed", "fuzzed");
    let delivery = Delivery {
        message: message.clone().into(),
        exchange: "exchange".into(),
        routing_key: "key".into(),
        redelivered: false,
        receipt: Receipt::new(0, Arc::new(Nowhere)),
    };
    let mut progress = Progress::arriving(&message.headers);
    let error = ErrorText { kind: "Kind".into(), message: "é".repeat(5_000), chain: vec!["source".repeat(500); 40] };
    progress.failed(std::time::SystemTime::UNIX_EPOCH, &error);
    let mut next = copy::copy(&delivery, &progress.next(true));
    if fit_copy(&mut next, frame_max) {
        assert!(next.content_header_len() <= frame_max);
    }
    let death = Death::new(&Reason::Exhausted, error, std::time::SystemTime::UNIX_EPOCH);
    let letter = letter_of(&delivery, &progress, &death, &SPEC, frame_max);
    assert!(letter.content_header_len() <= frame_max, "{} of {frame_max}", letter.content_header_len());
    assert_eq!(Progress::arriving(&letter.headers).generation, progress.generation.saturating_add(1));
}
