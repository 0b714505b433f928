//! `tollgate serve`: HTTP in front of the log, beside no worker.

use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;

use tollgate_config::settings::Settings;
use tollgate_worker::Stop;
use tollgate_worker::health::Health;
use tollgate_worker::logging::start_logging;
use tollgate_worker::metrics::Metrics;

use crate::commands::shared::interrupt::watch_signals;
use crate::commands::shared::{UsageError, process};

#[derive(Debug, Args)]
pub(super) struct ServeArgs {
    /// The address and port to listen on, over `serve.listen` of the configuration
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Option<SocketAddr>,
    /// The partition of the replies topic that this server alone reads, over `serve.partition` of the configuration
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=i64::from(i32::MAX)))]
    partition: Option<u32>,
}

pub(super) fn execute(args: &ServeArgs, mut settings: Settings) -> anyhow::Result<ExitCode> {
    start_logging(&settings.log)?;
    let serve = &mut settings.serve;
    serve.partition = args.partition.unwrap_or(serve.partition);
    if let Some(listen) = args.listen {
        serve.set_listen("--listen", listen).map_err(UsageError)?;
    }
    let (runtime, stop) = (process::runtime()?, Stop::default());
    let outcome = runtime.block_on(work(settings, stop.clone()));
    // What ends with the runtime ends because of this.
    stop.give();
    outcome
}

async fn work(settings: Settings, stop: Stop) -> anyhow::Result<ExitCode> {
    let (metrics, health) = (Metrics::new()?, Arc::new(Health::default()));
    watch_signals(&health, &stop)?;
    process::start_admin(settings.admin.as_ref(), &metrics, &health, &stop).await?;
    process::start_server(&settings, (&metrics, &health), (&stop, &stop)).await?.await??;
    tracing::info!("stopped");
    Ok(process::stopped(&health))
}
