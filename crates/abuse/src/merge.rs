//! Merging a warm-up, subject by subject: a few with each record, so that a partition with a million subjects does not stand still. Each of
//! them is merged before anything else is done with it: before a signal of it counts, a pardon reaches it, or the clock looks at it.

use std::sync::Arc;

use tollgate_core::decide::signal::SubjectKey;
use tollgate_core::event::record::Offset;

use super::fold::FoldContext;
use super::stage::Abuse;
use super::subjects::{SlotKey, Subject, Subjects};
use super::warm_up::{RuleStatus, WarmUp};

/// A warm-up that is being merged.
#[derive(Debug)]
pub(super) struct Merge {
    /// The warm-up's subjects that are not merged yet.
    subjects: Subjects,
    /// Where they are; some of these places are empty by now.
    left: Vec<SlotKey>,
    per_record: usize,
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

impl Abuse {
    /// Begins to merge a warm-up for which the record is the next one too, and merges a part of it.
    pub(super) fn merge(&mut self, context: &mut FoldContext) {
        if self.arriving.is_some() {
            self.begin_merge(context);
        }
        if self.merging.is_some() {
            context.now_ms = self.state.sources.now_ms();
            self.merge_some(context);
        }
    }

    fn begin_merge(&mut self, context: &mut FoldContext) {
        // Records may be missing between two offsets, so that what both have seen may end at different ones.
        let (applied, offset) = (self.state.applied, context.offset);
        let Some(arriving) = self.arriving.take_if(|arriving| applied < arriving.warm_up.next && arriving.warm_up.next <= offset) else {
            return;
        };
        let WarmUp { stage, dropped: (subjects, counters), .. } = *arriving.warm_up;
        context.folded.counts.subjects_dropped += subjects;
        context.folded.counts.counters_dropped += counters;
        self.program = self.program.of(|_| true);
        let new = self.statuses.iter_mut().filter(|standing| **standing == RuleStatus::Elsewhere);
        new.for_each(|standing| *standing = RuleStatus::Quiet);
        let (subjects, per_record) = (stage.state.subjects, arriving.subjects_per_record.get());
        self.kept = None;
        self.merging = Some(Box::new(Merge { left: subjects.places(), subjects, per_record }));
    }

    /// Merges as many subjects as one record may. With the last of them the state knows the rules.
    fn merge_some(&mut self, context: &mut FoldContext) {
        let Some(mut merging) = self.merging.take() else { return };
        let count = merging.per_record.min(merging.left.len());
        for at in merging.left.split_off(merging.left.len() - count) {
            if let Some((key, packed)) = merging.take(at) {
                self.merge_subject(&key, &packed, context);
            }
        }
        if !merging.left.is_empty() {
            self.merging = Some(merging);
            return;
        }
        let rules = Arc::clone(self.program.rules());
        let quiet = rules.rules.iter().zip(&self.statuses).filter(|(_, standing)| **standing == RuleStatus::Quiet);
        for (rule, _) in quiet {
            self.state.change_rule(&rule.id, |state| state.is_warming = false);
        }
        self.merged_before = Some(context.offset);
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
        let active_ms = other.active_ms;
        let (at, is_new) = match self.state.subjects.find(key) {
            Some(at) => (at, false),
            None => (self.state.subjects.insert(*key), true),
        };
        let before = self.state.subjects.take(at);
        let known = if is_new { None } else { Subject::read(&before).ok() };
        let mut subject = known.unwrap_or_else(|| other.beside());
        subject.merge(other, |number| self.program.numbered(number).map(|(_, rule)| rule));
        context.folded.counts.counters_dropped += subject.crowded;
        let latest_ms = subject.active_ms.max(active_ms);
        self.census.active(key.kind, subject.active_ms, latest_ms);
        subject.active_ms = latest_ms;
        self.expect(at, key, &subject);
        let stamp = subject.stamp(&mut self.buffer);
        drop(subject);
        self.state.subjects.put(at, before, stamp, &self.buffer);
        if is_new {
            self.keep_within_limit(at, context);
        }
    }

    /// Puts rules in force that were merged before a written checkpoint, which holds everything before `next`.
    pub(super) fn enforce_merged(&mut self, next: Offset) {
        if self.merged_before.take_if(|offset| *offset < next).is_some() {
            self.statuses
                .iter_mut()
                .filter(|standing| **standing == RuleStatus::Quiet)
                .for_each(|standing| *standing = RuleStatus::InForce);
        }
    }
}
