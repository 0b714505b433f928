//! The workers, as their reports in the controls topic show them: whether they look subjects up under the key of this command, and whether
//! each has applied a control.

use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use clap::Args;

use tollgate_config::settings::KafkaSettings;
use tollgate_config::topics::TopicRole;
use tollgate_core::decide::controls::SubjectHasher;
use tollgate_core::event::record::Partition;
use tollgate_json::time::parse_timestamp;
use tollgate_worker::control_feed::WorkerReport;

use super::super::read_duration;
use super::listing::Listing;
use super::read::read_notes;
use tollgate_operations::Place;
use tollgate_operations::Topics;

/// How often to look for new reports.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);

/// The report of each event partition's worker, by group and partition. If two workers name a partition, the later report counts: so the
/// report of a worker that was killed goes as soon as other workers have its partitions.
pub(crate) struct WorkerReports(BTreeMap<(String, i32), WorkerReport>);

impl WorkerReports {
    /// Returns the last report of each partition.
    pub(crate) fn of(reports: impl IntoIterator<Item = WorkerReport>) -> Self {
        let mut reports: Vec<_> = reports.into_iter().collect();
        reports.sort_by_key(|report| parse_timestamp(&report.at));
        let named =
            |report: WorkerReport| report.partitions.clone().into_iter().map(move |at| ((report.group.clone(), at), report.clone()));
        Self(reports.into_iter().flat_map(named).collect())
    }

    /// Refuses a command whose subject keys are not those that its purpose needs, beside the keys of the workers of its group. Workers of other
    /// groups, whose notes may be left over, refuse nothing.
    ///
    /// # Errors
    /// The keys differ.
    pub(crate) fn check_keys<'k>(&self, group: &str, keys: impl IntoIterator<Item = &'k str>, purpose: Purpose) -> anyhow::Result<()> {
        let own: Vec<_> = keys.into_iter().filter_map(|key| SubjectHasher::new(Some(key)).fingerprint()).collect();
        let fits = |theirs: &[String]| match purpose {
            _ if own.is_empty() || theirs.is_empty() => own.is_empty() && theirs.is_empty(),
            Purpose::Write => own.first().is_some_and(|first| theirs.contains(first)),
            Purpose::LookUp => theirs.iter().all(|key| own.contains(key)),
        };
        let names = |is_own: bool| {
            let others = self.0.iter().filter(|((of, _), report)| (of == group) == is_own && !fits(&report.subject_keys));
            others.map(|(_, report)| report.worker.as_str()).collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>().join(", ")
        };
        let (workers, strangers) = (names(true), names(false));
        if !strangers.is_empty() {
            say!("tollgate: workers of other groups than {group} (kafka.group_id) have other subject keys: {strangers}");
        }
        match purpose {
            _ if self.workers(group) == 0 => {
                say!("tollgate: no worker has said under which subject key it looks this id up: whether it is this key is not known")
            }
            _ if workers.is_empty() => {}
            _ if own.is_empty() => bail!(
                "privacy.subject_key is not set, and the workers have a key ({workers}): they would not find what is written without it; give this command the workers' key (TOLLGATE__PRIVACY__SUBJECT_KEY_FILE)"
            ),
            Purpose::Write => bail!(
                "privacy.subject_key: the workers do not have this key ({workers}) and would not find what is written under it; give this command the workers' key"
            ),
            Purpose::LookUp => bail!(
                "privacy.subject_keys: the workers look subjects up under other keys than this command has, or without a key ({workers}), and what is written so stays unseen; give this command the keys of the workers"
            ),
        }
        Ok(())
    }

    /// Names the workers of a group that do not read all of so many partitions of the controls topic. Returns whether a place is on a partition
    /// that such a worker does not read.
    fn say_unread(&self, group: &str, partitions: usize, places: &[Place]) -> bool {
        let of_group = self.0.iter().filter(|((of, _), report)| of == group && report.read.len() < partitions);
        let behind: BTreeMap<&str, usize> = of_group.map(|(_, report)| (report.worker.as_str(), report.read.len())).collect();
        for (worker, read) in &behind {
            say!(
                "tollgate: the controls topic has {partitions} partitions, and worker {worker} reads the {read} that were there when it started; restart it"
            );
        }
        let is_read = |at: Partition| behind.values().all(|read| usize::try_from(at.0).is_ok_and(|at| at < *read));
        places.iter().any(|(at, _)| !is_read(*at))
    }

    /// Returns the workers of a group whose policy reads no passports.
    fn without_passports(&self, group: &str) -> BTreeSet<&str> {
        let of_group = self.0.iter().filter(|((of, _), report)| of == group && !report.reads_passports);
        of_group.map(|(_, report)| report.worker.as_str()).collect()
    }

    /// Returns what keeps a control at this place from counting on each of so many partitions of a group: nobody has said that it holds a
    /// partition, or its worker has not said that it has applied the control. Empty if it counts everywhere.
    fn missing(&self, group: &str, partitions: u32, (at, offset): Place) -> BTreeMap<Option<&str>, Vec<i32>> {
        let read = |report: &WorkerReport| usize::try_from(at.0).ok().and_then(|at| report.read.get(at)).copied().unwrap_or_default();
        let mut missing: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for partition in 0..i32::try_from(partitions).unwrap_or(i32::MAX) {
            match self.0.get(&(group.to_owned(), partition)) {
                Some(report) if read(report) > offset.0 => {}
                report => missing.entry(report.map(|report| report.worker.as_str())).or_default().push(partition),
            }
        }
        missing
    }

    /// Names the workers of a group whose policy reads no passports. Returns whether there are any.
    fn say_without_passports(&self, group: &str) -> bool {
        let names = self.without_passports(group).into_iter().collect::<Vec<_>>().join(", ");
        if !names.is_empty() {
            say!(
                "tollgate: it is without effect on the calls that these workers decide: {names}; no guardrail provider of theirs reads passports (oap_passport among guardrails.providers)"
            );
        }
        !names.is_empty()
    }

    fn workers(&self, group: &str) -> usize {
        self.0.iter().filter(|((of, _), _)| of == group).map(|(_, report)| &report.worker).collect::<BTreeSet<_>>().len()
    }
}

