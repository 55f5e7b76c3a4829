//! What becomes of what a handler writes.

use crate::bank::{BEFORE, Bank, How, Payment, Told, payment};

/// The account after `times` payments of 7 cents.
fn paid(times: i64) -> (i64, i64) {
    (BEFORE + 7 * times, times)
}

pub(crate) async fn what_is_written_is_there_once_the_message_is_processed(mut bank: Bank) {
    for told in [Told::Processed(0), Told::Duplicate] {
        bank.publish("1", &payment(0, How::Transient)).await;
        assert_eq!(bank.told().await, told);
        assert_eq!(bank.account().await, paid(1));
    }
    bank.shut_down().await;
    let statuses = bank.session.number("SELECT COUNT(*) FROM mq_consume_record WHERE status = 'success'").await;
    assert_eq!(statuses, 1);
}

pub(crate) async fn a_retry_finds_nothing_of_the_failed_run(mut bank: Bank) {
    bank.publish("1", &payment(2, How::Transient)).await;
    for _ in 0..2 {
        assert_eq!(bank.told().await, Told::Retried("the bank is closed".into()));
    }
    assert_eq!(bank.told().await, Told::Processed(2));
    assert_eq!(bank.account().await, paid(1));
}

pub(crate) async fn a_failure_leaves_nothing(mut bank: Bank) {
    bank.publish("1", &payment(1, How::Fatal)).await;
    assert_eq!(bank.told().await, Told::Dead("the account is blocked".into()));
    assert_eq!(bank.account().await, paid(0));
    bank.publish("1", &payment(1, How::Fatal)).await;
    assert_eq!(bank.told().await, Told::Duplicate);
    assert_eq!(bank.account().await, paid(0));
}

pub(crate) async fn a_panic_leaves_nothing(mut bank: Bank) {
    bank.publish("1", &payment(1, How::Panic)).await;
    assert_eq!(bank.told().await, Told::Retried("in the middle".into()));
    assert_eq!(bank.told().await, Told::Processed(1));
    assert_eq!(bank.account().await, paid(1));
}

pub(crate) async fn a_run_that_takes_too_long_leaves_nothing(mut bank: Bank) {
    bank.publish("1", &payment(1, How::Hang)).await;
    assert_eq!(bank.told().await, Told::Retried("the handler did not end within 3s".into()));
    assert_eq!(bank.told().await, Told::Processed(1));
    assert_eq!(bank.account().await, paid(1));
}

pub(crate) async fn a_statement_that_is_refused_is_a_failure(mut bank: Bank) {
    bank.publish("1", &Payment { cents: -2 * BEFORE, ..payment(0, How::Transient) }).await;
    let Told::Dead(why) = bank.told().await else { panic!("it is no dead letter") };
    assert!(why.starts_with("the database: "), "{why}");
    assert_eq!(bank.account().await, paid(0));
    // The session is of use again.
    bank.publish("2", &payment(0, How::Transient)).await;
    assert_eq!(bank.told().await, Told::Processed(0));
    assert_eq!(bank.account().await, paid(1));
}

pub(crate) async fn duplicates_that_come_at_once_are_paid_once(mut bank: Bank) {
    const COPIES: usize = 20;
    for _ in 0..COPIES {
        bank.publish("1", &payment(0, How::Transient)).await;
    }
    let mut ends = Vec::new();
    for _ in 0..COPIES {
        ends.push(bank.told().await);
    }
    assert_eq!(ends.iter().filter(|told| **told == Told::Processed(0)).count(), 1, "{ends:?}");
    assert_eq!(ends.iter().filter(|told| **told == Told::Duplicate).count(), COPIES - 1, "{ends:?}");
    assert_eq!(bank.account().await, paid(1));
}

pub(crate) async fn many_payments_to_one_account_add_up(mut bank: Bank) {
    for id in 0..100 {
        bank.publish(&id.to_string(), &payment(u32::from(id % 10 == 0), How::Transient)).await;
    }
    let (mut processed, mut retried) = (0, 0);
    while processed < 100 {
        match bank.told().await {
            Told::Processed(_) => processed += 1,
            Told::Retried(_) => retried += 1,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(retried, 10);
    assert_eq!(bank.account().await, paid(100));
}

pub(crate) async fn what_runs_at_the_end_of_the_grace_period_is_undone(mut bank: Bank) {
    bank.publish("1", &payment(0, How::WaitAtTheEnd)).await;
    bank.waits().await;
    bank.shut_down().await;
    assert_eq!(bank.told().await, Told::Returned);
    assert_eq!(bank.account().await, paid(0));
    let given_back = "SELECT COUNT(*) FROM mq_consume_record WHERE status = 'pending' AND step = 0 AND crashes = 0";
    assert_eq!(bank.session.number(given_back).await, 1);
}

pub(crate) async fn who_lost_the_claim_does_not_commit(mut bank: Bank) {
    bank.publish("1", &payment(0, How::WaitAtTheEnd)).await;
    bank.waits().await;
    // As if another worker had it, whose lease has lapsed.
    let past = bank.lab.kind.time(-1);
    let taken = format!("UPDATE mq_consume_record SET owner = 'f', revision = revision + 1, lease_until = {past}");
    assert_eq!(bank.session.must(&taken).await, 1);
    bank.go();
    assert_eq!(bank.told().await, Told::Processed(0));
    assert_eq!(bank.account().await, paid(1));
    assert_eq!(bank.session.number("SELECT crashes FROM mq_consume_record").await, 1, "the other's");
}

pub(crate) async fn a_session_that_is_lost_in_the_run_is_a_retry(mut bank: Bank) {
    bank.publish("1", &payment(0, How::WaitInTheMiddle)).await;
    bank.waits().await;
    bank.end_session_of_handler().await;
    bank.go();
    let Told::Retried(why) = bank.told().await else { panic!("it is not retried") };
    assert!(why.starts_with("the database: "), "{why}");
    assert_eq!(bank.told().await, Told::Processed(1));
    assert_eq!(bank.account().await, paid(1));
}

pub(crate) async fn a_session_that_is_lost_at_the_commit_costs_no_attempt(mut bank: Bank) {
    bank.publish("1", &payment(0, How::WaitAtTheEnd)).await;
    bank.waits().await;
    bank.end_session_of_handler().await;
    bank.go();
    assert_eq!(bank.told().await, Told::Processed(0));
    assert_eq!(bank.account().await, paid(1));
    assert_eq!(bank.session.number("SELECT crashes FROM mq_consume_record").await, 0);
}

/// Nor is the session given to another run: those that follow are right.
pub(crate) async fn a_transaction_that_the_handler_has_ended_is_no_success(mut bank: Bank) {
    for (id, how) in [("commit", How::Commit), ("rollback", How::Rollback)] {
        bank.publish(id, &payment(0, how)).await;
        let Told::Dead(why) = bank.told().await else { panic!("{id} is no dead letter") };
        assert!(why.contains("the transaction that it was given had ended before"), "{why}");
    }
    // What the handler has committed by itself cannot be undone.
    assert_eq!(bank.account().await, paid(1));
    for id in 0..40 {
        bank.publish(&id.to_string(), &payment(0, How::Transient)).await;
    }
    for _ in 0..40 {
        assert_eq!(bank.told().await, Told::Processed(0));
    }
    assert_eq!(bank.account().await, paid(41));
}
