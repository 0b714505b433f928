//! The chaos harness: a fleet of workers decides under load, while workers and brokers are killed, stopped and frozen. Afterwards the topics
//! must hold what a fold of every partition gives, byte for byte: verdicts, dead letters and state.
//!
//! It runs on one broker (`chaos::…`) and on three brokers that are one cluster (`cluster::…`, and `faults::…` for the faults that not every
//! change is tried with). On three brokers a plain consumer group with the same settings runs beside the workers, and suffers the same: it
//! says how long the wait for a verdict has to be. While leaders are killed or frozen, a server of HTTP is in front of a worker of its own there.
//!
//! | variable | meaning |
//! |---|---|
//! | `TOLLGATE_CHAOS_KILLS` | kills of workers on one broker, 45; with 0 there is no fault |
//! | `TOLLGATE_CHAOS_KILLS_PER_CRASH` | kills between two crashes of the one broker, 150; it crashes at least once |
//! | `TOLLGATE_CHAOS_SEED`, `TOLLGATE_CHAOS_RATE` | the first seed, and the events a second |
//! | `TOLLGATE_CHAOS_FAULTS` | the faults of the table on three brokers: names with commas between them, or `all` |
//! | `TOLLGATE_CHAOS_SECONDS`, `TOLLGATE_CHAOS_RUNS` | the seconds of a run on three brokers, and the runs of each fault of the table |
//! | `TOLLGATE_CHAOS_DIR` | the directory of the table, with the logs of its runs |
//! | `TOLLGATE_CHAOS_CONFIG` | values of the configuration by JSON pointer: `{"/worker/members": 2}` |
//!
//! The directory of a case, which is kept if it fails, has the logs of all workers, and `done.log` with what was done when.

mod abuse;
mod clock;
mod faults;
mod front;
mod inject;
mod leaderless;
mod load;
mod options;
mod plain;
mod report;
mod run;
mod traffic;
mod verify;
mod waits;
mod worker_group;

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Result, ensure};
use tollgate_testkit::harness::{Case, NotHere, Place};
use tollgate_testkit::{Broker, Brokers, Cluster, has_small_disks};

pub(crate) use clock::Chronicle;
use faults::{BrokerFault, Fault};
use options::Options;
pub(crate) use options::number;
pub(crate) use plain::run_if_asked as run_plain_member_if_asked;
use report::{Report, table};
use run::{brokers_for, on_one_broker, on_three_brokers};
pub(crate) use worker_group::{Member, WorkerGroup};

/// Why a case has the machine to itself.
const THREE_BROKERS: &str = "three brokers, two workers and two members of the plain group are more than the machine can do beside others";

/// The brokers of the last case, if the next case can have them too.
type Shared = Arc<Mutex<Option<Brokers>>>;

/// A case that is no run of one fault.
type Further = fn(&Place, &mut Brokers) -> Result<()>;

const FURTHER: [(&str, Further); 3] = [
    ("faults::a_partition_without_a_leader_is_named", leaderless::a_partition_without_a_leader_is_named),
    ("faults::abuse::faults_change_no_signal_alert_or_control", abuse::faults_change_no_signal_alert_or_control),
    ("faults::abuse::an_offender_is_dealt_with_while_brokers_fail", abuse::an_offender_is_dealt_with_while_brokers_fail),
];

/// Faults of every kind on one broker, under load, change no verdict.
pub(crate) fn faults_change_no_verdict(cluster: &Cluster, broker: &mut Broker) -> Result<()> {
    let report = on_one_broker(&Options::from_environment()?, cluster, broker)?;
    eprintln!("\n{report}");
    is_right(&report)
}

/// Returns the cases on three brokers: a short run of each kind of fault and the further cases, or the table alone if it is asked for.
///
/// # Errors
/// A variable has no value that can be read.
pub(crate) fn cases() -> Result<Vec<Case>> {
    let options = Options::from_environment()?;
    if let Some(faults) = options.faults.clone() {
        return Ok(vec![Case::alone("cluster::table".to_owned(), "it measures how long verdicts are waited for", move |place| {
            make_table(&options, &faults, place)
        })]);
    }
    let shared = Shared::default();
    let mut cases = vec![Case::alone("cluster::names_are_read".to_owned(), THREE_BROKERS, |_| faults::names_are_read())];
    for (module, fault) in Fault::short_runs()? {
        let (options, shared) = (options.clone(), Arc::clone(&shared));
        cases.push(Case::alone(format!("{module}::{fault}"), THREE_BROKERS, move |place| short(&options, fault, &shared, place)));
    }
    for (name, case) in FURTHER {
        let shared = Arc::clone(&shared);
        cases.push(Case::alone(name.to_owned(), THREE_BROKERS, move |place| {
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

/// Runs one fault for a short time.
fn short(options: &Options, fault: Fault, shared: &Shared, place: &Place) -> Result<()> {
    if fault.brokers == Some(BrokerFault::DiskFull) && !has_small_disks() {
        return Err(NotHere("this machine gives a process no file system of its own (unshare and nsenter)".to_owned()).into());
    }
    on_shared(shared, fault, |brokers| {
        let report = on_three_brokers(options, fault, options.seed, place, brokers)?;
        eprintln!("\n{report}");
        is_right(&report)
    })
}

/// Runs each fault as often and as long as asked, each time on brokers of its own, and prints the table. Everything wrong is told at its end.
fn make_table(options: &Options, faults: &[Fault], place: &Place) -> Result<()> {
    let (mut reports, mut failures) = (Vec::new(), Vec::new());
    for fault in faults {
        for seed in options.seed..options.seed + options.runs {
            let directory = options.directory.join(format!("{fault}-{seed}"));
            if directory.exists() {
                std::fs::remove_dir_all(&directory)?;
            }
            std::fs::create_dir_all(&directory)?;
            let place = Place { directory, tollgate: place.tollgate.clone(), target_tmpdir: place.target_tmpdir.clone() };
            let ran = brokers_for(*fault).and_then(|mut brokers| on_three_brokers(options, *fault, seed, &place, &mut brokers));
            match ran {
                Ok(report) => {
                    eprintln!("\n{report}");
                    failures.extend(is_right(&report).err());
                    reports.push(report);
                }
                Err(error) => failures.push(error),
            }
        }
    }
    let table = table(&reports);
    std::fs::write(options.directory.join("table.md"), &table)?;
    eprintln!("\n{table}\n(logs are in {})", options.directory.display());
    let failures: Vec<_> = failures.iter().map(|error| format!("{error:#}")).collect();
    ensure!(failures.is_empty(), "{} runs went wrong:\n{}", failures.len(), failures.join("\n"));
    Ok(())
}

fn is_right(report: &Report) -> Result<()> {
    let count = report.findings.count();
    ensure!(count == 0, "{}, seed {}: {count} findings:\n{}", report.name, report.seed, report.findings);
    Ok(())
}
