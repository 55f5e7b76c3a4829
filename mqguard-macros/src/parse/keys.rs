//! The keys of each level of an attribute.

use proc_macro2::{Group, Ident, TokenTree};

use super::entries::{Value, compact, visible};
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
    /// Whether the word counts the first run, which `max` does not.
    counts_the_first_run: bool,
}

impl Hint {
    /// What to write, with the user's own value where it fits.
    fn line(&self, value: &Value) -> String {
        let advice = self.advice;
        let given = match value {
            Value::Assigned(tokens) if tokens.len() == 1 => compact(tokens),
            Value::Listed(group) => match advice.split_once('(') {
                Some((key, _)) => return format!("`{key}({})`", entries_of(group)),
                None => String::new(),
            },
            _ => String::new(),
        };
        let number = given.parse::<u32>().ok();
        if self.counts_the_first_run {
            let attempts = number.filter(|attempts| *attempts > 1).unwrap_or(3);
            let line = advice.replacen("max = 2", &format!("max = {}", attempts - 1), 1);
            return format!("`{line}` for {attempts} attempts, it counts the retries after the first run");
        }
        match (advice.split_once(" = "), number) {
            (Some((key, sample)), _) if !advice.contains('(') && fits(key, &given, sample) => format!("`{key} = {given}`"),
            (_, Some(max)) => format!("`{}`", advice.replacen("max = 3", &format!("max = {max}"), 1)),
            _ => format!("`{advice}`"),
        }
    }
}

/// A list of entries as text.
fn entries_of(group: &Group) -> String {
    let spaced = |token: TokenTree| match token {
        TokenTree::Punct(sign) if sign.as_char() == '=' => " = ".to_owned(),
        TokenTree::Punct(sign) if sign.as_char() == ',' => ", ".to_owned(),
        token => compact(&[token]),
    };
    visible(group.stream()).into_iter().map(spaced).collect()
}

/// Whether a value can stand in the place of the sample.
fn fits(key: &str, given: &str, sample: &str) -> bool {
    let kind = |value: &str| value.chars().next().map(|first| (first == '"', first.is_ascii_digit()));
    let is_a_store = STORES.contains(&given.trim_matches('"'));
    kind(given).is_some() && kind(given) == kind(sample) && (is_a_store || !matches!(key, "idempotent" | "store"))
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
    pub(crate) fn lookup(&'static self, word: &Ident, value: &Value, sink: &mut Sink) -> Lookup {
        let name = word.to_string();
        sink.key(self.module, word);
        if let Some(key) = self.key(&name) {
            return Lookup::Known(key);
        }
        let hint = |word: &str| self.hints.iter().find(|hint| hint.words.contains(&word));
        if let Some(hint) = hint(&name) {
            return self.advise(hint, word, value, sink);
        }
        let homes: Vec<&Level> = self.related.iter().copied().filter(|level| level.has(&name)).collect();
        if !homes.is_empty() {
            let how = self.how_there(&homes, &name, value);
            let homes = alternatives(homes.iter().map(|level| level.name), "");
            sink.error(word.span(), format!("`{name}` belongs in {homes}, not in {}{how}", self.name));
            return Lookup::Misplaced;
        }
        let near = nearest(&name, self.names()).and_then(|near| self.key(near));
        let other_names = self.hints.iter().flat_map(|hint| hint.words.iter().copied());
        if let (None, Some(hint)) = (near, nearest(&name, other_names).and_then(hint)) {
            return self.advise(hint, word, value, sink);
        }
        let question = near.map_or_else(String::new, |near| format!(": did you mean `{}`?", near.name));
        let allowed = self.names().map(|key| format!("`{key}`")).collect::<Vec<_>>().join(", ");
        sink.error(word.span(), format!("unknown key `{name}` in {}{question}\nallowed here: {allowed}", self.name));
        near.map_or(Lookup::Unknown, Lookup::Near)
    }

    /// How to write an entry of this level where it belongs.
    fn how_there(&self, homes: &[&Self], name: &str, value: &Value) -> String {
        let [home] = homes else { return String::new() };
        let sample = home.key(name).map_or(name, |key| key.sample);
        let entry = match value {
            Value::Assigned(tokens) if sample.starts_with(&format!("{name} = ")) => format!("{name} = {}", compact(tokens)),
            Value::Listed(_) => format!("{name}(...)"),
            _ => sample.to_owned(),
        };
        let first = home.keys[0].name;
        if home.module == CONSUMER.module {
            format!(": write `{entry}` beside {}", self.name)
        } else if first == name {
            format!(": write `{}({entry})`", home.module)
        } else {
            format!(": write `{}({first} = ..., {entry})`", home.module)
        }
    }

    /// Tells one who wrote `word` what it is called here.
    fn advise(&self, hint: &Hint, word: &Ident, value: &Value, sink: &mut Sink) -> Lookup {
        let Some(key) = hint.key else {
            sink.error(word.span(), format!("{}; remove `{word}`", hint.advice));
            return Lookup::Unknown;
        };
        let line = hint.line(value);
        let is_known = hint.words.iter().any(|known| word == known);
        let question = if is_known { String::new() } else { format!("did you mean `{key}`? ") };
        sink.error(word.span(), format!("there is no key `{word}` in {}: {question}write {line}", self.name));
        self.key(key).map_or(Lookup::Unknown, Lookup::Near)
    }
}

/// What a key is called elsewhere.
const fn also(words: &'static [&'static str], key: &'static str, advice: &'static str) -> Hint {
    Hint { words, advice, key: Some(key), counts_the_first_run: false }
}

/// What there is no key for.
const fn never(words: &'static [&'static str], advice: &'static str) -> Hint {
    Hint { words, advice, key: None, counts_the_first_run: false }
}

/// What counts the first run elsewhere.
const fn with_the_first_run(words: &'static [&'static str], key: &'static str, advice: &'static str) -> Hint {
    Hint { words, advice, key: Some(key), counts_the_first_run: true }
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
        also(&["retries", "max_retries", "backoff"], "retry", r#"retry(max = 3, delay = "5s", factor = 2)"#),
        with_the_first_run(&["max_attempts", "attempts"], "retry", r#"retry(max = 2, delay = "5s", factor = 2)"#),
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
