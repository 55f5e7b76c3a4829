//! What the attributes declare, and what the expansion answers.

use std::time::Duration;

use mqguard::{
    Attempt, Backoff, Consumer, ConsumerSpec, Context, Extract, Failure, Headers, MissingState, Precheck, QueueType, Raw, Retry,
    RetryPolicy, RetryableError, State, States, consumer, dead_letter_consumer,
};
// The rest of a spec's types is named by those who read specs, not by those who write consumers.
use mqguard::__private::{
    BindingSpec, DEFAULT_DEAD_LETTER_EXCHANGE, DeadLetterSpec, ExchangeKind, FaultRule, IdempotentSpec, IdentityRule, MissingId,
    Mode, OnStoreDown, Role,
};
use serde::Deserialize;

#[derive(Debug, Deserialize)]
struct Order {
    order_id: u64,
    customer: Option<String>,
}

#[derive(Debug, thiserror::Error, RetryableError)]
#[error("failed")]
#[retryable]
struct OrderError;

const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

const fn default_spec(name: &'static str, queue: &'static str) -> ConsumerSpec {
    ConsumerSpec {
        name,
        module: "macros",
        queue,
        role: Role::Business,
        queue_type: QueueType::Quorum,
        bindings: &[],
        dead_letters: None,
        retry: None,
        idempotent: None,
        prefetch: 32,
        concurrency: None,
        timeout: secs(300),
        on_timeout: FaultRule::Retry,
        on_panic: FaultRule::Retry,
    }
}

#[consumer(queue = "minimal")]
async fn minimal(_order: Order) {}

#[test]
fn one_key_is_enough() {
    assert_eq!(<minimal as Consumer>::SPEC, default_spec("minimal", "minimal"));
}

#[consumer(
    queue = "order.process",
    retry(max = 3, delay = "5s", factor = 2),
    dlq = "dlq.order.process.fail",
    idempotent(store = "redis", key = "order_id")
)]
async fn process_order(_order: Order) -> Result<(), OrderError> {
    Err(OrderError)
}

#[test]
fn the_usual_keys() {
    let expected = ConsumerSpec {
        dead_letters: Some(DeadLetterSpec { queue: "dlq.order.process.fail", exchange: DEFAULT_DEAD_LETTER_EXCHANGE }),
        retry: Some(RetryPolicy {
            max: 3,
            backoff: Backoff::Exponential { delay: secs(5), factor: 2.0 },
            max_delay: None,
            jitter: 0.0,
            within: None,
        }),
        idempotent: Some(IdempotentSpec {
            store: "redis",
            keyed: true,
            identity: IdentityRule::KeyAndMessageId,
            ttl: secs(24 * 3600),
            lease: secs(30),
            missing_id: MissingId::DeadLetter,
            mode: Mode::Unique,
            transactional: false,
            on_store_down: OnStoreDown::Wait,
        }),
        ..default_spec("process_order", "order.process")
    };
    assert_eq!(<process_order as Consumer>::SPEC, expected);
}

async fn wanted(order: &Order) -> Precheck {
    if order.order_id > 0 { Precheck::Proceed } else { Precheck::Skip }
}

fn class(_error: &String) -> Retry {
    Retry::Fatal
}

#[consumer(
    queue = "all",
    dlq(queue = "dead", exchange = "graveyard"),
    retry(max = 7, delay = "500ms", factor = 1.5, max_delay = "1h30m", jitter = 0.25, within = "2d"),
    idempotent(store = "memory", key = customer, identity = "key", ttl = "7d", lease = "1m", missing_id = "run", mode = "state_machine", on_store_down = "run"),
    bind(exchange = "orders", routing_key = "order.*"),
    bind(exchange = "refunds", kind = "direct", routing_key = "refund"),
    bind(exchange = "all", kind = "fanout"),
    queue_type = "classic",
    prefetch = 100,
    concurrency = 10,
    timeout = "29m",
    on_timeout = "fatal",
    on_panic = "fatal",
    precheck = wanted,
    classify = class,
    crate = mqguard
)]
async fn every_key(_order: Order) -> Result<(), String> {
    Ok(())
}

fn customer(order: &Order) -> Option<&str> {
    order.customer.as_deref()
}

