//! The keys of each level of an attribute.

use proc_macro2::Ident;

use crate::diag::{Sink, alternatives, nearest};

/// A key and how an entry with it looks.
pub(crate) struct Key {
    pub(crate) name: &'static str,
    pub(crate) sample: &'static str,
}

/// Keys that stand beside each other.
pub(crate) struct Level {
    /// As messages name it.
    pub(crate) name: &'static str,
    /// The first is the one that a lone value is taken for.
    pub(crate) keys: &'static [Key],
    /// What people write who know it by another name, and what to tell them.
    pub(crate) hints: &'static [(&'static [&'static str], &'static str)],
    /// Where else a key may belong.
    pub(crate) related: &'static [&'static Level],
}

/// What a word means at a level. All but `Known` have been reported.
pub(crate) enum Lookup {
    Known(&'static Key),
    /// Not a key, but near to this one.
    Near(&'static Key),
    Unknown,
}

impl Level {
    fn names(&self) -> impl Iterator<Item = &'static str> {
        self.keys.iter().map(|key| key.name)
    }

    fn key(&self, name: &str) -> Option<&'static Key> {
        self.keys.iter().find(|key| key.name == name)
    }

    /// How an entry with `key` looks.
    pub(crate) fn sample(&self, key: &str) -> String {
        let known = self.key(key).or_else(|| self.key(nearest(key, self.names())?));
        known.map_or_else(|| format!("{key} = ..."), |key| key.sample.to_owned())
    }

    /// Finds the key; reports a word that is none.
    pub(crate) fn lookup(&'static self, word: &Ident, sink: &mut Sink) -> Lookup {
        let name = word.to_string();
        if let Some(key) = self.key(&name) {
            return Lookup::Known(key);
        }
        let allowed = format!("allowed here: {}", self.names().map(|key| format!("`{key}`")).collect::<Vec<_>>().join(", "));
        if let Some((_, hint)) = self.hints.iter().find(|(words, _)| words.contains(&name.as_str())) {
            sink.error(word.span(), format!("there is no key `{name}` in {}: {hint}", self.name));
            return Lookup::Unknown;
        }
        let homes: Vec<&str> = self.related.iter().filter(|level| level.key(&name).is_some()).map(|level| level.name).collect();
        if !homes.is_empty() {
            sink.error(word.span(), format!("`{name}` belongs in {}, not in {}", alternatives(homes, ""), self.name));
            return Lookup::Unknown;
        }
        let near = nearest(&name, self.names()).and_then(|near| self.key(near));
        let question = near.map_or_else(String::new, |near| format!(": did you mean `{}`?", near.name));
        sink.error(word.span(), format!("unknown key `{name}` in {}{question}\n{allowed}", self.name));
        near.map_or(Lookup::Unknown, Lookup::Near)
    }
}

macro_rules! keys {
    ($($name:literal: $sample:literal),+ $(,)?) => {
        &[$(Key { name: $name, sample: $sample }),+]
    };
}

