//! One run: a deployment and the plain group on the cluster, load, faults, and what came of them.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow};
use serde_json::json;
use tollgate_testkit::{Brokers, BrokersSettings, Cluster, DENIED_TOOL, Deployment, NODES, Random, test_cache};

use super::check::check;
use super::clock::Chronicle;
use super::events::Events;
use super::faults::{BrokerFault, Fault};
use super::fleet::{Fleet, PAIRS};
use super::inject::{OnBrokers, SMALL_DISK_BYTES, SMALL_DISK_NODE, on_workers};
use super::options::Options;
use super::plain::first_reads;
use super::report::Row;
use super::waits::{account, of_gate, of_plain, of_sender};
use super::{load, waits};

const PARTITIONS: i32 = 12;
/// How long load goes on before the first fault.
const QUIET_TIME: Duration = Duration::from_secs(3);
const HEAL_TIME_MAX: Duration = Duration::from_secs(300);
/// How long the groups may take to get through the rest, once all brokers and workers are back.
const END_TIME_MAX: Duration = Duration::from_secs(300);

/// Starts the brokers that a fault needs.
pub(crate) fn brokers_for(fault: Fault) -> Result<Brokers> {
    Brokers::start(&test_cache(&crate::target_tmpdir()), &settings_for(fault))
}

/// Returns what is special about the brokers of a fault: proxies, or a small disk.
fn settings_for(fault: Fault) -> BrokersSettings {
    BrokersSettings {
        proxied: fault.brokers == Some(BrokerFault::Connections),
        small_disk: (fault.brokers == Some(BrokerFault::DiskFull)).then_some((SMALL_DISK_NODE, SMALL_DISK_BYTES)),
        properties: String::new(),
        logs: Some(crate::target_tmpdir().join("kafka")),
    }
}

/// One run and where it writes to.
pub(crate) struct Trial<'t> {
    options: &'t Options,
    fault: Fault,
    seed: u64,
    directory: PathBuf,
    chronicle: Chronicle,
}

impl<'t> Trial<'t> {
    pub(crate) fn new(options: &'t Options, fault: Fault, seed: u64) -> Result<Self> {
        let directory = options.directory.join(format!("{fault}-{seed}"));
        if directory.exists() {
            fs::remove_dir_all(&directory)?;
        }
        fs::create_dir_all(&directory)?;
        let chronicle = Chronicle::new(&directory.join("done.log"))?;
        Ok(Self { options, fault, seed, directory, chronicle })
    }

    /// Runs it. On an error the brokers may be in any condition.
    pub(crate) fn run(&self, brokers: &mut Brokers) -> Result<Row> {
        let ran = self.run_on(brokers);
        for node in 0..NODES {
            let _copied = fs::copy(brokers.log_path(node), self.directory.join(format!("broker-{}.log", node + 1)));
        }
        ran.with_context(|| format!("{}, seed {}; logs are in {}", self.fault, self.seed, self.directory.display()))
    }

    fn run_on(&self, brokers: &mut Brokers) -> Result<Row> {
        let cluster = Cluster::new(brokers.bootstrap(), &crate::tollgate())?;
        let deployment = self.deployment(&cluster)?;
        brokers.wait_in_sync(HEAL_TIME_MAX)?;
        let mut fleet = Fleet::start(&deployment, &self.chronicle, self.directory.clone(), self.fault.is_static)?;
        let noted = Arc::new(Events::default());
        let reader = load::read(&cluster, &deployment.decisions, PARTITIONS, &noted)?;
        let sender = load::send(&cluster, &deployment.events, self.options.rate, self.seed, &noted);
        let injected = self.inject(brokers, &mut fleet, &deployment);
        // The load goes on until it is stopped, whatever has happened.
        self.chronicle.note("the load ends")?;
        let healed = brokers.heal(HEAL_TIME_MAX);
        let sent = sender.finish();
        injected.and(healed).and(sent)?;
        fleet.complete()?;
        fleet.wait_recovered()?;
        let plain_behind = self.wait_for_the_rest(&noted, &fleet)?;
        for number in 0..PAIRS {
            fleet.stop_in_peace(number)?;
        }
        reader.finish()?;
        let events = noted.events();
        let first_reads = first_reads(&fleet.notes, events.len())?;
        let checked = check(&cluster, &deployment, &events)?;
        let ((gate, appended), (plain, plain_unread)) = (of_gate(&events), of_plain(&events, &first_reads));
        let account = account(&events, &first_reads, &self.chronicle, &fleet.logs);
        fs::write(self.directory.join("account.txt"), &account)?;
        eprintln!("{account}\n(all of it and all logs: {})", self.directory.display());
        let findings = std::mem::take(&mut fleet.findings).into_iter().chain(plain_behind).chain(self.panics(&fleet.logs)).collect();
        let (fault, seed) = (self.fault.to_string(), self.seed);
        let sender = of_sender(&events);
        Ok(Row { fault, seed, events: events.len(), gate, appended, plain, sender, checked, plain_unread, findings })
    }

