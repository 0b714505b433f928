//! Reading a policy server's answer: a no is a no whatever its reasons look like, and any other answer that is no well-formed decision is an
//! error.

use std::borrow::Cow;

use serde::Deserialize;

use super::Dialect;
use crate::decide::guardrail::{GuardrailDecision, ProviderError};
use crate::decide::ruling::{Evidence, GuardrailReason};
use tollgate_json::digest::Digest;
use tollgate_json::{DEPTH_MAX, Parser, Shape, Value};

/// The longest code and policy id that an answer may contain, in bytes: they become labels and are stored with the call.
pub(super) const NAME_BYTES_MAX: usize = 128;
/// How much of a reason's message is stored, in characters. DeerFlow's audit stores as much.
pub(super) const MESSAGE_CHARS_MAX: usize = 500;
/// The members of an answer that give reasons for a no.
const REASONS: [&str; 4] = ["reasons", "reason", "deny", "violations"];
/// Some servers write it in front of a text in UTF-8.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
/// How many reasons of an answer are stored.
const REASONS_MAX: usize = 8;

#[derive(Debug, Default, Deserialize)]
struct Decision {
    allow: bool,
    /// What else the answer says.
    #[serde(flatten)]
    others: serde_json::Map<String, serde_json::Value>,
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

/// Reads an answer as a decision, whose evidence is the digest of the answer's bytes.
pub(super) fn read(dialect: Dialect, answer: &[u8]) -> Result<GuardrailDecision, ProviderError> {
    let evidence = Evidence::Answer(Digest::of(answer));
    if let Some(no) = read_no(dialect, answer) {
        return conclude(no, evidence);
    }
    let decision = match dialect {
        Dialect::Tollgate => read_json::<Decision>(answer)?,
        Dialect::Opa => match read_json::<OpaAnswer>(answer)?.result {
            Some(OpaResult::Decision(decision)) => decision,
            Some(OpaResult::Plain(allow)) => Decision { allow, ..Decision::default() },
            None => return Err(ProviderError::Malformed("the policy has no result")),
        },
    };
    conclude(decision, evidence)
}

/// Reads an answer that says no; `None` for any other. Its reasons may be texts, objects of any form, or one text: what can be read of them is
/// told, and what cannot be read changes nothing of the no.
fn read_no(dialect: Dialect, answer: &[u8]) -> Option<Decision> {
    let mut parser = Parser::new();
    let root = parser.parse(answer.strip_prefix(BYTE_ORDER_MARK).unwrap_or(answer), DEPTH_MAX).ok()?;
    let is_false = |value: &Value<'_>| value.as_bool() == Some(false);
    let results: Vec<Value<'_>> = if dialect == Dialect::Opa { under(root, "result") } else { vec![root] };
    let says_no = |result: &Value<'_>| dialect == Dialect::Opa && is_false(result) || under(*result, "allow").iter().any(is_false);
    let said = *results.iter().find(|result| says_no(result))?;
    let found = REASONS.into_iter().find_map(|key| said.get(key).filter(|value| !value.is_null()));
    let reasons = match found {
        None => Vec::new(),
        Some(found) if found.shape() == Shape::Array => found.items().map(read_reason).collect(),
        Some(other) => vec![read_reason(other)],
    };
    let policy_id = said.get("policy_id").and_then(|value| value.lossy_text()).filter(|name| is_name(name));
    Some(Decision { reasons: Some(reasons), policy_id, ..Decision::default() })
}

/// Reads one reason of a no, whatever its form.
fn read_reason(reason: Value<'_>) -> DecisionReason {
    let first = |keys: &[&str]| keys.iter().find_map(|key| reason.get(key)?.lossy_text());
    let code = first(&["code"]).filter(|code| is_name(code)).unwrap_or_else(|| "oap.denied".to_owned());
    let message = reason.lossy_text().or_else(|| first(&["message", "msg", "reason", "description"]));
    DecisionReason { code, message }
}

/// Returns every value under a name, which may stand several times.
fn under<'v>(value: Value<'v>, name: &str) -> Vec<Value<'v>> {
    value.members().filter(|(key, _)| key.is_text(name)).map(|(_, value)| value).collect()
}

/// Returns whether a member of an answer says no, in the words of other policies.
fn contradicts(name: &str, value: &serde_json::Value) -> bool {
    let is_nothing = || ["null", "false", "[]", "{}", "\"\""].contains(&value.to_string().as_str());
    match name {
        "deny" | "denied" | "violation" | "violations" | "error" | "errors" => !is_nothing(),
        "allowed" | "allows_execution" | "action" | "decision" => match value {
            serde_json::Value::String(word) => !["allow", "allowed", "permit"].contains(&word.to_ascii_lowercase().as_str()),
            value => value.as_bool() == Some(false),
        },
        _ => false,
    }
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.len() <= NAME_BYTES_MAX
}

fn read_json<'a, T: Deserialize<'a>>(answer: &'a [u8]) -> Result<T, ProviderError> {
    serde_json::from_slice(answer)
        .map_err(|error| ProviderError::Malformed(if error.is_data() { "it is JSON, but not a decision" } else { "it is not JSON" }))
}

/// Returns the decision with its evidence. Codes and policy ids that are too long are refused, sentences that are too long are cut.
fn conclude(decision: Decision, evidence: Evidence) -> Result<GuardrailDecision, ProviderError> {
    let Decision { allow, others, reasons, policy_id } = decision;
    if allow && others.iter().any(|(name, value)| contradicts(name, value)) {
        return Err(ProviderError::Malformed("it allows, and gives reasons to deny"));
    }
    let reasons = reasons.unwrap_or_default();
    let mut names = reasons.iter().map(|reason| &reason.code).chain(&policy_id);
    if names.any(|name| !is_name(name)) {
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
