//! What the errors of providers' APIs mean.

use tollgate_json::{Parser, Value};

use super::test::{Found, refined, text_of, whole};
use super::{ReasonValue, Stage};
use crate::decide::safety::Category;

/// How deep an error inside an error's text may nest.
const DEPTH_MAX: usize = 32;

const INPUT: Option<Stage> = Some(Stage::Input);
const OUTPUT: Option<Stage> = Some(Stage::Output);

/// The codes that mean a safety stop, and what was stopped.
const CODES: &[(&str, Option<Stage>)] = &[
    // OpenAI and Azure OpenAI.
    ("content_policy_violation", INPUT),
    ("image_content_policy_violation", INPUT),
    ("misalignment_policy_violation", OUTPUT),
    ("cyber_policy", None),
    ("bio_policy", None),
    ("moderation_blocked", None),
    ("content_filter", INPUT),
    ("contentFilter", INPUT),
    ("ResponsibleAIPolicyViolation", INPUT),
    // GLM.
    ("1301", INPUT),
    // Spark.
    ("10013", INPUT),
    ("10014", OUTPUT),
    ("10019", None),
    // DashScope: the message says which data it was.
    ("data_inspection_failed", None),
    ("DataInspectionFailed", None),
];

/// The types of errors that mean a safety stop, for providers whose errors have no code of their own.
const TYPES: &[(&str, Category, Option<Stage>)] = &[
    ("content_filter", Category::Safety, INPUT),
    ("censorship_blocked", Category::Safety, None),
    ("content_policy_violation", Category::Safety, None),
    ("data_inspection_failed", Category::Safety, None),
    ("refusal", Category::Refusal, None),
];

/// The messages that mean a safety stop, for providers that have nothing else: the whole text.
const MESSAGES: &[(&str, Option<Stage>)] = &[
    ("Output blocked by content filtering policy", OUTPUT),
    ("The response was blocked.", OUTPUT),
    ("Content Exists Risk", INPUT),
    ("input new_sensitive (1026)", INPUT),
    ("output new_sensitive (1027)", OUTPUT),
];

/// How messages begin that mean a safety stop, and what is shown for them, since the rest may quote anything.
const BEGINNINGS: &[(&str, &str, Option<Stage>)] = &[
    ("Content violates usage guidelines", "Content violates usage guidelines", None),
    ("litellm.ContentPolicyViolationError", "ContentPolicyViolationError", INPUT),
    // LiteLLM drops the provider's code, so that nothing else is left of it.
    (
        "litellm.BadRequestError: OpenAIException - Your request was rejected as a result of our safety system",
        "Your request was rejected as a result of our safety system",
        INPUT,
    ),
    ("litellm.BadRequestError: litellm.ContentPolicyViolationError", "ContentPolicyViolationError", INPUT),
];

/// Returns the codes, types and messages, for the page.
#[must_use]
pub fn table() -> [(&'static str, Vec<&'static str>); 4] {
    let ark = ["(Input|Output)(Text|Image|Video|Audio)SensitiveContentDetected", "(Input|Output)TextRiskDetection"];
    let prompt = "invalid_prompt, with a message on the usage policy";
    [
        ("codes", CODES.iter().map(|(code, _)| *code).chain(ark).chain([prompt]).collect()),
        ("types", TYPES.iter().map(|(kind, ..)| *kind).collect()),
        ("messages", MESSAGES.iter().map(|(text, _)| *text).collect()),
        ("beginnings of messages", BEGINNINGS.iter().map(|(text, ..)| *text).collect()),
    ]
}

/// Finds a code that means a safety stop, with the error around it.
pub(super) fn codes(code: Value<'_>, error: Value<'_>) -> Option<Found> {
    let number = whole(code);
    let text = text_of(code).or_else(|| number.map(|number| number.to_string().into()))?;
    let known = CODES.iter().find(|(known, _)| *known == text).map(|(known, stage)| (*known, *stage));
    let (shown, category, stage) = match known {
        Some((known, stage)) => (known, Category::Safety, stage.or_else(|| stage_of_message(error))),
        None if text == "invalid_prompt" && message_of(error).is_some_and(|text| text.contains("violating our usage policy")) => {
            ("invalid_prompt", Category::Safety, INPUT)
        }
        None => {
            let (category, stage) = code_of_ark(&text)?;
            return Some(Found::text(text.clone(), category, stage));
        }
    };
    let found = Found::text(shown, refined(category, error), stage);
    let is_number = code.as_text().is_none();
    Some(Found { value: number.filter(|_| is_number).map_or(found.value, ReasonValue::Number), ..found })
}

