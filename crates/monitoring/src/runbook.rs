//! The runbook's table of alerts, and the links to its sections.

use crate::rules::groups;

/// Where the documents are read in a browser. An alert has to be a whole link, and nobody but you knows where you keep the documents: put
/// your place in (the chart's value does), or read `docs/runbook.md` of the release.
pub const BASE_URL: &str = "https://example.org/tollgate/docs/runbook.md";

/// The lines around the table.
pub const BEGIN: &str = "<!-- Written from crates/monitoring: begin -->";
/// The line behind the table.
pub const END: &str = "<!-- end -->";

/// Returns the anchor that a heading gets where Markdown is shown: small letters, digits, `-` and `_`, with a dash for each space.
#[must_use]
pub fn anchor(heading: &str) -> String {
    let kept = heading.to_lowercase();
    let kept = kept.chars().filter(|letter| letter.is_alphanumeric() || "-_ ".contains(*letter));
    kept.map(|letter| if letter == ' ' { '-' } else { letter }).collect()
}

/// Returns the link to the section of an alert.
#[must_use]
pub fn url(alert: &str) -> String {
    format!("{BASE_URL}#{}", anchor(alert))
}

/// Returns the table of alerts, by question.
#[must_use]
pub fn table() -> String {
    let mut text = String::from("| question | alert | severity | after |\n|---|---|---|---|\n");
    for group in groups() {
        let mut question = group.question.as_str();
        for alert in &group.alerts {
            let after = if alert.holds == "0m" { "at once" } else { &alert.holds };
            text += &format!("| {question} | [{name}](#{}) | {} | {after} |\n", anchor(&alert.name), alert.severity, name = alert.name);
            question = "";
        }
    }
    text.replace("|  |", "| |")
}
