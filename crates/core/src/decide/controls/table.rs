//! The table of all controls in force: it has many readers, and is updated by key.

use std::sync::atomic::{AtomicUsize, Ordering};

use dashmap::DashMap;
use rustc_hash::FxBuildHasher;

use super::by_partition::{ByPartition, SubjectRecords};
use super::change::{Change, Effect};
use super::in_force::in_force;
use super::keyed::{Keyed, Prefixes};
use super::record::{AgentPassport, Control, HoldsUntil};
use super::rejection::ControlRejection;
use super::subject::Subject;
use super::switches::Times;
use super::uncommitted::UncommittedRestrictions;
use crate::decide::ruling::{SubjectKind, Suspension};
use crate::event::decode::Event;
use crate::event::record::{Offset, Partition};
use tollgate_json::digest::Digest;

/// All controls in force: passports by agent, and what is said of subjects.
#[derive(Debug)]
pub struct Controls {
    passports: DashMap<String, ByPartition<AgentPassport>>,
    /// Their keys are digests, which a quick hash spreads well enough.
    subjects: DashMap<(SubjectKind, Digest), SubjectRecords, FxBuildHasher>,
    /// How many subjects of each kind may be suspended, in the order of [`SubjectKind::ALL`]. While there are none of a kind, nothing of
    /// that kind has to be hashed.
    counts: [AtomicUsize; SubjectKind::ALL.len()],
    keyed: Keyed,
    /// Restrictions of records that are not committed yet.
    uncommitted: UncommittedRestrictions,
}

impl Default for Controls {
    /// Returns an empty table, whose subjects are hashed without a key.
    fn default() -> Self {
        Self::new(None)
    }
}

