use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::Notify;
use tokio::time::Instant;

use super::clock::Clock;
use super::death::{Death, bury, is_cycle};
use super::queue::{Entry, QueueState};
use super::routing::routes;
use crate::broker::contract::{Address, BrokerError, ConsumeRequest, Mismatch, PublishError, Settlement};
use crate::broker::message::Message;
use crate::broker::topology::{Binding, DeclareMode, Exchange, ExchangeKind, Queue, QueueType, Topology};

/// Everything that the broker holds.
pub(super) struct State {
    exchanges: BTreeMap<String, ExchangeState>,
    queues: BTreeMap<String, QueueState>,
    subscriptions: BTreeMap<u64, SubscriptionState>,
    next_id: u64,
    next_tag: u64,
    pub(super) available: bool,
    pub(super) expiry_watched: bool,
    clock: Clock,
}

struct ExchangeState {
    kind: ExchangeKind,
    bindings: Vec<(String, String)>,
}

struct SubscriptionState {
    /// Whose it is.
    connection: u64,
    queue: String,
    prefetch: usize,
    intake: bool,
    unsettled: BTreeMap<u64, Entry>,
    wake: Arc<Notify>,
}

/// What a subscription finds when it asks for a message.
pub(super) enum Taken {
    Entry(u64, Box<Entry>),
    Nothing,
    Ended,
}

impl State {
    pub(super) fn new(clock: Clock) -> Self {
        Self {
            exchanges: BTreeMap::new(),
            queues: BTreeMap::new(),
            subscriptions: BTreeMap::new(),
            next_id: 0,
            next_tag: 1,
            available: true,
            expiry_watched: false,
            clock,
        }
    }

    pub(super) fn queue(&self, name: &str) -> Option<&QueueState> {
        self.queues.get(name)
    }

    pub(super) fn queue_names(&self) -> Vec<String> {
        self.queues.keys().cloned().collect()
    }

    pub(super) fn unsettled(&self, queue: &str) -> usize {
        self.subscriptions.values().filter(|sub| sub.queue == queue).map(|sub| sub.unsettled.len()).sum()
    }

    pub(super) fn reachable(&self) -> Result<(), BrokerError> {
        if self.available { Ok(()) } else { Err(BrokerError::Unavailable("the embedded broker was made unavailable".into())) }
    }

    pub(super) fn declare(&mut self, topology: &Topology, mode: DeclareMode, now: Instant) -> Result<(), BrokerError> {
        self.reachable()?;
        match mode {
            DeclareMode::Skip => return Ok(()),
            DeclareMode::Verify => return self.verify(topology),
            DeclareMode::Declare => {}
        }
        topology.exchanges.iter().try_for_each(|exchange| self.declare_exchange(exchange))?;
        topology.queues.iter().try_for_each(|queue| self.declare_queue(queue, now))?;
        topology.bindings.iter().try_for_each(|binding| self.bind(binding))?;
        self.retry_stranded(now);
        Ok(())
    }

    fn verify(&self, topology: &Topology) -> Result<(), BrokerError> {
        if let Some(exchange) = topology.exchanges.iter().find(|exchange| !self.exchanges.contains_key(&exchange.name)) {
            return Err(BrokerError::Missing { what: "exchange", name: exchange.name.clone() });
        }
        match topology.queues.iter().find(|queue| !self.queues.contains_key(&queue.name)) {
            Some(queue) => Err(BrokerError::Missing { what: "queue", name: queue.name.clone() }),
            None => Ok(()),
        }
    }

    fn declare_exchange(&mut self, exchange: &Exchange) -> Result<(), BrokerError> {
        let state = self
            .exchanges
            .entry(exchange.name.clone())
            .or_insert_with(|| ExchangeState { kind: exchange.kind, bindings: Vec::new() });
        if state.kind == exchange.kind {
            return Ok(());
        }
        let name = |kind| format!("{kind:?}").to_lowercase();
        Err(BrokerError::Mismatch(Mismatch {
            what: "exchange",
            name: exchange.name.clone(),
            argument: "type".into(),
            declared: name(exchange.kind),
            actual: name(state.kind),
        }))
    }

    fn declare_queue(&mut self, queue: &Queue, now: Instant) -> Result<(), BrokerError> {
        let Some(state) = self.queues.get_mut(&queue.name) else {
            self.queues.insert(queue.name.clone(), QueueState::new(queue.clone(), now));
            return Ok(());
        };
        let difference =
            arguments(queue).into_iter().zip(arguments(&state.declared)).find(|(declared, actual)| declared != actual);
        let Some(((argument, declared), (_, actual))) = difference else {
            state.redeclared(now);
            return Ok(());
        };
        Err(BrokerError::Mismatch(Mismatch {
            what: "queue",
            name: queue.name.clone(),
            argument: argument.into(),
            declared,
            actual,
        }))
    }

