//! The provider that asks a policy server over HTTP: it writes the questions and reads the answers.
//!
//! There are two dialects: Tollgate's own (the request as JSON, answered with a decision) and that of OPA's REST API (`{"input": request}`,
//! answered with `{"result": …}`), so that a server that speaks the latter works unchanged. Anything but a well-formed decision is an
//! error, including an undefined result.

mod answer;
mod question;
mod settings;

pub use settings::{Dialect, HttpSettings};

use std::sync::Arc;

use serde_json::{Value, json};

use super::{GuardrailDecision, GuardrailProvider, GuardrailRequest, ProviderDescriptor, ProviderError, ProviderSettings, Step};
use crate::decide::controls::Controls;
use crate::decide::ruling::GuardrailReason;

/// The provider's descriptor for configuration.
pub(super) const DESCRIPTOR: ProviderDescriptor =
    ProviderDescriptor { name: Http::NAME, aliases: &[], read: |config, _| Box::new(settings::read(config)) };

/// A policy server in another process. This type writes the questions and reads the answers; the worker sends them.
#[derive(Debug, Clone)]
pub struct Http {
    name: String,
    dialect: Dialect,
}

impl Http {
    /// The name in configuration, and in metrics unless it is given another one.
    pub const NAME: &'static str = "http";

    /// Returns a server that speaks this dialect, called `name` in metrics.
    #[must_use]
    pub fn new(name: String, dialect: Dialect) -> Self {
        Self { name, dialect }
    }
}

impl ProviderSettings for HttpSettings {
    fn config(&self) -> Value {
        json!(self)
    }

    fn server(&self) -> Option<&HttpSettings> {
        Some(self)
    }

    fn server_mut(&mut self) -> Option<&mut HttpSettings> {
        Some(self)
    }

    fn build(&self, _controls: &Arc<Controls>) -> Box<dyn GuardrailProvider> {
        Box::new(Http::new(self.name.clone(), self.dialect))
    }
}

impl GuardrailProvider for Http {
    fn name(&self) -> &str {
        &self.name
    }

    fn plan(&self, request: &GuardrailRequest<'_>) -> Step {
        // The server must be asked about exactly the arguments that run. Arguments that JSON cannot express are not asked about at all.
        let Some(tool_input) = question::arguments(request.tool_input) else {
            let reason = GuardrailReason::new("oap.invalid_tool_arguments", "The tool's arguments are not a JSON object with one reading.");
            return Step::Decided(Ok(GuardrailDecision { allow: false, reasons: vec![reason] }));
        };
        question::write(self.dialect, request, &tool_input).map_or(Step::Decided(Err(ProviderError::NotAsked)), Step::Ask)
    }

    fn read(&self, answer: &[u8]) -> Result<GuardrailDecision, ProviderError> {
        answer::read(self.dialect, answer)
    }
}

#[cfg(test)]
mod tests {
    use super::answer::{MESSAGE_CHARS_MAX, NAME_BYTES_MAX};
    use super::*;
    use crate::decide::ruling::Evidence;
    use crate::event::decode::Attribution;
    use tollgate_json::Text;
    use tollgate_json::digest::Digest;
    use tollgate_passport::ToolInput;

    fn ask(dialect: Dialect, arguments: &str) -> Step {
        let attribution = Attribution { user_id: Some("u".into()), tenant_id: Some("acme".into()), ..Attribution::default() };
        let request = GuardrailRequest {
            tool_name: "bash",
            tool_input: &ToolInput::Encoded(Text::plain(arguments.as_bytes())),
            tool_call_id: "c1",
            thread_id: "t1",
            turn_id: None,
            time_ms: Some(1_767_225_600_123),
            latest_ms: Some(1_767_225_600_123),
            attribution: &attribution,
            passport: Some("passport-1"),
        };
        Http::new("http".to_owned(), dialect).plan(&request)
    }

    #[test]
    fn a_question_holds_every_field_of_the_contract() {
        let expected = json!({
            "tool_name": "bash", "tool_input": {"a": 1, "b": [true]}, "agent_id": "passport-1", "thread_id": "t1", "is_subagent": false,
            "timestamp": "2026-01-01T00:00:00.123Z", "tool_call_id": "c1", "turn_id": null, "user_id": "u", "user_role": null,
            "tenant_id": "acme", "run_id": null,
        });
        let body = |dialect| match ask(dialect, r#"{"b":[true],"a":1}"#) {
            Step::Ask(body) => serde_json::from_slice::<Value>(&body).unwrap(),
            Step::Decided(decided) => panic!("{decided:?}"),
        };
        assert_eq!(body(Dialect::Tollgate), expected);
        assert_eq!(body(Dialect::Opa), json!({"input": expected}));
    }

    #[test]
    fn arguments_that_json_cannot_spell_are_not_asked_about() {
        for arguments in ["[1]", "{\"a\": NaN}", r#"{"a": "\ud800"}"#, r#"{"a": 1, "b": [{"x": 1, "\u0078": 2}]}"#, "{\"a\"", "null", ""] {
            let Step::Decided(Ok(decision)) = ask(Dialect::Tollgate, arguments) else { panic!("{arguments} was asked about") };
            assert!(!decision.allow);
            assert_eq!(decision.reasons[0].code, "oap.invalid_tool_arguments");
        }
    }

    fn read(dialect: Dialect, answer: &str) -> Result<(bool, Vec<String>), ProviderError> {
        let decision = Http::new("http".to_owned(), dialect).read(answer.as_bytes())?;
        let evidence = Some(Evidence::Answer(Digest::of(answer.as_bytes())));
        assert!(decision.reasons.iter().all(|reason| reason.evidence == evidence), "{decision:?}");
        Ok((decision.allow, decision.reasons.iter().map(|reason| format!("{}: {}", reason.code, reason.message)).collect()))
    }

    /// A row is an answer with its decision, or with none if it is to be refused.
    #[test]
    fn decisions_are_read_in_both_dialects_and_anything_else_is_an_error() {
        for row in include_str!("../../../../tests/fixtures/policy_server_answers.jsonl").lines() {
            let row: Value = serde_json::from_str(row).unwrap();
            let dialect = if row["dialect"] == "opa" { Dialect::Opa } else { Dialect::Tollgate };
            match read(dialect, row["answer"].as_str().unwrap()) {
                Ok((allow, reasons)) => assert_eq!((json!(allow), json!(reasons)), (row["allow"].clone(), row["reasons"].clone()), "{row}"),
                Err(ProviderError::Malformed(_)) => assert_eq!(row.get("allow"), None, "{row}"),
                Err(other) => panic!("{row}: {other:?}"),
            }
        }
    }

    #[test]
    fn a_code_that_is_too_long_is_left_out_of_a_no_and_makes_a_yes_an_error() {
        let answer = |allow: bool| json!({"allow": allow, "reasons": [{"code": "x".repeat(NAME_BYTES_MAX + 1)}]}).to_string();
        assert_eq!(read(Dialect::Tollgate, &answer(false)), Ok((false, vec!["oap.denied: ".to_owned()])));
        assert!(matches!(read(Dialect::Tollgate, &answer(true)), Err(ProviderError::Malformed(_))));
    }

    #[test]
    fn long_sentences_are_cut() {
        let answer = format!(r#"{{"allow": false, "reasons": [{{"code": "c", "message": "{}"}}]}}"#, "ä".repeat(2_000));
        let (_, reasons) = read(Dialect::Tollgate, &answer).unwrap();
        assert_eq!(reasons[0].chars().count(), "c: ".len() + MESSAGE_CHARS_MAX);
    }
}
