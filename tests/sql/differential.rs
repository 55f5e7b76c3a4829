//! The statements against the functions that say what they should do.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use mqguard::idempotency::protocol::{Record, State};
use mqguard::idempotency::{Claim, ClaimRequest, Fingerprint, Hold, Identity, MemoryStore, Mode, Owner, Step, Store, Turn};

use crate::database::{Kind, Lab, Stored};
use crate::{DAY, MODES, request};

on_each! {
    random_sequences_are_answered_as_by_the_memory_store,
    questions_that_travel_together_are_answered_as_if_one_after_the_other,
}

const HOUR: Duration = Duration::from_secs(3_600);

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
        if self.below(2) == 0 { Duration::ZERO } else { HOUR }
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
            assert!(left > Duration::ZERO && left <= HOUR);
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
            let turn = if dice.below(3) == 0 { Turn::default() } else { dice.turn() };
            let (lease, fingerprint) = (dice.lease(), Fingerprint(dice.below(3)));
            let max_crashes = u32::try_from(dice.below(3)).expect("small");
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

/// Asks all of them in one batch.
async fn ask_at_once(store: &Arc<dyn Store>, questions: &[Question]) -> Vec<String> {
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

async fn random_sequences_are_answered_as_by_the_memory_store(kind: Kind) {
    compare(kind, 1, 1).await;
}

async fn questions_that_travel_together_are_answered_as_if_one_after_the_other(kind: Kind) {
    compare(kind, 12, 6).await;
}

/// Asks both stores the same, up to so many questions at once, about so many messages.
async fn compare(kind: Kind, at_once: u64, messages: usize) {
    let lab = Lab::new(kind).await;
    for mode in MODES {
        compare_in(&lab, mode, at_once, messages).await;
    }
}

async fn compare_in(lab: &Lab, mode: Mode, at_once: u64, messages: usize) {
    let (store, memory) = (lab.store_in(mode), MemoryStore::new());
    let mut session = lab.session().await;
    let mut answers = HashMap::new();
    let (rounds, questions) = (120 / messages as u64, 25 * messages);
    for seed in 1..=rounds {
        let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let asked: Vec<_> = (0..messages).map(|nth| request(&format!("{seed}.{nth}"))).collect();
        let mut trace = Vec::new();
        while trace.len() < questions {
            let count = 1 + dice.below(at_once);
            let mut any = || asked[usize::try_from(dice.below(messages as u64)).expect("small")].identity.clone();
            let about: Vec<_> = (0..count).map(|_| any()).collect();
            let questions: Vec<_> = about.into_iter().map(|identity| Question::of(&mut dice, identity)).collect();
            let got = ask_at_once(&store, &questions).await;
            trace.push("together:".to_owned());
            for (question, got) in questions.iter().zip(got) {
                let expected = question.ask(&memory).await;
                trace.push(format!("{question:?}"));
                *answers.entry(expected.split([' ', '{', '(']).next().unwrap_or_default().to_owned()).or_insert(0) += 1;
                assert_eq!(got, expected, "{mode:?}, seed {seed}: {trace:#?}");
            }
        }
        for message in asked {
            if let Some(record) = memory.record(&message.identity) {
                let stored = lab.look(&mut session, mode, &message).await;
                compare_records(&stored, &record, &format!("{mode:?}, seed {seed}, {}: {trace:#?}", message.identity));
            }
        }
    }
    for kind in
        ["Granted", "Busy", "Stale", "Duplicate", "Conflict", "Letter", "Complete:", "Release", "Condemn", "Lettered:", "Renew"]
    {
        assert!(answers.get(kind).is_some_and(|&count| count >= 20), "{kind} is hardly tested: {answers:?}");
    }
}

fn compare_records(stored: &Stored, record: &Record, context: &str) {
    let state = match record.state {
        State::Pending => "pending",
        State::Processing => "processing",
        State::Success => "success",
        State::Failed => "failed",
    };
    let owes_letter = record.state == State::Failed && !record.lettered;
    assert_eq!(stored.status, state, "{context}");
    assert_eq!(stored.turn, (Some(record.turn.generation.into()), Some(record.turn.step.into())), "{context}");
    assert_eq!(stored.owner, record.owner.map(|owner| owner.to_string()), "{context}");
    assert_eq!(stored.crashes, i64::from(record.crashes), "{context}");
    assert_eq!(stored.body, record.fingerprint.map(|body| body.0.cast_signed()), "{context}");
    assert_eq!(stored.is_lettered, record.lettered, "{context}");
    match record.state {
        // It stays for its reader.
        State::Failed if record.lettered => {}
        State::Failed => assert_eq!(stored.last_error, record.error, "{context}"),
        _ => assert_eq!(stored.last_error, None, "{context}"),
    }
    // The memory store's clock began with this test.
    let is_live = stored.lease.is_some_and(|left| left > 0);
    assert_eq!(is_live, record.lease_until >= 3_600_000, "{context}: {stored:?}");
    let days = if owes_letter { 30 } else { 1 };
    let kept = days * 24 * 3_600;
    assert!((kept - 60..=kept).contains(&stored.kept), "{context}: {stored:?}");
}
