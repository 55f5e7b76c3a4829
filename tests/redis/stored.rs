//! A record as an operator sees it.

use mqguard::idempotency::ClaimRequest;

use crate::key;
use crate::server::Client;

/// What `GET` and `PTTL` show.
#[derive(Debug)]
pub(crate) struct Stored {
    pub(crate) owner: String,
    pub(crate) state: String,
    pub(crate) kept: i64,
    pub(crate) lease: i64,
    pub(crate) turn: String,
    pub(crate) crashes: String,
    pub(crate) body: String,
    pub(crate) letter: Option<String>,
    pub(crate) error: Option<String>,
    /// Consumer, key and message id.
    pub(crate) shown: [String; 3],
    pub(crate) pttl: i64,
}

/// Looks at the record of a message.
pub(crate) fn look(client: &mut Client, message: &ClaimRequest) -> Stored {
    let key = key(message);
    let text = client.run(&format!("GET {key}")).text();
    let pttl = client.run(&format!("PTTL {key}")).number();
    let words: Vec<_> = text.splitn(8, ' ').collect();
    let [owner, state, kept, lease, turn, crashes, body, rest] = words[..] else { panic!("not a record: {text}") };
    let value = |word: &str, name| word.strip_prefix(name).unwrap_or_else(|| panic!("no {name} in {text}")).to_owned();
    let number = |word, name| value(word, name).parse().unwrap_or_else(|_| panic!("no number {name} in {text}"));
    let (letter, rest) = match rest.strip_prefix("letter=") {
        Some(rest) => rest.split_once(' ').map(|(letter, rest)| (Some(letter.to_owned()), rest)).expect("it goes on"),
        None => (None, rest),
    };
    let (error, rest) = match rest.strip_prefix("error=") {
        Some(rest) => {
            let mut values = serde_json::Deserializer::from_str(rest).into_iter::<String>();
            let error = values.next().expect("an error").expect("a string");
            (Some(error), &rest[values.byte_offset() + 1..])
        }
        None => (None, rest),
    };
    Stored {
        owner: owner.to_owned(),
        state: state.to_owned(),
        kept: number(kept, "kept="),
        lease: number(lease, "lease="),
        turn: value(turn, "turn="),
        crashes: value(crashes, "crashes="),
        body: value(body, "body="),
        letter,
        error,
        shown: serde_json::from_str(rest).unwrap_or_else(|error| panic!("{error}: {text}")),
        pttl,
    }
}