/// What a command needs its subject keys for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// It writes under its first key, which each worker needs among its own.
    Write,
    /// It looks for what is written, and needs every key that a worker has.
    LookUp,
}

/// What was written, and is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Written {
    /// What restricts counts before it is committed.
    Restriction,
    /// What permits counts when it is committed.
    Permission,
    /// A passport counts where a policy reads passports.
    Passport,
}

/// Whether to wait until a change counts.
#[derive(Debug, Clone, Copy, Default, Args)]
pub(crate) struct WaitArgs {
    /// Wait until every worker has applied it, for so long at most, and say how long that took; fail if a worker has not [default: 30s]
    #[arg(long, value_name = "DURATION", value_parser = read_duration, num_args = 0..=1, default_missing_value = "30s")]
    wait: Option<Duration>,
}

impl WaitArgs {
    /// Returns whether the command waits.
    pub(crate) fn is_asked(self) -> bool {
        self.wait.is_some()
    }

    /// Waits, if that is asked, until what was written at these places counts in the worker of every event partition, and says how long that
    /// took since the writing `started`. `listing` is the topic as it was before.
    ///
    /// # Errors
    /// The topics cannot be read, or an open transaction holds back what permits.
    pub(crate) fn await_applied(
        self,
        kafka: &KafkaSettings,
        (places, started): (&[Place], Instant),
        listing: anyhow::Result<Listing>,
        written: Written,
    ) -> anyhow::Result<ExitCode> {
        let is_without_effect = |reports: &WorkerReports| written == Written::Passport && reports.say_without_passports(&kafka.group_id);
        let known = listing.as_ref().ok().map(|listing| (WorkerReports::of(listing.reports()), listing.partitions_total()));
        let is_unread = known.as_ref().is_some_and(|(reports, partitions)| reports.say_unread(&kafka.group_id, *partitions, places));
        let Some(wait) = self.wait else {
            _ = known.is_some_and(|(reports, _)| is_without_effect(&reports));
            return Ok(if is_unread { ExitCode::FAILURE } else { ExitCode::SUCCESS });
        };
        let mut listing = listing.context("it is written, and whether workers apply it cannot be told")?;
        if listing.is_partial() && written != Written::Restriction {
            bail!(
                "it is written, and counts once the open transaction on the controls topic has ended; --wait does not wait for strangers"
            );
        }
        let deadline = Instant::now() + wait;
        let topics = Topics::uncommitted(kafka)?;
        let (controls, partitions) = (topics.find(TopicRole::Controls)?, topics.find(TopicRole::Events)?.partitions);
        loop {
            read_notes(&topics, controls, &mut listing)?;
            let reports = WorkerReports::of(listing.reports());
            let missing =
                places.iter().map(|place| reports.missing(&kafka.group_id, partitions, *place)).find(|missing| !missing.is_empty());
            let Some(missing) = missing else {
                let (workers, seconds) = (reports.workers(&kafka.group_id), started.elapsed().as_secs_f64());
                say!("every worker has applied it: workers: {workers}, partitions: {partitions}, after {seconds:.2} s");
                return Ok(if is_without_effect(&reports) { ExitCode::FAILURE } else { ExitCode::SUCCESS });
            };
            if Instant::now() >= deadline {
                say_missing(&kafka.group_id, wait, missing);
                return Ok(ExitCode::FAILURE);
            }
            std::thread::sleep(LOOK_INTERVAL);
        }
    }
}

/// Says which workers have not applied a control in time.
fn say_missing(group: &str, wait: Duration, missing: BTreeMap<Option<&str>, Vec<i32>>) {
    let seconds = wait.as_secs();
    say!("it is written, and not every worker of group {group} (kafka.group_id) has said within {seconds} s that it has applied it:");
    for (worker, partitions) in missing {
        let numbers = partitions.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        match worker {
            Some(worker) => say!("  worker {worker}, which holds the event partitions {numbers}"),
            None => say!("  event partitions {numbers}, of which no worker has said that it holds them"),
        }
    }
}

