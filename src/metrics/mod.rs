//! Metrics: every name in one place, and the handles that the shell counts with.

mod catalog;

pub use catalog::{CATALOG, Kind, Spec};

use prometheus::{Encoder, Histogram, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Registry, TextEncoder};

/// All metrics of the process. Fields are named as in the catalogue, without prefix and unit.
#[derive(Debug, Clone)]
pub struct Metrics {
    registry: Registry,
    /// Events consumed by type; `unreadable` for dead letters.
    pub events: IntCounterVec,
    /// Verdicts by what decided, action and code.
    pub verdicts: IntCounterVec,
    /// Time from record to verdict bytes.
    pub decision_duration: Histogram,
    /// Event time to acknowledged verdict.
    pub event_to_verdict: Histogram,
    /// Dead letters by reason.
    pub dead_letters: IntCounterVec,
    /// Dead letters that the broker would not take whole.
    pub dead_letters_without_value: IntCounter,
    /// Records that stand on another partition than their key hashes to.
    pub misplaced_records: IntCounter,
    /// Replies by outcome.
    pub replies: IntCounterVec,
    /// Guardrail provider calls by provider and outcome.
    pub provider_calls: IntCounterVec,
    /// Guardrail provider errors by provider.
    pub guardrail_errors: IntCounterVec,
    /// Time from a question for a policy server to its answer or error.
    pub provider_duration: HistogramVec,
    /// Questions asked again, by provider.
    pub provider_retries: IntCounterVec,
    /// Questions on their way to a policy server.
    pub provider_in_flight: IntGaugeVec,
    /// Questions that wait for their turn with a policy server.
    pub provider_queued: IntGaugeVec,
    /// 1 while a policy server is left alone.
    pub provider_circuit_open: IntGaugeVec,
    /// Records behind the end of a partition.
    pub lag_records: IntGaugeVec,
    /// Age of the last consumed record while there is lag.
    pub lag_seconds: IntGaugeVec,
    /// Publications that are not acknowledged.
    pub in_flight: IntGaugeVec,
    /// Events that wait for a policy server's answer, or behind one that does.
    pub waiting_events: IntGaugeVec,
    /// Bytes of these events.
    pub waiting_bytes: IntGaugeVec,
    /// Partitions assigned to a member.
    pub assigned_partitions: IntGaugeVec,
    /// Rebalances by kind.
    pub rebalances: IntCounterVec,
    /// Records that the state knew already.
    pub redelivered_records: IntCounter,
    /// Checkpoints by outcome.
    pub checkpoints: IntCounterVec,
    /// Time to write a checkpoint.
    pub checkpoint_duration: Histogram,
    /// State records written.
    pub checkpoint_records: IntCounter,
    /// Bytes of state written.
    pub checkpoint_bytes: IntCounter,
    /// Failed checkpoints, and with them offset commits.
    pub commit_failures: IntCounter,
    /// Failed publications by topic role.
    pub publish_failures: IntCounterVec,
    /// Times a member had to start over.
    pub member_restarts: IntCounter,
    /// Times a member stopped taking records because too many publications waited.
    pub backpressure: IntCounter,
    /// Threads remembered.
    pub live_threads: IntGaugeVec,
    /// Bytes of remembered threads.
    pub state_bytes: IntGaugeVec,
    /// Threads let go of, by reason.
    pub departed_threads: IntCounterVec,
    /// Time to restore a partition's state.
    pub restore_duration: HistogramVec,
    /// Failed restores by reason.
    pub restore_failures: IntCounterVec,
    /// State records read.
    pub restore_records: IntCounter,
    /// Bytes of state read.
    pub restore_bytes: IntCounter,
    /// State records that a running restore has still to read.
    pub restore_remaining_records: IntGaugeVec,
    /// Seconds that a running restore will still take.
    pub restore_eta_seconds: IntGaugeVec,
    /// Partitions that wait for their state.
    pub unrestored_partitions: IntGaugeVec,
    /// Control records applied, by type.
    pub controls_applied: IntCounterVec,
    /// Control records refused, by code.
    pub control_rejections: IntCounterVec,
    /// Controls in force, by type.
    pub controls: IntGaugeVec,
    /// Time from a control record's timestamp until it was in force.
    pub control_delay: Histogram,
    /// Control records that are not applied.
    pub controls_lag_records: IntGauge,
    /// Time since the brokers of the controls were heard of.
    pub controls_stale_seconds: IntGauge,
    /// Times reading the controls failed.
    pub control_feed_restarts: IntCounter,
    /// Always 1, with the policy's version as label.
    pub policy_info: IntGaugeVec,
    /// 1 while every member has its assignment.
    pub ready: IntGauge,
}

