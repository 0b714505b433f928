//! Whom a rule catches does not depend on how the sources interleave. A rule catches the subjects that a plain search over all signals finds.
//! Nor do steps and suspensions depend on it: in the end they are those of a plain fold of all signals in order of time, and for rules of every
//! type those of one source that has everything in order of time. Of ratios and baselines, each source has to be in order of time, too.

use std::collections::{BTreeMap, BTreeSet};

use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::Value;
use tollgate_abuse::{Baseline, Correlation, Detection, GroupBy, Ladder, Mode, Ratio, Rule, Step};
use tollgate_core::decide::signal::{Dimension, KeyKind, PointKind, SignalKind, VolumeKind};
use tollgate_json::time::rfc_3339;

use super::fixture::*;

const SOURCES: usize = 3;
const USERS: [&str; 4] = ["ada", "bob", "cy", "dee"];
const TOOLS: [&str; 5] = ["bash", "curl", "a-tool-with-a-long-name", "ls", "rm"];
const TIMESPAN: i64 = 20 * MINUTE;

/// What happens at a time: calls of a user, or a denial of a tool.
#[derive(Debug, Clone)]
struct Event {
    time_ms: i64,
    user: usize,
    what: EventKind,
}

#[derive(Debug, Clone, Copy)]
enum EventKind {
    Calls(u64),
    Denial(usize),
}

impl Event {
    /// Returns the tool that was denied.
    fn tool(&self) -> usize {
        let EventKind::Denial(tool) = self.what else { panic!("no denial") };
        tool
    }
}

/// Returns the events of a source: how long each is behind the newest before it, how far it is late, whose it is and what.
fn source(event: impl Strategy<Value = (i64, i64, usize, EventKind)>) -> impl Strategy<Value = Vec<Event>> {
    vec(event, 0..40).prop_map(|events| {
        let mut newest_ms = START;
        let next = |(step_ms, back_ms, user, what)| {
            let time_ms = newest_ms + step_ms - back_ms;
            newest_ms = newest_ms.max(time_ms);
            Event { time_ms, user, what }
        };
        events.into_iter().map(next).collect()
    })
}

/// Returns denials, many of them at one time, and each at most as far behind the ones before it as a signal may be late.
fn denials() -> impl Strategy<Value = Vec<Event>> {
    let seconds = |minutes: i64| (0..minutes * 4).prop_map(|quarters| quarters * 15 * SECOND);
    source((seconds(8), seconds(5), 0..USERS.len(), (0..TOOLS.len()).prop_map(EventKind::Denial)))
}

/// Returns calls and denials, each at most so far behind those before it. Many are at one time, and many at the beginning of a bucket.
fn calls_and_denials(back_ms: i64) -> impl Strategy<Value = Vec<Event>> {
    let what = prop_oneof![(1..9_u64).prop_map(EventKind::Calls), (0..4_usize).prop_map(EventKind::Denial)];
    let step_ms = prop_oneof![(0..9_i64).prop_map(|tenths| tenths * 10 * SECOND), (0..9_i64).prop_map(|tens| tens * 10 * MINUTE)];
    let back_ms = (0..=back_ms / (10 * SECOND)).prop_map(|tens| tens * 10 * SECOND);
    source((step_ms, back_ms, 0..3_usize, what))
}

/// Returns the turns in which the sources come: each number takes the next few events of a source.
fn turns() -> impl Strategy<Value = Vec<(usize, usize)>> {
    vec((0..SOURCES, 1..6_usize), 0..60)
}

fn part_of(event: &Event, source: i32, offset: i64) -> Part {
    let who = user(USERS[event.user]);
    match event.what {
        EventKind::Calls(amount) => Part::Volume(VolumeKind::Call, who, source, offset, event.time_ms, amount),
        EventKind::Denial(tool) => {
            let mut denial = point(PointKind::Denial, who, source, offset, event.time_ms);
            denial.tool = Some(TOOLS[tool].into());
            part(denial)
        }
    }
}

