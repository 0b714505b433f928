//! CPU per event of deciding, with abuse over off: both workers drain the same topic at the same time, so that whatever else the machine does
//! meets both alike. In turns, a neighbour of a minute is found in the one or in the other.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};

use super::settings;
use crate::drain::SAMPLE_INTERVAL;
use crate::watched::Watched;
use crate::watched::{DrainRound, Preloaded};
use crate::{Ratio, Session, Subject};

const TIME_MAX: Duration = Duration::from_secs(180);

impl Session {
    /// Returns the CPU per event of deciding with the pack on and subjects suspended, over that without either.
    pub(crate) fn deciding(&self, events: usize, rounds: usize) -> Result<Option<Ratio>> {
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
            let is_swapped = round % 2 == 1;
            let [first, second] = self.drain_both(if is_swapped { [&off, &on] } else { [&on, &off] }, preloaded)?;
            let [first, second] = [first, second].map(|round| 1e6 / round.events_per_cpu_second);
            let (with, without) = if is_swapped { (second, first) } else { (first, second) };
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
            let made = subjects.iter().zip(&names).map(|(subject, name)| self.drained_topics(subject, name, preloaded));
            let made = made.collect::<Result<Vec<_>>>()?;
            let started =
                subjects.iter().zip(&names).zip(made).map(|((subject, name), topics)| Watched::start(self, subject, &topics, name));
            let mut both = started.collect::<Result<Vec<_>>>()?;
            self.watch_both(&mut both, preloaded)?;
            let rounds = both.into_iter().map(|watched| watched.stop(preloaded)).collect::<Result<Vec<_>>>()?;
            rounds.try_into().ok().context("there are two workers")
        };
        let found = run();
        let [first, second] = names.map(|name| self.topics.delete_all(&name));
        found.and_then(|found| first.and(second).map(|()| found))
    }

    fn watch_both(&self, both: &mut [Watched], preloaded: &Preloaded) -> Result<()> {
        let start = Instant::now();
        loop {
            let verdicts = both.iter_mut().map(|watched| watched.look(start)).collect::<Result<Vec<_>>>()?;
            let most = verdicts.into_iter().max().unwrap_or_default();
            self.progress.show("both draining", usize::try_from(most)?, preloaded.events);
            if most >= preloaded.awaited {
                self.progress.clear();
                return Ok(());
            }
            let log = || both.iter().map(Watched::log_tail).collect::<Vec<_>>().join("\n");
            let (awaited, seconds) = (preloaded.awaited, TIME_MAX.as_secs());
            ensure!(start.elapsed() < TIME_MAX, "{most} of {awaited} verdicts have come in {seconds} s; the logs:\n{}", log());
            std::thread::sleep(SAMPLE_INTERVAL);
        }
    }
}
