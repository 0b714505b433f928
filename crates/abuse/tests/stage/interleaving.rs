//! Whom a rule catches does not depend on how the sources interleave. What is caught is what a plain search over all signals finds.

use std::collections::{BTreeMap, BTreeSet};

use proptest::collection::vec;
use proptest::prelude::*;
use tollgate_abuse::{Correlation, Detection, GroupBy, Mode, Rule};
use tollgate_core::decide::signal::{Dimension, KeyKind, PointKind};

use super::fixture::*;

const SOURCES: usize = 3;
const USERS: [&str; 4] = ["ada", "bob", "cy", "dee"];
const TOOLS: [&str; 5] = ["bash", "curl", "a-tool-with-a-long-name", "ls", "rm"];

/// An event of a source: a denial of a tool.
#[derive(Debug, Clone)]
struct Event {
    time_ms: i64,
    user: usize,
    tool: usize,
}

/// Returns the events of a source. Each is at most as far behind the ones before it as a signal may be late.
fn source() -> impl Strategy<Value = Vec<Event>> {
    let event = (0..8 * MINUTE, 0..5 * MINUTE, 0..USERS.len(), 0..TOOLS.len());
    vec(event, 0..40).prop_map(|events| {
        let mut newest_ms = START;
        let next = |(step_ms, back_ms, user, tool)| {
            let time_ms = newest_ms + step_ms - back_ms;
            newest_ms = newest_ms.max(time_ms);
            Event { time_ms, user, tool }
        };
        events.into_iter().map(next).collect()
    })
}

fn rules_here() -> Vec<Rule> {
    let detection = Detection { signal: point_kind(PointKind::Denial), fields: Vec::new() };
    let plain = Rule { detection, mode: Mode::Alert, timespan_ms: 20 * MINUTE, ..rule("often") };
    let distinct = Correlation::ValueCount { field: Dimension::Tool, gte: 4 };
    let by_tool = GroupBy { kind: KeyKind::User, dimensions: vec![Dimension::Tool] };
    vec![
        Rule { correlation: Correlation::EventCount { gte: 6 }, ..plain.clone() },
        Rule { id: "probing".to_owned(), correlation: distinct, ..plain.clone() },
        Rule { id: "one-tool".to_owned(), group_by: by_tool, ..plain },
    ]
}

/// Who is caught by which rule, with the tool for the rule that counts tools apart.
type Caught = BTreeSet<(String, String, String)>;

/// Looks at every window of every user, one signal after the other.
fn search(sources: &[Vec<Event>]) -> Caught {
    let mut caught = Caught::new();
    for (at, name) in USERS.iter().enumerate() {
        let events: Vec<&Event> = sources.iter().flatten().filter(|event| event.user == at).collect();
        for first in &events {
            let window: Vec<_> = events.iter().filter(|event| (0..20 * MINUTE).contains(&(event.time_ms - first.time_ms))).collect();
            let mut tools = BTreeMap::<usize, usize>::new();
            window.iter().for_each(|event| *tools.entry(event.tool).or_default() += 1);
            let mut add = |rule: &str, group: String| _ = caught.insert((rule.to_owned(), user(name).to_string(), group));
            if window.len() >= 6 {
                add("often", "{}".to_owned());
            }
            if tools.len() >= 4 {
                add("probing", "{}".to_owned());
            }
            for (tool, _) in tools.iter().filter(|(_, count)| **count >= 3) {
                add("one-tool", format!(r#"{{"tool":"{}"}}"#, TOOLS[*tool]));
            }
        }
    }
    caught
}

/// Folds the sources as they interleave: each number takes the next few events of a source.
fn fold(sources: &[Vec<Event>], turns: &[(usize, usize)]) -> Caught {
    let mut bench = Bench::new(rules(rules_here()));
    bench.fold(&(0..SOURCES as i32).map(|source| clock(source, 0, START)).collect::<Vec<_>>());
    let mut next = [0; SOURCES];
    let rest = (0..SOURCES).map(|source| (source, usize::MAX));
    for (source, count) in turns.iter().copied().chain(rest) {
        let events = sources[source].iter().enumerate().skip(next[source]).take(count);
        let mut parts: Vec<Part> = events
            .map(|(offset, event)| {
                let mut point = point(PointKind::Denial, user(USERS[event.user]), source as i32, offset as i64, event.time_ms);
                point.tool = Some(TOOLS[event.tool].into());
                part(point)
            })
            .collect();
        next[source] = (next[source].saturating_add(count)).min(sources[source].len());
        let newest_ms = sources[source][..next[source]].iter().map(|event| event.time_ms).max().unwrap_or(START);
        parts.push(clock(source as i32, next[source] as i64, newest_ms));
        bench.fold(&parts);
        assert_eq!(bench.last.counts.late, 0);
    }
    let ungrouped = bench.alerts.iter().filter(|alert| !alert["subject"].is_null());
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    ungrouped.map(|alert| (text(&alert["rule"]), text(&alert["subject"]), alert["group"].to_string())).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 384, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_interleaving_catches_what_a_plain_search_finds(
        sources in vec(source(), SOURCES),
        turns in vec((0..SOURCES, 1..6_usize), 0..60),
    ) {
        prop_assert_eq!(fold(&sources, &turns), search(&sources));
    }
}
