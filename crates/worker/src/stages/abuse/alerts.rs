//! Alerts that wait for the controls of their record, in the order of the fold.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;
use tollgate_abuse::AlertRecord;
use tollgate_core::event::record::Partition;

use crate::outbox::{Delivery, Waiter};

/// The alerts that are not published yet, by partition.
#[derive(Debug, Default)]
pub(super) struct WaitingAlerts {
    partitions: FxHashMap<Partition, VecDeque<OfRecord>>,
}

/// The alerts of one record.
#[derive(Debug)]
struct OfRecord {
    waiter: Waiter,
    /// How many controls of the record are not acknowledged that the alerts wait for.
    awaited: usize,
    alerts: Vec<AlertRecord>,
}

impl WaitingAlerts {
    /// Adds the alerts of a record that has this many controls.
    pub(super) fn add(&mut self, waiter: Waiter, controls: usize, alerts: Vec<AlertRecord>) {
        let awaited = if alerts.iter().any(|alert| alert.awaits_control) { controls } else { 0 };
        self.partitions.entry(waiter.partition).or_default().push_back(OfRecord { waiter, awaited, alerts });
    }

    /// Takes the acknowledgement of a control.
    pub(super) fn control_acknowledged(&mut self, delivery: &Delivery) {
        let Some(records) = self.partitions.get_mut(&delivery.partition) else { return };
        let is_its = |record: &&mut OfRecord| (record.waiter.offset, record.waiter.generation) == (delivery.offset, delivery.generation);
        if let Some(record) = records.iter_mut().find(is_its) {
            record.awaited = record.awaited.saturating_sub(1);
        }
    }

    /// Calls `publish` for the alerts that wait for nothing any more. Those behind a record that waits stay behind it.
    pub(super) fn release(&mut self, mut publish: impl FnMut(Waiter, AlertRecord)) {
        for records in self.partitions.values_mut() {
            while records.front().is_some_and(|record| record.awaited == 0)
                && let Some(record) = records.pop_front()
            {
                record.alerts.into_iter().for_each(|alert| publish(record.waiter, alert));
            }
        }
    }

    /// Drops the alerts of a partition, which its next owner publishes.
    pub(super) fn forget(&mut self, partition: Partition) {
        self.partitions.remove(&partition);
    }

    /// Returns how many records have alerts that wait.
    pub(super) fn records(&self) -> usize {
        self.partitions.values().map(VecDeque::len).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outbox::Role;
    use tollgate_core::event::record::Offset;

    fn waiter(offset: i64) -> Waiter {
        Waiter { partition: Partition(1), generation: 4, offset: Offset(offset) }
    }

    fn alert(key: &str, awaits_control: bool) -> AlertRecord {
        AlertRecord { key: key.to_owned(), value: Vec::new(), awaits_control }
    }

    fn acknowledged(offset: i64, generation: u64) -> Delivery {
        let (partition, offset) = (Partition(1), Offset(offset));
        Delivery { partition, generation, offset, role: Role::Control, event_time_ms: None, reductions: 0, shared: None }
    }

    fn released(alerts: &mut WaitingAlerts) -> Vec<String> {
        let mut keys = Vec::new();
        alerts.release(|_, alert| keys.push(alert.key));
        keys
    }

    #[test]
    fn no_alert_leaves_before_the_controls_of_its_record() {
        let mut alerts = WaitingAlerts::default();
        alerts.add(waiter(1), 2, vec![alert("warns", false)]);
        alerts.add(waiter(2), 2, vec![alert("suspends", true), alert("too", false)]);
        alerts.add(waiter(3), 0, vec![alert("behind", false)]);
        assert_eq!(released(&mut alerts), ["warns"], "it says nothing of a suspension");
        alerts.control_acknowledged(&acknowledged(2, 4));
        alerts.control_acknowledged(&acknowledged(2, 3));
        assert_eq!((released(&mut alerts).len(), alerts.records()), (0, 2), "one is of an assignment before");
        alerts.control_acknowledged(&acknowledged(2, 4));
        assert_eq!(released(&mut alerts), ["suspends", "too", "behind"], "the order of the fold");
        alerts.add(waiter(5), 1, vec![alert("lost", true)]);
        alerts.forget(Partition(1));
        assert_eq!(alerts.records(), 0);
    }
}
