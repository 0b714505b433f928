//! Publications that several records wait for: who waits for each. Such a publication may be waited for by nobody.

use rustc_hash::FxHashMap;
use tollgate_core::event::record::{Offset, Partition};

use super::{Delivery, Role, Waiter};

/// The shared publications that are on their way.
#[derive(Debug, Default)]
pub(super) struct Shared {
    waiters: FxHashMap<u64, Vec<Waiter>>,
    /// The number of the last one.
    last: u64,
}

impl Shared {
    /// Returns the delivery of a publication that these records wait for.
    pub(super) fn begin(&mut self, role: Role, waiters: Vec<Waiter>) -> Delivery {
        self.last += 1;
        self.waiters.insert(self.last, waiters);
        let (partition, offset) = (Partition(-1), Offset(-1));
        Delivery { partition, generation: 0, offset, role, event_time_ms: None, reductions: 0, shared: Some(self.last) }
    }

    /// Returns whether none is on its way.
    pub(super) fn is_empty(&self) -> bool {
        self.waiters.is_empty()
    }

    /// Adds the acknowledgements that a delivery stands for: one of each record that waits for it.
    pub(super) fn end(&mut self, delivery: Delivery, finished: &mut Vec<Delivery>) {
        let Some(number) = delivery.shared else { return finished.push(delivery) };
        let waiters = self.waiters.remove(&number).unwrap_or_default();
        finished.extend(waiters.into_iter().map(|waiter| waiter.delivery(delivery.role, None)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_acknowledgement_is_one_of_each_record_that_waits_and_of_no_other() {
        let waiter = |partition, offset| Waiter { partition: Partition(partition), generation: 7, offset: Offset(offset) };
        let mut shared = Shared::default();
        let first = shared.begin(Role::Signals, vec![waiter(0, 5), waiter(0, 6), waiter(2, 1)]);
        let nobodys = shared.begin(Role::Signals, Vec::new());
        let own = waiter(1, 1).delivery(Role::Verdict, Some(3));
        let mut finished = Vec::new();
        shared.end(nobodys, &mut finished);
        assert!(finished.is_empty());
        shared.end(own, &mut finished);
        shared.end(first, &mut finished);
        let all = [own]
            .into_iter()
            .chain([(0, 5), (0, 6), (2, 1)].map(|(partition, offset)| waiter(partition, offset).delivery(Role::Signals, None)));
        assert_eq!(finished, all.collect::<Vec<_>>());
        shared.end(first, &mut finished);
        assert_eq!(finished.len(), 4, "it is acknowledged once");
    }
}
