//! The abuse stage: the fold of a partition of the signals topic, as a stage that a worker can run.

use std::convert::Infallible;
use std::sync::Arc;

use crate::decode::Rejection;
use crate::record::{Offset, Record};
use crate::signal::{self, SignalRejection};
use crate::stage::{Progress, Resumed, Stage, Waiting};

use super::{AbuseRules, AbuseState, Folded};

/// The stage that counts signals by subject.
#[derive(Debug)]
pub struct Abuse {
    rules: Arc<AbuseRules>,
    state: AbuseState,
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
    pub fn new(rules: Arc<AbuseRules>, state: AbuseState) -> Self {
        Self { rules, state }
    }

    /// Returns the rules in force.
    #[must_use]
    pub fn rules(&self) -> &Arc<AbuseRules> {
        &self.rules
    }

    /// Returns the rules that are warming. They count nothing of what is applied, raise no alert and suspend nobody.
    #[must_use]
    pub fn warming(&self) -> Vec<Warming> {
        Vec::new()
    }

    /// Folds a record of the log for the warming rules alone. The records are given in order, from as far back as the rules need up to the
    /// last one that was applied.
    pub fn warm(&mut self, record: &Record<'_>) {
        let _signals = signal::read(record.value);
    }

    /// Ends the warming: all rules are in force. It is called when [`Abuse::warm`] was given the last record that was applied.
    pub fn warmed(&mut self) {}

    /// Returns the state, for a stage that is made of it anew.
    #[must_use]
    pub fn into_state(self) -> AbuseState {
        self.state
    }

    /// Returns the partition's time, in milliseconds since the epoch; `None` before any source has told its time.
    #[must_use]
    pub fn clock_ms(&self) -> Option<i64> {
        None
    }
}

impl Stage for Abuse {
    type Outcome = Folded;
    type Request = Infallible;
    type Response = Infallible;
    type Output = ();
    type State = AbuseState;

    fn apply(&mut self, record: &Record<'_>, (): &mut ()) -> Progress<Folded, Infallible> {
        let mut folded = Folded::default();
        if let Err(rejection) = signal::read(record.value) {
            folded.counts.rejected = Some(rejection);
        }
        Progress::Done(folded)
    }

    /// Counts the record as foreign: no reader of ours writes what it could not take apart.
    fn reject(&mut self, _: &Record<'_>, _: Rejection, (): &mut ()) -> Folded {
        let mut folded = Folded::default();
        folded.counts.rejected = Some(SignalRejection::Foreign("a record that cannot be taken apart"));
        folded
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
