use std::sync::{Arc, Mutex};

use mqguard::MemoryStore;
use mqguard::idempotency::{Claim, ClaimRequest, Hold, Identity, Mode, Settled, Step, Store, StoreError, protocol::Record};
use tokio::sync::watch;
use tokio::time::Instant;

/// A memory store that can be away, slow, forgetful or damaged. Clones are one client of it; [`FaultyStore::beside`] makes another
/// client of the same records.
#[derive(Debug, Clone, Default)]
pub struct FaultyStore {
    records: Arc<MemoryStore>,
    client: Arc<Client>,
}

#[derive(Debug, Default)]
struct Client {
    frozen: watch::Sender<bool>,
    down: Mutex<Option<Down>>,
    planned: Mutex<Vec<(Op, Fault)>>,
    damaged: Mutex<Vec<String>>,
    calls: Mutex<Vec<(Op, Instant)>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Down {
    Wholly,
    /// Only `ping` is answered, as by a server that refuses writes.
    ButPings,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    Claim,
    Complete,
    Release,
    Condemn,
    Lettered,
    Renew,
    Ping,
}

/// What happens to one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It never arrives.
    RequestLost,
    /// It is applied, the answer never comes back.
    AnswerLost,
    /// The store does not let the client in.
    Refused,
}

impl FaultyStore {
    /// Another client of the same records.
    pub fn beside(&self) -> Self {
        Self { records: Arc::clone(&self.records), client: Arc::default() }
    }

    /// This client, of the records of this mode.
    pub fn in_mode(&self, mode: Mode) -> Self {
        Self { records: Arc::new(self.records.in_mode(mode)), client: Arc::clone(&self.client) }
    }

    /// The records themselves.
    pub fn records(&self) -> &MemoryStore {
        &self.records
    }

    /// The record of a message that is identified by its id alone.
    pub fn record(&self, queue: &str, id: &str) -> Option<Record> {
        self.records.record(&identity(queue, "", id))
    }

    pub fn set_down(&self, down: bool) {
        *self.client.down.lock().unwrap() = down.then_some(Down::Wholly);
    }

    /// Everything fails but `ping`.
    pub fn refuse_writes(&self, refuse: bool) {
        *self.client.down.lock().unwrap() = refuse.then_some(Down::ButPings);
    }

    /// No call gets an answer while the store is frozen.
    pub fn freeze(&self, frozen: bool) {
        self.client.frozen.send_replace(frozen);
    }

    /// The next `times` calls of this kind go wrong.
    pub fn plan(&self, op: Op, fault: Fault, times: usize) {
        self.client.planned.lock().unwrap().extend(std::iter::repeat_n((op, fault), times));
    }

    /// Whether all that was planned has happened.
    pub fn is_through(&self) -> bool {
        self.client.planned.lock().unwrap().is_empty()
    }

    /// The record of this message id cannot be used from now on.
    pub fn damage(&self, id: &str) {
        self.client.damaged.lock().unwrap().push(id.to_owned());
    }

    pub fn calls(&self, op: Op) -> usize {
        self.client.calls.lock().unwrap().iter().filter(|(called, _)| *called == op).count()
    }

    async fn call<T>(
        &self,
        op: Op,
        message_id: &str,
        apply: impl AsyncFnOnce(&MemoryStore) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.client.calls.lock().unwrap().push((op, Instant::now()));
        self.client.frozen.subscribe().wait_for(|frozen| !frozen).await.map(drop).unwrap();
        let down = *self.client.down.lock().unwrap();
        if down == Some(Down::Wholly) || (down == Some(Down::ButPings) && op != Op::Ping) {
            return Err(StoreError::Unavailable("connection refused".into()));
        }
        if self.client.damaged.lock().unwrap().iter().any(|id| id == message_id) {
            return Err(unusable(message_id));
        }
        let planned = {
            let mut planned = self.client.planned.lock().unwrap();
            planned.iter().position(|(planned, _)| *planned == op).map(|at| planned.remove(at).1)
        };
        match planned {
            None => apply(&self.records).await,
            Some(Fault::Refused) => Err(StoreError::Refused("WRONGPASS invalid password".into())),
            Some(Fault::RequestLost) => Err(StoreError::Unavailable("connection reset".into())),
            Some(Fault::AnswerLost) => {
                apply(&self.records).await?;
                Err(StoreError::Unavailable("no answer within 5s".into()))
            }
        }
    }
}

fn unusable(id: &str) -> StoreError {
    StoreError::Unusable { key: format!("mq:dedup:{id}"), reason: "it is a list".into() }
}

/// An identity as the ledger makes it.
pub fn identity(queue: &str, business_key: &str, message_id: &str) -> Identity {
    Identity::new(queue.to_owned(), business_key, message_id)
}

#[async_trait::async_trait]
impl Store for FaultyStore {
    async fn claim(&self, request: &ClaimRequest) -> Result<Claim, StoreError> {
        self.call(Op::Claim, request.identity.message_id(), async |records| records.claim(request).await).await
    }

    async fn settle(&self, hold: &Hold, step: &Step) -> Result<Settled, StoreError> {
        let op = match step {
            Step::Complete => Op::Complete,
            Step::Release { .. } => Op::Release,
            Step::Condemn { .. } => Op::Condemn,
            Step::Lettered => Op::Lettered,
            Step::Renew { .. } => Op::Renew,
        };
        self.call(op, hold.identity.message_id(), async |records| records.settle(hold, step).await).await
    }

    async fn ping(&self) -> Result<(), StoreError> {
        self.call(Op::Ping, "", async |records| records.ping().await).await
    }

    fn is_volatile(&self) -> bool {
        true
    }

    fn state_machine(&self) -> Option<Arc<dyn Store>> {
        Some(Arc::new(self.in_mode(Mode::StateMachine)))
    }
}
