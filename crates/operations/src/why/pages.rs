//! What a code means and what to do about it: the page of the documentation, the setting that was hit, the next steps.

use serde::Serialize;
use serde_json::Value;

use super::FoundVerdict;
use super::controls::ControlThenAndNow;

/// How many names of a list are shown.
const NAMES_MAX: usize = 20;

/// A reason of a verdict, explained.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Explained {
    /// The part of the gate.
    pub source: String,
    /// What it found.
    pub code: String,
    /// The same as a sentence.
    pub message: String,
    /// The policy that decided, as its provider names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy_id: Option<String>,
    /// The digest of the passport that decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub passport_digest: Option<String>,
    /// The page of the documentation that explains the code.
    pub page: &'static str,
    /// The setting that was hit, where the configuration of this command is the policy of the verdict.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hit: Option<String>,
    /// What would have been allowed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed: Option<String>,
    /// Which entry of the passport's list the call comes nearest to, where the passport and the event are still there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nearest: Option<String>,
}

/// The codes of the repetition controller, with the threshold of each and what would have been allowed.
const THRESHOLDS: [(&str, &str, &str); 6] = [
    ("repeated_exact_failure_warning", "exact_failure_warn_after", OTHER_ARGUMENTS),
    ("repeated_exact_failure_block", "exact_failure_block_after", OTHER_ARGUMENTS),
    ("same_tool_failure_warning", "same_tool_failure_warn_after", OTHER_TOOL),
    ("same_tool_failure_halt", "same_tool_failure_halt_after", OTHER_TOOL),
    ("idempotent_no_progress_warning", "no_progress_warn_after", OTHER_ARGUMENTS),
    ("idempotent_no_progress_block", "no_progress_block_after", OTHER_ARGUMENTS),
];
const OTHER_ARGUMENTS: &str = "the same tool with other arguments, and the same call in a new turn";
const OTHER_TOOL: &str = "another tool, and this one in a new turn";

/// Returns the page of the documentation that explains a code of a part of the gate, with the heading on it.
#[must_use]
fn page_of(source: &str, code: &str) -> &'static str {
    match (source, code) {
        (_, "thread_store_full") => "docs/runbook.md#tollgatethreadstorefull",
        (_, "suppressed_tool_call" | "response_not_read") | ("safety", _) => "docs/contract.md#do-what-the-verdict-says",
        ("loop", _) => "docs/runbook.md#somebody-asks-why",
        ("control", _) => "docs/controls.md#records",
        ("envelope", _) => "docs/contract.md#events-that-cannot-be-read",
        (_, "oap.evaluator_error" | "guardrail_failed_open") => "docs/policy-servers.md#answers-and-errors",
        (_, "oap.blocked_pattern" | "oap.command_unproven" | "oap.too_costly") => "docs/command-lines.md#how-a-line-is-judged",
        (_, code) if code.starts_with("oap.passport_") => "docs/passports.md#which-passport-counts",
        (_, "oap.unknown_capability") => "docs/passports.md#tools-and-capabilities",
        (_, "oap.tool_not_allowed") => "docs/passports.md#the-order-of-the-checks",
        (_, code) if code.starts_with("oap.") => "docs/passports.md#limits",
        ("guardrail", _) => "docs/policy-servers.md#answers-and-errors",
        _ => "docs/contract.md#do-what-the-verdict-says",
    }
}

/// Returns every reason of a verdict, explained. `policy` is the decision configuration, if it is the one of the verdict.
pub(super) fn explained(verdict: &Value, policy: Option<&Value>) -> Vec<Explained> {
    let reasons = verdict.get("reasons").and_then(Value::as_array);
    let explain = |reason: &Value| {
        let text = |member: &str| reason.get(member).and_then(Value::as_str).map(str::to_owned);
        let (source, code) = (text("source").unwrap_or_default(), text("code").unwrap_or_default());
        let (hit, allowed) = match source.as_str() {
            "loop" => of_threshold(&code, verdict, policy),
            "guardrail" if code == "oap.tool_not_allowed" => of_allowlist(verdict, policy),
            _ => (None, None),
        };
        let page = page_of(&source, &code);
        Explained {
            source,
            code,
            message: text("message").unwrap_or_default(),
            policy_id: text("policy_id"),
            passport_digest: text("passport_digest"),
            page,
            hit,
            allowed,
            nearest: None,
        }
    };
    reasons.into_iter().flatten().map(explain).collect()
}

