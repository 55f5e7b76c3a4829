//! The macros of mqguard. Depend on the crate `mqguard`, which re-exports them.
//!
//! All three report every mistake at once, each at its place with the line to write, and leave the item as it is.

mod diag;
mod expand;
mod fallback;
mod model;
mod parse;
mod root;
mod validate;

use proc_macro::TokenStream;

/// Makes an `async fn` a consumer of a queue.
///
/// ```
/// # use mq as mqguard;
/// use mqguard::{RetryableError, consumer};
/// use serde::Deserialize;
///
/// #[derive(Debug, Deserialize)]
/// struct Order {
///     order_id: u64,
/// }
///
/// #[derive(Debug, thiserror::Error, RetryableError)]
/// enum OrderError {
///     #[error("inventory unreachable")]
///     #[retryable]
///     Inventory,
///     #[error("order {0} already shipped")]
///     #[fatal]
///     AlreadyShipped(u64),
/// }
///
/// #[consumer(
///     queue = "order.process",
///     retry(max = 3, delay = "5s", factor = 2),
///     dlq = "dlq.order.process",
///     idempotent(store = "redis", key = "order_id", identity = "key"),
/// )]
/// async fn process_order(order: Order) -> Result<(), OrderError> {
///     if order.order_id == 0 { Err(OrderError::AlreadyShipped(0)) } else { Ok(()) }
/// }
/// ```
///
/// # The function
///
/// It stays what it is: it can be called, tested and documented as before. The macro adds a type of the same name that implements
/// `Consumer`; that is what `Guard::consumer::<process_order>()` registers. A consumer that nobody registers is reported by the compiler
/// as a function that is never used, unless something else calls it. Links in the documentation say which of the
/// two they mean: ``[`process_order`](fn@process_order)``.
///
/// - It is an `async fn`, not generic, outside of any `impl`.
/// - The first parameter is the message: a type that implements `serde::Deserialize`, `Raw` for the undecoded body, or `DeadLetter`.
/// - The others implement `Extract`: `State<T>`, `Publisher`, `Context`, `Headers`, `Attempt`, `Effects`, `Tx<'_, DB>`, or types of your own. All are owned, and
///   can be taken apart: `State(db): State<Db>`.
/// - It returns `Result<(), E>` where `E` derives `RetryableError`, or nothing when it cannot fail.
///
/// # Keys
///
/// | key | value | default |
/// |---|---|---|
/// | [`queue`](#queue) | text | required |
/// | [`dlq`](#dlq) | text or list | `"dlq.<queue>"`; required with `retry` |
/// | [`retry`](#retry) | list | the first failure is final |
/// | [`idempotent`](#idempotent) | text or list | each delivery runs |
/// | [`bind`](#bind) | list, as often as you like | the queue is bound to nothing |
/// | [`queue_type`](#queue_type) | `"quorum"`, `"classic"` | `"quorum"` |
/// | [`prefetch`](#prefetch-and-concurrency) | 1 to 2000 | 32 |
/// | [`concurrency`](#prefetch-and-concurrency) | 1 to `prefetch` | as `prefetch` |
/// | [`timeout`](#timeout) | `"1ms"` to `"29m"` | `"5m"` |
/// | [`on_timeout`, `on_panic`](#on_timeout-and-on_panic) | `"retry"`, `"fatal"` | `"retry"` |
/// | [`precheck`](#precheck) | function | none |
/// | [`classify`](#classify) | function | `RetryableError` of the error |
/// | [`crate`](#crate) | path | as `Cargo.toml` imports mqguard |
///
/// Durations are texts of whole numbers with a unit: `"500ms"`, `"5s"`, `"2m"`, `"1h30m"`, `"7d"`. All values are read when the program
/// is compiled: they are literals, not constants.
///
/// ## `queue`
///
/// The queue that is consumed: 1 to 255 bytes, not starting with `amq.`. With `retry` or `idempotent` up to 200 bytes: the queues in
/// which messages wait are named for it (`order.process.retry.5s`). It is also the scope of the idempotency records.
///
/// `queue = "order.process"`
///
/// ## `dlq`
///
/// The dead-letter queue, and the exchange by which letters reach it (`"dlx.exchange"`).
///
/// `dlq = "dlq.order.process"`, `dlq(queue = "dlq.order.process", exchange = "dead")`
///
/// ## `retry`
///
/// How often and after which delays a message is tried again when its failure is worth it. It needs a `dlq` for those that never succeed.
///
/// | key | value | default | example |
/// |---|---|---|---|
/// | `max` | retries after the first run, 1 to 1000 | required; the length of the schedule | `max = 3` |
/// | `delay` | before the first retry, up to `"30d"` | `"5s"` | `delay = "5s"` |
/// | `factor` | what each delay is multiplied by to get the next, 1 to 100 | 1 | `factor = 2` |
/// | `max_delay` | no delay is longer, up to `"30d"` | none | `max_delay = "1m"` |
/// | `jitter` | each delay is lengthened by a random part of up to this share of it, 0.0 to 1.0 | 0 | `jitter = 0.2` |
/// | `schedule` | 1 to 100 delays in place of `delay`, `factor` and `max_delay`; the last is repeated when `max` is larger | none | `schedule = ["1s", "10s", "1m"]` |
/// | `within` | no retry is due later than this after the first failure, `"1s"` to `"366d"` | none | `within = "10m"` |
///
/// `retry(max = 3, delay = "5s", factor = 2)` runs a message up to four times, waiting 5 s, 10 s and 20 s. No delay may be longer than
/// 30 days: a growing one needs a `max_delay`.
///
/// ## `idempotent`
///
/// How duplicates are recognised. `idempotent = "redis"` names the store and leaves the rest at its default.
///
/// | key | value | default | example |
/// |---|---|---|---|
/// | `store` | `"memory"`, `"redis"`, `"mysql"`, `"postgres"` or `"sqlite"` | required | `store = "redis"` |
/// | `key` | the business key: a field of the message as text, or a function `fn(&Order) -> impl BusinessKey` | none | `key = "order_id"`, `key = "customer.id"`, `key = order_key` |
/// | `identity` | `"key+message_id"`, `"key"` or `"message_id"` | `"key+message_id"`, as far as they are there | `identity = "key"` |
/// | `ttl` | how long a finished message is remembered, `"1s"` to `"366d"` | `"24h"` | `ttl = "7d"` |
/// | `lease` | how long a claim is held without renewal, `"1s"` to `"1h"` | `"30s"` | `lease = "1m"` |
/// | `missing_id` | what happens to a message without its identity: `"dead_letter"` or `"run"` | `"dead_letter"` | `missing_id = "run"` |
/// | `mode` | `"unique"`, or `"state_machine"`: records are rows of `mq_msg_log`, which a producer may write before it publishes; not with Redis | `"unique"` | `mode = "state_machine"` |
/// | `transactional` | the function writes in a transaction of the store's database that is committed with the record of its success, and takes it as `Tx<'_, DB>`; stands by itself; `lease` is then `"10s"` | no transaction | `transactional` |
/// | `on_store_down` | while the store is away, consumption waits (`"wait"`), or messages run without protection (`"run"`) | `"wait"` | `on_store_down = "run"` |
///
/// The `ttl` must be longer than all retries can take together: the delays with their jitter (and a tenth, for they are rounded up), and
/// `max + 1` runs of `timeout` and `lease`. A shorter one would forget a message that is still being retried; it is an error here.
///
/// ## `bind`
///
/// Binds the queue to an exchange, which is declared durable.
///
/// | key | value | default | example |
/// |---|---|---|---|
/// | `exchange` | 1 to 255 bytes | required | `exchange = "orders"` |
/// | `kind` | `"topic"`, `"direct"` or `"fanout"` | `"topic"` | `kind = "direct"` |
/// | `routing_key` | up to 255 bytes | required; not for `"fanout"` | `routing_key = "order.*"` |
///
/// ## `queue_type`
///
/// `"quorum"` (replicated, safe) or `"classic"` (on one node), for the queue and those that go with it.
///
/// `queue_type = "classic"`
///
/// ## `prefetch` and `concurrency`
///
/// How many unacknowledged messages the broker may have out here, and how many of them run at once.
///
/// `prefetch = 64, concurrency = 16`
///
/// ## `timeout`
///
/// How long one run may take. RabbitMQ itself takes a message away after 30 minutes, hence the limit of 29.
///
/// `timeout = "30s"`
///
/// ## `on_timeout` and `on_panic`
///
/// Whether a run that took too long, or panicked, is tried again by the retry policy (`"retry"`) or given up at once (`"fatal"`).
///
/// `on_timeout = "fatal", on_panic = "fatal"`
///
/// ## `precheck`
///
/// An `async fn(&Order) -> Precheck`, or `-> Result<Precheck, E>`, that runs before every run of the function and may skip it. It may
/// take what the function may take besides the message: `async fn still_wanted(order: &Order, db: State<Db>) -> Precheck`.
///
/// `precheck = still_wanted`
///
/// ## `classify`
///
/// A `fn(&E) -> Retry` that classifies the errors of a function whose error type does not implement `RetryableError`.
///
/// `classify = worth_a_retry`
///
/// ## `crate`
///
/// The path of mqguard, for those who have it from another crate's re-export. Renaming it in `Cargo.toml` needs no such path.
///
/// `crate = company::mqguard`
#[proc_macro_attribute]
pub fn consumer(args: TokenStream, item: TokenStream) -> TokenStream {
    expand::consumer(args.into(), &item.into()).into()
}

