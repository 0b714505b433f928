//! Validated decision settings. Their serialised form is what the policy's version is the digest of.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;

use super::passport::PassportSettings;
use crate::controls::Controls;
use crate::guardrail::{Allowlist, GuardrailProvider, Http, Link, ToolPatterns};
use crate::loops::LoopSettings;
use crate::safety::{AnthropicRefusal, GeminiSafety, OpenAiCompatibleContentFilter, ReasonSet, SafetyDetector};
use crate::settings::{self, Collector, Faults, Secret, Section};

/// All decision settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PolicySettings {
    /// The safety detectors in order; none if `safety_finish_reason` is disabled.
    pub detectors: Vec<DetectorSettings>,
    /// The guardrail providers; `None` if `guardrails` is disabled.
    pub guardrails: Option<GuardrailSettings>,
    /// The loop controllers.
    pub tool_loop_guardrails: LoopSettings,
    /// Sizes and times that decisions depend on.
    pub limits: LimitSettings,
}

/// One safety detector with the values that it looks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "use", content = "config", rename_all = "snake_case")]
pub enum DetectorSettings {
    /// See [`OpenAiCompatibleContentFilter`].
    OpenaiCompatibleContentFilter {
        /// Values of `finish_reason`.
        finish_reasons: Vec<String>,
    },
    /// See [`AnthropicRefusal`].
    AnthropicRefusal {
        /// Values of `stop_reason`.
        stop_reasons: Vec<String>,
    },
    /// See [`GeminiSafety`].
    GeminiSafety {
        /// Values of `finish_reason` and `finishReason`.
        finish_reasons: Vec<String>,
    },
}

/// The guardrail chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GuardrailSettings {
    /// Whether a provider that fails denies.
    pub fail_closed: bool,
    /// The passport reference of calls without an agent.
    pub passport: Option<String>,
    /// The providers in order.
    pub providers: Vec<ProviderSettings>,
}

/// One guardrail provider, and where it has a say.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ProviderSettings {
    /// The only tools that it has a say in, by pattern; `None` is all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// The provider.
    #[serde(flatten)]
    pub kind: ProviderKind,
}

/// The providers there are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "use", content = "config", rename_all = "snake_case")]
pub enum ProviderKind {
    /// See [`Allowlist`].
    Allowlist {
        /// The only tools that may run; `None` is all.
        allowed_tools: Option<BTreeSet<String>>,
        /// Tools that may not run.
        denied_tools: BTreeSet<String>,
    },
    /// See [`OapPassport`](crate::guardrail::OapPassport).
    OapPassport(PassportSettings),
    /// See [`Http`].
    Http(HttpSettings),
}

/// A policy server that is asked over HTTP.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HttpSettings {
    /// What it is called in metrics and logs.
    pub name: String,
    /// Where questions are posted: an absolute http or https URL without credentials.
    pub url: String,
    /// How question and answer are spelled.
    pub dialect: Dialect,
    /// Headers of every question. The policy's version does not depend on their values.
    pub headers: BTreeMap<String, Secret>,
    /// Headers whose values stand in files, without the line's end.
    pub header_files: BTreeMap<String, String>,
    /// How long a question may wait for its answer, in milliseconds, queueing and retries included.
    pub timeout_ms: u32,
    /// Questions on their way at once.
    pub concurrency_max: u32,
    /// Questions that may wait for their turn; one more is answered with an error at once.
    pub queue_max: u32,
    /// The largest answer, in bytes.
    pub answer_bytes_max: u32,
    /// Whether a question may be asked again although the server may have dealt with it already.
    #[serde(rename = "idempotent")]
    pub is_idempotent: bool,
    /// Failures in a row after which the server is left alone.
    pub breaker_failures: u32,
    /// For how long, in milliseconds; then one question tries whether it is back.
    pub breaker_open_ms: u32,
    /// A PEM file of the authorities that may vouch for the server, in place of the system's.
    pub ca_file: Option<String>,
    /// A PEM file of the certificate chain that the server is shown, the own certificate first.
    pub client_certificate_file: Option<String>,
    /// The PEM file of its private key.
    pub client_key_file: Option<String>,
}

impl HttpSettings {
    /// A server with nothing but the defaults. A question of OPA's may be asked again: it changes nothing there, and another one may count.
    #[must_use]
    pub fn at(name: impl Into<String>, url: impl Into<String>, dialect: Dialect) -> Self {
        Self {
            name: name.into(),
            url: url.into(),
            dialect,
            headers: BTreeMap::new(),
            header_files: BTreeMap::new(),
            timeout_ms: 250,
            concurrency_max: 64,
            queue_max: 1_024,
            answer_bytes_max: 65_536,
            is_idempotent: dialect == Dialect::Opa,
            breaker_failures: 10,
            breaker_open_ms: 1_000,
            ca_file: None,
            client_certificate_file: None,
            client_key_file: None,
        }
    }
}

