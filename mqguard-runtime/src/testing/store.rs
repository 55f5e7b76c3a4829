use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;

use super::fault::Fault;
use super::process::Process;
use super::step::StepKind;
use super::world::World;
use crate::idempotency::{Claim, ClaimRequest, Hold, Settled, Step, Store, StoreError};

/// A process's way to the records: counts each step, and lets go wrong what is planned.
pub(super) struct ProcessStore {
    pub(super) inner: Arc<dyn Store>,
    pub(super) world: Arc<World>,
    pub(super) process: Arc<Process>,
}

impl ProcessStore {
    async fn call<T: fmt::Debug>(
        &self,
        kind: StepKind,
        what: String,
        apply: impl Future<Output = Result<T, StoreError>> + Send,
    ) -> Result<T, StoreError> {
        if self.process.is_dead() {
            return Err(away("the process is dead"));
        }
        if kind == StepKind::Renew && self.process.is_frozen() {
            self.world.note(&self.process, format!("{what}: cut off"));
            return Err(away("cut off"));
        }
        let begun = self.world.begin(&self.process, kind, what);
        match begun.fault {
            Some(Fault::CrashBefore) => self.world.kill(&self.process),
            Some(Fault::ConnectionLostBefore) => self.process.cut(),
            Some(Fault::RequestLost) => return Err(away("the request was lost")),
            Some(Fault::LeaseLapsedBefore) => self.outlast_the_lease().await,
            _ => {}
        }
        if self.process.is_dead() {
            return Err(away("the process is dead"));
        }
        let answer = apply.await;
        self.world.end(begun, format!("{answer:?}"));
        match begun.fault {
            Some(Fault::CrashAfter) => self.world.kill(&self.process),
            Some(Fault::ConnectionLostAfter) => self.process.cut(),
            Some(Fault::AnswerLost) => return Err(away("the answer was lost")),
            Some(Fault::LeaseLapsedAfter) => self.outlast_the_lease().await,
            _ => {}
        }
        if self.process.is_dead() { Err(away("the process is dead")) } else { answer }
    }

    async fn outlast_the_lease(&self) {
        let _frozen = self.process.freeze();
        tokio::select! {
            () = self.process.died() => {}
            () = tokio::time::sleep(self.world.lease().mul_f64(1.5)) => {}
        }
    }
}

fn away(why: &str) -> StoreError {
    StoreError::Unavailable(why.into())
}

#[async_trait]
impl Store for ProcessStore {
    async fn claim(&self, request: &ClaimRequest) -> Result<Claim, StoreError> {
        let turn = request.turn;
        let what = format!("claim of {}, turn {}.{}", request.identity, turn.generation, turn.step);
        let apply = async {
            let answer = self.inner.claim(request).await?;
            self.world.book().witness.claimed(request, &answer);
            Ok(answer)
        };
        self.call(StepKind::Claim, what, apply).await
    }

    async fn settle(&self, hold: &Hold, step: &Step) -> Result<Settled, StoreError> {
        let kind = StepKind::from(step);
        let apply = async {
            let answer = self.inner.settle(hold, step).await?;
            self.world.book().witness.settled(hold, step, answer);
            Ok(answer)
        };
        self.call(kind, format!("{} of {}", format!("{kind:?}").to_lowercase(), hold.identity), apply).await
    }

    async fn ping(&self) -> Result<(), StoreError> {
        self.call(StepKind::Ping, "ping of the store".into(), self.inner.ping()).await
    }

    async fn warnings(&self) -> Result<Vec<String>, StoreError> {
        self.inner.warnings().await
    }

    fn is_volatile(&self) -> bool {
        self.inner.is_volatile()
    }

    fn state_machine(&self) -> Option<Arc<dyn Store>> {
        let inner = self.inner.state_machine()?;
        Some(Arc::new(Self { inner, world: Arc::clone(&self.world), process: Arc::clone(&self.process) }))
    }
}

impl fmt::Debug for ProcessStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProcessStore").field("inner", &self.inner).finish_non_exhaustive()
    }
}
