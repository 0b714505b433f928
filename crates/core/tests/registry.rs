//! Tests a detector and a provider that are not built in: each is a descriptor, and one line that registers it.

use std::sync::Arc;

use serde_json::{Value, json};
use tollgate_core::decide::controls::Controls;
use tollgate_core::decide::guardrail::{
    GuardrailDecision, GuardrailProvider, GuardrailRequest, HttpSettings, NamedFile, ProviderDescriptor, ProviderSettings, Step,
};
use tollgate_core::decide::policy::{Policy, PolicySettings, Registry};
use tollgate_core::decide::ruling::GuardrailReason;
use tollgate_core::decide::safety::{
    Category, ConfiguredDetector, Detection, DetectorDescriptor, ReasonValue, ResponseView, SafetyDetector,
};
use tollgate_core::settings::Section;
use tollgate_fixtures::gate::Gate;

/// Takes a model that ended for having thought too long as cut off.
#[derive(Debug)]
struct Overthinking {
    word: String,
}

static OVERTHINKING: DetectorDescriptor =
    DetectorDescriptor { name: "overthinking", aliases: &["OverthinkingDetector"], read: Overthinking::read };

impl Overthinking {
    fn read(config: &Section<'_>) -> ConfiguredDetector {
        let word = config.optional_string("word").unwrap_or_else(|| "thought_budget".to_owned());
        ConfiguredDetector::new(Self { word: word.clone() }, json!({"word": word}))
    }
}

impl SafetyDetector for Overthinking {
    fn name(&self) -> &'static str {
        OVERTHINKING.name
    }

    fn detect(&self, response: &ResponseView<'_>) -> Option<Detection> {
        let reason = response.finish_reasons.iter().find(|reason| reason.value == self.word)?;
        Some(Detection::new(Category::Safety, reason.field, ReasonValue::Text(reason.value.clone().into_owned())))
    }
}

/// Denies tools whose names are longer than a number, and those that a file lists.
#[derive(Debug, Clone)]
struct NameLength {
    letters_max: u32,
    file: Option<String>,
    listed: String,
}

static NAME_LENGTH: ProviderDescriptor =
    ProviderDescriptor { name: "name_length", aliases: &["NameLengthProvider"], read: |config, _| Box::new(NameLength::read(config)) };

impl NameLength {
    fn read(config: &Section<'_>) -> Self {
        let letters_max = config.optional_positive("letters_max").unwrap_or(8);
        Self { letters_max, file: config.optional_string("list"), listed: String::new() }
    }
}

impl ProviderSettings for NameLength {
    fn config(&self) -> Value {
        json!({"letters_max": self.letters_max, "list": self.file})
    }

    fn build(&self, _controls: &Arc<Controls>) -> Box<dyn GuardrailProvider> {
        Box::new(self.clone())
    }

    fn file(&self) -> Option<NamedFile<'_>> {
        Some(NamedFile { key: "list", path: self.file.as_deref()?, content: "a list of tools" })
    }

    fn load(&mut self, content: &[u8]) {
        self.listed = String::from_utf8_lossy(content).into_owned();
    }

    fn unusable(&self) -> Option<String> {
        (self.file.is_some() && self.listed.is_empty()).then(|| "the list is empty".to_owned())
    }

    fn basis(&self) -> Option<(&'static str, String)> {
        self.file.is_some().then(|| ("lists", self.listed.clone()))
    }
}

impl GuardrailProvider for NameLength {
    fn name(&self) -> &str {
        NAME_LENGTH.name
    }

    fn plan(&self, request: &GuardrailRequest<'_>) -> Step {
        let allow = request.tool_name.len() <= self.letters_max as usize && !self.listed.lines().any(|tool| tool == request.tool_name);
        let reasons = if allow { Vec::new() } else { vec![GuardrailReason::new("name.too_long", "Its name is too long.")] };
        Step::Decided(Ok(GuardrailDecision { allow, reasons }))
    }
}

fn registry() -> Registry {
    Registry::builtin().with_detector(&OVERTHINKING).with_provider(&NAME_LENGTH)
}

fn settings(user: &Value) -> PolicySettings {
    PolicySettings::from_value_with(user, &registry()).expect("a valid configuration")
}

fn faults(user: &Value) -> String {
    PolicySettings::from_value_with(user, &registry()).expect_err("it is not valid").to_string()
}

fn detectors(entries: &Value) -> Value {
    json!({"safety_finish_reason": {"detectors": entries}})
}

fn providers(entries: &Value) -> Value {
    json!({"guardrails": {"enabled": true, "providers": entries}})
}

