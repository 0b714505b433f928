//! Tests against three brokers that are one cluster: what is lost, what differs and how long verdicts are waited for when brokers, workers
//! and connections fail. A plain consumer group with the same settings runs beside the workers and says how long the wait has to be.
//!
//! Without variables some kinds of faults have a short run. `TOLLGATE_CLUSTER_FAULTS=all cargo test --test cluster -- table` makes the table;
//! faults can be named (`rolling,leaders-killed+workers-killed`). `TOLLGATE_CLUSTER_SECONDS`, `…_RUNS`, `…_SEED`, `…_RATE` and `…_DIR` set
//! the length of a run, the runs of each fault, the first seed, the events a second and the directory of logs and results;
//! `…_CONFIG='{"/worker/members": 2}'` sets values of the configuration.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "tests fail by panicking")]

mod abuse;
#[path = "../kafka/abuse_commands.rs"]
#[allow(dead_code, reason = "a cluster of three runs some of them")]
mod abuse_commands;
mod check;
mod clock;
mod events;
mod faults;
mod fleet;
mod inject;

mod load;
mod options;
mod plain;
mod report;
#[path = "../kafka/abuse/mod.rs"]
#[allow(dead_code, reason = "a cluster of three runs some of them")]
mod stages;
mod trial;
mod waits;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Result, ensure};
use libtest_mimic::{Arguments, Completion, Failed, Trial as Test};
use tollgate_testkit::{Brokers, BrokersSettings, has_small_disks, lacking, test_cache};

use faults::{BrokerFault, Fault};
use options::Options;
use report::{Row, append, table};
use trial::{Trial, brokers_for, settings_for, summary};

/// The longest wait that the short form allows, in seconds, beyond twice that of the plain group. The machine may be busy.
const SLACK_SECONDS: f64 = 30.0;

pub(crate) fn target_tmpdir() -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
}

pub(crate) fn tollgate() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_tollgate"))
}

/// A test of both stages.
type Case = fn(&mut Brokers) -> Result<()>;

/// The brokers of the last run, if the next one can have them too.
type Shared = Arc<Mutex<Option<Brokers>>>;

fn main() -> ExitCode {
    if let Some(code) = plain::run_if_asked() {
        return code;
    }
    let mut arguments = Arguments::from_args();
    arguments.test_threads = Some(1);
    let lacking = if arguments.list { None } else { lacking(&test_cache(&target_tmpdir())) };
    if let Some(lacking) = &lacking {
        eprintln!("\nWARNING: the tests of a cluster are SKIPPED for want of {lacking}, which ./test installs");
        if std::env::var("CI").is_ok_and(|ci| ci == "true") {
            eprintln!("CI=true, so that is a failure.");
            return ExitCode::from(101);
        }
    }
    let tests = match tests() {
        Ok(tests) => tests,
        Err(error) => {
            eprintln!("{error:#}");
            return ExitCode::from(2);
        }
    };
    let tests = tests.into_iter().map(|test| test.with_ignored_flag(lacking.is_some())).collect();
    libtest_mimic::run(&arguments, tests).exit_code()
}

fn tests() -> Result<Vec<Test>> {
    let options = Options::from_environment()?;
    let mut tests = vec![Test::test("faults::names_are_read", || faults::names_are_read().map_err(failed))];
    match options.faults.clone() {
        Some(faults) => tests.push(Test::test("table", move || make_table(&options, &faults).map_err(failed))),
        None => {
            let brokers = Shared::default();
            for fault in Fault::short_list()? {
                let (options, brokers) = (options.clone(), Arc::clone(&brokers));
                tests.push(Test::ignorable_test(fault.to_string(), move || short(&options, fault, &brokers)));
            }
            for (name, case) in [
                ("abuse::faults_change_no_signal_alert_or_control", abuse::faults_change_no_signal_alert_or_control as Case),
                ("abuse::an_offender_is_dealt_with_while_brokers_fail", abuse::an_offender_is_dealt_with_while_brokers_fail),
            ] {
                let brokers = Arc::clone(&brokers);
                tests.push(Test::test(name, move || both_stages(case, &brokers).map_err(failed)));
            }
        }
    }
    Ok(tests)
}

fn failed(error: anyhow::Error) -> Failed {
    format!("{error:#}").into()
}

/// Runs one fault for a short time: nothing may be missing or different, and the wait has a bound.
fn short(options: &Options, fault: Fault, shared: &Shared) -> Result<Completion, Failed> {
    if fault.brokers == Some(BrokerFault::DiskFull) && !has_small_disks() {
        eprintln!("\nWARNING: {fault} is NOT run: this machine gives a process no file system of its own (unshare and nsenter)");
        return Ok(Completion::ignored_with("no file system of its own"));
    }
    let mut shared = shared.lock().unwrap_or_else(PoisonError::into_inner);
    let is_plain = {
        let settings = settings_for(fault);
        !settings.proxied && settings.small_disk.is_none()
    };
    let mut brokers = match shared.take().filter(|_| is_plain) {
        Some(brokers) => brokers,
        None => brokers_for(fault).map_err(failed)?,
    };
    let row = Trial::new(options, fault, options.seed).and_then(|trial| trial.run(&mut brokers)).map_err(failed)?;
    eprintln!("{}", summary(&row));
    judge(&row).map_err(failed)?;
    *shared = Some(brokers).filter(|_| is_plain);
    Ok(Completion::Completed)
}

/// Has both stages work while brokers are killed.
fn both_stages(case: Case, shared: &Shared) -> Result<()> {
    let mut shared = shared.lock().unwrap_or_else(PoisonError::into_inner);
    let mut brokers = match shared.take() {
        Some(brokers) => brokers,
        None => Brokers::start(&test_cache(&target_tmpdir()), &BrokersSettings::default())?,
    };
    case(&mut brokers)?;
    *shared = Some(brokers);
    Ok(())
}

fn judge(row: &Row) -> Result<()> {
    ensure!(!row.is_wrong(), "{}\n{}\n{}", summary(row), row.checked.examples.join("\n"), row.findings.join("\n"));
    let bound = row.plain.longest * 2.0 + SLACK_SECONDS;
    ensure!(row.gate.longest <= bound, "{}: more than {bound:.1} s", summary(row));
    Ok(())
}

/// Runs each fault as often and as long as asked, each time on brokers of its own, and prints the table. Everything wrong is told at its end.
fn make_table(options: &Options, faults: &[Fault]) -> Result<()> {
    std::fs::create_dir_all(&options.directory)?;
    let results = options.directory.join("results.jsonl");
    let (mut rows, mut wrong) = (Vec::new(), Vec::new());
    for fault in faults {
        for seed in options.seed..options.seed + options.runs {
            eprintln!("\n=== {fault}, seed {seed}");
            let row = brokers_for(*fault).and_then(|mut brokers| Trial::new(options, *fault, seed)?.run(&mut brokers));
            match row {
                Ok(row) => {
                    eprintln!("{}", summary(&row));
                    if row.is_wrong() {
                        let (examples, findings) = (row.checked.examples.join("\n"), row.findings.join("\n"));
                        wrong.push(format!("{}\n{examples}\n{findings}", summary(&row)));
                    }
                    append(&row, &results)?;
                    rows.push(row);
                }
                Err(error) => wrong.push(format!("{error:#}")),
            }
        }
    }
    let table = table(&rows);
    std::fs::write(options.directory.join("table.md"), &table)?;
    eprintln!("\n{table}\n(each run as a line of JSON: {})", results.display());
    ensure!(wrong.is_empty(), "{} runs went wrong:\n{}", wrong.len(), wrong.join("\n\n"));
    Ok(())
}
