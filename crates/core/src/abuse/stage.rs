//! The abuse stage: the fold of a partition of the signals topic, as a stage that a worker can run.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::Arc;

use crate::decode::Rejection;
use crate::record::{Offset, Record};
use crate::signal::{self, SignalRejection, Signals};
use crate::stage::{Progress, Resumed, Stage, Waiting};

use super::adopt::adopt_rules;
use super::blast_radius::Census;
use super::fold::Scene;
use super::outcome::Folded;
use super::program::{Program, Use};
use super::rules::{AbuseRules, Correlation, Rule};
use super::sources::Sources;
use super::state::AbuseState;
use super::subjects::SlotKey;

/// The stage that counts signals by subject.
#[derive(Debug)]
pub struct Abuse {
    pub(super) program: Program,
    pub(super) state: AbuseState,
    /// Rules that have a grouped alert to raise.
    pub(super) grouped: BTreeSet<usize>,
    pub(super) census: Census,
    /// The rules that are warming, as indices.
    warming: BTreeSet<usize>,
    /// The sources as they were when the records of the past were written, which the warming rules are shown.
    past: Sources,
    /// Where a subject is written to.
    pub(super) buffer: Vec<u8>,
    /// The rules that count the signal that is being folded.
    pub(super) uses: Vec<Use>,
    /// Where the subjects of a record are, reused.
    pub(super) places: Vec<Option<SlotKey>>,
}

/// A rule that is new to a partition, and has yet to be shown what came before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warming {
    /// The rule's id.
    pub rule: String,
    /// How far back the rule needs the log, in milliseconds before the partition's time.
    pub back_ms: i64,
}

impl Abuse {
    /// Returns a stage with these rules and the state of a checkpoint. State of rules that are no longer there is dropped. A rule that the
    /// state does not know, or knows in another version, is warming, unless the state is empty.
    #[must_use]
    pub fn new(rules: Arc<AbuseRules>, mut state: AbuseState) -> Self {
        let (numbers, anew) = adopt_rules(&rules, &mut state);
        let is_warming = |rule: &Rule| state.rules.get(&*rule.id).is_some_and(|state| state.is_warming);
        let warming = rules.rules.iter().enumerate().filter(|(_, rule)| is_warming(rule)).map(|(at, _)| at).collect();
        let mut stage = Self {
            program: Program::new(rules, numbers),
            state,
            grouped: BTreeSet::new(),
            census: Census::default(),
            warming,
            past: Sources::default(),
            buffer: Vec::new(),
            uses: Vec::new(),
            places: Vec::new(),
        };
        stage.adopt_subjects(&anew);
        stage
    }

    /// Returns the rules in force.
    #[must_use]
    pub fn rules(&self) -> &Arc<AbuseRules> {
        self.program.rules()
    }

    /// Returns the rules that are warming. They count nothing of what is applied, raise no alert and suspend nobody.
    #[must_use]
    pub fn warming(&self) -> Vec<Warming> {
        let rules = self.program.rules();
        let warming = self.warming.iter().filter_map(|at| rules.rules.get(*at));
        warming.map(|rule| Warming { rule: rule.id.clone(), back_ms: back_ms(rule, rules.lateness_ms) }).collect()
    }

    /// Folds a record of the log for the warming rules alone. The records are given in order, from as far back as the rules need up to the
    /// last one that was applied.
    pub fn warm(&mut self, record: &Record<'_>) {
        let Ok(signals) = signal::read(record.value) else { return };
        let mut scene = Scene::new(record, true);
        self.past.note(&signals, record.timestamp_ms);
        for clock in &signals.clocks {
            self.past.begin(clock, record.timestamp_ms);
        }
        (scene.now_ms, scene.log_ms) = (self.past.now_ms(), self.past.log_ms(record.timestamp_ms));
        self.fold_signals(&signals, &mut scene);
        for clock in &signals.clocks {
            self.past.tick(clock, record.timestamp_ms);
        }
        self.past.fall_silent();
    }

    /// Ends the warming: all rules are in force. It is called when [`Abuse::warm`] was given the last record that was applied.
    pub fn warmed(&mut self) {
        let rules = Arc::clone(self.program.rules());
        for rule in std::mem::take(&mut self.warming).into_iter().filter_map(|at| rules.rules.get(at)) {
            self.state.change_rule(&rule.id, |state| state.is_warming = false);
        }
        self.past = Sources::default();
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

    /// Returns the state, for a stage that is made of it anew.
    #[must_use]
    pub fn into_state(self) -> AbuseState {
        self.state
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
        let mut scene = Scene::new(record, false);
        self.state.applied = record.offset;
        self.state.sources.note(signals, record.timestamp_ms);
        (scene.now_ms, scene.log_ms) = (self.state.sources.now_ms(), self.state.sources.log_ms(record.timestamp_ms));
        for clock in &signals.clocks {
            if self.state.sources.begin(clock, record.timestamp_ms) {
                self.tell_reset(clock.source, &mut scene);
            }
        }
        self.fold_signals(signals, &mut scene);
        if let Some(request) = &signals.request {
            self.grant(request, &mut scene);
        }
        for clock in &signals.clocks {
            self.state.sources.tick(clock, record.timestamp_ms);
        }
        for source in self.state.sources.fall_silent() {
            self.tell_silent(source, &mut scene);
        }
        self.advance(&mut scene);
        let mut folded = scene.folded;
        folded.settle_controls();
        folded.counts.paused_rules = self.paused_rules();
        folded.counts.clock_lag_ms = record.timestamp_ms.zip(self.reached_ms()).map(|(at_ms, reached_ms)| at_ms.saturating_sub(reached_ms));
        folded
    }

    /// Returns the sources that a record is measured by: those of now, or those of then.
    pub(super) fn sources_of(&mut self, scene: &Scene) -> &mut Sources {
        if scene.is_warming { &mut self.past } else { &mut self.state.sources }
    }

    pub(super) fn is_warming(&self, rule: usize) -> bool {
        self.warming.contains(&rule)
    }

    pub(super) fn has_warming(&self) -> bool {
        !self.warming.is_empty()
    }
}

/// Returns how far back a rule needs the log, in milliseconds.
fn back_ms(rule: &Rule, lateness_ms: i64) -> i64 {
    let kept_ms = match &rule.correlation {
        Correlation::Baseline(baseline) => baseline.history_ms.max(baseline.warmup_ms).max(rule.timespan_ms),
        _ => rule.timespan_ms,
    };
    kept_ms.saturating_add(lateness_ms)
}

impl Stage for Abuse {
    type Outcome = Folded;
    type Request = Infallible;
    type Response = Infallible;
    type Output = ();
    type State = AbuseState;

    fn apply(&mut self, record: &Record<'_>, (): &mut ()) -> Progress<Folded, Infallible> {
        Progress::Done(match signal::read(record.value) {
            Ok(signals) => self.fold(record, &signals),
            Err(rejection) => self.refuse(record, rejection),
        })
    }

    /// Counts the record as foreign: no writer of ours makes what cannot be taken apart.
    fn reject(&mut self, record: &Record<'_>, _: Rejection, (): &mut ()) -> Folded {
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
}

impl Abuse {
    fn refuse(&mut self, record: &Record<'_>, rejection: SignalRejection) -> Folded {
        self.state.applied = record.offset;
        let mut folded = Folded::default();
        folded.counts.rejected = Some(rejection);
        folded
    }
}
