//! The listing of the controls, and the history, as tables.

use serde_json::Value;

use crate::commands::shared::{Column, Table, ago, hash_text, now_ms, number, text};

const COLUMNS: &[Column] = &[
    text("control"),
    text("of"),
    text("state"),
    text("says"),
    text("by"),
    text("since"),
    number("partition").wide(),
    number("offset").wide(),
];

const HISTORY_COLUMNS: &[Column] = &[
    text("at"),
    text("by"),
    text("control"),
    text("of"),
    text("change"),
    text("says"),
    text("tool").wide(),
    number("partition").wide(),
    number("offset").wide(),
];

/// Returns the table of the listing's lines of JSON.
pub(super) fn table(lines: impl Iterator<Item = String>, is_wide: bool) -> Table {
    let mut table = Table::new(COLUMNS);
    for line in lines {
        let line: Value = serde_json::from_str(&line).unwrap_or_default();
        let (text, number) = (|key: &str| text_of(&line, key), |key: &str| number_of(&line, key));
        let (control, of) = named(line.get("key").and_then(Value::as_str), is_wide);
        let (state, says) = match text("state").as_str() {
            "in_force" => in_force(line.get("value").unwrap_or(&Value::Null)),
            state => {
                let effect = match text("effect").as_str() {
                    "agent_denied" => "denies every call: ",
                    "subject_suspended" => "suspends without end: ",
                    _ => "",
                };
                (state.to_owned(), format!("{effect}{}: {}: found {}; {}", text("code"), text("field"), text("found"), text("fix")))
            }
        };
        let value = line.get("value").unwrap_or(&Value::Null);
        let since = value.get("at").and_then(Value::as_str).and_then(tollgate_json::time::parse_timestamp);
        let since = since.map_or_else(|| "-".to_owned(), |at| ago(at, now_ms()));
        table.row(vec![control, of, state, says, text_of(value, "by"), since, number("partition"), number("offset")]);
    }
    table
}

/// Returns the table of changes.
pub(super) fn history_table(changes: &[Value], is_wide: bool) -> Table {
    let mut table = Table::new(HISTORY_COLUMNS);
    for change in changes {
        let (text, number) = (|key: &str| text_of(change, key), |key: &str| number_of(change, key));
        let (control, of) = named(change.get("key").and_then(Value::as_str), is_wide);
        let (_, says) = in_force(change);
        table.row(vec![text("at"), text("by"), control, of, text("state"), says, text("tool"), number("partition"), number("offset")]);
    }
    table
}

fn text_of(line: &Value, key: &str) -> String {
    line.get(key).and_then(Value::as_str).unwrap_or("-").to_owned()
}

fn number_of(line: &Value, key: &str) -> String {
    line.get(key).map_or_else(|| "-".to_owned(), Value::to_string)
}

/// Returns what a key names: the kind of control, and whom it is about.
fn named(key: Option<&str>, is_wide: bool) -> (String, String) {
    let parts = key.and_then(|key| key.split_once('/'));
    match parts {
        Some(("subject", rest)) => {
            let (kind, hash) = rest.split_once('/').unwrap_or((rest, "-"));
            let hash = hash.split_once('/').map_or(hash, |(hash, _)| hash);
            let hash = hash_text(hash, is_wide);
            (kind.to_owned(), hash)
        }
        Some((control, of)) => (control.to_owned(), of.to_owned()),
        None => ("-".to_owned(), "a key that names no control".to_owned()),
    }
}

