//! Loop controllers: is this thread stuck, repeating what already failed?
//!
//! A controller is asked before every call and told of every result. It decides from the turn's [`LoopMemory`] alone, so the
//! same events always give the same decisions. Several controllers may be in force; the most severe finding decides.

mod failure;
mod memory;
mod repetition;
mod signature;

pub use failure::{Failure, classify};
pub use memory::{LoopMemory, SignatureCount, ToolCount};
pub use repetition::{Repetition, RepetitionSettings};
pub use signature::{Observation, Signature, arguments_digest, result_digest};

use crate::ruling::{LoopCode, Reason};

/// What a controller answers: a finding or none, and the count that it was based on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoopDecision {
    /// What was found; `None` allows.
    pub finding: Option<LoopCode>,
    /// How often the thing that was counted has happened in this turn.
    pub count: u32,
}

impl LoopDecision {
    /// Nothing found.
    #[must_use]
    pub fn allow(count: u32) -> Self {
        Self { finding: None, count }
    }

    /// Something found.
    #[must_use]
    pub fn found(finding: LoopCode, count: u32) -> Self {
        Self { finding: Some(finding), count }
    }
}

/// One way to see that a thread is stuck. Implement it to add another.
pub trait LoopController: std::fmt::Debug + Send + Sync {
    /// The controller's name, for metrics and explanations.
    fn name(&self) -> &'static str;

    /// Decides on a call that nothing before the loop controllers has stopped.
    fn before_call(&self, memory: &mut LoopMemory, call: &Signature<'_>) -> LoopDecision;

    /// Learns the result of a call that ran, and says whether the agent should be told something.
    fn after_call(&self, memory: &mut LoopMemory, call: &Signature<'_>, result: &Observation<'_>) -> LoopDecision;
}

/// The controllers in force.
#[derive(Debug)]
pub struct LoopChain {
    controllers: Vec<Box<dyn LoopController>>,
}

/// What the chain answers: the reasons of every controller that found something, the decisive one first, and the decisive count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoopOutcome {
    /// The findings, most severe first; controllers of equal severity in configured order.
    pub reasons: Vec<Reason>,
    /// The count of the decisive controller, or of the first one where none found anything.
    pub count: u32,
}

impl LoopChain {
    /// A chain of these controllers, asked in this order.
    #[must_use]
    pub fn new(controllers: Vec<Box<dyn LoopController>>) -> Self {
        Self { controllers }
    }

    /// Asks every controller about a call.
    pub fn before_call(&self, memory: &mut LoopMemory, call: &Signature<'_>) -> LoopOutcome {
        let mut conclusion = Conclusion::default();
        self.controllers.iter().for_each(|controller| conclusion.hear(controller.before_call(memory, call)));
        conclusion.conclude(memory)
    }

    /// Tells every controller of a result.
    pub fn after_call(&self, memory: &mut LoopMemory, call: &Signature<'_>, result: &Observation<'_>) -> LoopOutcome {
        let mut conclusion = Conclusion::default();
        self.controllers.iter().for_each(|controller| conclusion.hear(controller.after_call(memory, call, result)));
        conclusion.conclude(memory)
    }
}

/// What the controllers have said so far.
#[derive(Default)]
struct Conclusion {
    /// The count of the first of them.
    first_count: Option<u32>,
    found: Vec<(LoopCode, u32)>,
}

impl Conclusion {
    fn hear(&mut self, LoopDecision { finding, count }: LoopDecision) {
        self.first_count.get_or_insert(count);
        self.found.extend(finding.map(|code| (code, count)));
    }

    fn conclude(mut self, memory: &mut LoopMemory) -> LoopOutcome {
        // The sort is stable: equally severe findings stay in configured order.
        self.found.sort_by_key(|(code, _)| std::cmp::Reverse(code.intervention()));
        memory.holds_a_stop |= self.found.iter().any(|(code, _)| code.intervention().halts());
        LoopOutcome {
            count: self.found.first().map(|(_, count)| *count).or(self.first_count).unwrap_or_default(),
            reasons: self.found.into_iter().map(|(code, count)| Reason::Loop { code, count }).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::Digest;

    /// A controller that always says the same, to see how findings combine.
    #[derive(Debug)]
    struct Always(LoopDecision);

    impl LoopController for Always {
        fn name(&self) -> &'static str {
            "always"
        }
        fn before_call(&self, _: &mut LoopMemory, _: &Signature<'_>) -> LoopDecision {
            self.0
        }
        fn after_call(&self, _: &mut LoopMemory, _: &Signature<'_>, _: &Observation<'_>) -> LoopDecision {
            self.0
        }
    }

    #[test]
    fn the_most_severe_finding_decides_and_all_are_named() {
        let always = |decision| Box::new(Always(decision)) as Box<dyn LoopController>;
        let chain = LoopChain::new(vec![
            always(LoopDecision::allow(7)),
            always(LoopDecision::found(LoopCode::SameToolFailureWarning, 3)),
            always(LoopDecision::found(LoopCode::RepeatedExactFailureBlock, 2)),
        ]);
        let mut memory = LoopMemory::default();
        let outcome = chain.before_call(&mut memory, &Signature::new("t", Digest::of(b"{}")));
        assert_eq!(outcome.count, 2);
        assert!(memory.holds_a_stop);
        let codes: Vec<_> = outcome.reasons.iter().map(|reason| reason.code()).collect();
        assert_eq!(codes, ["repeated_exact_failure_block", "same_tool_failure_warning"]);
    }
}
