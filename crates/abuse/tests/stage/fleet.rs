//! A simulated fleet: every offender that was planted is caught at the signal that reaches the threshold, nobody who stays one below, hardly
//! anybody who is honest; and a provider's false positives suspend only a few.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;
use tollgate_abuse::{Abuse, AbuseRules, AbuseState};
use tollgate_core::decide::signal::{Clock, KeyKind, Point, Signals, Volume};
use tollgate_core::event::record::{Offset, Partition};

use super::fixture::*;
use super::pack::pack;
use super::population::{DAYS, Event, EventKind, SOURCES, SeededFleet, USERS, WAVE, copies, volume};

const TOOLS: [&str; 4] = ["bash", "curl", "ssh", "a-tool-with-a-long-name"];

/// An alert, and the minute of the fleet in which it came.
struct Raised {
    written_ms: i64,
    alert: Value,
}

struct Run {
    stage: Abuse,
    next: i64,
    offsets: [i64; SOURCES as usize],
    newest_ms: [i64; SOURCES as usize],
    /// The events of each story, by their ids, in the order in which they came.
    stories: BTreeMap<usize, Vec<String>>,
    raised: Vec<Raised>,
    /// Who was suspended in the wave.
    suspended: BTreeSet<String>,
    late: u64,
    repeated: u64,
}

impl Run {
    fn new() -> Self {
        let rules = AbuseRules { rules: pack(), lateness_ms: 5 * MINUTE, subjects_max: 1_000_000 };
        let mut run = Self {
            stage: Abuse::new(Arc::new(rules), AbuseState::default()),
            next: 0,
            offsets: [0; SOURCES as usize],
            newest_ms: [START; SOURCES as usize],
            stories: BTreeMap::new(),
            raised: Vec::new(),
            suspended: BTreeSet::new(),
            late: 0,
            repeated: 0,
        };
        let clocks = (0..SOURCES).map(|source| run.clock(source, START)).collect();
        run.fold(START, &Signals { clocks, ..Signals::default() });
        run
    }

    fn clock(&self, source: u64, time_ms: i64) -> Clock {
        let next = Offset(self.offsets[source as usize]);
        Clock { source: Partition(source as i32), next, time_ms, has_begun: false }
    }

    fn fold(&mut self, written_ms: i64, signals: &Signals<'_>) {
        let folded = self.stage.fold(&record(self.next, written_ms, b""), signals);
        self.next += 1;
        self.late += folded.counts.late;
        self.repeated += folded.counts.repeated;
        for alert in &folded.alerts {
            self.raised.push(Raised { written_ms, alert: serde_json::from_slice(&alert.value).unwrap() });
        }
        if (WAVE..WAVE + 2 * HOUR).contains(&written_ms) {
            self.suspended.extend(folded.controls.into_iter().filter(|control| control.value.is_some()).map(|control| control.key));
        }
    }

    /// Folds what a source has written in a minute; now and then its member dies and writes it again.
    fn minute(&mut self, source: u64, minute: i64, events: &[Event]) {
        let mut signals = Signals::default();
        for event in events {
            let offset = self.offsets[source as usize];
            self.offsets[source as usize] += 1;
            let event_id = format!("event-{source}-{offset}");
            event.plant.into_iter().for_each(|plant| self.stories.entry(plant).or_default().push(event_id.clone()));
            signals.points.extend(copies(event).into_iter().map(|(kind, who)| point_of(event, kind, who, source, offset)));
            if let Some((kind, amount)) = volume(event.what) {
                let subject = subject(KeyKind::Tenant, &event.tenant);
                let (source, second) = (Partition(source as i32), event.time_ms / SECOND);
                signals.volumes.push(Volume { kind, subject, source, second, amounts: vec![(Offset(offset), amount)] });
            }
            let newest_ms = &mut self.newest_ms[source as usize];
            *newest_ms = event.time_ms.max(*newest_ms);
        }
        // An idle source's clock goes on by itself.
        let written_ms = (minute + 1) * MINUTE;
        signals.clocks.push(self.clock(source, written_ms - MINUTE));
        self.fold(written_ms, &signals);
        if minute % 17 == source as i64 {
            self.fold(written_ms, &signals);
        }
    }
}

fn point_of(
    event: &Event,
    kind: tollgate_core::decide::signal::PointKind,
    who: tollgate_core::decide::signal::SubjectKey,
    source: u64,
    offset: i64,
) -> Point<'static> {
    let mut point = point(kind, who, source as i32, offset, event.time_ms);
    (point.user, point.tenant) = (Some(user(&event.user).hash), Some(subject(KeyKind::Tenant, &event.tenant).hash));
    match event.what {
        EventKind::Denial(tool, _) => point.tool = Some(TOOLS[tool].into()),
        EventKind::LoopStop(thread) => point.thread = Some(subject(KeyKind::Thread, &thread.to_string()).hash),
        _ => {}
    }
    point
}

