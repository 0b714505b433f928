//! Events per CPU second: workers drain the same preloaded topic, one after the other, and their verdicts are compared.
//!
//! Whoever starts needs some time before it is up to speed, a JVM above all: the first part of every run does not count.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use rdkafka::Offset;
use rdkafka::message::Message as _;
use serde::{Deserialize, Serialize};

use super::reader::header;
use super::{Reader, Sender, Session, Subject, Worker};
use crate::settings::TopicSettings;

/// The share of a run that does not count.
const WARM_UP: f64 = 0.3;
const SAMPLE_INTERVAL: Duration = Duration::from_millis(20);
/// A worker that has published nothing for so long is done, or stuck if verdicts are missing.
const DONE_AFTER: Duration = Duration::from_millis(1_500);
const STUCK_AFTER: Duration = Duration::from_secs(60);
/// How many differences are named.
const EXAMPLES_MAX: usize = 5;

/// What a worker made of the topic, round by round.
#[derive(Debug, Clone, Serialize)]
pub struct Drained {
    /// Who it was.
    pub name: String,
    /// Its rounds.
    pub rounds: Vec<DrainRound>,
    /// How its verdicts compare with ours; `None` for ours, and for one that decides nothing.
    pub agreement: Option<Agreement>,
}

/// One run over the topic.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct DrainRound {
    /// Events per second.
    pub events_per_second: f64,
    /// Events per second of the worker's CPU, user and system.
    pub events_per_cpu_second: f64,
    /// Verdicts that it published.
    pub verdicts: u64,
}

/// How verdicts compare, on action and code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Default)]
pub struct Agreement {
    /// Events that both have decided alike.
    pub equal: u64,
    /// Events that they have not.
    pub different: u64,
    /// Events that only one has decided.
    pub missing: u64,
    /// Some of the differences: event, ours, theirs.
    pub examples: Vec<[String; 3]>,
}

/// What was seen of a run at one moment.
#[derive(Debug, Clone, Copy)]
struct Sample {
    elapsed: Duration,
    verdicts: u64,
    cpu_seconds: f64,
}

/// Action and code by event.
type Verdicts = HashMap<String, Decision>;

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
struct Decision {
    action: String,
    code: String,
}

impl Drained {
    /// Microseconds of CPU per event, round by round.
    #[must_use]
    pub fn cpu_us(&self) -> Vec<f64> {
        self.rounds.iter().map(|round| 1e6 / round.events_per_cpu_second).collect()
    }
}

impl Session {
    /// Preloads a topic with so many events and has each of `subjects` drain it in every round, in alternating order.
    ///
    /// # Errors
    /// One of them ends, or leaves events unanswered.
    pub fn drain(&self, subjects: &[Subject], events: usize, rounds: usize) -> Result<Vec<Drained>> {
        let preloaded = self.topics().create(&self.unique(), self.plan.partitions)?;
        let mut sender = Sender::new(self.kafka(), self.mix())?;
        let sent = sender.preload(&preloaded.events, events, |done| self.progress.show("preloading", done, events))?;
        self.progress.clear();
        let awaited = sent.awaited.iter().filter(|awaited| **awaited).count() as u64;
        let mut drained: Vec<Drained> =
            subjects.iter().map(|subject| Drained { name: subject.name().to_owned(), rounds: Vec::new(), agreement: None }).collect();
        let mut verdicts: Vec<Option<Verdicts>> = vec![None; subjects.len()];
        for round in 0..rounds {
            let mut order: Vec<_> = subjects.iter().zip(&mut drained).zip(&mut verdicts).collect();
            if round % 2 == 1 {
                order.reverse();
            }
            for ((subject, drained), verdicts) in order {
                let compares = round == 0 && *subject != Subject::PassThrough && subjects.len() > 2;
                let (found, read) = self.drain_once(subject, &preloaded.events, (events, awaited), compares)?;
                self.progress.say(&format!(
                    "{}: draining {:.0}/s, {:.0} events per CPU second",
                    drained.name, found.events_per_second, found.events_per_cpu_second
                ));
                drained.rounds.push(found);
                *verdicts = read.or(verdicts.take());
            }
        }
        self.delete(&preloaded)?;
        let ours = subjects.iter().position(|subject| *subject == Subject::Gate).and_then(|at| verdicts.get(at).cloned().flatten());
        for ((drained, subject), theirs) in drained.iter_mut().zip(subjects).zip(&verdicts) {
            if let (Some(ours), Some(theirs), Subject::Baseline { .. }) = (&ours, theirs, subject) {
                drained.agreement = compare(ours, theirs);
            }
        }
        Ok(drained)
    }

