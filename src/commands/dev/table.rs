//! The table of verdicts that `tollgate dev --sample` prints on a terminal.

use serde_json::Value;

/// The columns' titles and widths.
const COLUMNS: [(&str, usize); 7] = [("thread", 16), ("event", 14), ("tool", 11), ("", 1), ("action", 8), ("code", 30), ("ms", 6)];

/// Returns the table's head.
pub(super) fn head() -> String {
    row(&COLUMNS.map(|(title, _)| title.to_owned()))
}

/// Returns a verdict's row; `waited_ms` is how long its sender waited for it.
pub(super) fn verdict(verdict: &Value, waited_ms: f64) -> String {
    let text = |key: &str| verdict.get(key).and_then(Value::as_str).unwrap_or("-").to_owned();
    let sign = match text("action").as_str() {
        "allow" => "✓",
        "warn" => "!",
        _ => "✗",
    };
    row(&[text("thread_id"), text("type"), text("tool_name"), sign.to_owned(), text("action"), text("code"), format!("{waited_ms:.1}")])
}

fn row(cells: &[String; 7]) -> String {
    let padded: Vec<String> = cells.iter().zip(COLUMNS).map(|(cell, (_, width))| format!("{cell:width$}")).collect();
    padded.join("  ").trim_end().to_owned()
}
