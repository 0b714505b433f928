//! Says how many command lines a passport allows, and what it says of the others: `decide_lines PASSPORT LINES`.
//!
//! `LINES` is a JSON array of command lines. The refused lines are grouped by the first check that denies them.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a tool for developers ends with the error")]

use std::collections::BTreeMap;

use tollgate_json::Text;
use tollgate_passport::{Call, Outcome, Passport, Report, Terms, ToolInput, examine};

/// The first denial of a call.
#[derive(Default)]
struct First(Option<String>);

impl Report for First {
    fn outcome(&mut self, _: &'static str, outcome: Outcome) {
        if let Outcome::Denied(denial) = outcome {
            self.0.get_or_insert_with(|| format!("{}: {}", denial.code, denial.message));
        }
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let mut read = || std::fs::read(arguments.next().expect("decide_lines PASSPORT LINES")).unwrap();
    let passport = Passport::read(&read()).unwrap();
    let lines: Vec<String> = serde_json::from_slice(&read()).unwrap();
    let mut refused: BTreeMap<String, Vec<&String>> = BTreeMap::new();
    for line in &lines {
        let input = serde_json::json!({"command": line}).to_string();
        let input = ToolInput::Encoded(Text::plain(input.as_bytes()));
        let mut first = First::default();
        let call = Call { tool_name: "bash", input: &input, time_ms: Some(1_800_000_000_000), earliest_ms: None };
        examine(Some(Ok(&passport)), &Terms::default(), &call, &mut first);
        if let Some(reason) = first.0 {
            refused.entry(reason).or_default().push(line);
        }
    }
    let count: usize = refused.values().map(Vec::len).sum();
    for (reason, lines) in &refused {
        println!("{} {reason}", lines.len());
        lines.iter().for_each(|line| println!("    {line:?}"));
    }
    println!("{count} of {} lines are refused: {:.1} %", lines.len(), 100.0 * count as f64 / lines.len().max(1) as f64);
}