/// Folds the sources as they interleave, and at last what is left of each.
fn fold(list: &[Rule], sources: &[Vec<Event>], turns: &[(usize, usize)]) -> Bench {
    let mut bench = Bench::new(rules(list.to_vec()));
    tell_time(&mut bench, sources.len(), 0, START);
    let mut next = vec![0_usize; sources.len()];
    let rest = (0..sources.len()).map(|source| (source, usize::MAX));
    for (source, count) in turns.iter().copied().chain(rest) {
        let end = next[source].saturating_add(count).min(sources[source].len());
        let events = sources[source][..end].iter().enumerate().skip(next[source]);
        let mut parts: Vec<Part> = events.map(|(offset, event)| part_of(event, source as i32, offset as i64)).collect();
        let newest_ms = sources[source][..end].iter().map(|event| event.time_ms).max().unwrap_or(START);
        parts.push(clock(source as i32, end as i64, newest_ms));
        bench.fold(&parts);
        assert_eq!(bench.last.counts.late, 0);
        next[source] = end;
    }
    bench
}

/// Moves the clocks of all sources to a time.
fn tell_time(bench: &mut Bench, sources: usize, next: i64, time_ms: i64) {
    bench.fold(&(0..sources as i32).map(|source| clock(source, next, time_ms)).collect::<Vec<_>>());
}

/// For each user, rule and group: the step, and until when the rule suspends.
type Standings = BTreeMap<(&'static str, String, String), (usize, Option<String>)>;

/// Returns what the stage has come to.
fn standings(bench: &Bench) -> Standings {
    let views = USERS.iter().filter_map(|id| Some((*id, bench.stage.view(&user(id))?)));
    let counters = views.flat_map(|(id, view)| view.counters.into_iter().map(move |counter| (id, counter)));
    counters.filter_map(|(id, counter)| Some(((id, counter.rule, counter.group), (counter.step? as usize, counter.until)))).collect()
}

/// More signals of a user than are kept would make its earliest firings certain before their time.
fn are_kept<'e>(events: impl Iterator<Item = &'e Event> + Clone) -> bool {
    let denials = |user| events.clone().filter(|event| event.user == user && matches!(event.what, EventKind::Denial(_))).count();
    (0..USERS.len()).all(|user| denials(user) <= 32)
}

fn rules_here() -> Vec<Rule> {
    let detection = Detection { signal: point_kind(PointKind::Denial), fields: Vec::new() };
    let plain = Rule { detection, mode: Mode::Alert, timespan_ms: TIMESPAN, ..rule("often") };
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
            let window: Vec<_> = events.iter().filter(|event| (0..TIMESPAN).contains(&(event.time_ms - first.time_ms))).collect();
            let mut tools = BTreeMap::<usize, usize>::new();
            window.iter().for_each(|event| *tools.entry(event.tool()).or_default() += 1);
            let mut add = |rule: &str, group: String| _ = caught.insert((rule.to_owned(), user(name).to_string(), group));
            if window.len() >= 6 {
                add("often", String::new());
            }
            if tools.len() >= 4 {
                add("probing", String::new());
            }
            for (tool, _) in tools.iter().filter(|(_, count)| **count >= 3) {
                add("one-tool", format!(r#"{{"tool":"{}"}}"#, TOOLS[*tool]));
            }
        }
    }
    caught
}

/// Returns who is on a ladder, which takes days to come down.
fn caught(bench: &Bench) -> Caught {
    standings(bench).into_keys().map(|(id, rule, group)| (rule, user(id).to_string(), group)).collect()
}

/// Rules that suspend, for less time than a signal may be late too, and whose ladders are soon gone down.
fn rules_with_ladders() -> Vec<Rule> {
    let steps = vec![Step::Warn, Step::Suspend(3 * MINUTE), Step::Suspend(10 * MINUTE), Step::Suspend(HOUR)];
    let with_ladder = |rule: Rule| Rule { mode: Mode::Enforce, ladder: Ladder { steps: steps.clone(), decay_ms: 15 * MINUTE }, ..rule };
    rules_here().into_iter().map(with_ladder).collect()
}

