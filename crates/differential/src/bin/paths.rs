//! Compares what the file rules take a path for with where the kernel leads, in a jail.

use std::process::ExitCode;

use clap::Parser;
use tollgate_differential::Fault;
use tollgate_differential::options::Options;
use tollgate_differential::paths::{self, jail};

fn main() -> Result<ExitCode, Fault> {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let jail = jail::entered(&mut arguments);
    let options = Options::parse_from(std::iter::once("paths".to_owned()).chain(arguments));
    let Some(jail) = jail else {
        return jail::run_in_one(&["--seed".to_owned(), options.seed.to_string(), "--seconds".to_owned(), options.seconds.to_string()]);
    };
    println!("paths: seed {}", options.seed);
    jail::furnish(&jail)?;
    let run = paths::run(&options)?;
    println!("paths: {run}");
    Ok(if run.failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
