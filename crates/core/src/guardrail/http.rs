//! A policy server that is asked over HTTP: how a request is spelled for it, and its answer read.
//!
//! Two dialects: Tollgate's own (the request as JSON, answered with a decision) and that of OPA's REST API (`{"input": request}`, answered
//! with `{"result": …}`), so that a server that speaks the latter works unchanged. Anything but a well-formed decision is an error, an
//! undefined result too.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::{GuardrailDecision, GuardrailProvider, GuardrailRequest, ProviderError, Step};
use crate::decode::ToolInput;
use crate::digest::Digest;
use crate::json::{DEPTH_MAX, Parser, Value, canonical};
use crate::policy::Dialect;
use crate::ruling::{Evidence, GuardrailReason};

/// The longest code and policy id that an answer may bring, in bytes: they become labels and are kept with the call.
const NAME_BYTES_MAX: usize = 128;
/// What is kept of a reason's message, in characters; DeerFlow's audit keeps as many.
const MESSAGE_CHARS_MAX: usize = 500;
/// How many reasons of an answer are kept.
const REASONS_MAX: usize = 8;

/// See the module.
#[derive(Debug, Clone)]
pub struct Http {
    name: String,
    dialect: Dialect,
}

impl Http {
    /// The name in configuration, and in metrics unless it is given another one.
    pub const NAME: &'static str = "http";

    /// A server that speaks this dialect, called `name` in metrics.
    #[must_use]
    pub fn new(name: String, dialect: Dialect) -> Self {
        Self { name, dialect }
    }
}

/// A request as the contract spells it: every field is there, null where nothing is known.
#[derive(Debug, Serialize)]
struct Body<'a> {
    tool_name: &'a str,
    tool_input: &'a RawValue,
    agent_id: Option<&'a str>,
    thread_id: &'a str,
    is_subagent: bool,
    timestamp: Option<String>,
    tool_call_id: &'a str,
    turn_id: Option<&'a str>,
    user_id: Option<&'a str>,
    user_role: Option<&'a str>,
    tenant_id: Option<&'a str>,
    run_id: Option<&'a str>,
}

#[derive(Debug, Serialize)]
struct OpaBody<'a> {
    input: Body<'a>,
}

#[derive(Debug, Deserialize)]
struct Decision {
    allow: bool,
    #[serde(default)]
    reasons: Option<Vec<DecisionReason>>,
    #[serde(default)]
    policy_id: Option<String>,
}

#[derive(Debug, Deserialize)]
struct DecisionReason {
    code: String,
    #[serde(default)]
    message: Option<String>,
}

#[derive(Debug, Deserialize)]
struct OpaAnswer {
    result: Option<OpaResult>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum OpaResult {
    Plain(bool),
    Decision(Decision),
}

impl GuardrailProvider for Http {
    fn name(&self) -> &str {
        &self.name
    }

    fn plan(&self, request: &GuardrailRequest<'_>) -> Step {
        // What a policy server is asked must be what runs: arguments that it cannot be told in JSON are not asked about at all.
        let Some(tool_input) = arguments(request.tool_input) else {
            let reason = GuardrailReason::new("oap.invalid_tool_arguments", "The tool's arguments are not a JSON object with one reading.");
            return Step::Decided(Ok(GuardrailDecision { allow: false, reasons: vec![reason] }));
        };
        let attribution = request.attribution;
        let body = Body {
            tool_name: request.tool_name,
            tool_input: &tool_input,
            agent_id: request.agent_id(),
            thread_id: request.thread_id,
            is_subagent: attribution.is_subagent,
            timestamp: request.time_ms.and_then(timestamp),
            tool_call_id: request.tool_call_id,
            turn_id: request.turn_id,
            user_id: attribution.user_id.as_deref(),
            user_role: attribution.user_role.as_deref(),
            tenant_id: attribution.tenant_id.as_deref(),
            run_id: attribution.run_id.as_deref(),
        };
        let written = match self.dialect {
            Dialect::Tollgate => serde_json::to_vec(&body),
            Dialect::Opa => serde_json::to_vec(&OpaBody { input: body }),
        };
        written.map_or(Step::Decided(Err(ProviderError::NotAsked)), Step::Ask)
    }

