//! The results of tests as JUnit's XML, which build servers read.

use std::fmt::Write as _;

use super::report::{Outcome, Report};

/// Returns the results as one XML document: a suite for each file.
pub(crate) fn junit(report: &Report) -> String {
    let failed = |cases: &[Outcome]| cases.iter().filter(|case| !case.failures.is_empty()).count();
    let all: usize = report.files.iter().map(|file| file.cases.len()).sum();
    let all_failed: usize = report.files.iter().map(|file| failed(&file.cases)).sum();
    let mut xml = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    // Writing to a string does not fail.
    let _infallible = writeln!(xml, "<testsuites name=\"tollgate test\" tests=\"{all}\" failures=\"{all_failed}\">");
    for file in &report.files {
        let name = escaped(&file.name);
        let _infallible =
            writeln!(xml, "  <testsuite name=\"{name}\" tests=\"{}\" failures=\"{}\">", file.cases.len(), failed(&file.cases));
        for case in &file.cases {
            let head =
                format!("    <testcase name=\"{}\" classname=\"{name}\" file=\"{name}\" line=\"{}\"", escaped(&case.name), case.line);
            if case.failures.is_empty() {
                let _infallible = writeln!(xml, "{head}/>");
                continue;
            }
            let text = case.lines(&file.name).join("\n");
            let message = case.failures.first().map(|failure| format!("{} {} on line {}", failure.what, failure.number, failure.line));
            let message = escaped(&message.unwrap_or_default());
            let _infallible = writeln!(xml, "{head}>\n      <failure message=\"{message}\">{}</failure>\n    </testcase>", escaped(&text));
        }
        xml.push_str("  </testsuite>\n");
    }
    xml.push_str("</testsuites>\n");
    xml
}

/// Returns a text for an attribute or an element. Characters that XML cannot hold are replaced.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\n' => escaped.push('\n'),
            '\t' => escaped.push_str("&#9;"),
            '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            character if character.is_control() => escaped.push('\u{fffd}'),
            character => escaped.push(character),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_cannot_leave_its_place() {
        assert_eq!(escaped("a<b>&\"c\"\u{1b}[0m\n"), "a&lt;b&gt;&amp;&quot;c&quot;\u{fffd}[0m\n");
    }
}
