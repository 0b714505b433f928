//! Validated decision settings, and how they are read. The policy's version is the digest of their serialised form.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;

use super::Registry;
use crate::decide::controls::Controls;
use crate::decide::guardrail::{ConfiguredProvider, GuardrailChain, HttpSettings, NamedFile};
use crate::decide::loops::LoopSettings;
use crate::decide::safety::{ConfiguredDetector, ResponseSettings};
use crate::decide::tools::{have_common_names, read_tools, unknown_names};
use crate::settings::{self, Collector, Fault, Faults, Section, find};
use tollgate_passport::{Passport, Terms};

/// The least that a thread may remember whatever is configured, in bytes: a few calls and counters.
const THREAD_BYTES_MIN: u32 = 4 * 1024;
/// The smallest limit of a verdict whatever is configured, in bytes: ids and names of full length, several times.
const VERDICT_BYTES_MIN: u32 = 16 * 1024;
const NO_PROVIDER: &str = "write `provider: {use: allowlist, config: {denied_tools: [\"bash\"]}}`, or set `enabled: false`";
const EMPTY_LIST: &str = "omit it for the built-ins, or set `enabled: false`";

/// All decision settings.
#[derive(Debug, Serialize)]
pub struct PolicySettings {
    /// The safety detectors in order; none if `safety_finish_reason` is disabled.
    pub detectors: Vec<ConfiguredDetector>,
    /// What follows where a response is in doubt.
    pub responses: ResponseSettings,
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
    /// Reads the section `limits`.
    fn read(section: &Section<'_>) -> Self {
        let at_least = |key: &'static str, least: u32| section.between(key, least, u32::MAX) as usize;
        let [turn, thread] = ["turn_idle_seconds_max", "thread_idle_seconds_max"];
        if section.is_written(turn) && section.positive(turn) > section.positive(thread) {
            let found = "a longer time than `thread_idle_seconds_max`, after which the whole thread starts from nothing";
            section.fault(turn, found, "write no more seconds than that, or leave it out");
        }
        Self {
            event_bytes_max: section.positive("event_bytes_max") as usize,
            verdict_bytes_max: at_least("verdict_bytes_max", VERDICT_BYTES_MIN),
            threads_per_partition_max: section.positive("threads_per_partition_max") as usize,
            tenant_stops_percent_max: section.between("tenant_stops_percent_max", 1, 100),
            thread_bytes_max: at_least("thread_bytes_max", THREAD_BYTES_MIN),
            thread_queue_max: section.positive("thread_queue_max") as usize,
            thread_idle_seconds_max: section.positive("thread_idle_seconds_max"),
            turn_idle_seconds_max: section.positive("turn_idle_seconds_max"),
        }
    }

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
        let (detectors, responses) = read_safety(&root.section("safety_finish_reason"), registry);
        Self {
            detectors,
            responses,
            guardrails: GuardrailSettings::read(&root.section("guardrails"), registry),
            tool_loop_guardrails: LoopSettings::read(root.section("tool_loop_guardrails")),
            limits: LimitSettings::read(&root.section("limits")),
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
        let about_tools = |provider: &ConfiguredProvider| unknown_names("tools", provider.tools.iter().flatten()).collect::<Vec<_>>();
        let remarks = self.providers().flat_map(move |provider| provider.settings.remarks().into_iter().chain(about_tools(provider)));
        remarks.chain(self.unasked())
    }

    /// Returns a remark if there are tools that no provider is asked about.
    fn unasked(&self) -> Option<String> {
        let is_narrow = |provider: &ConfiguredProvider| provider.tools.as_ref().is_some_and(|tools| tools.iter().all(|tool| tool != "*"));
        let is_open = self.guardrails.is_some() && self.providers().all(is_narrow);
        is_open.then(|| "tools: no provider is asked about a tool that this list does not match, so that such a tool is allowed".to_owned())
    }

    /// Returns the terms of the first provider that examines passports.
    #[must_use]
    pub fn passport_terms(&self) -> Option<Terms> {
        self.providers().find_map(|provider| provider.settings.passport_terms())
    }

    /// Returns whether a provider examines calls under passports.
    #[must_use]
    pub fn reads_passports(&self) -> bool {
        self.passport_terms().is_some()
    }

    /// Returns the passports of configured files.
    pub fn passports(&self) -> impl Iterator<Item = &Arc<Passport>> {
        self.providers().filter_map(|provider| provider.settings.passport())
    }

    /// Returns the guardrail providers in order; none if `guardrails` is disabled.
    pub(super) fn providers(&self) -> impl Iterator<Item = &ConfiguredProvider> {
        self.guardrails.iter().flat_map(|guardrails| &guardrails.providers)
    }
}

