//! The counters of a partition: what each record changes in them.
//!
//! ```text
//! record ─▶ merge a part of a warm-up ─▶ signals ─▶ requests of operators ─▶ clock
//! ```

mod census;
mod clock;
mod memory_limit;
mod merge;
mod requests;
mod rule_changes;
mod signals;

use std::sync::Arc;

use tollgate_core::decide::signal::Signals;
use tollgate_core::event::record::{Offset, Record};

use crate::alerts::{Alerts, Enforcement};
use crate::outcome::{FoldContext, Folded};
use crate::program::{Program, RuleStatus, Use};
use crate::rules::AbuseRules;
use crate::state::AbuseState;
use crate::subjects::SlotKey;
use merge::Merge;
use rule_changes::apply_rule_changes;

/// The counters of a partition, and the rules that count in them.
#[derive(Debug)]
pub(crate) struct Counters {
    pub program: Program,
    pub state: AbuseState,
    alerts: Alerts,
    /// A warm-up that is being merged.
    merging: Option<Box<Merge>>,
    /// Where a subject is written to.
    buffer: Vec<u8>,
    /// The rules that count the signal that is being folded.
    uses: Vec<Use>,
    /// Where the subjects of a record are, reused.
    places: Vec<Option<SlotKey>>,
}

impl Counters {
    /// Returns counters with the state of a checkpoint. State of rules that are no longer there is dropped.
    pub(crate) fn restored(rules: Arc<AbuseRules>, mut state: AbuseState) -> Self {
        let (numbers, anew) = apply_rule_changes(&rules, &mut state);
        let is_warming = |id: &str| state.rules.get(id).is_some_and(|state| state.is_warming);
        let status = |id: &str| if is_warming(id) { RuleStatus::Elsewhere } else { RuleStatus::InForce };
        let statuses = rules.rules.iter().map(|rule| status(&rule.id)).collect();
        let mut counters = Self::empty(Program::new(rules, numbers, statuses), state);
        counters.apply_rule_changes_to_subjects(&anew);
        counters
    }

    /// Returns counters for a state that knows no subject, or has not applied the changes of its rules to them.
    pub(crate) fn empty(program: Program, state: AbuseState) -> Self {
        let (alerts, merging) = (Alerts::default(), None);
        Self { program, state, alerts, merging, buffer: Vec::new(), uses: Vec::new(), places: Vec::new() }
    }

    /// Returns the rules that enforce nothing, for a tenant or for all, until an operator lets them, as indices.
    fn paused_rules(&self) -> Vec<usize> {
        let paused = self.state.rules.iter().filter(|(_, state)| state.pauses.is_any());
        let mut paused: Vec<_> = paused.filter_map(|(_, state)| self.program.place(state.number)).collect();
        paused.sort_unstable();
        paused
    }

    /// Folds the signals of one record, and returns what follows from it.
    pub(crate) fn fold(&mut self, record: &Record<'_>, signals: &Signals<'_>) -> Folded {
        let mut context = FoldContext::new(record);
        if self.merging.is_some() {
            context.now_ms = self.state.sources.now_ms();
            self.merge_some(&mut context);
        }
        self.state.applied = record.offset;
        self.state.sources.note(signals, record.timestamp_ms);
        (context.now_ms, context.log_ms) = (self.state.sources.now_ms(), self.state.sources.log_ms(record.timestamp_ms));
        for clock in &signals.clocks {
            if self.state.sources.begin(clock, record.timestamp_ms) {
                Self::tell_reset(clock.source, &mut context);
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
            Self::tell_silent(source, &mut context);
        }
        self.advance(&mut context);
        let mut folded = context.folded;
        folded.settle_controls();
        folded.counts.paused_rules = self.paused_rules();
        let lag_ms = |(at_ms, reached_ms): (i64, i64)| at_ms.saturating_sub(reached_ms);
        folded.counts.clock_lag_ms = record.timestamp_ms.zip(self.state.sources.reached_ms()).map(lag_ms);
        folded
    }

    /// Notes the offset of a record that counts nothing.
    pub(crate) fn skip(&mut self, offset: Offset) {
        self.state.applied = offset;
    }

    fn enforcement<'a>(&'a mut self, context: &'a mut FoldContext) -> Enforcement<'a> {
        Enforcement { program: &self.program, states: &mut self.state.rules, alerts: &mut self.alerts, context }
    }
}
