//! Validated decision settings. The policy's version is the digest of their serialised form.

use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;

use super::Registry;
use crate::decide::controls::Controls;
use crate::decide::guardrail::{ConfiguredProvider, GuardrailChain, HttpSettings, NamedFile};
use crate::decide::loops::LoopSettings;
use crate::decide::safety::ConfiguredDetector;
use crate::settings::{self, Collector, Fault, Faults, Section};
use tollgate_passport::Terms;

/// All decision settings.
#[derive(Debug, Serialize)]
pub struct PolicySettings {
    /// The safety detectors in order; none if `safety_finish_reason` is disabled.
    pub detectors: Vec<ConfiguredDetector>,
    /// The guardrail providers; `None` if `guardrails` is disabled.
    pub guardrails: Option<GuardrailSettings>,
    /// The loop controllers.
    pub tool_loop_guardrails: LoopSettings,
    /// Sizes and times that decisions depend on.
    pub limits: LimitSettings,
}

/// The guardrail chain.
#[derive(Debug, Serialize)]
pub struct GuardrailSettings {
    /// Whether a provider that fails denies.
    pub fail_closed: bool,
    /// The passport reference of calls without an agent.
    pub passport: Option<String>,
    /// The providers in order.
    pub providers: Vec<ConfiguredProvider>,
}

/// Sizes and times that decisions depend on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct LimitSettings {
    /// The largest event, in bytes.
    pub event_bytes_max: usize,
    /// The largest verdict, in bytes.
    pub verdict_bytes_max: usize,
    /// Threads that a partition remembers at once.
    pub threads_per_partition_max: usize,
    /// How many of these, in per cent, one tenant's threads with a stop may be.
    pub tenant_stops_percent_max: u32,
    /// How much one thread may remember, in bytes.
    pub thread_bytes_max: usize,
    /// The most events of a thread that may wait behind one that waits for a policy server. While there are more, no server is asked about
    /// its calls.
    pub thread_queue_max: usize,
    /// How long a thread may pause before it starts from nothing, in seconds of event time.
    pub thread_idle_seconds_max: u32,
    /// How long a thread may pause before a turn without an id is over, in seconds of event time.
    pub turn_idle_seconds_max: u32,
}

impl LimitSettings {
    /// Returns how many threads with a stop one tenant may have in a partition: at least one.
    #[must_use]
    pub fn tenant_stops_max(&self) -> usize {
        (self.threads_per_partition_max.saturating_mul(self.tenant_stops_percent_max as usize) / 100).max(1)
    }
}

impl PolicySettings {
    /// Reads a whole configuration, with the built-in defaults for what it leaves out. Sections that decisions do not depend on are
    /// ignored.
    ///
    /// # Errors
    /// [`Faults`] lists all that is wrong, in the order of the configuration.
    pub fn from_value(user: &Value) -> Result<Self, Faults> {
        Self::from_value_with(user, &Registry::builtin())
    }

    /// Reads a whole configuration that may name the detectors and providers of a registry.
    ///
    /// # Errors
    /// [`Faults`] lists all that is wrong.
    pub fn from_value_with(user: &Value, registry: &Registry) -> Result<Self, Faults> {
        let defaults = settings::defaults().map_err(|error| Faults::of("the built-in defaults", &error))?;
        let faults = Collector::default();
        let read = {
            let root = Section::root(user, &defaults, &faults);
            defaults.as_object().into_iter().flatten().for_each(|(section, _)| root.pass_over(section));
            Self::read(&root, registry)
        };
        faults.into_result(read)
    }

    /// Reads a whole configuration from a YAML text.
    ///
    /// # Errors
    /// [`Faults`] lists all that is wrong. If the text is not YAML, it has one fault that says where.
    pub fn from_yaml(text: &str) -> Result<Self, Faults> {
        Self::from_value(&settings::parse(text).map_err(|error| Faults::of("the configuration", &error))?)
    }

    /// Reads the sections of a configuration that decisions depend on.
    #[must_use]
    pub fn read(root: &Section<'_>, registry: &Registry) -> Self {
        Self {
            detectors: super::read_safety::read(&root.section("safety_finish_reason"), registry),
            guardrails: super::read_guardrails::read(&root.section("guardrails"), registry),
            tool_loop_guardrails: LoopSettings::read(&root.section("tool_loop_guardrails")),
            limits: super::read_limits::read(&root.section("limits")),
        }
    }

    /// Loads the files that the settings name, through `read`, whose error says why a file cannot be read. Settings whose file is not
    /// loaded have no content: a call that needs it is denied.
    ///
    /// # Errors
    /// [`Faults`] lists every file that cannot be read. A file that can be read and has no usable content is not a fault here: see
    /// [`PolicySettings::unusable`].
    pub fn load_files(&mut self, read: impl Fn(&str) -> Result<Vec<u8>, String>) -> Result<(), Faults> {
        let mut faults = Vec::new();
        for provider in self.guardrails.iter_mut().flat_map(|guardrails| &mut guardrails.providers) {
            let Some(NamedFile { key, path, content }) = provider.settings.file() else { continue };
            match read(path) {
                Ok(text) => provider.settings.load(&text),
                Err(reason) => faults.push(Fault {
                    key: key.to_owned(),
                    found: format!("{path}, which cannot be read ({reason})"),
                    fix: format!("write the path of {content}, or null"),
                }),
            }
        }
        if faults.is_empty() { Ok(()) } else { Err(Faults(faults)) }
    }

    /// Returns what is wrong with the content of loaded files, as sentences for people.
    pub fn unusable(&self) -> impl Iterator<Item = String> {
        self.providers().filter_map(|provider| provider.settings.unusable())
    }

    /// Returns what the author of the settings should know about them, as sentences for people.
    pub fn remarks(&self) -> impl Iterator<Item = String> {
        self.providers().flat_map(|provider| provider.settings.remarks())
    }

    /// Returns the terms of the first provider that examines passports.
    #[must_use]
    pub fn passport_terms(&self) -> Option<Terms> {
        self.providers().find_map(|provider| provider.settings.passport_terms())
    }

    /// Returns the guardrail providers in order; none if `guardrails` is disabled.
    pub(super) fn providers(&self) -> impl Iterator<Item = &ConfiguredProvider> {
        self.guardrails.iter().flat_map(|guardrails| &guardrails.providers)
    }
}

impl GuardrailSettings {
    /// Returns the policy servers that providers ask, by their place in the chain.
    pub fn servers(&self) -> impl Iterator<Item = (usize, &HttpSettings)> {
        self.providers.iter().enumerate().filter_map(|(place, provider)| Some((place, provider.settings.server()?)))
    }

    pub(super) fn build(&self, controls: &Arc<Controls>) -> GuardrailChain {
        let links = self.providers.iter().map(|provider| provider.build(controls)).collect();
        GuardrailChain::new(links, self.fail_closed, self.passport.clone())
    }
}