fn run(fleet: &SeededFleet) -> Run {
    let mut run = Run::new();
    let (first, last) = (START / MINUTE, (START + DAYS * DAY) / MINUTE + 60);
    let mut rest = fleet.events.as_slice();
    for minute in first..last {
        for source in 0..SOURCES {
            let count = rest.iter().take_while(|event| event.written_ms.div_euclid(MINUTE) == minute && event.source == source).count();
            let (events, behind) = rest.split_at(count);
            rest = behind;
            run.minute(source, minute, events);
        }
    }
    assert!(rest.is_empty(), "{} events are left", rest.len());
    run
}

/// Returns the first alert of a rule about somebody.
fn first<'r>(run: &'r Run, rule: &str, subject: &str) -> Option<&'r Raised> {
    run.raised.iter().find(|raised| raised.alert["rule"] == rule && raised.alert["subject"] == subject)
}

#[test]
fn every_offender_is_caught_and_hardly_anybody_else() {
    let fleet = SeededFleet::of(17);
    let run = run(&fleet);
    assert!(fleet.events.len() > 150_000 && run.late == 0 && run.repeated > 1_000, "{} {}", run.late, run.repeated);
    for (at, plant) in fleet.plants.iter().enumerate() {
        let found = first(&run, plant.rule, &plant.subject.to_string());
        let is_runaway = plant.name == "runaway";
        match (plant.caught_at, found) {
            (None, None) => {}
            (Some(_), Some(_)) if is_runaway => {}
            (Some(at_event), Some(found)) => {
                let evidence = found.alert["evidence"].as_array().unwrap();
                let last = evidence.last().unwrap()["event_id"].as_str();
                assert_eq!(last, Some(&*run.stories[&at][at_event]), "{}: caught at another signal", plant.name);
            }
            (expected, found) => panic!("{} {}: {expected:?}, {:?}", plant.name, plant.subject, found.map(|found| &found.alert)),
        }
    }
    check_runaways(&run, &fleet);
    check_honest(&run);
    // The wave is stopped, and told of; what it has suspended is 2 % of the active at most.
    let is_near = |event: &&Event| (WAVE - HOUR..WAVE + HOUR).contains(&event.time_ms);
    let active: BTreeSet<&str> = fleet.events.iter().filter(is_near).map(|event| &*event.user).collect();
    assert!(run.suspended.len() > 20 && run.suspended.len() * 50 <= active.len(), "{} of {}", run.suspended.len(), active.len());
    let is_paused = |raised: &&Raised| raised.alert["action"] == "enforcement_paused";
    assert_eq!(
        run.raised.iter().filter(is_paused).map(|raised| raised.alert["rule"].as_str().unwrap()).collect::<Vec<_>>(),
        ["safety-stop-user"]
    );
}

/// A runaway is caught within a bucket of the moment from which on it has lasted for ten minutes.
fn check_runaways(run: &Run, fleet: &SeededFleet) {
    let caught =
        |tenant: &str| first(run, "runaway-calls-tenant", &subject(KeyKind::Tenant, tenant).to_string()).map(|raised| raised.written_ms);
    assert_eq!(fleet.plants.iter().filter(|plant| plant.name == "runaway").count(), 4);
    let begin_ms = START + 5 * DAY + 10 * HOUR;
    // The fastest has 2,400 calls in five minutes, against 9,600 that eight hours have: it is there after 20 minutes, less the 100s before.
    let fastest_ms = caught("tenant-with-agents2").unwrap() - begin_ms;
    assert!((25 * MINUTE..=35 * MINUTE).contains(&fastest_ms), "{}", fastest_ms / MINUTE);
    assert!(caught("tenant-with-agents0").is_some(), "exactly eight times");
}

/// The honest: neither planted nor hit by the wave.
fn check_honest(run: &Run) {
    let planted = ["burst", "four", "drip", "dry", "slow", "probe", "adapt", "forged"];
    let planted: BTreeSet<String> = planted.iter().flat_map(|name| (0..20).map(move |n| user(&format!("{name}{n}")).to_string())).collect();
    let mut by_day = BTreeMap::<i64, BTreeSet<&str>>::new();
    for Raised { written_ms, alert } in &run.raised {
        let is_wave = (WAVE..WAVE + 2 * DAY).contains(written_ms);
        let who = alert["subject"].as_str().unwrap_or_default();
        if alert["status"] != "ended" && who.starts_with("user/") && !planted.contains(who) && !is_wave {
            by_day.entry((written_ms - START) / DAY).or_default().insert(who);
        }
    }
    let most = by_day.values().map(BTreeSet::len).max().unwrap_or_default() as u64;
    assert!(most * 1_000 <= USERS, "{most} honest users alerted in a day");
}
