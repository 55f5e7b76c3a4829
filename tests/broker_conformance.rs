//! One suite that holds every broker to the same behaviour.
//!
//! The embedded broker runs it always, on tokio's paused clock. RabbitMQ runs it with `cargo xtask test`, which sets
//! `MQGUARD_TEST_RABBITMQ` to the URL of a server.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, unreachable_pub)]

#[path = "broker_conformance/consume.rs"]
mod consume;
#[path = "broker_conformance/content.rs"]
mod content;
#[path = "broker_conformance/dead_letter.rs"]
mod dead_letter;
#[path = "broker_conformance/declare.rs"]
mod declare;
#[path = "broker_conformance/harness.rs"]
mod harness;
#[path = "broker_conformance/publish.rs"]
mod publish;
#[path = "broker_conformance/routing.rs"]
mod routing;
#[path = "broker_conformance/settle.rs"]
mod settle;

/// Makes a test for each broker out of each part of the suite.
macro_rules! conformance {
    ($($subject:ident :: { $($test:ident),+ $(,)? }),+ $(,)?) => {
        mod memory {
            $(mod $subject {
                $(#[tokio::test(start_paused = true)]
                async fn $test() {
                    crate::harness::memory(crate::$subject::$test).await;
                })+
            })+
        }

        #[cfg(feature = "rabbitmq")]
        mod rabbitmq {
            $(mod $subject {
                $(#[tokio::test]
                #[ignore = "needs RabbitMQ: cargo xtask test"]
                async fn $test() {
                    crate::harness::rabbitmq(crate::$subject::$test).await;
                })+
            })+
        }
    };
}

conformance! {
    declare::{
        the_same_twice_changes_nothing,
        a_difference_is_named_with_both_values,
        another_type_is_a_difference,
        checking_finds_what_is_missing_and_ignores_arguments,
        skipping_does_nothing,
        a_binding_needs_both_ends,
        a_queue_that_nobody_uses_expires,
    },
    publish::{
        a_missing_queue_is_unroutable,
        a_missing_exchange_is_unroutable,
        an_exchange_that_routes_nowhere_is_unroutable,
        many_at_once_are_all_confirmed,
        results_are_not_mixed_up,
    },
    routing::{
        the_default_exchange_routes_by_queue_name,
        direct_routes_by_the_whole_key,
        fanout_routes_to_all,
        topic_routes_by_pattern,
        a_delivery_tells_exchange_and_key,
    },
}
