//! Calls of one user on every partition all the time, and the verdicts on these calls.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use rdkafka::Offset;
use rdkafka::message::Message as _;
use serde::Deserialize;
use tollgate_config::topics::TopicSettings;

use super::offence::Callers;
use crate::{Reader, Session};

/// The partitions of the topics.
pub(super) const PARTITIONS: u32 = 16;
/// How often there is a call on every partition.
const CALL_INTERVAL: Duration = Duration::from_millis(20);
const TIME_MAX: Duration = Duration::from_secs(60);

#[derive(Deserialize)]
struct Verdict {
    turn_id: Option<String>,
    event_id: String,
    code: String,
}

/// A user who calls on every partition.
pub(super) struct Stream {
    pub(super) callers: Callers,
    verdicts: Reader,
    due: Instant,
    /// When each call was sent.
    sent: Vec<Instant>,
    /// How long the verdicts on calls took, in milliseconds.
    pub(super) waits: Vec<f64>,
}

impl Stream {
    /// Returns a stream on the topics of a worker.
    pub(super) fn new(session: &Session, topics: &TopicSettings) -> Result<Self> {
        let callers = Callers::new(&session.kafka, &topics.events)?;
        let verdicts = Reader::new(&session.kafka, &topics.decisions, Offset::End)?;
        Ok(Self { callers, verdicts, due: Instant::now(), sent: Vec::new(), waits: Vec::new() })
    }

    /// Sends and reads until there was a verdict of this code on every partition; returns when the first one was read on each.
    pub(super) fn until_all(&mut self, user: &str, code: &str) -> Result<Vec<Instant>> {
        let mut first: BTreeMap<i32, Instant> = BTreeMap::new();
        let deadline = Instant::now() + TIME_MAX;
        while first.len() < PARTITIONS as usize {
            ensure!(Instant::now() < deadline, "verdicts with {code} came on {} of {PARTITIONS} partitions", first.len());
            self.send(user)?;
            let mut wait = Duration::from_millis(1);
            while let Some(message) = self.verdicts.next(wait) {
                wait = Duration::ZERO;
                let verdict: Verdict = serde_json::from_slice(message.payload().unwrap_or_default())?;
                let number = verdict.event_id.rsplit('/').next().and_then(|number| number.parse::<usize>().ok());
                let sent = number.and_then(|number| self.sent.get(number));
                self.waits.extend(sent.map(|sent| sent.elapsed().as_secs_f64() * 1e3));
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
            for partition in 0..i32::try_from(PARTITIONS)? {
                self.callers.call(user, &format!("{user}/{}", self.sent.len()), "ls", Some(partition))?;
                self.sent.push(Instant::now());
            }
        }
        self.callers.poll();
        Ok(())
    }
}