#[cfg(test)]
mod tests {
    use tollgate_core::event::record::Offset;

    use super::*;

    fn report(worker: &str, keys: &[&str], partitions: &[i32], read: i64, second: u32) -> WorkerReport {
        WorkerReport {
            group: "g".to_owned(),
            worker: worker.to_owned(),
            subject_keys: keys.iter().filter_map(|key| SubjectHasher::new(Some(key)).fingerprint()).collect(),
            partitions: partitions.to_vec(),
            read: vec![read],
            reads_passports: true,
            at: format!("2026-01-01T00:00:{second:02}Z"),
        }
    }

    fn check(reports: &WorkerReports, key: Option<&str>) -> Result<(), String> {
        reports.check_keys("g", key, Purpose::Write).map_err(|error| error.to_string())
    }

    #[test]
    fn a_key_that_a_worker_does_not_have_is_refused() {
        let reports = WorkerReports::of([report("a", &["new", "old"], &[0], 0, 1), report("b", &["old"], &[1], 0, 1)]);
        assert_eq!(check(&reports, Some("old")), Ok(()));
        let refused = check(&reports, Some("new")).unwrap_err();
        assert!(refused.contains("the workers do not have this key (b) and"), "{refused}");
        let refused = check(&reports, None).unwrap_err();
        assert!(refused.contains("is not set, and the workers have a key (a, b)"), "{refused}");
        let keyless = WorkerReports::of([report("a", &[], &[0], 0, 1)]);
        assert!(check(&keyless, None).is_ok() && check(&keyless, Some("old")).is_err());
        // Without reports nobody is kept from stopping somebody.
        assert_eq!(check(&WorkerReports::of([]), Some("old")), Ok(()));
    }

    #[test]
    fn who_looks_something_up_needs_every_key_of_the_workers_and_strangers_refuse_nothing() {
        let reports = WorkerReports::of([report("a", &["new", "old"], &[0], 0, 1)]);
        let look_up = |keys: &[&str]| reports.check_keys("g", keys.iter().copied(), Purpose::LookUp).map_err(|error| error.to_string());
        assert!(look_up(&["old", "new"]).is_ok() && look_up(&["new", "old", "older"]).is_ok());
        assert!(look_up(&["old"]).unwrap_err().contains("under other keys than this command has, or without a key (a)"));
        assert!(look_up(&[]).unwrap_err().contains("is not set, and the workers have a key (a)"));
        let stranger = WorkerReport { group: "retired".to_owned(), ..report("w-old", &["other"], &[0], 0, 1) };
        let reports = WorkerReports::of([report("a", &["k"], &[0], 0, 1), stranger]);
        assert_eq!(check(&reports, Some("k")), Ok(()));
        assert!(check(&reports, Some("other")).unwrap_err().contains("(a)"));
    }

    #[test]
    fn a_partition_that_was_added_later_is_one_that_no_running_worker_reads() {
        let reports = WorkerReports::of([report("a", &[], &[0], 3, 1)]);
        let is_unread = |group, partitions, at| reports.say_unread(group, partitions, &[(Partition(at), Offset(0))]);
        assert!(is_unread("g", 2, 1) && !is_unread("g", 2, 0) && !is_unread("g", 1, 0) && !is_unread("h", 2, 1));
    }

    #[test]
    fn a_worker_whose_partitions_others_have_counts_no_more() {
        let reports = WorkerReports::of([report("new", &["k"], &[0, 1], 8, 9), report("killed", &[], &[0, 1], 1, 2)]);
        assert!(check(&reports, Some("k")).is_ok() && reports.workers("g") == 1 && reports.workers("h") == 0);
        assert!(reports.without_passports("g").is_empty());
        let silent = WorkerReports::of([WorkerReport { reads_passports: false, ..report("old", &[], &[0], 1, 1) }]);
        assert_eq!((silent.without_passports("g"), silent.without_passports("h")), (BTreeSet::from(["old"]), BTreeSet::new()));
        assert!(reports.missing("g", 2, (Partition(0), Offset(7))).is_empty());
    }

    #[test]
    fn a_control_counts_once_the_worker_of_every_partition_has_applied_it() {
        let reports = WorkerReports::of([report("a", &[], &[0, 2], 8, 1), report("b", &[], &[1], 7, 1)]);
        let missing = |partitions, at, offset| reports.missing("g", partitions, (Partition(at), Offset(offset)));
        assert!(missing(3, 0, 6).is_empty());
        assert_eq!(missing(3, 0, 7), BTreeMap::from([(Some("b"), vec![1])]));
        assert_eq!(missing(5, 0, 6), BTreeMap::from([(None, vec![3, 4])]));
        assert_eq!(missing(3, 1, 0).len(), 2, "of another partition of the controls nothing was said");
        assert_eq!(reports.missing("h", 1, (Partition(0), Offset(0))), BTreeMap::from([(None, vec![0])]));
    }
}
