//! The rules between the keys of `#[consumer]` and `#[dead_letter_consumer]`.

use std::time::Duration;

use proc_macro2::Span;

use super::horizon::{LONGEST_DELAY, round_up};
use super::transaction;
use crate::diag::{Place, Sink};
use crate::model::{
    Backoff, Binding, Consumer, DeadLetters, ExchangeKind, Fault, Idempotent, Identity, MissingId, Mode, OnStoreDown, Retry, Role,
};
use crate::parse::consumer::{Args, BindArgs, DlqArgs, IdempotentArgs, MAX_SPAN, RetryArgs};
use crate::parse::duration::{print, print_roughly};
use crate::parse::slot::{Given, Slot};

/// AMQP's limit for names.
const LONGEST_NAME: usize = 255;
/// Leaves room for `.retry.<delay>`, the names of the hold queues.
const LONGEST_NAME_WITH_HOLD_QUEUES: usize = 200;
/// Leaves room for `.quarantine`, and for the hold queues of letters, whose delays are short texts.
const LONGEST_NAME_OF_A_QUEUE: usize = 230;
const DEFAULT_PREFETCH: u32 = 32;
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(300);
const DEFAULT_DELAY: Duration = Duration::from_secs(5);
const DEFAULT_TTL: Duration = Duration::from_secs(24 * 3600);
const DEFAULT_LEASE: Duration = Duration::from_secs(30);

/// Checks what `#[consumer]` says of the function `name`. `None` when something that cannot be left out is missing.
pub(crate) fn consumer(args: &Args, name: &str, attribute: Option<Place>, sink: &mut Sink) -> Option<Consumer> {
    queue_is_there(args, "consumer", name, attribute, sink);
    names(args, sink);
    reachable(args, sink);
    if let (Some(given), false) = (args.retry.get(), args.dlq.is_given())
        && !given.value.misplaced.iter().any(|key| key == "dlq")
    {
        let dlq = format!("dlq = \"dlq.{}\"", args.queue.value().map_or(name, String::as_str));
        sink.error(
            given.key,
            format!("`retry` without `dlq`: say where a message goes when its last attempt has failed, add `{dlq}`"),
        );
    }
    let retry = args.retry.get().and_then(|given| retry(given, sink));
    let idempotent = args.idempotent.get().and_then(|given| idempotent(&given.value, given, sink));
    if let (Some(policy), Some(given)) = (&retry, args.idempotent.get()) {
        ttl_outlives_retries(args, policy, given, sink);
    }
    let bindings = args.bindings.iter().filter_map(|(at, args)| binding(*at, args, sink)).collect();
    Some(Consumer {
        queue: args.queue.value()?.clone(),
        role: Role::Business,
        dead_letters: args.dlq.value().and_then(dead_letters),
        retry,
        idempotent,
        bindings,
        classic: args.queue_type.value().map(|name| *name == "classic"),
        prefetch: args.prefetch.value().copied(),
        concurrency: args.concurrency.value().copied(),
        timeout: args.timeout.value().copied(),
        on_timeout: args.on_timeout.value().map(|rule| fault(rule)),
        on_panic: args.on_panic.value().map(|rule| fault(rule)),
        precheck: args.precheck.value().cloned(),
        classify: args.classify.value().cloned(),
    })
}

/// Checks what `#[dead_letter_consumer]` says.
pub(crate) fn dead_letter_consumer(args: &Args, name: &str, attribute: Option<Place>, sink: &mut Sink) -> Option<Consumer> {
    queue_is_there(args, "dead_letter_consumer", name, attribute, sink);
    if let Some(queue) = args.queue.get()
        && name_is_good(queue, "a queue", sink)
    {
        leaves_room(queue, sink);
    }
    reachable(args, sink);
    Some(Consumer {
        queue: args.queue.value()?.clone(),
        role: Role::DeadLetters(args.of.value().cloned()),
        dead_letters: None,
        retry: None,
        idempotent: None,
        bindings: Vec::new(),
        classic: None,
        prefetch: args.prefetch.value().copied(),
        concurrency: args.concurrency.value().copied(),
        timeout: args.timeout.value().copied(),
        on_timeout: None,
        on_panic: None,
        precheck: None,
        classify: None,
    })
}

fn fault(rule: &str) -> Fault {
    if rule == "fatal" { Fault::Fatal } else { Fault::Retry }
}

fn queue_is_there(args: &Args, attribute: &str, name: &str, at: Option<Place>, sink: &mut Sink) {
    if args.queue.is_given() {
        return;
    }
    let queue = if attribute == "consumer" { name } else { "dlq.order.process" };
    let more = if at.is_some() { ", ..." } else { "" };
    let message = format!("`queue` is missing: write `#[{attribute}(queue = \"{queue}\"{more})]`");
    sink.error(at.unwrap_or_else(|| Span::call_site().into()), message);
}

