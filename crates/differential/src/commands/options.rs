//! The options of the program.

use std::path::PathBuf;

use clap::Parser;

/// Runs command lines that the rules allow in four shells, inside a jail full of canaries.
#[derive(Debug, Clone, Parser)]
#[command(version, name = "commands")]
pub struct Options {
    /// How long to fuzz, in seconds
    #[arg(long, default_value_t = 60)]
    pub seconds: u64,

    /// Go on behind that time until each process has run so many lines
    #[arg(long, default_value_t = 0)]
    pub lines_min: u64,

    /// Where the random numbers start; another one for each run unless it is given
    #[arg(long)]
    pub seed: Option<u64>,

    /// How many processes to use; by default one for each core
    #[arg(long)]
    pub workers: Option<usize>,

    /// Only these rule sets; by default all
    #[arg(long, value_delimiter = ',')]
    pub rules: Vec<String>,

    /// Collect all findings in this file, one JSON object a line, instead of ending with the first
    #[arg(long, value_name = "FILE")]
    pub keep_going: Option<PathBuf>,

    /// A file of lines to start from: JSON strings, or objects with a `command` or a `line`, one in a line
    #[arg(long, value_name = "FILE")]
    pub corpus: Vec<PathBuf>,

    /// Only run the lines of the corpus that are allowed, and make none
    #[arg(long)]
    pub replay: bool,

    /// Run lines whether they are allowed or not
    #[arg(long)]
    pub bypass: bool,

    /// One more line for the corpus
    #[arg(long, value_name = "LINE")]
    pub line: Vec<String>,

    /// At the end print so many lines that were allowed, picked at random
    #[arg(long, default_value_t = 0, value_name = "COUNT")]
    pub samples: usize,

    /// Check that the jail sees canaries, written files, the network and fork bombs in each shell
    #[arg(long)]
    pub self_test: bool,

    /// Be a worker in the jail that this plan describes
    #[arg(long, hide = true, value_name = "PLAN")]
    pub inside: Option<PathBuf>,
}