/// Finds a type that means a safety stop, with the error around it.
pub(super) fn types(kind: Value<'_>, error: Value<'_>) -> Option<Found> {
    let (known, category, stage) = TYPES.iter().find(|(known, ..)| kind.is_text(known))?;
    Some(Found::text(*known, *category, stage.or_else(|| stage_of_message(error))))
}

/// Finds a message that means a safety stop.
pub(super) fn messages(message: Value<'_>, _: Value<'_>) -> Option<Found> {
    let text = text_of(message)?;
    if let Some((known, stage)) = MESSAGES.iter().find(|(known, _)| *known == text) {
        return Some(Found::text(*known, Category::Safety, *stage));
    }
    let (_, shown, stage) = BEGINNINGS.iter().find(|(beginning, ..)| text.starts_with(beginning))?;
    Some(Found::text(*shown, Category::Safety, *stage))
}

/// Finds a safety stop in the provider's error that a gateway hands on as a JSON text.
pub(super) fn raw_errors(raw: Value<'_>, _: Value<'_>) -> Option<Found> {
    let text = raw.as_text()?;
    let mut parser = Parser::new();
    let root = parser.parse(text.as_bytes(), DEPTH_MAX).ok()?;
    let error = root.get("error").filter(Value::is_object).unwrap_or(root);
    let said = |member| error.get(member);
    let by_code = said("code").and_then(|code| codes(code, error));
    by_code.or_else(|| types(said("type")?, error)).or_else(|| messages(said("message")?, error))
}

/// Finds the part of the input that OpenRouter's moderation flagged. It quotes the user, so a word is shown for it.
pub(super) fn flagged_input(quoted: Value<'_>, metadata: Value<'_>) -> Option<Found> {
    let is_quoted = quoted.as_text().is_some_and(|text| text.source_len() > 0);
    (is_quoted && metadata.get("error_type").is_none()).then(|| Found::text("flagged_input", Category::Safety, INPUT))
}

/// Finds the guardrail of Databricks, which its error has as a JSON text in `message`.
pub(super) fn databricks(message: Value<'_>, _: Value<'_>) -> Option<Found> {
    let text = message.as_text().filter(|text| text.source().starts_with(b"{"))?;
    let mut parser = Parser::new();
    let reason = parser.parse(text.as_bytes(), DEPTH_MAX).ok()?.get("finishReason")?;
    let known = [("input_guardrail_triggered", INPUT), ("output_guardrail_triggered", OUTPUT)];
    let (shown, stage) = known.into_iter().find(|(known, _)| reason.is_text(known))?;
    Some(Found::text(shown, Category::Guardrail, stage))
}

/// Returns what a code of Ark means, such as `InputTextSensitiveContentDetected.SevereViolation`.
fn code_of_ark(code: &str) -> Option<(Category, Option<Stage>)> {
    let (stage, rest) = match (code.strip_prefix("Input"), code.strip_prefix("Output")) {
        (Some(rest), _) => (INPUT, rest),
        (_, Some(rest)) => (OUTPUT, rest),
        _ => (INPUT, code),
    };
    let rest = ["Text", "Image", "Video", "Audio"].iter().find_map(|medium| rest.strip_prefix(medium)).unwrap_or(rest);
    if rest == "RiskDetection" {
        return Some((Category::Guardrail, stage));
    }
    let kind = rest.strip_prefix("SensitiveContentDetected")?;
    let is_kind = kind.strip_prefix('.').is_some_and(|kind| kind.len() < 32 && kind.bytes().all(|byte| byte.is_ascii_alphabetic()));
    (kind.is_empty() || is_kind).then_some((Category::Safety, stage))
}

fn message_of<'d>(error: Value<'d>) -> Option<std::borrow::Cow<'d, str>> {
    error.get("message").and_then(text_of)
}

/// Returns what was stopped, where an error's message says which data it was.
fn stage_of_message(error: Value<'_>) -> Option<Stage> {
    let text = message_of(error)?;
    if text.contains("Output data") {
        return OUTPUT;
    }
    if text.contains("Input data") || text.contains("Input text data") { INPUT } else { None }
}
