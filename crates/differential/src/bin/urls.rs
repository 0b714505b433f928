//! Compares what the web rules read in URLs with what the parsers of curl, Python, Node and Rust do.

use std::process::ExitCode;

use clap::Parser;
use tollgate_differential::Fault;
use tollgate_differential::options::Options;
use tollgate_differential::urls;

fn main() -> Result<ExitCode, Fault> {
    let options = Options::parse();
    println!("urls: seed {}", options.seed);
    let run = urls::run(&options)?;
    println!("urls: {run}");
    Ok(if run.failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