/// A place on a ladder: the step, when it goes down, and until when it is suspended.
#[derive(Debug, Clone, Copy)]
struct Place {
    step: usize,
    descends_ms: i64,
    until_ms: Option<i64>,
}

impl Place {
    fn go_down(self, rule: &Rule, at_ms: i64) -> Option<Self> {
        let steps = (self.descends_ms..=at_ms).step_by(rule.ladder.decay_ms as usize).count();
        let place =
            Self { step: self.step.saturating_sub(steps), descends_ms: self.descends_ms + steps as i64 * rule.ladder.decay_ms, ..self };
        (place.step > 0).then_some(place)
    }

    fn go_up(before: Option<Self>, rule: &Rule, at_ms: i64) -> Self {
        let step = (before.map_or(0, |place| place.step) + 1).min(rule.ladder.steps.len());
        let suspends_ms = if let Step::Suspend(ms) = rule.ladder.steps[step - 1] { Some(at_ms + ms) } else { None };
        let until_ms = before.and_then(|place| place.until_ms).max(suspends_ms);
        let descends_ms = at_ms.max(until_ms.unwrap_or(at_ms)) + rule.ladder.decay_ms;
        Self { step, descends_ms: before.map_or(descends_ms, |place| place.descends_ms.max(descends_ms)), until_ms }
    }
}

