//! Tests against three brokers that are one cluster: what is lost, what differs and how long verdicts are waited for when brokers, workers
//! and connections fail. A plain consumer group with the same settings runs beside the workers and says how long the wait has to be.
//!
//! Each kind of fault has a short run, which is a case: those that every change is tried with are `cluster::…`, the others `faults::…`. `TOLLGATE_CLUSTER_FAULTS=all cargo test --test kafka -- cluster::table` makes the
//! table; faults can be named (`rolling,leaders-killed+workers-killed`). `TOLLGATE_CLUSTER_SECONDS`, `…_RUNS`, `…_SEED`, `…_RATE` and
//! `…_DIR` set the length of a run, the runs of each fault, the first seed, the events a second and the directory of the table's logs and
//! results; `…_CONFIG='{"/worker/members": 2}'` sets values of the configuration.

mod abuse;
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
mod trial;
mod waits;

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Result, ensure};
use tollgate_testkit::harness::{Case, NotHere, Place};
use tollgate_testkit::{Brokers, has_small_disks};

use faults::{BrokerFault, Fault};
use options::Options;
pub(crate) use plain::run_if_asked as run_plain_member_if_asked;
use report::{Row, append, table};
use trial::{Trial, brokers_for, summary};

/// Why a case has the machine to itself.
const THREE_BROKERS: &str = "three brokers, two workers and two members of the plain group are more than the machine can do beside others";

/// The brokers of the last case, if the next case can have them too.
type Shared = Arc<Mutex<Option<Brokers>>>;

/// A case of both stages.
type BothStages = fn(&Place, &mut Brokers) -> Result<()>;

const BOTH_STAGES: [(&str, BothStages); 2] = [
    ("faults_change_no_signal_alert_or_control", abuse::faults_change_no_signal_alert_or_control),
    ("an_offender_is_dealt_with_while_brokers_fail", abuse::an_offender_is_dealt_with_while_brokers_fail),
];

/// Returns the cases: a short run of each kind of fault and the cases of both stages, or the table alone if it is asked for.
///
/// # Errors
/// A variable has no value that can be read.
pub(crate) fn cases() -> Result<Vec<Case>> {
    let options = Options::from_environment()?;
    if let Some(faults) = options.faults.clone() {
        return Ok(vec![Case::alone("cluster::table".to_owned(), "it measures how long verdicts are waited for", move |_| {
            make_table(&options, &faults)
        })]);
    }
    let shared = Shared::default();
    let mut cases = vec![Case::alone("cluster::names_are_read".to_owned(), THREE_BROKERS, |_| faults::names_are_read())];
    for (module, fault) in Fault::short_runs()? {
        let (options, shared) = (options.clone(), Arc::clone(&shared));
        cases.push(Case::alone(format!("{module}::{fault}"), THREE_BROKERS, move |place| short(&options, fault, &shared, place)));
    }
    for (name, case) in BOTH_STAGES {
        let shared = Arc::clone(&shared);
        cases.push(Case::alone(format!("faults::abuse::{name}"), THREE_BROKERS, move |place| {
            on_shared(&shared, Fault::default(), |brokers| case(place, brokers))
        }));
    }
    Ok(cases)
}

/// Runs a case on the brokers that the last one left, or on new ones. Brokers that are special, and those of a case that failed, are not
/// used again.
fn on_shared(shared: &Shared, fault: Fault, case: impl FnOnce(&mut Brokers) -> Result<()>) -> Result<()> {
    let mut shared = shared.lock().unwrap_or_else(PoisonError::into_inner);
    let mut brokers = match shared.take().filter(|_| !fault.has_special_brokers()) {
        Some(brokers) => brokers,
        None => brokers_for(fault)?,
    };
    case(&mut brokers)?;
    *shared = Some(brokers).filter(|_| !fault.has_special_brokers());
    Ok(())
}

/// Runs one fault for a short time: nothing may be missing or different, and the groups get through all events in the end.
fn short(options: &Options, fault: Fault, shared: &Shared, place: &Place) -> Result<()> {
    if fault.brokers == Some(BrokerFault::DiskFull) && !has_small_disks() {
        return Err(NotHere("this machine gives a process no file system of its own (unshare and nsenter)".to_owned()).into());
    }
    let options = Options { directory: place.directory.clone(), ..options.clone() };
    on_shared(shared, fault, |brokers| {
        let row = Trial::new(&options, fault, options.seed)?.run(brokers)?;
        eprintln!("{}", summary(&row));
        ensure!(!row.is_wrong(), "{}", wrong(&row));
        Ok(())
    })
}

/// Runs each fault as often and as long as asked, each time on brokers of its own, and prints the table. Everything wrong is told at its end.
fn make_table(options: &Options, faults: &[Fault]) -> Result<()> {
    std::fs::create_dir_all(&options.directory)?;
    let results = options.directory.join("results.jsonl");
    let (mut rows, mut failures) = (Vec::new(), Vec::new());
    for fault in faults {
        for seed in options.seed..options.seed + options.runs {
            eprintln!("\n=== {fault}, seed {seed}");
            let row = brokers_for(*fault).and_then(|mut brokers| Trial::new(options, *fault, seed)?.run(&mut brokers));
            match row {
                Ok(row) => {
                    eprintln!("{}", summary(&row));
                    if row.is_wrong() {
                        failures.push(wrong(&row));
                    }
                    append(&row, &results)?;
                    rows.push(row);
                }
                Err(error) => failures.push(format!("{error:#}")),
            }
        }
    }
    let table = table(&rows);
    std::fs::write(options.directory.join("table.md"), &table)?;
    eprintln!("\n{table}\n(each run as a line of JSON: {})", results.display());
    ensure!(failures.is_empty(), "{} runs went wrong:\n{}", failures.len(), failures.join("\n\n"));
    Ok(())
}

fn wrong(row: &Row) -> String {
    format!("{}\n{}\n{}", summary(row), row.checked.examples.join("\n"), row.findings.join("\n"))
}
