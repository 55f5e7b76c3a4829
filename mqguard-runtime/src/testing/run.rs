//! One schedule: a new world, and in each place one process after the other until nothing is left to do.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use futures_util::future::try_join_all;
use tokio_util::sync::CancellationToken;

use super::broker::ProcessBroker;
use super::crash_test::CrashTest;
use super::ending::judge;
use super::fault::Schedule;
use super::known::Known;
use super::process::Process;
use super::producer::Producer;
use super::step::TraceLine;
use super::store::ProcessStore;
use super::violation::Invariant;
use super::world::World;
use crate::broker::MemoryBroker;
use crate::event::EventKind;
use crate::guard::{Guard, Running};
use crate::publish::Publisher;

/// What came of a schedule.
pub(super) struct Ran {
    pub(super) steps: usize,
    pub(super) trace: Vec<TraceLine>,
    pub(super) found: Vec<(Invariant, String)>,
}

/// A process that died is followed by the next one after this long.
const RESTART: Duration = Duration::from_millis(500);

/// Jitter is the same in each schedule.
const SEED: u64 = 7;

impl CrashTest<'_> {
    pub(super) async fn run_schedule(&self, schedule: &Schedule) -> Ran {
        (self.reset)();
        fastrand::seed(SEED);
        let queues = MemoryBroker::new();
        let guard = (self.guard)(Guard::with_broker(queues.clone()));
        let known = Known::new(guard.registered());
        let declared = guard.declare().await;
        drop(guard);
        let world = Arc::new(World::new(queues, (self.store)(), known, schedule.clone(), self.processes.max(1)));
        let mut found = Vec::new();
        match declared {
            Err(error) => found.push((Invariant::Running, error.to_string())),
            Ok(()) => {
                let ended = self.drive(&world).await;
                let is_at_rest = ended.is_ok();
                found.extend(ended.err());
                found.extend(self.judge(&world, is_at_rest));
            }
        }
        let trace = std::mem::take(&mut world.book().trace);
        Ran { steps: world.steps(), trace, found }
    }

    fn judge(&self, world: &World, is_at_rest: bool) -> Vec<(Invariant, String)> {
        let faults = world.book().trace.iter().filter(|line| line.fault.is_some()).count();
        let mut found = judge(world, u32::try_from(faults).unwrap_or(u32::MAX), is_at_rest);
        if world.book().published.is_empty() {
            found.push((Invariant::Running, "nothing was published that reaches a consumer".into()));
        }
        // On the way there, it need not hold.
        if is_at_rest && let Err(detail) = (self.check)() {
            found.push((Invariant::Check, detail));
        }
        found
    }

    /// Publishes, and keeps processes running.
    async fn drive(&self, world: &Arc<World>) -> Result<(), (Invariant, String)> {
        let publisher = Publisher::new(Arc::new(Producer(Arc::clone(world))));
        let publish = async {
            if self.processes > 1 {
                // Or the first one had everything before the others are there.
                world.until(World::is_consumed).await;
            }
            (self.publish)(publisher).await;
            world.book().all_is_published = true;
            world.changed.notify_waiters();
            std::future::pending().await
        };
        tokio::select! {
            // What is published at once is there before the first process is.
            biased;
            end = publish => end,
            end = self.run_processes(world) => end,
            () = tokio::time::sleep(self.patience) => {
                let after = humantime::format_duration(self.patience);
                Err((Invariant::AtRest, format!("after {after} {}", world.left_over())))
            }
        }
    }

    async fn run_processes(&self, world: &Arc<World>) -> Result<(), (Invariant, String)> {
        let (started, over) = (AtomicU32::new(0), CancellationToken::new());
        let places = (0..world.places).map(|place| self.keep_running(world, place, &started, &over));
        let rest = async {
            world.at_rest().await;
            over.cancel();
            std::future::pending().await
        };
        tokio::select! {
            biased;
            ended = try_join_all(places) => ended.map(drop),
            end = rest => end,
        }
    }

    /// Runs process after process.
    async fn keep_running(
        &self,
        world: &Arc<World>,
        place: usize,
        started: &AtomicU32,
        over: &CancellationToken,
    ) -> Result<(), (Invariant, String)> {
        loop {
            let connection = world.queues.connect();
            let number = started.fetch_add(1, Ordering::Relaxed) + 1;
            let process = Arc::new(Process::new(number, connection.clone(), (self.broker)(connection)));
            world.started(place, &process);
            let process = Dying { world: Arc::clone(world), process };
            let running = self.start(world, &process.process)?;
            tokio::select! {
                biased;
                () = process.process.died() => drop(running),
                failed = running.failed() => failed.map_err(|error| (Invariant::Running, error.to_string()))?,
                () = over.cancelled() => {
                    drop(process);
                    // A failure would have been told above; this waits until all of it has ended.
                    drop(running.shutdown().await);
                    return Ok(());
                }
            }
            tokio::time::sleep(RESTART).await;
        }
    }

    fn start(&self, world: &Arc<World>, process: &Arc<Process>) -> Result<Running, (Invariant, String)> {
        let broker = ProcessBroker { world: Arc::clone(world), process: Arc::clone(process) };
        let mut guard = (self.guard)(Guard::with_broker(broker));
        guard.wrap_stores(&world.store, |inner| {
            Arc::new(ProcessStore { inner, world: Arc::clone(world), process: Arc::clone(process) })
        });
        let told = Arc::clone(process);
        let guard = guard.observe(move |event| told.tell(name(&event.kind)));
        let (running, stop) = guard.launch_stoppable().map_err(|error| (Invariant::Running, error.to_string()))?;
        process.stop_by(stop);
        Ok(running)
    }
}

/// A process that ends with the schedule, however that ends.
struct Dying {
    world: Arc<World>,
    process: Arc<Process>,
}

impl Drop for Dying {
    fn drop(&mut self) {
        if !self.process.is_dead() {
            self.world.kill(&self.process);
        }
    }
}

/// An event, as a trace tells it.
fn name(kind: &EventKind<'_>) -> &'static str {
    match kind {
        EventKind::Processed { .. } => "processed",
        EventKind::Skipped => "skipped",
        EventKind::Duplicate => "duplicate",
        EventKind::Conflict => "conflict",
        EventKind::Stale => "stale",
        EventKind::Busy { .. } => "busy",
        EventKind::Retried { .. } => "retried",
        EventKind::DeadLettered { .. } => "dead-lettered",
        EventKind::Unguarded { .. } => "unguarded",
        EventKind::Returned => "returned",
    }
}