    fn bind(&mut self, binding: &Binding) -> Result<(), BrokerError> {
        if !self.queues.contains_key(&binding.queue) {
            return Err(BrokerError::Missing { what: "queue", name: binding.queue.clone() });
        }
        let Some(exchange) = self.exchanges.get_mut(&binding.exchange) else {
            return Err(BrokerError::Missing { what: "exchange", name: binding.exchange.clone() });
        };
        let pair = (binding.routing_key.clone(), binding.queue.clone());
        if !exchange.bindings.contains(&pair) {
            exchange.bindings.push(pair);
        }
        Ok(())
    }

    pub(super) fn publish(&mut self, address: &Address, message: &Message, now: Instant) -> Result<(), PublishError> {
        if let Err(error) = self.reachable() {
            return Err(PublishError::Unavailable { address: address.clone(), reason: error.to_string() });
        }
        let expiration = message.properties.expiration.as_deref();
        if let Some(expiration) = expiration.filter(|text| text.parse::<u64>().is_err()) {
            let reason = format!("`expiration` is `{expiration}`, not a whole number of milliseconds");
            return Err(PublishError::Refused { address: address.clone(), reason });
        }
        let targets = self.targets(&address.exchange, &address.routing_key);
        if targets.is_empty() {
            return Err(PublishError::Unroutable(address.clone()));
        }
        let mut message = message.clone();
        message.properties.delivery_mode.get_or_insert(2);
        for target in targets {
            self.enqueue(&target, message.clone(), &address.exchange, &address.routing_key, Vec::new(), now);
        }
        Ok(())
    }

    /// The queues that a message goes to, each once.
    fn targets(&self, exchange: &str, routing_key: &str) -> Vec<String> {
        if exchange.is_empty() {
            return self.queues.contains_key(routing_key).then(|| routing_key.to_owned()).into_iter().collect();
        }
        let Some(exchange) = self.exchanges.get(exchange) else { return Vec::new() };
        let matching = exchange.bindings.iter().filter(|(pattern, _)| routes(exchange.kind, pattern, routing_key));
        let mut queues: Vec<String> = matching.map(|(_, queue)| queue.clone()).collect();
        queues.sort();
        queues.dedup();
        queues
    }

    fn enqueue(&mut self, queue: &str, message: Message, exchange: &str, key: &str, deaths: Vec<Death>, now: Instant) {
        if let Some(queue) = self.queues.get_mut(queue) {
            queue.push(message, exchange, key, deaths, now);
        }
    }

    pub(super) fn subscribe(&mut self, connection: u64, request: &ConsumeRequest) -> Result<(u64, Arc<Notify>), BrokerError> {
        self.reachable()?;
        let Some(queue) = self.queues.get_mut(&request.queue) else {
            return Err(BrokerError::Missing { what: "queue", name: request.queue.clone() });
        };
        queue.consumers += 1;
        let wake = Arc::clone(&queue.wake);
        let subscription = SubscriptionState {
            connection,
            queue: request.queue.clone(),
            prefetch: request.prefetch.max(1).into(),
            intake: true,
            unsettled: BTreeMap::new(),
            wake: Arc::clone(&wake),
        };
        self.next_id += 1;
        self.subscriptions.insert(self.next_id, subscription);
        Ok((self.next_id, wake))
    }

    pub(super) fn is_subscribed(&self, id: u64) -> bool {
        self.subscriptions.contains_key(&id)
    }

    /// Takes the next message for a subscription. The entry stays here until it is settled; what is returned is a view of it.
    pub(super) fn take(&mut self, id: u64, now: Instant) -> Taken {
        let Some(subscription) = self.subscriptions.get(&id).filter(|subscription| subscription.intake) else {
            return Taken::Ended;
        };
        if subscription.unsettled.len() >= subscription.prefetch {
            return Taken::Nothing;
        }
        let name = subscription.queue.clone();
        self.expire_messages(&name, now);
        let Some(entry) = self.queues.get_mut(&name).and_then(|queue| queue.ready.pop_front()) else { return Taken::Nothing };
        let tag = self.next_tag;
        self.next_tag += 1;
        let view = entry.view();
        if let Some(subscription) = self.subscriptions.get_mut(&id) {
            subscription.unsettled.insert(tag, entry);
        }
        Taken::Entry(tag, Box::new(view))
    }

    pub(super) fn settle(&mut self, id: u64, tag: u64, settlement: Settlement, now: Instant) {
        let Some(subscription) = self.subscriptions.get_mut(&id) else { return };
        let Some(entry) = subscription.unsettled.remove(&tag) else { return };
        let queue = subscription.queue.clone();
        subscription.wake.notify_waiters();
        match settlement {
            Settlement::Ack => {}
            Settlement::Return => self.put_back(&queue, entry),
            Settlement::Reject => self.count_failure(&queue, entry, now),
        }
    }

    fn put_back(&mut self, queue: &str, entry: Entry) {
        if let Some(queue) = self.queues.get_mut(queue) {
            queue.put_back(entry);
        }
    }

