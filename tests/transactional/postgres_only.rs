//! What only PostgreSQL does.

use mqguard::sqlx::{self, Postgres};
use mqguard::{Tx, consumer};

use crate::bank::{Bank, How, Payment, PaymentError, Told, payment};
use crate::database::Kind;

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
