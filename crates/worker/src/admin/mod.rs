//! The admin endpoint, which serves `/metrics`, `/livez` and `/readyz`.

mod connections;

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use tokio::net::TcpListener;

use crate::health::Health;
use crate::logging::log_counts;
use crate::metrics::Metrics;

pub use connections::ConnectionLimits;

/// The data that the endpoint shows.
#[derive(Debug, Clone)]
pub struct Admin {
    /// The metrics of the process.
    pub metrics: Metrics,
    /// The condition of the members and the controls.
    pub health: Arc<Health>,
}

impl Admin {
    /// Returns a listener on the address.
    ///
    /// # Errors
    /// Returns a sentence for people if the address cannot be bound.
    pub async fn bind(listen: SocketAddr) -> anyhow::Result<TcpListener> {
        let bound = TcpListener::bind(listen).await;
        bound.map_err(|error| anyhow::anyhow!("admin.listen: {listen} cannot be taken ({error}); choose another port, or `admin: null`"))
    }

    /// Serves requests until `stop` is ready. Requests that are being answered then are answered to their end.
    pub async fn serve(self, listener: TcpListener, limits: ConnectionLimits, stop: impl Future<Output = ()> + Send) {
        let router =
            Router::new().route("/metrics", get(metrics)).route("/livez", get(livez)).route("/readyz", get(readyz)).with_state(self);
        let listener = &listener;
        let accept = || async move { listener.accept().await.map(|(stream, _)| stream) };
        connections::serve(accept, router, limits, stop).await;
    }
}

async fn metrics(State(admin): State<Admin>) -> impl IntoResponse {
    admin.metrics.ready.set(i64::from(admin.health.is_ready()));
    let counts = log_counts();
    for (metric, count) in [(&admin.metrics.lost_log_lines, counts.lost_lines), (&admin.metrics.thread_panics, counts.panics)] {
        metric.inc_by(count.saturating_sub(metric.get()));
    }
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], admin.metrics.render())
}

async fn livez(State(admin): State<Admin>) -> impl IntoResponse {
    let faults = admin.health.faults();
    if faults.is_empty() {
        return (StatusCode::OK, "ok\n".to_owned());
    }
    (StatusCode::SERVICE_UNAVAILABLE, faults.join("\n") + "\n")
}

async fn readyz(State(admin): State<Admin>) -> impl IntoResponse {
    let report = admin.health.report();
    let status = if report.ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let body = serde_json::to_string(&report).unwrap_or_default() + "\n";
    (status, [(header::CONTENT_TYPE, "application/json")], body)
}