/// How a policy server is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Dialect {
    /// The request as JSON; the answer is a decision.
    Tollgate,
    /// OPA's REST API: `{"input": request}`; the answer is `{"result": …}`.
    Opa,
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
    /// What one thread may remember, in bytes.
    pub thread_bytes_max: usize,
    /// Events of a thread that may wait behind one that waits for a remote provider; while there are more, nobody is asked about its calls.
    pub thread_queue_max: usize,
    /// How long a thread may pause before it starts from nothing, in seconds of event time.
    pub thread_idle_seconds_max: u32,
}

impl PolicySettings {
    /// Reads a whole configuration over the built-in defaults, and leaves the sections alone that decisions do not depend on.
    ///
    /// # Errors
    /// [`Faults`]: all that is wrong, in the order in which it stands in the configuration.
    pub fn from_value(user: &Value) -> Result<Self, Faults> {
        let defaults = settings::defaults().map_err(|error| Faults::of("the built-in defaults", &error))?;
        let faults = Collector::default();
        let read = {
            let root = Section::root(user, &defaults, &faults);
            defaults.as_object().into_iter().flatten().for_each(|(section, _)| root.pass_over(section));
            Self::read(&root)
        };
        faults.into_result(read)
    }

    /// The same for a YAML text.
    ///
    /// # Errors
    /// [`Faults`], one that says where if the text is not YAML.
    pub fn from_yaml(text: &str) -> Result<Self, Faults> {
        Self::from_value(&settings::parse(text).map_err(|error| Faults::of("the configuration", &error))?)
    }

    /// Reads the sections of a configuration that decisions depend on.
    #[must_use]
    pub fn read(root: &Section<'_>) -> Self {
        Self {
            detectors: super::read_safety::read(&root.section("safety_finish_reason")),
            guardrails: super::read_guardrails::read(&root.section("guardrails")),
            tool_loop_guardrails: LoopSettings::read(&root.section("tool_loop_guardrails")),
            limits: super::read_limits::read(&root.section("limits")),
        }
    }

    /// Has the files that the settings name loaded by `read`, whose error says why one cannot be read. Settings whose files are not
    /// loaded know none: a call that needs one is denied.
    ///
    /// # Errors
    /// [`Faults`]: every file that cannot be read. One that can be read and holds no usable passport is none: see
    /// [`PassportSettings::fault`].
    pub fn load_files(&mut self, read: impl Fn(&str) -> Result<Vec<u8>, String>) -> Result<(), Faults> {
        super::read_passport::load(self, read)
    }

    /// What providers that stand on a passport are configured to do.
    pub fn passports(&self) -> impl Iterator<Item = &PassportSettings> {
        let providers = self.guardrails.iter().flat_map(|guardrails| &guardrails.providers);
        providers.filter_map(|provider| if let ProviderKind::OapPassport(settings) = &provider.kind { Some(settings) } else { None })
    }

    /// The same, to have their files loaded.
    pub fn passports_mut(&mut self) -> impl Iterator<Item = &mut PassportSettings> {
        let providers = self.guardrails.iter_mut().flat_map(|guardrails| &mut guardrails.providers);
        providers.filter_map(|provider| if let ProviderKind::OapPassport(settings) = &mut provider.kind { Some(settings) } else { None })
    }
}

impl GuardrailSettings {
    /// The policy servers that have to be asked, by their place in the chain.
    pub fn servers(&self) -> impl Iterator<Item = (usize, &HttpSettings)> {
        self.providers.iter().enumerate().filter_map(|(place, provider)| match &provider.kind {
            ProviderKind::Http(settings) => Some((place, settings)),
            ProviderKind::Allowlist { .. } | ProviderKind::OapPassport(_) => None,
        })
    }
}

impl DetectorSettings {
    pub(super) fn build(&self) -> Box<dyn SafetyDetector> {
        match self {
            Self::OpenaiCompatibleContentFilter { finish_reasons } => {
                Box::new(OpenAiCompatibleContentFilter::new(ReasonSet::new(finish_reasons)))
            }
            Self::AnthropicRefusal { stop_reasons } => Box::new(AnthropicRefusal::new(ReasonSet::new(stop_reasons))),
            Self::GeminiSafety { finish_reasons } => Box::new(GeminiSafety::new(ReasonSet::new(finish_reasons))),
        }
    }
}

impl ProviderSettings {
    pub(super) fn build(&self, controls: &Arc<Controls>) -> Link {
        let provider: Box<dyn GuardrailProvider> = match &self.kind {
            ProviderKind::OapPassport(settings) => Box::new(settings.build(Arc::clone(controls))),
            ProviderKind::Allowlist { allowed_tools, denied_tools } => {
                let allowed_tools = allowed_tools.as_ref().map(|tools| tools.iter().cloned().collect());
                Box::new(Allowlist::new(allowed_tools, denied_tools.iter().cloned().collect()))
            }
            ProviderKind::Http(settings) => Box::new(Http::new(settings.name.clone(), settings.dialect)),
        };
        Link { provider, tools: self.tools.clone().map(ToolPatterns::new) }
    }
}
