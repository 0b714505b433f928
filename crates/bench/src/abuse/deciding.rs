//! CPU per event of deciding, with abuse over off: both workers drain the same topic at the same time, so that whatever else the machine does
//! meets both alike. In turns, a neighbour of a minute is found in the one or in the other.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use tollgate::topics::TopicSettings;

use super::settings;
use crate::drain::{DrainRound, Preloaded, Sample, measured_round};
use crate::{Ratio, Reader, Session, Subject, Worker};

/// The time between two looks at the workers. A look takes about a millisecond of the cores that they run on.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);
const TIME_MAX: Duration = Duration::from_secs(180);

/// One of the two workers, and what was seen of it.
struct Side {
    worker: Worker,
    counter: Reader,
    samples: Vec<Sample>,
}

impl Side {
    /// Takes a sample, if there are new verdicts. Returns whether all are there.
    fn look(&mut self, start: Instant, awaited: u64) -> Result<bool> {
        self.worker.check()?;
        let (verdicts, cpu_seconds) = (self.counter.count()?, self.worker.usage()?.cpu_seconds);
        if self.samples.last().is_none_or(|last| verdicts > last.verdicts) {
            self.samples.push(Sample { elapsed: start.elapsed(), verdicts, cpu_seconds });
        }
        Ok(verdicts >= awaited)
    }
}

impl Session {
    /// Returns the CPU per event of deciding with the pack on and subjects suspended, over that without either.
    pub(super) fn deciding(&self, events: usize, rounds: usize) -> Result<Option<Ratio>> {
        let preloaded = self.preload(self.plan.partitions, events, self.mix())?;
        let found = self.drain_in_pairs(&preloaded, rounds);
        let discarded = self.discard(&preloaded);
        found.and_then(|found| discarded.map(|()| found))
    }

    fn drain_in_pairs(&self, preloaded: &Preloaded, rounds: usize) -> Result<Option<Ratio>> {
        let (on, off) = (settings::with_pack(), settings::without_abuse());
        let (mut over, mut under) = (Vec::new(), Vec::new());
        for round in 0..rounds {
            // They take turns to be the first.
            let (with, without) = if round % 2 == 0 {
                let [with, without] = self.drain_both([&on, &off], preloaded)?;
                (with, without)
            } else {
                let [without, with] = self.drain_both([&off, &on], preloaded)?;
                (with, without)
            };
            let [with, without] = [with, without].map(|round| 1e6 / round.events_per_cpu_second);
            self.progress.say(&format!("deciding: {with:.2} µs of CPU an event with abuse, {without:.2} without, {:.2}×", with / without));
            over.push(with);
            under.push(without);
        }
        Ok(Ratio::between(&over, &under))
    }

    /// Has two workers drain a topic until one of them has answered everything: from then on the other would have the machine for itself.
    fn drain_both(&self, subjects: [&Subject; 2], preloaded: &Preloaded) -> Result<[DrainRound; 2]> {
        let names = [self.unique(), self.unique()];
        let run = || {
            let made = subjects.iter().zip(&names).map(|(subject, name)| self.make_topics(subject, name, preloaded));
            let made = made.collect::<Result<Vec<_>>>()?;
            let started = subjects.iter().zip(&names).zip(made).map(|((subject, name), topics)| self.start_side(subject, name, &topics));
            let mut sides = started.collect::<Result<Vec<_>>>()?;
            self.watch_both(&mut sides, preloaded)?;
            let rounds = sides.iter().map(|side| measured_round(&side.samples, preloaded)).collect::<Result<Vec<_>>>()?;
            sides.into_iter().try_for_each(|side| side.worker.stop())?;
            rounds.try_into().ok().context("there are two workers")
        };
        let found = run();
        let [first, second] = names.map(|name| self.topics().delete_all(&name));
        found.and_then(|found| first.and(second).map(|()| found))
    }

    fn make_topics(&self, subject: &Subject, name: &str, preloaded: &Preloaded) -> Result<TopicSettings> {
        let mut topics = self.topics().create(name, preloaded.partitions)?;
        topics.events.clone_from(&preloaded.topic);
        self.suspend(&topics.controls, subject.suspended())?;
        Ok(topics)
    }

    fn start_side(&self, subject: &Subject, name: &str, topics: &TopicSettings) -> Result<Side> {
        let counter = Reader::counter(self.kafka(), &topics.decisions)?;
        let worker = Worker::start(self.invocation(), subject, topics, name)?;
        Ok(Side { worker, counter, samples: Vec::new() })
    }

    fn watch_both(&self, sides: &mut [Side], preloaded: &Preloaded) -> Result<()> {
        let start = Instant::now();
        loop {
            let looked = sides.iter_mut().map(|side| side.look(start, preloaded.awaited)).collect::<Result<Vec<_>>>()?;
            let last = sides.iter().filter_map(|side| side.samples.last()).map(|last| last.verdicts).max().unwrap_or_default();
            self.progress.show("both draining", usize::try_from(last)?, preloaded.events);
            if looked.contains(&true) {
                self.progress.clear();
                return Ok(());
            }
            let log = || sides.iter().map(|side| side.worker.log_tail()).collect::<Vec<_>>().join("\n");
            let (awaited, seconds) = (preloaded.awaited, TIME_MAX.as_secs());
            ensure!(start.elapsed() < TIME_MAX, "{last} of {awaited} verdicts have come in {seconds} s; the logs:\n{}", log());
            std::thread::sleep(LOOK_INTERVAL);
        }
    }
}
