//! Verdicts on single calls, which a provider adds to a response that is served otherwise.

use tollgate_json::Value;

use super::super::test::{Found, dig, text_of};
use super::super::{Reader, ReasonAt, Stage, Test};
use crate::decide::safety::Category;

/// The rule of verdicts on single calls.
pub(in crate::decide::safety::reading) const TOOL_SAFEGUARD: &str = "tool_safeguard";

pub(super) static READER: Reader = Reader {
    name: "safeguard_results",
    providers: "Anthropic (beta), OpenRouter",
    reasons: &[safeguard("safeguard_results[]"), safeguard("delta.safeguard_results[]")],
    ..Reader::BLANK
};

pub(super) const fn safeguard(path: &'static str) -> ReasonAt {
    ReasonAt {
        path,
        field: "safeguard_results.outcome",
        rule: TOOL_SAFEGUARD,
        test: Test::Custom("`outcome` of a call is `flagged`: that call alone", flagged),
    }
}

fn flagged(result: Value<'_>, _: Value<'_>) -> Option<Found> {
    let calls = dig(result, "status.tool_uses")?;
    let is_flagged = |call: &Value<'_>| call.get("outcome").is_some_and(|outcome| outcome.is_text("flagged"));
    let ids: Vec<String> =
        calls.members().filter(|(_, call)| is_flagged(call)).filter_map(|(id, _)| text_of(id)).map(|id| id.into_owned()).collect();
    let found = Found::text("flagged", Category::ToolFlagged, Some(Stage::Output));
    (!ids.is_empty()).then_some(Found { flagged: Some(ids), ..found })
}
