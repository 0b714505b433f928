//! Policy servers over real sockets: faults, limits, kept connections, the circuit breaker, TLS.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "tests fail by panicking")]

mod circuit;
mod faults;
mod kept;
mod limits;
mod server;
#[cfg(feature = "tls")]
mod tls;

use std::collections::BTreeMap;
use std::time::Duration;

use tollgate::metrics::Metrics;
use tollgate::policy::{Dialect, HttpSettings};
use tollgate::remote::Endpoint;

/// What a busy machine may add to any time.
const TOLERANCE: Duration = Duration::from_secs(3);

/// Settings with which nothing fails for want of time or breaks the circuit.
fn settings(url: &str) -> HttpSettings {
    HttpSettings {
        name: "policy".to_owned(),
        url: url.to_owned(),
        dialect: Dialect::Tollgate,
        headers: BTreeMap::new(),
        header_files: BTreeMap::new(),
        timeout_ms: 10_000,
        concurrency_max: 64,
        queue_max: 1_024,
        answer_bytes_max: 65_536,
        is_idempotent: false,
        breaker_failures: 10,
        breaker_open_ms: 60_000,
        ca_file: None,
        client_certificate_file: None,
        client_key_file: None,
    }
}

fn endpoint(settings: HttpSettings, metrics: &Metrics) -> Endpoint {
    Endpoint::new(&settings, metrics).unwrap()
}
