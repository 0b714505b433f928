//! Sets up what a benchmark runs on: a cluster, its own or somebody's, and workers on topics of their own.

use std::cell::Cell;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Result, bail};
use serde::Serialize;

use super::{Invocation, Load, Observed, Phase, Progress, Search, Sender, Subject, Times, Topics, Worker, sustained};
use tollgate_config::settings::{KafkaSettings, TopicSettings};
use tollgate_testkit::{Broker, Mix, MixSettings, default_cache};

/// The events a second, and their time, before anything is measured: a broker that has just started is slow for some seconds.
const KINDLING_RATE: f64 = 2_000.0;
/// The share of a known peak that the next search begins at.
const NEAR: f64 = 0.85;
const KINDLING: Times = Times { warm_up: Duration::ZERO, measured: Duration::from_secs(3), deadline: Duration::from_secs(20) };

/// How measurements are made.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Plan {
    /// The seed of the traffic.
    pub seed: u64,
    /// How many threads it has.
    pub threads: usize,
    /// Partitions of every topic.
    pub partitions: u32,
    /// The times of a latency measurement.
    pub times: Times,
    /// The times of a probe of the peak search.
    pub probe_times: Times,
    /// The peak search.
    pub search: Search,
}

impl Plan {
    /// Returns the times of one of many latency measurements.
    pub fn sweep_times(&self) -> Times {
        Times { measured: (self.times.measured / 2).max(Duration::from_secs(1)), ..self.times }
    }
}

/// A cluster to measure on, with what it takes to start workers there.
pub struct Session {
    /// How measurements are made.
    pub plan: Plan,
    /// Where progress is shown.
    pub progress: Progress,
    /// The cluster.
    pub(super) kafka: KafkaSettings,
    pub(super) invocation: Invocation,
    pub(super) topics: Topics,
    stem: String,
    made: Cell<u32>,
    /// Where the next search for a peak begins: near the last one that was found.
    search_start: Cell<f64>,
    /// When the present measurement has to end; without one it takes the time that it takes.
    end: Cell<Option<Instant>>,
    /// The broker. It is the last field, so that it is there until everything else is gone.
    broker: Option<Broker>,
}

/// A worker under load.
pub struct Bed<'a> {
    /// The load on the worker.
    pub load: Load<'a>,
    /// The worker.
    pub worker: Worker,
}

/// The result of a peak search.
#[derive(Debug, Clone, Serialize)]
pub struct Peak {
    /// The highest rate that was sustained, in events per second.
    pub per_second: f64,
    /// Every probe.
    pub probes: Vec<Phase>,
}

impl Session {
    /// Opens a session on the cluster of these settings, or on a broker that it starts.
    pub fn open(plan: Plan, mut kafka: KafkaSettings, mut invocation: Invocation, starts_broker: bool, progress: Progress) -> Result<Self> {
        let broker = match starts_broker {
            true => {
                progress.say("starting a broker");
                // A topic that is deleted should free its room at once: a run writes gigabytes.
                let broker = Broker::start(&default_cache()?, "log.segment.delete.delay.ms=0\nfile.delete.delay.ms=0")?;
                kafka.brokers = broker.bootstrap();
                invocation.brokers.clone_from(&kafka.brokers);
                Some(broker)
            }
            false => None,
        };
        let topics = Topics::connect(&kafka)?;
        let search_start = Cell::new(plan.search.start);
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
        let stem = format!("tollgate-bench-{since_epoch}-{}", std::process::id());
        Ok(Self { plan, progress, kafka, invocation, topics, stem, made: Cell::new(0), search_start, end: Cell::default(), broker })
    }

    /// Returns where the broker is, for people.
    pub fn broker_place(&self) -> String {
        match self.broker {
            Some(_) => "its own, on the same machine".to_owned(),
            None => self.kafka.brokers.clone(),
        }
    }

    /// Sets when the next measurement has to end; it then returns what it has by then.
    pub fn set_end(&self, end: Option<Instant>) {
        self.end.set(end);
    }

    /// Returns whether there is an end to what is measured.
    pub(super) fn is_limited(&self) -> bool {
        self.end.get().is_some()
    }

    /// Returns whether something that takes so long would not be over in time.
    pub(super) fn is_late_for(&self, time: Duration) -> bool {
        self.end.get().is_some_and(|end| Instant::now() + time > end)
    }

