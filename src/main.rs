//! The `tollgate` command.

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    tollgate::commands::execute(tollgate::commands::Cli::parse())
}
