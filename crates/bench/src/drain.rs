//! Measures events per CPU second: workers drain the same preloaded topic, one after the other, and their verdicts are compared.
//!
//! A process needs some time before it is up to speed, a JVM above all: the first half of every run does not count. Where time is limited,
//! a slow worker is stopped before it has drained all: its cost per event is known long before.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use rdkafka::Offset;
use rdkafka::message::Message as _;
use serde::{Deserialize, Serialize};

use super::reader::header;
use super::watched::{DrainRound, Preloaded, Watched};
use super::{Reader, Sender, Session, Subject};
use tollgate_testkit::{Mix, MixSettings};

/// The time between two looks at a worker. A look takes about a millisecond of the cores that the worker runs on.
pub(super) const SAMPLE_INTERVAL: Duration = Duration::from_millis(50);
const SAMPLE_INTERVAL_FEW: Duration = Duration::from_millis(5);
const FEW_EVENTS: usize = 100_000;
/// A worker that has published nothing for this long is done, or stuck if verdicts are missing.
const DONE_AFTER: Duration = Duration::from_millis(1_500);
const STUCK_AFTER: Duration = Duration::from_secs(45);
/// The longest that a run takes where time is limited: the first one, whose verdicts are compared, and each of the others.
const CUT_AFTER: [Duration; 2] = [Duration::from_secs(30), Duration::from_secs(20)];
/// The share of the topic that a run should have decided on before it was cut.
const CUT_MIN: f64 = 0.3;
/// The longest that a topic is filled for where time is limited; it is drained with the events that it has by then.
const PRELOAD_TIME_MAX: Duration = Duration::from_secs(60);
/// The most differences that are named.
const EXAMPLES_MAX: usize = 5;

/// What a worker made of the topic, round by round.
#[derive(Debug, Clone, Serialize)]
pub struct Drained {
    /// The worker's name.
    pub name: String,
    /// The worker's rounds.
    pub rounds: Vec<DrainRound>,
    /// How its verdicts compare with ours; `None` for ours, and for one that decides nothing.
    pub agreement: Option<Agreement>,
    /// Why it has fewer rounds than others, if it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

/// How verdicts compare, on action and code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Default)]
pub struct Agreement {
    /// The events that both have decided alike.
    pub equal: u64,
    /// The events that they have decided differently.
    pub different: u64,
    /// The events that only one has decided.
    pub missing: u64,
    /// Some of the differences: event, ours, theirs.
    pub examples: Vec<[String; 3]>,
}

/// Action and code by event.
type Verdicts = HashMap<String, Decision>;

/// A worker that drains in every round, and its results so far.
struct Turn<'a> {
    subject: &'a Subject,
    drained: Drained,
    verdicts: Option<Verdicts>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(super) struct Decision {
    action: String,
    code: String,
}

impl Drained {
    /// Microseconds of CPU per event, round by round.
    pub fn cpu_us(&self) -> Vec<f64> {
        self.rounds.iter().map(|round| 1e6 / round.events_per_cpu_second).collect()
    }
}

impl Session {
    /// Preloads a topic with so many events and has each of `subjects` drain it in every round, in alternating order. A subject that fails
    /// is left out from then on. Where time is limited there may be fewer rounds.
    pub fn drain(&self, subjects: &[Subject], events: usize, rounds: usize) -> Result<Vec<Drained>> {
        self.drain_traffic(subjects, events, rounds, self.mix())
    }

    /// Does the same with events of about 1,300 bytes.
    pub fn drain_smaller(&self, events: usize, rounds: usize) -> Result<Vec<Drained>> {
        let sizes = MixSettings { result_bytes_max: 3_000, arguments_bytes_max: 1_200, response_bytes_max: 2_200, ..self.mix_settings() };
        self.drain_traffic(&[Subject::Gate, Subject::PassThrough], events, rounds, Mix::new(sizes))
    }

