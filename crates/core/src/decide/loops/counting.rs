//! A second controller, for the tests of the registry: it warns from a certain number of results of one turn on, whatever the results are.

use serde::Serialize;

use crate::decide::ruling::LoopCode;
use crate::engine::wire::layout;
use crate::settings::Section;
use tollgate_json::digest::Fingerprint;

use super::{CallContext, ControllerMemory, LoopController, LoopDecision, Observation, Signature, is_zero};

#[derive(Debug)]
pub struct Counting(CountingSettings);

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CountingSettings {
    pub results_warn_after: u32,
}

/// What the controller remembers. The first version of its layout had no `last_tool`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct CountingMemory {
    #[serde(skip_serializing_if = "is_zero")]
    pub results: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_tool: Option<Fingerprint>,
}

layout! {
    CountingMemory { results, last_tool since 2 }
}

impl LoopController for Counting {
    const NAME: &'static str = "counting";
    const ALIASES: &'static [&'static str] = &["results"];
    const SLOT_VERSION: u32 = 2;

    type Settings = CountingSettings;
    type Memory = CountingMemory;

    fn read(section: &Section<'_>) -> Option<CountingSettings> {
        section.optional_positive("results_warn_after").map(|results_warn_after| CountingSettings { results_warn_after })
    }

    fn new(settings: CountingSettings) -> Self {
        Self(settings)
    }

    fn before_call(&self, memory: &mut CountingMemory, _: &Signature<'_>, _: &CallContext<'_>) -> LoopDecision {
        LoopDecision::allow(memory.results)
    }

    fn after_call(&self, memory: &mut CountingMemory, call: &Signature<'_>, _: &CallContext<'_>, _: &Observation<'_>) -> LoopDecision {
        *memory = CountingMemory { results: memory.results + 1, last_tool: Some(call.tool) };
        let is_warned = memory.results >= self.0.results_warn_after;
        LoopDecision { finding: is_warned.then_some(LoopCode::SameToolFailureWarning), count: memory.results, stop_is_due: false }
    }
}

impl ControllerMemory for CountingMemory {
    const BLANK: Self = Self { results: 0, last_tool: None };

    fn trim(&mut self, _: usize) {}

    fn heap_bytes(&self) -> usize {
        0
    }
}
