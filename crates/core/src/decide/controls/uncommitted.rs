//! Restrictions that are readable and not committed yet.
//!
//! An open transaction on the controls topic hides every later record from a reader that waits for commits: a mirror that writes exactly
//! once, or a writer that has crashed, would hold up the kill switch. So a record that restricts counts as soon as it can be read at all. A
//! record that permits counts once it is committed, and what has counted early goes when its place is settled.

use std::sync::atomic::{AtomicUsize, Ordering};

use dashmap::DashMap;
use rustc_hash::FxBuildHasher;

use super::record::{AgentPassport, Control, HoldsUntil, SubjectState};
use super::switches::{Switches, Times};
use crate::decide::ruling::SubjectKind;
use crate::event::record::{Offset, Partition};
use tollgate_json::digest::Digest;

/// Where a record stands in the controls topic.
type Place = (Partition, Offset);

/// The restrictions of records that are not settled.
#[derive(Debug, Default)]
pub(super) struct UncommittedRestrictions {
    subjects: DashMap<(SubjectKind, Digest), Vec<(Place, Switches)>, FxBuildHasher>,
    passports: DashMap<String, Vec<(Place, AgentPassport)>>,
    /// How many there are. While there are none, nobody looks for one.
    count: AtomicUsize,
}

impl UncommittedRestrictions {
    /// Adds the restriction of a record. Returns whether it restricts.
    pub(super) fn add(&self, control: Control, place: Place) -> bool {
        match control {
            Control::Subject(kind, hash, Some(state @ SubjectState::Suspended(_))) => {
                let switches = Switches { operators: Some(state), machines: None };
                self.subjects.entry((kind, hash)).or_default().push((place, switches));
            }
            Control::Abuse(kind, hash, Some(said)) => {
                let machines = Some(HoldsUntil::of_stage(said));
                self.subjects.entry((kind, hash)).or_default().push((place, Switches { operators: None, machines }));
            }
            Control::Passport(agent_id, Some(passport)) => self.passports.entry(agent_id).or_default().push((place, passport)),
            _ => return false,
        }
        self.count.fetch_add(1, Ordering::AcqRel);
        true
    }

    /// Forgets what stands in front of an offset of a partition: it is committed and applied, or it was aborted.
    pub(super) fn settle(&self, partition: Partition, next: Offset) {
        if self.is_empty() {
            return;
        }
        let mut gone = 0;
        self.subjects.retain(|_, entries| keep_open(entries, (partition, next), &mut gone));
        self.passports.retain(|_, entries| keep_open(entries, (partition, next), &mut gone));
        self.count.fetch_sub(gone, Ordering::AcqRel);
    }

    /// Returns whether there is nothing.
    pub(super) fn is_empty(&self) -> bool {
        self.count.load(Ordering::Acquire) == 0
    }

    /// Returns why a subject is suspended at an event's time by a record that is not settled. An exemption that is in force stands against the
    /// abuse stage, as it does with settled records.
    pub(super) fn suspension(
        &self,
        (kind, hash): (SubjectKind, Digest),
        settled: Option<&Switches>,
        times: Times,
    ) -> Option<Option<String>> {
        let entries = self.subjects.get(&(kind, hash))?;
        entries.iter().rev().find_map(|(_, early)| {
            let operators = early.operators.clone().or_else(|| settled.and_then(|settled| settled.operators.clone()));
            Switches { operators, machines: early.machines.clone() }.suspension(times)
        })
    }

    /// Returns the passports of an agent that are not settled: a call has to be allowed by each of them too.
    pub(super) fn passports(&self, agent_id: &str) -> Vec<AgentPassport> {
        if self.is_empty() {
            return Vec::new();
        }
        self.passports.get(agent_id).map(|entries| entries.iter().map(|(_, passport)| passport.clone()).collect()).unwrap_or_default()
    }
}

/// Removes what stands in front of an offset of a partition, and adds to `gone` how many that were. Returns whether anything is left.
fn keep_open<T>(entries: &mut Vec<(Place, T)>, (partition, next): Place, gone: &mut usize) -> bool {
    let before = entries.len();
    entries.retain(|((at, offset), _)| *at != partition || *offset >= next);
    *gone += before - entries.len();
    !entries.is_empty()
}