impl Controls {
    /// Returns an empty table. `subject_keys` are the HMAC keys of subject hashes: the one that hashes are written under, and then those
    /// under which they are still found. Without any, subjects are hashed without a key.
    #[must_use]
    pub fn new<'k>(subject_keys: impl IntoIterator<Item = &'k str>) -> Self {
        Self {
            passports: DashMap::new(),
            subjects: DashMap::default(),
            counts: Default::default(),
            keyed: Keyed::new(subject_keys),
            uncommitted: UncommittedRestrictions::default(),
        }
    }

    /// Applies a record of a log of controls that has one partition; a null value removes what its key names.
    ///
    /// # Errors
    /// As those of [`apply_from`](Self::apply_from).
    pub fn apply(&self, key: Option<&[u8]>, value: Option<&[u8]>) -> Result<Change, ControlRejection> {
        self.apply_from(Partition(0), key, value)
    }

    /// Applies a record of a partition of the controls topic; a null value removes what its key names on that partition. Where a key stands on
    /// several partitions, the strictest of them counts.
    ///
    /// # Errors
    /// [`ControlRejection`] for a record that cannot be read. The strictest control of its key is then in force; see
    /// [`in_force`](super::in_force()).
    pub fn apply_from(&self, partition: Partition, key: Option<&[u8]>, value: Option<&[u8]>) -> Result<Change, ControlRejection> {
        let (control, rejection) = in_force(key, value)?;
        let change = self.set(partition, control);
        rejection.map_or(Ok(change), Err)
    }

    /// Puts a control in force.
    pub(super) fn set(&self, partition: Partition, control: Control) -> Change {
        let (control_type, effect, is_operators) = match control {
            Control::Subject(kind, hash, state) => {
                ("subject", self.switch((kind, hash), |records| records.operators.set(partition, state)), true)
            }
            Control::Abuse(kind, hash, said) => {
                let suspended = said.map(HoldsUntil::of_stage);
                ("subject", self.switch((kind, hash), |records| records.machines.set(partition, suspended)), false)
            }
            Control::Passport(agent_id, passport) => {
                let effect = self.passports.entry(agent_id.clone()).or_default().set(partition, passport);
                self.passports.remove_if(&agent_id, |_, passports| passports.is_empty());
                ("passport", effect, true)
            }
            Control::Note => ("note", Effect::Absent, false),
        };
        Change { control_type, effect, is_operators }
    }

    /// Lets a record count that is not committed yet, if it restricts. Returns whether it does. A record that cannot be read restricts if its
    /// key names a control.
    pub fn apply_early(&self, key: Option<&[u8]>, value: Option<&[u8]>, place: (Partition, Offset)) -> bool {
        in_force(key, value).is_ok_and(|(control, _)| self.uncommitted.add(control, place))
    }

    /// Forgets what counted early in front of an offset of a partition, where every record is applied by now or was aborted.
    pub fn settle(&self, partition: Partition, next: Offset) {
        self.uncommitted.settle(partition, next);
    }

    /// Changes what is said of a subject. The count changes while its entry is locked, so that no reader finds a count of zero beside a
    /// suspension.
    fn switch(&self, subject: (SubjectKind, Digest), change: impl FnOnce(&mut SubjectRecords) -> Effect) -> Effect {
        let count = self.count(subject.0);
        let mut entry = self.subjects.entry(subject).or_default();
        let could_suspend = entry.switches().can_suspend();
        let effect = change(&mut entry);
        match (could_suspend, entry.switches().can_suspend()) {
            (false, true) => _ = count.fetch_add(1, Ordering::AcqRel),
            (true, false) => _ = count.fetch_sub(1, Ordering::AcqRel),
            _ => {}
        }
        drop(entry);
        self.subjects.remove_if(&subject, |_, records| records.is_empty());
        effect
    }

    fn count(&self, kind: SubjectKind) -> &AtomicUsize {
        let [user, tenant, agent, thread] = &self.counts;
        match kind {
            SubjectKind::User => user,
            SubjectKind::Tenant => tenant,
            SubjectKind::Agent => agent,
            SubjectKind::Thread => thread,
        }
    }

    /// Returns the passport of an agent; the fault where its record cannot be read, and no other passport may stand for it.
    #[must_use]
    pub fn passport(&self, agent_id: &str) -> Option<AgentPassport> {
        self.passports.get(agent_id).and_then(|passports| passports.iter().next().cloned())
    }

    /// Returns the passports of an agent that narrow the first one: those of other partitions, and those whose records are not committed yet. A
    /// call has to be allowed by each of them too.
    #[must_use]
    pub fn narrowing_passports(&self, agent_id: &str) -> Vec<AgentPassport> {
        let mut passports = self.uncommitted.passports(agent_id);
        if let Some(committed) = self.passports.get(agent_id) {
            passports.extend(committed.iter().skip(1).cloned());
        }
        passports
    }

    /// Returns the suspension of a subject that an event is on behalf of, if one is in force at the event's time. A thread's suspension is
    /// also that of its subagents' threads. Time is the event's own, never the host's, and not later than that of its record: nobody gets out
    /// by a time that has not come. An event of unknown time is never past the end of a suspension: its subject stays suspended.
    #[must_use]
    pub fn suspension(&self, event: &Event<'_>) -> Option<Suspension> {
        let earliest_ms = event.time_ms.map(|time_ms| event.record_ms.map_or(time_ms, |record_ms| time_ms.min(record_ms)));
        let times = Times { earliest_ms, latest_ms: event.latest_ms() };
        let mut prefixes = Prefixes::default();
        SubjectKind::ALL.into_iter().find_map(|kind| {
            let mut subjects = Subject::all_of(event, kind);
            let is_any = self.suspended_count(kind) > 0;
            let found = if is_any { subjects.find_map(|subject| self.suspension_of(&subject, times, &mut prefixes)) } else { None };
            let mut early = || Subject::all_of(event, kind).find_map(|subject| self.early_suspension_of(&subject, times, &mut prefixes));
            found.or_else(|| if self.uncommitted.is_empty() { None } else { early() })
        })
    }

    /// Returns the suspension of one subject at an event's time, by all records about it, under whichever key.
    fn suspension_of(&self, subject: &Subject<'_>, times: Times, prefixes: &mut Prefixes) -> Option<Suspension> {
        let mut found = self
            .keyed
            .hashes(subject, prefixes)
            .filter_map(|hash| self.subjects.get(&(subject.kind, hash)).map(|records| records.switches()));
        let mut said = found.next()?;
        found.for_each(|other| said = std::mem::take(&mut said).with(other));
        said.suspension(times).map(|reason| Suspension { kind: subject.kind, reason })
    }

    /// Returns the suspension of one subject at an event's time by records that are not committed yet.
    fn early_suspension_of(&self, subject: &Subject<'_>, times: Times, prefixes: &mut Prefixes) -> Option<Suspension> {
        self.keyed.hashes(subject, prefixes).find_map(|hash| {
            let key = (subject.kind, hash);
            let settled = self.subjects.get(&key).map(|records| records.switches());
            let reason = self.uncommitted.suspension(key, settled.as_ref(), times)?;
            Some(Suspension { kind: subject.kind, reason })
        })
    }

    /// Returns the hash of a subject under the first key, as signals name it. Hashes of recent subjects are remembered.
    #[must_use]
    pub fn subject_hash(&self, subject: &Subject<'_>) -> Digest {
        self.keyed.hash(subject)
    }

    /// Returns the hash of a call under the first key, whoever makes it: that of kind `call`, no tenant, and the tool and the digest of its
    /// arguments as its id.
    #[must_use]
    pub fn call_hash(&self, tool_name: &str, args_hash: &Digest) -> Digest {
        self.keyed.hasher().call_hash(tool_name, args_hash)
    }

    /// Returns how many subjects of a kind may be suspended. Those whose time is over count until they are removed, and those that are
    /// exempt for a time count too.
    #[must_use]
    pub fn suspended_count(&self, kind: SubjectKind) -> usize {
        self.count(kind).load(Ordering::Acquire)
    }

    /// Returns how many agents have a passport.
    #[must_use]
    pub fn passport_count(&self) -> usize {
        self.passports.len()
    }

    /// Returns the fingerprint of each key of subject hashes, in their order; none without a key.
    #[must_use]
    pub fn key_fingerprints(&self) -> Vec<String> {
        self.keyed.fingerprints().collect()
    }

    /// Returns whether subjects are hashed under a key.
    #[must_use]
    pub fn is_keyed(&self) -> bool {
        self.keyed.hasher().is_keyed()
    }
}

#[cfg(test)]
#[path = "table_tests.rs"]
mod tests;
