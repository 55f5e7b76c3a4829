//! Parts of any length and with any characters, times of any length.

use std::time::Duration;

use mqguard::idempotency::{Claim, ClaimRequest, Identity, Settled, Step, Turn};

use crate::database::{Kind, Lab};
use crate::{GRANTED, LEASE, MODES, by_another, claim_all, hold, request, settle_all};

on_each! {
    parts_of_any_length_and_with_any_characters_are_told_apart,
    errors_are_kept_to_the_letter,
    leases_and_retention_of_any_length_can_be_kept,
}

fn parts() -> Vec<String> {
    let x = |length: usize| "x".repeat(length);
    let mut parts: Vec<String> = [255, 300, 511, 512, 513, 514, 10_000, 10_001].map(x).into();
    parts.extend([format!("{} ", x(511)), format!("{}y", x(512)), "😀".repeat(128), "😀".repeat(129)]);
    let odd = [
        "",
        " ",
        "  ",
        "a",
        "A",
        "a ",
        "a  ",
        "á",
        "a\u{301}",
        "ä",
        "Ä",
        "ß",
        "ss",
        "a\0",
        "a\0b",
        "\0",
        "\t",
        "\n",
        "a\n",
        "\r\n",
        "😀",
        "\u{1a}",
        "\u{1a}0",
        "\u{fffd}",
        "\u{feff}a",
        "'",
        "\"",
        "\\",
        "%",
        "_",
        "NULL",
        "0",
        "00",
        "1e0",
        "1",
        "ı",
        "i",
        "I",
        "İ",
        "sha256:",
        "\u{10ffff}",
        "\u{e000}",
    ];
    parts.extend(odd.map(str::to_owned));
    parts
}

/// Each as the consumer, as the key and as the message id, all at once.
async fn parts_of_any_length_and_with_any_characters_are_told_apart(kind: Kind) {
    let lab = Lab::new(kind).await;
    lab.ready().await;
    for mode in MODES {
        let store = lab.store_in(mode);
        let of = |consumer: &str, key: &str, id: &str| ClaimRequest {
            identity: Identity::new(consumer.to_owned(), key.to_owned(), id.to_owned()),
            ..by_another(&request(""))
        };
        let mut claims: Vec<_> = parts().iter().map(|part| of("q", "k", part)).collect();
        claims.extend(parts().iter().map(|part| of("q", part, "id")));
        claims.extend(parts().iter().map(|part| of(part, "k", "id")));
        for (claim, answer) in claims.iter().zip(claim_all(&store, &claims).await) {
            assert_eq!(answer, GRANTED, "{:?}", claim.identity);
        }
        let later: Vec<_> = claims.iter().map(by_another).collect();
        for (claim, answer) in claims.iter().zip(claim_all(&store, &later).await) {
            assert!(matches!(answer, Ok(Claim::Busy { .. })), "{:?}: {answer:?}", claim.identity);
        }
        for (claim, answer) in claims.iter().zip(settle_all(&store, &claims, &Step::Complete).await) {
            assert_eq!(answer, Ok(Settled::Applied), "{:?}", claim.identity);
        }
    }
}

async fn errors_are_kept_to_the_letter(kind: Kind) {
    let lab = Lab::new(kind).await;
    let store = lab.ready().await;
    let errors = [
        "",
        "no stock",
        "a\0b",
        "\0",
        "\u{1a}",
        "\u{1a}0",
        "'\"\\",
        "\r\n\t ",
        " trailing  ",
        "é😀\u{10ffff}",
        &"😀".repeat(2_048),
    ];
    for (nth, error) in errors.into_iter().enumerate() {
        let claim = request(&nth.to_string());
        assert_eq!(store.claim(&claim).await, GRANTED);
        let step = Step::Condemn { error: error.to_owned(), lease: Duration::ZERO };
        assert_eq!(store.settle(&hold(&claim), &step).await, Ok(Settled::Applied), "{error:?}");
        let letter = Claim::Letter { generation: 0, error: Some(error.to_owned()), crashes: 0 };
        assert_eq!(store.claim(&by_another(&claim)).await, Ok(letter));
    }
}

async fn leases_and_retention_of_any_length_can_be_kept(kind: Kind) {
    let lab = Lab::new(kind).await;
    lab.ready().await;
    for mode in MODES {
        let store = lab.store_in(mode);
        let longest = [
            Duration::MAX,
            Duration::from_secs(u64::MAX),
            Duration::from_hours(24 * 365 * 7_973),
            Duration::from_hours(24 * 365 * 99),
        ];
        for (nth, long) in longest.into_iter().enumerate() {
            let mut claim = request(&format!("long {nth}"));
            (claim.lease, claim.ttl) = (long, long);
            assert_eq!(store.claim(&claim).await, GRANTED, "{long:?}");
            assert_eq!(store.claim(&claim).await, GRANTED, "{long:?}, again");
            match store.claim(&by_another(&claim)).await {
                Ok(Claim::Busy { left }) => assert!(left > Duration::from_hours(24 * 365 * 98), "{left:?}"),
                other => panic!("{long:?}: {other:?}"),
            }
            for step in [
                Step::Renew { lease: long },
                Step::Condemn { error: "no".into(), lease: long },
                Step::Renew { lease: long },
                Step::Lettered,
            ] {
                assert_eq!(store.settle(&hold(&claim), &step).await, Ok(Settled::Applied), "{long:?}: {step:?}");
            }
            assert_eq!(store.claim(&by_another(&claim)).await, Ok(Claim::Duplicate));
        }
        // Which is forgotten at once.
        let mut short = request("short");
        (short.lease, short.ttl) = (Duration::ZERO, Duration::ZERO);
        assert_eq!(store.claim(&short).await, GRANTED);
        let taken = store.claim(&by_another(&short)).await;
        assert!(matches!(taken, Ok(Claim::Granted { crashes: 0 })), "{taken:?}");
        let mut highest = request("highest");
        highest.turn = Turn { generation: u32::MAX, step: u32::MAX };
        highest.fingerprint.0 = u64::MAX;
        assert_eq!(store.claim(&highest).await, GRANTED);
        assert_eq!(store.settle(&hold(&highest), &Step::Release { next: highest.turn }).await, Ok(Settled::Applied));
        let mut other = by_another(&highest);
        other.lease = LEASE;
        assert_eq!(store.claim(&other).await, GRANTED);
        let mut raised = request("raised");
        assert_eq!(store.claim(&raised).await, GRANTED);
        assert_eq!(store.settle(&hold(&raised), &Step::Release { next: highest.turn }).await, Ok(Settled::Applied));
        raised.owner = other.owner;
        assert_eq!(store.claim(&raised).await, Ok(Claim::Stale), "the turn that is out is the highest");
    }
}
