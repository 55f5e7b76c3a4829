//! The exchanges and queues that a consumer needs.

use super::spec::{ConsumerSpec, DEFAULT_DEAD_LETTER_EXCHANGE, MissingId, Role};
use crate::broker::{Binding, DeadLetterTarget, Exchange, ExchangeKind, Queue, Topology};
use crate::retry::hold;

/// Distinct delays of a policy that get a permanent hold queue; more are placed in on-demand queues.
pub(crate) const MAX_STEPS: usize = 32;

/// Failed deliveries after which the broker dead-letters a message of a quorum queue by itself: a net below the consumer's own limits,
/// and the only one against a message that kills the process when there is no store. It is RabbitMQ 4's default, set so that all
/// versions do the same.
const DELIVERY_LIMIT: u32 = 20;

/// Nothing may drop a dead letter for having been looked at too often.
const LETTER_DELIVERY_LIMIT: u32 = 1_000_000_000;

/// Where the dead letters of a consumer go: the queue, and the exchange that routes to it by its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DeadLetterPlace {
    pub(crate) queue: String,
    pub(crate) exchange: String,
}

impl ConsumerSpec {
    pub(crate) fn dead_letter_place(&self) -> DeadLetterPlace {
        match self.dead_letters {
            Some(place) => DeadLetterPlace { queue: place.queue.to_owned(), exchange: place.exchange.to_owned() },
            None => DeadLetterPlace { queue: format!("dlq.{}", self.queue), exchange: DEFAULT_DEAD_LETTER_EXCHANGE.to_owned() },
        }
    }

    /// Everything that has to be there before the queue is consumed.
    pub(crate) fn topology(&self) -> Topology {
        match self.role {
            Role::Business => self.business_topology(),
            Role::DeadLetters { of: Some(of) } => {
                let mut topology = of.dead_letter_topology();
                topology.queues.push(self.quarantine());
                topology
            }
            Role::DeadLetters { of: None } => {
                Topology { queues: vec![letter_queue(self.queue.into(), self), self.quarantine()], ..Topology::default() }
            }
        }
    }

    fn business_topology(&self) -> Topology {
        let mut topology = self.dead_letter_topology();
        let place = self.dead_letter_place();
        let target = DeadLetterTarget { exchange: place.exchange, routing_key: place.queue };
        topology.queues.push(Queue {
            dead_letters: Some(target),
            delivery_limit: self.limit(DELIVERY_LIMIT),
            ..Queue::new(self.queue, self.queue_type)
        });
        let steps = self.retry.iter().flat_map(|retry| retry.steps(MAX_STEPS));
        topology.queues.extend(steps.map(|delay| hold::permanent(self.queue, self.queue_type, delay)));
        if self.has_quarantine() {
            topology.queues.push(self.quarantine());
        }
        for binding in self.bindings {
            topology.exchanges.push(Exchange { name: binding.exchange.into(), kind: binding.kind });
            topology.bindings.push(Binding {
                queue: self.queue.into(),
                exchange: binding.exchange.into(),
                routing_key: binding.routing_key.into(),
            });
        }
        topology
    }

    /// The dead-letter queue, its exchange and their binding.
    pub(crate) fn dead_letter_topology(&self) -> Topology {
        let place = self.dead_letter_place();
        Topology {
            exchanges: vec![Exchange { name: place.exchange.clone(), kind: ExchangeKind::Direct }],
            queues: vec![letter_queue(place.queue.clone(), self)],
            bindings: vec![Binding { queue: place.queue.clone(), exchange: place.exchange, routing_key: place.queue }],
        }
    }

    /// Whether messages may come without a record that tells how often a process died under them.
    pub(crate) fn has_quarantine(&self) -> bool {
        self.idempotent.is_none_or(|idempotent| idempotent.missing_id == MissingId::Run)
    }

    /// Where messages under which processes died wait for being run alone.
    pub(crate) fn quarantine(&self) -> Queue {
        letter_queue(format!("{}.quarantine", self.queue), self)
    }

    fn limit(&self, limit: u32) -> Option<u32> {
        (self.queue_type == crate::broker::QueueType::Quorum).then_some(limit)
    }
}

fn letter_queue(name: String, spec: &ConsumerSpec) -> Queue {
    Queue { delivery_limit: spec.limit(LETTER_DELIVERY_LIMIT), ..Queue::new(name, spec.queue_type) }
}
