//! The health of the process: the condition of its members and of the controls, as `/livez` and `/readyz` show it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use dashmap::DashMap;
use serde::Serialize;

use tollgate_core::event::record::Partition;

use crate::threads::Threads;

/// A member that has not polled for this long is stuck.
const BEAT_AGE_MAX: Duration = Duration::from_secs(60);

/// A member of the process: its stage, and its number there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemberId {
    /// The name of its stage; `None` for the one that gives verdicts.
    pub stage: Option<&'static str>,
    /// Its number among the members of the stage.
    pub number: usize,
}

impl MemberId {
    /// Returns the name of its thread.
    #[must_use]
    pub fn thread(&self) -> String {
        format!("{}-{}", self.stage.unwrap_or("member"), self.number)
    }
}

impl std::fmt::Display for MemberId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.stage {
            None => write!(f, "{}", self.number),
            Some(stage) => write!(f, "{stage}-{}", self.number),
        }
    }
}

/// The phase of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum MemberPhase {
    /// It waits for its first assignment.
    Starting,
    /// It has an assignment, which may be empty.
    Assigned,
    /// It waits for acknowledgements and commits before it gives partitions up or leaves. How long that takes depends on Kafka.
    Draining,
    /// It has failed and will start over.
    Failed,
    /// It has left.
    Stopped,
}

/// The partitions of a member.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MemberPartitions {
    /// All partitions that it holds.
    pub held: Vec<Partition>,
    /// Partitions whose state is being restored.
    pub restoring: Vec<Partition>,
    /// Partitions whose state could not be read. The restore is tried again.
    pub failed: Vec<Partition>,
}

#[derive(Debug)]
struct MemberHealth {
    phase: MemberPhase,
    partitions: MemberPartitions,
    beat: Instant,
}

impl MemberHealth {
    fn is_ready(&self) -> bool {
        self.phase == MemberPhase::Assigned && self.partitions.restoring.is_empty() && self.partitions.failed.is_empty()
    }
}

/// The condition of the members of a process, and of the controls that they decide under.
#[derive(Debug, Default)]
pub struct Health {
    members: DashMap<MemberId, MemberHealth>,
    controls: Mutex<ControlsHealth>,
    threads: Arc<Threads>,
    problems: Mutex<BTreeMap<String, String>>,
    warnings: Mutex<BTreeMap<&'static str, String>>,
}

#[derive(Debug, Default)]
struct ControlsHealth {
    has_caught_up: bool,
    /// The last beat of the feed that reads them; `None` while no feed runs.
    beat: Option<Instant>,
    /// What an open transaction hides, as a sentence.
    hidden: Option<String>,
}

/// The body of `/readyz`.
#[derive(Debug, Serialize)]
pub struct HealthReport {
    /// Whether every member has its assignment and its state, and the controls are known.
    pub ready: bool,
    /// Whether the controls topic has been read to its end. Nothing is decided before.
    pub controls: &'static str,
    /// What an open transaction hides of the controls, as a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub controls_hidden: Option<String>,
    /// The members in the order of their numbers.
    pub members: Vec<MemberReport>,
    /// What keeps the process from working and does not pass by itself, as sentences.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<String>,
    /// What keeps others from working, as sentences: the process itself is ready.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// One member of a report.
#[derive(Debug, Serialize)]
pub struct MemberReport {
    member: usize,
    /// The name of its stage, if that is not the one that gives verdicts.
    #[serde(skip_serializing_if = "Option::is_none")]
    stage: Option<&'static str>,
    phase: MemberPhase,
    partitions: Vec<i32>,
    /// Partitions whose state is being restored: their events wait.
    restoring: Vec<i32>,
    /// Partitions whose state could not be restored yet: their events wait until it can be.
    failed: Vec<i32>,
}

impl Health {
    /// Sets a member's phase and partitions. This counts as a beat.
    pub fn set(&self, member: MemberId, phase: MemberPhase, partitions: MemberPartitions) {
        self.members.insert(member, MemberHealth { phase, partitions, beat: Instant::now() });
    }

    /// Sets a member's partitions, whatever its phase.
    pub fn set_partitions(&self, member: MemberId, partitions: MemberPartitions) {
        if let Some(mut health) = self.members.get_mut(&member) {
            health.partitions = partitions;
        }
    }

    /// Sets what keeps a part of the process from working, or that nothing does any more. Returns whether that is news.
    pub fn set_problem(&self, part: &str, problem: Option<String>) -> bool {
        let mut problems = self.problems();
        match problem {
            Some(problem) => problems.insert(part.to_owned(), problem.clone()).is_none_or(|before| before != problem),
            None => problems.remove(part).is_some(),
        }
    }

    /// Returns whether anything keeps a part of the process from working.
    #[must_use]
    pub fn has_problems(&self) -> bool {
        !self.problems().is_empty()
    }

    /// Sets why the brokers do not answer the watch of a stage, or that they do. Returns whether that is news.
    pub fn set_cut_off(&self, stage: Option<&str>, why: Option<String>) -> bool {
        self.set_problem(&cut_off(stage), why)
    }

