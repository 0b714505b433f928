//! The provider that asks a policy server over HTTP: it writes the questions and reads the answers.
//!
//! There are two dialects: Tollgate's own (the request as JSON, answered with a decision) and that of OPA's REST API (`{"input": request}`,
//! answered with `{"result": …}`), so that a server that speaks the latter works unchanged. Anything but a well-formed decision is an
//! error, including an undefined result.

mod answer;
mod question;
mod settings;

pub use settings::{Dialect, HttpSettings};

use super::{GuardrailDecision, GuardrailProvider, GuardrailRequest, ProviderDescriptor, ProviderError, Step};
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
    use serde_json::json;
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
            Step::Ask(body) => serde_json::from_slice::<serde_json::Value>(&body).unwrap(),
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

    #[test]
    fn decisions_are_read_in_both_dialects() {
        let denied = r#"{"allow": false, "reasons": [{"code": "a", "message": "b"}, {"code": "c"}], "policy_id": "p.v1", "metadata": {}}"#;
        let reasons = vec!["a: b".to_owned(), "c: ".to_owned()];
        let opa = format!("{{\"result\": {denied}}}");
        for (dialect, answer, expected) in [
            (Dialect::Tollgate, denied, (false, reasons.clone())),
            (Dialect::Tollgate, r#"{"allow": true}"#, (true, vec!["oap.allowed: ".to_owned()])),
            (
                Dialect::Tollgate,
                r#"{"allow": false, "reasons": null}"#,
                (false, vec!["oap.denied: blocked by guardrail policy".to_owned()]),
            ),
            (Dialect::Opa, opa.as_str(), (false, reasons)),
            (Dialect::Opa, r#"{"result": true, "decision_id": "x"}"#, (true, vec!["oap.allowed: ".to_owned()])),
            (Dialect::Opa, r#"{"result": false}"#, (false, vec!["oap.denied: blocked by guardrail policy".to_owned()])),
        ] {
            assert_eq!(read(dialect, answer), Ok(expected), "{answer}");
        }
    }

    #[test]
    fn anything_else_is_an_error() {
        let long = format!(r#"{{"allow": true, "reasons": [{{"code": "{}"}}]}}"#, "x".repeat(NAME_BYTES_MAX + 1));
        for (dialect, answer) in [
            (Dialect::Tollgate, ""),
            (Dialect::Tollgate, "<html></html>"),
            (Dialect::Tollgate, "true"),
            (Dialect::Tollgate, "{}"),
            (Dialect::Tollgate, r#"{"allow": "true"}"#),
            (Dialect::Tollgate, r#"{"allow": 1}"#),
            (Dialect::Tollgate, r#"{"allow": null}"#),
            (Dialect::Tollgate, r#"{"allow": false, "allow": true}"#),
            (Dialect::Tollgate, r#"{"allow": true, "reasons": {}}"#),
            (Dialect::Tollgate, r#"{"allow": true, "reasons": [{"message": "m"}]}"#),
            (Dialect::Tollgate, r#"{"allow": true, "policy_id": 3}"#),
            (Dialect::Tollgate, r#"{"allow": true} {"allow": true}"#),
            (Dialect::Tollgate, r#"{"result": true}"#),
            (Dialect::Tollgate, r#"{"allow": true, "reasons": [{"code": ""}]}"#),
            (Dialect::Tollgate, &long),
            (Dialect::Opa, "{}"),
            (Dialect::Opa, r#"{"result": null}"#),
            (Dialect::Opa, r#"{"result": "true"}"#),
            (Dialect::Opa, r#"{"result": {"allow": "yes"}}"#),
            (Dialect::Opa, r#"{"result": {"allow": false, "allow": true}}"#),
            (Dialect::Opa, r#"{"result": true, "result": false}"#),
            (Dialect::Opa, r#"{"allow": true}"#),
        ] {
            assert!(matches!(read(dialect, answer), Err(ProviderError::Malformed(_))), "{answer}");
        }
    }

    #[test]
    fn a_no_is_a_no_whatever_its_reasons_look_like() {
        let long = format!(r#"{{"allow": false, "reasons": [{{"code": "{}"}}]}}"#, "x".repeat(NAME_BYTES_MAX + 1));
        for (dialect, answer, expected) in [
            (Dialect::Tollgate, r#"{"allow": false, "reasons": ["not today"]}"#, "oap.denied: not today"),
            (Dialect::Tollgate, r#"{"allow": false, "reasons": [{"message": "m"}]}"#, "oap.denied: m"),
            (Dialect::Tollgate, r#"{"allow": false, "reasons": "m"}"#, "oap.denied: m"),
            (Dialect::Tollgate, r#"{"allow": false, "reason": "m"}"#, "oap.denied: m"),
            (Dialect::Tollgate, r#"{"allow": false, "reasons": {"code": "c", "msg": "m"}}"#, "c: m"),
            (Dialect::Tollgate, r#"{"allow": false, "reasons": [7], "policy_id": 3}"#, "oap.denied: "),
            (Dialect::Tollgate, r#"{"allow": true, "allow": false}"#, "oap.denied: blocked by guardrail policy"),
            (Dialect::Tollgate, &long, "oap.denied: "),
            (Dialect::Opa, r#"{"result": {"allow": false, "deny": ["m"]}}"#, "oap.denied: m"),
        ] {
            assert_eq!(read(dialect, answer), Ok((false, vec![expected.to_owned()])), "{answer}");
        }
    }

    #[test]
    fn long_sentences_are_cut() {
        let answer = format!(r#"{{"allow": false, "reasons": [{{"code": "c", "message": "{}"}}]}}"#, "ä".repeat(2_000));
        let (_, reasons) = read(Dialect::Tollgate, &answer).unwrap();
        assert_eq!(reasons[0].chars().count(), "c: ".len() + MESSAGE_CHARS_MAX);
    }
}