/// Makes an `async fn` a consumer of dead letters.
///
/// ```
/// # use mq as mqguard;
/// use mqguard::{DeadLetter, consumer, dead_letter_consumer};
/// use serde::Deserialize;
///
/// #[derive(Debug, Deserialize)]
/// struct Order {
///     order_id: u64,
/// }
///
/// #[consumer(queue = "order.process", dlq = "dlq.order.process")]
/// async fn process_order(order: Order) {
///     println!("{}", order.order_id);
/// }
///
/// #[dead_letter_consumer(queue = "dlq.order.process", of = process_order)]
/// async fn record(letter: DeadLetter<Order>) {
///     println!("{letter:?}");
/// }
/// ```
///
/// The function is as for [`macro@consumer`]; its message is usually a `DeadLetter`. A failure never makes a letter of a letter: it stays
/// in its queue. So there are no keys about retries, dead letters and idempotency.
///
/// # Keys
///
/// | key | value | default | example |
/// |---|---|---|---|
/// | `queue` | the dead-letter queue, 1 to 255 bytes | required | `queue = "dlq.order.process"` |
/// | `of` | the consumer whose letters these are | none | `of = process_order` |
/// | `prefetch` | 1 to 2000 | 32 | `prefetch = 8` |
/// | `concurrency` | 1 to `prefetch` | as `prefetch` | `concurrency = 1` |
/// | `timeout` | how long one run may take, `"1ms"` to `"29m"` | `"5m"` | `timeout = "30s"` |
/// | `crate` | the path of mqguard | as `Cargo.toml` imports it | `crate = company::mqguard` |
#[proc_macro_attribute]
pub fn dead_letter_consumer(args: TokenStream, item: TokenStream) -> TokenStream {
    expand::dead_letter_consumer(args.into(), &item.into()).into()
}

