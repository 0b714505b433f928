//! What is counted of the fold, by rule and outcome. Rules are configuration, so that their ids are bounded labels.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;
use serde::Deserialize;
use tollgate_abuse::{AbuseRules, FoldCounts, Folded, RuleCounts};
use tollgate_core::decide::signal::SignalRejection;
use tollgate_core::event::record::{Partition, Record};

use crate::metrics::{Metrics, PartitionMetrics};

/// How often it is logged that records cannot be read.
const UNREAD_INTERVAL: Duration = Duration::from_secs(60);

/// The counts of one member of the abuse stage.
#[derive(Debug)]
pub(super) struct FoldedCounts {
    /// The metrics of the process.
    metrics: Metrics,
    /// The metrics of the stage, which has partitions of its own.
    own: Metrics,
    rules: Arc<AbuseRules>,
    clocks: FxHashMap<Partition, ClockLag>,
    /// The rules that are paused, by partition.
    paused: FxHashMap<Partition, Vec<usize>>,
    unread: Unread,
}

#[derive(Debug)]
struct ClockLag {
    gauges: PartitionMetrics,
    lag_ms: Option<i64>,
}

/// The records that could not be read since it was last logged.
#[derive(Debug, Default)]
struct Unread {
    count: u64,
    last: Option<(Partition, i64, SignalRejection)>,
    logged: Option<Instant>,
}

/// What metrics show of an alert.
#[derive(Deserialize)]
struct AlertLabels<'a> {
    #[serde(default)]
    level: &'a str,
    #[serde(default)]
    status: &'a str,
}

impl FoldedCounts {
    pub(super) fn new(metrics: &Metrics, own: &Metrics, rules: &Arc<AbuseRules>) -> Self {
        let (clocks, paused, unread) = (FxHashMap::default(), FxHashMap::default(), Unread::default());
        Self { metrics: metrics.clone(), own: own.clone(), rules: Arc::clone(rules), clocks, paused, unread }
    }

    pub(super) fn partition_started(&mut self, partition: Partition) {
        self.clocks.insert(partition, ClockLag { gauges: self.own.partition(partition), lag_ms: None });
    }

    pub(super) fn partition_revoked(&mut self, partition: Partition) {
        self.clocks.remove(&partition);
        self.set_paused(partition, &[]);
    }

    /// Sets which rules are paused in a partition. The gauge is shared with the other members.
    fn set_paused(&mut self, partition: Partition, now: &[usize]) {
        let before = self.paused.get(&partition).map(Vec::as_slice).unwrap_or_default();
        if before == now {
            return;
        }
        let gauge = |at: &usize| self.rules.rules.get(*at).map(|rule| self.metrics.abuse_paused_rules.with_label_values(&[&rule.id]));
        before.iter().filter(|at| !now.contains(at)).filter_map(gauge).for_each(|gauge| gauge.dec());
        now.iter().filter(|at| !before.contains(at)).filter_map(gauge).for_each(|gauge| gauge.inc());
        self.paused.insert(partition, now.to_vec());
    }

    /// Counts what was folded of a record.
    pub(super) fn folded(&mut self, record: &Record<'_>, folded: &Folded) {
        let FoldCounts {
            applied,
            repeated,
            late,
            rejected,
            sources_reset,
            sources_silent,
            subjects_dropped,
            counters_dropped,
            rules,
            clock_lag_ms,
            ..
        } = &folded.counts;
        let metrics = &self.metrics;
        for (outcome, count) in [("applied", *applied), ("repeated", *repeated), ("late", *late)] {
            if count > 0 {
                metrics.abuse_signals.with_label_values(&[outcome]).inc_by(count);
            }
        }
        if let Some(rejection) = rejected {
            metrics.abuse_signals.with_label_values(&[rejection.as_str()]).inc();
            self.unread.count += 1;
            self.unread.last = Some((record.partition, record.offset.0, rejection.clone()));
        }
        for (change, count) in [("reset", *sources_reset), ("silent", *sources_silent)] {
            if count > 0 {
                metrics.abuse_sources.with_label_values(&[change]).inc_by(count);
                let partition = record.partition;
                tracing::warn!(%partition, count, change, "sources of signals began again, or are silent: the alerts topic names them");
            }
        }
        if *subjects_dropped > 0 {
            metrics.abuse_subjects_dropped.inc_by(*subjects_dropped);
        }
        if *counters_dropped > 0 {
            metrics.abuse_counters_dropped.inc_by(*counters_dropped);
        }
        rules.iter().for_each(|counts| self.rule(counts));
        // A record that cannot be read says nothing of the rules.
        if rejected.is_none() {
            self.set_paused(record.partition, &folded.counts.paused_rules);
        }
        if let (Some(lag_ms), Some(clock)) = (clock_lag_ms, self.clocks.get_mut(&record.partition)) {
            clock.lag_ms = Some(*lag_ms);
        }
    }

