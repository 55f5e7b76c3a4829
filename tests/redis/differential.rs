//! The scripts against the functions they mirror.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use mqguard::idempotency::protocol::State;
use mqguard::idempotency::{Claim, ClaimRequest, Fingerprint, Hold, Identity, MemoryStore, Owner, RedisStore, Step, Store, Turn};

use crate::server::Server;
use crate::stored::look;
use crate::{DAY, request, store, teach};

/// A small generator of numbers: the same for the same seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }

    fn turn(&mut self) -> Turn {
        let [generation, step] = [3, 3].map(|bound| u32::try_from(self.below(bound)).expect("small"));
        Turn { generation, step }
    }

    fn owner(&mut self) -> Owner {
        Owner(self.below(4).into())
    }

    /// One that has lapsed at once, or one that does not lapse during the test: then the clocks need not agree.
    fn lease(&mut self) -> Duration {
        if self.below(2) == 0 { Duration::ZERO } else { Duration::from_secs(3_600) }
    }

    fn step(&mut self) -> Step {
        match self.below(8) {
            0 => Step::Complete,
            1 | 2 => Step::Release { next: self.turn() },
            3 | 4 => Step::Condemn { error: format!("error {}", self.below(3)), lease: self.lease() },
            5 | 6 => Step::Lettered,
            _ => Step::Renew { lease: self.lease() },
        }
    }
}

fn without_time(claim: Claim) -> Claim {
    match claim {
        Claim::Busy { left } => {
            assert!(left > Duration::ZERO && left <= Duration::from_secs(3_600));
            Claim::Busy { left: Duration::MAX }
        }
        other => other,
    }
}

/// One question to both stores.
#[derive(Debug, Clone)]
enum Question {
    Claim(ClaimRequest),
    Settle(Hold, Step),
}

impl Question {
    fn of(dice: &mut Dice, identity: Identity) -> Self {
        let owner = dice.owner();
        if dice.below(2) == 0 {
            let (turn, lease) = (dice.turn(), dice.lease());
            let max_crashes = u32::try_from(dice.below(3)).expect("small");
            let fingerprint = Fingerprint(dice.below(3));
            Self::Claim(ClaimRequest { identity, turn, fingerprint, owner, lease, ttl: DAY, max_crashes })
        } else {
            Self::Settle(Hold { identity, owner, ttl: DAY }, dice.step())
        }
    }

    async fn ask(&self, store: &dyn Store) -> String {
        match self {
            Self::Claim(claim) => format!("{:?}", without_time(store.claim(claim).await.expect("an answer"))),
            Self::Settle(hold, step) => format!("{step:?}: {:?}", store.settle(hold, step).await),
        }
    }
}

/// Asks all of them in one batch: on a runtime of one thread, what is asked before the next await travels together.
async fn ask_at_once(store: &Arc<RedisStore>, questions: &[Question]) -> Vec<String> {
    let ask = |question: &Question| {
        let (store, question) = (Arc::clone(store), question.clone());
        tokio::spawn(async move { question.ask(&*store).await })
    };
    let asked: Vec<_> = questions.iter().map(ask).collect();
    let mut answers = Vec::new();
    for asked in asked {
        answers.push(asked.await.expect("no panic"));
    }
    answers
}

#[tokio::test]
#[ignore = "needs Redis: cargo xtask test"]
async fn random_sequences_are_answered_as_by_the_memory_store() {
    compare(1).await;
}

#[tokio::test]
#[ignore = "needs Redis: cargo xtask test"]
async fn several_questions_about_one_message_at_once_are_answered_as_if_one_after_the_other() {
    compare(10).await;
}

/// Asks both stores the same, up to so many questions at once.
async fn compare(at_once: u64) {
    let server = Server::start();
    let (redis, memory) = (store(&server.url()), MemoryStore::new());
    teach(&redis).await;
    let mut client = server.client();
    let reads = client.info("stats", "total_reads_processed");
    let (mut answers, mut batches) = (HashMap::new(), 0);
    for seed in 1..=400u64 {
        let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let message = request(&seed.to_string());
        let mut trace = Vec::new();
        while trace.len() < 30 {
            let count = 1 + dice.below(at_once);
            let questions: Vec<_> = (0..count).map(|_| Question::of(&mut dice, message.identity.clone())).collect();
            let got = ask_at_once(&redis, &questions).await;
            batches += 1;
            let mut answered: Vec<_> = questions.iter().zip(got).collect();
            // Who asks at the same time cannot tell in which order it was. The store begins with the steps.
            answered.sort_by_key(|(question, _)| matches!(question, Question::Claim(_)));
            for (question, got) in answered {
                let expected = question.ask(&memory).await;
                trace.push(format!("{question:?}"));
                *answers.entry(expected.split([' ', '{', '(']).next().unwrap_or_default().to_owned()).or_insert(0) += 1;
                assert_eq!(got, expected, "seed {seed}: {trace:#?}");
            }
        }
        let stored = look(&mut client, &message);
        let record = memory.record(&message.identity).expect("somebody claimed it");
        let state = match record.state {
            State::Pending => "pending",
            State::Processing => "processing",
            State::Success => "success",
            State::Failed => "failed",
        };
        let letter = (record.state == State::Failed).then_some(if record.lettered { "out" } else { "owed" });
        assert_eq!(stored.state, state, "seed {seed}");
        assert_eq!(stored.turn, format!("{}.{}", record.turn.generation, record.turn.step), "seed {seed}");
        assert_eq!(Some(stored.owner), record.owner.map(|owner| owner.to_string()), "seed {seed}");
        assert_eq!(stored.crashes, record.crashes.to_string(), "seed {seed}");
        assert_eq!(Some(stored.body), record.fingerprint.map(|body| body.0.to_string()), "seed {seed}");
        assert_eq!(stored.error, record.error, "seed {seed}");
        assert_eq!(stored.letter.as_deref(), letter, "seed {seed}");
        // The memory store's clock began with this test.
        let lease = if record.lease_until >= 3_600_000 { 3_600_000 } else { 0 };
        assert_eq!(stored.lease, lease, "seed {seed}");
        assert!(stored.pttl > 0 && stored.pttl <= stored.kept, "seed {seed}: {} of {}", stored.pttl, stored.kept);
        let days = if letter == Some("owed") { 30 } else { 1 };
        assert_eq!(stored.kept, days * 24 * 3_600_000, "seed {seed}");
        batches += 2;
    }
    for kind in
        ["Granted", "Busy", "Stale", "Duplicate", "Conflict", "Letter", "Complete:", "Release", "Condemn", "Lettered:", "Renew"]
    {
        assert!(answers.get(kind).is_some_and(|&count| count > 100), "{kind} is hardly tested: {answers:?}");
    }
    let reads = client.info("stats", "total_reads_processed") - reads;
    // One for each batch, and another when a claim met a record.
    assert!(reads < 2 * batches, "{batches} batches took {reads} reads");
}
