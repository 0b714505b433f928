//! From an event to its alert, beside other traffic: new users offend at a steady pace, each against one rule that fires at once.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, ensure};
use rdkafka::Offset;
use rdkafka::message::Message as _;
use serde::Serialize;
use serde_json::Value;

use super::offence::Callers;
use super::{AbuseFindings, RateMeasurement, settings};
use crate::{Bed, Reader, Session};
use tollgate_config::settings::{KafkaSettings, TopicSettings};
use tollgate_testkit::{Mix, MixSettings};

/// How often a user offends.
const INTERVAL: Duration = Duration::from_millis(25);
/// How long alerts are waited for once nobody offends any more.
const WAIT_MAX: Duration = Duration::from_secs(10);

/// How long something took, as often as it was measured.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Delays {
    /// How often it was measured.
    pub count: usize,
    /// How often it did not come.
    pub missed: usize,
    /// Half came sooner, in milliseconds.
    pub p50_ms: f64,
    /// 99 % came sooner; those that did not come count as the slowest.
    pub p99_ms: f64,
    /// The slowest that came.
    pub max_ms: f64,
}

impl Delays {
    /// Returns the spread of these milliseconds; `None` if nothing came.
    pub(crate) fn of(mut delays: Vec<f64>, missed: usize) -> Option<Self> {
        delays.sort_by(f64::total_cmp);
        let count = delays.len() + missed;
        let max_ms = *delays.last()?;
        let at = |share: f64| delays.get((count as f64 * share).ceil() as usize - 1).copied().unwrap_or(f64::INFINITY);
        Some(Self { count, missed, p50_ms: at(0.5), p99_ms: at(0.99), max_ms })
    }
}

impl Session {
    /// Searches the peak of both stages, if there is no rate, and measures alerts at half of it: with the usual traffic, and with traffic
    /// of which one user has half.
    pub(super) fn alerted(&self, found: &mut AbuseFindings, rate: Option<f64>) -> Result<()> {
        let (subject, usual) = (settings::counting(false), self.mix_settings());
        let mut at = rate;
        for settings in [usual, MixSettings { has_hot_user: true, ..usual }] {
            let beside = self.with_traffic(&subject, self.plan.partitions, Mix::new(settings), |bed| {
                let half = match at {
                    Some(rate) => rate,
                    None => self.find_peak(bed)?.per_second / 2.0,
                };
                at = Some(half);
                self.beside(bed, half)
            })?;
            let (alerts, verdicts) = (beside.alerts.p99_ms, beside.phase.tally.latency_ms.p99);
            self.progress
                .say(&format!("{:.0}/s: p99 to the verdict {verdicts:.1} ms, to the alert {alerts:.1} ms", beside.phase.asked_per_second));
            *(if settings.has_hot_user { &mut found.hot } else { &mut found.usual }) = Some(beside);
        }
        Ok(())
    }

    fn beside(&self, bed: &mut Bed<'_>, rate: f64) -> Result<RateMeasurement> {
        let (kafka, topics, is_over) = (&self.kafka, bed.load.topics, AtomicBool::new(false));
        let warm_up = self.plan.times.warm_up;
        std::thread::scope(|threads| {
            let offending = threads.spawn(|| offend(kafka, topics, warm_up, &is_over));
            let observed = bed.run(rate, self.plan.times);
            is_over.store(true, Ordering::Relaxed);
            let alerts = offending.join().map_err(|_| anyhow!("a thread of the benchmark panicked"))??;
            Ok(RateMeasurement { phase: observed?.phase, alerts })
        })
    }
}

/// Has users offend until it is over, and waits for the alert on each. Those of the warm-up do not count.
fn offend(kafka: &KafkaSettings, topics: &TopicSettings, warm_up: Duration, is_over: &AtomicBool) -> Result<Delays> {
    let (callers, alerts) = (Callers::new(kafka, &topics.events)?, Reader::new(kafka, &topics.alerts, Offset::End)?);
    let (start, mut number, mut due) = (Instant::now(), 0_usize, Instant::now());
    let (mut sent, mut delays, mut ended) = (HashMap::<String, Instant>::new(), Vec::new(), None);
    loop {
        if is_over.load(Ordering::Relaxed) {
            let waited = ended.get_or_insert_with(Instant::now).elapsed();
            if sent.is_empty() || waited > WAIT_MAX {
                break;
            }
        } else if Instant::now() >= due {
            due += INTERVAL;
            let user = format!("offender-{number}");
            callers.offend(&user, &user, number, None)?;
            if start.elapsed() >= warm_up {
                sent.insert(user, Instant::now());
            }
            number += 1;
        }
        callers.poll();
        let mut wait = Duration::from_millis(1);
        while let Some(alert) = alerts.next(wait) {
            wait = Duration::ZERO;
            let alert: Value = serde_json::from_slice(alert.payload().unwrap_or_default()).unwrap_or_default();
            let event = alert.pointer("/evidence/0/event_id").and_then(Value::as_str).unwrap_or_default();
            delays.extend(sent.remove(event).map(|sent| sent.elapsed().as_secs_f64() * 1e3));
        }
    }
    ensure!(number > 0, "nobody has offended");
    Delays::of(delays, sent.len()).ok_or_else(|| anyhow!("no alert came on {} offenders", sent.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_did_not_come_is_slower_than_all_that_did() {
        let found = Delays::of((1..=99).map(f64::from).collect(), 1).unwrap();
        assert_eq!((found.count, found.p50_ms, found.p99_ms, found.max_ms), (100, 50.0, 99.0, 99.0));
        assert_eq!(Delays::of(vec![2.0, 1.0], 1).unwrap().p99_ms, f64::INFINITY);
        assert_eq!(Delays::of(Vec::new(), 3), None);
    }
}
