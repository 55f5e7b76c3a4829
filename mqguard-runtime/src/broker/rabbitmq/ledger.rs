use std::collections::BTreeMap;

/// Which tags of a channel are settled. Tags count from 1 without gaps.
#[derive(Default)]
pub(super) struct Ledger {
    /// All up to here are settled.
    settled_to: u64,
    /// What is settled beyond that, as runs from first to last: there are never more of them than deliveries out.
    beyond: BTreeMap<u64, u64>,
    /// Acked and not yet sent.
    acked: Vec<u64>,
}

/// What is to be sent.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Acks {
    /// A tag up to which everything is settled, and how many acks that covers.
    pub(super) up_to: Option<(u64, usize)>,
    /// Tags beyond, behind one that is still out: they do not wait for it, or a slow delivery would eat up the prefetch.
    pub(super) singles: Vec<u64>,
}

impl Acks {
    pub(super) fn len(&self) -> usize {
        self.singles.len() + self.up_to.map_or(0, |(_, count)| count)
    }
}

impl Ledger {
    pub(super) fn ack(&mut self, tag: u64) {
        self.acked.push(tag);
        self.settled(tag);
    }

    pub(super) fn settled(&mut self, tag: u64) {
        if tag == self.settled_to + 1 {
            self.settled_to = self.beyond.remove(&(tag + 1)).unwrap_or(tag);
            return;
        }
        let first = match self.beyond.range(..tag).next_back() {
            Some((&first, &last)) if last + 1 == tag => first,
            _ => tag,
        };
        let last = self.beyond.remove(&(tag + 1)).unwrap_or(tag);
        self.beyond.insert(first, last);
    }

    /// Takes the acks that came since the last call.
    pub(super) fn take(&mut self) -> Acks {
        let mut acks = Acks::default();
        for tag in self.acked.drain(..) {
            if tag <= self.settled_to {
                let (highest, count) = acks.up_to.unwrap_or((0, 0));
                // The tag of the ack itself has to be one that is still out: the broker closes the channel over any other.
                acks.up_to = Some((highest.max(tag), count + 1));
            } else {
                acks.singles.push(tag);
            }
        }
        acks
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn acks_in_order_become_one() {
        let mut ledger = Ledger::default();
        (1..=5).for_each(|tag| ledger.ack(tag));
        assert_eq!(ledger.take(), Acks { up_to: Some((5, 5)), singles: vec![] });
        assert_eq!(ledger.take(), Acks::default());
    }

    #[test]
    fn acks_behind_a_slow_delivery_do_not_wait() {
        let mut ledger = Ledger::default();
        [1, 3, 4].into_iter().for_each(|tag| ledger.ack(tag));
        assert_eq!(ledger.take(), Acks { up_to: Some((1, 1)), singles: vec![3, 4] });
        ledger.ack(2);
        ledger.ack(5);
        assert_eq!(ledger.take(), Acks { up_to: Some((5, 2)), singles: vec![] });
    }

    #[test]
    fn a_tag_that_was_handed_back_is_never_the_tag_of_an_ack() {
        let mut ledger = Ledger::default();
        ledger.ack(1);
        ledger.ack(2);
        ledger.settled(3);
        assert_eq!(ledger.take(), Acks { up_to: Some((2, 2)), singles: vec![] });
    }

    #[test]
    fn a_slow_delivery_costs_no_memory() {
        let mut ledger = Ledger::default();
        (2..=100_000).for_each(|tag| ledger.ack(tag));
        assert_eq!(ledger.take().singles.len(), 99_999);
        assert_eq!(ledger.beyond.len(), 1);
        ledger.ack(1);
        assert_eq!(ledger.take().up_to, Some((1, 1)));
        assert_eq!((ledger.settled_to, ledger.beyond.len()), (100_000, 0));
    }

    /// A channel as RabbitMQ keeps it.
    #[derive(Default)]
    struct Channel {
        out: BTreeSet<u64>,
        acked: BTreeSet<u64>,
    }

    impl Channel {
        fn ack(&mut self, tag: u64, multiple: bool) {
            assert!(self.out.contains(&tag), "406: unknown delivery tag {tag}");
            let tags: Vec<_> = self.out.iter().copied().filter(|&out| out == tag || multiple && out < tag).collect();
            for tag in tags {
                self.out.remove(&tag);
                self.acked.insert(tag);
            }
        }
    }

    proptest! {
        #[test]
        fn exactly_what_was_acked_is_acked(
            order in Just((1..=40u64).collect::<Vec<_>>()).prop_shuffle(),
            acks in proptest::collection::vec(any::<bool>(), 40),
            batches in proptest::collection::vec(1..8usize, 40),
            settled in 0..=40usize,
        ) {
            let mut ledger = Ledger::default();
            let mut channel = Channel { out: (1..=40).collect(), ..Channel::default() };
            let mut expected = BTreeSet::new();
            let (mut rest, mut batches) = (&order[..settled], batches.into_iter().cycle());
            while !rest.is_empty() {
                let (batch, tail) = rest.split_at(batches.next().unwrap().min(rest.len()));
                for &tag in batch {
                    if acks[tag as usize - 1] {
                        ledger.ack(tag);
                        expected.insert(tag);
                    } else {
                        ledger.settled(tag);
                        prop_assert!(channel.out.remove(&tag));
                    }
                }
                let sent = ledger.take();
                if let Some((tag, count)) = sent.up_to {
                    channel.ack(tag, count > 1);
                }
                sent.singles.into_iter().for_each(|tag| channel.ack(tag, false));
                prop_assert_eq!(&channel.acked, &expected);
                rest = tail;
            }
        }
    }
}