/// Returns the state of a control in force, and what it says.
fn in_force(value: &Value) -> (String, String) {
    let text = |pointer: &str| value.pointer(pointer).and_then(Value::as_str);
    if text("/type") == Some("passport") {
        let status = text("/passport/status").map_or_else(String::new, |status| format!("status {status}"));
        return ("in force".to_owned(), status);
    }
    let (end_ms, now_ms) = (text("/until").and_then(tollgate_json::time::parse_timestamp), now_ms());
    let until = text("/until").map(|until| match end_ms {
        Some(end_ms) => format!("until {until} ({})", ago(end_ms, now_ms)),
        None => format!("until {until}"),
    });
    let rule = text("/rule").map(|rule| format!("abuse rule {rule}"));
    let step = value.get("step").and_then(Value::as_u64).filter(|_| rule.is_some()).map(|step| format!("step {step}"));
    let says: Vec<String> = text("/reason").map(str::to_owned).into_iter().chain(rule).chain(step).chain(until).collect();
    // By this machine's clock: for an event of an earlier time it is not over yet.
    let is_over = end_ms.is_some_and(|end_ms| end_ms <= now_ms);
    (if is_over { "over" } else { text("/state").unwrap_or("-") }.to_owned(), says.join(", "))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn changes_are_rows() {
        let key = format!("subject/user/{}", "6e1f".repeat(16));
        let changes = [
            json!({"key": key, "at": "2026-01-31T12:00:00Z", "by": "alice", "state": "resumed", "reason": "paid", "tool": "tollgate 9"}),
            json!({"key": "passport/coder", "state": "set", "partition": 0, "offset": 7}),
        ];
        let rows = history_table(&changes, true).lines(true, 200);
        let cells = |row: &str| row.split_whitespace().map(str::to_owned).collect::<Vec<_>>().join(" ");
        assert_eq!(cells(&rows[1]), format!("2026-01-31T12:00:00Z alice user {} resumed paid tollgate 9 - -", "6e1f".repeat(16)));
        assert_eq!(cells(&rows[2]), "- - passport coder set - 0 7");
    }

    #[test]
    fn controls_and_refusals_are_rows() {
        let hash = "6e1f".repeat(16);
        let lines = [
            json!({"key": null, "state": "refused", "effect": "none", "partition": 0, "offset": 6, "code": "key_invalid", "field": "key", "found": "a string of 5 bytes", "fix": "write x"}),
            json!({"key": "passport/coder", "state": "in_force", "partition": 0, "offset": 2, "value": {"type": "passport", "passport": {"status": "active"}}}),
            json!({"key": format!("subject/user/{hash}"), "state": "in_force", "partition": 0, "offset": 0,
                   "value": {"type": "subject", "state": "suspended", "reason": "chargeback", "until": "2999-01-01T00:00:00Z", "by": "alice", "at": "2999-01-01T00:00:00Z"}}),
            json!({"key": format!("subject/user/{hash}/abuse"), "state": "in_force", "partition": 0, "offset": 1,
                   "value": {"type": "subject", "state": "suspended", "rule": "safety-stop-user", "step": 2, "until": "2000-01-01T00:00:00Z"}}),
            json!({"key": format!("subject/tenant/{hash}"), "state": "in_force", "partition": 0, "offset": 3,
                   "value": {"type": "subject", "state": "exempt"}}),
        ];
        let rows = |is_wide| table(lines.iter().map(Value::to_string), is_wide).lines(is_wide, 200);
        let narrow = rows(false);
        let refused = "-         a key that names no control  refused    key_invalid: key: found a string of 5 bytes; write x  ";
        assert!(narrow[1].starts_with(refused), "{narrow:?}");
        assert!(narrow[2].contains("passport  coder") && narrow[2].contains("in force   status active"), "{narrow:?}");
        let suspended = &narrow[3];
        assert!(
            suspended.starts_with("user      6e1f6e1f6e1f6e1f ")
                && suspended.contains("suspended  chargeback, until 2999-01-01T00:00:00Z ("),
            "{suspended}"
        );
        assert!(
            narrow[4].starts_with("user      6e1f6e1f6e1f6e1f ")
                && narrow[4].contains("over       abuse rule safety-stop-user, step 2, until 2000-01-01T00:00:00Z ("),
            "{narrow:?}"
        );
        assert!(narrow[5].starts_with("tenant    6e1f6e1f6e1f6e1f ") && narrow[5].contains(" exempt  "), "{narrow:?}");
        assert!(suspended.contains("  alice  in ") && narrow[4].trim_end().ends_with('-'), "{narrow:?}");
        let wide = rows(true);
        assert!(
            wide[0].ends_with("partition  offset")
                && wide[3].contains("suspended")
                && wide[3].contains(&hash)
                && wide[3].trim_end().ends_with("0       0"),
            "{wide:?}"
        );
    }
}