#[test]
fn all_keys() {
    let expected = ConsumerSpec {
        queue_type: QueueType::Classic,
        bindings: &[
            BindingSpec { exchange: "orders", kind: ExchangeKind::Topic, routing_key: "order.*" },
            BindingSpec { exchange: "refunds", kind: ExchangeKind::Direct, routing_key: "refund" },
            BindingSpec { exchange: "all", kind: ExchangeKind::Fanout, routing_key: "" },
        ],
        dead_letters: Some(DeadLetterSpec { queue: "dead", exchange: "graveyard" }),
        retry: Some(RetryPolicy {
            max: 7,
            backoff: Backoff::Exponential { delay: Duration::from_millis(500), factor: 1.5 },
            max_delay: Some(secs(5_400)),
            jitter: 0.25,
            within: Some(secs(2 * 86_400)),
        }),
        idempotent: Some(IdempotentSpec {
            store: "memory",
            keyed: true,
            identity: IdentityRule::Key,
            ttl: secs(7 * 86_400),
            lease: secs(60),
            missing_id: MissingId::Run,
            mode: Mode::StateMachine,
            transactional: false,
            on_store_down: OnStoreDown::Run,
        }),
        prefetch: 100,
        concurrency: Some(10),
        timeout: secs(29 * 60),
        on_timeout: FaultRule::Fatal,
        on_panic: FaultRule::Fatal,
        ..default_spec("every_key", "all")
    };
    assert_eq!(<every_key as Consumer>::SPEC, expected);
}

#[consumer(queue = "scheduled", dlq = "d", retry(schedule = ["0s", "1s", "1m"]), idempotent = "memory")]
async fn scheduled(_order: Order) {}

#[consumer(queue = "repeated", dlq = "d", retry(schedule = ["1s"], max = 10, jitter = 1))]
async fn repeated(_order: Order) {}

#[test]
fn schedules() {
    const DELAYS: &[Duration] = &[Duration::ZERO, secs(1), secs(60)];
    let policy = RetryPolicy { max: 3, backoff: Backoff::Schedule(DELAYS), max_delay: None, jitter: 0.0, within: None };
    assert_eq!(<scheduled as Consumer>::SPEC.retry, Some(policy));
    assert_eq!(<scheduled as Consumer>::SPEC.idempotent, Some(IdempotentSpec::new("memory")));
    let policy = RetryPolicy { max: 10, backoff: Backoff::Schedule(&DELAYS[1..2]), jitter: 1.0, ..policy };
    assert_eq!(<repeated as Consumer>::SPEC.retry, Some(policy));
}

mod letters {
    use super::{Raw, dead_letter_consumer};

    #[dead_letter_consumer(queue = "dlq.order.process.fail", of = super::process_order, prefetch = 4, concurrency = 2, timeout = "1m")]
    pub(super) async fn record(_letter: Raw) {}

    #[dead_letter_consumer(queue = "dlq.other")]
    pub(super) async fn r#type(_letter: Raw) {}
}

#[test]
fn dead_letters_of_a_consumer() {
    let expected = ConsumerSpec {
        module: "macros::letters",
        role: Role::DeadLetters { of: Some(&<process_order as Consumer>::SPEC) },
        prefetch: 4,
        concurrency: Some(2),
        timeout: secs(60),
        ..default_spec("record", "dlq.order.process.fail")
    };
    assert_eq!(<letters::record as Consumer>::SPEC, expected);
    let expected =
        ConsumerSpec { module: "macros::letters", role: Role::DeadLetters { of: None }, ..default_spec("type", "dlq.other") };
    assert_eq!(<letters::r#type as Consumer>::SPEC, expected);
}

#[consumer(queue = "q", idempotent(store = "memory", key = "customer"))]
async fn by_customer(_order: Order) {}

#[test]
fn business_keys() {
    let order = |customer: Option<&str>| Order { order_id: 7, customer: customer.map(ToOwned::to_owned) };
    assert_eq!(process_order::business_key(&order(None)), Some("7".to_owned()));
    assert_eq!(by_customer::business_key(&order(Some("ada"))), Some("ada".to_owned()));
    assert_eq!(by_customer::business_key(&order(Some("  "))), None);
    assert_eq!(by_customer::business_key(&order(None)), None);
    assert_eq!(every_key::business_key(&order(Some("ada"))), Some("ada".to_owned()));
    assert_eq!(minimal::business_key(&order(Some("ada"))), None);
}

struct Tenant;

impl Extract for Tenant {
    async fn extract(_cx: &Context) -> Result<Self, Failure> {
        Ok(Self)
    }

    fn check(_states: &States) -> Result<(), MissingState> {
        Err(MissingState::State("the tenant"))
    }
}

#[consumer(queue = "q")]
async fn with_state(_order: Order, _cx: Context, State(_number): State<u8>, _tenant: Tenant) {}

#[consumer(queue = "q")]
async fn with_tenant(_order: Order, _attempt: Attempt, _headers: Headers, _tenant: Tenant) {}

#[test]
fn what_a_function_takes_is_asked_for_before_the_start() {
    let states = States::default();
    assert_eq!(with_state::missing(&states), [MissingState::State("u8"), MissingState::State("the tenant")]);
    assert_eq!(with_tenant::missing(&states), [MissingState::State("the tenant")]);
    assert_eq!(minimal::missing(&states), []);
}

#[tokio::test]
async fn the_function_is_still_a_function() {
    let order = Order { order_id: 7, customer: None };
    assert!(process_order(order).await.is_err());
}