/// Checks the names of a consumer's queues.
fn names(args: &Args, sink: &mut Sink) {
    queue_name(args, sink);
    let Some(dlq) = args.dlq.value() else { return };
    if let Some(exchange) = dlq.exchange.get() {
        name_is_good(exchange, "a dead-letter exchange", sink);
    }
    let Some(letters) = dlq.queue.get() else { return };
    name_is_good(letters, "a dead-letter queue", sink);
    if args.queue.value() == Some(&letters.value) {
        let queue = &letters.value;
        let why = "a dead letter would be consumed again at once";
        sink.error(letters.at, format!("this is the queue that is consumed, {why}: write `dlq = \"dlq.{queue}\"`"));
    }
}

/// Checks that the queue's name leaves room for those of the queues that are named for it.
fn queue_name(args: &Args, sink: &mut Sink) {
    let Some(queue) = args.queue.get() else { return };
    if !name_is_good(queue, "a queue", sink) {
        return;
    }
    let length = queue.value.len();
    let holds = args.retry.is_given() || args.idempotent.is_given();
    if holds && length > LONGEST_NAME_WITH_HOLD_QUEUES {
        let limit = LONGEST_NAME_WITH_HOLD_QUEUES;
        let why = "the queues that waiting messages are kept in are named for it, `<queue>.retry.<delay>`";
        sink.error(queue.at, format!("this name has {length} bytes, with `retry` or `idempotent` it may have {limit}: {why}"));
    } else {
        leaves_room(queue, sink);
    }
}

fn leaves_room(queue: &Given<String>, sink: &mut Sink) {
    let (length, limit) = (queue.value.len(), LONGEST_NAME_OF_A_QUEUE);
    if length > limit {
        let why = "other queues are named for it, as `<queue>.quarantine`";
        sink.error(queue.at, format!("this name has {length} bytes, it may have {limit}: {why}"));
    }
}

/// Checks the name of something that is declared at the broker.
fn name_is_good(name: &Given<String>, what: &str, sink: &mut Sink) -> bool {
    let (text, limit) = (&name.value, LONGEST_NAME);
    let problem = if text.is_empty() {
        format!("{what} has a name of 1 to {limit} bytes, this one is empty")
    } else if text.len() > limit {
        format!("{what} has a name of 1 to {limit} bytes, this one has {}", text.len())
    } else if let Some(rest) = text.strip_prefix("amq.") {
        format!("names that start with `amq.` belong to the broker: write \"{rest}\"")
    } else {
        return true;
    };
    sink.error(name.at, problem);
    false
}

fn reachable(args: &Args, sink: &mut Sink) {
    let Some(concurrency) = args.concurrency.get() else { return };
    let (prefetch, of) = match args.prefetch.get() {
        Some(prefetch) => (prefetch.value, ""),
        None if args.prefetch.is_given() => return,
        None => (DEFAULT_PREFETCH, " (the default)"),
    };
    if concurrency.value > prefetch {
        let (wanted, text) = (concurrency.value, &concurrency.text);
        let message = format!("`{text}` is never reached: `prefetch` is {prefetch}{of}, more messages are not there at once");
        sink.error(concurrency.at, format!("{message}; write `prefetch = {wanted}` too"));
    }
}

fn dead_letters(args: &DlqArgs) -> Option<DeadLetters> {
    Some(DeadLetters { queue: args.queue.value()?.clone(), exchange: args.exchange.value().cloned() })
}

fn retry(given: &Given<RetryArgs>, sink: &mut Sink) -> Option<Retry> {
    let args = &given.value;
    let backoff = backoff(args, sink)?;
    let max = match (args.max.get(), &backoff) {
        (Some(max), _) => max.value,
        (None, Backoff::Schedule(entries)) if !args.max.is_given() => u32::try_from(entries.len()).ok()?,
        (None, _) => {
            if !args.max.is_given() {
                sink.error(given.key, "`max` is missing: write `retry(max = 3, ...)`");
            }
            return None;
        }
    };
    let retry = Retry {
        max,
        backoff,
        max_delay: args.max_delay.value().copied(),
        jitter: args.jitter.value().copied().unwrap_or(0.0),
        within: args.within.value().copied(),
    };
    delays_are_kept(&retry, given, sink).then_some(retry)
}

