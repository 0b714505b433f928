//! A worker that drains a preloaded topic, and what is seen of it meanwhile.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use serde::Serialize;
use tollgate_config::topics::TopicSettings;

use super::{Reader, Session, Subject, Worker};

/// The share of a run that does not count. What a worker does before it has taken over all its partitions does not count either.
const WARM_UP: f64 = 0.5;

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

/// A topic that was filled before anybody drains it.
#[derive(Debug)]
pub(super) struct Preloaded {
    /// The beginning of its name.
    pub(super) stem: String,
    pub(super) topic: String,
    pub(super) partitions: u32,
    pub(super) events: usize,
    /// Events that get a verdict.
    pub(super) awaited: u64,
}

/// What was seen of a run at one moment.
#[derive(Debug, Clone, Copy)]
struct Sample {
    elapsed: Duration,
    verdicts: u64,
    cpu_seconds: f64,
    is_ready: bool,
}

/// A worker at work, and what was seen of it: one sample for each look that found new verdicts.
pub(super) struct Watched {
    worker: Worker,
    counter: Reader,
    samples: Vec<Sample>,
    is_ready: bool,
}

impl Session {
    /// Makes the topics of a worker that drains what was preloaded, and suspends there whom `subject` wants suspended.
    pub(super) fn drained_topics(&self, subject: &Subject, name: &str, preloaded: &Preloaded) -> Result<TopicSettings> {
        let mut topics = self.topics.create(name, preloaded.partitions)?;
        topics.events.clone_from(&preloaded.topic);
        self.suspend(&topics.controls, subject.suspended())?;
        Ok(topics)
    }
}

impl Watched {
    pub(super) fn start(session: &Session, subject: &Subject, topics: &TopicSettings, name: &str) -> Result<Self> {
        let counter = Reader::counter(&session.kafka, &topics.decisions)?;
        let worker = Worker::start(&session.invocation, subject, topics, name)?;
        Ok(Self { worker, counter, samples: Vec::new(), is_ready: false })
    }

    /// Looks at the worker, `start` being when watching began, and returns how many verdicts it has given.
    pub(super) fn look(&mut self, start: Instant) -> Result<u64> {
        self.worker.check()?;
        // To ask costs the worker a little, so it is asked until it is ready and no longer.
        self.is_ready = self.is_ready || self.worker.is_ready();
        let (verdicts, cpu_seconds) = (self.counter.count()?, self.worker.usage()?.cpu_seconds);
        if self.samples.last().is_none_or(|last| verdicts > last.verdicts) {
            self.samples.push(Sample { elapsed: start.elapsed(), verdicts, cpu_seconds, is_ready: self.is_ready });
        }
        Ok(verdicts)
    }

    /// Returns for how long a look has found no new verdict.
    pub(super) fn idle(&self, start: Instant) -> Duration {
        start.elapsed().saturating_sub(self.samples.last().map_or(Duration::ZERO, |last| last.elapsed))
    }

    pub(super) fn log_tail(&self) -> String {
        self.worker.log_tail()
    }

    /// Stops the worker and returns the figures of its run.
    pub(super) fn stop(self, preloaded: &Preloaded) -> Result<DrainRound> {
        self.worker.stop()?;
        measured_round(&self.samples, preloaded)
    }
}

/// Returns the figures of a run, behind its warm-up.
fn measured_round(samples: &[Sample], preloaded: &Preloaded) -> Result<DrainRound> {
    let verdicts = samples.last().map_or(0, |last| last.verdicts);
    let is_warm = |sample: &&Sample| sample.is_ready && sample.verdicts as f64 >= verdicts as f64 * WARM_UP;
    // Verdicts may come in leaps: then the last look but one has to do.
    let before = samples.split_last().and_then(|(_, before)| before.iter().find(is_warm).or(before.last()));
    let (from, to) = (before, samples.last());
    let (Some(from), Some(to)) = (from, to) else { anyhow::bail!("nothing was seen of the run") };
    let cpu_seconds = to.cpu_seconds - from.cpu_seconds;
    ensure!(to.verdicts > from.verdicts && cpu_seconds > 0.0, "the run was over before it could be measured: drain more events");
    // Events without a verdict (turn boundaries, in most workers) are work too. Of a run that was cut more verdicts would have come.
    let measured = (to.verdicts - from.verdicts) as f64 * preloaded.events as f64 / verdicts.max(preloaded.awaited) as f64;
    Ok(DrainRound {
        events_per_second: measured / (to.elapsed - from.elapsed).as_secs_f64(),
        events_per_cpu_second: measured / cpu_seconds,
        verdicts,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_half_of_a_run_does_not_count() {
        let preloaded = |events, awaited| Preloaded { stem: String::new(), topic: String::new(), partitions: 1, events, awaited };
        let sample = |ms, verdicts, cpu_seconds| Sample { elapsed: Duration::from_millis(ms), verdicts, cpu_seconds, is_ready: true };
        let samples = [sample(0, 0, 0.0), sample(9_000, 300, 8.0), sample(9_500, 600, 8.5), sample(10_000, 1_000, 9.0)];
        // 2,000 events got 1,000 verdicts; 400 of these count.
        let found = measured_round(&samples, &preloaded(2_000, 1_000)).unwrap();
        assert_eq!(found, DrainRound { events_per_second: 1_600.0, events_per_cpu_second: 1_600.0, verdicts: 1_000 });
        // It took its last partition over while it drained.
        let starting = [Sample { is_ready: false, ..samples[2] }, sample(9_800, 800, 8.8), samples[3]];
        assert_eq!(measured_round(&starting, &preloaded(2_000, 1_000)).unwrap().events_per_second, 2_000.0);
        // It was cut when it had decided on a quarter.
        assert_eq!(measured_round(&samples, &preloaded(8_000, 4_000)).unwrap(), found);
        // It answers what others do not.
        assert_eq!(measured_round(&samples, &preloaded(1_000, 900)).unwrap().events_per_second, 800.0);
        assert!(measured_round(&[], &preloaded(10, 10)).is_err());
        assert!(measured_round(&samples[3..], &preloaded(10, 10)).is_err());
        // All verdicts in one leap.
        assert_eq!(
            measured_round(&samples[1..2].iter().chain(&samples[3..]).copied().collect::<Vec<_>>(), &preloaded(1_000, 1_000))
                .unwrap()
                .events_per_second,
            700.0
        );
    }
}
