//! The metrics of further stages of a process: the same families as those of the deciding stage, with the label `stage`.
//!
//! Two stages of a process both have a partition 0 and a member 0. A page has each family once, so the series of all stages are put together
//! under one name. What only one stage counts, or the process, is left out of the others.

use std::sync::{Mutex, PoisonError};

use prometheus::Registry;
use prometheus::proto::MetricFamily;

/// The value of the label `stage` of the stage that counts signals.
pub const ABUSE: &str = "abuse";

/// The metrics that every stage counts, in the order of the list.
#[rustfmt::skip]
pub const STAGED: &[&str] = &[
    "tollgate_abuse_clock_lag_seconds", "tollgate_misplaced_records_total", "tollgate_rebalances_total",
    "tollgate_redelivered_records_total", "tollgate_checkpoints_total", "tollgate_checkpoint_duration_seconds",
    "tollgate_checkpoint_records_total", "tollgate_checkpoint_bytes_total", "tollgate_commit_failures_total",
    "tollgate_publish_failures_total", "tollgate_member_restarts_total", "tollgate_backpressure_total", "tollgate_partition_yields_total",
    "tollgate_restore_duration_seconds", "tollgate_restore_failures_total", "tollgate_restore_records_total",
    "tollgate_restore_bytes_total", "tollgate_event_partitions", "tollgate_lag_records", "tollgate_lag_seconds", "tollgate_live_threads",
    "tollgate_state_bytes", "tollgate_restore_remaining_records", "tollgate_restore_eta_seconds", "tollgate_in_flight",
    "tollgate_assigned_partitions", "tollgate_unrestored_partitions",
];

/// The registries of further stages.
#[derive(Debug, Default)]
pub(super) struct Stages {
    registries: Mutex<Vec<Registry>>,
}

impl Stages {
    pub(super) fn add(&self, registry: Registry) {
        self.registries.lock().unwrap_or_else(PoisonError::into_inner).push(registry);
    }

    /// Returns the families of a registry, with the series that further stages have of them.
    pub(super) fn gather(&self, registry: &Registry) -> Vec<MetricFamily> {
        let mut families = registry.gather();
        let registries = self.registries.lock().unwrap_or_else(PoisonError::into_inner);
        for family in registries.iter().flat_map(Registry::gather).filter(|family| STAGED.contains(&family.name())) {
            match families.binary_search_by(|other| other.name().cmp(family.name())) {
                Ok(at) => {
                    if let Some(known) = families.get_mut(at) {
                        family.get_metric().iter().for_each(|metric| known.mut_metric().push(metric.clone()));
                    }
                }
                Err(at) => families.insert(at, family),
            }
        }
        families
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::{CATALOG, Metrics};

    #[test]
    fn stages_have_series_of_their_own_under_one_name() {
        let metrics = Metrics::new().unwrap();
        let abuse = metrics.for_stage("abuse").unwrap();
        let (deciding, counting) = (metrics.partition(0), abuse.partition(0));
        deciding.lag_records.set(3);
        counting.lag_records.set(5);
        counting.live_threads.set(7);
        abuse.checkpoints.with_label_values(&["written"]).inc();
        abuse.replies.with_label_values(&["published"]).inc();
        let text = String::from_utf8(metrics.render()).unwrap();
        for line in [
            "tollgate_lag_records{partition=\"0\"} 3",
            "tollgate_lag_records{partition=\"0\",stage=\"abuse\"} 5",
            "tollgate_live_threads{partition=\"0\",stage=\"abuse\"} 7",
            "tollgate_checkpoints_total{outcome=\"written\",stage=\"abuse\"} 1",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
        }
        assert!(!text.contains("tollgate_replies_total{"), "no stage but the deciding one replies");
        let heads = |name: &str| text.lines().filter(|line| *line == format!("# TYPE {name} gauge")).count();
        assert_eq!((heads("tollgate_lag_records"), heads("tollgate_live_threads")), (1, 1));
        drop((deciding, counting));
        assert!(!String::from_utf8(metrics.render()).unwrap().contains("tollgate_lag_records{"));
    }

    #[test]
    fn what_stages_count_is_in_the_list() {
        let missing: Vec<_> = STAGED.iter().filter(|name| !CATALOG.iter().any(|spec| spec.name == **name)).collect();
        assert!(missing.is_empty(), "{missing:?}");
    }
}
