//! Reading a policy server's answer: anything but a well-formed decision is an error.

use std::borrow::Cow;

use serde::Deserialize;

use super::Dialect;
use crate::decide::guardrail::{GuardrailDecision, ProviderError};
use crate::decide::ruling::{Evidence, GuardrailReason};
use tollgate_json::digest::Digest;

/// The longest code and policy id that an answer may contain, in bytes: they become labels and are stored with the call.
pub(super) const NAME_BYTES_MAX: usize = 128;
/// How much of a reason's message is stored, in characters. DeerFlow's audit stores as much.
pub(super) const MESSAGE_CHARS_MAX: usize = 500;
/// How many reasons of an answer are stored.
const REASONS_MAX: usize = 8;

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

/// Reads an answer as a decision, whose evidence is the digest of the answer's bytes.
pub(super) fn read(dialect: Dialect, answer: &[u8]) -> Result<GuardrailDecision, ProviderError> {
    let decision = match dialect {
        Dialect::Tollgate => read_json::<Decision>(answer)?,
        Dialect::Opa => match read_json::<OpaAnswer>(answer)?.result {
            Some(OpaResult::Decision(decision)) => decision,
            Some(OpaResult::Plain(allow)) => Decision { allow, reasons: None, policy_id: None },
            None => return Err(ProviderError::Malformed("the policy has no result")),
        },
    };
    conclude(decision, Evidence::Answer(Digest::of(answer)))
}

fn read_json<'a, T: Deserialize<'a>>(answer: &'a [u8]) -> Result<T, ProviderError> {
    serde_json::from_slice(answer)
        .map_err(|error| ProviderError::Malformed(if error.is_data() { "it is JSON, but not a decision" } else { "it is not JSON" }))
}

/// Returns the decision with its evidence. Codes and policy ids that are too long are refused, sentences that are too long are cut.
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