    /// Has the next search begin at this rate.
    pub fn search_from(&self, per_second: f64) {
        self.search_start.set(per_second);
    }

    /// Returns a name that nothing else on the cluster has.
    pub(super) fn unique(&self) -> String {
        self.made.set(self.made.get() + 1);
        format!("{}-{}", self.stem, self.made.get())
    }

    /// Returns the traffic, from its beginning.
    pub fn mix(&self) -> Mix {
        Mix::new(self.mix_settings())
    }

    /// Returns the settings of the traffic.
    pub(super) fn mix_settings(&self) -> MixSettings {
        MixSettings { seed: self.plan.seed, threads: self.plan.threads, ..MixSettings::default() }
    }

    /// Starts a worker on new topics, has `measure` use it, stops it and deletes the topics.
    pub fn with_worker<T>(&self, subject: &Subject, measure: impl FnOnce(&mut Bed<'_>) -> Result<T>) -> Result<T> {
        self.with_traffic(subject, self.plan.partitions, self.mix(), measure)
    }

    /// Does the same with so many partitions and other traffic.
    pub(super) fn with_traffic<T>(
        &self,
        subject: &Subject,
        partitions: u32,
        mix: Mix,
        measure: impl FnOnce(&mut Bed<'_>) -> Result<T>,
    ) -> Result<T> {
        let name = self.unique();
        let topics = self.topics.create(&name, partitions)?;
        let measured = self.on_topics((subject, mix), &topics, &name, measure);
        let deleted = self.delete(&topics);
        measured.and_then(|measured| deleted.map(|()| measured))
    }

    fn on_topics<T>(
        &self,
        (subject, mix): (&Subject, Mix),
        topics: &TopicSettings,
        name: &str,
        measure: impl FnOnce(&mut Bed<'_>) -> Result<T>,
    ) -> Result<T> {
        let mut worker = Worker::start(&self.invocation, subject, topics, name)?;
        worker.wait_ready()?;
        let sender = Sender::new(&self.kafka, mix)?;
        let load = Load { kafka: &self.kafka, topics, sender, progress: &self.progress, label: subject.name().to_owned() };
        let mut bed = Bed { load, worker };
        bed.run(KINDLING_RATE, KINDLING)?;
        let measured = measure(&mut bed)?;
        bed.worker.stop()?;
        Ok(measured)
    }

    pub(super) fn delete(&self, topics: &TopicSettings) -> Result<()> {
        let names: Vec<_> = topics.each().map(|topic| topic.name).collect();
        self.topics.delete(&names)
    }

    /// Searches the highest rate that a worker sustains.
    pub fn find_peak(&self, bed: &mut Bed<'_>) -> Result<Peak> {
        let mut probes = Vec::new();
        let (search, times) = (Search { start: self.search_start.get(), ..self.plan.search }, self.plan.probe_times);
        let probe = |rate| {
            let phase = bed.run(rate, times)?.phase;
            let judged = sustained(&phase);
            self.progress.say(&probe_line(&bed.load.label, &phase, judged.is_ok()));
            probes.push(phase);
            Ok(judged.is_ok())
        };
        let found = search.run(probe, || self.is_late_for(times.warm_up + times.measured))?;
        match found {
            Some(per_second) => {
                self.search_start.set(per_second * NEAR);
                Ok(Peak { per_second, probes })
            }
            None => {
                bail!("no rate is sustained, down to {:.0} events per second", probes.last().map_or(0.0, |phase| phase.asked_per_second))
            }
        }
    }
}

impl Bed<'_> {
    /// Runs a phase.
    pub fn run(&mut self, rate: f64, times: Times) -> Result<Observed> {
        self.load.run(Some(&mut self.worker), rate, times)
    }
}

fn probe_line(label: &str, phase: &Phase, is_sustained: bool) -> String {
    format!(
        "{label}: {:>7.0}/s asked, {:>7.0}/s achieved, p50 {:>7.1} ms, p99 {:>7.1} ms, {} misses: {}",
        phase.asked_per_second,
        phase.achieved_per_second,
        phase.tally.latency_ms.p50,
        phase.tally.latency_ms.p99,
        phase.tally.misses,
        if is_sustained { "sustained" } else { "not sustained" }
    )
}