/// Returns the threshold that a count has reached, and what would have been allowed.
fn of_threshold(code: &str, verdict: &Value, policy: Option<&Value>) -> (Option<String>, Option<String>) {
    let Some((_, key, allowed)) = THRESHOLDS.iter().find(|(known, ..)| *known == code) else { return (None, None) };
    let threshold = policy.and_then(|policy| policy.pointer(&format!("/tool_loop_guardrails/{key}"))).and_then(Value::as_u64);
    let count = verdict.get("count").and_then(Value::as_u64);
    let hit = threshold.zip(count).map(|(threshold, count)| format!("tool_loop_guardrails.{key} is {threshold}, and the count is {count}"));
    (hit, Some((*allowed).to_owned()))
}

/// Returns the list that a tool is on, or not on, and which tools are allowed.
fn of_allowlist(verdict: &Value, policy: Option<&Value>) -> (Option<String>, Option<String>) {
    let tool = verdict.get("tool_name").unwrap_or(&Value::Null);
    let providers = policy.and_then(|policy| policy.pointer("/guardrails/providers")).and_then(Value::as_array);
    let mut lists = providers.into_iter().flatten().filter(|provider| provider.get("use").is_some_and(|name| name == "allowlist"));
    let Some(config) = lists.next().and_then(|provider| provider.get("config")) else { return (None, None) };
    let list = |name: &str| config.get(name).and_then(Value::as_array);
    let is_denied = list("denied_tools").is_some_and(|denied| denied.contains(tool));
    let hit = if is_denied { "denied_tools of the allowlist names the tool" } else { "the lists of the allowlist do not allow the tool" };
    let allowed = list("allowed_tools").map(|names| {
        let shown: Vec<_> = names.iter().filter_map(Value::as_str).take(NAMES_MAX).collect();
        let more = names.len().saturating_sub(shown.len());
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        format!("allowed_tools: {}{more}", shown.join(", "))
    });
    (Some(hit.to_owned()), allowed.or_else(|| Some("every tool that is not in denied_tools".to_owned())))
}

/// Returns what to do next.
pub(super) fn next_steps(found: &FoundVerdict, controls: &[ControlThenAndNow], is_own_policy: bool) -> Vec<String> {
    let code = found.text("code");
    let mut steps: Vec<String> = match (found.text("decided_by"), code) {
        (_, "suppressed_tool_call") | ("safety", _) => vec![
            "Read the agent's prompt and the response with its provider: its safety system cut the response off, and calls of such a response never run.".to_owned(),
            "Ask again in other words; the model's next answer makes its calls anew.".to_owned(),
        ],
        (_, "thread_store_full") => vec!["Give the workers room for more threads: limits.threads_per_partition_max.".to_owned()],
        ("loop", _) => vec![
            "Mend what fails: the calls of the turn that are marked are the same call.".to_owned(),
            "If it is mended, `tollgate state reset THREAD_ID --execute` has the thread forget its failures; so does a new turn.".to_owned(),
            "`tollgate diff` on a capture says what another threshold would have decided.".to_owned(),
        ],
        ("control", _) => of_controls(controls),
        ("guardrail", "oap.evaluator_error") => {
            vec!["Look at the policy server: the workers' logs say once a minute why it gave no decision.".to_owned()]
        }
        ("guardrail", _) => vec![
            "If the call should run, change the policy or the agent's passport; the agent itself can adapt.".to_owned(),
            "`tollgate diff` on a capture says what else the change would allow.".to_owned(),
        ],
        ("envelope", _) => vec![
            "Mend the producer: the message names the field and what to send.".to_owned(),
            "`tollgate dlq list` shows how many records had that fault, and `tollgate dlq redrive` sends them again.".to_owned(),
        ],
        _ => vec!["Nothing was stopped here.".to_owned()],
    };
    if !is_own_policy {
        steps.push(
            "This configuration is another policy than that of the verdict: give the workers' own with -c to see thresholds and lists."
                .to_owned(),
        );
    }
    steps
}