    fn drain_traffic(&self, subjects: &[Subject], events: usize, rounds: usize, mix: Mix) -> Result<Vec<Drained>> {
        let preloaded = self.preload(self.plan.partitions, events, mix)?;
        let mut turns: Vec<Turn<'_>> = subjects.iter().map(Turn::new).collect();
        for round in 0..rounds {
            let start = Instant::now();
            let compares = round == 0 && subjects.len() > 2;
            let take = |turn: &mut Turn<'_>| turn.take(self, &preloaded, compares, round);
            if round % 2 == 0 {
                turns.iter_mut().for_each(take)
            } else {
                turns.iter_mut().rev().for_each(take)
            }
            if self.is_late_for(start.elapsed()) {
                break;
            }
        }
        self.discard(&preloaded)?;
        let ours = turns.iter_mut().find(|turn| *turn.subject == Subject::Gate).and_then(|turn| turn.verdicts.take());
        for turn in &mut turns {
            if let (Some(ours), Some(theirs), Subject::Baseline { .. }) = (&ours, &turn.verdicts, turn.subject) {
                turn.drained.agreement = compare(ours, theirs, (theirs.len() as u64) < preloaded.awaited);
            }
        }
        Ok(turns.into_iter().map(|turn| turn.drained).collect())
    }

    /// Fills a topic of so many partitions.
    pub(super) fn preload(&self, partitions: u32, events: usize, mix: Mix) -> Result<Preloaded> {
        let stem = self.unique();
        let topic = format!("{stem}.events");
        self.topics.create_named(&[&topic], partitions, &[])?;
        let mut sender = Sender::new(&self.kafka, mix)?;
        let start = Instant::now();
        let is_late = || self.is_limited() && start.elapsed() > PRELOAD_TIME_MAX;
        let sent = sender.preload(&topic, events, |done| self.progress.show("preloading", done, events), is_late)?;
        self.progress.clear();
        let awaited = sent.awaited.iter().filter(|awaited| **awaited).count() as u64;
        Ok(Preloaded { stem, topic, partitions, events: sent.awaited.len(), awaited })
    }

    /// Deletes what was filled.
    pub(super) fn discard(&self, preloaded: &Preloaded) -> Result<()> {
        self.topics.delete_all(&preloaded.stem)
    }

    /// Has a worker drain a topic, and stops it earlier if that takes too long.
    pub(super) fn drain_once(
        &self,
        subject: &Subject,
        preloaded: &Preloaded,
        compares: bool,
        cut_after: Duration,
    ) -> Result<(DrainRound, Option<Verdicts>)> {
        let name = self.unique();
        let run = || {
            let topics = self.drained_topics(subject, &name, preloaded)?;
            let mut watched = Watched::start(self, subject, &topics, &name)?;
            self.watch(&mut watched, subject, preloaded, cut_after)?;
            let found = watched.stop(preloaded)?;
            let read_all = || read(&Reader::new(&self.kafka, &topics.decisions, Offset::Beginning)?, found.verdicts);
            Ok((found, compares.then(read_all).transpose()?))
        };
        let found = run();
        let deleted = self.topics.delete_all(&name);
        found.and_then(|found| deleted.map(|()| found))
    }

    /// Looks at a worker until it has answered everything, or for as long as it may take.
    fn watch(&self, watched: &mut Watched, subject: &Subject, preloaded: &Preloaded, cut_after: Duration) -> Result<()> {
        let start = Instant::now();
        loop {
            let verdicts = watched.look(start)?;
            self.progress.show(&format!("{}, draining", subject.name()), usize::try_from(verdicts)?, preloaded.events);
            let is_done = verdicts >= preloaded.awaited && watched.idle(start) > DONE_AFTER;
            if is_done || is_enough(start.elapsed(), cut_after, verdicts, preloaded.awaited) {
                self.progress.clear();
                return Ok(());
            }
            ensure!(
                watched.idle(start) < STUCK_AFTER,
                "{} has given {verdicts} verdicts where {} are awaited, and no more for {} s; its log:\n{}",
                subject.name(),
                preloaded.awaited,
                STUCK_AFTER.as_secs(),
                watched.log_tail()
            );
            std::thread::sleep(if preloaded.events < FEW_EVENTS { SAMPLE_INTERVAL_FEW } else { SAMPLE_INTERVAL });
        }
    }
}

impl<'a> Turn<'a> {
    fn new(subject: &'a Subject) -> Self {
        let drained = Drained { name: subject.name().to_owned(), rounds: Vec::new(), agreement: None, failure: None };
        Self { subject, drained, verdicts: None }
    }

