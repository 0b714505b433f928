//! The abuse stage: the counters of a partition of the signals topic, as a stage that a worker can run.

use std::convert::Infallible;
use std::num::NonZeroUsize;
use std::sync::Arc;

use tollgate_core::decide::signal::{self, SignalRejection, Signals};
use tollgate_core::engine::stage::{Progress, Resumed, Stage, Waiting};
use tollgate_core::event::decode::Rejection;
use tollgate_core::event::record::{Offset, Record};

use super::counters::Counters;
use super::outcome::Folded;
use super::program::RuleStatus;
use super::rules::AbuseRules;
use super::state::AbuseState;
use super::warm_up::{OfferedWarmUp, WarmUp};

/// The stage that counts signals by subject.
#[derive(Debug)]
pub struct Abuse {
    pub(super) counters: Counters,
    warm_up: OfferedWarmUp,
}

impl Abuse {
    /// Returns a stage with these rules and the state of a checkpoint. State of rules that are no longer there is dropped. A rule that the
    /// state does not know, or knows in another version, has to warm up, unless the state is empty: see [`Abuse::warm_up`].
    #[must_use]
    pub fn new(rules: Arc<AbuseRules>, state: AbuseState) -> Self {
        Self { counters: Counters::restored(rules, state), warm_up: OfferedWarmUp::default() }
    }

    /// Returns the rules in force.
    #[must_use]
    pub fn rules(&self) -> &Arc<AbuseRules> {
        self.counters.program.rules()
    }

    /// Returns the ids of the rules that enforce nothing, for a tenant or for all, until an operator lets them.
    pub fn paused(&self) -> impl Iterator<Item = &str> {
        self.counters.state.rules.iter().filter(|(_, state)| state.pauses.is_any()).map(|(id, _)| id)
    }

    /// Returns the ids of the rules that are not in force yet. They raise no alert and suspend nobody.
    pub fn warming(&self) -> impl Iterator<Item = &str> {
        self.counters.program.rules_of(|status| status != RuleStatus::InForce).map(|rule| &*rule.id)
    }

    /// Returns the partition's time, in milliseconds since the epoch; `None` before all sources have told theirs.
    #[must_use]
    pub fn clock_ms(&self) -> Option<i64> {
        self.counters.state.sources.now_ms()
    }

    /// Returns how far the log is for certain, in milliseconds since the epoch: the partition's time, or while that is waited for the least
    /// time that is known. `None` before anything was heard of any source.
    #[must_use]
    pub fn reached_ms(&self) -> Option<i64> {
        self.counters.state.sources.reached_ms()
    }

    /// Returns the offset of the last record that was applied.
    #[must_use]
    pub fn applied(&self) -> Offset {
        self.counters.state.applied
    }

    /// Returns how many subjects are remembered.
    #[must_use]
    pub fn subjects(&self) -> usize {
        self.counters.state.subjects.len()
    }

    /// Folds the signals of one record, in the form in which they were read.
    pub fn fold(&mut self, record: &Record<'_>, signals: &Signals<'_>) -> Folded {
        let dropped = self.warm_up.begin_merge(&mut self.counters, record.offset);
        let was_merging = self.counters.is_merging();
        let mut folded = self.counters.fold(record, signals);
        if was_merging && !self.counters.is_merging() {
            self.warm_up.merged(record.offset);
        }
        folded.counts.subjects_dropped += dropped.subjects;
        folded.counts.counters_dropped += dropped.counters;
        folded
    }

    /// Returns the fold that new rules need, at its beginning; `None` if there is nothing to begin.
    #[must_use]
    pub fn warm_up(&self) -> Option<Box<WarmUp>> {
        WarmUp::of(&self.counters).map(Box::new)
    }

    /// Offers a warm-up. It is merged from the record on that is the next one for both, so many subjects with each record.
    pub fn offer(&mut self, warm_up: Box<WarmUp>, subjects_per_record: NonZeroUsize) {
        self.warm_up.offer(warm_up, subjects_per_record);
    }

    /// Returns a warm-up that was offered and is behind: it has to be shown more of the log, and then offered again.
    pub fn take_back(&mut self) -> Option<Box<WarmUp>> {
        self.warm_up.take_back(self.counters.state.applied)
    }

    fn refuse(&mut self, record: &Record<'_>, rejection: SignalRejection) -> Folded {
        self.counters.skip(record.offset);
        let mut folded = Folded::default();
        folded.counts.rejected = Some(rejection);
        folded
    }
}

impl Stage for Abuse {
    type Outcome = Folded;
    type Request = Infallible;
    type Response = Infallible;
    type Output = ();
    type State = AbuseState;

    fn apply(&mut self, record: &Record<'_>, (): &mut ()) -> Progress<Folded, Infallible> {
        self.warm_up.keep(record);
        Progress::Done(match signal::read(record.value) {
            Ok(signals) => self.fold(record, &signals),
            Err(rejection) => self.refuse(record, rejection),
        })
    }

    /// Counts the record as foreign: no writer of ours makes what cannot be taken apart.
    fn reject(&mut self, record: &Record<'_>, _: Rejection, (): &mut ()) -> Folded {
        self.warm_up.keep(&Record { value: None, ..*record });
        self.refuse(record, SignalRejection::Foreign("a record that cannot be taken apart"))
    }

    fn answer(&mut self, _: Offset, response: Infallible) {
        match response {}
    }

    fn resume(&mut self, (): &mut ()) -> Option<Resumed<Folded, Infallible>> {
        None
    }

    fn waiting(&self) -> Waiting {
        Waiting::default()
    }

    fn waiting_keys(&self) -> impl Iterator<Item = &str> {
        std::iter::empty()
    }

    fn state(&self) -> &AbuseState {
        &self.counters.state
    }

    fn state_mut(&mut self) -> &mut AbuseState {
        &mut self.counters.state
    }

    /// The last record before the checkpoint may have left no trace in the entries: a pardon of whom nothing else was known.
    fn restored(&mut self, next: Offset) {
        let state = &mut self.counters.state;
        state.applied = state.applied.max(Offset(next.0.saturating_sub(1)));
    }

    fn checkpoint_written(&mut self, next: Offset) {
        if self.warm_up.is_written(next) {
            self.counters.program.enforce_quiet();
        }
    }
}
