//! The keys of the attributes as items: editors complete them, and show their documentation.

#![allow(non_upper_case_globals)]

macro_rules! keys {
    ($($module:ident { $($(#[doc = $doc:literal])+ $key:ident)+ })+) => {$(
        #[doc = concat!("The keys of `", stringify!($module), "(...)`.")]
        pub mod $module {
            $($(#[doc = $doc])+ pub const $key: () = ();)+
        }
    )+};
}

keys! {
    consumer {
        /// The queue that is consumed, 1 to 255 bytes; required: `queue = "order.process"`
        queue
        /// Where messages end that are given up; `"dlq.<queue>"`, required with `retry`:
        /// `dlq = "dlq.order.process"`, `dlq(queue = "dlq.order.process", exchange = "dead")`
        dlq
        /// How often and after which delays a failed message is tried again; never: `retry(max = 3, delay = "5s", factor = 2)`
        retry
        /// How duplicates are recognised; they are not: `idempotent = "redis"`, `idempotent(store = "redis", key = "order_id")`
        idempotent
        /// Binds the queue to an exchange, as often as you like: `bind(exchange = "orders", routing_key = "order.*")`
        bind
        /// How many unacknowledged messages the broker has out here, 1 to 2000; 32: `prefetch = 64`
        prefetch
        /// How many of them run at once, 1 to `prefetch`; as `prefetch`: `concurrency = 16`
        concurrency
        /// How long one run may take, up to 29 minutes; 5 minutes: `timeout = "30s"`
        timeout
        /// Whether a run that took too long is tried again; `"retry"`: `on_timeout = "fatal"`
        on_timeout
        /// Whether a run that panicked is tried again; `"retry"`: `on_panic = "fatal"`
        on_panic
        /// `"quorum"` or `"classic"`; `"quorum"`: `queue_type = "classic"`
        queue_type
        /// An `async fn(&Order) -> Precheck` that runs before each run, and may skip it: `precheck = still_wanted`
        precheck
        /// A `fn(&E) -> Retry` for errors that do not implement `RetryableError`: `classify = worth_a_retry`
        classify
    }
    dead_letter_consumer {
        /// The dead-letter queue; required: `queue = "dlq.order.process"`
        queue
        /// The consumer whose letters these are: `of = process_order`
        of
        /// How many unacknowledged letters the broker has out here, 1 to 2000; 32: `prefetch = 8`
        prefetch
        /// How many of them run at once, 1 to `prefetch`; as `prefetch`: `concurrency = 1`
        concurrency
        /// How long one run may take, up to 29 minutes; 5 minutes: `timeout = "30s"`
        timeout
    }
    dlq {
        /// The dead-letter queue; required: `queue = "dlq.order.process"`
        queue
        /// The exchange by which letters reach it; `"dlx.exchange"`: `exchange = "dead"`
        exchange
    }
    retry {
        /// Retries after the first run, 1 to 1000; required, or the length of `schedule`: `max = 3`
        max
        /// The wait before the first retry, up to 30 days; 5 seconds: `delay = "5s"`
        delay
        /// What each delay is multiplied by to get the next, 1 to 100; 1: `factor = 2`
        factor
        /// No wait is longer, up to 30 days: `max_delay = "1m"`
        max_delay
        /// Each wait is lengthened by a random part of up to this share of it, 0.0 to 1.0; 0: `jitter = 0.2`
        jitter
        /// Every wait, in place of `delay`, `factor` and `max_delay`: `schedule = ["1s", "10s", "1m"]`
        schedule
        /// No retry is due later than this after the first failure: `within = "10m"`
        within
    }
    idempotent {
        /// `"memory"`, `"redis"`, `"mysql"`, `"postgres"` or `"sqlite"`; required: `store = "redis"`
        store
        /// The business key, a field or a function: `key = "order_id"`, `key = "customer.id"`, `key = order_key`
        key
        /// `"key+message_id"`, `"key"` or `"message_id"`; the first, as far as they are there: `identity = "key"`
        identity
        /// How long a finished message is remembered, longer than its retries; 24 hours: `ttl = "7d"`
        ttl
        /// How long a claim is held without renewal; 30 seconds, 10 with `transactional`: `lease = "1m"`
        lease
        /// What happens to a message without its identity, `"dead_letter"` or `"run"`; the first: `missing_id = "run"`
        missing_id
        /// `"unique"`, or `"state_machine"`: records that a producer may write first; the first: `mode = "state_machine"`
        mode
        /// The function writes in a transaction that is committed with its success, and takes it as `Tx<'_, DB>`: `transactional`
        transactional
        /// While the store is away `"wait"`, or `"run"` unprotected; the first: `on_store_down = "run"`
        on_store_down
    }
    bind {
        /// The exchange; required: `exchange = "orders"`
        exchange
        /// `"topic"`, `"direct"` or `"fanout"`; `"topic"`: `kind = "direct"`
        kind
        /// The routing key; required but for `"fanout"`: `routing_key = "order.*"`
        routing_key
    }
}