    fn read(&self, answer: &[u8]) -> Result<GuardrailDecision, ProviderError> {
        let decision = match self.dialect {
            Dialect::Tollgate => read_json::<Decision>(answer)?,
            Dialect::Opa => match read_json::<OpaAnswer>(answer)?.result {
                Some(OpaResult::Decision(decision)) => decision,
                Some(OpaResult::Plain(allow)) => Decision { allow, reasons: None, policy_id: None },
                None => return Err(ProviderError::Malformed("the policy has no result")),
            },
        };
        conclude(decision, Evidence::Answer(Digest::of(answer)))
    }
}

fn read_json<'a, T: Deserialize<'a>>(answer: &'a [u8]) -> Result<T, ProviderError> {
    serde_json::from_slice(answer)
        .map_err(|error| ProviderError::Malformed(if error.is_data() { "it is JSON, but not a decision" } else { "it is not JSON" }))
}

/// The decision with what it stands on. Codes and ids of a policy are refused where they are too long, sentences are cut.
fn conclude(decision: Decision, evidence: Evidence) -> Result<GuardrailDecision, ProviderError> {
    let Decision { allow, reasons, policy_id } = decision;
    let reasons = reasons.unwrap_or_default();
    let mut names = reasons.iter().map(|reason| &reason.code).chain(&policy_id);
    if names.any(|name| name.is_empty() || name.len() > NAME_BYTES_MAX) {
        return Err(ProviderError::Malformed("a code or policy id that is empty or too long"));
    }
    let policy_id: Option<Cow<'static, str>> = policy_id.map(Cow::Owned);
    let known = reasons.into_iter().take(REASONS_MAX).map(|DecisionReason { code, message }| {
        let message = message.map_or_else(String::new, |message| message.chars().take(MESSAGE_CHARS_MAX).collect());
        GuardrailReason::new(code, message)
    });
    let mut reasons: Vec<_> =
        known.map(|reason| GuardrailReason { policy_id: policy_id.clone(), evidence: Some(evidence), ..reason }).collect();
    if reasons.is_empty() {
        let reason =
            if allow { GuardrailReason::new("oap.allowed", "") } else { GuardrailReason::new("oap.denied", "blocked by guardrail policy") };
        reasons.push(GuardrailReason { policy_id, evidence: Some(evidence), ..reason });
    }
    Ok(GuardrailDecision { allow, reasons })
}

/// The arguments as a JSON object, `{}` where there are none; `None` if they are no object, one that only Python can spell, or one that
/// two readers could understand differently.
fn arguments(input: &ToolInput<'_>) -> Option<Box<RawValue>> {
    let spell = |value: Value<'_>| {
        if value.has_repeated_keys() {
            return None;
        }
        let mut text = Vec::new();
        canonical::write(value, &mut text);
        RawValue::from_string(String::from_utf8(text).ok()?).ok()
    };
    match input {
        ToolInput::Absent { .. } => RawValue::from_string("{}".to_owned()).ok(),
        ToolInput::Value(value) => Some(*value).filter(Value::is_object).and_then(spell),
        ToolInput::Encoded(text) => {
            let mut parser = Parser::new();
            parser.parse(text.as_bytes(), DEPTH_MAX).ok().filter(Value::is_object).and_then(spell)
        }
    }
}

/// A time as RFC 3339 in UTC.
fn timestamp(time_ms: i64) -> Option<String> {
    OffsetDateTime::from_unix_timestamp_nanos(i128::from(time_ms) * 1_000_000).ok()?.format(&Rfc3339).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::Attribution;
    use crate::json::Text;
    use serde_json::json;

    fn ask(dialect: Dialect, arguments: &str) -> Step {
        let attribution = Attribution { user_id: Some("u".into()), tenant_id: Some("acme".into()), ..Attribution::default() };
        let request = GuardrailRequest {
            tool_name: "bash",
            tool_input: &ToolInput::Encoded(Text::plain(arguments.as_bytes())),
            tool_call_id: "c1",
            thread_id: "t1",
            turn_id: None,
            time_ms: Some(1_767_225_600_123),
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
        let long = format!(r#"{{"allow": false, "reasons": [{{"code": "{}"}}]}}"#, "x".repeat(NAME_BYTES_MAX + 1));
        for (dialect, answer) in [
            (Dialect::Tollgate, ""),
            (Dialect::Tollgate, "<html></html>"),
            (Dialect::Tollgate, "true"),
            (Dialect::Tollgate, "{}"),
            (Dialect::Tollgate, r#"{"allow": "true"}"#),
            (Dialect::Tollgate, r#"{"allow": 1}"#),
            (Dialect::Tollgate, r#"{"allow": null}"#),
            (Dialect::Tollgate, r#"{"allow": true, "allow": false}"#),
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
            (Dialect::Opa, r#"{"result": {"allow": true, "allow": false}}"#),
            (Dialect::Opa, r#"{"result": true, "result": false}"#),
            (Dialect::Opa, r#"{"allow": true}"#),
        ] {
            assert!(matches!(read(dialect, answer), Err(ProviderError::Malformed(_))), "{answer}");
        }
    }

    #[test]
    fn long_sentences_are_cut() {
        let answer = format!(r#"{{"allow": false, "reasons": [{{"code": "c", "message": "{}"}}]}}"#, "ä".repeat(2_000));
        let (_, reasons) = read(Dialect::Tollgate, &answer).unwrap();
        assert_eq!(reasons[0].chars().count(), "c: ".len() + MESSAGE_CHARS_MAX);
    }
}
