//! Handlers that write in the transaction that records their success, on each database.
#![cfg(all(feature = "mysql", feature = "postgres", feature = "sqlite"))]
#![allow(clippy::expect_used, clippy::panic, reason = "tests")]

#[path = "transactional/bank.rs"]
mod bank;
#[path = "transactional/cases.rs"]
mod cases;
#[path = "transactional/configuration.rs"]
mod configuration;
#[allow(dead_code, reason = "for other tests")]
#[path = "sql/database.rs"]
mod database;
#[path = "transactional/postgres_only.rs"]
mod postgres_only;
#[allow(dead_code, reason = "for other tests")]
#[path = "sql/session.rs"]
mod session;

/// The consumer of payments on one database, and each case with it.
macro_rules! on {
    ($module:ident: $kind:expr, $database:ident, $store:literal, [$($mark:literal),*], $attributes:tt, [$($more:ident),*]) => {
        mod $module {
            use mqguard::sqlx::{self, $database};
            use mqguard::{Attempt, State, Tx, consumer};

            use crate::bank::{Desk, Payment, PaymentError};
            use crate::database::Kind;

            #[consumer(
                queue = "payments",
                retry(max = 3, delay = "10ms"),
                dlq = "dlq.payments",
                idempotent(store = $store, transactional, lease = "30s"),
                timeout = "3s"
            )]
            async fn pay(payment: Payment, mut tx: Tx<'_, $database>, attempt: Attempt, desk: State<Desk>) -> Result<(), PaymentError> {
                let update = sqlx::query(concat!("UPDATE account SET payments = payments, cents = cents + ", $($mark),*));
                update.bind(payment.cents).bind(&payment.account).execute(&mut *tx).await?;
                desk.in_the_middle(&payment).await;
                sqlx::query("UPDATE account SET payments = payments + 1").execute(&mut *tx).await?;
                if let Some(statement) = payment.how.ends() {
                    sqlx::raw_sql(statement).execute(&mut *tx).await?;
                }
                desk.at_the_end(&payment, attempt).await
            }

            const KIND: Kind = $kind;
            on! {
                @cases $attributes,
                what_is_written_is_there_once_the_message_is_processed,
                a_retry_finds_nothing_of_the_failed_run,
                a_failure_leaves_nothing,
                a_panic_leaves_nothing,
                a_run_that_takes_too_long_leaves_nothing,
                a_statement_that_is_refused_is_a_failure,
                duplicates_that_come_at_once_are_paid_once,
                many_payments_to_one_account_add_up,
                what_runs_at_the_end_of_the_grace_period_is_undone,
                a_transaction_that_the_handler_has_ended_is_no_success
                $(, $more)*
            }
        }
    };
    (@cases $attributes:tt, $($case:ident),*) => {
        $(on! { @case $attributes $case })*
    };
    (@case [$($attribute:tt)*] $case:ident) => {
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        $($attribute)*
        async fn $case() {
            crate::cases::$case(crate::bank::Bank::open(KIND, |guard| guard.consumer::<pay>()).await).await;
        }
    };
}

on! { sqlite: Kind::Sqlite, Sqlite, "sqlite", ["?", " WHERE name = ?"], [], [] }
on! {
    postgres: Kind::Postgres, Postgres, "postgres", ["$1", " WHERE name = $2"],
    [#[ignore = "needs PostgreSQL: cargo xtask test"]],
    [
        who_lost_the_claim_does_not_commit,
        a_session_that_is_lost_in_the_run_is_a_retry,
        a_session_that_is_lost_at_the_commit_costs_no_attempt
    ]
}
on! {
    mariadb: Kind::MariaDb, MySql, "mysql", ["?", " WHERE name = ?"],
    [#[ignore = "needs MariaDB: cargo xtask test"]],
    [
        who_lost_the_claim_does_not_commit,
        a_session_that_is_lost_in_the_run_is_a_retry,
        a_session_that_is_lost_at_the_commit_costs_no_attempt
    ]
}