    fn take(&mut self, session: &Session, preloaded: &Preloaded, compares: bool, round: usize) {
        let name = &self.drained.name;
        if self.drained.failure.is_some() {
            return;
        }
        let compares = compares && *self.subject != Subject::PassThrough;
        match session.drain_once(self.subject, preloaded, compares, session.cut_after(round)) {
            Ok((found, read)) => {
                let (rate, per_cpu_second) = (found.events_per_second, found.events_per_cpu_second);
                session.progress.say(&format!("{name}: draining {rate:.0}/s, {per_cpu_second:.0} events per CPU second"));
                self.drained.rounds.push(found);
                self.verdicts = read.or(self.verdicts.take());
            }
            Err(error) => {
                session.progress.say(&format!("{name}: {error:#}"));
                self.drained.failure = Some(format!("{error:#}"));
            }
        }
    }
}

impl Session {
    /// Returns how long a run of this round may take.
    pub(super) fn cut_after(&self, round: usize) -> Duration {
        let [first, later] = CUT_AFTER;
        match (self.is_limited(), round) {
            (false, _) => Duration::from_secs(u64::from(u32::MAX)),
            (true, 0) => first,
            (true, _) => later,
        }
    }
}

/// Returns whether a run may be cut: it has taken its time, and either decided on enough to be warm or taken that time again.
fn is_enough(elapsed: Duration, cut_after: Duration, verdicts: u64, awaited: u64) -> bool {
    let is_warm = verdicts as f64 >= awaited as f64 * CUT_MIN;
    elapsed > cut_after && (is_warm || (verdicts > 0 && elapsed > cut_after * 2))
}

fn read(reader: &Reader, count: u64) -> Result<Verdicts> {
    let mut verdicts = Verdicts::new();
    reader.take(count, |message| {
        let event = header(message, "event_id").and_then(|id| std::str::from_utf8(id).ok());
        let decision = message.payload().and_then(|json| serde_json::from_slice::<Decision>(json).ok());
        if let (Some(event), Some(decision)) = (event, decision) {
            verdicts.entry(event.to_owned()).or_insert(decision);
        }
    })?;
    Ok(verdicts)
}

/// Compares verdicts. A worker that allows everything decides nothing, and there is nothing to compare. Of a run that was cut only the
/// events that it has decided count.
fn compare(ours: &Verdicts, theirs: &Verdicts, is_cut: bool) -> Option<Agreement> {
    if theirs.values().all(|decision| decision.action == "allow") {
        return None;
    }
    let mut agreement = Agreement::default();
    let is_due = |event: &&String| !is_cut || theirs.contains_key(*event);
    let mut events: Vec<_> = ours.keys().filter(is_due).chain(theirs.keys().filter(|event| !ours.contains_key(*event))).collect();
    events.sort();
    for event in events {
        match (ours.get(event), theirs.get(event)) {
            (Some(ours), Some(theirs)) if ours == theirs => agreement.equal += 1,
            (Some(ours), Some(theirs)) => {
                agreement.different += 1;
                if agreement.examples.len() < EXAMPLES_MAX {
                    let shown = |decision: &Decision| format!("{} {}", decision.action, decision.code);
                    agreement.examples.push([event.clone(), shown(ours), shown(theirs)]);
                }
            }
            _ => agreement.missing += 1,
        }
    }
    Some(agreement)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_cut_when_it_is_warm_or_has_taken_its_time_twice() {
        let cut = |elapsed, verdicts| is_enough(Duration::from_secs(elapsed), Duration::from_secs(20), verdicts, 1_000);
        assert_eq!([cut(19, 999), cut(21, 300), cut(21, 299), cut(41, 299), cut(41, 0)], [false, true, false, true, false]);
    }

    #[test]
    fn verdicts_are_compared_on_action_and_code() {
        let verdicts = |list: &[(&str, &str, &str)]| -> Verdicts {
            list.iter()
                .map(|(event, action, code)| ((*event).to_owned(), Decision { action: (*action).to_owned(), code: (*code).to_owned() }))
                .collect()
        };
        let ours = verdicts(&[("a", "allow", "allow"), ("b", "block", "x"), ("c", "warn", "y")]);
        let theirs = verdicts(&[("a", "allow", "allow"), ("b", "block", "z"), ("d", "allow", "allow")]);
        let expected = Agreement { equal: 1, different: 1, missing: 2, examples: vec![["b".into(), "block x".into(), "block z".into()]] };
        assert_eq!(compare(&ours, &theirs, false), Some(expected));
        assert_eq!(compare(&ours, &theirs, true).map(|agreement| agreement.missing), Some(1));
        assert_eq!(compare(&ours, &verdicts(&[("a", "allow", "allow"), ("b", "allow", "allow")]), false), None);
    }
}
