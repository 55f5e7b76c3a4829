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
#[cfg(feature = "rabbitmq")]
#[path = "broker_conformance/rabbitmq_only.rs"]
mod rabbitmq_only;
#[path = "broker_conformance/routing.rs"]
mod routing;
#[cfg(feature = "rabbitmq")]
#[path = "broker_conformance/server.rs"]
mod server;
#[path = "broker_conformance/settle.rs"]
mod settle;
#[cfg(feature = "rabbitmq")]
#[path = "broker_conformance/unreachable.rs"]
mod unreachable;

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
                    crate::server::rabbitmq(crate::$subject::$test).await;
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
    consume::{
        deliveries_come_in_order,
        a_message_wakes_who_waits_for_it,
        no_more_than_the_prefetch_are_out,
        one_slow_delivery_holds_up_nothing,
        two_subscriptions_share_a_queue,
        giving_up_waiting_loses_nothing,
        what_is_ready_makes_a_queue_not_empty,
    },
    settle::{
        what_is_acked_is_gone,
        what_is_handed_back_comes_again,
        what_is_handed_back_keeps_its_place_in_a_classic_queue,
        a_receipt_that_is_dropped_hands_back,
        closing_hands_back_what_is_out,
        dropping_the_subscription_hands_back_what_is_out,
        closing_waits_for_the_acks,
        a_settlement_after_the_close_has_no_effect,
        waiting_for_the_end_of_a_receipt_ends_with_the_subscription,
        cancelling_hands_back_what_was_not_taken,
        nothing_comes_after_cancelling,
        the_delivery_limit_dead_letters,
    },
    dead_letter::{
        a_message_waits_its_time,
        a_long_wait_does_not_hold_up_a_short_one,
        the_history_is_told,
        every_hop_adds_to_the_history,
        a_message_may_have_a_time_of_its_own,
        the_shorter_of_two_times_counts,
        without_a_target_what_expires_is_gone,
        what_is_out_does_not_expire,
    },
    content::{
        properties_and_headers_of_every_type_arrive,
        properties_and_headers_survive_a_dead_letter_hop,
        a_message_with_nothing_in_it_arrives,
        a_message_is_kept_on_disk_unless_it_says_otherwise,
        bodies_are_exact,
    },
}
