//! The abuse stage: the fold of a partition of the signals topic, as a stage that a worker can run.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::Arc;

use tollgate_core::decide::signal::{self, SignalRejection, Signals};
use tollgate_core::engine::stage::{Progress, Resumed, Stage, Waiting};
use tollgate_core::event::decode::Rejection;
use tollgate_core::event::record::{Offset, Record};

use super::blast_radius::Census;
use super::fold::FoldContext;
use super::merge::Merge;
use super::outcome::Folded;
use super::program::{Program, Use};
use super::rule_changes::apply_rule_changes;
use super::rules::{AbuseRules, Rule};
use super::state::AbuseState;
use super::subjects::SlotKey;
use super::warm_up::{Arriving, RecentRecords, RuleStatus};

/// The stage that counts signals by subject.
#[derive(Debug)]
pub struct Abuse {
    pub(super) program: Program,
    pub(super) state: AbuseState,
    /// Rules that have a grouped alert to raise.
    pub(super) grouped: BTreeSet<usize>,
    pub(super) census: Census,
    /// What this fold does with each rule.
    pub(super) statuses: Vec<RuleStatus>,
    /// A warm-up that was offered.
    pub(super) arriving: Option<Arriving>,
    /// A warm-up that is being merged.
    pub(super) merging: Option<Box<Merge>>,
    /// The latest records, for a warm-up that is behind.
    pub(super) kept: Option<RecentRecords>,
    /// The record before which the last of a warm-up was merged, whose rules are not in force yet.
    pub(super) merged_before: Option<Offset>,
    /// Where a subject is written to.
    pub(super) buffer: Vec<u8>,
    /// The rules that count the signal that is being folded.
    pub(super) uses: Vec<Use>,
    /// Where the subjects of a record are, reused.
    pub(super) places: Vec<Option<SlotKey>>,
}

impl Abuse {
    /// Returns a stage with these rules and the state of a checkpoint. State of rules that are no longer there is dropped. A rule that the
    /// state does not know, or knows in another version, has to warm up, unless the state is empty: see [`Abuse::warm_up`].
    #[must_use]
    pub fn new(rules: Arc<AbuseRules>, mut state: AbuseState) -> Self {
        let (numbers, anew) = apply_rule_changes(&rules, &mut state);
        let is_warming = |rule: &Rule| state.rules.get(&*rule.id).is_some_and(|state| state.is_warming);
        let standing = |rule| if is_warming(rule) { RuleStatus::Elsewhere } else { RuleStatus::InForce };
        let statuses: Vec<RuleStatus> = rules.rules.iter().map(standing).collect();
        let program = Program::new(rules, numbers, |at| statuses.get(at) != Some(&RuleStatus::Elsewhere));
        let mut stage = Self::of(program, state, statuses);
        stage.apply_rule_changes_to_subjects(&anew);
        stage
    }

    /// Returns a stage that has applied the changes of its rules to no subject yet.
    pub(super) fn of(program: Program, state: AbuseState, statuses: Vec<RuleStatus>) -> Self {
        Self {
            program,
            state,
            grouped: BTreeSet::new(),
            census: Census::default(),
            statuses,
            arriving: None,
            merging: None,
            kept: None,
            merged_before: None,
            buffer: Vec::new(),
            uses: Vec::new(),
            places: Vec::new(),
        }
    }

    /// Returns the rules in force.
    #[must_use]
    pub fn rules(&self) -> &Arc<AbuseRules> {
        self.program.rules()
    }

    /// Returns the ids of the rules that enforce nothing until an operator lets them.
    pub fn paused(&self) -> impl Iterator<Item = &str> {
        self.state.rules.iter().filter(|(_, state)| state.is_paused).map(|(id, _)| &**id)
    }

    /// Returns the rules that enforce nothing until an operator lets them, as indices.
    fn paused_rules(&self) -> Vec<usize> {
        let paused = self.state.rules.values().filter(|state| state.is_paused);
        let mut paused: Vec<_> = paused.filter_map(|state| self.program.place(state.number)).collect();
        paused.sort_unstable();
        paused
    }

    /// Returns the partition's time, in milliseconds since the epoch; `None` before all sources have told theirs.
    #[must_use]
    pub fn clock_ms(&self) -> Option<i64> {
        self.state.sources.now_ms()
    }

    /// Returns how far the log is for certain, in milliseconds since the epoch: the partition's time, or while that is waited for the least
    /// time that is known. `None` before anything was heard of any source.
    #[must_use]
    pub fn reached_ms(&self) -> Option<i64> {
        self.state.sources.reached_ms()
    }

    /// Returns how many subjects are remembered.
    #[must_use]
    pub fn subjects(&self) -> usize {
        self.state.subjects.len()
    }

    /// Folds the signals of one record, in the form in which they were read.
    pub fn fold(&mut self, record: &Record<'_>, signals: &Signals<'_>) -> Folded {
        let mut context = FoldContext::new(record);
        self.merge(&mut context);
        self.state.applied = record.offset;
        self.state.sources.note(signals, record.timestamp_ms);
        (context.now_ms, context.log_ms) = (self.state.sources.now_ms(), self.state.sources.log_ms(record.timestamp_ms));
        for clock in &signals.clocks {
            if self.state.sources.begin(clock, record.timestamp_ms) {
                self.tell_reset(clock.source, &mut context);
            }
        }
        self.fold_signals(signals, &mut context);
        if let Some(request) = &signals.request {
            self.grant(request, &mut context);
        }
        for clock in &signals.clocks {
            self.state.sources.tick(clock, record.timestamp_ms);
        }
        for source in self.state.sources.fall_silent() {
            self.tell_silent(source, &mut context);
        }
        self.advance(&mut context);
        let mut folded = context.folded;
        folded.settle_controls();
        folded.counts.paused_rules = self.paused_rules();
        folded.counts.clock_lag_ms = record.timestamp_ms.zip(self.reached_ms()).map(|(at_ms, reached_ms)| at_ms.saturating_sub(reached_ms));
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
        self.keep(record);
        Progress::Done(match signal::read(record.value) {
            Ok(signals) => self.fold(record, &signals),
            Err(rejection) => self.refuse(record, rejection),
        })
    }

    /// Counts the record as foreign: no writer of ours makes what cannot be taken apart.
    fn reject(&mut self, record: &Record<'_>, _: Rejection, (): &mut ()) -> Folded {
        self.keep(&Record { value: None, ..*record });
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
        &self.state
    }

    fn state_mut(&mut self) -> &mut AbuseState {
        &mut self.state
    }

    /// The last record before the checkpoint may have left no trace in the entries: a pardon of whom nothing else was known.
    fn restored(&mut self, next: Offset) {
        self.state.applied = self.state.applied.max(Offset(next.0.saturating_sub(1)));
    }

    fn checkpoint_written(&mut self, next: Offset) {
        self.enforce_merged(next);
    }
}

impl Abuse {
    fn refuse(&mut self, record: &Record<'_>, rejection: SignalRejection) -> Folded {
        self.state.applied = record.offset;
        let mut folded = Folded::default();
        folded.counts.rejected = Some(rejection);
        folded
    }
}
