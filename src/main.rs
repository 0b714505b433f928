//! The `tollgate` command.

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    // Nothing, unless it was built for tests: they name places where a thread has to panic.
    let _places = fail::FailScenario::setup();
    tollgate::commands::execute(tollgate::commands::Cli::parse())
}
