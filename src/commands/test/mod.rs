//! `tollgate test`: unit tests of a policy. A test file holds cases, a case holds events, and an event the verdict that is expected.
//!
//! ```text
//! files ─▶ suites ─▶ each case on a fresh state ─▶ expected against got ─▶ report, JUnit
//!                                               └─▶ coverage of the policy
//! ```

mod answer;
mod coverage;
pub(super) mod expected;
pub(super) mod find;
pub(super) mod junit;
mod message;
pub(super) mod report;
pub(super) mod run;
mod suite;

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::rc::Rc;

use anyhow::{Context as _, bail};
use clap::Args;

use super::UsageError;
use super::output::{Screen, create_output};
use coverage::Coverage;
use report::{FileReport, Outcome, Report, percent};
use suite::{Suite, Tested};
use tollgate_config::settings::Settings;

#[derive(Debug, Args)]
pub(super) struct TestArgs {
    /// Test files, or folders in and below which the files ending in `_test.yaml` are test files
    #[arg(required = true, value_name = "DIR|FILE")]
    paths: Vec<PathBuf>,
    /// Run only the cases whose name contains this text
    #[arg(long, value_name = "TEXT")]
    filter: Option<String>,
    /// Say what of each policy no case reached
    #[arg(long)]
    coverage: bool,
    /// Fail if less of the policies was reached, such as 80%
    #[arg(long, value_name = "PERCENT", value_parser = read_percent)]
    coverage_min: Option<usize>,
    /// Write the results as JUnit's XML
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Print a JSON object for each case in place of text
    #[arg(long)]
    json: bool,
}

pub(super) fn execute(args: &TestArgs, settings: Settings, has_config: bool, screen: Screen) -> anyhow::Result<ExitCode> {
    let name = if has_config { "the configuration in force" } else { "the built-in defaults" };
    let (topic, subject_keys) = (settings.kafka.topics.events, settings.subject_keys);
    let in_force = Rc::new(Tested { name: name.to_owned(), settings: settings.policy, topic, subject_keys });
    let suites = read(args, &in_force)?;
    let (mut report, mut coverage) = (Report::default(), Coverage::default());
    for suite in &suites {
        let reached = coverage.of(&suite.policy);
        let is_chosen = |name: &str| args.filter.as_deref().is_none_or(|part| name.contains(part));
        let cases = suite.cases.iter().filter(|case| is_chosen(&case.name));
        let cases: Vec<_> = cases
            .map(|case| Outcome {
                name: case.name.clone(),
                why: case.why.clone(),
                line: case.line,
                failures: run::run(case, &suite.policy, |got| reached.note(got)),
            })
            .collect();
        if !cases.is_empty() {
            report.files.push(FileReport { name: suite.name.clone(), cases });
        }
    }
    let (passed, all) = report.passed();
    if all == 0 {
        bail!("found no case; a folder's test files end in _test.yaml, and --filter is a part of a case's name");
    }
    let reads: Vec<_> = suites.iter().flat_map(|suite| [&suite.name, &suite.policy.name]).map(Path::new).collect();
    let has_failed = write(args, (&report, &coverage), &reads, screen)?;
    Ok(if has_failed || passed < all { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Reads all test files. Nothing is run if one of them is malformed.
fn read(args: &TestArgs, in_force: &Rc<Tested>) -> anyhow::Result<Vec<Suite>> {
    let paths = find::find(&args.paths).map_err(UsageError)?;
    let (mut suites, mut faults) = (Vec::new(), Vec::new());
    for path in &paths {
        match Suite::read(path, in_force) {
            Ok(suite) => suites.push(suite),
            Err(fault) => faults.push(fault),
        }
    }
    if !faults.is_empty() {
        return Err(UsageError(faults.join("\n")).into());
    }
    Ok(suites)
}

/// Writes the results, and returns whether too little was reached. `reads` are the files that were read.
fn write(args: &TestArgs, (report, coverage): (&Report, &Coverage), reads: &[&Path], screen: Screen) -> anyhow::Result<bool> {
    if let Some(path) = &args.junit {
        let mut file = create_output("--junit", path, reads)?;
        file.write_all(junit::junit(report).as_bytes()).with_context(|| format!("--junit {}: cannot be written", path.display()))?;
    }
    let is_covered = args.coverage || args.coverage_min.is_some();
    let mut out = io::stdout().lock();
    if args.json {
        report.write_json(&mut out)?;
        if is_covered {
            coverage.write_json(&mut out)?;
        }
    } else {
        report.write(&mut out, screen)?;
        if is_covered {
            coverage.write(&mut out, screen)?;
        }
    }
    out.flush()?;
    let reached = percent(coverage.share());
    let least = args.coverage_min.filter(|least| reached < *least);
    if let Some(least) = least {
        say!("tollgate: {reached} % of the policies were reached, and --coverage-min asks for {least} %");
    }
    Ok(least.is_some())
}

pub(super) fn read_percent(text: &str) -> Result<usize, String> {
    let digits = text.strip_suffix('%').unwrap_or(text).trim();
    digits
        .parse()
        .ok()
        .filter(|percent| *percent <= 100)
        .ok_or_else(|| "it is no share; write a whole number from 0 to 100, such as 80%".to_owned())
}
