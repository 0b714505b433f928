//! The findings of loop controllers, one entry each: code, severity, sentence and the number in state.

use super::{Intervention, Rule, RuleFinding};
use crate::engine::wire::numbers;

/// Declares the findings, one entry each: the number in state, which is never used for another one, the variant, the code, the severity,
/// and the sentence for the agent. A sentence names `{tool_name}` and `{count}`.
macro_rules! loop_codes {
    ($($(#[$doc:meta])* $number:literal = $variant:ident $code:literal $intervention:ident $sentence:literal;)+) => {
        /// The findings of the loop controllers. Codes and sentences are those of the Hermes controller that the defaults come from, and
        /// of the rules of the step controller.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum LoopCode {
            $($(#[$doc])* $variant,)+
            /// A finding of the step controller.
            Rule(RuleFinding),
        }

        impl LoopCode {
            /// The codes of the Hermes controller.
            pub const OF_HERMES: &[Self] = &[$(Self::$variant),+];

            /// Returns the code as verdicts and labels write it.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $code,)+
                    Self::Rule(finding) => finding.code(),
                }
            }

            /// Returns the finding's severity.
            #[must_use]
            pub fn intervention(self) -> Intervention {
                match self {
                    $(Self::$variant => Intervention::$intervention,)+
                    Self::Rule(finding) => finding.intervention,
                }
            }

            /// Returns the sentence for the agent. Those of the Hermes controller are exactly as it words them.
            #[must_use]
            pub fn message(self, tool_name: &str, count: u32) -> String {
                match self {
                    $(Self::$variant => format!($sentence, tool_name = tool_name, count = count),)+
                    Self::Rule(finding) => finding.message(tool_name, count),
                }
            }
        }

        numbers! {
            LoopCode, "a loop code" { $($number = $variant,)+ 6 = Rule(finding) }
            Intervention, "a severity" { 0 = Warn, 1 = Deny, 2 = Block, 3 = Halt }
        }
    };
}

loop_codes! {
    /// The same call with the same arguments has failed before, and fails again.
    0 = RepeatedExactFailureWarning "repeated_exact_failure_warning" Warn
        "Tool guardrail: {tool_name} has failed {count} times with identical arguments. \
         Do not retry it unchanged; inspect the error and change strategy.";
    /// The same call with the same arguments has failed so often that it may not run again.
    1 = RepeatedExactFailureBlock "repeated_exact_failure_block" Block
        "Blocked {tool_name}: the same tool call failed {count} times with identical arguments. \
         Stop retrying it unchanged; change strategy or explain the blocker.";
    /// One tool keeps failing, whatever its arguments.
    2 = SameToolFailureWarning "same_tool_failure_warning" Warn
        "Tool guardrail: {tool_name} has failed {count} times this turn. Change approach before retrying.";
    /// One tool has failed so often that the turn should stop.
    3 = SameToolFailureHalt "same_tool_failure_halt" Halt
        "Stopped {tool_name}: it failed {count} times this turn. \
         Stop retrying the same failing tool path and choose a different approach.";
    /// A read-only call gives the same result again.
    4 = IdempotentNoProgressWarning "idempotent_no_progress_warning" Warn
        "Tool guardrail: {tool_name} returned the same result {count} times. \
         Use the result or change the query instead of repeating it unchanged.";
    /// A read-only call has given the same result so often that it may not run again.
    5 = IdempotentNoProgressBlock "idempotent_no_progress_block" Block
        "Blocked {tool_name}: this read-only call returned the same result {count} times. \
         Stop repeating it unchanged; use the result already provided or try a different query.";
}

impl LoopCode {
    /// Returns every code.
    pub fn all() -> impl Iterator<Item = Self> {
        let severities = [Intervention::Warn, Intervention::Deny, Intervention::Halt];
        let of_rule = move |rule: &Rule| severities.map(|intervention| Self::Rule(RuleFinding { rule: *rule, intervention }));
        Self::OF_HERMES.iter().copied().chain(Rule::ALL.iter().flat_map(of_rule))
    }

    /// Returns whether this code of a verdict is that of a finding that ends the turn, as `should_halt` says.
    #[must_use]
    pub fn is_halt(code: &str) -> bool {
        Self::all().any(|known| known.intervention().halts() && known.as_str() == code)
    }

    /// Returns the text to append to a tool's real result, or `None` where the result stays as it is (Hermes appends to warn and halt).
    #[must_use]
    pub fn guidance(self, tool_name: &str, count: u32) -> Option<String> {
        (!matches!(self.intervention(), Intervention::Block | Intervention::Deny))
            .then(|| format!("\n\n[Tool guardrail: {}; count={count}; {}]", self.as_str(), self.message(tool_name, count)))
    }
}
