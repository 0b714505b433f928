//! The listing of the controls as a table.

use serde_json::Value;

use super::super::output::{Column, Table, ago, now_ms};

/// The digits of a subject's hash that are shown unless every column is asked for.
const DIGITS: usize = 16;

const COLUMNS: &[Column] = &[
    Column::text("control"),
    Column::text("of"),
    Column::text("state"),
    Column::text("says"),
    Column::number("partition").wide(),
    Column::number("offset").wide(),
];

/// Returns the table of the listing's lines of JSON.
pub(super) fn table(lines: impl Iterator<Item = String>, is_wide: bool) -> Table {
    let mut table = Table::new(COLUMNS);
    for line in lines {
        let line: Value = serde_json::from_str(&line).unwrap_or_default();
        let text = |key: &str| line.get(key).and_then(Value::as_str).unwrap_or("-").to_owned();
        let number = |key: &str| line.get(key).map_or_else(|| "-".to_owned(), Value::to_string);
        let (control, of) = named(line.get("key").and_then(Value::as_str), is_wide);
        let (state, says) = match text("state").as_str() {
            "in_force" => in_force(line.get("value").unwrap_or(&Value::Null)),
            state => (state.to_owned(), format!("{}: {}: found {}; {}", text("code"), text("field"), text("found"), text("fix"))),
        };
        table.row(vec![control, of, state, says, number("partition"), number("offset")]);
    }
    table
}

/// Returns what a key names: the kind of control, and whom it is about.
fn named(key: Option<&str>, is_wide: bool) -> (String, String) {
    let parts = key.and_then(|key| key.split_once('/'));
    match parts {
        Some(("subject", rest)) => {
            let (kind, hash) = rest.split_once('/').unwrap_or((rest, "-"));
            let hash = hash.split_once('/').map_or(hash, |(hash, _)| hash);
            let hash = if is_wide { hash.to_owned() } else { hash.chars().take(DIGITS).collect() };
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
    let until = text("/until").map(|until| match tollgate_json::time::parse_timestamp(until) {
        Some(time_ms) => format!("until {until} ({})", ago(time_ms, now_ms())),
        None => format!("until {until}"),
    });
    let rule = text("/rule").map(|rule| format!("abuse rule {rule}"));
    let step = value.get("step").and_then(Value::as_u64).filter(|_| rule.is_some()).map(|step| format!("step {step}"));
    let says: Vec<String> = text("/reason").map(str::to_owned).into_iter().chain(rule).chain(step).chain(until).collect();
    (text("/state").unwrap_or("-").to_owned(), says.join(", "))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn controls_and_refusals_are_rows() {
        let hash = "6e1f".repeat(16);
        let lines = [
            json!({"key": null, "state": "refused", "partition": 0, "offset": 6, "code": "key_invalid", "field": "key", "found": "a string of 5 bytes", "fix": "write x"}),
            json!({"key": "passport/coder", "state": "in_force", "partition": 0, "offset": 2, "value": {"type": "passport", "passport": {"status": "active"}}}),
            json!({"key": format!("subject/user/{hash}"), "state": "in_force", "partition": 0, "offset": 0,
                   "value": {"type": "subject", "state": "suspended", "reason": "chargeback", "until": "2000-01-01T00:00:00Z"}}),
            json!({"key": format!("subject/user/{hash}/abuse"), "state": "in_force", "partition": 0, "offset": 1,
                   "value": {"type": "subject", "state": "suspended", "rule": "safety-stop-user", "step": 2, "until": "2000-01-01T00:00:00Z"}}),
            json!({"key": format!("subject/tenant/{hash}"), "state": "in_force", "partition": 0, "offset": 3,
                   "value": {"type": "subject", "state": "exempt"}}),
        ];
        let rows = |is_wide| table(lines.iter().map(Value::to_string), is_wide).lines(is_wide, 200);
        let narrow = rows(false);
        assert_eq!(
            narrow[1].trim_end(),
            "-         a key that names no control  refused    key_invalid: key: found a string of 5 bytes; write x"
        );
        assert!(narrow[2].contains("passport  coder") && narrow[2].contains("in force   status active"), "{narrow:?}");
        let suspended = &narrow[3];
        assert!(
            suspended.starts_with("user      6e1f6e1f6e1f6e1f ")
                && suspended.contains("suspended  chargeback, until 2000-01-01T00:00:00Z ("),
            "{suspended}"
        );
        assert!(
            narrow[4].starts_with("user      6e1f6e1f6e1f6e1f ")
                && narrow[4].contains("suspended  abuse rule safety-stop-user, step 2, until 2000-01-01T00:00:00Z ("),
            "{narrow:?}"
        );
        assert!(narrow[5].starts_with("tenant    6e1f6e1f6e1f6e1f ") && narrow[5].trim_end().ends_with(" exempt"), "{narrow:?}");
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
