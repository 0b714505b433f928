//! Steps and suspensions of every type of rule but sums: if each source is in order of time, any interleaving of the sources comes to those of
//! one source that has everything.

use std::collections::BTreeMap;

use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::Value;
use tollgate_abuse::{Baseline, Correlation, Detection, GroupBy, Ladder, Ratio, Rule, Step};
use tollgate_core::decide::signal::{Dimension, KeyKind, PointKind, SignalKind, VolumeKind};

use super::fixture::*;

const SOURCES: usize = 3;
const USERS: [&str; 3] = ["ada", "bob", "cy"];
const TOOLS: [&str; 4] = ["bash", "curl", "a-tool-with-a-long-name", "ls"];
const TIMESPAN: i64 = 20 * MINUTE;

/// What happens at a time: calls of a user, or a denial of a tool.
#[derive(Debug, Clone)]
struct Event {
    time_ms: i64,
    user: usize,
    what: What,
}

#[derive(Debug, Clone, Copy)]
enum What {
    Calls(u64),
    Denial(usize),
}

/// Returns the events of a source in order of time. Many are at one time, and many at the beginning of a bucket.
fn source() -> impl Strategy<Value = Vec<Event>> {
    let what = prop_oneof![(1..9_u64).prop_map(What::Calls), (0..TOOLS.len()).prop_map(What::Denial)];
    let step_ms = prop_oneof![(0..9_i64).prop_map(|tenths| tenths * 10 * SECOND), (0..9_i64).prop_map(|tens| tens * 10 * MINUTE)];
    vec((step_ms, 0..USERS.len(), what), 0..40).prop_map(|events| {
        let mut time_ms = START;
        let next = |(step_ms, user, what)| {
            time_ms += step_ms;
            Event { time_ms, user, what }
        };
        events.into_iter().map(next).collect()
    })
}

fn rules_here() -> Vec<Rule> {
    let steps = vec![Step::Warn, Step::Suspend(3 * MINUTE), Step::Suspend(10 * MINUTE), Step::Suspend(HOUR)];
    let denials = Detection { signal: point_kind(PointKind::Denial), fields: Vec::new() };
    let calls = SignalKind::Volume(VolumeKind::Call);
    let plain = Rule { detection: denials, timespan_ms: TIMESPAN, ladder: Ladder { steps, decay_ms: 45 * MINUTE }, ..rule("often") };
    let by_tool = GroupBy { kind: KeyKind::User, dimensions: vec![Dimension::Tool] };
    let share = |for_ms| Correlation::Ratio(Ratio { over: calls, gte: 0.3, min: 5, for_ms });
    let usual = Baseline { factor: 1.5, floor: 8, history_ms: 7 * DAY, warmup_ms: 2 * TIMESPAN, for_ms: 0 };
    let amounts = Detection { signal: calls, fields: Vec::new() };
    vec![
        plain.clone(),
        Rule { id: "probing".to_owned(), correlation: Correlation::ValueCount { field: Dimension::Tool, gte: 3 }, ..plain.clone() },
        Rule { id: "one-tool".to_owned(), group_by: by_tool, ..plain.clone() },
        Rule { id: "share".to_owned(), correlation: share(0), ..plain.clone() },
        Rule { id: "lasting-share".to_owned(), correlation: share(MINUTE), ..plain.clone() },
        Rule { id: "runaway".to_owned(), detection: amounts, correlation: Correlation::Baseline(usual), ..plain },
    ]
}

fn part_of(event: &Event, source: i32, offset: i64) -> Part {
    let who = user(USERS[event.user]);
    match event.what {
        What::Calls(amount) => Part::Volume(VolumeKind::Call, who, source, offset, event.time_ms, amount),
        What::Denial(tool) => {
            let mut denial = point(PointKind::Denial, who, source, offset, event.time_ms);
            denial.tool = Some(TOOLS[tool].into());
            part(denial)
        }
    }
}

/// Folds the sources as they interleave: each number takes the next few events of a source.
fn fold(sources: &[Vec<Event>], turns: impl Iterator<Item = (usize, usize)>) -> Bench {
    let mut bench = Bench::new(rules(rules_here()));
    bench.fold(&(0..sources.len() as i32).map(|source| clock(source, 0, START)).collect::<Vec<_>>());
    let mut next = vec![0_usize; sources.len()];
    let rest = (0..sources.len()).map(|source| (source, usize::MAX));
    for (source, count) in turns.chain(rest) {
        let end = next[source].saturating_add(count).min(sources[source].len());
        let events = sources[source][..end].iter().enumerate().skip(next[source]);
        let mut parts: Vec<Part> = events.map(|(offset, event)| part_of(event, source as i32, offset as i64)).collect();
        let time_ms = sources[source][..end].last().map_or(START, |event| event.time_ms);
        parts.push(clock(source as i32, end as i64, time_ms));
        bench.fold(&parts);
        next[source] = end;
    }
    bench
}

type Standings = BTreeMap<(&'static str, String, String), (u32, Option<String>)>;

/// Returns the step of each user, rule and group with the end of the suspension, and what controls say, without the ids of alerts.
fn standings(bench: &mut Bench, sources: usize, now_ms: i64) -> (Standings, BTreeMap<String, Value>) {
    bench.fold(&(0..sources as i32).map(|source| clock(source, 1_000, now_ms)).collect::<Vec<_>>());
    let views = USERS.iter().filter_map(|id| Some((*id, bench.stage.view(&user(id))?)));
    let counters = views.flat_map(|(id, view)| view.counters.into_iter().map(move |counter| (id, counter)));
    let standings =
        counters.filter_map(|(id, counter)| Some(((id, counter.rule, counter.group), (counter.step?, counter.until)))).collect();
    let mut controls = bench.controls.clone();
    controls.values_mut().filter_map(Value::as_object_mut).for_each(|control| drop(control.remove("alert_id")));
    (standings, controls)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_interleaving_of_sources_in_order_comes_to_what_one_source_does(
        sources in vec(source(), SOURCES),
        turns in vec((0..SOURCES, 1..6_usize), 0..60),
        later_ms in 0..2 * HOUR,
    ) {
        let mut all: Vec<Event> = sources.concat();
        all.sort_by_key(|event| event.time_ms);
        let now_ms = all.last().map_or(START, |event| event.time_ms) + later_ms / SECOND * SECOND;
        let one_by_one = vec![(0, 1); all.len()];
        let expected = standings(&mut fold(&[all], one_by_one.into_iter()), 1, now_ms);
        let mut interleaved = fold(&sources, turns.into_iter());
        prop_assert_eq!(standings(&mut interleaved, SOURCES, now_ms), expected);
    }
}
