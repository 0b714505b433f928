//! From an event to the first blocked call on every partition: a user calls on all of them all the time, offends once, and is suspended.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use rdkafka::Offset;
use rdkafka::message::Message as _;
use serde::Deserialize;

use super::offence::Callers;
use super::{Delays, settings};
use crate::{Reader, Session};

const PARTITIONS: i32 = 16;
/// How many users are suspended, and how many before those that count.
const USERS: usize = 60;
const WARM_UP: usize = 10;
/// How often there is a call on every partition.
const CALL_INTERVAL: Duration = Duration::from_millis(20);
const TIME_MAX: Duration = Duration::from_secs(30);

#[derive(Deserialize)]
struct Verdict {
    turn_id: Option<String>,
    code: String,
}

/// A user who calls on every partition.
struct Stream {
    callers: Callers,
    verdicts: Reader,
    due: Instant,
    sent: usize,
}

impl Session {
    /// Returns how long after the offence of a user the first blocked call came, for each partition of each user.
    pub(super) fn blocked(&self) -> Result<Delays> {
        let partitions = u32::try_from(PARTITIONS)?;
        self.with_traffic(&settings::counting(true), partitions, self.mix(), |bed| {
            let topics = bed.load.topics;
            let (callers, verdicts) =
                (Callers::new(self.kafka(), &topics.events)?, Reader::new(self.kafka(), &topics.decisions, Offset::End)?);
            let mut stream = Stream { callers, verdicts, due: Instant::now(), sent: 0 };
            let mut delays = Vec::new();
            for number in 0..USERS + WARM_UP {
                let user = format!("suspect-{number}");
                stream.until_all(&user, "allow")?;
                let start = Instant::now();
                let partition = i32::try_from(number)? % PARTITIONS;
                stream.callers.offend(&user, &format!("{user}/offence"), number, Some(partition))?;
                let first = stream.until_all(&user, "subject_suspended")?;
                if number >= WARM_UP {
                    delays.extend(first.into_iter().map(|first| (first - start).as_secs_f64() * 1e3));
                }
                self.progress.show("suspending", number, USERS + WARM_UP);
            }
            self.progress.clear();
            Delays::of(delays, 0).context("nobody was suspended")
        })
    }
}

impl Stream {
    /// Sends and reads until there was a verdict of this code on every partition; returns when the first one was read on each.
    fn until_all(&mut self, user: &str, code: &str) -> Result<Vec<Instant>> {
        let mut first: BTreeMap<i32, Instant> = BTreeMap::new();
        let deadline = Instant::now() + TIME_MAX;
        while i32::try_from(first.len())? < PARTITIONS {
            ensure!(Instant::now() < deadline, "verdicts with {code} came on {} of {PARTITIONS} partitions", first.len());
            self.send(user)?;
            let mut wait = Duration::from_millis(1);
            while let Some(message) = self.verdicts.next(wait) {
                wait = Duration::ZERO;
                let verdict: Verdict = serde_json::from_slice(message.payload().unwrap_or_default())?;
                // Verdicts on the user before may still come, and do not count.
                if verdict.code == code && verdict.turn_id.as_deref() == Some(user) {
                    first.entry(message.partition()).or_insert_with(Instant::now);
                }
            }
        }
        Ok(first.into_values().collect())
    }

    /// Sends what is due.
    fn send(&mut self, user: &str) -> Result<()> {
        if Instant::now() >= self.due {
            self.due = Instant::now() + CALL_INTERVAL;
            for partition in 0..PARTITIONS {
                self.callers.call(user, &format!("{user}/{}", self.sent), "ls", Some(partition))?;
                self.sent += 1;
            }
        }
        self.callers.poll();
        Ok(())
    }
}