pub(crate) static CONSUMER: Level = Level {
    name: "`#[consumer]`",
    keys: keys! {
        "queue": r#"queue = "order.process""#,
        "dlq": r#"dlq = "dlq.order.process""#,
        "retry": r#"retry(max = 3, delay = "5s")"#,
        "idempotent": r#"idempotent = "redis""#,
        "bind": r#"bind(exchange = "orders", routing_key = "order.*")"#,
        "prefetch": "prefetch = 32",
        "concurrency": "concurrency = 8",
        "timeout": r#"timeout = "5m""#,
        "on_timeout": r#"on_timeout = "retry""#,
        "on_panic": r#"on_panic = "retry""#,
        "queue_type": r#"queue_type = "quorum""#,
        "precheck": "precheck = still_wanted",
        "classify": "classify = worth_a_retry",
        "crate": "crate = path::to::mqguard",
    },
    hints: &[
        (
            &["retries", "max_retries", "max_attempts", "attempts", "backoff"],
            r#"retries are written `retry(max = 3, delay = "5s", factor = 2)`"#,
        ),
        (&["dead_letter", "dead_letter_queue", "dead_letters", "dlx", "dlx_queue"], r#"write `dlq = "dlq.order.process"`"#),
        (&["exchange", "routing_key", "binding", "bindings"], r#"write `bind(exchange = "orders", routing_key = "order.*")`"#),
        (&["workers", "threads", "parallelism", "max_concurrency"], "write `concurrency = 8`"),
        (&["qos", "prefetch_count"], "write `prefetch = 32`"),
        (&["dedup", "deduplicate", "idempotency", "unique"], r#"write `idempotent = "redis"`"#),
        (&["name", "topic"], r#"write `queue = "order.process"`"#),
    ],
    related: &[&RETRY, &IDEMPOTENT, &BIND],
};

pub(crate) static DEAD_LETTER_CONSUMER: Level = Level {
    name: "`#[dead_letter_consumer]`",
    keys: keys! {
        "queue": r#"queue = "dlq.order.process""#,
        "of": "of = process_order",
        "prefetch": "prefetch = 32",
        "concurrency": "concurrency = 8",
        "timeout": r#"timeout = "5m""#,
        "crate": "crate = path::to::mqguard",
    },
    hints: &[(
        &["retry", "idempotent", "dlq", "on_timeout", "on_panic"],
        "a dead-letter consumer never retries or dead-letters: a failing letter stays in its queue",
    )],
    related: &[],
};

pub(crate) static RETRY: Level = Level {
    name: "`retry(...)`",
    keys: keys! {
        "max": "max = 3",
        "delay": r#"delay = "5s""#,
        "factor": "factor = 2",
        "max_delay": r#"max_delay = "1m""#,
        "jitter": "jitter = 0.2",
        "schedule": r#"schedule = ["1s", "10s", "1m"]"#,
        "within": r#"within = "10m""#,
    },
    hints: &[
        (
            &["attempts", "retries", "max_attempts", "max_retries", "times", "count"],
            "write `max = 3`, the retries after the first run",
        ),
        (&["multiplier", "backoff", "exponent", "base"], "write `factor = 2`"),
        (&["interval", "initial_delay", "min_delay", "wait", "initial"], r#"write `delay = "5s"`"#),
        (&["max_interval", "cap", "max_wait"], r#"write `max_delay = "1m"`"#),
        (&["delays", "steps"], r#"write `schedule = ["1s", "10s", "1m"]`"#),
        (&["deadline", "max_elapsed", "ttl"], r#"write `within = "10m"`"#),
    ],
    related: &[&CONSUMER],
};

pub(crate) static DLQ: Level = Level {
    name: "`dlq(...)`",
    keys: keys! {
        "queue": r#"queue = "dlq.order.process""#,
        "exchange": r#"exchange = "dlx.exchange""#,
    },
    hints: &[
        (&["name"], r#"write `queue = "dlq.order.process"`"#),
        (&["routing_key"], "the dead-letter queue is bound by its own name"),
    ],
    related: &[],
};

pub(crate) static IDEMPOTENT: Level = Level {
    name: "`idempotent(...)`",
    keys: keys! {
        "store": r#"store = "redis""#,
        "key": r#"key = "order_id""#,
        "identity": r#"identity = "key+message_id""#,
        "ttl": r#"ttl = "24h""#,
        "lease": r#"lease = "30s""#,
        "missing_id": r#"missing_id = "dead_letter""#,
    },
    hints: &[
        (&["expire", "expires", "expiry", "retention", "keep"], r#"write `ttl = "24h"`"#),
        (&["id", "field", "business_key"], r#"write `key = "order_id"`"#),
        (&["backend", "strategy"], r#"write `store = "redis"`"#),
        (&["lock", "lock_ttl"], r#"write `lease = "30s"`"#),
    ],
    related: &[&CONSUMER],
};

pub(crate) static BIND: Level = Level {
    name: "`bind(...)`",
    keys: keys! {
        "exchange": r#"exchange = "orders""#,
        "kind": r#"kind = "topic""#,
        "routing_key": r#"routing_key = "order.*""#,
    },
    hints: &[
        (&["key", "routing", "pattern"], r#"write `routing_key = "order.*"`"#),
        (&["type", "exchange_type"], r#"write `kind = "topic"`"#),
    ],
    related: &[],
};

/// The stores that keep idempotency records.
pub(crate) const STORES: &[&str] = &["memory", "redis"];

pub(crate) static RETRYABLE: Level = Level {
    name: "`#[retryable]`",
    keys: keys! {
        "after": "after = retry_after",
        "uncounted": "uncounted",
        "inherit": "inherit",
        "crate": "crate = path::to::mqguard",
    },
    hints: &[
        (&["delay", "retry_after", "wait"], r#"write `after = field` or `after = "30s"`"#),
        (&["source", "from", "transparent"], "write `inherit` to ask the wrapped error"),
        (&["max", "factor", "jitter"], "how often and how fast is said by the consumer: `retry(max = 3, delay = \"5s\")`"),
    ],
    related: &[],
};
