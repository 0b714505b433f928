//! Searches the highest rate that is sustained, and defines what that means.

use anyhow::Result;
use serde::Serialize;

use super::Phase;

/// The share of what was asked that has to be achieved.
const ACHIEVED_MIN: f64 = 0.99;
/// Lag grows if the median latency of the last third of a phase is above that of the first by both: this factor, and these milliseconds.
const GROWTH_MAX: f64 = 2.0;
const GROWTH_MS: f64 = 50.0;
/// The factor from one rate to the next while neither end is known.
const STEP: f64 = 1.4;

/// Why a rate is not sustained.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Shortfall {
    /// Less than 99 % of what was asked was sent or answered.
    Rate,
    /// Verdicts took longer and longer.
    GrowingLag,
    /// Verdicts did not come in time, or events were not taken.
    Misses,
}

/// Returns whether a phase shows that its rate is sustained.
pub fn sustained(phase: &Phase) -> Result<(), Shortfall> {
    let [first, last] = phase.tally.medians_ms;
    if phase.tally.misses + phase.refused > 0 {
        return Err(Shortfall::Misses);
    }
    if phase.achieved_per_second.min(phase.sent_per_second) < phase.asked_per_second * ACHIEVED_MIN {
        return Err(Shortfall::Rate);
    }
    if last > first * GROWTH_MAX + GROWTH_MS { Err(Shortfall::GrowingLag) } else { Ok(()) }
}

/// How to search.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Search {
    /// The first rate that is tried.
    pub start: f64,
    /// The search ends when the lowest rate that is not sustained is at most this many times the highest that is.
    pub precision: f64,
    /// How often a rate is tried before it counts as not sustained.
    pub attempts: usize,
    /// The most rates that are tried.
    pub probes_max: usize,
}

impl Search {
    /// Searches with `probe`, which says whether a rate is sustained, until the answer is close enough or `is_late`. Returns the highest
    /// rate that was sustained twice, since a fresh worker can be lucky once. `None` if none was.
    pub fn run(&self, mut probe: impl FnMut(f64) -> Result<bool>, is_late: impl Fn() -> bool) -> Result<Option<f64>> {
        let (mut sustained, mut exceeded): (Option<f64>, Option<f64>) = (None, None);
        let mut attempt = |rate| -> Result<bool> {
            for _ in 0..self.attempts.max(1) {
                if probe(rate)? {
                    return Ok(true);
                }
                if is_late() {
                    break;
                }
            }
            Ok(false)
        };
        for _ in 0..self.probes_max {
            if is_late() {
                break;
            }
            let rate = match (sustained, exceeded) {
                (None, None) => self.start,
                (Some(low), None) => low * STEP,
                (None, Some(high)) => high / STEP,
                (Some(low), Some(high)) if high <= low * self.precision => {
                    if attempt(low)? {
                        break;
                    }
                    (sustained, exceeded) = (None, Some(low));
                    continue;
                }
                (Some(low), Some(high)) => (low * high).sqrt(),
            };
            if attempt(rate)? { sustained = Some(rate) } else { exceeded = Some(rate) }
        }
        Ok(sustained)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Arrivals, Schedule};
    use std::time::Duration;

    const SEARCH: Search = Search { start: 4_000.0, precision: 1.05, attempts: 1, probes_max: 30 };

    /// Simulates a server that takes a millisecond and so many events a second, one after the other, and fails for a while.
    fn phase(capacity: f64, rate: f64) -> Phase {
        let schedule = Schedule::new(rate, Duration::from_secs(1), Duration::from_secs(3));
        let mut arrivals = Arrivals::new(schedule, 0);
        let mut free = 0.0_f64;
        for number in 0..schedule.count {
            free = free.max(schedule.due_time(number).as_secs_f64()) + 1.0 / capacity;
            arrivals.observe(number as u64, Duration::from_secs_f64(free + 0.001));
        }
        let tally = arrivals.tally(&vec![true; schedule.count], Duration::from_secs(2));
        Phase {
            asked_per_second: rate,
            sent_per_second: rate,
            achieved_per_second: tally.verdicts_per_second,
            bytes_per_event: 1.0,
            refused: 0,
            tally,
            cpu_us_per_event: None,
            usage: None,
            resident_bytes_max: 0,
        }
    }

    #[test]
    fn the_peak_of_a_server_is_found_from_below_and_from_above() {
        for capacity in [900.0, 5_000.0, 23_456.0, 61_000.0] {
            let peak = SEARCH.run(|rate| Ok(sustained(&phase(capacity, rate)).is_ok()), || false).unwrap().unwrap();
            assert!(peak <= capacity * 1.02 && peak > capacity / 1.06, "{peak} of {capacity}");
        }
    }

    #[test]
    fn a_rate_that_was_sustained_by_luck_is_no_peak() {
        let mut probes = 0;
        let lucky = |rate| {
            probes += 1;
            Ok(probes == 1 || rate <= 2_500.0)
        };
        let peak = SEARCH.run(lucky, || false).unwrap().unwrap();
        assert!((2_500.0 / 1.06..=2_500.0).contains(&peak), "{peak}");
    }

    #[test]
    fn what_is_not_sustained_says_why() {
        assert_eq!(sustained(&phase(5_000.0, 4_000.0)), Ok(()));
        assert_eq!(sustained(&phase(5_000.0, 5_500.0)), Err(Shortfall::Rate));
        assert_eq!(sustained(&phase(5_000.0, 20_000.0)), Err(Shortfall::Misses));
        let mut growing = phase(5_000.0, 4_000.0);
        growing.tally.medians_ms = [1.0, 60.0];
        assert_eq!(sustained(&growing), Err(Shortfall::GrowingLag));
        let refused = Phase { refused: 1, ..phase(5_000.0, 4_000.0) };
        assert_eq!(sustained(&refused), Err(Shortfall::Misses));
    }

    #[test]
    fn a_rate_that_fails_once_gets_another_attempt_and_a_dead_server_has_no_peak() {
        let mut probes = 0;
        let search = Search { attempts: 2, ..SEARCH };
        let fickle = |rate| {
            probes += 1;
            Ok(rate < 7_000.0 && probes % 2 == 0)
        };
        assert!(search.run(fickle, || false).unwrap().unwrap() > 6_500.0);
        assert_eq!(SEARCH.run(|_| Ok(false), || false).unwrap(), None);
        assert!(SEARCH.run(|_| anyhow::bail!("gone"), || false).is_err());
    }

    #[test]
    fn a_search_that_begins_near_the_peak_is_short_and_one_that_is_late_gives_what_it_has() {
        let probes = std::cell::Cell::new(0);
        let count = |capacity: f64, rate: f64| {
            probes.set(probes.get() + 1);
            Ok(rate <= capacity)
        };
        let search = Search { precision: 1.1, attempts: 2, ..SEARCH };
        for capacity in [2_500.0, 4_100.0, 6_900.0] {
            probes.set(0);
            let peak = search.run(|rate| count(capacity, rate), || false).unwrap().unwrap();
            assert!(peak > capacity / 1.1 && peak <= capacity && probes.get() <= 9, "{peak} of {capacity}: {} probes", probes.get());
        }
        probes.set(0);
        let peak = search.run(|rate| count(60_000.0, rate), || probes.get() >= 3).unwrap().unwrap();
        assert_eq!((peak.round(), probes.get()), (7_840.0, 3));
    }
}
