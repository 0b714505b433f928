//! The parts that long-running commands share: logging, signals, the admin endpoint.

use std::io::IsTerminal;
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio::runtime::Handle;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinHandle;
use tracing_subscriber::EnvFilter;

use crate::admin::{Admin, ConnectionLimits};
use crate::health::Health;
use crate::metrics::Metrics;
use crate::policy_servers::{Endpoint, PolicyServers};
use crate::settings::{LogFormat, LogSettings};
use crate::stop::Stop;
use tollgate_core::controls::Controls;
use tollgate_core::policy::{GuardrailSettings, PolicySettings};

/// Exit code of a process that a second signal ended at once: 128 + SIGTERM, as shells report it.
const ENDED_AT_ONCE: i32 = 143;

/// Starts logging to stderr.
///
/// # Errors
/// `log.filter` is no filter, or logging was started before.
pub fn start_logging(log: &LogSettings) -> anyhow::Result<()> {
    let filter = EnvFilter::try_new(&log.filter).map_err(|error| {
        anyhow::anyhow!("log.filter: found a string that is no filter ({error}); write a level such as info, or info,librdkafka=error")
    })?;
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    let started = match log.format {
        LogFormat::Json => builder.json().flatten_event(true).try_init(),
        LogFormat::Text => builder.with_ansi(std::io::stderr().is_terminal()).try_init(),
    };
    started.map_err(|error| anyhow::anyhow!("logging cannot be started: {error}"))
}

/// Watches signals: the first SIGINT or SIGTERM gives the sign to stop, the second ends the process at once.
pub(super) fn watch_signals(stop: Stop) -> anyhow::Result<()> {
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    tokio::spawn(async move {
        for is_first in [true, false] {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            if is_first {
                tracing::info!("stopping: draining and committing; a second signal ends the process at once");
                stop.give();
            }
        }
        std::process::exit(ENDED_AT_ONCE);
    });
    Ok(())
}

/// Returns an empty table of controls, with the configured key of subject hashes.
pub(super) fn controls(subject_key: Option<&str>) -> Arc<Controls> {
    let controls = Controls::new(subject_key);
    if !controls.is_keyed() {
        tracing::warn!("privacy.subject_key is not set: whoever can guess an id can tell its hash in the controls");
    }
    Arc::new(controls)
}

/// Serves the admin endpoint for as long as the process lives.
pub(super) fn serve_admin(listener: TcpListener, metrics: &Metrics, health: &Arc<Health>) -> JoinHandle<()> {
    let admin = Admin { metrics: metrics.clone(), health: Arc::clone(health) };
    tokio::spawn(admin.serve(listener, ConnectionLimits::default(), std::future::pending()))
}

/// Returns the policy servers of a configuration. They are asked on the current runtime.
pub(super) fn policy_servers(settings: &PolicySettings, metrics: &Metrics) -> anyhow::Result<PolicyServers> {
    let servers = settings.guardrails.iter().flat_map(GuardrailSettings::servers);
    let endpoints = servers.map(|(place, server)| Ok((place, Endpoint::new(server, metrics)?))).collect::<anyhow::Result<_>>()?;
    Ok(PolicyServers::new(endpoints, Handle::current()))
}

/// Returns a runtime for HTTP and signals. Members have threads of their own.
pub(super) fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()
}