fn backoff(args: &RetryArgs, sink: &mut Sink) -> Option<Backoff> {
    if args.schedule.is_given() {
        let other = [(args.delay.get().map(|it| (it.key, &it.text))), args.factor.get().map(|it| (it.key, &it.text))];
        for (key, text) in other.into_iter().chain([args.max_delay.get().map(|it| (it.key, &it.text))]).flatten() {
            sink.error(key, format!("`schedule` names every delay itself: remove `{text}`, or remove `schedule`"));
        }
        return schedule(args, sink);
    }
    if (args.delay.is_given() && args.delay.get().is_none()) || (args.factor.is_given() && args.factor.get().is_none()) {
        return None;
    }
    let delay = args.delay.value().copied().unwrap_or(DEFAULT_DELAY);
    if let Some(max_delay) = args.max_delay.get()
        && max_delay.value < delay
    {
        let (text, delay) = (&max_delay.text, print(delay));
        sink.error(
            max_delay.at,
            format!("`{text}` is shorter than `delay = \"{delay}\"`: write at least `max_delay = \"{delay}\"`"),
        );
    }
    Some(Backoff::Exponential { delay, factor: args.factor.value().copied().unwrap_or(1.0) })
}

fn schedule(args: &RetryArgs, sink: &mut Sink) -> Option<Backoff> {
    let schedule = args.schedule.get()?;
    let entries = schedule.value.len();
    if !(1..=100).contains(&entries) {
        sink.error(schedule.at, format!("a schedule has 1 to 100 delays, this one has {entries}"));
        return None;
    }
    if let Some(max) = args.max.get()
        && usize::try_from(max.value).is_ok_and(|max| max < entries)
    {
        let text = &max.text;
        let message =
            format!("`{text}` leaves out delays of the schedule, which has {entries}: write `max = {entries}`, or more");
        sink.error(max.at, format!("{message} to repeat the last one"));
    }
    Some(Backoff::Schedule(schedule.value.clone()))
}

/// Checks that each delay can be waited for. Returns whether the sum of them means anything.
fn delays_are_kept(retry: &Retry, given: &Given<RetryArgs>, sink: &mut Sink) -> bool {
    let first = match &retry.backoff {
        Backoff::Exponential { delay, .. } => *delay,
        Backoff::Schedule(entries) => entries.first().copied().unwrap_or_default(),
    };
    if let Some(within) = given.value.within.get()
        && within.value < first
    {
        let (text, first) = (&within.text, print(first));
        sink.error(
            within.at,
            format!("`{text}` ends before the first retry, which is due after {first}: nothing would be tried again"),
        );
        return false;
    }
    let Some((n, delay)) = retry.overlong_delay() else { return true };
    if retry.within.is_some_and(|within| within <= LONGEST_DELAY) {
        return true;
    }
    let (delay, most) = (print_roughly(delay), print(LONGEST_DELAY));
    let at = given.value.factor.get().map_or(given.at, |factor| factor.at);
    sink.error(at, format!("retry {n} would wait for {delay}, a queue can hold it for {most}: add `max_delay = \"1h\"`"));
    false
}

fn idempotent(args: &IdempotentArgs, given: &Given<IdempotentArgs>, sink: &mut Sink) -> Option<Idempotent> {
    if !args.store.is_given() {
        sink.error(given.key, "`store` is missing: write `idempotent(store = \"redis\", ...)`");
    }
    if let Some(identity) = args.identity.get()
        && identity.value == "key"
        && !args.key.is_given()
    {
        sink.error(identity.at, "`identity = \"key\"` needs the key: add `key = \"order_id\"`, the field that it is in");
    }
    if let (Some(identity), Some(key)) = (args.identity.get(), args.key.get())
        && identity.value == "message_id"
    {
        let text = &key.text;
        sink.error(identity.at, format!("`identity = \"message_id\"` leaves the key unused: remove it, or remove `{text}`"));
    }
    if let (Some(mode), Some(&"redis")) = (args.mode.get(), args.store.value())
        && mode.value == "state_machine"
    {
        let message = "the state machine is a table, which Redis has not: write `store = \"mysql\"`, \"postgres\" or \"sqlite\"";
        sink.error(mode.at, message);
    }
    let transactional = args.transactional.get().map(|flag| flag.key);
    if let Some(at) = transactional {
        transaction::attribute(at, args, sink);
    }
    Some(Idempotent {
        store: args.store.value().copied()?,
        key: args.key.get().map(|key| (key.value.clone(), key.at)),
        identity: args.identity.value().map(|identity| match *identity {
            "key" => Identity::Key,
            "message_id" => Identity::MessageId,
            _ => Identity::KeyAndMessageId,
        }),
        ttl: args.ttl.value().copied(),
        lease: args.lease.value().copied().or(transactional.map(|_| transaction::LEASE)),
        missing_id: args.missing_id.value().map(|rule| if *rule == "run" { MissingId::Run } else { MissingId::DeadLetter }),
        mode: args.mode.value().map(|mode| if *mode == "unique" { Mode::Unique } else { Mode::StateMachine }),
        transactional,
        on_store_down: args.on_store_down.value().map(|rule| if *rule == "run" { OnStoreDown::Run } else { OnStoreDown::Wait }),
    })
}