/// A metric could not be made: two of the same name, or labels that do not fit. A test makes them all.
pub type MetricsError = prometheus::Error;

impl Metrics {
    /// Registers every metric of the catalogue.
    ///
    /// # Errors
    /// [`MetricsError`] if the catalogue contradicts itself.
    pub fn new() -> Result<Self, MetricsError> {
        let registry = Registry::new();
        let make = Maker { registry: &registry };
        Ok(Self {
            events: make.counters("tollgate_events_consumed_total")?,
            verdicts: make.counters("tollgate_verdicts_total")?,
            decision_duration: make.histogram("tollgate_decision_duration_seconds")?,
            event_to_verdict: make.histogram("tollgate_event_to_verdict_seconds")?,
            dead_letters: make.counters("tollgate_dead_letters_total")?,
            dead_letters_without_value: make.counter("tollgate_dead_letters_without_value_total")?,
            misplaced_records: make.counter("tollgate_misplaced_records_total")?,
            replies: make.counters("tollgate_replies_total")?,
            provider_calls: make.counters("tollgate_guardrail_provider_calls_total")?,
            guardrail_errors: make.counters("tollgate_guardrail_errors_total")?,
            provider_duration: make.histograms("tollgate_provider_duration_seconds")?,
            provider_retries: make.counters("tollgate_provider_retries_total")?,
            provider_in_flight: make.gauges("tollgate_provider_in_flight")?,
            provider_queued: make.gauges("tollgate_provider_queued")?,
            provider_circuit_open: make.gauges("tollgate_provider_circuit_open")?,
            lag_records: make.gauges("tollgate_lag_records")?,
            lag_seconds: make.gauges("tollgate_lag_seconds")?,
            in_flight: make.gauges("tollgate_in_flight")?,
            waiting_events: make.gauges("tollgate_waiting_events")?,
            waiting_bytes: make.gauges("tollgate_waiting_bytes")?,
            assigned_partitions: make.gauges("tollgate_assigned_partitions")?,
            rebalances: make.counters("tollgate_rebalances_total")?,
            redelivered_records: make.counter("tollgate_redelivered_records_total")?,
            checkpoints: make.counters("tollgate_checkpoints_total")?,
            checkpoint_duration: make.histogram("tollgate_checkpoint_duration_seconds")?,
            checkpoint_records: make.counter("tollgate_checkpoint_records_total")?,
            checkpoint_bytes: make.counter("tollgate_checkpoint_bytes_total")?,
            commit_failures: make.counter("tollgate_commit_failures_total")?,
            publish_failures: make.counters("tollgate_publish_failures_total")?,
            member_restarts: make.counter("tollgate_member_restarts_total")?,
            backpressure: make.counter("tollgate_backpressure_total")?,
            live_threads: make.gauges("tollgate_live_threads")?,
            state_bytes: make.gauges("tollgate_state_bytes")?,
            departed_threads: make.counters("tollgate_departed_threads_total")?,
            restore_duration: make.histograms("tollgate_restore_duration_seconds")?,
            restore_failures: make.counters("tollgate_restore_failures_total")?,
            restore_records: make.counter("tollgate_restore_records_total")?,
            restore_bytes: make.counter("tollgate_restore_bytes_total")?,
            restore_remaining_records: make.gauges("tollgate_restore_remaining_records")?,
            restore_eta_seconds: make.gauges("tollgate_restore_eta_seconds")?,
            unrestored_partitions: make.gauges("tollgate_unrestored_partitions")?,
            controls_applied: make.counters("tollgate_controls_applied_total")?,
            control_rejections: make.counters("tollgate_control_rejections_total")?,
            controls: make.gauges("tollgate_controls")?,
            control_delay: make.histogram("tollgate_control_delay_seconds")?,
            controls_lag_records: make.gauge("tollgate_controls_lag_records")?,
            controls_stale_seconds: make.gauge("tollgate_controls_stale_seconds")?,
            control_feed_restarts: make.counter("tollgate_control_feed_restarts_total")?,
            policy_info: make.gauges("tollgate_policy_info")?,
            ready: make.gauge("tollgate_ready")?,
            registry,
        })
    }

