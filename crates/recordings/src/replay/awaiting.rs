//! The verdicts on what is sent: which are awaited, which have come, and how long they took.

use std::collections::BTreeMap;
use std::time::Instant;

use anyhow::anyhow;
use hdrhistogram::Histogram;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use tollgate_core::decide::evaluate::DistinctVerdicts;

/// The longest time that is told apart, in microseconds: an hour.
const MICROS_MAX: u64 = 3_600_000_000;
/// The digits to which times are exact.
const DIGITS: u8 = 3;

/// Times in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Percentiles {
    /// The median.
    pub p50: f64,
    /// The 99th percentile.
    pub p99: f64,
    /// The 99.9th percentile.
    pub p999: f64,
    /// The longest time.
    pub max: f64,
}

/// Times, of which percentiles are known.
#[derive(Debug)]
pub struct Times(Histogram<u64>);

impl Times {
    /// Returns times of which there are none yet.
    ///
    /// # Errors
    /// There is no memory for them.
    pub fn new() -> anyhow::Result<Self> {
        Histogram::new_with_max(MICROS_MAX, DIGITS).map(Self).map_err(|error| anyhow!("no histogram: {error}"))
    }

    /// Notes the time from one moment to a later one.
    pub fn note(&mut self, from: Instant, to: Instant) {
        let micros = to.saturating_duration_since(from).as_micros();
        self.0.saturating_record(u64::try_from(micros).unwrap_or(MICROS_MAX).min(MICROS_MAX));
    }

    /// Returns the percentiles so far.
    pub fn percentiles(&self) -> Percentiles {
        let at = |quantile| self.0.value_at_quantile(quantile) as f64 / 1_000.0;
        Percentiles { p50: at(0.5), p99: at(0.99), p999: at(0.999), max: self.0.max() as f64 / 1_000.0 }
    }
}

/// An event whose verdict is awaited.
#[derive(Debug, Clone, Copy)]
struct Awaited {
    due_at: Instant,
    /// How often the event was sent. A worker answers each time.
    sent: u32,
    came: u32,
}

/// The events that get verdicts, by the ids of those.
#[derive(Debug)]
pub struct Awaiting {
    events: FxHashMap<[u8; 32], Awaited>,
    /// Events that have a verdict.
    pub answered: u64,
    /// Verdicts beyond one for each time that an event was sent.
    pub duplicates: u64,
    /// From when events were due to their verdicts.
    pub latency: Times,
    /// Verdicts by action and code.
    pub verdicts: BTreeMap<(String, String), u64>,
    /// All verdicts, for their digest.
    pub distinct: DistinctVerdicts,
}

/// What is read of a verdict.
#[derive(Deserialize)]
struct Read {
    verdict_id: String,
    action: String,
    code: String,
}

impl Awaiting {
    /// Returns what awaits no verdict.
    ///
    /// # Errors
    /// There is no memory for the times.
    pub fn new() -> anyhow::Result<Self> {
        Ok(Self {
            events: FxHashMap::default(),
            answered: 0,
            duplicates: 0,
            latency: Times::new()?,
            verdicts: BTreeMap::new(),
            distinct: DistinctVerdicts::default(),
        })
    }

    /// Notes that an event which gets a verdict with this id was due then. It has to be noted before it is sent.
    pub fn expect(&mut self, id: [u8; 32], due_at: Instant) {
        self.events.entry(id).or_insert(Awaited { due_at, sent: 0, came: 0 }).sent += 1;
    }

    /// Notes a verdict that came then. Verdicts on other events do not count.
    pub fn receive(&mut self, value: &[u8], came: Instant) {
        let Ok(Read { verdict_id, action, code }) = serde_json::from_slice(value) else { return };
        let id = <[u8; 32]>::try_from(verdict_id.as_bytes());
        let Some(event) = id.ok().and_then(|id| self.events.get_mut(&id)) else { return };
        event.came += 1;
        if event.came == 1 {
            self.answered += 1;
            self.latency.note(event.due_at, came);
            *self.verdicts.entry((action, code)).or_default() += 1;
        } else if event.came > event.sent {
            self.duplicates += 1;
        }
        self.distinct.add(value);
    }

    /// Returns how many events have no verdict yet.
    pub fn unanswered(&self) -> u64 {
        (self.events.len() as u64).saturating_sub(self.answered)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn each_event_is_answered_once_and_others_do_not_count() {
        let (mut awaiting, start) = (Awaiting::new().unwrap(), Instant::now());
        let id = |letter: u8| [letter; 32];
        let verdict = |letter: char| {
            format!(r#"{{"verdict_id":"{}","action":"allow","code":"ok","message":"m"}}"#, letter.to_string().repeat(32)).into_bytes()
        };
        [b'a', b'b', b'b', b'c'].into_iter().for_each(|letter| awaiting.expect(id(letter), start));
        for letter in ['a', 'b', 'b', 'a', 'z'] {
            awaiting.receive(&verdict(letter), start + Duration::from_millis(5));
        }
        awaiting.receive(b"no verdict", start);
        assert_eq!((awaiting.answered, awaiting.unanswered(), awaiting.duplicates), (2, 1, 1));
        assert_eq!(awaiting.verdicts, BTreeMap::from([(("allow".to_owned(), "ok".to_owned()), 2)]));
        assert_eq!(awaiting.distinct.digest().count(), 2);
        let Percentiles { p50, max, .. } = awaiting.latency.percentiles();
        assert!((4.9..5.1).contains(&p50) && (4.9..5.1).contains(&max), "{p50} {max}");
    }
}
