//! Loop controllers: is this thread stuck, repeating what already failed?
//!
//! A controller is asked before every call and told of every result. It decides from its own memory of the turn alone, so the same events
//! always give the same decisions. Several controllers may be in force; the most severe finding decides.
//!
//! A controller is one file (its settings and how they are read, its memory and how that is written, its decisions), and one line of
//! `registry`.

#[cfg(test)]
mod counting;
mod failure;
mod registry;
mod repetition;
mod signature;
mod slots;

pub use failure::{Failure, classify};
pub use registry::{CONTROLLERS, LoopChain, LoopDescriptor, LoopMemory, LoopSettings};
pub use repetition::{Repetition, RepetitionMemory, RepetitionSettings, SignatureCount, ToolCount};
pub use signature::{Observation, Signature, arguments_digest, result_digest};

use serde::Serialize;

use crate::ruling::{LoopCode, Reason};
use crate::settings::{self, Collector, Section};
use crate::wire::Wire;

/// What a controller decides: a finding or none, and the count that it was based on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoopDecision {
    /// What was found; `None` allows.
    pub finding: Option<LoopCode>,
    /// How often the thing that was counted has happened in this turn.
    pub count: u32,
    /// Whether the controller will stop the next call of that signature.
    pub stop_is_due: bool,
}

impl LoopDecision {
    /// Nothing found.
    #[must_use]
    pub fn allow(count: u32) -> Self {
        Self { finding: None, count, stop_is_due: false }
    }

    /// Something found.
    #[must_use]
    pub fn found(finding: LoopCode, count: u32) -> Self {
        Self { finding: Some(finding), count, stop_is_due: false }
    }

    /// Returns the same decision, with what it means for the next call of that signature.
    #[must_use]
    pub fn with_stop_due(self, stop_is_due: bool) -> Self {
        Self { stop_is_due, ..self }
    }
}

/// The section of the configuration that the controllers share.
const SECTION: &str = "tool_loop_guardrails";

/// One way to see that a thread is stuck.
pub trait LoopController: std::fmt::Debug + Send + Sync + Sized {
    /// The controller's name.
    const NAME: &'static str;
    /// Other names that it goes by.
    const ALIASES: &'static [&'static str] = &[];
    /// The version of its memory's layout, from 1 on: the version that [`ControllerMemory`] writes. It goes up with each change of that
    /// layout, and every earlier version stays readable.
    const SLOT_VERSION: u32;

    /// Its settings. The serialised form is part of the policy's digest, beside that of the other controllers: its keys are its own.
    type Settings: std::fmt::Debug + Clone + PartialEq + Eq + Serialize;
    /// What it remembers of a turn.
    type Memory: ControllerMemory;

    /// Reads its settings in the section `tool_loop_guardrails`; `None` is not in force. It asks for keys of its own alone.
    fn read(section: &Section<'_>) -> Option<Self::Settings>;

    /// Returns the settings that are in force where the configuration says nothing.
    #[must_use]
    fn defaults() -> Option<Self::Settings> {
        let (defaults, faults) = (settings::defaults().ok()?, Collector::default());
        Self::read(&Section::root(&serde_json::Value::Null, &defaults, &faults).section(SECTION))
    }

    /// Returns a controller with these settings.
    fn new(settings: Self::Settings) -> Self;

    /// Decides on a call that nothing before the loop controllers has stopped.
    fn before_call(&self, memory: &mut Self::Memory, call: &Signature<'_>) -> LoopDecision;

    /// Learns the result of a call that ran, and says whether the agent should be told something.
    fn after_call(&self, memory: &mut Self::Memory, call: &Signature<'_>, result: &Observation<'_>) -> LoopDecision;
}

/// What a controller remembers of a turn: a plain value, small, and a part of the thread's state. Its serialised form is what people are
/// shown of it, beside that of the other controllers: its keys are its own.
pub trait ControllerMemory: std::fmt::Debug + Clone + Default + PartialEq + Eq + Serialize + Wire {
    /// Nothing remembered.
    const BLANK: Self;

    /// Returns whether nothing is remembered.
    #[must_use]
    fn is_blank(&self) -> bool {
        *self == Self::BLANK
    }

    /// Drops entries until the rest fits into `bytes_max` bytes. What a stop depends on goes last.
    fn trim(&mut self, bytes_max: usize);

    /// Returns bytes on the heap.
    #[must_use]
    fn heap_bytes(&self) -> usize;
}

/// What the controllers in force say together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoopOutcome {
    /// The findings, most severe first; controllers of equal severity in the order of the registry.
    pub reasons: Vec<Reason>,
    /// The count of the decisive controller, or of the first one where none found anything.
    pub count: u32,
}

/// What the controllers have said so far.
#[derive(Default)]
struct Conclusion {
    /// The count of the first of them.
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
        *holds_a_stop |= self.stop_is_due || self.found.iter().any(|(code, _)| code.intervention().halts());
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
