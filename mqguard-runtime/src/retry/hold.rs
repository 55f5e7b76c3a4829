//! Hold queues: where a message waits for its next run.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::broker::{DeadLetterTarget, Queue, QueueType};

/// The hold queue for a delay of the policy: declared at start, kept for ever. All that is in it waits equally long, so it is first in,
/// first out and nothing waits behind something longer.
pub(crate) fn permanent(queue: &str, queue_type: QueueType, delay: Duration) -> Queue {
    hold(format!("{queue}.retry.{}", label(delay)), queue, queue_type, delay)
}

/// How long one on-demand hold queue is published to.
const WINDOW: Duration = Duration::from_secs(3600);
/// How much longer than necessary it lives: covers clocks of hosts that differ.
const MARGIN: Duration = Duration::from_secs(3600);

/// The hold queue for any other delay, which is rounded up to the grid: declared when needed, gone some hours after the last message.
///
/// A queue's expiry counts from its first declaration and is not renewed by publishing (nor, on quorum queues, by declaring again:
/// rabbitmq-server issue 5894), so a queue is published to only during the hour that its name tells, and outlives the last message.
pub(crate) fn on_demand(queue: &str, queue_type: QueueType, delay: Duration, now: SystemTime) -> Queue {
    let delay = grid(delay);
    let hour = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs() / WINDOW.as_secs();
    let name = format!("{queue}.retry.{}.h{hour}", label(delay));
    Queue { expires: Some(WINDOW + delay + MARGIN), ..hold(name, queue, queue_type, delay) }
}

fn hold(name: String, queue: &str, queue_type: QueueType, delay: Duration) -> Queue {
    Queue {
        message_ttl: Some(delay),
        // Back by name, never through the exchange that the message first came from: that would multiply it.
        dead_letters: Some(DeadLetterTarget { exchange: String::new(), routing_key: queue.to_owned() }),
        ..Queue::new(name, queue_type)
    }
}

/// Rounds up to at most two significant digits of milliseconds: at most 90 values per power of ten.
fn grid(delay: Duration) -> Duration {
    let millis = u64::try_from(delay.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX).max(1);
    let unit = 10u64.pow(millis.ilog10().saturating_sub(1));
    Duration::from_millis(millis.div_ceil(unit).saturating_mul(unit))
}

/// A delay in its largest whole unit: `250ms`, `5s`, `1m`, `2h`, `1d`.
fn label(delay: Duration) -> String {
    let millis = delay.as_millis();
    let units = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000)];
    match units.into_iter().find(|(_, size)| millis.is_multiple_of(*size) && millis > 0) {
        Some((unit, size)) => format!("{}{unit}", millis / size),
        None => format!("{millis}ms"),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_tell_queue_and_delay() {
        let name = |ms| permanent("order.process", QueueType::Quorum, Duration::from_millis(ms)).name;
        let names = [5000, 250, 60_000, 90_000, 7_200_000, 86_400_000].map(name);
        let expected = ["5s", "250ms", "1m", "90s", "2h", "1d"].map(|label| format!("order.process.retry.{label}"));
        assert_eq!(names, expected);
    }

    #[test]
    fn on_demand_queues_live_past_their_last_message() {
        let now = UNIX_EPOCH + Duration::from_secs(5 * 3600 + 1);
        let queue = on_demand("q", QueueType::Classic, Duration::from_millis(1234), now);
        assert_eq!(queue.name, "q.retry.1300ms.h5");
        assert_eq!(queue.message_ttl, Some(Duration::from_millis(1300)));
        assert_eq!(queue.expires, Some(Duration::from_millis(2 * 3_600_000 + 1300)));
        assert_eq!(queue.dead_letters, Some(DeadLetterTarget { exchange: String::new(), routing_key: "q".into() }));
    }

    proptest! {
        #[test]
        fn the_grid_only_lengthens_and_by_a_tenth_at_most(nanos in 1u64..4_000_000_000_000_000) {
            let delay = Duration::from_nanos(nanos);
            let rounded = grid(delay);
            prop_assert!(rounded >= delay);
            prop_assert!(rounded <= delay.mul_f64(1.1) + Duration::from_millis(1));
            prop_assert_eq!(grid(rounded), rounded);
        }
    }

    #[test]
    fn the_grid_has_few_values() {
        let values: std::collections::BTreeSet<_> = (5000..=6000).map(|ms| grid(Duration::from_millis(ms))).collect();
        assert_eq!(values.len(), 11);
    }
}