impl GuardrailSettings {
    /// Reads the section `guardrails`: the block as DeerFlow writes it, or a list of providers.
    fn read(section: &Section<'_>, registry: &Registry) -> Option<Self> {
        let is_enabled = section.bool("enabled");
        let single = section.value("provider").is_some_and(|value| !value.is_null()).then(|| section.section("provider"));
        let several = section.value("providers").filter(|value| !value.is_null()).and_then(|_| section.sections("providers"));
        if single.is_some() && several.is_some() {
            section.fault("provider", "both `provider` and `providers`", "write one of them");
        }
        let entries: Vec<_> = single.into_iter().chain(several.unwrap_or_default()).collect();
        if is_enabled && entries.is_empty() {
            section.fault("provider", "nothing although `enabled` is true", NO_PROVIDER);
        }
        let mut providers: Vec<_> = entries.iter().filter_map(|entry| read_provider(entry, section, registry)).collect();
        let is_open = !is_enabled && (!section.is_written("enabled") || section.is_null("enabled"));
        let passport = section.optional_string("passport");
        if entries.is_empty() && is_open && passport.is_some() {
            section.fault(
                "passport",
                "a passport without a provider that reads it",
                "write `enabled: true` and `provider: {use: oap_passport}`",
            );
        }
        if !entries.is_empty() && is_open {
            section.fault(
                "enabled",
                "nothing although there are providers, which nobody would ask",
                "write true, or false to switch them off",
            );
        }
        // Providers that decide at once come first: no policy server has to be asked about a call that they deny.
        providers.sort_by_key(|provider| provider.settings.server().is_some());
        make_names_unique(&mut providers);
        let is_read = |passport: &String| providers.iter().any(|provider| provider.settings.reads_reference(passport));
        if is_enabled && !providers.is_empty() && !passport.as_ref().is_none_or(is_read) {
            let fix = "remove it; `oap_passport` without a `passport_path` of its own reads it, and `http` sends it to the policy server";
            section.fault("passport", "a passport that no provider reads", fix);
        }
        let settings = Self { fail_closed: section.bool("fail_closed"), passport, providers };
        is_enabled.then_some(settings)
    }

    /// Returns the policy servers that providers ask, by their place in the chain.
    pub fn servers(&self) -> impl Iterator<Item = (usize, &HttpSettings)> {
        self.providers.iter().enumerate().filter_map(|(place, provider)| Some((place, provider.settings.server()?)))
    }

    pub(super) fn build(&self, controls: &Arc<Controls>) -> GuardrailChain {
        let links = self.providers.iter().map(|provider| provider.build(controls)).collect();
        GuardrailChain::new(links, self.fail_closed, self.passport.clone())
    }
}

fn read_provider(entry: &Section<'_>, guardrails: &Section<'_>, registry: &Registry) -> Option<ConfiguredProvider> {
    let provider = find(entry, "provider", registry.providers());
    let tools = read_tools(entry, "tools");
    if tools.as_ref().is_some_and(Vec::is_empty) {
        entry.fault("tools", "an empty list", "name tools, such as [\"bash\", \"mcp__*\"], or leave it out for all");
    }
    let config = entry.section("config");
    let Some(provider) = provider else {
        config.pass_over_all();
        return None;
    };
    let settings = (provider.read)(&config, guardrails);
    let is_asked = |listed: &String| tools.as_ref().is_none_or(|tools| tools.iter().any(|tools| have_common_names(tools, listed)));
    for (key, listed) in settings.listed_tools() {
        if let Some(listed) = listed.iter().find(|listed| !is_asked(listed)) {
            let found = format!("{listed}, which this provider is never asked about: no name matches its `tools` too");
            let fix = "leave `tools` out, which asks about every tool, or write the tool in a provider that is asked about it";
            config.fault(key, found, fix);
        }
    }
    entry.refuse_keys_of("config", &config);
    Some(ConfiguredProvider { name: provider.name, tools, settings })
}

/// Numbers servers with the same name, so that metrics tell them apart.
fn make_names_unique(providers: &mut [ConfiguredProvider]) {
    let mut seen = BTreeMap::<String, usize>::new();
    for server in providers.iter_mut().filter_map(|provider| provider.settings.server_mut()) {
        let number = seen.entry(server.name.clone()).and_modify(|number| *number += 1).or_insert(1);
        if *number > 1 {
            server.name = format!("{}-{number}", server.name);
        }
    }
}

/// Reads the section `safety_finish_reason`, as DeerFlow writes it.
fn read_safety(section: &Section<'_>, registry: &Registry) -> (Vec<ConfiguredDetector>, ResponseSettings) {
    let is_enabled = section.bool("enabled");
    let entries = section.sections("detectors");
    if entries.as_ref().is_some_and(Vec::is_empty) && section.value("detectors").is_some_and(Value::is_array) {
        section.fault("detectors", "an empty list", EMPTY_LIST);
    }
    let detectors: Vec<ConfiguredDetector> =
        entries.unwrap_or_default().iter().filter_map(|entry| read_detector(entry, registry)).collect();
    let is_native = detectors.iter().any(|detector| detector.detector().reads_every_shape());
    let responses = ResponseSettings::read(section, is_native);
    if is_enabled { (detectors, responses) } else { Default::default() }
}

fn read_detector(entry: &Section<'_>, registry: &Registry) -> Option<ConfiguredDetector> {
    let detector = find(entry, "detector", registry.detectors());
    let config = entry.section("config");
    let detector = detector.map(|detector| (detector.read)(&config));
    entry.refuse_keys_of("config", &config);
    detector
}
