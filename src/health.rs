//! The condition of the members, as `/livez` and `/readyz` show it.

use std::time::{Duration, Instant};

use dashmap::DashMap;
use serde::Serialize;

use crate::decode::Partition;

/// A member that has not polled for this long is stuck.
const BEAT_AGE_MAX: Duration = Duration::from_secs(60);

/// Where a member stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum MemberPhase {
    /// It waits for its first assignment.
    Starting,
    /// It has an assignment, which may be empty.
    Assigned,
    /// It waits for acknowledgements and commits, before it gives partitions up or leaves. That depends on Kafka.
    Draining,
    /// It failed and will start over.
    Failed,
    /// It has left.
    Stopped,
}

/// The partitions of a member.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MemberPartitions {
    /// All that it holds.
    pub held: Vec<Partition>,
    /// Those whose state is being read.
    pub restoring: Vec<Partition>,
    /// Those whose state could not be read, and is tried again.
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

/// The members of a process by number.
#[derive(Debug, Default)]
pub struct Health {
    members: DashMap<usize, MemberHealth>,
}

/// What `/readyz` answers.
#[derive(Debug, Serialize)]
pub struct HealthReport {
    /// Whether every member has its assignment and the state of it.
    pub ready: bool,
    /// The members in order.
    pub members: Vec<MemberReport>,
}

/// One member of a report.
#[derive(Debug, Serialize)]
pub struct MemberReport {
    member: usize,
    phase: MemberPhase,
    partitions: Vec<i32>,
    /// Those of them whose state is being read: their events wait.
    restoring: Vec<i32>,
    /// Those of them whose state could not be read: their events wait until it can be.
    failed: Vec<i32>,
}

impl Health {
    /// Shows where a member stands; that counts as a beat.
    pub fn set(&self, member: usize, phase: MemberPhase, partitions: MemberPartitions) {
        self.members.insert(member, MemberHealth { phase, partitions, beat: Instant::now() });
    }

    /// Shows which partitions a member holds, wherever it stands.
    pub fn set_partitions(&self, member: usize, partitions: MemberPartitions) {
        if let Some(mut health) = self.members.get_mut(&member) {
            health.partitions = partitions;
        }
    }

    /// A member has polled.
    pub fn beat(&self, member: usize) {
        if let Some(mut health) = self.members.get_mut(&member) {
            health.beat = Instant::now();
        }
    }

    /// Whether every member still polls. It says nothing about Kafka: a restart would not bring a broker back.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        let polls = |phase| matches!(phase, MemberPhase::Starting | MemberPhase::Assigned);
        self.members.iter().all(|member| !polls(member.phase) || member.beat.elapsed() < BEAT_AGE_MAX)
    }

    /// Whether there are members and each has its assignment and the state of it.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        !self.members.is_empty() && self.members.iter().all(|member| member.is_ready())
    }

    /// All of it.
    #[must_use]
    pub fn report(&self) -> HealthReport {
        let mut members: Vec<_> = self
            .members
            .iter()
            .map(|entry| MemberReport {
                member: *entry.key(),
                phase: entry.phase,
                partitions: numbers(&entry.partitions.held),
                restoring: numbers(&entry.partitions.restoring),
                failed: numbers(&entry.partitions.failed),
            })
            .collect();
        members.sort_by_key(|member| member.member);
        HealthReport { ready: self.is_ready(), members }
    }
}

fn numbers(partitions: &[Partition]) -> Vec<i32> {
    partitions.iter().map(|partition| partition.0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ready_means_that_every_member_has_its_assignment_and_the_state_of_it() {
        let health = Health::default();
        assert!(!health.is_ready() && health.is_alive());
        let nothing = MemberPartitions::default();
        let whole = MemberPartitions { held: vec![Partition(3)], ..MemberPartitions::default() };
        health.set(0, MemberPhase::Assigned, MemberPartitions { restoring: vec![Partition(3)], ..whole.clone() });
        assert!(!health.is_ready() && health.is_alive());
        health.set(0, MemberPhase::Assigned, MemberPartitions { failed: vec![Partition(3)], ..whole.clone() });
        assert!(!health.is_ready() && health.is_alive());
        health.set(0, MemberPhase::Assigned, whole);
        assert!(health.is_ready());
        health.set(1, MemberPhase::Starting, nothing.clone());
        assert!(!health.is_ready());
        health.set(1, MemberPhase::Assigned, nothing.clone());
        assert!(health.is_ready());
        health.set(0, MemberPhase::Failed, nothing);
        assert!(!health.is_ready() && health.is_alive());
    }
}
