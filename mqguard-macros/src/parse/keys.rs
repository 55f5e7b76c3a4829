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
    /// The module of its keys in mqguard, for editors.
    pub(crate) module: &'static str,
    /// The first is the one that a lone value is taken for.
    pub(crate) keys: &'static [Key],
    /// What people write who know a key by another name.
    pub(crate) hints: &'static [Hint],
    /// Where else a key may belong.
    pub(crate) related: &'static [&'static Level],
}

/// Words that are no keys, and what to tell those who write them.
pub(crate) struct Hint {
    words: &'static [&'static str],
    advice: &'static str,
    /// The key that is meant; without one the advice is the whole message.
    key: Option<&'static str>,
    /// What else to know of it.
    note: &'static str,
}

/// What a word means at a level. All but `Known` have been reported.
pub(crate) enum Lookup {
    Known(&'static Key),
    /// Not a key, but near to this one.
    Near(&'static Key),
    /// A key of another level.
    Misplaced,
    Unknown,
}

impl Level {
    fn names(&self) -> impl Iterator<Item = &'static str> {
        self.keys.iter().map(|key| key.name)
    }

    fn key(&self, name: &str) -> Option<&'static Key> {
        self.keys.iter().find(|key| key.name == name)
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.key(name).is_some()
    }

    /// Finds the key; reports a word that is none.
    pub(crate) fn lookup(&'static self, word: &Ident, sink: &mut Sink) -> Lookup {
        let name = word.to_string();
        sink.key(self.module, word);
        if let Some(key) = self.key(&name) {
            return Lookup::Known(key);
        }
        let hint = |word: &str| self.hints.iter().find(|hint| hint.words.contains(&word));
        if let Some(hint) = hint(&name) {
            return self.advise(hint, word, sink);
        }
        let homes: Vec<&str> = self.related.iter().filter(|level| level.has(&name)).map(|level| level.name).collect();
        if !homes.is_empty() {
            sink.error(word.span(), format!("`{name}` belongs in {}, not in {}", alternatives(homes, ""), self.name));
            return Lookup::Misplaced;
        }
        let near = nearest(&name, self.names()).and_then(|near| self.key(near));
        let other_names = self.hints.iter().flat_map(|hint| hint.words.iter().copied());
        if let (None, Some(hint)) = (near, nearest(&name, other_names).and_then(hint)) {
            return self.advise(hint, word, sink);
        }
        let question = near.map_or_else(String::new, |near| format!(": did you mean `{}`?", near.name));
        let allowed = self.names().map(|key| format!("`{key}`")).collect::<Vec<_>>().join(", ");
        sink.error(word.span(), format!("unknown key `{name}` in {}{question}\nallowed here: {allowed}", self.name));
        near.map_or(Lookup::Unknown, Lookup::Near)
    }

    /// Tells one who wrote `word` what it is called here.
    fn advise(&self, hint: &Hint, word: &Ident, sink: &mut Sink) -> Lookup {
        let advice = hint.advice;
        let Some(key) = hint.key else {
            sink.error(word.span(), format!("{advice}; remove `{word}`"));
            return Lookup::Unknown;
        };
        sink.error(word.span(), format!("there is no key `{word}` in {}: write `{advice}`{}", self.name, hint.note));
        self.key(key).map_or(Lookup::Unknown, Lookup::Near)
    }
}

/// What a key is called elsewhere.
const fn also(words: &'static [&'static str], key: &'static str, advice: &'static str) -> Hint {
    Hint { words, advice, key: Some(key), note: "" }
}

/// What there is no key for.
const fn never(words: &'static [&'static str], advice: &'static str) -> Hint {
    Hint { words, advice, key: None, note: "" }
}

/// What counts the first run elsewhere.
const fn with_the_first_run(words: &'static [&'static str], key: &'static str, advice: &'static str) -> Hint {
    Hint { words, advice, key: Some(key), note: " for 3 attempts, it counts the retries after the first run" }
}

macro_rules! keys {
    ($($name:literal: $sample:literal),+ $(,)?) => {
        &[$(Key { name: $name, sample: $sample }),+]
    };
}

