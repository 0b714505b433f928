//! `tollgate top`: what is going on, live: rates by verdict and the worst threads of the decisions topic, or rates, waits and lag of workers.

mod fullscreen;
mod source;
mod tally;
mod view;

use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use tokio::sync::mpsc::unbounded_channel;

use tollgate_config::settings::Settings;

use crate::commands::shared::interrupt::Signals;
use crate::commands::shared::{Finding, OutputArgs, OutputFormat, Screen, process};
use tollgate_worker::logging::start_logging;

use fullscreen::{Fullscreen, read_keys};
use source::{Source, TopicSource, WorkerSource};

/// How many threads and codes are shown.
const NAMES: usize = 10;

#[derive(Debug, Args)]
pub(super) struct TopArgs {
    /// Show the metrics of this worker, by the address of its admin endpoint; may be given several times [default: the decisions topic]
    #[arg(long = "worker", value_name = "HOST:PORT")]
    workers: Vec<String>,
    /// Seconds between two looks
    #[arg(long, value_name = "SECONDS", default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=3_600))]
    interval: u64,
    /// Look once, for one interval, and print what was seen
    #[arg(long)]
    once: bool,
    #[command(flatten)]
    output: OutputArgs,
}

pub(super) fn execute(args: &TopArgs, mut settings: Settings, screen: Screen) -> anyhow::Result<ExitCode> {
    // Log lines would stand in the middle of the picture.
    "off".clone_into(&mut settings.log.filter);
    start_logging(&settings.log)?;
    let format = args.output.format();
    let is_live = screen.is_terminal && !args.once && format != OutputFormat::Json;
    process::runtime()?.block_on(async {
        let mut source = if args.workers.is_empty() {
            Source::Topic(TopicSource::start(&settings.kafka)?)
        } else {
            Source::Workers(WorkerSource::new(&args.workers))
        };
        if is_live { watch(&mut source, args, screen, format).await } else { look_once(&mut source, args, screen, format).await }
    })
}

/// Redraws the screen after every interval until `q` or a signal.
async fn watch(source: &mut Source, args: &TopArgs, screen: Screen, format: OutputFormat) -> anyhow::Result<ExitCode> {
    let mut signals = Signals::catch()?;
    let (typed, mut keys) = unbounded_channel();
    // Waiting for what comes first begins with a look that knows nothing yet, so that the screen is never empty.
    let fullscreen = Fullscreen::enter()?;
    read_keys(typed)?;
    let mut ticks = tokio::time::interval(Duration::from_secs(args.interval));
    let mut has_keys = true;
    loop {
        tokio::select! {
            _ = ticks.tick() => {
                let (columns, rows) = screen.size();
                let mut lines = source.view(NAMES).await?.lines(screen, columns, format == OutputFormat::Wide);
                lines.extend([String::new(), "q ends it".to_owned()]);
                fullscreen.draw(&lines, rows)?;
            }
            key = keys.recv(), if has_keys => match key {
                Some(b'q' | b'Q') => return Ok(ExitCode::SUCCESS),
                Some(_) => {}
                None => has_keys = false,
            },
            _ = signals.next() => return Ok(ExitCode::SUCCESS),
        }
    }
}

/// Looks for one interval and prints what was seen.
async fn look_once(source: &mut Source, args: &TopArgs, screen: Screen, format: OutputFormat) -> anyhow::Result<ExitCode> {
    // What workers counted before is needed to tell what came since.
    let _before = source.view(NAMES).await?;
    tokio::time::sleep(Duration::from_secs(args.interval)).await;
    let view = source.view(NAMES).await?;
    if format == OutputFormat::Json {
        writeln!(Finding, "{}", serde_json::to_string(&view)?)?;
    } else {
        for line in view.lines(screen, screen.size().0, format == OutputFormat::Wide) {
            writeln!(Finding, "{line}")?;
        }
    }
    // A worker of which nothing is known may be down.
    let is_known = view.workers.iter().all(|worker| worker.error.is_none());
    Ok(if is_known { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
