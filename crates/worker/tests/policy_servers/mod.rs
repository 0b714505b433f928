//! Tests policy servers over real sockets: faults, limits, kept connections, the circuit breaker, TLS.

mod circuit;
mod faults;
mod kept;
mod limits;
mod server;
#[cfg(feature = "tls")]
mod tls;

use tollgate_core::decide::guardrail::{Dialect, HttpSettings};
use tollgate_worker::metrics::Metrics;
use tollgate_worker::policy_servers::Endpoint;

/// A time that is never over while a test runs, in milliseconds.
const NEVER_MS: u32 = 600_000;

/// Returns settings with which nothing fails for want of time or is tried again while the circuit is open.
fn settings(url: &str) -> HttpSettings {
    HttpSettings { timeout_ms: NEVER_MS, breaker_open_ms: NEVER_MS, ..HttpSettings::at("policy", url, Dialect::Tollgate) }
}

fn endpoint(settings: HttpSettings, metrics: &Metrics) -> Endpoint {
    Endpoint::new(&settings, metrics).unwrap()
}
