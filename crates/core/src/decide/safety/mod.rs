//! Safety detectors: they decide whether a response was cut off by its provider's safety system.
//!
//! ```text
//! body ─▶ reading (all providers' shapes) ─▶ detectors: was it stopped? ─▶ inspection: which calls must not run, and what is in doubt
//! ```
//!
//! Detectors look at the reasons why a response ended, in whatever form it comes ([`ResponseView`]). Its calls are read only after a hit.
//! Whether tool calls are suppressed never depends on whether their arguments parse: a truncated call can look whole.

mod descriptor;
mod detectors;
mod inspection;
mod message;
mod native;
pub mod reading;
mod reasons;
mod response;
mod settings;
mod vocabulary;

pub use descriptor::{ConfiguredDetector, DetectorDescriptor};
pub use detectors::DETECTORS;
pub(crate) use detectors::default_reasons;
pub use inspection::{Inspection, SafetyChain};
pub use reading::{CalledTool, ReasonValue, ResponseContent, Stage, sanitise_message, sanitise_response};
pub use reasons::{Category, ReasonSet};
pub(crate) use response::unwrap_message;
pub use response::{EndReason, ResponseView};
pub use settings::{Doubt, OnDoubt, ResponseSettings};
pub(crate) use vocabulary::WORDS;

use std::collections::BTreeSet;

use serde::Serialize;

use message::summary;

/// The verdict code of a response that was cut off.
pub const SAFETY_TERMINATED: &str = "safety_terminated";

/// The verdict code of a response whose calls may be incomplete for another reason than safety.
pub const TOOL_CALLS_UNRELIABLE: &str = "tool_calls_unreliable";

/// The verdict code of a response whose body no reader knows.
pub const UNRECOGNIZED_RESPONSE: &str = "unrecognized_response";

/// What a detector found in a response.
#[derive(Debug, Clone, PartialEq)]
pub struct Detection {
    /// The name of the rule that found it, where the detector has several.
    pub rule: Option<&'static str>,
    /// The shape of the body, where the detector knows it.
    pub shape: Option<&'static str>,
    /// The kind of safety stop.
    pub category: Category,
    /// What was stopped, where it is known.
    pub stage: Option<Stage>,
    /// The field with the reason, as the response spells it.
    pub reason_field: &'static str,
    /// The field's value, in the response's own case. Verdicts show it, so it has to be one of the values that the detector knows.
    pub reason_value: ReasonValue,
    /// What the provider says besides, such as its ratings. Verdicts show it, so texts of the provider's own must not be in it.
    pub extras: serde_json::Map<String, serde_json::Value>,
    /// The ids of the calls that the provider flagged, if it let the others be. `None` means all calls.
    pub flagged: Option<BTreeSet<String>>,
}

impl Detection {
    /// Returns a detection of a value in a field.
    #[must_use]
    pub fn new(category: Category, reason_field: &'static str, reason_value: ReasonValue) -> Self {
        let extras = serde_json::Map::new();
        Self { rule: None, shape: None, category, stage: None, reason_field, reason_value, extras, flagged: None }
    }
}

/// A detector of responses that a provider has cut off. To add one, implement this trait and describe it in a [`DetectorDescriptor`].
pub trait SafetyDetector: std::fmt::Debug + Send + Sync {
    /// Returns the detector's name, as configuration and verdicts write it.
    fn name(&self) -> &'static str;

    /// Returns whether the detector looks at [`ResponseView::scan`], which costs a walk through the body.
    fn reads_every_shape(&self) -> bool {
        false
    }

    /// Returns whether it finds nothing in a response in whose [`ResponseView::scan`] there is no signal, so that it need not be asked.
    fn is_within_scan(&self) -> bool {
        false
    }

    /// Returns the safety stop that it finds in a response; `None` if there is none.
    fn detect(&self, response: &ResponseView<'_>) -> Option<Detection>;
}

/// How a response was cut off, as the verdict records it. Arguments are never part of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Termination {
    /// The name of the detector, or of its rule, that found it.
    pub detector: &'static str,
    /// The kind of safety stop.
    pub category: Category,
    /// The field with the reason.
    pub reason_field: &'static str,
    /// The field's value.
    pub reason_value: ReasonValue,
    /// How many tool calls the response holds, well-formed or not. Where the provider flagged some of them alone, only those count.
    pub suppressed_tool_call_count: usize,
    /// The names of their tools in order, `unknown` for a missing name.
    pub suppressed_tool_call_names: Vec<String>,
    /// The ids of those calls that have one, in order.
    pub suppressed_tool_call_ids: Vec<String>,
    /// The text for the user; left out where the response has text and nothing was suppressed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_message: Option<String>,
    /// What the provider says besides.
    pub extras: serde_json::Map<String, serde_json::Value>,
    /// What was stopped, where it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stage: Option<Stage>,
    /// The shape of the body, for those who count. Verdicts do not repeat it.
    #[serde(skip)]
    pub shape: Option<&'static str>,
    /// Whether the provider flagged single calls and let the rest of the response be.
    #[serde(skip)]
    pub is_of_single_calls: bool,
}

impl Termination {
    /// Returns the first clause of the text for the user, which says why the response ended.
    #[must_use]
    pub fn summary(&self) -> String {
        summary(self.detector, self.reason_field, &self.reason_value)
    }
}
