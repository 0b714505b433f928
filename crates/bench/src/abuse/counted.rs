//! Events per second until their signals are counted: both stages at work on a topic that was filled before, of whose calls half are denied.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use tollgate_testkit::{Mix, MixSettings};

use super::settings;
use crate::versus::in_turn;
use crate::watched::Preloaded;
use crate::{Ratio, Session, Worker};

/// The share of calls that are denied, so that there is much to count.
const DENIED: f64 = 0.5;
const LOOK_INTERVAL: Duration = Duration::from_millis(20);
/// No signal for this long, once all events are consumed: all are counted.
const COUNTED_AFTER: Duration = Duration::from_millis(2_500);
const TIME_MAX: Duration = Duration::from_secs(120);
/// From this share of a run on it counts.
const WARM_UP: f64 = 0.25;

impl Session {
    /// Returns the throughput with one user who has half of all traffic, over that of the usual traffic, in turns.
    pub(super) fn counted(&self, events: usize, rounds: usize) -> Result<Option<Ratio>> {
        let usual = MixSettings { denials: DENIED, ..self.mix_settings() };
        let uniform = self.preload(self.plan.partitions, events, Mix::new(usual))?;
        let hot = self.preload(self.plan.partitions, events, Mix::new(MixSettings { has_hot_user: true, ..usual }))?;
        let (mut over, mut under) = (Vec::new(), Vec::new());
        for round in 0..rounds {
            let (with, without) = in_turn(round, || self.count_once(&hot), || self.count_once(&uniform))?;
            self.progress.say(&format!("counted: {without:.0} events/s, with a hot user {with:.0}"));
            over.push(with);
            under.push(without);
        }
        self.discard(&uniform)?;
        self.discard(&hot)?;
        Ok(Ratio::between(&over, &under))
    }

    fn count_once(&self, preloaded: &Preloaded) -> Result<f64> {
        let name = self.unique();
        let mut topics = self.topics.create(&name, self.plan.partitions)?;
        topics.events.clone_from(&preloaded.topic);
        let run = || {
            let mut worker = Worker::start(&self.invocation, &settings::counting(false), &topics, &name)?;
            worker.wait_ready()?;
            let rate = watch(&mut worker, preloaded.events)?;
            worker.stop()?;
            Ok(rate)
        };
        let found = run();
        let deleted = self.topics.delete_all(&name);
        found.and_then(|found| deleted.map(|()| found))
    }
}

/// Looks at a worker until it has consumed all events and counted all signals; returns events per second, behind the warm-up.
fn watch(worker: &mut Worker, events: usize) -> Result<f64> {
    let (start, all) = (Instant::now(), events as f64);
    let (mut from, mut last) = (None, (0.0, Instant::now()));
    loop {
        worker.check()?;
        let (consumed, counted) = (worker.metric("tollgate_events_consumed_total")?, worker.metric("tollgate_abuse_signals_total")?);
        let now = Instant::now();
        if consumed >= all * WARM_UP {
            from.get_or_insert((consumed, now));
        }
        if counted > last.0 {
            last = (counted, now);
        }
        if consumed >= all && last.0 > 0.0 && last.1.elapsed() > COUNTED_AFTER {
            let Some((before, began)) = from else { anyhow::bail!("nothing was seen of the run") };
            let seconds = last.1.saturating_duration_since(began).as_secs_f64();
            ensure!(seconds > 0.0 && before < all, "the run was over before it could be measured: drain more events");
            return Ok((all - before) / seconds);
        }
        ensure!(start.elapsed() < TIME_MAX, "{consumed:.0} of {events} events were consumed, {counted:.0} signals counted");
        std::thread::sleep(LOOK_INTERVAL);
    }
}
