//! Measures how fast the kill switch is: from producing a suspension until the first blocked call is read on every one of 16 partitions
//! that two worker processes share, under a steady stream of calls on all of them. Lifting a suspension is measured in the same way.
//!
//! Broker, workers, producer and reader share the machine, so absolute figures are this machine's.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use tollgate_config::topics::TopicSettings;

use super::offence::TENANT;
use super::stream::{PARTITIONS, Stream};
use super::{Delays, Suspensions, settings};
use crate::{Session, Worker};

/// How many suspensions are measured; each of them is lifted too.
const SWITCHES: usize = 200;
/// How many switches come before those that count: the broker's code is not compiled yet.
const WARM_UP: usize = 20;
/// The milliseconds that a switch may take at the 99th percentile.
pub(crate) const SWITCH_MS_MAX: f64 = 60.0;
const SHARED_TIME_MAX: Duration = Duration::from_secs(60);

impl Session {
    /// Measures suspending and lifting on topics of its own. Returns the table, and the milliseconds at the 99th percentile until a switch is in
    /// force on every partition.
    pub(crate) fn controls(&self) -> Result<(String, f64)> {
        let name = self.unique();
        let topics = self.topics.create(&name, PARTITIONS)?;
        let measured = self.switch_all(&topics, &name);
        let deleted = self.delete(&topics);
        measured.and_then(|found| deleted.map(|()| found))
    }

    fn switch_all(&self, topics: &TopicSettings, group: &str) -> Result<(String, f64)> {
        let start = || Worker::start(&self.invocation, &settings::without_abuse(), topics, group);
        let mut workers = [start()?, start()?];
        wait_shared(&mut workers)?;
        let (mut stream, suspensions) = (Stream::new(self, topics)?, Suspensions::new(self, &topics.controls)?);
        let (mut blocked, mut allowed) = (Vec::new(), Vec::new());
        for number in 0..WARM_UP + SWITCHES {
            if number == WARM_UP {
                (blocked, allowed) = (Vec::new(), Vec::new());
                stream.waits.clear();
            }
            let user = format!("user-{number}");
            stream.until_all(&user, "allow")?;
            for (is_suspended, code, times) in [(true, "subject_suspended", &mut blocked), (false, "allow", &mut allowed)] {
                let start = Instant::now();
                suspensions.set(TENANT, &user, is_suspended)?;
                let first = stream.until_all(&user, code)?;
                times.push(first.into_iter().map(|first| (first - start).as_secs_f64() * 1e3).collect::<Vec<_>>());
            }
            self.progress.show("switching", number, WARM_UP + SWITCHES);
        }
        self.progress.clear();
        let mut table = format!("{PARTITIONS} partitions, two workers, {SWITCHES} switches each way\n");
        writeln!(table, "{:<34} {:>9} {:>9} {:>9}", "", "p50 ms", "p99 ms", "max ms")?;
        write_row(&mut table, "any call → its verdict", stream.waits)?;
        let mut worst: f64 = 0.0;
        for (name, times) in [("blocked", blocked), ("allowed", allowed)] {
            write_row(&mut table, &format!("switch → {name} on a partition"), times.concat())?;
            let slowest = times.iter().map(|of_partitions| of_partitions.iter().copied().fold(0.0, f64::max));
            worst = worst.max(write_row(&mut table, &format!("switch → {name} on all of them"), slowest.collect())?);
        }
        writeln!(table, "the target of {SWITCH_MS_MAX} ms at p99 is {}", if worst <= SWITCH_MS_MAX { "met" } else { "MISSED" })?;
        workers.into_iter().try_for_each(Worker::stop)?;
        Ok((table, worst))
    }
}

/// Writes a spread, and returns its 99th percentile.
fn write_row(table: &mut String, name: &str, times: Vec<f64>) -> Result<f64> {
    let Delays { p50_ms, p99_ms, max_ms, .. } = Delays::of(times, 0).context("nothing was measured")?;
    writeln!(table, "{name:<34} {p50_ms:>9.1} {p99_ms:>9.1} {max_ms:>9.1}")?;
    Ok(p99_ms)
}

/// Waits until each worker has half of the partitions.
fn wait_shared(workers: &mut [Worker; 2]) -> Result<()> {
    let deadline = Instant::now() + SHARED_TIME_MAX;
    workers.iter_mut().try_for_each(Worker::wait_ready)?;
    let holds = |worker: &Worker| worker.metric("tollgate_assigned_partitions");
    while workers.iter().map(holds).collect::<Result<Vec<_>>>()? != [f64::from(PARTITIONS / 2); 2] {
        ensure!(Instant::now() < deadline, "the partitions are not shared out");
        std::thread::sleep(Duration::from_millis(50));
    }
    workers.iter_mut().try_for_each(Worker::wait_ready)
}