/// The value of a key that may be left out; `None` when it is there but not readable.
fn or_default<T: Copy>(slot: &Slot<T>, default: T) -> Option<T> {
    slot.value().copied().or((!slot.is_given()).then_some(default))
}

/// A record that is forgotten while its message still waits for a retry would let a copy run as if it were new.
fn ttl_outlives_retries(args: &Args, policy: &Retry, idempotent: &Given<IdempotentArgs>, sink: &mut Sink) {
    let durations = (
        or_default(&idempotent.value.ttl, DEFAULT_TTL),
        or_default(
            &idempotent.value.lease,
            if idempotent.value.transactional.is_given() { transaction::LEASE } else { DEFAULT_LEASE },
        ),
        or_default(&args.timeout, DEFAULT_TIMEOUT),
    );
    let ((Some(ttl), Some(lease), Some(timeout)), Some(retry)) = (durations, args.retry.get()) else { return };
    let run = timeout + lease;
    let horizon = policy.horizon(run);
    if ttl > horizon {
        return;
    }
    let ttl_at = idempotent.value.ttl.get().map_or(idempotent.key.into(), |ttl| Place::from(ttl.key).to(ttl.at));
    let retry_at = Place::from(retry.key).to(retry.at);
    let at = ttl_at.around(retry_at);
    let default = if idempotent.value.ttl.is_given() { "" } else { " (the default)" };
    let (ttl, needed, waits) = (print(ttl), print_roughly(horizon), print_roughly(policy.longest_wait()));
    let (runs, run) = (policy.max + 1, print_roughly(run));
    let enough = round_up(horizon);
    let less = if policy.within.is_some() { "lower `max`" } else { "bound the retries with `within`" };
    let longer = format!("ttl = \"{}\"", print(enough));
    let line = match idempotent.value.store.value() {
        Some(store) if !idempotent.text.ends_with(')') => format!("idempotent(store = \"{store}\", {longer})"),
        _ => longer,
    };
    let cure = if enough <= MAX_SPAN { format!("write `{line}`, or {less}") } else { less.to_owned() };
    sink.error(
        at,
        format!(
            "`ttl` is {ttl}{default}, but the retries can take {needed}: a message would be forgotten while it is still retried\n\
             {waits} of delays and {runs} runs of up to {run} (`timeout` and `lease`)\n{cure}"
        ),
    );
}

fn binding(at: Span, args: &BindArgs, sink: &mut Sink) -> Option<Binding> {
    let kind = match or_default(&args.kind, "topic") {
        Some("direct") => ExchangeKind::Direct,
        Some("fanout") => ExchangeKind::Fanout,
        Some(_) => ExchangeKind::Topic,
        None => return None,
    };
    if !args.exchange.is_given() {
        sink.error(at, "`exchange` is missing: write `bind(exchange = \"orders\", routing_key = \"order.*\")`");
        return None;
    }
    match (kind, args.routing_key.get()) {
        (ExchangeKind::Fanout, Some(key)) => {
            sink.error(key.key, format!("a fanout exchange sends to every queue and has no routing keys: remove `{}`", key.text));
        }
        (ExchangeKind::Topic, None) if !args.routing_key.is_given() => {
            sink.error(at, "`routing_key` is missing: write `routing_key = \"order.*\"`, or `\"#\"` for every message");
        }
        (ExchangeKind::Direct, None) if !args.routing_key.is_given() => {
            sink.error(at, "`routing_key` is missing: write `routing_key = \"order.created\"`");
        }
        (_, Some(key)) if key.value.len() > LONGEST_NAME => {
            sink.error(key.at, format!("a routing key has up to {LONGEST_NAME} bytes, this one has {}", key.value.len()));
        }
        _ => {}
    }
    let exchange = args.exchange.get()?;
    exchange_is_good(exchange, sink);
    Some(Binding { exchange: exchange.value.clone(), kind, routing_key: args.routing_key.value().cloned().unwrap_or_default() })
}

fn exchange_is_good(exchange: &Given<String>, sink: &mut Sink) {
    match exchange.value.len() {
        1..=LONGEST_NAME => {}
        0 => sink.error(exchange.at, "the default exchange sends to the queue by its name anyway: remove this `bind`"),
        length => sink.error(exchange.at, format!("an exchange has a name of 1 to {LONGEST_NAME} bytes, this one has {length}")),
    }
}