/// Returns who can tell of the controls that are in force, and lift them.
fn of_controls(controls: &[ControlThenAndNow]) -> Vec<String> {
    let mut steps = Vec::new();
    for key in controls.iter().filter(|control| control.now.is_some()).filter_map(|control| control.key.strip_prefix("subject/")) {
        steps.push(match key.strip_suffix("/abuse") {
            Some(subject) => {
                format!("`tollgate abuse show {subject}` says which rule suspends it; `tollgate abuse pardon {subject}` ends it.")
            }
            None => match key.split_once('/') {
                Some((kind, hash)) => format!("`tollgate control resume --kind {kind} --hash {hash}` lifts it."),
                None => continue,
            },
        });
    }
    if steps.is_empty() {
        steps.push(
            "No control of its subjects is in force now, or this command has another privacy.subject_key than the workers.".to_owned(),
        );
    }
    steps.push("`tollgate control history` says who has switched what, when and why.".to_owned());
    steps
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_threshold_is_told_with_its_count_where_the_policy_is_known() {
        let verdict = json!({"count": 2, "reasons": [
            {"source": "loop", "code": "repeated_exact_failure_block", "message": "m", "policy_id": null},
        ]});
        let policy = json!({"tool_loop_guardrails": {"exact_failure_block_after": 2}});
        let known = &explained(&verdict, Some(&policy))[0];
        assert_eq!(known.hit.as_deref(), Some("tool_loop_guardrails.exact_failure_block_after is 2, and the count is 2"));
        let unknown = &explained(&verdict, None)[0];
        assert_eq!((unknown.hit.as_deref(), unknown.allowed.as_deref()), (None, Some(OTHER_ARGUMENTS)));
    }

    #[test]
    fn an_allowlist_is_told_with_what_it_allows() {
        let verdict = json!({"tool_name": "bash", "reasons": [{"source": "guardrail", "code": "oap.tool_not_allowed", "message": "m"}]});
        let of_list = |config: Value| {
            let policy = json!({"guardrails": {"providers": [{"use": "allowlist", "config": config}]}});
            let reason = explained(&verdict, Some(&policy)).remove(0);
            (reason.hit.unwrap(), reason.allowed.unwrap())
        };
        let (hit, allowed) = of_list(json!({"allowed_tools": ["ls", "cat"], "denied_tools": ["bash"]}));
        assert!(hit.starts_with("denied_tools") && allowed == "allowed_tools: ls, cat", "{hit} {allowed}");
        let (hit, allowed) = of_list(json!({"allowed_tools": (0..25).map(|at| format!("t{at}")).collect::<Vec<_>>(), "denied_tools": []}));
        assert!(hit.starts_with("the lists") && allowed.ends_with("t19 and 5 more"), "{hit} {allowed}");
        assert!(of_list(json!({"allowed_tools": null, "denied_tools": ["bash"]})).1.contains("not in denied_tools"));
    }

    #[test]
    fn every_page_has_the_heading_that_is_named() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let codes = [
            ("loop", "repeated_exact_failure_block"),
            ("loop", "thread_store_full"),
            ("control", "subject_suspended"),
            ("control", "suppressed_tool_call"),
            ("safety", "safety_terminated"),
            ("envelope", "invalid_event"),
            ("guardrail", "oap.evaluator_error"),
            ("guardrail", "oap.blocked_pattern"),
            ("guardrail", "oap.passport_expired"),
            ("guardrail", "oap.unknown_capability"),
            ("guardrail", "oap.tool_not_allowed"),
            ("guardrail", "oap.path_blocked"),
            ("guardrail", "acme.budget_spent"),
            ("none", "allow"),
        ];
        for (source, code) in codes {
            let (page, anchor) = page_of(source, code).split_once('#').unwrap();
            let text = std::fs::read_to_string(root.join(page)).unwrap();
            let anchor_of = |heading: &str| heading.trim_start_matches('#').trim().to_lowercase().replace(' ', "-").replace([',', '?'], "");
            assert!(text.lines().filter(|line| line.starts_with('#')).any(|line| anchor_of(line) == anchor), "{page}#{anchor}");
        }
    }
}
