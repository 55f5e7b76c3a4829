//! One claim or step, as the script takes it.

use std::time::Duration;

use super::super::contract::{ClaimRequest, Hold, Owner, Step, Turn};
use super::super::identity::Identity;
use super::super::protocol::{OWED_FOR, cut, millis};

pub(super) const PREFIX: &str = "mq:dedup:";

const CLAIM: &str = "claim";

/// The longest lease or retention, about 100 years: SET refuses an expiry that overflows.
const LONGEST: u64 = 100 * 366 * 24 * 3_600 * 1_000;

/// The most bytes of each part of the identity that a record shows.
const MAX_SHOWN: usize = 256;

/// Which question, the record's key, and three arguments; they stand one after the other in one buffer.
#[derive(Debug)]
pub(super) struct Entry {
    question: &'static str,
    text: Vec<u8>,
    ends: [usize; 4],
}

impl Entry {
    pub(super) fn claim(request: &ClaimRequest) -> Self {
        let ClaimRequest { identity, turn, fingerprint, owner, lease, ttl, max_crashes } = request;
        let kept = kept(*ttl, *lease);
        let mut parts = Parts::of(identity, 320);
        parts.head(*owner, "processing", kept, *lease);
        parts.turn(" turn=", *turn);
        parts.raw(b" crashes=0 body=");
        parts.number(fingerprint.0);
        parts.raw(b" ");
        parts.shown(identity);
        parts.end(1);
        parts.number(kept);
        parts.end(2);
        parts.number(owed(*ttl, *lease));
        parts.raw(b" ");
        parts.number((*max_crashes).into());
        parts.finish(CLAIM)
    }

    pub(super) fn settle(hold: &Hold, step: &Step) -> Self {
        let Hold { identity, owner, ttl } = hold;
        let mut parts = Parts::of(identity, 256);
        match step {
            Step::Complete => {
                parts.head_and_kept(*owner, "success", kept(*ttl, Duration::ZERO), Duration::ZERO);
                parts.owner(*owner);
                parts.raw(b" processing ");
                parts.finish("complete")
            }
            Step::Release { next } => {
                parts.head_and_kept(*owner, "pending", kept(*ttl, Duration::ZERO), Duration::ZERO);
                parts.turn("", *next);
                parts.finish("release")
            }
            Step::Condemn { error, lease } => {
                parts.head_and_kept(*owner, "failed", owed(*ttl, *lease), *lease);
                parts.json(&cut(error));
                parts.finish("condemn")
            }
            Step::Lettered => {
                parts.head_and_kept(*owner, "failed", kept(*ttl, Duration::ZERO), Duration::ZERO);
                parts.finish("lettered")
            }
            Step::Renew { lease } => {
                parts.head_and_kept(*owner, "processing", kept(*ttl, *lease), *lease);
                parts.head(*owner, "failed", owed(*ttl, *lease), *lease);
                parts.finish("renew")
            }
        }
    }

    /// What the script does.
    pub(super) fn question(&self) -> &'static str {
        self.question
    }

    /// The record's key.
    pub(super) fn key(&self) -> &[u8] {
        &self.text[..self.ends[0]]
    }

    /// For errors.
    pub(super) fn shown_key(&self) -> String {
        String::from_utf8_lossy(self.key()).into_owned()
    }

    /// What the question takes: see the script.
    pub(super) fn arguments(&self) -> [&[u8]; 3] {
        let [key, head, kept, extra] = self.ends;
        [&self.text[key..head], &self.text[head..kept], &self.text[kept..extra]]
    }

    pub(super) fn is_claim(&self) -> bool {
        self.question == CLAIM
    }

    /// How long all of it is.
    pub(super) fn len(&self) -> usize {
        self.text.len()
    }
}

/// An entry that is being written.
struct Parts {
    text: Vec<u8>,
    ends: [usize; 4],
}

impl Parts {
    fn of(identity: &Identity, capacity: usize) -> Self {
        let mut parts = Self { text: Vec::with_capacity(capacity), ends: [0; 4] };
        parts.raw(PREFIX.as_bytes());
        parts.hex(u128::from_be_bytes(identity.digest()));
        parts.end(0);
        parts
    }

    fn end(&mut self, part: usize) {
        self.ends[part] = self.text.len();
    }

    fn finish(mut self, question: &'static str) -> Entry {
        self.end(3);
        Entry { question, text: self.text, ends: self.ends }
    }

    /// What a record begins with: see `record.lua`.
    fn head(&mut self, owner: Owner, state: &str, kept: u64, lease: Duration) {
        self.owner(owner);
        self.raw(b" ");
        self.raw(state.as_bytes());
        self.raw(b" kept=");
        self.number(kept);
        self.raw(b" lease=");
        self.number(time(lease));
    }

    fn head_and_kept(&mut self, owner: Owner, state: &str, kept: u64, lease: Duration) {
        self.head(owner, state, kept, lease);
        self.end(1);
        self.number(kept);
        self.end(2);
    }

    fn owner(&mut self, owner: Owner) {
        self.hex(owner.0);
    }