    /// Returns whether the brokers do not answer the watch of a stage, so that its lag is unknown.
    #[must_use]
    pub fn is_cut_off(&self, stage: Option<&str>) -> bool {
        self.problems().contains_key(&cut_off(stage))
    }

    /// Sets what a part of the process finds wrong with others, or that nothing is wrong any more. Returns whether that is news.
    pub fn set_warning(&self, part: &'static str, warning: Option<String>) -> bool {
        let mut warnings = self.warnings.lock().unwrap_or_else(PoisonError::into_inner);
        match warning {
            Some(warning) => warnings.insert(part, warning.clone()).is_none_or(|before| before != warning),
            None => warnings.remove(part).is_some(),
        }
    }

    fn problems(&self) -> MutexGuard<'_, BTreeMap<String, String>> {
        self.problems.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets whether the controls have been read to their end. This counts as a beat.
    pub fn set_controls(&self, has_caught_up: bool) {
        let mut controls = self.controls();
        (controls.has_caught_up, controls.beat) = (has_caught_up, Some(Instant::now()));
    }

    /// Returns whether the controls have been read to their end.
    #[must_use]
    pub fn has_caught_up(&self) -> bool {
        self.controls().has_caught_up
    }

    /// Sets what an open transaction hides of the controls, as a sentence; `None` if nothing is hidden.
    pub fn set_controls_hidden(&self, hidden: Option<String>) {
        self.controls().hidden = hidden;
    }

    /// Returns what an open transaction hides of the controls.
    #[must_use]
    pub fn controls_hidden(&self) -> Option<String> {
        self.controls().hidden.clone()
    }

    /// Records that the feed of controls has polled.
    pub fn beat_controls(&self) {
        self.controls().beat = Some(Instant::now());
    }

    /// Records that the feed of controls has ended, because the process stops.
    pub fn end_controls(&self) {
        self.controls().beat = None;
    }

    fn controls(&self) -> MutexGuard<'_, ControlsHealth> {
        self.controls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that a member has polled.
    pub fn beat(&self, member: MemberId) {
        if let Some(mut health) = self.members.get_mut(&member) {
            health.beat = Instant::now();
        }
    }

    /// Returns the threads that do not run although they have to.
    #[must_use]
    pub fn threads(&self) -> &Arc<Threads> {
        &self.threads
    }

    /// Returns what is wrong with the process, in a sentence for each fault: a thread that panicked or ended, a member or the feed of controls
    /// that does not poll. Without any it is alive. The brokers do not matter here: a restart would not bring them back.
    #[must_use]
    pub fn faults(&self) -> Vec<String> {
        let polls = |phase| matches!(phase, MemberPhase::Starting | MemberPhase::Assigned);
        let mut faults = self.threads.sentences();
        if let Some(age) = self.controls().beat.map(|beat| beat.elapsed()).filter(|age| *age >= BEAT_AGE_MAX) {
            faults.push(format!("the feed of controls has not polled for {} s", age.as_secs()));
        }
        let silent = self.members.iter().filter(|member| polls(member.phase) && member.beat.elapsed() >= BEAT_AGE_MAX);
        faults.extend(silent.map(|member| format!("member {} has not polled for {} s", member.key(), member.beat.elapsed().as_secs())));
        faults.sort();
        faults
    }

    /// Returns whether the controls are known, there are members, each with its assignment and its state, and nothing keeps them from
    /// working. Verdicts do not wait for other stages: their members count only where nobody decides, and controls only where somebody does.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        let decides = self.decides();
        let mut counted = self.members.iter().filter(|member| member.key().stage.is_none() == decides).peekable();
        !self.has_problems() && (!decides || self.has_caught_up()) && counted.peek().is_some() && counted.all(|member| member.is_ready())
    }

    fn decides(&self) -> bool {
        self.members.iter().any(|member| member.key().stage.is_none())
    }

    /// Returns how many partitions the members hold of the stage that the process is there for, or `None` if the process is not ready.
    #[must_use]
    pub fn ready_partitions(&self) -> Option<usize> {
        let decides = self.decides();
        let held = || {
            self.members.iter().filter(|member| member.key().stage.is_none() == decides).map(|member| member.partitions.held.len()).sum()
        };
        self.is_ready().then(held)
    }

    /// Returns whether a member of a stage has an assignment, which may be empty.
    #[must_use]
    pub fn is_assigned(&self, stage: Option<&str>) -> bool {
        self.members.iter().any(|member| member.key().stage == stage && member.phase == MemberPhase::Assigned)
    }

