//! What only PostgreSQL does.

use std::sync::Arc;
use std::time::Duration;

use mqguard::idempotency::PostgresStore;
use mqguard::sqlx::{self, Postgres};
use mqguard::{EventKind, Guard, State, Tx, consumer};
use tokio::sync::{Semaphore, mpsc};
use tokio::time::timeout;

use crate::bank::{Bank, How, Payment, PaymentError, Told, payment};
use crate::database::{Kind, Lab};

/// Goes on when a statement has failed, after which PostgreSQL undoes everything at the commit, and says nothing.
#[consumer(queue = "payments", idempotent(store = "postgres", transactional))]
async fn careless(_payment: Payment, mut tx: Tx<'_, Postgres>) -> Result<(), PaymentError> {
    sqlx::query("UPDATE account SET cents = cents + 7").execute(&mut *tx).await?;
    let failed = sqlx::query("SELECT * FROM no_such_table").execute(&mut *tx).await;
    assert!(failed.is_err());
    Ok(())
}

#[tokio::test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn an_error_that_is_not_returned_is_a_failure() {
    let mut bank = Bank::open(Kind::Postgres, |guard| guard.consumer::<careless>()).await;
    bank.publish("1", &payment(0, How::Transient)).await;
    let Told::Dead(why) = bank.told().await else { panic!("it is no dead letter") };
    assert!(why.contains("a statement of its transaction had failed"), "{why}");
    assert_eq!(bank.account().await, (1_000, 0));
}

/// Writes what a constraint refuses that is checked at the commit.
#[consumer(queue = "payments", idempotent(store = "postgres", transactional))]
async fn deferred(_payment: Payment, mut tx: Tx<'_, Postgres>) -> Result<(), PaymentError> {
    sqlx::query("INSERT INTO entry VALUES ('no such account')").execute(&mut *tx).await?;
    Ok(())
}

#[tokio::test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn what_is_refused_at_the_commit_is_a_failure() {
    let mut bank = Bank::open(Kind::Postgres, |guard| guard.consumer::<deferred>()).await;
    bank.session.must("CREATE TABLE entry (account VARCHAR(20) REFERENCES account DEFERRABLE INITIALLY DEFERRED)").await;
    bank.publish("1", &payment(0, How::Transient)).await;
    let Told::Dead(why) = bank.told().await else { panic!("it is no dead letter") };
    assert!(why.contains("violates foreign key constraint"), "{why}");
    assert_eq!(bank.session.number("SELECT COUNT(*) FROM entry").await, 0);
    let failed = "SELECT COUNT(*) FROM mq_consume_record WHERE status = 'failed' AND lettered";
    assert_eq!(bank.session.number(failed).await, 1);
}

/// Begun, and may end.
#[derive(Clone)]
struct Gate {
    begun: mpsc::UnboundedSender<()>,
    go: Arc<Semaphore>,
}

#[consumer(queue = "slow", idempotent(store = "postgres", transactional))]
async fn slow(_body: u32, mut tx: Tx<'_, Postgres>, gate: State<Gate>) -> Result<(), PaymentError> {
    sqlx::query("SELECT 1").execute(&mut *tx).await?;
    gate.begun.send(()).expect("the test listens");
    gate.go.acquire().await.expect("it is open").forget();
    Ok(())
}

/// That all sessions are in use is no failure of the store: who has none waits, and is handed back when the process ends.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn a_run_waits_for_a_session() {
    let lab = Lab::new(Kind::Postgres).await;
    let store = PostgresStore::new(&lab.url()).expect("a usable URL").sessions(1);
    let (begun, mut begins) = mpsc::unbounded_channel();
    let gate = Gate { begun, go: Arc::new(Semaphore::new(0)) };
    let (tell, mut told) = mpsc::unbounded_channel();
    let guard =
        Guard::embedded().consumer::<slow>().state(gate.clone()).store("postgres", store).grace(Duration::from_millis(50));
    let guard = guard.observe(move |event| match event.kind {
        EventKind::Processed { .. } => drop(tell.send("processed")),
        EventKind::Returned => drop(tell.send("returned")),
        _ => {}
    });
    let running = guard.start().await.expect("it starts");
    for id in ["1", "2", "3", "4"] {
        running.publisher().json(&0).expect("plain data").message_id(id).to_queue("slow").await.expect("it is published");
    }
    let limit = Duration::from_secs(20);
    for _ in 0..2 {
        timeout(limit, begins.recv()).await.expect("one begins");
        assert!(begins.try_recv().is_err(), "one at a time");
        gate.go.add_permits(1);
        assert_eq!(timeout(limit, told.recv()).await.expect("it is told"), Some("processed"));
    }
    timeout(limit, begins.recv()).await.expect("the third begins");
    timeout(limit, running.shutdown()).await.expect("it ends, though one waits for a session").expect("it ends well");
    for _ in 0..2 {
        assert_eq!(timeout(limit, told.recv()).await.expect("it is told"), Some("returned"));
    }
}
