//! What is done with a payment, and with its dead letter.

use mqguard::sqlx::{self, QueryBuilder};
use mqguard::{Attempt, DeadLetter, Guard, RetryableError, State, Tx, consumer, dead_letter_consumer};

use super::bank::Books;
use super::input::Payment;

pub const QUEUE: &str = "payment.process";

#[derive(Debug, thiserror::Error, RetryableError)]
pub enum PaymentError {
    #[error("the bank of the receiver does not answer")]
    #[retryable]
    ReceiverUnavailable,
    #[error("payment {0} is over the limit")]
    #[fatal]
    OverLimit(i64),
    #[error("the database")]
    #[retryable(inherit)]
    Database(#[from] sqlx::Error),
}

/// The consumer for one database: a `Tx` names its type. What is written in it is committed with the record that the message was
/// processed, or not at all.
///
/// The lease is how long a payment waits that was being made when its worker died. A short one is harmless here: a worker that is slower
/// than that cannot commit any more, so its work is lost, but nothing is done twice.
macro_rules! consumer_on {
    ($database:ident, $store:literal, $pay:ident) => {
        #[consumer(
                                            queue = "payment.process",
                                            retry(max = 5, delay = "50ms"),
                                            dlq(queue = "dlq.payment.process.fail", exchange = "dlx.exchange"),
                                            idempotent(store = $store, transactional, lease = "1s"),
                                            prefetch = 8
                                        )]
        pub async fn $pay(payment: Payment, mut tx: Tx<'_, sqlx::$database>, attempt: Attempt) -> Result<(), PaymentError> {
            // The lower account first, whichever pays, so that two payments never wait for each other.
            let mut postings = [(payment.from, -payment.cents), (payment.to, payment.cents)];
            postings.sort_unstable();
            for (account, cents) in postings {
                let mut update = QueryBuilder::new("UPDATE account SET cents = cents + ");
                update.push_bind(cents).push(" WHERE id = ").push_bind(account).build().execute(&mut *tx).await?;
            }
            let mut insert = QueryBuilder::new("INSERT INTO transfer (payment, cents) VALUES (");
            insert.push_bind(payment.id).push(", ").push_bind(payment.cents).push(")").build().execute(&mut *tx).await?;
            // Too late for a program that commits by itself: here the money has not moved before this returns `Ok`.
            if payment.is_over_limit() {
                return Err(PaymentError::OverLimit(payment.id));
            }
            if payment.fails_at_first() && attempt.retries == 0 {
                return Err(PaymentError::ReceiverUnavailable);
            }
            Ok(())
        }
    };
}

consumer_on!(Sqlite, "sqlite", pay_on_sqlite);
#[cfg(feature = "postgres")]
consumer_on!(Postgres, "postgres", pay_on_postgres);
#[cfg(feature = "mysql")]
consumer_on!(MySql, "mysql", pay_on_mysql);

/// Keeps each letter in the books, for the audit.
#[dead_letter_consumer(queue = "dlq.payment.process.fail")]
pub async fn keep_letter(letter: DeadLetter<Payment>, books: State<Books>) -> Result<(), sqlx::Error> {
    let payment = letter.payload().map(|payment| payment.id).unwrap_or_default();
    books.keep_letter(payment, &letter.reason().to_string()).await
}

/// The guard with the consumer for the database of these books.
pub fn guard(broker: &str, books: &Books) -> mqguard::Result<Guard> {
    let guard = Guard::connect(broker)?.store_url(books.url()).state(books.clone()).consumer::<keep_letter>();
    Ok(match books.store() {
        #[cfg(feature = "postgres")]
        "postgres" => guard.consumer::<pay_on_postgres>(),
        #[cfg(feature = "mysql")]
        "mysql" => guard.consumer::<pay_on_mysql>(),
        _ => guard.consumer::<pay_on_sqlite>(),
    })
}