    /// Returns the partitions that the members of a stage hold, each with the number of its member, in the order of the partitions.
    #[must_use]
    pub fn held(&self, stage: Option<&str>) -> Vec<(usize, Partition)> {
        let members = self.members.iter().filter(|member| member.key().stage == stage);
        let of = |member: dashmap::mapref::multiple::RefMulti<'_, MemberId, MemberHealth>| {
            let number = member.key().number;
            member.partitions.held.iter().map(|partition| (number, *partition)).collect::<Vec<_>>()
        };
        let mut held: Vec<_> = members.flat_map(of).collect();
        held.sort_by_key(|(_, partition)| *partition);
        held
    }

    /// Returns how many partitions the members of a further stage hold, or `None` while one of them waits for its assignment or its state.
    #[must_use]
    pub fn stage_partitions(&self, stage: &str) -> Option<usize> {
        let members = || self.members.iter().filter(|member| member.key().stage == Some(stage));
        let is_ready = members().next().is_some() && members().all(|member| member.is_ready());
        is_ready.then(|| members().map(|member| member.partitions.held.len()).sum())
    }

    /// Returns the condition of the controls and of every member.
    #[must_use]
    pub fn report(&self) -> HealthReport {
        let mut members: Vec<_> = self
            .members
            .iter()
            .map(|entry| MemberReport {
                member: entry.key().number,
                stage: entry.key().stage,
                phase: entry.phase,
                partitions: numbers(&entry.partitions.held),
                restoring: numbers(&entry.partitions.restoring),
                failed: numbers(&entry.partitions.failed),
            })
            .collect();
        members.sort_by_key(|member| (member.stage, member.member));
        // The members are known before the controls are.
        let controls = if !self.members.is_empty() && !self.decides() {
            "not_read"
        } else if self.has_caught_up() {
            if self.controls_hidden().is_some() { "open_transaction" } else { "caught_up" }
        } else {
            "catching_up"
        };
        let mut problems: Vec<_> = self.problems().values().cloned().collect();
        // Several members may have the same.
        problems.dedup();
        let warnings = self.warnings.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect();
        HealthReport { ready: self.is_ready(), controls, controls_hidden: self.controls_hidden(), members, problems, warnings }
    }
}

/// Returns the name of the problem that the brokers do not answer.
fn cut_off(stage: Option<&str>) -> String {
    format!("{} brokers", stage.unwrap_or_default())
}

fn numbers(partitions: &[Partition]) -> Vec<i32> {
    partitions.iter().map(|partition| partition.0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DECIDING: [MemberId; 2] = [MemberId { stage: None, number: 0 }, MemberId { stage: None, number: 1 }];

    #[test]
    fn ready_means_that_every_member_has_its_assignment_and_the_state_of_it() {
        let health = Health::default();
        health.set_controls(true);
        assert!(!health.is_ready() && health.faults().is_empty());
        let nothing = MemberPartitions::default();
        let whole = MemberPartitions { held: vec![Partition(3)], ..MemberPartitions::default() };
        health.set(DECIDING[0], MemberPhase::Assigned, MemberPartitions { restoring: vec![Partition(3)], ..whole.clone() });
        assert!(!health.is_ready() && health.faults().is_empty());
        health.set(DECIDING[0], MemberPhase::Assigned, MemberPartitions { failed: vec![Partition(3)], ..whole.clone() });
        assert!(!health.is_ready() && health.faults().is_empty());
        health.set(DECIDING[0], MemberPhase::Assigned, whole);
        assert!(health.is_ready());
        health.set_controls(false);
        assert!(!health.is_ready() && health.faults().is_empty());
        assert_eq!(health.report().controls, "catching_up");
        health.set_controls(true);
        health.set(DECIDING[1], MemberPhase::Starting, nothing.clone());
        assert!(!health.is_ready());
        health.set(DECIDING[1], MemberPhase::Assigned, nothing.clone());
        assert!(health.is_ready());
        health.set(DECIDING[0], MemberPhase::Failed, nothing);
        assert!(!health.is_ready() && health.faults().is_empty());
        health.threads().panicked("member-0");
        assert_eq!(health.faults(), ["thread member-0 panicked and is being started over"]);
    }

    #[test]
    fn other_stages_keep_nobody_from_deciding() {
        let (health, abuse) = (Health::default(), MemberId { stage: Some("abuse"), number: 0 });
        let held = |partitions: &[i32]| MemberPartitions {
            held: partitions.iter().copied().map(Partition).collect(),
            ..MemberPartitions::default()
        };
        health.set(abuse, MemberPhase::Assigned, MemberPartitions { restoring: vec![Partition(1)], ..held(&[1]) });
        assert_eq!((health.is_ready(), health.ready_partitions(), health.stage_partitions("abuse")), (false, None, None), "it is alone");
        health.set(abuse, MemberPhase::Assigned, held(&[1]));
        assert_eq!((health.ready_partitions(), health.stage_partitions("abuse")), (Some(1), Some(1)), "it reads no controls");
        assert_eq!(health.report().controls, "not_read");
        health.set(DECIDING[0], MemberPhase::Assigned, held(&[0, 1, 2]));
        assert!(!health.is_ready());
        health.set_controls(true);
        health.set(abuse, MemberPhase::Starting, held(&[]));
        assert_eq!((health.ready_partitions(), health.stage_partitions("abuse")), (Some(3), None));
        let report = serde_json::to_value(health.report()).unwrap();
        assert_eq!((&report["members"][0]["stage"], &report["members"][1]["stage"]), (&serde_json::Value::Null, &"abuse".into()));
        assert_eq!(abuse.thread(), "abuse-0");
    }
}
