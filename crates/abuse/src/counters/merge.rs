//! Merging a warm-up, subject by subject: a few with each record, so that a partition with a million subjects does not stand still. Each of
//! them is merged before anything else is done with it: before a signal of it counts, a pardon reaches it, or the clock looks at it.

use std::num::NonZeroUsize;

use tollgate_core::decide::signal::SubjectKey;

use super::Counters;
use crate::outcome::FoldContext;
use crate::program::RuleStatus;
use crate::subjects::{SlotKey, Subject, Subjects};

/// A warm-up that is being merged.
#[derive(Debug)]
pub(super) struct Merge {
    /// The warm-up's subjects that are not merged yet.
    subjects: Subjects,
    /// Where they are; some of these places are empty by now.
    left: Vec<SlotKey>,
    per_record: NonZeroUsize,
}

impl Merge {
    /// Takes out what the warm-up knows of the subject at a place.
    fn take(&mut self, at: SlotKey) -> Option<(SubjectKey, Box<[u8]>)> {
        let key = self.subjects.key(at)?;
        let packed = self.subjects.take(at);
        self.subjects.remove(at);
        Some((key, packed))
    }
}

impl Counters {
    /// Begins to merge the subjects of a warm-up. From now on these counters count for all rules, and the new ones stay quiet.
    pub(crate) fn begin_merge(&mut self, warm_up: Self, per_record: NonZeroUsize) {
        self.program = self.program.with_statuses(|status| match status {
            RuleStatus::Elsewhere => RuleStatus::Quiet,
            status => status,
        });
        let subjects = warm_up.state.subjects;
        self.merging = Some(Box::new(Merge { left: subjects.places(), subjects, per_record }));
    }

    /// Returns whether a warm-up is being merged.
    pub(crate) fn is_merging(&self) -> bool {
        self.merging.is_some()
    }

    /// Merges as many subjects as one record may. With the last of them the state knows the rules.
    pub(super) fn merge_some(&mut self, context: &mut FoldContext) {
        let Some(mut merging) = self.merging.take() else { return };
        let count = merging.per_record.get().min(merging.left.len());
        for at in merging.left.split_off(merging.left.len() - count) {
            if let Some((key, packed)) = merging.take(at) {
                self.merge_subject(&key, &packed, context);
            }
        }
        if !merging.left.is_empty() {
            self.merging = Some(merging);
            return;
        }
        for rule in self.program.rules_of(|status| status == RuleStatus::Quiet) {
            self.state.rules.change(&rule.id, |state| state.is_warming = false);
        }
    }

    /// Merges what a warm-up knows of one subject, before anything else is done with it.
    pub(super) fn merge_one(&mut self, key: &SubjectKey, context: &mut FoldContext) {
        let Some(mut merging) = self.merging.take() else { return };
        if let Some((key, packed)) = merging.subjects.find(key).and_then(|at| merging.take(at)) {
            self.merge_subject(&key, &packed, context);
        }
        self.merging = Some(merging);
    }

    /// Merges the subjects of a warm-up that the clock has to look at by a second since the epoch.
    pub(super) fn merge_due(&mut self, by_s: u32, context: &mut FoldContext) {
        let Some(mut merging) = self.merging.take() else { return };
        while let Some(second) = merging.subjects.next_due().filter(|second| *second <= by_s) {
            for (_, at) in merging.subjects.take_due(second) {
                if let Some((key, packed)) = merging.take(at) {
                    self.merge_subject(&key, &packed, context);
                }
            }
        }
        self.merging = Some(merging);
    }

    fn merge_subject(&mut self, key: &SubjectKey, packed: &[u8], context: &mut FoldContext) {
        let Ok(other) = Subject::read(packed) else { return };
        let (active_ms, tenant) = (other.active_ms, other.tenant);
        let (at, is_new) = match self.state.subjects.find(key) {
            Some(at) => (at, false),
            None => (self.state.subjects.insert(*key), true),
        };
        let before = self.state.subjects.take(at);
        let known = if is_new { None } else { Subject::read(&before).ok() };
        let mut subject = known.unwrap_or_else(|| other.beside());
        subject.merge(other, |number| self.program.numbered(number).map(|(_, rule)| rule));
        context.folded.counts.counters_dropped += subject.crowded;
        self.note_active(key, &mut subject, tenant, active_ms);
        self.expect(at, key, &subject);
        let stamp = subject.stamp(&mut self.buffer);
        drop(subject);
        self.state.subjects.put(at, before, stamp, &self.buffer);
        if is_new {
            self.keep_within_limit(at, context);
        }
    }
}
