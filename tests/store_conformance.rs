//! One suite that holds every store to the same answers. A new store is added at the end of this file.
#![allow(clippy::expect_used, clippy::panic)]

#[path = "store_conformance/answers.rs"]
mod answers;
#[path = "store_conformance/concurrency.rs"]
mod concurrency;
#[path = "store_conformance/identities.rs"]
mod identities;
#[path = "store_conformance/leases.rs"]
mod leases;
#[path = "store_conformance/message.rs"]
mod message;
#[path = "store_conformance/retention.rs"]
mod retention;
#[path = "store_conformance/settling.rs"]
mod settling;

/// Makes a test of each case, with these attributes, against the store that the expression gives (an `Arc<dyn Store>`).
macro_rules! suite {
    (@each $attributes:tt $store:expr; $($module:ident::$case:ident,)*) => {
        $(suite! { @one $attributes $store; $module::$case })*
    };
    (@one [$($attribute:tt)*] $store:expr; $module:ident::$case:ident) => {
        $($attribute)*
        async fn $case() {
            crate::$module::$case(&$store).await;
        }
    };
    ($attributes:tt $store:expr) => {
        suite! {
            @each $attributes $store;
            answers::the_first_claim_is_granted,
            answers::a_released_message_is_granted_from_its_next_turn_on,
            answers::a_live_claim_is_busy_and_an_older_turn_stale,
            answers::a_lapsed_claim_is_taken_over_and_counted,
            answers::an_older_turn_takes_nothing_over,
            answers::too_many_crashes_owe_a_letter,
            answers::the_crashes_of_a_message_are_not_forgotten_with_a_release,
            answers::a_condemned_message_owes_its_letter,
            answers::a_letter_that_is_out_is_final_but_for_a_newer_generation,
            answers::a_newer_generation_does_not_wait_for_an_owed_letter,
            answers::success_is_final,
            answers::another_body_under_the_same_identity_is_a_conflict,
            answers::a_ping_leaves_everything_as_it_is,
            settling::each_step_applies_to_its_state_only,
            settling::a_repeated_step_is_answered_as_the_first_time,
            settling::a_repeated_claim_is_answered_as_the_first_time,
            settling::a_release_to_another_turn_is_no_repetition,
            settling::an_error_is_kept_to_the_letter,
            settling::a_long_error_is_cut_at_a_character,
            leases::a_late_owner_changes_nothing,
            leases::a_lapsed_lease_that_nobody_took_is_still_its_owners,
            leases::a_renewal_keeps_the_lease,
            leases::a_renewal_keeps_the_lease_of_an_owed_letter,
            retention::success_is_forgotten_after_its_ttl_and_not_before,
            retention::a_live_lease_outlives_its_ttl,
            retention::an_owed_letter_outlives_its_ttl,
            identities::similar_messages_are_told_apart,
            identities::parts_of_an_identity_are_told_apart,
            concurrency::one_of_many_claims_is_granted,
            concurrency::one_of_many_takes_a_lapsed_claim_over,
        }
    };
}

/// In virtual time.
mod memory {
    use std::sync::Arc;

    use mqguard::idempotency::{MemoryStore, Store};

    fn store() -> Arc<dyn Store> {
        Arc::new(MemoryStore::new())
    }

    suite!([#[tokio::test(start_paused = true)]] store());
}

/// In real time, on several threads.
mod memory_threads {
    use std::sync::Arc;

    use mqguard::idempotency::{MemoryStore, Store};

    fn store() -> Arc<dyn Store> {
        Arc::new(MemoryStore::new())
    }

    suite!([#[tokio::test(flavor = "multi_thread", worker_threads = 4)]] store());
}

#[cfg(feature = "redis")]
mod redis {
    use std::sync::Arc;

    use mqguard::idempotency::{RedisStore, Store};

    fn store() -> Arc<dyn Store> {
        let url = std::env::var("MQGUARD_TEST_REDIS").expect("MQGUARD_TEST_REDIS names a server, as redis://127.0.0.1:6379");
        Arc::new(RedisStore::new(&url).expect("a usable URL"))
    }

    suite!([
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        #[ignore = "needs Redis: cargo xtask test"]
    ] store());
}

/// A store on a database server, in each of its modes.
#[cfg(any(feature = "mysql", feature = "postgres"))]
macro_rules! on_server {
    ($module:ident, $store:ident, $variable:literal, $reason:literal) => {
        mod $module {
            use std::sync::Arc;

            use mqguard::idempotency::{$store, Store};

            fn unique() -> Arc<dyn Store> {
                let url = std::env::var($variable).expect(concat!($variable, " is set: `cargo xtask test` does so"));
                Arc::new($store::new(&url).expect("a usable URL"))
            }

            suite!([
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                #[ignore = $reason]
            ] unique());

            mod state_machine {
                use super::{Arc, Store};

                fn log() -> Arc<dyn Store> {
                    super::unique().state_machine().expect("it has one")
                }

                suite!([
                    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                    #[ignore = $reason]
                ] log());
            }
        }
    };
}

#[cfg(feature = "mysql")]
on_server!(mariadb, MySqlStore, "MQGUARD_TEST_MARIADB", "needs MariaDB: cargo xtask test");
#[cfg(feature = "postgres")]
on_server!(postgres, PostgresStore, "MQGUARD_TEST_POSTGRES", "needs PostgreSQL: cargo xtask test");

#[cfg(feature = "sqlite")]
mod sqlite {
    use std::ops::Deref;
    use std::sync::Arc;

    use mqguard::idempotency::{SqliteStore, Store};
    use tempfile::TempDir;

    /// A store in a file of its own, which ends with it.
    struct InFile {
        store: Arc<dyn Store>,
        _directory: TempDir,
    }

    impl InFile {
        fn new(mode: fn(Arc<dyn Store>) -> Arc<dyn Store>) -> Self {
            let directory = tempfile::tempdir().expect("a directory");
            let url = format!("sqlite:{}", directory.path().join("records.db").display());
            Self { store: mode(Arc::new(SqliteStore::new(&url).expect("a usable URL"))), _directory: directory }
        }
    }

    impl Deref for InFile {
        type Target = Arc<dyn Store>;

        fn deref(&self) -> &Arc<dyn Store> {
            &self.store
        }
    }

    suite!([#[tokio::test(flavor = "multi_thread", worker_threads = 2)]] InFile::new(|store| store));

    mod state_machine {
        use super::InFile;

        suite!([#[tokio::test(flavor = "multi_thread", worker_threads = 2)]] InFile::new(|store| store.state_machine().expect("it has one")));
    }
}
