//! The program of [`tollgate_differential::commands`].

use std::process::ExitCode;

use clap::Parser;
use tollgate_differential::commands::{Options, run};

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("commands: {error:#}");
            ExitCode::from(2)
        }
    }
}
