//! Loop controllers: is this thread stuck, repeating what already failed?
//!
//! A controller is asked before every call and told of every result. It decides from the turn's [`LoopMemory`] alone, so the
//! same events always give the same decisions. Several controllers may be in force; the most severe finding decides.

mod code;
mod failure;
mod memory;
mod repetition;
mod signature;

pub use code::{Intervention, LoopCode};
pub use failure::{Failure, classify};
pub use memory::{LoopMemory, SignatureCount, ToolCount};
pub use repetition::{Repetition, RepetitionSettings};
pub use signature::{Observation, Signature, arguments_digest, result_digest};

use super::verdict::Reason;

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
        let decisions = self.controllers.iter().map(|controller| controller.before_call(memory, call)).collect();
        conclude(decisions, memory)
    }

    /// Tells every controller of a result.
    pub fn after_call(&self, memory: &mut LoopMemory, call: &Signature<'_>, result: &Observation<'_>) -> LoopOutcome {
        let decisions = self.controllers.iter().map(|controller| controller.after_call(memory, call, result)).collect();
        conclude(decisions, memory)
    }
}

fn conclude(mut decisions: Vec<LoopDecision>, memory: &mut LoopMemory) -> LoopOutcome {
    // The sort is stable: equally severe findings stay in configured order.
    decisions.sort_by_key(|decision| std::cmp::Reverse(decision.finding.map(LoopCode::intervention)));
    memory.holds_a_stop |= decisions.iter().any(|decision| decision.finding.is_some_and(|code| code.intervention().halts()));
    LoopOutcome {
        count: decisions.first().map_or(0, |decision| decision.count),
        reasons: decisions
            .iter()
            .filter_map(|decision| decision.finding.map(|code| Reason::Loop { code, count: decision.count }))
            .collect(),
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