#[test]
fn a_detector_that_is_registered_is_configured_and_decides() {
    let settings = settings(&detectors(&json!([{"use": "gemini_safety"}, {"use": "acme.safety:OverthinkingDetector"}])));
    assert_eq!(json!(settings.detectors)[1], json!({"use": "overthinking", "config": {"word": "thought_budget"}}));
    let response = |reason: &str| json!({"type": "model_response", "thread_id": "t", "response": {"choices": [{"finish_reason": reason, "message": {"content": "x"}}]}});
    let mut gate = Gate::new(Policy::new(&settings));
    assert_eq!(gate.event(&response("thought_budget"))["safety"]["detector"], "overthinking");
    assert_eq!(gate.event(&response("content_filter"))["safety"], Value::Null, "only what is configured looks");
}

#[test]
fn a_provider_that_is_registered_is_configured_and_decides() {
    let entries = json!([
        {"use": "http", "config": {"url": "http://p/"}},
        {"use": "NameLengthProvider", "tools": ["b*"], "config": {"letters_max": 5}},
    ]);
    let mut settings = settings(&providers(&entries));
    let guardrails = settings.guardrails.as_ref().unwrap();
    let expected = json!({"use": "name_length", "tools": ["b*"], "config": {"letters_max": 5, "list": null}});
    assert_eq!(json!(guardrails.providers)[0], expected, "what answers at once goes first");
    assert_eq!(guardrails.servers().map(|(place, HttpSettings { url, .. })| (place, url.as_str())).collect::<Vec<_>>(), [(1, "http://p/")]);
    settings.guardrails.as_mut().unwrap().providers.truncate(1);
    let mut gate = Gate::new(Policy::new(&settings));
    let mut code = |tool: &str| {
        let call = json!({"type": "tool_call", "thread_id": "t", "tool_call_id": tool, "tool_name": tool, "tool_input": {}});
        gate.event(&call)["code"].clone()
    };
    assert_eq!([code("bash"), code("browser"), code("terminal")], ["allow", "name.too_long", "allow"]);
}

#[test]
fn errors_name_what_is_registered() {
    let text = faults(&detectors(&json!([{"use": "overthinkin"}])));
    let known = "`openai_compatible_content_filter`, `anthropic_refusal`, `gemini_safety`, `native` or `overthinking`";
    assert!(text.contains(&format!("detectors[0].use: found an unknown detector; write {known}")), "{text}");
    let text = faults(&providers(&json!([{"use": "acme:"}, {"use": "name_length", "config": {"leters_max": 3}}])));
    let known = "`allowlist`, `oap_passport`, `http` or `name_length`";
    assert!(text.contains(&format!("providers[0].use: found an unknown provider; write {known}")), "{text}");
    assert!(text.contains("providers[1].config.leters_max: found an unknown key; write `letters_max`"), "{text}");
    // A registry that they are not added to does not know them.
    assert!(PolicySettings::from_value(&detectors(&json!([{"use": "overthinking"}]))).is_err());
}

/// The file that a provider names is found, loaded, and a part of the policy's version, without a change anywhere else.
#[test]
fn files_of_a_registered_provider_are_loaded() {
    let user = providers(&json!([{"use": "name_length", "config": {"list": "tools.txt"}}]));
    let loaded = |content: Result<&str, &str>| {
        let mut settings = settings(&user);
        let read = settings.load_files(|path| content.map(|text| text.as_bytes().to_vec()).map_err(|why| format!("{path} {why}")));
        (settings, read)
    };
    let (settings, read) = loaded(Ok("bash\nls"));
    assert!(read.is_ok() && settings.unusable().next().is_none());
    let policy = Policy::new(&settings);
    assert_ne!(policy.version(), Policy::new(&loaded(Ok("bash")).0).version());
    let call = json!({"type": "tool_call", "thread_id": "t", "tool_call_id": "c", "tool_name": "ls", "tool_input": {}});
    assert_eq!(Gate::new(policy).event(&call)["code"], "name.too_long");
    assert_eq!(loaded(Ok("")).0.unusable().collect::<Vec<_>>(), ["the list is empty"]);
    let faults = loaded(Err("is gone")).1.unwrap_err().to_string();
    assert_eq!(faults, "list: found tools.txt, which cannot be read (tools.txt is gone); write the path of a list of tools, or null");
}

/// A program may put another one in the place of a built-in.
#[test]
fn one_of_the_same_name_takes_the_place() {
    static STRICTER: DetectorDescriptor = DetectorDescriptor { name: "gemini_safety", aliases: &[], read: Overthinking::read };
    let registry = Registry::builtin().with_detector(&STRICTER);
    let user = detectors(&json!([{"use": "gemini_safety", "config": {"word": "x"}}]));
    assert!(PolicySettings::from_value_with(&user, &registry).is_ok());
    assert_eq!(registry.names().filter(|name| *name == "gemini_safety").count(), 1);
}
