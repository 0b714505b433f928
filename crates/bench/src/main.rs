//! The `tollgate-bench` command.

use std::process::ExitCode;

use clap::Parser as _;

fn main() -> ExitCode {
    tollgate_bench::execute(tollgate_bench::Cli::parse())
}