    fn deployment(&self, cluster: &Cluster) -> Result<Deployment> {
        // The broker's own time of each verdict says how much of a wait is the reader's.
        let appended = [("message.timestamp.type", "LogAppendTime")];
        let mut deployment = Deployment::with_topic_settings(cluster, PARTITIONS, &[], &appended, &[])?;
        // The state topic of other tests is compacted as eagerly as Kafka lets it be, which takes much of the time that three brokers have.
        deployment.state = cluster.topic("state", PARTITIONS, &[("cleanup.policy", "compact")])?;
        deployment.configure("/kafka/topics/state", json!(deployment.state));
        // The clients' settings are the defaults: those of the worker are what is measured.
        deployment.configure("/kafka/properties", json!({}));
        deployment.configure("/log/filter", json!("info,tollgate=debug,librdkafka=debug"));
        deployment.configure(
            "/guardrails",
            json!({"enabled": true, "provider": {"use": "allowlist", "config": {"denied_tools": [DENIED_TOOL]}}}),
        );
        for (pointer, value) in &self.options.config {
            deployment.configure(pointer, value.clone());
        }
        deployment.keep_logs(&self.directory);
        Ok(deployment)
    }

    fn inject(&self, brokers: &mut Brokers, fleet: &mut Fleet<'_>, deployment: &Deployment) -> Result<()> {
        sleep(QUIET_TIME);
        let until = Instant::now() + Duration::from_secs(self.options.seconds);
        let Fault { brokers: of_brokers, workers, .. } = self.fault;
        let random = |salt: u64| Random::new(self.seed ^ salt);
        let mut on_brokers = OnBrokers { brokers, chronicle: &self.chronicle, random: random(0xb20c_e125), topic: &deployment.events };
        scope(|threads| {
            let brokers = threads.spawn(move || of_brokers.map_or(Ok(()), |fault| on_brokers.run(fault, until)));
            let workers = workers.map_or(Ok(()), |fault| on_workers(fault, fleet, &mut random(0x00f1_ee70), until));
            let brokers = brokers.join().map_err(|_| anyhow!("the faults of brokers panicked"))?;
            brokers.and(workers)
        })?;
        sleep(until.saturating_duration_since(Instant::now()));
        Ok(())
    }

    /// Waits until both groups have got through all events. What is left after that is counted later.
    fn wait_for_the_rest(&self, noted: &Events, fleet: &Fleet<'_>) -> Result<Option<String>> {
        let deadline = Instant::now() + END_TIME_MAX;
        loop {
            let (unacknowledged, unanswered) = noted.left();
            // One lock at a time: the events are locked while they are looked at.
            let count = noted.events().len();
            let first_reads = first_reads(&fleet.notes, count)?;
            let unread = of_plain(&noted.events(), &first_reads).1;
            if unacknowledged + unanswered + unread == 0 {
                return Ok(None);
            }
            if Instant::now() > deadline {
                self.chronicle
                    .note(format_args!("left in the end: {unacknowledged} unacknowledged, {unanswered} unanswered, {unread} unread"))?;
                return Ok((unread > 0).then(|| format!("the plain group left {unread} events unread")));
            }
            sleep(Duration::from_millis(300));
        }
    }

    fn panics(&self, logs: &[PathBuf]) -> Vec<String> {
        let has_panicked = |path: &&PathBuf| fs::read_to_string(path).is_ok_and(|log| log.contains("panicked at"));
        logs.iter().filter(has_panicked).map(|path| format!("a thread panicked: {}", path.display())).collect()
    }
}

/// Returns one line for people about a run.
pub(crate) fn summary(row: &Row) -> String {
    let waits::Waits { longest, p99, .. } = row.gate;
    format!(
        "{} (seed {}): gate {longest:.1} s (p99 {p99:.2}), plain {:.1} s (p99 {:.2}), ratio {:.2}, sender {:.1} s; {} events, {} missing, {} different, {} copies, {} findings",
        row.fault,
        row.seed,
        row.plain.longest,
        row.plain.p99,
        row.ratio(),
        row.sender.longest,
        row.events,
        row.checked.missing + row.checked.unacknowledged,
        row.checked.different,
        row.checked.copies,
        row.findings.len(),
    )
}