/// Says of each variant of an error whether it is worth a retry.
///
/// ```
/// # use mq as mqguard;
/// use std::time::Duration;
///
/// use mqguard::{Retry, RetryableError};
///
/// #[derive(Debug, thiserror::Error, RetryableError)]
/// enum OrderError {
///     #[error("inventory unreachable")]
///     #[retryable]
///     Inventory,
///     #[error("throttled")]
///     #[retryable(after = retry_after)]
///     Throttled { retry_after: Duration },
///     #[error("the warehouse is closed")]
///     #[retryable(after = "30m", uncounted)]
///     Closed,
///     #[error("database: {0}")]
///     #[retryable(inherit)]
///     Io(#[from] std::io::Error),
///     #[error("order {0} already shipped")]
///     #[fatal]
///     AlreadyShipped(u64),
/// }
///
/// assert_eq!(OrderError::Inventory.retry(), Retry::Retryable);
/// assert_eq!(OrderError::Throttled { retry_after: Duration::from_secs(7) }.retry(), Retry::After(Duration::from_secs(7)));
/// assert_eq!(OrderError::Closed.retry(), Retry::Later(Duration::from_secs(1800)));
/// assert_eq!(OrderError::AlreadyShipped(7).retry(), Retry::Fatal);
/// ```
///
/// Each variant has one of these; a variant with none is an error, unless the enum has one as its default.
///
/// | attribute | the failure is tried again |
/// |---|---|
/// | `#[retryable]` | by the consumer's policy |
/// | `#[retryable(after = "30s")]` | after this long instead of the policy's delay (up to `"30d"`) |
/// | `#[retryable(after = field)]` | after what the field says: a `Duration`, a `SystemTime`, or an `Option` of one. In a tuple: its number |
/// | `#[retryable(after = ..., uncounted)]` | likewise, without spending one of the `max` retries |
/// | `#[retryable(inherit)]` | as the wrapped error says: the field marked `#[source]` or `#[from]`, the only field, or the one named `source` |
/// | `#[retryable(inherit = field)]` | as the error in this field says |
/// | `#[fatal]` | never |
///
/// On an enum, `#[retryable]`, `#[retryable(after = "30s")]` and `#[fatal]` are the default of the variants that have none of their own.
/// A struct has its attribute on itself; `#[retryable(inherit)]` can also mark the field. `#[retryable(crate = path::to::mqguard)]` on
/// the type names the crate when it comes from another one's re-export.
#[proc_macro_derive(RetryableError, attributes(retryable, fatal))]
pub fn retryable_error(input: TokenStream) -> TokenStream {
    expand::retryable_error(input.into()).into()
}
