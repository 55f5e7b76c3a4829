use std::time::Duration;

use crate::broker::{ExchangeKind, QueueType};
use crate::idempotency::Mode;
use crate::retry::RetryPolicy;

/// What an annotated function declares: everything about a consumer that is known at compile time.
///
/// The macros write it as a constant; [`ConsumerSpec::new`] gives the defaults of all that an attribute does not name.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ConsumerSpec {
    /// The function's name.
    pub name: &'static str,
    /// The module that the function is in.
    pub module: &'static str,
    /// The queue that is consumed. It is also the scope of the consumer's idempotency records.
    pub queue: &'static str,
    /// What the queue carries.
    pub role: Role,
    /// The type of the queue and of the queues that go with it.
    pub queue_type: QueueType,
    /// Exchanges that the queue is bound to.
    pub bindings: &'static [BindingSpec],
    /// Where dead letters go. `None`: the queue `dlq.<queue>`, by [`DEFAULT_DEAD_LETTER_EXCHANGE`].
    pub dead_letters: Option<DeadLetterSpec>,
    /// The retry policy. `None`: the first failure is final.
    pub retry: Option<RetryPolicy>,
    /// How duplicates are recognised. `None`: they are not, each delivery runs.
    pub idempotent: Option<IdempotentSpec>,
    /// Unacknowledged deliveries that the broker may have out at this consumer.
    pub prefetch: u16,
    /// Handlers that may run at once. `None`: as many as `prefetch`.
    pub concurrency: Option<u16>,
    /// How long one run of the handler may take.
    pub timeout: Duration,
    /// What a run that exceeded its `timeout` counts as.
    pub on_timeout: FaultRule,
    /// What a run that panicked counts as.
    pub on_panic: FaultRule,
}

/// The exchange by which dead letters are routed when an attribute names none.
pub const DEFAULT_DEAD_LETTER_EXCHANGE: &str = "dlx.exchange";

impl ConsumerSpec {
    /// The declaration of the function `name` in `module` for `queue`, all else at its default.
    #[must_use]
    pub const fn new(name: &'static str, module: &'static str, queue: &'static str) -> Self {
        Self {
            name,
            module,
            queue,
            role: Role::Business,
            queue_type: QueueType::Quorum,
            bindings: &[],
            dead_letters: None,
            retry: None,
            idempotent: None,
            prefetch: 32,
            concurrency: None,
            timeout: Duration::from_secs(300),
            on_timeout: FaultRule::Retry,
            on_panic: FaultRule::Retry,
        }
    }
}

/// What a consumer's queue carries.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Role {
    /// Messages to be processed.
    Business,
    /// Dead letters. A failure never makes a letter of a letter: it stays in its queue and is tried again later.
    DeadLetters {
        /// The queue whose letters these are, as named by `of = ...`, with the consumer's declaration.
        of: Option<&'static ConsumerSpec>,
    },
}

/// Whether a panic or a timeout is worth a retry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultRule {
    /// By the retry policy, like a retryable error.
    Retry,
    /// Dead letter at once.
    Fatal,
}

/// `bind(exchange = ..., kind = ..., routing_key = ...)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BindingSpec {
    /// The exchange; declared durable.
    pub exchange: &'static str,
    /// Its kind.
    pub kind: ExchangeKind,
    /// The key of the binding.
    pub routing_key: &'static str,
}

/// `dlq = "..."` or `dlq(queue = ..., exchange = ...)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeadLetterSpec {
    /// The dead-letter queue.
    pub queue: &'static str,
    /// The direct exchange that routes to it.
    pub exchange: &'static str,
}

/// `idempotent = "..."` or `idempotent(...)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IdempotentSpec {
    /// The name of the store.
    pub store: &'static str,
    /// Whether the payload has a business key ([`crate::Consumer::business_key`]).
    pub keyed: bool,
    /// What identifies a message.
    pub identity: IdentityRule,
    /// How long a finished message is remembered.
    pub ttl: Duration,
    /// How long a claim is held without renewal. It is renewed while the handler runs.
    pub lease: Duration,
    /// What happens to a message that has no identity.
    pub missing_id: MissingId,
    /// Which kind of record the store keeps.
    pub mode: Mode,
    /// Whether the handler writes in a transaction of the store's database, which is committed with the record of its success.
    pub transactional: bool,
    /// What happens to messages while the store is away.
    pub on_store_down: OnStoreDown,
}

impl IdempotentSpec {
    /// Idempotency by `store`, all else at its default: identity by business key and message id, remembered for 24 h, lease of 30 s.
    #[must_use]
    pub const fn new(store: &'static str) -> Self {
        Self {
            store,
            keyed: false,
            identity: IdentityRule::KeyAndMessageId,
            ttl: Duration::from_secs(24 * 3600),
            lease: Duration::from_secs(30),
            missing_id: MissingId::DeadLetter,
            mode: Mode::Unique,
            transactional: false,
            on_store_down: OnStoreDown::Wait,
        }
    }
}

/// What makes two deliveries the same message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdentityRule {
    /// The business key and the message id, as far as they are there (the default).
    KeyAndMessageId,
    /// The business key alone: another message with the same key is a duplicate.
    Key,
    /// The message id alone.
    MessageId,
}

/// What happens to messages while the store is away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnStoreDown {
    /// Consumption pauses, nothing runs unprotected (the default).
    Wait,
    /// They run without protection, each told: duplicates are preferred to waiting.
    Run,
}

/// What happens to a message without the id or key that its identity needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MissingId {
    /// It becomes a dead letter with the reason `missing-id` (the default).
    DeadLetter,
    /// It runs without protection, with a warning.
    Run,
}
