//! Loop controllers: they decide whether a thread is stuck, repeating what already failed.
//!
//! A controller is asked before every call and observes every result. It decides from its own memory of the turn alone, so the same events
//! always give the same decisions. Several controllers may be in force, and the most severe finding decides.
//!
//! A controller is one file and one line of `registry`. The file contains its settings and how they are read, its memory and how that is
//! written, and its decisions.

#[cfg(test)]
mod counting;
mod failure;
mod hash;
mod presets;
mod registry;
mod repetition;
mod search;
mod signature;
mod slots;
mod steps;

pub use failure::{Failure, classify};
pub use presets::{PRESETS, Preset};
pub use registry::{CONTROLLERS, LoopChain, LoopDescriptor, LoopMemory, LoopSettings};
pub use repetition::{Repetition, RepetitionMemory, RepetitionSettings, SignatureCount, ToolCount};
pub use signature::{Arguments, CallContext, Observation, Signature, arguments_digest, result_digest};
pub use steps::{Attempt, Attended, Limits, Marks, Refusal, Step, StepMemory, StepSettings, Steps, Tally};

use serde::Serialize;

use crate::decide::ruling::{Intervention, LoopCode, Reason};
use crate::engine::wire::Wire;
use crate::settings::{self, Collector, Section};

/// A controller's decision: a finding or none, and the count that it is based on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoopDecision {
    /// The finding; `None` allows.
    pub finding: Option<LoopCode>,
    /// How often the counted thing has happened in this turn.
    pub count: u32,
    /// Whether the controller will stop the next call of that signature.
    pub stop_is_due: bool,
}

impl LoopDecision {
    /// Returns a decision without a finding.
    #[must_use]
    pub fn allow(count: u32) -> Self {
        Self { finding: None, count, stop_is_due: false }
    }

    /// Returns a decision with a finding.
    #[must_use]
    pub fn found(finding: LoopCode, count: u32) -> Self {
        Self { finding: Some(finding), count, stop_is_due: false }
    }

