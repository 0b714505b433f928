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

#[derive(Debug)]
struct MemberHealth {
    phase: MemberPhase,
    partitions: Vec<Partition>,
    beat: Instant,
}

/// The members of a process by number.
#[derive(Debug, Default)]
pub struct Health {
    members: DashMap<usize, MemberHealth>,
}

/// What `/readyz` answers.
#[derive(Debug, Serialize)]
pub struct HealthReport {
    /// Whether every member has its assignment.
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
}

impl Health {
    /// Shows where a member stands; that counts as a beat.
    pub fn set(&self, member: usize, phase: MemberPhase, partitions: Vec<Partition>) {
        self.members.insert(member, MemberHealth { phase, partitions, beat: Instant::now() });
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

    /// Whether there are members and each has its assignment.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        !self.members.is_empty() && self.members.iter().all(|member| member.phase == MemberPhase::Assigned)
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
                partitions: entry.partitions.iter().map(|partition| partition.0).collect(),
            })
            .collect();
        members.sort_by_key(|member| member.member);
        HealthReport { ready: self.is_ready(), members }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ready_means_that_every_member_has_its_assignment() {
        let health = Health::default();
        assert!(!health.is_ready() && health.is_alive());
        health.set(0, MemberPhase::Assigned, vec![Partition(3)]);
        assert!(health.is_ready());
        health.set(1, MemberPhase::Starting, Vec::new());
        assert!(!health.is_ready());
        health.set(1, MemberPhase::Assigned, Vec::new());
        assert!(health.is_ready());
        health.set(0, MemberPhase::Failed, Vec::new());
        assert!(!health.is_ready() && health.is_alive());
    }
}
