//! Many workers at once.

use std::sync::Arc;

use mqguard::idempotency::{Claim, Owner, Step, Store};
use tokio::sync::Barrier;
use tokio::task::JoinSet;

use crate::message::{LONG, Message, SHORT, granted, pass, turn};

const WORKERS: usize = 16;

pub(crate) async fn one_of_many_claims_is_granted(store: &Arc<dyn Store>) {
    let messages: Arc<Vec<Message>> = Arc::new((0..1_000).map(|_| Message::new(store, LONG)).collect());
    let start = Arc::new(Barrier::new(WORKERS));
    let mut workers = JoinSet::new();
    for worker in 0..WORKERS {
        let (messages, start) = (Arc::clone(&messages), Arc::clone(&start));
        workers.spawn(async move {
            let mut won = vec![false; messages.len()];
            start.wait().await;
            for nth in 0..messages.len() {
                // Half of them go the other way, so that not one worker is first everywhere.
                let nth = if worker % 2 == 0 { nth } else { messages.len() - 1 - nth };
                let owner = Owner::random();
                match messages[nth].claim(turn(0, 0), owner).await {
                    Claim::Granted { crashes: 0 } => {
                        won[nth] = true;
                        if nth % 3 == 0 {
                            messages[nth].applied(owner, Step::Complete).await;
                        }
                    }
                    Claim::Busy { .. } => {}
                    Claim::Duplicate => assert_eq!(nth % 3, 0),
                    other => panic!("{other:?}"),
                }
            }
            won
        });
    }
    let mut grants = vec![0; messages.len()];
    while let Some(won) = workers.join_next().await {
        won.expect("no worker fails").into_iter().zip(&mut grants).for_each(|(won, grants)| *grants += u32::from(won));
    }
    assert!(grants.iter().all(|&grants| grants == 1), "{grants:?}");
}

pub(crate) async fn one_of_many_takes_a_lapsed_claim_over(store: &Arc<dyn Store>) {
    let mut message = Message::new(store, SHORT);
    let late = message.claimed().await;
    pass(store, SHORT * 2).await;
    message.lease = LONG;
    let start = Arc::new(Barrier::new(WORKERS));
    let mut workers = JoinSet::new();
    for _ in 0..WORKERS {
        let (message, start) = (message.clone(), Arc::clone(&start));
        workers.spawn(async move {
            start.wait().await;
            let owner = Owner::random();
            let answer = message.claim(turn(0, 0), owner).await;
            if answer != granted(1) {
                assert!(matches!(answer, Claim::Busy { .. }), "{answer:?}");
                message.refused(owner, Step::Complete).await;
            }
            answer == granted(1)
        });
    }
    let mut grants = 0;
    while let Some(won) = workers.join_next().await {
        grants += u32::from(won.expect("no worker fails"));
    }
    assert_eq!(grants, 1);
    message.refused(late, Step::Complete).await;
}