    /// Returns the decision with `stop_is_due` set.
    #[must_use]
    pub fn with_stop_due(self, stop_is_due: bool) -> Self {
        Self { stop_is_due, ..self }
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// The configuration section that the controllers share.
const SECTION: &str = "tool_loop_guardrails";

/// A controller that recognises one way of being stuck.
pub trait LoopController: std::fmt::Debug + Send + Sync + Sized {
    /// The controller's name.
    const NAME: &'static str;
    /// Other names for it.
    const ALIASES: &'static [&'static str] = &[];
    /// The version of its memory's layout, from 1 on, which [`ControllerMemory`] writes. It goes up with each change of the layout, and
    /// every earlier version stays readable.
    const SLOT_VERSION: u32;

    /// Its settings. Their serialised form is part of the policy's digest, together with those of the other controllers, so its keys must
    /// differ from theirs.
    type Settings: std::fmt::Debug + Clone + PartialEq + Eq + Serialize;
    /// Its memory of a turn.
    type Memory: ControllerMemory;

    /// Reads its settings from the section `tool_loop_guardrails`; `None` means that it is not in force. It reads no keys of other
    /// controllers.
    fn read(section: &Section<'_>) -> Option<Self::Settings>;

    /// Returns the settings that apply where the configuration says nothing; `None` means that it is not in force then.
    #[must_use]
    fn defaults() -> Option<Self::Settings> {
        let (defaults, faults) = (settings::defaults().ok()?, Collector::default());
        Self::read(&Section::root(&serde_json::Value::Null, &defaults, &faults).section(SECTION))
    }

    /// Returns a controller with these settings.
    fn new(settings: Self::Settings) -> Self;

    /// Decides on a call that was not stopped before the loop controllers.
    fn before_call(&self, memory: &mut Self::Memory, call: &Signature<'_>, context: &CallContext<'_>) -> LoopDecision;

    /// Observes the result of a call that ran, and decides whether the agent should be warned or the turn halted.
    fn after_call(
        &self,
        memory: &mut Self::Memory,
        call: &Signature<'_>,
        context: &CallContext<'_>,
        result: &Observation<'_>,
    ) -> LoopDecision;
}

/// A controller's memory of a turn: a small plain value that is part of the thread's state. People are shown its serialised form together
/// with those of the other controllers, so its keys must differ from theirs.
pub trait ControllerMemory: std::fmt::Debug + Clone + Default + PartialEq + Eq + Serialize + Wire {
    /// An empty memory.
    const BLANK: Self;

    /// Returns whether nothing is remembered.
    #[must_use]
    fn is_blank(&self) -> bool {
        *self == Self::BLANK
    }

    /// Begins the next turn: what does not outlive turns is forgotten.
    fn next_turn(&mut self) {
        *self = Self::BLANK;
    }

    /// Drops entries until the rest fits into `bytes_max` bytes. What a stop depends on is dropped last.
    fn trim(&mut self, bytes_max: usize);

    /// Returns how many bytes it takes on the heap.
    #[must_use]
    fn heap_bytes(&self) -> usize;
}

/// The joint decision of the controllers in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoopOutcome {
    /// The findings, most severe first. Controllers of equal severity are in the order of the registry.
    pub reasons: Vec<Reason>,
    /// The count of the decisive controller, or of the first controller where there is no finding.
    pub count: u32,
}

/// The decisions of the controllers that were asked so far.
#[derive(Default)]
struct Conclusion {
    /// The count of the first controller.
    first_count: Option<u32>,
    found: Vec<(LoopCode, u32)>,
    stop_is_due: bool,
}

impl Conclusion {
    fn hear(&mut self, LoopDecision { finding, count, stop_is_due }: LoopDecision) {
        self.first_count.get_or_insert(count);
        self.found.extend(finding.map(|code| (code, count)));
        self.stop_is_due |= stop_is_due;
    }

    fn conclude(mut self, holds_a_stop: &mut bool) -> LoopOutcome {
        // The sort is stable: equally severe findings stay in the order of the registry.
        self.found.sort_by_key(|(code, _)| std::cmp::Reverse(code.intervention()));
        *holds_a_stop |= self.stop_is_due || self.found.iter().any(|(code, _)| code.intervention() > Intervention::Warn);
        LoopOutcome {
            count: self.found.first().map(|(_, count)| *count).or(self.first_count).unwrap_or_default(),
            reasons: self.found.into_iter().map(|(code, count)| Reason::Loop { code, count }).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_severe_finding_decides_and_all_are_named() {
        let (mut conclusion, mut holds_a_stop) = (Conclusion::default(), false);
        conclusion.hear(LoopDecision::allow(7));
        conclusion.hear(LoopDecision::found(LoopCode::SameToolFailureWarning, 3));
        conclusion.hear(LoopDecision::found(LoopCode::RepeatedExactFailureBlock, 2));
        let outcome = conclusion.conclude(&mut holds_a_stop);
        assert_eq!((outcome.count, holds_a_stop), (2, true));
        let codes: Vec<_> = outcome.reasons.iter().map(|reason| reason.code()).collect();
        assert_eq!(codes, ["repeated_exact_failure_block", "same_tool_failure_warning"]);
    }

    #[test]
    fn a_stop_that_is_due_is_held_though_nothing_is_found() {
        for (is_due, was_held) in [(false, false), (true, false), (false, true)] {
            let (mut conclusion, mut holds_a_stop) = (Conclusion::default(), was_held);
            conclusion.hear(LoopDecision::allow(4).with_stop_due(is_due));
            let outcome = conclusion.conclude(&mut holds_a_stop);
            assert_eq!((outcome.count, outcome.reasons.len(), holds_a_stop), (4, 0, is_due || was_held));
        }
    }
}