    fn count_failure(&mut self, queue: &str, mut entry: Entry, now: Instant) {
        let Some(state) = self.queues.get_mut(queue) else { return };
        entry.failures += 1;
        let limit = state.declared.delivery_limit.filter(|_| state.declared.queue_type == QueueType::Quorum);
        match limit {
            Some(limit) if entry.failures > limit => self.dead_letter(queue, entry, "delivery_limit", now),
            _ => state.put_back(entry),
        }
    }

    pub(super) fn stop_intake(&mut self, id: u64) {
        if let Some(subscription) = self.subscriptions.get_mut(&id) {
            subscription.intake = false;
            subscription.wake.notify_waiters();
        }
    }

    /// Ends a subscription; what is unsettled goes back and counts as failed, as a closed channel does.
    pub(super) fn end(&mut self, id: u64, now: Instant) {
        let Some(subscription) = self.subscriptions.remove(&id) else { return };
        if let Some(queue) = self.queues.get_mut(&subscription.queue) {
            queue.unsubscribed(now);
        }
        for entry in subscription.unsettled.into_values().rev() {
            self.count_failure(&subscription.queue, entry, now);
        }
        subscription.wake.notify_waiters();
    }

    pub(super) fn end_all(&mut self) {
        self.end_those(|_| true);
    }

    pub(super) fn connect(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }

    pub(super) fn end_connection(&mut self, connection: u64) {
        self.end_those(|subscription| subscription.connection == connection);
    }

    fn end_those(&mut self, which: impl Fn(&SubscriptionState) -> bool) {
        let ids: Vec<u64> =
            self.subscriptions.iter().filter(|(_, subscription)| which(subscription)).map(|(id, _)| *id).collect();
        ids.into_iter().for_each(|id| self.end(id, Instant::now()));
    }

    pub(super) fn delete_queue(&mut self, name: &str) {
        if self.queues.remove(name).is_none() {
            return;
        }
        self.exchanges.values_mut().for_each(|exchange| exchange.bindings.retain(|(_, queue)| queue != name));
        self.end_those(|subscription| subscription.queue == name);
    }

    fn dead_letter(&mut self, queue: &str, entry: Entry, reason: &'static str, now: Instant) {
        let Some(state) = self.queues.get(queue) else { return };
        let Some(target) = state.declared.dead_letters.clone() else { return };
        let at_least_once = state.declared.queue_type == QueueType::Quorum;
        let queues = self.targets(&target.exchange, &target.routing_key);
        if queues.is_empty() {
            if at_least_once && let Some(state) = self.queues.get_mut(queue) {
                state.stranded.push((entry, reason));
            }
            return;
        }
        let (message, deaths) = bury(entry, queue, reason, self.clock.at(now));
        for to in queues.into_iter().filter(|to| !is_cycle(&deaths, to)) {
            self.enqueue(&to, message.clone(), &target.exchange, &target.routing_key, deaths.clone(), now);
        }
    }

    fn retry_stranded(&mut self, now: Instant) {
        let names = self.queue_names();
        for name in names {
            let stranded = self.queues.get_mut(&name).map(|queue| std::mem::take(&mut queue.stranded)).unwrap_or_default();
            stranded.into_iter().for_each(|(entry, reason)| self.dead_letter(&name, entry, reason, now));
        }
    }

    fn expire_messages(&mut self, queue: &str, now: Instant) {
        while let Some(entry) = self.queues.get_mut(queue).and_then(|queue| queue.pop_expired(now)) {
            self.dead_letter(queue, entry, "expired", now);
        }
    }

    /// Expires what is due and says when the next is. A queue that expires takes its messages with it.
    pub(super) fn expire(&mut self, now: Instant) -> Option<Instant> {
        for name in self.queue_names() {
            self.expire_messages(&name, now);
            if self.queues.get(&name).is_some_and(|queue| queue.is_expired(now)) {
                self.delete_queue(&name);
            }
        }
        self.queues.values().filter_map(QueueState::next_expiry).min()
    }
}

/// The arguments of a queue as RabbitMQ names and prints them, in one fixed order.
fn arguments(queue: &Queue) -> [(&'static str, String); 6] {
    let none = || "none".to_owned();
    let millis = |duration: std::time::Duration| duration.as_millis().to_string();
    let target = queue.dead_letters.as_ref();
    [
        ("x-queue-type", format!("{:?}", queue.queue_type).to_lowercase()),
        ("x-message-ttl", queue.message_ttl.map_or_else(none, millis)),
        ("x-expires", queue.expires.map_or_else(none, millis)),
        ("x-dead-letter-exchange", target.map_or_else(none, |target| target.exchange.clone())),
        ("x-dead-letter-routing-key", target.map_or_else(none, |target| target.routing_key.clone())),
        ("x-delivery-limit", queue.delivery_limit.map_or_else(none, |limit| limit.to_string())),
    ]
}