    fn turn(&mut self, name: &str, turn: Turn) {
        self.raw(name.as_bytes());
        self.number(turn.generation.into());
        self.raw(b".");
        self.number(turn.step.into());
    }

    /// For a person who looks at the record.
    fn shown(&mut self, identity: &Identity) {
        self.json(&[shown(identity.consumer()), shown(identity.business_key()), shown(identity.message_id())]);
    }

    fn json(&mut self, value: &impl serde::Serialize) {
        // Writing text to memory does not fail.
        let _ = serde_json::to_writer(&mut self.text, value);
    }

    fn number(&mut self, number: u64) {
        self.raw(itoa::Buffer::new().format(number).as_bytes());
    }

    fn hex(&mut self, number: u128) {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut hex = [0; 32];
        for (pair, byte) in hex.chunks_exact_mut(2).zip(number.to_be_bytes()) {
            pair.copy_from_slice(&[DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
        }
        self.raw(&hex);
    }

    fn raw(&mut self, bytes: &[u8]) {
        self.text.extend_from_slice(bytes);
    }
}

fn time(duration: Duration) -> u64 {
    millis(duration).min(LONGEST)
}

/// How long a record is kept: for longer than its lease, which lapses a millisecond late, and for some time in any case.
fn kept(ttl: Duration, lease: Duration) -> u64 {
    time(ttl).max(time(lease) + 1)
}

/// How long it is kept while it owes a letter.
fn owed(ttl: Duration, lease: Duration) -> u64 {
    kept(ttl.max(OWED_FOR), lease)
}

fn shown(part: &str) -> &str {
    &part[..part.floor_char_boundary(MAX_SHOWN)]
}

#[cfg(test)]
mod tests {
    use super::super::super::fingerprint::Fingerprint;
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn identity() -> Identity {
        Identity::new("q", "", "1 \"\n")
    }

    fn claim(lease: Duration, ttl: Duration) -> Entry {
        let turn = Turn { generation: 1, step: 20 };
        Entry::claim(&ClaimRequest {
            identity: identity(),
            turn,
            fingerprint: Fingerprint(7),
            owner: Owner(0xabc),
            lease,
            ttl,
            max_crashes: 3,
        })
    }

    fn arguments(entry: &Entry) -> [String; 3] {
        entry.arguments().map(|argument| String::from_utf8_lossy(argument).into_owned())
    }

    #[test]
    fn the_key_is_the_digest_in_hex() {
        let hex: String = identity().digest().iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(claim(SECOND, SECOND).key(), format!("mq:dedup:{hex}").as_bytes());
    }

    #[test]
    fn a_claim_brings_the_whole_record() {
        let entry = claim(SECOND * 60, SECOND * 600);
        let record = format!(r#"{:032x} processing kept=600000 lease=60000 turn=1.20 crashes=0 body=7 ["q","","1 \"\n"]"#, 0xabc);
        assert_eq!(arguments(&entry), [record, "600000".into(), "2592000000 3".into()]);
    }

    #[test]
    fn a_step_brings_what_changes() {
        let hold = Hold { identity: identity(), owner: Owner(0xabc), ttl: SECOND };
        let of = |step| {
            let entry = Entry::settle(&hold, &step);
            assert_eq!(entry.key(), claim(SECOND, SECOND).key());
            arguments(&entry).map(|argument| argument.replace(&Owner(0xabc).to_string(), "abc"))
        };
        assert_eq!(of(Step::Complete), ["abc success kept=1000 lease=0", "1000", "abc processing "]);
        let next = Turn { generation: 0, step: 7 };
        assert_eq!(of(Step::Release { next }), ["abc pending kept=1000 lease=0", "1000", "0.7"]);
        let condemn = Step::Condemn { error: "a \"b\"".into(), lease: SECOND };
        assert_eq!(of(condemn), ["abc failed kept=2592000000 lease=1000", "2592000000", r#""a \"b\"""#]);
        assert_eq!(of(Step::Lettered), ["abc failed kept=1000 lease=0", "1000", ""]);
        let renewed = ["abc processing kept=1001 lease=1000", "1001", "abc failed kept=2592000000 lease=1000"];
        assert_eq!(of(Step::Renew { lease: SECOND }), renewed);
    }

    #[test]
    fn every_record_outlives_its_lease_and_expires() {
        for (lease, ttl, expected) in [
            (Duration::ZERO, Duration::ZERO, 1),
            (SECOND, Duration::ZERO, 1_001),
            (SECOND, SECOND, 1_001),
            (SECOND, SECOND * 2, 2_000),
            (Duration::MAX, Duration::MAX, LONGEST + 1),
        ] {
            assert_eq!(kept(ttl, lease), expected);
            assert!(owed(ttl, lease) >= expected.max(millis(OWED_FOR)));
        }
    }

    #[test]
    fn what_a_record_shows_is_cut_at_a_character() {
        assert_eq!(shown(&"é".repeat(200)).len(), 256);
        assert_eq!(shown(&format!("a{}", "é".repeat(200))).len(), 255);
    }
}