    /// The text of `/metrics`.
    #[must_use]
    pub fn render(&self) -> Vec<u8> {
        let mut text = Vec::new();
        // Encoding into memory fails only for a metric without samples, which `gather` leaves out.
        let _infallible = TextEncoder::new().encode(&self.registry.gather(), &mut text);
        text
    }
}

/// Makes metrics by their catalogue entry, so that a name without one cannot be registered.
struct Maker<'r> {
    registry: &'r Registry,
}

impl Maker<'_> {
    fn spec(&self, name: &str) -> Result<&'static Spec, MetricsError> {
        let spec = CATALOG.iter().find(|spec| spec.name == name);
        spec.ok_or_else(|| prometheus::Error::Msg(format!("{name} is not in the catalogue")))
    }

    fn register<C: prometheus::core::Collector + Clone + 'static>(&self, collector: C) -> Result<C, MetricsError> {
        self.registry.register(Box::new(collector.clone()))?;
        Ok(collector)
    }

    fn counter(&self, name: &str) -> Result<IntCounter, MetricsError> {
        let spec = self.spec(name)?;
        self.register(IntCounter::new(spec.name, spec.help)?)
    }

    fn counters(&self, name: &str) -> Result<IntCounterVec, MetricsError> {
        let spec = self.spec(name)?;
        self.register(IntCounterVec::new(prometheus::Opts::new(spec.name, spec.help), spec.labels)?)
    }

    fn gauges(&self, name: &str) -> Result<IntGaugeVec, MetricsError> {
        let spec = self.spec(name)?;
        self.register(IntGaugeVec::new(prometheus::Opts::new(spec.name, spec.help), spec.labels)?)
    }

    fn gauge(&self, name: &str) -> Result<IntGauge, MetricsError> {
        let spec = self.spec(name)?;
        self.register(IntGauge::new(spec.name, spec.help)?)
    }

    fn histogram(&self, name: &str) -> Result<Histogram, MetricsError> {
        self.register(Histogram::with_opts(self.histogram_opts(name)?)?)
    }

    fn histograms(&self, name: &str) -> Result<HistogramVec, MetricsError> {
        let labels = self.spec(name)?.labels;
        self.register(HistogramVec::new(self.histogram_opts(name)?, labels)?)
    }

    fn histogram_opts(&self, name: &str) -> Result<prometheus::HistogramOpts, MetricsError> {
        let spec = self.spec(name)?;
        let buckets = match spec.kind {
            Kind::Histogram(buckets) => buckets.to_vec(),
            _ => return Err(prometheus::Error::Msg(format!("{name} is no histogram"))),
        };
        Ok(prometheus::HistogramOpts::new(spec.name, spec.help).buckets(buckets))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_metric_can_be_made_and_is_made() {
        let metrics = Metrics::new().unwrap();
        metrics.events.with_label_values(&["tool_call"]).inc();
        assert!(String::from_utf8(metrics.render()).unwrap().contains("tollgate_events_consumed_total{type=\"tool_call\"} 1"));
        for spec in CATALOG {
            // A second metric of the same name and labels is refused, so one that can be registered was not made.
            let again = IntCounterVec::new(prometheus::Opts::new(spec.name, spec.help), spec.labels).unwrap();
            assert!(metrics.registry.register(Box::new(again)).is_err(), "{} is in the catalogue and not made", spec.name);
        }
    }
}
