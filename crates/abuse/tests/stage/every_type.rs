//! Steps and suspensions of every type of rule: any interleaving of sources comes to those of one source that has everything in order of time.
//! Of ratios and baselines, each source has to be in order of time, too.

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

/// Returns the events of a source, each at most so far behind those before it. Many are at one time, and many at the beginning of a bucket.
fn source(back_ms: i64) -> impl Strategy<Value = Vec<Event>> {
    let what = prop_oneof![(1..9_u64).prop_map(What::Calls), (0..TOOLS.len()).prop_map(What::Denial)];
    let step_ms = prop_oneof![(0..9_i64).prop_map(|tenths| tenths * 10 * SECOND), (0..9_i64).prop_map(|tens| tens * 10 * MINUTE)];
    let back_ms = (0..=back_ms / (10 * SECOND)).prop_map(|tens| tens * 10 * SECOND);
    vec((step_ms, back_ms, 0..USERS.len(), what), 0..40).prop_map(|events| {
        let mut newest_ms = START;
        let next = |(step_ms, back_ms, user, what)| {
            let time_ms = newest_ms + step_ms - back_ms;
            newest_ms = newest_ms.max(time_ms);
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
        Rule { id: "sum".to_owned(), detection: amounts.clone(), correlation: Correlation::ValueSum { gte: 12 }, ..plain.clone() },
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
fn fold(list: &[Rule], sources: &[Vec<Event>], turns: impl Iterator<Item = (usize, usize)>) -> Bench {
    let mut bench = Bench::new(rules(list.to_vec()));
    bench.fold(&(0..sources.len() as i32).map(|source| clock(source, 0, START)).collect::<Vec<_>>());
    let mut next = vec![0_usize; sources.len()];
    let rest = (0..sources.len()).map(|source| (source, usize::MAX));
    for (source, count) in turns.chain(rest) {
        let end = next[source].saturating_add(count).min(sources[source].len());
        let events = sources[source][..end].iter().enumerate().skip(next[source]);
        let mut parts: Vec<Part> = events.map(|(offset, event)| part_of(event, source as i32, offset as i64)).collect();
        let time_ms = sources[source][..end].iter().map(|event| event.time_ms).max().unwrap_or(START);
        parts.push(clock(source as i32, end as i64, time_ms));
        bench.fold(&parts);
        assert_eq!(bench.last.counts.late, 0);
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

/// Checks that the sources come to what one source does that has all of it in order of time.
fn check(list: &[Rule], sources: &[Vec<Event>], turns: Vec<(usize, usize)>, later_ms: i64) -> Result<(), TestCaseError> {
    let mut all: Vec<Event> = sources.concat();
    // Of more the earliest firings become certain before their time.
    let denials = |user| all.iter().filter(|event| event.user == user && matches!(event.what, What::Denial(_))).count();
    prop_assume!((0..USERS.len()).all(|user| denials(user) <= 32));
    all.sort_by_key(|event| event.time_ms);
    let now_ms = all.last().map_or(START, |event| event.time_ms) + later_ms / SECOND * SECOND;
    let one_by_one = vec![(0, 1); all.len()];
    let expected = standings(&mut fold(list, &[all], one_by_one.into_iter()), 1, now_ms);
    prop_assert_eq!(standings(&mut fold(list, sources, turns.into_iter()), SOURCES, now_ms), expected);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_interleaving_of_sources_in_order_comes_to_what_one_source_does(
        sources in vec(source(0), SOURCES),
        turns in vec((0..SOURCES, 1..6_usize), 0..60),
        later_ms in 0..2 * HOUR,
    ) {
        check(&rules_here(), &sources, turns, later_ms)?;
    }

    #[test]
    fn what_fires_on_signals_may_be_late_within_a_source(
        sources in vec(source(5 * MINUTE), SOURCES),
        turns in vec((0..SOURCES, 1..6_usize), 0..60),
        later_ms in 0..2 * HOUR,
    ) {
        let waits = |rule: &Rule| matches!(rule.correlation, Correlation::Ratio(_) | Correlation::Baseline(_));
        let list: Vec<_> = rules_here().into_iter().filter(|rule| !waits(rule)).collect();
        check(&list, &sources, turns, later_ms)?;
    }
}
