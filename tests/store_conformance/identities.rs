//! What makes two messages one.

use std::collections::HashSet;
use std::sync::Arc;

use mqguard::idempotency::{Claim, Identity, Owner, Step, Store};

use crate::message::{LONG, Message, granted, turn};

/// Claims and completes each in turn; none may be taken for another.
async fn told_apart(store: &Arc<dyn Store>, identities: Vec<Identity>) {
    let distinct: HashSet<_> = identities.iter().map(Identity::digest).collect();
    assert_eq!(distinct.len(), identities.len());
    let mut messages = Vec::new();
    for identity in identities {
        let message = Message { identity, ..Message::new(store, LONG) };
        let owner = Owner::random();
        assert_eq!(message.claim(turn(0, 0), owner).await, granted(0), "{:?}", message.identity);
        messages.push((message, owner));
    }
    for (message, owner) in &messages {
        message.is_busy(turn(0, 0)).await;
        message.applied(*owner, Step::Complete).await;
        assert_eq!(message.claim(turn(0, 0), Owner::random()).await, Claim::Duplicate, "{:?}", message.identity);
    }
}

pub(crate) async fn similar_messages_are_told_apart(store: &Arc<dyn Store>) {
    let consumer = Owner::random().to_string();
    let long = "x".repeat(299);
    let ids = [
        "a", "A", "a ", " a", "á", "a\u{301}", "ä", "ａ", "a\0", "a\0b", "a\n", "a\nb", "a\r\n", "ß", "ss", "İ", "i", "😀", "😁",
        "0", "00", "null", "", "%61", "a'", "a\"", "a\\",
    ];
    let odd = ["\" [\"", " [\"a", "\"] letter=owed [\"", " turn=9.9 crashes=9 [\""].map(str::to_owned);
    let ids = odd.into_iter().chain(ids.map(str::to_owned)).chain([format!("{long}1"), format!("{long}2"), long]);
    let identity = |message_id| Identity::new(consumer.clone(), "42", message_id);
    told_apart(store, ids.map(identity).collect()).await;
}

pub(crate) async fn parts_of_an_identity_are_told_apart(store: &Arc<dyn Store>) {
    let prefix = Owner::random().to_string();
    let identities = [
        ("q", "1", "23"),
        ("q", "12", "3"),
        ("q", "123", ""),
        ("q", "", "123"),
        ("q1", "", "23"),
        ("q1", "23", ""),
        ("q123", "", ""),
        ("other", "1", "23"),
    ];
    let identity = |(consumer, business_key, message_id): (&str, &str, &str)| {
        Identity::new(format!("{prefix}{consumer}"), business_key, message_id)
    };
    told_apart(store, identities.map(identity).into()).await;
}
