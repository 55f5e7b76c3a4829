//! What can be known to be wrong before anything is connected. All mistakes are told at once.

use std::collections::BTreeMap;

use super::builder::{Guard, Registered};
use super::error::{ConfigError, Error, Result};
use super::stores::NoStore;
use crate::consumer::Role;
use crate::idempotency::Database;

/// What a guard needs to run.
pub(super) fn to_run(guard: &Guard) -> Result<()> {
    told(guard, |registered| {
        let mut mistakes = states(guard, registered);
        mistakes.extend(store(guard, registered));
        mistakes.extend(queues(registered));
        mistakes
    })
}

/// What it needs to declare its queues: neither stores nor state.
pub(super) fn to_declare(guard: &Guard) -> Result<()> {
    told(guard, |registered| queues(registered).into_iter().collect())
}

fn told(guard: &Guard, of_each: impl Fn(&Registered) -> Vec<String>) -> Result<()> {
    let mut mistakes = guard.mistakes.clone();
    if guard.consumers.is_empty() {
        mistakes.push(ConfigError("no consumer is registered: add `.consumer::<your_function>()`".into()));
    }
    shared_queues(guard, &mut mistakes);
    for registered in &guard.consumers {
        let consumer = format!("consumer `{}` (queue `{}`)", registered.spec.name, registered.spec.queue);
        mistakes.extend(of_each(registered).into_iter().map(|mistake| ConfigError(format!("{consumer}: {mistake}"))));
    }
    if mistakes.is_empty() { Ok(()) } else { Err(Error::Config(mistakes)) }
}

/// Two consumers on one queue would each get some of the messages.
fn shared_queues(guard: &Guard, mistakes: &mut Vec<ConfigError>) {
    let mut by_queue: BTreeMap<&str, Vec<&Registered>> = BTreeMap::new();
    for registered in &guard.consumers {
        by_queue.entry(registered.spec.queue).or_default().push(registered);
    }
    for (queue, sharing) in by_queue.iter().filter(|(_, sharing)| sharing.len() > 1) {
        let names: Vec<String> = sharing.iter().map(|registered| format!("`{}`", registered.spec.name)).collect();
        let mistake = if sharing.iter().all(|registered| registered.spec == sharing[0].spec) {
            format!("the consumer {} is registered {} times", names[0], sharing.len())
        } else {
            let names = names.join(" and ");
            format!(
                "{names} consume the same queue `{queue}`: each message would reach only one of them; give each a queue of its own"
            )
        };
        mistakes.push(ConfigError(mistake));
    }
}

fn store(guard: &Guard, registered: &Registered) -> Option<String> {
    let spec = registered.spec.idempotent?;
    let name = spec.store;
    let missing = match guard.stores.find(&spec) {
        Ok(store) if spec.transactional && store.transactions().is_none() => {
            return Some(format!(
                "it is `transactional`, but the store `{name}` has no transactions: it takes a database (mysql, postgres or sqlite); call \
                 `.store_url(\"postgres://...\")` on the guard"
            ));
        }
        found => found.err()?,
    };
    match missing {
        NoStore::Unknown => {
            let variable = format!("MQGUARD_{}", name.to_uppercase());
            Some(format!(
                "the store `{name}` is not configured: set {variable}, or call `.store_url(\"{name}://...\")` on the guard"
            ))
        }
        NoStore::Mode => Some(format!(
            "the store `{name}` has no state machine: use mysql, postgres, sqlite or memory, which have one (Redis has not), or remove \
             `mode = \"state_machine\"`"
        )),
    }
}

fn states(guard: &Guard, registered: &Registered) -> Vec<String> {
    let transactional = registered.spec.idempotent.filter(|spec| spec.transactional);
    let store = transactional.and_then(|spec| guard.stores.find(&spec).ok());
    let transactions = store.and_then(|store| store.transactions());
    let database = transactions.map_or_else(Database::unknown, |transactions| transactions.database());
    let states = guard.states.with_database(transactional.map(|_| database));
    registered.handler.missing(&states).iter().map(ToString::to_string).collect()
}

fn queues(registered: &Registered) -> Option<String> {
    let spec = registered.spec;
    match spec.role {
        Role::Business if spec.dead_letter_place().queue == spec.queue => {
            Some("the dead-letter queue is the queue itself: dead letters would be consumed again without end".into())
        }
        Role::DeadLetters { of: Some(of) } if of.dead_letter_place().queue != spec.queue => {
            let place = of.dead_letter_place().queue;
            Some(format!("the dead letters of `{}` go to `{place}`: write `queue = \"{place}\"`", of.name))
        }
        _ => None,
    }
}
