//! The runner of test files, for policies and for rules against abuse: files are read, their cases are run, and the results are written.

mod find;
mod junit;
mod report;

use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::rc::Rc;

use anyhow::bail;
use clap::Args;
use tollgate_config::settings::Settings;
use tollgate_config::{ConfigError, Document, load};
use tollgate_core::settings::Section;

use super::{Finding, OutputFormat, Screen, UsageError, create_output};
use find::find;
use junit::junit;
pub(crate) use report::{Difference, Failure, Outcome, percent};
use report::{FileReport, Report};

#[derive(Debug, Args)]
pub(crate) struct SuiteArgs {
    /// Test files, or folders in and below which the files ending in `_test.yaml` are test files
    #[arg(required = true, value_name = "DIR|FILE")]
    paths: Vec<PathBuf>,
    /// Run only the cases whose name contains this text
    #[arg(long, value_name = "TEXT")]
    filter: Option<String>,
    /// Say what no case reached
    #[arg(long)]
    coverage: bool,
    /// Fail if less was reached, such as 80%
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

/// The things that cases are run on: a policy, or rules.
pub(crate) trait Tested: Sized {
    /// A case.
    type Case: Case;

    /// Returns the name for people: the file that holds the policy or the rules.
    fn name(&self) -> &str;

    /// Reads the policy or the rules that a test file names or holds; `None` if there are none in it.
    fn read(root: &Section<'_>, path: &Path) -> Option<Result<Self, String>>;

    /// Reads the cases of a test file.
    fn read_cases(&self, root: &Section<'_>, document: &Document) -> Vec<Self::Case>;
}

/// A test file.
struct Suite<T: Tested> {
    name: String,
    tested: Rc<T>,
    cases: Vec<T::Case>,
}

/// A case of a test file.
pub(crate) trait Case {
    /// Returns the result of a case in which nothing has failed yet.
    fn outcome(&self) -> Outcome;
}

/// What cases reach of what they are run on.
pub(crate) trait Reach<T: Tested> {
    /// What can be reached, for people: `the rules`.
    const WHOLE: &'static str;

    /// Notes what can be reached with a test file, whether or not its cases are run.
    fn begin(&mut self, tested: &T);

    /// Runs a case, notes what it reaches, and returns its result.
    fn run(&mut self, tested: &T, case: &T::Case) -> Outcome;

    /// Returns how many things were reached, and how many there are.
    fn reached(&self) -> (usize, usize);

    /// Writes what was reached for people.
    fn write(&self, out: &mut impl io::Write, screen: Screen) -> io::Result<()>;

    /// Writes what was reached as JSON.
    fn write_json(&self, out: &mut impl io::Write) -> io::Result<()>;
}

impl<T: Tested> Suite<T> {
    /// Reads a test file. If it names neither policy nor rules, it is about those in force.
    ///
    /// # Errors
    /// Everything that is wrong with the file, or with the file that it names, as sentences with places.
    fn read(path: &Path, in_force: &Rc<T>) -> Result<Self, String> {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|error| format!("{name}: cannot be read ({error})"))?;
        let document = Document::parse(name.clone(), text)?;
        let tested = document.read(|root| T::read(root, path))?.transpose()?.map_or_else(|| Rc::clone(in_force), Rc::new);
        let cases = document.read(|root| tested.read_cases(root, &document))?;
        Ok(Self { name, tested, cases })
    }
}

/// Loads the configuration that a key of a test file names. Returns it with its name for people.
///
/// # Errors
/// The configuration cannot be read or is wrong, as a sentence.
pub(crate) fn load_named(path: &Path, key: &str, file: &str) -> Result<(Settings, String), String> {
    let file = path.parent().unwrap_or(Path::new("")).join(file);
    let named = |error: ConfigError| format!("{}: {key}: {:#}", path.display(), anyhow::Error::from(error));
    Ok((load(Some(&file), std::env::vars_os()).map_err(named)?, file.display().to_string()))
}

/// Reads the cases of a test file, each of which has a name of its own. `needs` are the keys of a case.
pub(crate) fn read_cases<C: Case>(
    root: &Section<'_>,
    sections: Option<Vec<Section<'_>>>,
    needs: &str,
    read: impl Fn(usize, &Section<'_>) -> C,
) -> Vec<C> {
    let Some(sections) = sections.filter(|cases| !cases.is_empty()) else {
        root.fault("cases", "no case", format!("write a list of cases, each with {needs}"));
        return Vec::new();
    };
    let mut seen = BTreeMap::new();
    let case = |(place, section): (usize, &Section<'_>)| {
        let case = read(place, section);
        let Outcome { name, line, .. } = case.outcome();
        let is_named = !name.is_empty();
        if let Some(first) = seen.insert(name, line).filter(|_| is_named) {
            section.fault("name", format!("the name of the case on line {first}"), "give each case a name of its own");
        }
        case
    };
    sections.iter().enumerate().map(case).collect()
}

/// Runs the cases of all test files, and returns a failure if a case failed or too little was reached.
pub(crate) fn run<T: Tested>(args: &SuiteArgs, in_force: &Rc<T>, mut reach: impl Reach<T>, screen: Screen) -> anyhow::Result<ExitCode> {
    let suites = read(args, in_force)?;
    let mut report = Report::default();
    for suite in &suites {
        reach.begin(&suite.tested);
        let outcomes = suite.cases.iter().map(|case| (case, case.outcome()));
        let chosen = outcomes.filter(|(_, outcome)| args.filter.as_deref().is_none_or(|part| outcome.name.contains(part)));
        let cases: Vec<_> = chosen.map(|(case, _)| reach.run(&suite.tested, case)).collect();
        if !cases.is_empty() {
            report.files.push(FileReport { name: suite.name.clone(), cases });
        }
    }
    let (passed, all) = report.passed();
    if all == 0 {
        bail!("found no case; a folder's test files end in _test.yaml, and --filter is a part of a case's name");
    }
    let reads: Vec<_> = suites.iter().flat_map(|suite| [&suite.name, suite.tested.name()]).map(Path::new).collect();
    let has_failed = write(args, (&report, &reach), &reads, screen)?;
    Ok(if has_failed || passed < all { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Reads all test files. Nothing is run if one of them is malformed.
fn read<T: Tested>(args: &SuiteArgs, in_force: &Rc<T>) -> anyhow::Result<Vec<Suite<T>>> {
    let (mut suites, mut faults) = (Vec::new(), Vec::new());
    for path in &find(&args.paths).map_err(UsageError)? {
        match Suite::read(path, in_force) {
            Ok(suite) => suites.push(suite),
            Err(fault) => faults.push(fault),
        }
    }
    if faults.is_empty() { Ok(suites) } else { Err(UsageError(faults.join("\n")).into()) }
}

/// Writes the results, and returns whether too little was reached. `reads` are the files that were read.
fn write<T: Tested, R: Reach<T>>(
    args: &SuiteArgs,
    (report, reach): (&Report, &R),
    reads: &[&Path],
    screen: Screen,
) -> anyhow::Result<bool> {
    if let Some(path) = &args.junit {
        create_output("--junit", path, reads)?.write_all(junit(report).as_bytes())?;
    }
    let is_covered = args.coverage || args.coverage_min.is_some();
    let mut out = Finding;
    if args.json || args.output == Some(OutputFormat::Json) {
        report.write_json(&mut out)?;
        if is_covered {
            reach.write_json(&mut out)?;
        }
    } else {
        report.write(&mut out, screen)?;
        if is_covered {
            reach.write(&mut out, screen)?;
        }
    }
    out.flush()?;
    let reached = percent(reach.reached());
    let least = args.coverage_min.filter(|least| reached < *least);
    if let Some(least) = least {
        say!("tollgate: {reached} % of {} were reached, and --coverage-min asks for {least} %", R::WHOLE);
    }
    Ok(least.is_some())
}

fn read_percent(text: &str) -> Result<usize, String> {
    let digits = text.strip_suffix('%').unwrap_or(text).trim();
    digits
        .parse()
        .ok()
        .filter(|percent| *percent <= 100)
        .ok_or_else(|| "it is no share; write a whole number from 0 to 100, such as 80%".to_owned())
}
