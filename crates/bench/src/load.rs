//! Runs one phase: so many events a second for so long, and the verdicts on them.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use rdkafka::Offset;
use serde::Serialize;

use super::producer::Sent;
use super::{Arrivals, Progress, Reader, Schedule, Sender, Tally, Usage, Worker};
use tollgate_config::settings::{KafkaSettings, TopicSettings};

/// How often the worker's memory is looked at.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(100);
/// From when the sender and the waiter are ready to when the first event is due.
pub(super) const LEAD: Duration = Duration::from_millis(100);

/// How long a phase takes.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Times {
    /// The time at the beginning that is not measured.
    pub warm_up: Duration,
    /// The time that is measured.
    pub measured: Duration,
    /// From when an event is due to when its verdict no longer counts.
    pub deadline: Duration,
}

/// The results of a phase.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Phase {
    /// Events per second that were asked for.
    pub asked_per_second: f64,
    /// Events per second that were sent.
    pub sent_per_second: f64,
    /// Events per second that were dealt with while the phase was measured, as the verdicts tell.
    pub achieved_per_second: f64,
    /// Bytes of an event, on average.
    pub bytes_per_event: f64,
    /// Events that the broker did not take.
    pub refused: u64,
    /// The verdicts.
    #[serde(flatten)]
    pub tally: Tally,
    /// Microseconds of the worker's CPU per event, where it is known.
    pub cpu_us_per_event: Option<f64>,
    /// What the worker used when the phase was over.
    pub usage: Option<Usage>,
    /// The most memory of the worker at any look, in bytes.
    pub resident_bytes_max: u64,
}

/// A phase with every verdict that its results come from.
#[derive(Debug, Clone)]
pub struct Observed {
    /// The results of the phase.
    pub phase: Phase,
    /// Every verdict.
    pub arrivals: Arrivals,
    /// Which events get one.
    pub awaited: Vec<bool>,
}

/// Puts load on a worker.
pub struct Load<'a> {
    /// The cluster.
    pub kafka: &'a KafkaSettings,
    /// The worker's topics.
    pub topics: &'a TopicSettings,
    /// The sender, which goes on where it stood.
    pub sender: Sender,
    /// Where progress is shown.
    pub progress: &'a Progress,
    /// The name of what is measured, for people.
    pub label: String,
}

impl Load<'_> {
    /// Runs a phase.
    pub fn run(&mut self, worker: Option<&mut Worker>, rate: f64, times: Times) -> Result<Observed> {
        self.follow(worker, Schedule::new(rate, times.warm_up, times.measured), times.deadline)
    }

    /// Sends the events of a schedule.
    pub fn follow(&mut self, worker: Option<&mut Worker>, schedule: Schedule, deadline: Duration) -> Result<Observed> {
        let reader = Reader::new(self.kafka, &self.topics.decisions, Offset::End)?;
        let mut arrivals = Arrivals::new(schedule, self.sender.next());
        let (awaited, is_over) = (OnceLock::new(), OnceLock::new());
        let (sender, progress, label) = (&mut self.sender, self.progress, format!("{}, {:.0}/s", self.label, schedule.rate));
        let start = Instant::now() + LEAD;
        let (sent, samples) = std::thread::scope(|threads| {
            let sending = threads.spawn(|| {
                let show = |number| progress.show(&label, number, schedule.count);
                let sent = sender.send(&self.topics.events, schedule, start, show);
                let _first = awaited.set(sent.as_ref().ok().map(|sent| sent.awaited.clone()));
                sent
            });
            let sampling = threads.spawn(|| worker.map(|worker| sample(worker, schedule, start, &is_over)).transpose());
            reader.collect(&mut arrivals, start, &awaited, deadline);
            let _first = is_over.set(());
            let panicked = |_| anyhow!("a thread of the benchmark panicked");
            (sending.join().map_err(panicked).and_then(|sent| sent), sampling.join().map_err(panicked).and_then(|samples| samples))
        });
        let (sent, samples) = (sent?, samples?);
        progress.clear();
        let phase = Phase::of(schedule, &arrivals, &sent, deadline, samples.as_ref());
        Ok(Observed { phase, arrivals, awaited: sent.awaited })
    }
}

impl Phase {
    /// Adds up a phase: the verdicts on what was sent, and what the worker used meanwhile.
    pub(super) fn of(schedule: Schedule, arrivals: &Arrivals, sent: &Sent, deadline: Duration, samples: Option<&Samples>) -> Self {
        let tally = arrivals.tally(&sent.awaited, deadline);
        let measured = (schedule.measured_end - schedule.warm_up) as f64;
        let verdicts_per_event = if tally.awaited == 0 { 1.0 } else { tally.awaited as f64 / measured };
        let achieved = tally.verdicts_per_second / verdicts_per_event;
        let cpu = samples.and_then(Samples::cpu_seconds);
        Self {
            asked_per_second: schedule.rate,
            sent_per_second: schedule.count as f64 / sent.elapsed.as_secs_f64().max(schedule.due_time(schedule.count).as_secs_f64()),
            achieved_per_second: achieved,
            bytes_per_event: sent.bytes as f64 / schedule.count as f64,
            refused: sent.refused,
            tally,
            cpu_us_per_event: cpu.map(|(seconds, window)| seconds * 1e6 / (achieved * window)),
            usage: samples.and_then(|samples| samples.last),
            resident_bytes_max: samples.map_or(0, |samples| samples.resident_bytes_max),
        }
    }
}

/// The worker's CPU and memory during a phase.
#[derive(Debug, Default)]
pub(super) struct Samples {
    /// When the measured time began and ended, from the start, and the CPU seconds used by then.
    from: Option<(Duration, f64)>,
    to: Option<(Duration, f64)>,
    resident_bytes_max: u64,
    last: Option<Usage>,
}

impl Samples {
    /// Returns the CPU seconds within the measured time, and the length of that time in seconds.
    fn cpu_seconds(&self) -> Option<(f64, f64)> {
        let ((from, before), (to, after)) = (self.from?, self.to?);
        Some((after - before, (to - from).as_secs_f64()))
    }
}

/// Looks at a worker until the phase is over.
pub(super) fn sample(worker: &mut Worker, schedule: Schedule, start: Instant, is_over: &OnceLock<()>) -> Result<Samples> {
    let (from, to) = schedule.window();
    let mut samples = Samples::default();
    loop {
        let ended = is_over.get().is_some();
        worker.check()?;
        let elapsed = Instant::now().saturating_duration_since(start);
        if let Ok(usage) = worker.usage() {
            samples.resident_bytes_max = samples.resident_bytes_max.max(usage.resident_bytes);
            samples.last = Some(usage);
            if elapsed >= from {
                samples.from.get_or_insert((elapsed, usage.cpu_seconds));
            }
            if elapsed <= to || samples.to.is_none() {
                samples.to = Some((elapsed, usage.cpu_seconds));
            }
        }
        if ended {
            return Ok(samples);
        }
        std::thread::sleep(SAMPLE_INTERVAL);
    }
}
