//! The arguments of `#[consumer]` and `#[dead_letter_consumer]`.

use std::time::Duration;

use proc_macro2::{Span, TokenStream};
use syn::Path;

use super::entries::{Entry, Value, each_entry};
use super::field::{self, KeySource};
use super::slot::Slot;
use super::value::{self, Bounds};
use super::{keys, number};
use crate::diag::Sink;

const DAY: u64 = 24 * 3600;
pub(crate) const DELAYS: Bounds = Bounds { least: Duration::ZERO, most: Duration::from_secs(30 * DAY), why: "" };
const SPANS: Bounds = Bounds { least: Duration::from_secs(1), most: MAX_SPAN, why: "" };
/// The longest `within` and `ttl`.
pub(crate) const MAX_SPAN: Duration = Duration::from_secs(366 * DAY);
const TIMEOUTS: Bounds = Bounds {
    least: Duration::from_millis(1),
    most: Duration::from_secs(29 * 60),
    why: " (after 30m RabbitMQ itself takes the message away)",
};
const LEASES: Bounds = Bounds { least: Duration::from_secs(1), most: Duration::from_secs(3600), why: "" };

/// What `#[consumer(...)]` or `#[dead_letter_consumer(...)]` says, before it is checked as a whole.
#[derive(Default)]
pub(crate) struct Args {
    pub(crate) queue: Slot<String>,
    /// The consumer whose dead letters these are.
    pub(crate) of: Slot<Path>,
    pub(crate) dlq: Slot<DlqArgs>,
    pub(crate) retry: Slot<RetryArgs>,
    pub(crate) idempotent: Slot<IdempotentArgs>,
    pub(crate) bindings: Vec<(Span, BindArgs)>,
    pub(crate) queue_type: Slot<&'static str>,
    pub(crate) prefetch: Slot<u32>,
    pub(crate) concurrency: Slot<u32>,
    pub(crate) timeout: Slot<Duration>,
    pub(crate) on_timeout: Slot<&'static str>,
    pub(crate) on_panic: Slot<&'static str>,
    pub(crate) precheck: Slot<Path>,
    pub(crate) classify: Slot<Path>,
    pub(crate) root: Slot<Path>,
}

#[derive(Debug, Default)]
pub(crate) struct DlqArgs {
    pub(crate) queue: Slot<String>,
    pub(crate) exchange: Slot<String>,
}

#[derive(Debug, Default)]
pub(crate) struct RetryArgs {
    pub(crate) max: Slot<u32>,
    pub(crate) delay: Slot<Duration>,
    pub(crate) factor: Slot<f64>,
    pub(crate) max_delay: Slot<Duration>,
    pub(crate) jitter: Slot<f64>,
    pub(crate) schedule: Slot<Vec<Duration>>,
    pub(crate) within: Slot<Duration>,
    /// Keys in it that belong elsewhere.
    pub(crate) misplaced: Vec<String>,
}

#[derive(Debug, Default)]
pub(crate) struct IdempotentArgs {
    pub(crate) store: Slot<&'static str>,
    pub(crate) key: Slot<KeySource>,
    pub(crate) identity: Slot<&'static str>,
    pub(crate) ttl: Slot<Duration>,
    pub(crate) lease: Slot<Duration>,
    pub(crate) missing_id: Slot<&'static str>,
    pub(crate) mode: Slot<&'static str>,
    pub(crate) transactional: Slot<()>,
    pub(crate) on_store_down: Slot<&'static str>,
}

#[derive(Debug, Default)]
pub(crate) struct BindArgs {
    pub(crate) exchange: Slot<String>,
    pub(crate) kind: Slot<&'static str>,
    pub(crate) routing_key: Slot<String>,
}

/// Reads the arguments of `#[consumer]`.
pub(crate) fn consumer(tokens: TokenStream, sink: &mut Sink) -> Args {
    let mut args = Args::default();
    each_entry(&keys::CONSUMER, tokens, sink, |entry, sink| match entry.key.name {
        "queue" => args.queue.read(entry, sink, value::text),
        "dlq" => args.dlq.read(entry, sink, dlq),
        "retry" => args.retry.read(entry, sink, retry),
        "idempotent" => args.idempotent.read(entry, sink, idempotent),
        "bind" => args.bindings.extend(bind(entry, sink).map(|bind| (entry.at, bind))),
        "queue_type" => {
            args.queue_type.read(entry, sink, |entry, sink| value::word(entry, "queue type", &["quorum", "classic"], sink))
        }
        "on_timeout" => args.on_timeout.read(entry, sink, fault),
        "on_panic" => args.on_panic.read(entry, sink, fault),
        "precheck" => args.precheck.read(entry, sink, |entry, sink| value::path(entry, "the name of a function", sink)),
        "classify" => args.classify.read(entry, sink, |entry, sink| value::path(entry, "the name of a function", sink)),
        _ => running(&mut args, entry, sink),
    });
    args
}

/// Reads the arguments of `#[dead_letter_consumer]`.
pub(crate) fn dead_letter_consumer(tokens: TokenStream, sink: &mut Sink) -> Args {
    let mut args = Args::default();
    each_entry(&keys::DEAD_LETTER_CONSUMER, tokens, sink, |entry, sink| match entry.key.name {
        "queue" => args.queue.read(entry, sink, value::text),
        "of" => args.of.read(entry, sink, |entry, sink| value::path(entry, "the name of a consumer", sink)),
        _ => running(&mut args, entry, sink),
    });
    args
}

