//! Taking a warm-up in, subject by subject: a few with each record, so that a partition with a million subjects does not stand still. Each of
//! them is taken in before anything else is done with it: before a signal of it counts, a pardon reaches it, or the clock looks at it.

use std::sync::Arc;

use tollgate_core::decide::signal::SubjectKey;
use tollgate_core::event::record::Offset;

use super::fold::Scene;
use super::stage::Abuse;
use super::subjects::{SlotKey, Subject, Subjects};
use super::warm_up::{Standing, WarmUp};

/// A warm-up that is being taken in.
#[derive(Debug)]
pub(super) struct TakingIn {
    /// The warm-up's subjects that are not taken in yet.
    subjects: Subjects,
    /// Where they are; some of these places are empty by now.
    left: Vec<SlotKey>,
    per_record: usize,
}

impl TakingIn {
    /// Takes out what the warm-up knows of the subject at a place.
    fn take(&mut self, at: SlotKey) -> Option<(SubjectKey, Box<[u8]>)> {
        let key = self.subjects.key(at)?;
        let packed = self.subjects.take(at);
        self.subjects.remove(at);
        Some((key, packed))
    }
}

impl Abuse {
    /// Begins to take in a warm-up for which the record is the next one too, and takes in a part of it.
    pub(super) fn take_in(&mut self, scene: &mut Scene) {
        if self.arriving.is_some() {
            self.begin_to_take_in(scene);
        }
        if self.taking_in.is_some() {
            scene.now_ms = self.state.sources.now_ms();
            self.take_in_some(scene);
        }
    }

    fn begin_to_take_in(&mut self, scene: &mut Scene) {
        // Records may be missing between two offsets, so that what both have seen may end at different ones.
        let (applied, offset) = (self.state.applied, scene.offset);
        let Some(arriving) = self.arriving.take_if(|arriving| applied < arriving.warm_up.next && arriving.warm_up.next <= offset) else {
            return;
        };
        let WarmUp { stage, dropped: (subjects, counters), .. } = *arriving.warm_up;
        scene.folded.counts.subjects_dropped += subjects;
        scene.folded.counts.counters_dropped += counters;
        self.program = self.program.of(|_| true);
        let new = self.standings.iter_mut().filter(|standing| **standing == Standing::Elsewhere);
        new.for_each(|standing| *standing = Standing::Quiet);
        let (subjects, per_record) = (stage.state.subjects, arriving.subjects_per_record.get());
        self.kept = None;
        self.taking_in = Some(Box::new(TakingIn { left: subjects.places(), subjects, per_record }));
    }

    /// Takes in as many subjects as one record may. With the last of them the state knows the rules.
    fn take_in_some(&mut self, scene: &mut Scene) {
        let Some(mut taking_in) = self.taking_in.take() else { return };
        let count = taking_in.per_record.min(taking_in.left.len());
        for at in taking_in.left.split_off(taking_in.left.len() - count) {
            if let Some((key, packed)) = taking_in.take(at) {
                self.take_in_subject(&key, &packed, scene);
            }
        }
        if !taking_in.left.is_empty() {
            self.taking_in = Some(taking_in);
            return;
        }
        let rules = Arc::clone(self.program.rules());
        let quiet = rules.rules.iter().zip(&self.standings).filter(|(_, standing)| **standing == Standing::Quiet);
        for (rule, _) in quiet {
            self.state.change_rule(&rule.id, |state| state.is_warming = false);
        }
        self.taken_in = Some(scene.offset);
    }

    /// Takes in what a warm-up knows of one subject, before anything else is done with it.
    pub(super) fn take_in_one(&mut self, key: &SubjectKey, scene: &mut Scene) {
        let Some(mut taking_in) = self.taking_in.take() else { return };
        if let Some((key, packed)) = taking_in.subjects.find(key).and_then(|at| taking_in.take(at)) {
            self.take_in_subject(&key, &packed, scene);
        }
        self.taking_in = Some(taking_in);
    }

    /// Takes in the subjects of a warm-up that the clock has to look at by a second since the epoch.
    pub(super) fn take_in_due(&mut self, by_s: u32, scene: &mut Scene) {
        let Some(mut taking_in) = self.taking_in.take() else { return };
        while let Some(second) = taking_in.subjects.next_due().filter(|second| *second <= by_s) {
            for (_, at) in taking_in.subjects.take_due(second) {
                if let Some((key, packed)) = taking_in.take(at) {
                    self.take_in_subject(&key, &packed, scene);
                }
            }
        }
        self.taking_in = Some(taking_in);
    }

    fn take_in_subject(&mut self, key: &SubjectKey, packed: &[u8], scene: &mut Scene) {
        let Ok(other) = Subject::read(packed) else { return };
        let active_ms = other.active_ms;
        let (at, is_new) = match self.state.subjects.find(key) {
            Some(at) => (at, false),
            None => (self.state.subjects.insert(*key), true),
        };
        let before = self.state.subjects.take(at);
        let known = if is_new { None } else { Subject::read(&before).ok() };
        let mut subject = known.unwrap_or_else(|| other.beside());
        subject.take_in(other, |number| self.program.numbered(number).map(|(_, rule)| rule));
        scene.folded.counts.counters_dropped += subject.crowded;
        let latest_ms = subject.active_ms.max(active_ms);
        self.census.active(key.kind, subject.active_ms, latest_ms);
        subject.active_ms = latest_ms;
        self.expect(at, key, &subject);
        let stamp = subject.stamp(&mut self.buffer);
        drop(subject);
        self.state.subjects.put(at, before, stamp, &self.buffer);
        if is_new {
            self.keep_within_limit(at, scene);
        }
    }

    /// Puts rules in force that were taken in before a written checkpoint, which holds everything before `next`.
    pub(super) fn enforce_taken_in(&mut self, next: Offset) {
        if self.taken_in.take_if(|offset| *offset < next).is_some() {
            self.standings.iter_mut().filter(|standing| **standing == Standing::Quiet).for_each(|standing| *standing = Standing::InForce);
        }
    }
}