    /// Counts what a rule did.
    fn rule(&self, counts: &RuleCounts) {
        let (Some(rule), metrics) = (self.rules.rules.get(counts.rule), &self.metrics) else { return };
        let id = [rule.id.as_str()];
        for (metric, count) in [
            (&metrics.abuse_suppressed, counts.suppressed),
            (&metrics.abuse_exempt, counts.exempt),
            (&metrics.abuse_suspensions, counts.suspensions),
            (&metrics.abuse_paused, counts.paused),
        ] {
            if count > 0 {
                metric.with_label_values(&id).inc_by(count);
            }
        }
        if counts.firings > 0 {
            metrics.abuse_firings.with_label_values(&[&rule.id, rule.mode.as_str()]).inc_by(counts.firings);
        }
    }

    /// Counts an alert that is published.
    pub(super) fn alert(&self, value: &[u8]) {
        // What the fold wrote can be read; one that cannot be is counted all the same.
        let AlertLabels { level, status } = serde_json::from_slice(value).unwrap_or(AlertLabels { level: "", status: "" });
        self.metrics.abuse_alerts.with_label_values(&[level, status]).inc();
    }

    /// Logs once in a while that records cannot be read.
    pub(super) fn report_unread(&mut self, now: Instant) {
        let is_due = self.unread.logged.is_none_or(|at| now.duration_since(at) >= UNREAD_INTERVAL);
        if let Some((partition, offset, rejection)) = self.unread.last.take_if(|_| is_due) {
            let count = std::mem::take(&mut self.unread.count);
            self.unread.logged = Some(now);
            tracing::warn!(%partition, offset, count, "records of the signals topic cannot be read and count for nobody: {rejection}");
        }
    }

    pub(super) fn flush(&mut self) {
        for clock in self.clocks.values() {
            if let Some(lag_ms) = clock.lag_ms {
                clock.gauges.abuse_clock_lag.set(lag_ms.max(0) / 1_000);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tollgate_abuse::RuleCounts;
    use tollgate_core::event::record::Offset;

    #[test]
    fn what_is_folded_is_counted_by_outcome_and_rule() {
        let rules = tollgate_config::load(None, []).unwrap().abuse.rules;
        let id = rules.rules.first().unwrap().id.clone();
        let metrics = Metrics::new().unwrap();
        let own = metrics.for_stage("abuse").unwrap();
        let mut counts = FoldedCounts::new(&metrics, &own, &Arc::new(rules));
        let (topic, partition, offset) = ("tollgate.signals", Partition(2), Offset(7));
        let record = Record { topic, partition, offset, timestamp_ms: None, key: None, value: None, headers: &[] };
        let rule = RuleCounts { rule: 0, firings: 2, exempt: 1, ..RuleCounts::default() };
        let folded = FoldCounts {
            applied: 5,
            late: 1,
            rejected: Some(SignalRejection::Newer { found: 9 }),
            sources_reset: 1,
            rules: vec![rule],
            clock_lag_ms: Some(61_500),
            ..FoldCounts::default()
        };
        counts.partition_started(partition);
        counts.folded(&record, &Folded { counts: folded, ..Folded::default() });
        let paused = |paused_rules| Folded { counts: FoldCounts { paused_rules, ..FoldCounts::default() }, ..Folded::default() };
        counts.folded(&record, &paused(vec![0, 1]));
        counts.folded(&record, &paused(vec![0]));
        counts.folded(&Record { partition: Partition(3), ..record }, &paused(vec![0]));
        counts.alert(br#"{"level":"high","status":"firing"}"#);
        counts.report_unread(Instant::now());
        assert_eq!(counts.unread.count, 0);
        counts.flush();
        let text = String::from_utf8(metrics.render()).unwrap();
        for line in [
            "tollgate_abuse_signals_total{outcome=\"applied\"} 5".to_owned(),
            "tollgate_abuse_signals_total{outcome=\"late\"} 1".to_owned(),
            "tollgate_abuse_signals_total{outcome=\"newer\"} 1".to_owned(),
            "tollgate_abuse_sources_total{change=\"reset\"} 1".to_owned(),
            format!("tollgate_abuse_firings_total{{mode=\"alert\",rule=\"{id}\"}} 2"),
            format!("tollgate_abuse_exempt_total{{rule=\"{id}\"}} 1"),
            format!("tollgate_abuse_paused_rules{{rule=\"{id}\"}} 2"),
            "tollgate_abuse_alerts_total{level=\"high\",status=\"firing\"} 1".to_owned(),
            "tollgate_abuse_clock_lag_seconds{partition=\"2\",stage=\"abuse\"} 61".to_owned(),
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
        }
        counts.partition_revoked(partition);
        assert_eq!(metrics.abuse_paused_rules.with_label_values(&[&id]).get(), 1, "the other partition is still held");
        assert!(!String::from_utf8(metrics.render()).unwrap().contains("tollgate_abuse_clock_lag_seconds{"));
    }
}