/// The keys that both have.
fn running(args: &mut Args, entry: &Entry, sink: &mut Sink) {
    let at_once = 1..=2000;
    match entry.key.name {
        "prefetch" => args.prefetch.read(entry, sink, |entry, sink| number::whole(entry, &at_once, "", sink)),
        "concurrency" => args.concurrency.read(entry, sink, |entry, sink| number::whole(entry, &at_once, "", sink)),
        "timeout" => args.timeout.read(entry, sink, |entry, sink| value::duration(entry, &TIMEOUTS, sink)),
        _ => args.root.read(entry, sink, |entry, sink| value::path(entry, "the path of mqguard", sink)),
    }
}

fn fault(entry: &Entry, sink: &mut Sink) -> Option<&'static str> {
    let others = [("dead_letter", "fatal"), ("dead-letter", "fatal"), ("dlq", "fatal"), ("requeue", "retry")];
    value::word_or(entry, "rule", &["retry", "fatal"], &others, sink)
}

fn dlq(entry: &Entry, sink: &mut Sink) -> Option<DlqArgs> {
    let mut args = DlqArgs::default();
    match &entry.value {
        Value::Listed(group) => {
            each_entry(&keys::DLQ, group.stream(), sink, |entry, sink| match entry.key.name {
                "queue" => args.queue.read(entry, sink, value::text),
                _ => args.exchange.read(entry, sink, value::text),
            });
            if !args.queue.is_given() {
                let message = "`queue` is missing: write `dlq(queue = \"dlq.order.process\", ...)`";
                sink.error(entry.at, message);
            }
        }
        Value::Assigned(_) | Value::Nothing => args.queue.read(entry, sink, value::text),
    }
    Some(args)
}

fn retry(entry: &Entry, sink: &mut Sink) -> Option<RetryArgs> {
    let mut args = RetryArgs::default();
    let misplaced = each_entry(&keys::RETRY, value::list(entry, sink)?, sink, |entry, sink| match entry.key.name {
        "max" => args.max.read(entry, sink, |entry, sink| {
            number::whole(entry, &(1..=1000), ": leave `retry` out when nothing shall be tried again", sink)
        }),
        "delay" => args.delay.read(entry, sink, |entry, sink| value::duration(entry, &DELAYS, sink)),
        "factor" => args.factor.read(entry, sink, |entry, sink| number::number(entry, &(1.0..=100.0), "", sink)),
        "max_delay" => args.max_delay.read(entry, sink, |entry, sink| value::duration(entry, &DELAYS, sink)),
        "jitter" => args.jitter.read(entry, sink, |entry, sink| {
            number::number(entry, &(0.0..=1.0), ": it is a share of the delay, 0.2 adds up to a fifth", sink)
        }),
        "schedule" => args.schedule.read(entry, sink, |entry, sink| value::durations(entry, &DELAYS, sink)),
        _ => args.within.read(entry, sink, |entry, sink| value::duration(entry, &SPANS, sink)),
    });
    Some(RetryArgs { misplaced, ..args })
}

fn idempotent(entry: &Entry, sink: &mut Sink) -> Option<IdempotentArgs> {
    let store = |entry: &Entry, sink: &mut Sink| value::word_or(entry, "store", keys::STORES, keys::OTHER_NAMES_OF_STORES, sink);
    let mut args = IdempotentArgs::default();
    let Value::Listed(group) = &entry.value else {
        args.store.read(entry, sink, store);
        return Some(args);
    };
    each_entry(&keys::IDEMPOTENT, group.stream(), sink, |entry, sink| match entry.key.name {
        "store" => args.store.read(entry, sink, store),
        "key" => args.key.read(entry, sink, field::key_source),
        "identity" => args
            .identity
            .read(entry, sink, |entry, sink| value::word(entry, "identity", &["key+message_id", "key", "message_id"], sink)),
        "ttl" => args.ttl.read(entry, sink, |entry, sink| value::duration(entry, &SPANS, sink)),
        "lease" => args.lease.read(entry, sink, |entry, sink| value::duration(entry, &LEASES, sink)),
        "missing_id" => {
            args.missing_id.read(entry, sink, |entry, sink| value::word(entry, "rule", &["dead_letter", "run"], sink))
        }
        "mode" => args.mode.read(entry, sink, |entry, sink| value::word(entry, "mode", &["unique", "state_machine"], sink)),
        "transactional" => args.transactional.read(entry, sink, value::flag),
        _ => args.on_store_down.read(entry, sink, |entry, sink| {
            let others =
                [("fail", "wait"), ("retry", "wait"), ("block", "wait"), ("skip", "run"), ("ignore", "run"), ("process", "run")];
            value::word_or(entry, "rule", &["wait", "run"], &others, sink)
        }),
    });
    Some(args)
}

fn bind(entry: &Entry, sink: &mut Sink) -> Option<BindArgs> {
    let mut args = BindArgs::default();
    each_entry(&keys::BIND, value::list(entry, sink)?, sink, |entry, sink| match entry.key.name {
        "exchange" => args.exchange.read(entry, sink, value::text),
        "kind" => args
            .kind
            .read(entry, sink, |entry, sink| value::word(entry, "kind of exchange", &["topic", "direct", "fanout"], sink)),
        _ => args.routing_key.read(entry, sink, value::text),
    });
    Some(args)
}
