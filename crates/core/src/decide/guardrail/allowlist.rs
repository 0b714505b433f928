//! The allowlist provider: it allows and denies tools by name.
//!
//! Behaviour and sentences are those of DeerFlow's `AllowlistProvider`. The list of allowed tools is checked first, then the denied ones.
//! Names are case-sensitive and not trimmed; `*` in an entry stands for any characters, as in every list of tools here. An empty list of
//! allowed tools denies everything, no list allows everything.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::Serialize;
use serde_json::{Value, json};

use super::{GuardrailDecision, GuardrailProvider, GuardrailRequest, ProviderDescriptor, ProviderSettings, Step};
use crate::decide::controls::Controls;
use crate::decide::ruling::GuardrailReason;
use crate::decide::tools::{ToolPatterns, read_tools, unknown_names};
use crate::settings::Section;

/// The provider's descriptor for configuration: `config: {allowed_tools: […] | null, denied_tools: […] | null}`.
pub(super) const DESCRIPTOR: ProviderDescriptor = ProviderDescriptor {
    name: Allowlist::NAME,
    aliases: &["AllowlistProvider"],
    read: |config, _| Box::new(AllowlistSettings::read(config)),
};

/// The configured lists.
#[derive(Debug, Serialize)]
struct AllowlistSettings {
    allowed_tools: Option<BTreeSet<String>>,
    denied_tools: BTreeSet<String>,
}

impl AllowlistSettings {
    fn read(config: &Section<'_>) -> Self {
        let set = |key| read_tools(config, key).map(|tools| tools.into_iter().collect());
        Self { allowed_tools: set("allowed_tools"), denied_tools: set("denied_tools").unwrap_or_default() }
    }
}

impl ProviderSettings for AllowlistSettings {
    fn config(&self) -> Value {
        json!(self)
    }

    fn listed_tools(&self) -> Vec<(&'static str, &BTreeSet<String>)> {
        let allowed = self.allowed_tools.as_ref().map(|tools| ("allowed_tools", tools));
        allowed.into_iter().chain([("denied_tools", &self.denied_tools)]).collect()
    }

    fn remarks(&self) -> Vec<String> {
        let patterns = self.allowed_tools.iter().flatten().filter(|entry| entry.contains('*') && *entry != "*");
        let remark =
            |entry: &String| format!("allowed_tools: {entry} allows tools that do not exist yet, such as those that a server adds");
        let open = (self.allowed_tools.is_none() && self.denied_tools.is_empty())
            .then(|| "denied_tools: neither this list nor allowed_tools has an entry, so that the allowlist allows every tool".to_owned());
        patterns.map(remark).chain(open).chain(unknown_names("denied_tools", &self.denied_tools)).collect()
    }

    fn build(&self, _controls: &Arc<Controls>) -> Box<dyn GuardrailProvider> {
        let list = |tools: &BTreeSet<String>| tools.iter().cloned().collect();
        Box::new(Allowlist::new(self.allowed_tools.as_ref().map(list), list(&self.denied_tools)))
    }
}

/// A provider that allows and denies tools by their names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Allowlist {
    /// The only tools that may run; `None` is all.
    allowed_tools: Option<ToolPatterns>,
    /// Tools that may not run.
    denied_tools: ToolPatterns,
}

impl Allowlist {
    /// The name in configuration and metrics.
    pub const NAME: &'static str = "allowlist";

    /// Returns a provider with the only tools that may run (`None` is all), and the tools that may not.
    #[must_use]
    pub fn new(allowed_tools: Option<Vec<String>>, denied_tools: Vec<String>) -> Self {
        Self { allowed_tools: allowed_tools.map(ToolPatterns::new), denied_tools: ToolPatterns::new(denied_tools) }
    }

    fn decide(&self, tool_name: &str) -> GuardrailDecision {
        let is_listed = self.allowed_tools.as_ref().is_none_or(|allowed| allowed.matches(tool_name));
        let message = match (is_listed, self.denied_tools.matches(tool_name)) {
            (false, _) => format!("tool '{tool_name}' not in allowlist"),
            (true, true) => format!("tool '{tool_name}' is denied"),
            (true, false) => return GuardrailDecision { allow: true, reasons: Vec::new() },
        };
        GuardrailDecision { allow: false, reasons: vec![GuardrailReason::new("oap.tool_not_allowed", message)] }
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
