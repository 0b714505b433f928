//! Tests policy servers over real sockets: faults, limits, kept connections, the circuit breaker, TLS.

mod circuit;
mod faults;
mod kept;
mod limits;
mod server;
#[cfg(feature = "tls")]
mod tls;

use std::time::Duration;

use tollgate::metrics::Metrics;
use tollgate::policy_servers::Endpoint;
use tollgate_core::guardrail::{Dialect, HttpSettings};

/// The time that a busy machine may add to any other.
const TOLERANCE: Duration = Duration::from_secs(3);

/// Returns settings with which nothing fails for want of time or opens the circuit.
fn settings(url: &str) -> HttpSettings {
    HttpSettings { timeout_ms: 10_000, breaker_open_ms: 60_000, ..HttpSettings::at("policy", url, Dialect::Tollgate) }
}

fn endpoint(settings: HttpSettings, metrics: &Metrics) -> Endpoint {
    Endpoint::new(&settings, metrics).unwrap()
}
