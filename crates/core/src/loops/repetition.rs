//! The repetition controller: exact failures, failures of one tool, and read-only calls that bring nothing new.
//!
//! Its decisions are those of the Hermes controller (`ToolCallGuardrailController`), order of checks and counts included. The two
//! switches are of its later versions.

use std::collections::BTreeSet;

use serde::Serialize;

use super::{LoopCode, LoopController, LoopDecision, LoopMemory, Observation, Signature};

/// Thresholds and tool lists. Its serialised form is part of the policy's digest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RepetitionSettings {
    /// Failures of the same call with the same arguments from which on the agent is warned.
    pub exact_failure_warn_after: u32,
    /// Failures of the same call from which on it is blocked.
    pub exact_failure_block_after: u32,
    /// Failures of one tool from which on the agent is warned.
    pub same_tool_failure_warn_after: u32,
    /// Failures of one tool from which on the turn is halted.
    pub same_tool_failure_halt_after: u32,
    /// Equal results of a read-only call from which on the agent is warned.
    pub no_progress_warn_after: u32,
    /// Equal results of a read-only call from which on it is blocked.
    pub no_progress_block_after: u32,
    /// Tools that only read: only for these equal results are counted.
    pub idempotent_tools: BTreeSet<String>,
    /// Tools that change something; a tool in both lists counts as one of these.
    pub mutating_tools: BTreeSet<String>,
    /// Whether warnings are given.
    pub warnings_enabled: bool,
    /// Whether calls are blocked and turns halted.
    pub hard_stop_enabled: bool,
}

/// See the module.
#[derive(Debug)]
pub struct Repetition {
    settings: RepetitionSettings,
}

impl Repetition {
    /// A controller with these settings.
    #[must_use]
    pub fn new(settings: RepetitionSettings) -> Self {
        Self { settings }
    }

    fn is_idempotent(&self, tool_name: &str) -> bool {
        !self.settings.mutating_tools.contains(tool_name) && self.settings.idempotent_tools.contains(tool_name)
    }

    fn after_failure(&self, memory: &mut LoopMemory, call: &Signature<'_>) -> LoopDecision {
        let settings = &self.settings;
        let exact = memory.update_signature(call, |entry| {
            entry.failures = entry.failures.saturating_add(1);
            entry.progress = None;
            entry.is_stopped = settings.hard_stop_enabled && entry.failures >= settings.exact_failure_block_after;
            entry.failures
        });
        let same_tool = memory.add_tool_failure(call);
        if settings.hard_stop_enabled && same_tool >= settings.same_tool_failure_halt_after {
            return LoopDecision::found(LoopCode::SameToolFailureHalt, same_tool);
        }
        if settings.warnings_enabled && exact >= settings.exact_failure_warn_after {
            return LoopDecision::found(LoopCode::RepeatedExactFailureWarning, exact);
        }
        if settings.warnings_enabled && same_tool >= settings.same_tool_failure_warn_after {
            return LoopDecision::found(LoopCode::SameToolFailureWarning, same_tool);
        }
        LoopDecision::allow(exact)
    }

    fn after_success(&self, memory: &mut LoopMemory, call: &Signature<'_>, result: &Observation<'_>) -> LoopDecision {
        memory.clear_tool_failures(call);
        if !self.is_idempotent(call.tool_name) {
            memory.update_signature(call, |entry| (entry.failures, entry.progress, entry.is_stopped) = (0, None, false));
            return LoopDecision::allow(0);
        }
        let digest = result.digest().fingerprint();
        let repeats = memory.update_signature(call, |entry| {
            entry.failures = 0;
            let repeats = match entry.progress {
                Some((last, repeats)) if last == digest => repeats.saturating_add(1),
                _ => 1,
            };
            entry.progress = Some((digest, repeats));
            entry.is_stopped = self.settings.hard_stop_enabled && repeats >= self.settings.no_progress_block_after;
            repeats
        });
        if self.settings.warnings_enabled && repeats >= self.settings.no_progress_warn_after {
            return LoopDecision::found(LoopCode::IdempotentNoProgressWarning, repeats);
        }
        LoopDecision::allow(repeats)
    }
}

impl LoopController for Repetition {
    fn name(&self) -> &'static str {
        "repetition"
    }

    fn before_call(&self, memory: &mut LoopMemory, call: &Signature<'_>) -> LoopDecision {
        if !self.settings.hard_stop_enabled {
            return LoopDecision::allow(0);
        }
        let entry = memory.signature(call);
        let failures = entry.map_or(0, |entry| entry.failures);
        if failures >= self.settings.exact_failure_block_after {
            return LoopDecision::found(LoopCode::RepeatedExactFailureBlock, failures);
        }
        match entry.and_then(|entry| entry.progress) {
            Some((_, repeats)) if repeats >= self.settings.no_progress_block_after && self.is_idempotent(call.tool_name) => {
                LoopDecision::found(LoopCode::IdempotentNoProgressBlock, repeats)
            }
            _ => LoopDecision::allow(0),
        }
    }

    fn after_call(&self, memory: &mut LoopMemory, call: &Signature<'_>, result: &Observation<'_>) -> LoopDecision {
        if result.failed { self.after_failure(memory, call) } else { self.after_success(memory, call, result) }
    }
}
