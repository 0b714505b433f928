//! `tollgate sample`: the bundled sample, played against running workers as an orchestrator would play it.

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;

use tollgate_config::settings::Settings;

use crate::commands::shared::console::Console;
use crate::commands::shared::sample::{Play, Script};
use crate::commands::shared::{Interrupt, Screen, start_quiet_logging};

#[derive(Debug, Args)]
pub(super) struct SampleArgs {
    /// Play it again and again, on new threads each time, with a pause of so many seconds between, until Ctrl-C
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=3_600))]
    every: Option<u64>,
    /// Play a user who is stopped by safety systems ten times and calls a tool then: `abuse.pack: enforce` suspends them
    #[arg(long, conflicts_with = "every")]
    abuse: bool,
}

pub(super) fn execute(args: &SampleArgs, settings: Settings, screen: Screen) -> anyhow::Result<ExitCode> {
    start_quiet_logging(settings.log.clone(), "error")?;
    let script = if args.abuse { Script::Offender } else { Script::Fleet };
    let play = (script, Play::OnNewThreads(args.every.map(Duration::from_secs)));
    let console = Console::new(&settings.kafka, screen, Some(play), true)?;
    let interrupt = Interrupt::watch()?;
    console.run(&interrupt.stop)?;
    // A sample that is played again and again has no end of its own.
    Ok(interrupt.exit_code().filter(|_| args.every.is_none()).unwrap_or(ExitCode::SUCCESS))
}
