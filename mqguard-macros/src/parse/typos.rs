//! Every word of the attributes with every slip of one letter, and in the places that have to know it.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;

use super::entries::each_entry;
use super::keys::{self, Level};
use crate::diag::Sink;

const LEVELS: [&Level; 7] =
    [&keys::CONSUMER, &keys::DEAD_LETTER_CONSUMER, &keys::DLQ, &keys::RETRY, &keys::IDEMPOTENT, &keys::BIND, &keys::RETRYABLE];

/// Entries with a word in place of `{}`, and the words that they take.
const WORDS: [(&str, &[&str]); 8] = [
    ("queue_type = \"{}\"", &["quorum", "classic"]),
    ("on_timeout = \"{}\"", &["retry", "fatal"]),
    ("on_panic = \"{}\"", &["retry", "fatal"]),
    ("idempotent = \"{}\"", keys::STORES),
    ("idempotent(store = \"mysql\", identity = \"{}\")", &["key+message_id", "key", "message_id"]),
    ("idempotent(store = \"mysql\", missing_id = \"{}\")", &["dead_letter", "run"]),
    ("idempotent(store = \"mysql\", mode = \"{}\")", &["unique", "state_machine"]),
    ("bind(exchange = \"x\", routing_key = \"y\", kind = \"{}\")", &["topic", "direct", "fanout"]),
];

/// The word with one letter left out, doubled, replaced or swapped with the next.
fn slips(word: &str) -> BTreeSet<String> {
    let letters: Vec<char> = word.chars().collect();
    let mut slips = BTreeSet::new();
    for i in 0..letters.len() {
        let mut slip = |change: &dyn Fn(&mut Vec<char>)| {
            let mut letters = letters.clone();
            change(&mut letters);
            slips.insert(letters.into_iter().collect::<String>());
        };
        slip(&|letters| {
            letters.remove(i);
        });
        slip(&|letters| letters.insert(i, letters[i]));
        slip(&|letters| letters[i] = if letters[i] == 'x' { 'y' } else { 'x' });
        slip(&|letters| letters[i] = letters[i].to_ascii_uppercase());
        if i + 1 < letters.len() {
            slip(&|letters| letters.swap(i, i + 1));
        }
    }
    slips.remove(word);
    slips
}

/// The one message.
fn only(sink: &Sink) -> Result<&str, String> {
    match sink.messages().as_slice() {
        [message] => Ok(message),
        messages => Err(format!("{} messages: {messages:?}", messages.len())),
    }
}

/// Whether the message asks for the word, or shows the line with it.
fn names(message: Result<&str, String>, word: &str) -> Result<(), String> {
    let message = message?;
    let asked = [format!("did you mean `{word}`?"), format!("did you mean \"{word}\"?"), format!("write `{word}")];
    if asked.iter().any(|question| message.contains(question.as_str())) { Ok(()) } else { Err(message.to_owned()) }
}

#[test]
fn a_slip_in_a_key_suggests_the_key() {
    let mut slips_made = 0;
    let mut wrong = Vec::new();
    for level in LEVELS {
        for key in level.keys {
            for slip in slips(key.name) {
                slips_made += 1;
                let entry = key.sample.replacen(key.name, &slip, 1);
                let mut sink = Sink::default();
                each_entry(level, entry.parse().unwrap(), &mut sink, |_, _| {});
                if let Err(problem) = names(only(&sink), key.name) {
                    wrong.push(format!("{}, {entry}: {problem}", level.name));
                }
            }
        }
    }
    assert!(slips_made > 1000, "{slips_made} slips are too few to mean anything");
    assert!(wrong.is_empty(), "{} of {slips_made}:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn a_slip_in_a_word_suggests_the_word() {
    let mut wrong = Vec::new();
    for (entry, words) in WORDS {
        for word in words {
            for slip in slips(word) {
                let entry = entry.replace("{}", &slip);
                let mut sink = Sink::default();
                super::consumer::consumer(entry.parse().unwrap(), &mut sink);
                if let Err(problem) = names(only(&sink), word) {
                    wrong.push(format!("{entry}: {problem}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
}

/// The keys that editors complete, of one level.
fn completed(level: &Level) -> Vec<&'static str> {
    let source = include_str!("../../../mqguard-runtime/src/keys.rs");
    let (_, module) = source.split_once(&format!("\n    {} {{\n", level.module)).unwrap();
    let (module, _) = module.split_once("\n    }\n").unwrap();
    module.lines().map(str::trim).filter(|line| !line.starts_with("///")).collect()
}

#[test]
fn every_key_is_completed_and_documented() {
    let page = include_str!("../../../docs/attribute.md");
    for level in LEVELS.into_iter().filter(|level| !std::ptr::eq(*level, &keys::RETRYABLE)) {
        let keys: Vec<&str> = level.keys.iter().map(|key| key.name).filter(|key| *key != "crate").collect();
        assert_eq!(completed(level), keys, "{} in keys.rs of mqguard-runtime", level.name);
        for key in keys {
            assert!(
                page.contains(&format!("`{key}`")) || page.contains(&format!("`{key}(")),
                "{key} is not in docs/attribute.md"
            );
        }
    }
}
