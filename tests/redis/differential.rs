//! The scripts against the functions they mirror.

use std::collections::HashMap;
use std::time::Duration;

use mqguard::idempotency::protocol::State;
use mqguard::idempotency::{Claim, ClaimRequest, Hold, Identity, MemoryStore, Owner, Step, Store, Turn};

use crate::server::Server;
use crate::{DAY, key, request, store};

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

#[tokio::test]
#[ignore = "needs Redis: cargo xtask test"]
async fn random_sequences_are_answered_as_by_the_memory_store() {
    let server = Server::start();
    let (redis, memory) = (store(&server.url()), MemoryStore::new());
    let mut client = server.client();
    let mut answers = HashMap::new();
    for seed in 1..=400u64 {
        let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let message = request(&seed.to_string());
        let mut trace = Vec::new();
        for _ in 0..30 {
            let identity: Identity = message.identity.clone();
            let owner = dice.owner();
            let (one, other) = if dice.below(2) == 0 {
                let (turn, lease) = (dice.turn(), dice.lease());
                let max_crashes = u32::try_from(dice.below(3)).expect("small");
                let claim = ClaimRequest { identity, turn, owner, lease, ttl: DAY, max_crashes };
                trace.push(format!("{claim:?}"));
                let [one, other] = [redis.claim(&claim).await, memory.claim(&claim).await]
                    .map(|answer| without_time(answer.expect("an answer")));
                (format!("{one:?}"), format!("{other:?}"))
            } else {
                let (hold, step) = (Hold { identity, owner, ttl: DAY }, dice.step());
                trace.push(format!("{owner} {step:?}"));
                let [one, other] = [redis.settle(&hold, &step).await, memory.settle(&hold, &step).await];
                (format!("{step:?}: {one:?}"), format!("{step:?}: {other:?}"))
            };
            *answers.entry(other.split([' ', '{', '(']).next().unwrap_or_default().to_owned()).or_insert(0) += 1;
            assert_eq!(one, other, "seed {seed}: {trace:#?}");
        }
        let fields = client.run(&format!("HGETALL {}", key(&message))).list();
        let fields: HashMap<_, _> = fields.chunks_exact(2).map(|pair| (pair[0].as_str(), pair[1].as_str())).collect();
        let record = memory.record(&message.identity).expect("somebody claimed it");
        let state = match record.state {
            State::Pending => "pending",
            State::Processing => "processing",
            State::Success => "success",
            State::Failed => "failed",
        };
        let letter = (record.state == State::Failed).then_some(if record.lettered { "out" } else { "owed" });
        assert_eq!(fields["state"], state, "seed {seed}");
        assert_eq!(fields["turn"], format!("{}.{}", record.turn.generation, record.turn.step), "seed {seed}");
        assert_eq!(Some(fields["owner"].to_owned()), record.owner.map(|owner| owner.to_string()), "seed {seed}");
        assert_eq!(fields["crashes"], record.crashes.to_string(), "seed {seed}");
        assert_eq!(fields.get("error").copied(), record.error.as_deref(), "seed {seed}");
        assert_eq!(fields.get("letter").copied(), letter, "seed {seed}");
        assert_eq!(fields.contains_key("lease_until"), record.lease_until > 0, "seed {seed}");
    }
    for kind in ["Granted", "Busy", "Stale", "Duplicate", "Letter", "Complete:", "Release", "Condemn", "Lettered:", "Renew"] {
        assert!(answers.get(kind).is_some_and(|&count| count > 100), "{kind} is hardly tested: {answers:?}");
    }
}
