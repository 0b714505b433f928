//! The findings of loop controllers, and their sentences.

/// The severity of a finding. The order is the order of precedence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Intervention {
    /// The agent is warned. The tool runs, or has run.
    Warn,
    /// This call may not run, and the turn should stop.
    Block,
    /// The result stands, and the turn should stop.
    Halt,
}

impl Intervention {
    /// Returns whether the turn should stop.
    #[must_use]
    pub fn halts(self) -> bool {
        self != Self::Warn
    }
}

/// The findings of the loop controllers. Codes and texts are those of the Hermes controller that the defaults come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LoopCode {
    /// The same call with the same arguments has failed before, and fails again.
    RepeatedExactFailureWarning,
    /// The same call with the same arguments has failed so often that it may not run again.
    RepeatedExactFailureBlock,
    /// One tool keeps failing, whatever its arguments.
    SameToolFailureWarning,
    /// One tool has failed so often that the turn should stop.
    SameToolFailureHalt,
    /// A read-only call gives the same result again.
    IdempotentNoProgressWarning,
    /// A read-only call has given the same result so often that it may not run again.
    IdempotentNoProgressBlock,
}

impl LoopCode {
    /// Every code.
    pub const ALL: [Self; 6] = [
        Self::RepeatedExactFailureWarning,
        Self::RepeatedExactFailureBlock,
        Self::SameToolFailureWarning,
        Self::SameToolFailureHalt,
        Self::IdempotentNoProgressWarning,
        Self::IdempotentNoProgressBlock,
    ];

    /// Returns the code as verdicts and labels write it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::RepeatedExactFailureWarning => "repeated_exact_failure_warning",
            Self::RepeatedExactFailureBlock => "repeated_exact_failure_block",
            Self::SameToolFailureWarning => "same_tool_failure_warning",
            Self::SameToolFailureHalt => "same_tool_failure_halt",
            Self::IdempotentNoProgressWarning => "idempotent_no_progress_warning",
            Self::IdempotentNoProgressBlock => "idempotent_no_progress_block",
        }
    }

    /// Returns the finding's severity.
    #[must_use]
    pub fn intervention(self) -> Intervention {
        match self {
            Self::RepeatedExactFailureWarning | Self::SameToolFailureWarning | Self::IdempotentNoProgressWarning => Intervention::Warn,
            Self::RepeatedExactFailureBlock | Self::IdempotentNoProgressBlock => Intervention::Block,
            Self::SameToolFailureHalt => Intervention::Halt,
        }
    }

    /// Returns the sentence for the agent, exactly as the Hermes controller words it.
    #[must_use]
    pub fn message(self, tool_name: &str, count: u32) -> String {
        match self {
            Self::RepeatedExactFailureBlock => format!(
                "Blocked {tool_name}: the same tool call failed {count} times with identical arguments. \
                 Stop retrying it unchanged; change strategy or explain the blocker."
            ),
            Self::IdempotentNoProgressBlock => format!(
                "Blocked {tool_name}: this read-only call returned the same result {count} times. \
                 Stop repeating it unchanged; use the result already provided or try a different query."
            ),
            Self::SameToolFailureHalt => format!(
                "Stopped {tool_name}: it failed {count} times this turn. \
                 Stop retrying the same failing tool path and choose a different approach."
            ),
            Self::RepeatedExactFailureWarning => format!(
                "Tool guardrail: {tool_name} has failed {count} times with identical arguments. \
                 Do not retry it unchanged; inspect the error and change strategy."
            ),
            Self::SameToolFailureWarning => {
                format!("Tool guardrail: {tool_name} has failed {count} times this turn. Change approach before retrying.")
            }
            Self::IdempotentNoProgressWarning => format!(
                "Tool guardrail: {tool_name} returned the same result {count} times. \
                 Use the result or change the query instead of repeating it unchanged."
            ),
        }
    }

    /// Returns the text to append to a tool's real result, or `None` where the result stays as it is (Hermes appends to warn and halt).
    #[must_use]
    pub fn guidance(self, tool_name: &str, count: u32) -> Option<String> {
        (self.intervention() != Intervention::Block)
            .then(|| format!("\n\n[Tool guardrail: {}; count={count}; {}]", self.as_str(), self.message(tool_name, count)))
    }
}
