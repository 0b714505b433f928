//! The metrics and log lines of one endpoint.

use std::time::Duration;

use prometheus::{Histogram, IntCounter, IntGauge};

use crate::metrics::Metrics;
use tollgate_core::decide::guardrail::{Answer, ProviderError};

use super::breaker::Transition;
use super::fault::Fault;

/// The metrics of one endpoint, with its name for the log.
#[derive(Debug)]
pub(super) struct Meters {
    provider: String,
    duration: Histogram,
    pub(super) retries: IntCounter,
    pub(super) in_flight: IntGauge,
    pub(super) queued: IntGauge,
    circuit_open: IntGauge,
}

impl Meters {
    /// Returns the meters of the provider of this name. All of its series are shown at once, as 0.
    pub(super) fn new(metrics: &Metrics, provider: &str) -> Self {
        let label = [provider];
        Self {
            provider: provider.to_owned(),
            duration: metrics.provider_duration.with_label_values(&label),
            retries: metrics.provider_retries.with_label_values(&label),
            in_flight: metrics.provider_in_flight.with_label_values(&label),
            queued: metrics.provider_queued.with_label_values(&label),
            circuit_open: metrics.provider_circuit_open.with_label_values(&label),
        }
    }

    /// Returns the provider's name.
    pub(super) fn provider(&self) -> &str {
        &self.provider
    }

    /// Records how long a question took. Questions that were refused at once are left out: they would hide how long answers take.
    pub(super) fn ended(&self, answer: &Answer, after: Duration) {
        if !matches!(answer, Err(ProviderError::Overloaded | ProviderError::CircuitOpen)) {
            self.duration.observe(after.as_secs_f64());
        }
    }

    /// Sets the gauge that shows whether the circuit is open. Call it in the order of the transitions.
    pub(super) fn show(&self, transition: Transition) {
        self.circuit_open.set(i64::from(transition != Transition::Closed));
    }

    /// Logs a transition, with the fault that caused it.
    pub(super) fn log(&self, transition: Transition, fault: Option<&Fault>) {
        let provider = self.provider.as_str();
        let error = fault.map_or("none", |fault| fault.error().as_str());
        match transition {
            Transition::Opened => {
                let cause = fault.map_or("", Fault::cause);
                tracing::warn!(provider, error, cause, "a policy server failed too often and is left alone for a while");
            }
            Transition::Reopened => tracing::debug!(provider, error, "a policy server was tried and is left alone again"),
            Transition::Closed => tracing::info!(provider, "a policy server is back"),
        }
    }
}

/// Adds one to a gauge for as long as this value lives.
#[derive(Debug)]
pub(super) struct Counted(IntGauge);

impl Counted {
    pub(super) fn new(gauge: &IntGauge) -> Self {
        gauge.inc();
        Self(gauge.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.dec();
    }
}
