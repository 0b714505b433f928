//! `tollgate abuse test`: unit tests of rules against abuse. A test file holds cases, a case holds signals at times, and exactly the alerts
//! that are expected.
//!
//! ```text
//! files ─▶ suites ─▶ each case on a fresh state: signals and clocks ─▶ fold ─▶ expected against got ─▶ report, JUnit
//!                                                                        └─▶ which rules fired
//! ```

mod expected;
mod names;
mod run;
mod signals;
mod suite;

use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::rc::Rc;

use anyhow::{Context as _, bail};
use clap::Args;
use serde_json::json;

use super::super::UsageError;
use super::super::output::{OutputFormat, Screen, create_output, shown};
use super::super::test::find::find;
use super::super::test::junit::junit;
use super::super::test::read_percent;
use super::super::test::report::{FileReport, Outcome, Report, percent};
use suite::{Suite, Tested};
use tollgate_config::settings::Settings;

#[derive(Debug, Args)]
pub(in crate::commands) struct TestArgs {
    /// Test files, or folders in and below which the files ending in `_test.yaml` are test files
    #[arg(required = true, value_name = "DIR|FILE")]
    paths: Vec<PathBuf>,
    /// Run only the cases whose name contains this text
    #[arg(long, value_name = "TEXT")]
    filter: Option<String>,
    /// Say which rules no case made fire
    #[arg(long)]
    coverage: bool,
    /// Fail if fewer of the rules fired, such as 80%
    #[arg(long, value_name = "PERCENT", value_parser = read_percent)]
    coverage_min: Option<usize>,
    /// Write the results as JUnit's XML
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Print a JSON object for each case in place of text
    #[arg(long)]
    json: bool,
    /// How to print; json is --json [default: table]
    #[arg(short, long, value_enum, value_name = "FORMAT", conflicts_with = "json")]
    output: Option<OutputFormat>,
}

/// How often each rule fired, by id and version, so that a rule counts once in however many files it is tested.
type Fired = BTreeMap<(String, String), u64>;

pub(super) fn execute(args: &TestArgs, settings: &Settings, screen: Screen) -> anyhow::Result<ExitCode> {
    let in_force = Rc::new(Tested::of(settings, "the configuration in force"));
    let suites = read(args, &in_force)?;
    let (mut report, mut fired) = (Report::default(), Fired::new());
    for suite in &suites {
        for rule in &suite.tested.rules.rules {
            fired.entry((rule.id.clone(), rule.version.to_string())).or_default();
        }
        let is_chosen = |name: &str| args.filter.as_deref().is_none_or(|part| name.contains(part));
        let mut cases = Vec::new();
        for case in suite.cases.iter().filter(|case| is_chosen(&case.name)) {
            let got = run::run(case, &suite.tested);
            for rule in got.fired.iter().filter_map(|at| suite.tested.rules.rules.get(*at)) {
                *fired.entry((rule.id.clone(), rule.version.to_string())).or_default() += 1;
            }
            let failures = expected::compare(case, &got);
            cases.push(Outcome { name: case.name.clone(), why: case.why.clone(), line: case.line, failures });
        }
        if !cases.is_empty() {
            report.files.push(FileReport { name: suite.name.clone(), cases });
        }
    }
    let (passed, all) = report.passed();
    if all == 0 {
        bail!("found no case; a folder's test files end in _test.yaml, and --filter is a part of a case's name");
    }
    let reads: Vec<_> = suites.iter().flat_map(|suite| [&suite.name, &suite.tested.name]).map(Path::new).collect();
    let has_failed = write(args, (&report, &fired), &reads, screen)?;
    Ok(if has_failed || passed < all { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Reads all test files. Nothing is run if one of them is malformed.
fn read(args: &TestArgs, in_force: &Rc<Tested>) -> anyhow::Result<Vec<Suite>> {
    let paths = find(&args.paths).map_err(UsageError)?;
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

/// Writes the results, and returns whether too few rules fired. `reads` are the files that were read.
fn write(args: &TestArgs, (report, fired): (&Report, &Fired), reads: &[&Path], screen: Screen) -> anyhow::Result<bool> {
    if let Some(path) = &args.junit {
        let mut file = create_output("--junit", path, reads)?;
        file.write_all(junit(report).as_bytes()).with_context(|| format!("--junit {}: cannot be written", path.display()))?;
    }
    let reached = percent((fired.values().filter(|count| **count > 0).count(), fired.len()));
    let is_covered = args.coverage || args.coverage_min.is_some();
    let mut out = io::stdout().lock();
    if args.json || args.output == Some(OutputFormat::Json) {
        report.write_json(&mut out)?;
        if is_covered {
            let rules: Vec<_> =
                fired.iter().map(|((rule, version), count)| json!({"rule": rule, "rule_version": version, "fired": count})).collect();
            writeln!(out, "{}", json!({"percent": reached, "coverage": rules}))?;
        }
    } else {
        report.write(&mut out, screen)?;
        if is_covered {
            writeln!(out, "{reached} % of the rules fired")?;
            for ((rule, _), _) in fired.iter().filter(|(_, count)| **count == 0) {
                writeln!(out, "never fired: {}", shown(rule))?;
            }
        }
    }
    out.flush()?;
    let least = args.coverage_min.filter(|least| reached < *least);
    if let Some(least) = least {
        say!("tollgate: {reached} % of the rules fired, and --coverage-min asks for {least} %");
    }
    Ok(least.is_some())
}
