//! The names of the headers that mqguard writes. None begins with `x-`: those belong to the broker.

/// Counted retries before this run. Integer.
pub(crate) const ATTEMPT: &str = "mqguard-attempt";
/// Uncounted retries before this run. Integer.
pub(crate) const DEFERRALS: &str = "mqguard-deferrals";
/// How often this copy was put off because another worker had the message. Integer.
pub(crate) const BUSY: &str = "mqguard-busy";
/// How often the message was delivered and neither settled nor handed back. Integer; of consumers whose idempotency store does not tell.
pub(crate) const CRASHES: &str = "mqguard-crashes";
/// Replays from the dead letters. Integer.
pub(crate) const GENERATION: &str = "mqguard-generation";
/// The time of the first failure, RFC 3339.
pub(crate) const FIRST_FAILURE: &str = "mqguard-first-failure";
/// The failed attempts, oldest first: a list of tables `{attempt, at, kind, error}`.
pub(crate) const ATTEMPTS: &str = "mqguard-attempts";
/// How often the handler ran. Integer.
pub(crate) const RUNS: &str = "mqguard-runs";
/// The exchange that the message was first published to.
pub(crate) const EXCHANGE: &str = "mqguard-exchange";
/// The routing key that the message was first published with.
pub(crate) const ROUTING_KEY: &str = "mqguard-routing-key";
/// The message's own `expiration`, which copies do not carry.
pub(crate) const EXPIRATION: &str = "mqguard-original-expiration";
/// The message's own `user_id`, which copies do not carry.
pub(crate) const USER_ID: &str = "mqguard-original-user-id";
/// The message's own `CC` header, which would send copies to other queues.
pub(crate) const CC: &str = "mqguard-original-cc";
/// Why the message died.
pub(crate) const REASON: &str = "mqguard-reason";
/// The type of the last error.
pub(crate) const ERROR_KIND: &str = "mqguard-error-kind";
/// The message of the last error.
pub(crate) const ERROR: &str = "mqguard-error";
/// The messages of its sources: a list, outermost first.
pub(crate) const ERROR_CHAIN: &str = "mqguard-error-chain";
/// When the message died, RFC 3339.
pub(crate) const DIED: &str = "mqguard-died";
/// The function that gave up.
pub(crate) const CONSUMER: &str = "mqguard-consumer";
/// The queue that it consumed.
pub(crate) const QUEUE: &str = "mqguard-queue";
/// The host that it ran on.
pub(crate) const HOST: &str = "mqguard-host";
/// What only letters tell; a letter that is replayed is none any more.
pub(crate) const OF_LETTERS: [&str; 12] =
    [RUNS, REASON, ERROR_KIND, ERROR, ERROR_CHAIN, DIED, CONSUMER, QUEUE, HOST, CUT, ATTEMPTS, FIRST_FAILURE];
/// What was cut to fit the headers into a frame: a list of header names.
pub(crate) const CUT: &str = "mqguard-cut";