pub(crate) static CONSUMER: Level = Level {
    name: "`#[consumer]`",
    module: "consumer",
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
        also(
            &["retries", "max_retries", "max_attempts", "attempts", "backoff"],
            "retry",
            r#"retry(max = 3, delay = "5s", factor = 2)"#,
        ),
        also(&["dead_letter", "dead_letter_queue", "dead_letters", "dlx", "dlx_queue"], "dlq", r#"dlq = "dlq.order.process""#),
        also(
            &["exchange", "routing_key", "binding", "bindings"],
            "bind",
            r#"bind(exchange = "orders", routing_key = "order.*")"#,
        ),
        also(&["workers", "threads", "parallelism", "max_concurrency"], "concurrency", "concurrency = 8"),
        also(&["qos", "prefetch_count"], "prefetch", "prefetch = 32"),
        also(&["dedup", "deduplicate", "idempotency", "unique"], "idempotent", r#"idempotent = "redis""#),
        also(&["name", "topic"], "queue", r#"queue = "order.process""#),
    ],
    related: &[&RETRY, &IDEMPOTENT, &BIND],
};

pub(crate) static DEAD_LETTER_CONSUMER: Level = Level {
    name: "`#[dead_letter_consumer]`",
    module: "dead_letter_consumer",
    keys: keys! {
        "queue": r#"queue = "dlq.order.process""#,
        "of": "of = process_order",
        "prefetch": "prefetch = 32",
        "concurrency": "concurrency = 8",
        "timeout": r#"timeout = "5m""#,
        "crate": "crate = path::to::mqguard",
    },
    hints: &[never(
        &["retry", "idempotent", "dlq", "on_timeout", "on_panic"],
        "a dead-letter consumer never retries or dead-letters: a failing letter stays in its queue",
    )],
    related: &[],
};

pub(crate) static RETRY: Level = Level {
    name: "`retry(...)`",
    module: "retry",
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
        also(&["retries", "max_retries", "times", "count"], "max", "max = 3"),
        with_the_first_run(&["attempts", "max_attempts"], "max", "max = 2"),
        also(&["multiplier", "backoff", "exponent", "base"], "factor", "factor = 2"),
        also(&["interval", "initial_delay", "min_delay", "wait", "initial"], "delay", r#"delay = "5s""#),
        also(&["max_interval", "cap", "max_wait"], "max_delay", r#"max_delay = "1m""#),
        also(&["delays", "steps"], "schedule", r#"schedule = ["1s", "10s", "1m"]"#),
        also(&["deadline", "max_elapsed", "ttl"], "within", r#"within = "10m""#),
    ],
    related: &[&CONSUMER],
};

pub(crate) static DLQ: Level = Level {
    name: "`dlq(...)`",
    module: "dlq",
    keys: keys! {
        "queue": r#"queue = "dlq.order.process""#,
        "exchange": r#"exchange = "dlx.exchange""#,
    },
    hints: &[
        also(&["name"], "queue", r#"queue = "dlq.order.process""#),
        never(&["routing_key"], "the dead-letter queue is bound by its own name"),
    ],
    related: &[],
};

pub(crate) static IDEMPOTENT: Level = Level {
    name: "`idempotent(...)`",
    module: "idempotent",
    keys: keys! {
        "store": r#"store = "redis""#,
        "key": r#"key = "order_id""#,
        "identity": r#"identity = "key+message_id""#,
        "ttl": r#"ttl = "24h""#,
        "lease": r#"lease = "30s""#,
        "missing_id": r#"missing_id = "dead_letter""#,
        "mode": r#"mode = "unique""#,
        "transactional": "transactional",
        "on_store_down": r#"on_store_down = "wait""#,
    },
    hints: &[
        also(&["expire", "expires", "expiry", "retention", "keep"], "ttl", r#"ttl = "24h""#),
        also(&["id", "field", "business_key"], "key", r#"key = "order_id""#),
        also(&["backend", "strategy", "redis"], "store", r#"store = "redis""#),
        also(&["memory"], "store", r#"store = "memory""#),
        also(&["mysql", "mariadb"], "store", r#"store = "mysql""#),
        also(&["postgres", "postgresql"], "store", r#"store = "postgres""#),
        also(&["sqlite"], "store", r#"store = "sqlite""#),
        also(&["lock", "lock_ttl"], "lease", r#"lease = "30s""#),
        also(&["transaction", "tx", "atomic"], "transactional", "transactional"),
        also(&["on_outage", "on_unavailable", "store_down", "fail_open"], "on_store_down", r#"on_store_down = "run""#),
    ],
    related: &[&CONSUMER],
};

pub(crate) static BIND: Level = Level {
    name: "`bind(...)`",
    module: "bind",
    keys: keys! {
        "exchange": r#"exchange = "orders""#,
        "kind": r#"kind = "topic""#,
        "routing_key": r#"routing_key = "order.*""#,
    },
    hints: &[
        also(&["key", "routing", "pattern"], "routing_key", r#"routing_key = "order.*""#),
        also(&["type", "exchange_type"], "kind", r#"kind = "topic""#),
    ],
    related: &[],
};

/// The stores that keep idempotency records.
pub(crate) const STORES: &[&str] = &["memory", "redis", "mysql", "postgres", "sqlite"];

/// What people call them who know them by another name.
pub(crate) const OTHER_NAMES_OF_STORES: &[(&str, &str)] = &[
    ("mariadb", "mysql"),
    ("postgresql", "postgres"),
    ("pg", "postgres"),
    ("valkey", "redis"),
    ("in-memory", "memory"),
    ("in_memory", "memory"),
];

pub(crate) static RETRYABLE: Level = Level {
    name: "`#[retryable]`",
    module: "retryable",
    keys: keys! {
        "after": r#"after = "30s""#,
        "uncounted": "uncounted",
        "inherit": "inherit",
        "crate": "crate = path::to::mqguard",
    },
    hints: &[
        also(&["delay", "retry_after", "wait"], "after", r#"after = "30s"` or `after = field"#),
        also(&["source", "from", "transparent"], "inherit", "inherit"),
        also(&["fatal", "never"], "fatal", "#[fatal]"),
        never(&["max", "factor", "jitter"], "how often and how fast is said by the consumer, `retry(max = 3, delay = \"5s\")`"),
    ],
    related: &[],
};
