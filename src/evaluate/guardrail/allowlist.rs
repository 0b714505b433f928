//! The allowlist provider: tools by exact name.
//!
//! Behaviour and sentences are DeerFlow's `AllowlistProvider`: the list of allowed tools is checked first, then the denied ones;
//! names are case-sensitive and untrimmed; an empty list of allowed tools denies everything, none allows everything.

use std::collections::BTreeSet;

use super::super::verdict::GuardrailReason;
use super::{GuardrailDecision, GuardrailProvider, GuardrailRequest, Step};

/// See the module.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Allowlist {
    /// The only tools that may run; `None` is all.
    pub allowed_tools: Option<BTreeSet<String>>,
    /// Tools that may not run.
    pub denied_tools: BTreeSet<String>,
}

impl Allowlist {
    /// The name in configuration and metrics.
    pub const NAME: &'static str = "allowlist";

    fn decide(&self, tool_name: &str) -> GuardrailDecision {
        let is_listed = self.allowed_tools.as_ref().is_none_or(|allowed| allowed.contains(tool_name));
        let denial = match (is_listed, self.denied_tools.contains(tool_name)) {
            (false, _) => Some(format!("tool '{tool_name}' not in allowlist")),
            (true, true) => Some(format!("tool '{tool_name}' is denied")),
            (true, false) => None,
        };
        let (allow, code, message) = match denial {
            None => (true, "oap.allowed", String::new()),
            Some(message) => (false, "oap.tool_not_allowed", message),
        };
        GuardrailDecision { allow, reasons: vec![GuardrailReason::new(code, message)] }
    }
}

impl GuardrailProvider for Allowlist {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn plan(&self, request: &GuardrailRequest<'_>) -> Step {
        Step::Decided(Ok(self.decide(request.tool_name)))
    }
}