/// Folds the signals of each user, rule and group in order of time.
fn in_order(rules: &[Rule], sources: &[Vec<Event>], now_ms: i64) -> Standings {
    // Those at one time are in the order of what is counted.
    let key = |event: &&Event| (event.time_ms, TOOLS[event.tool()].len().min(16), TOOLS[event.tool()]);
    let mut events: Vec<&Event> = sources.iter().flatten().collect();
    events.sort_by_key(key);
    let mut standings = Standings::new();
    for (user, rule) in (0..USERS.len()).flat_map(|user| rules.iter().map(move |rule| (user, rule))) {
        let is_grouped = !rule.group_by.dimensions.is_empty();
        let tools = TOOLS.iter().enumerate().map(|(tool, name)| (Some(tool), format!(r#"{{"tool":"{name}"}}"#)));
        let groups: Vec<_> = if is_grouped { tools.collect() } else { vec![(None, String::new())] };
        for (tool, group) in groups {
            let counts = |event: &&&Event| event.user == user && tool.is_none_or(|tool| event.tool() == tool);
            let (mut window, mut place) = (Vec::<&Event>::new(), None);
            for event in events.iter().filter(counts) {
                window.push(event);
                window.retain(|other| event.time_ms - other.time_ms < rule.timespan_ms);
                let tools: BTreeSet<usize> = window.iter().map(|event| event.tool()).collect();
                let (count, gte) = match rule.correlation {
                    Correlation::ValueCount { gte, .. } => (tools.len(), gte),
                    Correlation::EventCount { gte } => (window.len(), gte),
                    _ => panic!("no such rule"),
                };
                if count >= gte as usize {
                    let before = place.and_then(|place: Place| place.go_down(rule, event.time_ms));
                    (window, place) = (Vec::new(), Some(Place::go_up(before, rule, event.time_ms)));
                }
            }
            if let Some(place) = place.and_then(|place| place.go_down(rule, now_ms - 5 * MINUTE)) {
                standings.insert((USERS[user], rule.id.clone(), group), (place.step, place.until_ms.and_then(rfc_3339)));
            }
        }
    }
    standings
}

/// For each user, what its control says: until when it is suspended, by which rule, at which step.
type Controls = BTreeMap<&'static str, (String, String, u64)>;

fn controls(bench: &Bench) -> Controls {
    let text = |control: &Value, name: &str| control[name].as_str().unwrap().to_owned();
    let said = |control: &Value| (text(control, "until"), text(control, "rule"), control["step"].as_u64().unwrap());
    let control = |id: &str| bench.controls.get(&format!("subject/{}/abuse", user(id))).map(said);
    USERS.iter().filter_map(|id| Some((*id, control(id)?))).collect()
}

/// Returns the suspension of each user that ends latest, and among equals that of the first rule and group.
fn suspended(rules: &[Rule], standings: &Standings, now_ms: i64) -> Controls {
    let mut suspended = Controls::new();
    for rule in rules {
        for ((id, _, _), (step, until)) in standings.iter().filter(|((_, other, _), _)| *other == rule.id) {
            for until in until.iter().filter(|until| Some(*until) > rfc_3339(now_ms).as_ref()) {
                if suspended.get(id).is_none_or(|(latest, ..)| until > latest) {
                    suspended.insert(*id, (until.clone(), rule.id.clone(), *step as u64));
                }
            }
        }
    }
    suspended
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 384, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_interleaving_catches_what_a_plain_search_finds(sources in vec(denials(), SOURCES), turns in turns()) {
        prop_assert_eq!(caught(&fold(&rules_here(), &sources, &turns)), search(&sources));
    }

    #[test]
    fn any_interleaving_comes_to_the_steps_and_suspensions_of_the_order_of_time(
        sources in vec(denials(), SOURCES), turns in turns(), later_ms in 0..2 * HOUR,
    ) {
        prop_assume!(are_kept(sources.iter().flatten()));
        let mut bench = fold(&rules_with_ladders(), &sources, &turns);
        let newest_ms = sources.iter().flatten().map(|event| event.time_ms).max().unwrap_or(START);
        let now_ms = newest_ms + later_ms / SECOND * SECOND;
        tell_time(&mut bench, SOURCES, 1_000, now_ms);
        let expected = in_order(&rules_with_ladders(), &sources, now_ms);
        let expected_suspended = suspended(&rules_with_ladders(), &expected, now_ms);
        prop_assert_eq!((standings(&bench), controls(&bench)), (expected, expected_suspended));
    }
}

/// Rules of every type.
fn every_type() -> Vec<Rule> {
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

/// Checks that the sources come to what one source does that has all of it in order of time.
fn check_one_source(list: &[Rule], sources: &[Vec<Event>], turns: &[(usize, usize)], later_ms: i64) -> Result<(), TestCaseError> {
    prop_assume!(are_kept(sources.iter().flatten()));
    let mut all: Vec<Event> = sources.concat();
    all.sort_by_key(|event| event.time_ms);
    let now_ms = all.last().map_or(START, |event| event.time_ms) + later_ms / SECOND * SECOND;
    let result = |sources: &[Vec<Event>], turns: &[(usize, usize)]| {
        let mut bench = fold(list, sources, turns);
        tell_time(&mut bench, sources.len(), 1_000, now_ms);
        // The ids of alerts tell the sources apart.
        bench.controls.values_mut().filter_map(Value::as_object_mut).for_each(|control| drop(control.remove("alert_id")));
        (standings(&bench), bench.controls)
    };
    let one_by_one = vec![(0, 1); all.len()];
    prop_assert_eq!(result(sources, turns), result(&[all], &one_by_one));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_interleaving_of_sources_in_order_comes_to_what_one_source_does(
        sources in vec(calls_and_denials(0), SOURCES), turns in turns(), later_ms in 0..2 * HOUR,
    ) {
        check_one_source(&every_type(), &sources, &turns, later_ms)?;
    }

    #[test]
    fn what_fires_on_signals_may_be_late_within_a_source(
        sources in vec(calls_and_denials(5 * MINUTE), SOURCES), turns in turns(), later_ms in 0..2 * HOUR,
    ) {
        let waits = |rule: &Rule| matches!(rule.correlation, Correlation::Ratio(_) | Correlation::Baseline(_));
        let list: Vec<_> = every_type().into_iter().filter(|rule| !waits(rule)).collect();
        check_one_source(&list, &sources, &turns, later_ms)?;
    }
}