    fn drain_once(
        &self,
        subject: &Subject,
        events_topic: &str,
        (events, awaited): (usize, u64),
        compares: bool,
    ) -> Result<(DrainRound, Option<Verdicts>)> {
        let name = self.unique();
        let mut topics = self.topics().create(&name, self.plan.partitions)?;
        let unused = std::mem::replace(&mut topics.events, events_topic.to_owned());
        let reader = Reader::new(self.kafka(), &topics.decisions, Offset::Beginning)?;
        let mut worker = Worker::start(self.invocation(), subject, &topics, &name)?;
        let samples = self.watch(&mut worker, &reader, subject, (events, awaited))?;
        worker.stop()?;
        let found = judge(&samples, events)?;
        let verdicts = compares.then(|| read(&reader, found.verdicts)).transpose()?;
        self.delete(&TopicSettings { events: unused, ..topics })?;
        Ok((found, verdicts))
    }

    /// Looks at a worker until it has answered everything.
    fn watch(&self, worker: &mut Worker, reader: &Reader, subject: &Subject, (events, awaited): (usize, u64)) -> Result<Vec<Sample>> {
        let start = Instant::now();
        let mut samples: Vec<Sample> = Vec::new();
        let mut last_progress = Instant::now();
        loop {
            worker.check()?;
            let verdicts = reader.count()?;
            let cpu_seconds = worker.usage()?.cpu_seconds;
            if samples.last().is_none_or(|last| verdicts > last.verdicts) {
                last_progress = Instant::now();
                samples.push(Sample { elapsed: start.elapsed(), verdicts, cpu_seconds });
            }
            self.progress.show(&format!("{}, draining", subject.name()), usize::try_from(verdicts)?, events);
            if verdicts >= awaited && last_progress.elapsed() > DONE_AFTER {
                self.progress.clear();
                return Ok(samples);
            }
            ensure!(
                last_progress.elapsed() < STUCK_AFTER,
                "{} has given {verdicts} verdicts where {awaited} are awaited, and no more for {} s; its log:\n{}",
                subject.name(),
                STUCK_AFTER.as_secs(),
                worker.log_tail()
            );
            std::thread::sleep(SAMPLE_INTERVAL);
        }
    }
}

/// The figures of a run, behind its warm-up.
fn judge(samples: &[Sample], events: usize) -> Result<DrainRound> {
    let verdicts = samples.last().map_or(0, |last| last.verdicts);
    let is_warm = |sample: &&Sample| sample.verdicts as f64 >= verdicts as f64 * WARM_UP;
    let (from, to) = (samples.iter().find(is_warm), samples.last());
    let (Some(from), Some(to)) = (from, to) else { anyhow::bail!("nothing was seen of the run") };
    let cpu_seconds = to.cpu_seconds - from.cpu_seconds;
    ensure!(to.verdicts > from.verdicts && cpu_seconds > 0.0, "the run was over before it could be measured: drain more events");
    // What is not answered (turn boundaries, where they are not) is work too.
    let measured = (to.verdicts - from.verdicts) as f64 * events as f64 / verdicts as f64;
    Ok(DrainRound {
        events_per_second: measured / (to.elapsed - from.elapsed).as_secs_f64(),
        events_per_cpu_second: measured / cpu_seconds,
        verdicts,
    })
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

/// Compares verdicts; somebody who allows everything decides nothing, and there is nothing to compare.
fn compare(ours: &Verdicts, theirs: &Verdicts) -> Option<Agreement> {
    if theirs.values().all(|decision| decision.action == "allow") {
        return None;
    }
    let mut agreement = Agreement::default();
    let mut events: Vec<_> = ours.keys().chain(theirs.keys().filter(|event| !ours.contains_key(*event))).collect();
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
    fn the_first_part_of_a_run_does_not_count() {
        let sample = |ms, verdicts, cpu_seconds| Sample { elapsed: Duration::from_millis(ms), verdicts, cpu_seconds };
        let samples = [sample(0, 0, 0.0), sample(9_000, 300, 8.0), sample(9_500, 700, 8.5), sample(10_000, 1_000, 9.0)];
        // 2,000 events got 1,000 verdicts; 700 of these count.
        let found = judge(&samples, 2_000).unwrap();
        assert_eq!(found, DrainRound { events_per_second: 1_400.0, events_per_cpu_second: 1_400.0, verdicts: 1_000 });
        assert!(judge(&[], 10).is_err());
        assert!(judge(&samples[3..], 10).is_err());
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
        assert_eq!(compare(&ours, &theirs), Some(expected));
        assert_eq!(compare(&ours, &verdicts(&[("a", "allow", "allow"), ("b", "allow", "allow")])), None);
    }
}
