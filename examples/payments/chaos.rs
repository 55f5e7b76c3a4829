//! Kills the worker in the middle, again and again.

use std::process::Stdio;
use std::time::{Duration, Instant};

use tokio::process::{Child, Command};

use super::bank::{Books, Problem};
use super::consumers;
use super::input::Payment;
use super::worker::{self, LOOK};

/// A worker that has ended nothing for so long has a problem.
const PATIENCE: Duration = Duration::from_secs(30);
/// Twice the lease: then whatever waits for one has come again, and the last duplicates are told.
const SETTLE: Duration = Duration::from_secs(2);

/// The worker as a process of its own, and when it is killed.
pub struct Chaos<'a> {
    pub broker: &'a str,
    pub books: &'a Books,
    /// The options of this program that say what payments there are.
    pub input: Vec<String>,
    pub kills: u32,
    pub seed: u64,
}

impl Chaos<'_> {
    /// Has the payments made by workers of which all but the last are killed.
    pub async fn run(&self, payments: Vec<Payment>) -> Result<(), Problem> {
        let all = payments.len();
        if worker::is_embedded(self.broker) {
            return self.supervise(all).await;
        }
        let guard = consumers::guard(self.broker, self.books)?;
        // The workers have all that they consume before the first of them starts.
        guard.declare().await?;
        let publishing = worker::publish_only(guard, payments);
        tokio::try_join!(publishing, self.supervise(all)).map(drop)
    }

    async fn supervise(&self, all: usize) -> Result<(), Problem> {
        let mut random = fastrand::Rng::with_seed(self.seed);
        for kill in 0..self.kills {
            let mut worker = self.start()?;
            // One kill in each equal part of the work. Of a late one the next may follow at once, while a worker starts.
            let moment = f64::from(kill) + random.f64();
            let ended = (all as f64 * moment / f64::from(self.kills)) as usize;
            if !self.wait_for(&mut worker, ended).await? {
                return end(worker).await;
            }
            tokio::time::sleep(Duration::from_millis(random.u64(0..100))).await;
            // This is SIGKILL.
            worker.kill().await?;
        }
        let mut worker = self.start()?;
        if self.wait_for(&mut worker, all).await? {
            let limit = Instant::now() + PATIENCE;
            // A letter may be there before it is recorded to be out.
            while !self.books.is_settled().await? && Instant::now() < limit {
                tokio::time::sleep(LOOK).await;
            }
            tokio::time::sleep(SETTLE).await;
        }
        end(worker).await
    }

    fn start(&self) -> Result<Child, Problem> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["--broker", self.broker, "--store", self.books.url(), "--worker"]).args(&self.input);
        Ok(command.stdin(Stdio::piped()).stdout(Stdio::null()).kill_on_drop(true).spawn()?)
    }

    /// Waits until so many payments have ended; `false` if they do not, which the audit then tells more of.
    async fn wait_for(&self, worker: &mut Child, enough: usize) -> Result<bool, Problem> {
        let (mut ended, mut since) = (0, Instant::now());
        loop {
            let now = self.books.count_ended().await?;
            if now >= enough {
                return Ok(true);
            }
            if now > ended {
                (ended, since) = (now, Instant::now());
            }
            if let Some(status) = worker.try_wait()? {
                return Err(format!("a worker ended by itself, with {status}").into());
            }
            if since.elapsed() > PATIENCE {
                eprintln!("payments: no payment has ended for {} s, after {ended}", PATIENCE.as_secs());
                return Ok(false);
            }
            tokio::time::sleep(LOOK).await;
        }
    }
}

/// Tells a worker to end, and sees that it does.
async fn end(mut worker: Child) -> Result<(), Problem> {
    drop(worker.stdin.take());
    let status = worker.wait().await?;
    if status.success() { Ok(()) } else { Err(format!("the last worker ended with {status}").into()) }
}
