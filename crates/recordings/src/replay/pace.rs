//! When each record is due: a schedule that the records and the options alone make. A late send moves none that follow.

use std::time::Duration;

/// The bounds of `--speed`, as a multiple of the recorded speed.
const SPEED: (f64, f64) = (0.001, 1_000_000.0);
/// The bounds of `--rate`, in records per second.
const RATE: (f64, f64) = (0.001, 10_000_000.0);

/// How records are spaced.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Pace {
    /// As they were recorded, so many times as fast.
    Recorded(f64),
    /// So many a second.
    Rate(f64),
    /// Each as soon as the one before it is handed over.
    Max,
}

/// Reads a speed such as `10x`.
///
/// # Errors
/// The text is no speed.
pub fn read_speed(text: &str) -> Result<f64, String> {
    let speed = text.strip_suffix('x').and_then(|number| number.parse::<f64>().ok());
    within(speed, SPEED).ok_or_else(|| format!("it is no speed; write a number from {} to {} and x, such as 10x", SPEED.0, SPEED.1))
}

/// Reads a rate such as `500/s`, or `max`.
///
/// # Errors
/// The text is no rate.
pub fn read_rate(text: &str) -> Result<Pace, String> {
    if text == "max" {
        return Ok(Pace::Max);
    }
    let rate = text.strip_suffix("/s").and_then(|number| number.parse::<f64>().ok());
    let fix = || format!("it is no rate; write a number from {} to {} and /s, such as 500/s, or max", RATE.0, RATE.1);
    within(rate, RATE).map(Pace::Rate).ok_or_else(fix)
}

fn within(number: Option<f64>, (min, max): (f64, f64)) -> Option<f64> {
    number.filter(|number| (min..=max).contains(number))
}

/// The schedule of records in the order in which they come.
#[derive(Debug)]
pub struct Schedule {
    pace: Pace,
    /// How many sends were scheduled.
    sends: u64,
    /// Where the current round begins, from the start.
    base: Duration,
    /// When the last record is due, from the start.
    last: Duration,
    /// How many records of this round have a time.
    timed: u64,
    first_ms: Option<i64>,
    latest_ms: i64,
    /// Records with an earlier time than one before them. They are due with the record before them.
    pub backwards: u64,
    /// Records without a time where times set the pace. They are due with the record before them.
    pub timeless: u64,
}

impl Schedule {
    /// Returns a schedule of this pace, at its start.
    #[must_use]
    pub fn new(pace: Pace) -> Self {
        let (base, last) = (Duration::ZERO, Duration::ZERO);
        Self { pace, sends: 0, base, last, timed: 0, first_ms: None, latest_ms: 0, backwards: 0, timeless: 0 }
    }

    /// Returns when a send is due, from the start; `None` is as soon as it can be. Copies of one record, which follow each other, are due
    /// together where recorded times set the pace.
    pub fn next_send(&mut self, timestamp_ms: Option<i64>, is_copy: bool) -> Option<Duration> {
        self.sends += 1;
        match self.pace {
            Pace::Max => return None,
            Pace::Rate(rate) => self.last = Duration::from_secs_f64((self.sends - 1) as f64 / rate),
            Pace::Recorded(_) if is_copy => {}
            Pace::Recorded(speed) => self.follow(timestamp_ms, speed),
        }
        Some(self.last)
    }

    fn follow(&mut self, timestamp_ms: Option<i64>, speed: f64) {
        let Some(time_ms) = timestamp_ms else {
            self.timeless += 1;
            return;
        };
        self.timed += 1;
        let first_ms = *self.first_ms.get_or_insert(time_ms);
        if self.timed > 1 && time_ms < self.latest_ms {
            self.backwards += 1;
            return;
        }
        self.latest_ms = time_ms;
        let recorded_ms = u32::try_from(time_ms.saturating_sub(first_ms)).map_or_else(|_| time_ms.abs_diff(first_ms) as f64, f64::from);
        let after = Duration::try_from_secs_f64(recorded_ms / 1_000.0 / speed).unwrap_or(Duration::MAX);
        self.last = self.last.max(self.base.saturating_add(after));
    }

    /// Begins another round of the same records, as far behind the last record as records are apart on average.
    pub fn begin_round(&mut self) {
        let apart = (self.last - self.base).div_f64(self.timed.saturating_sub(1).max(1) as f64);
        self.last += apart;
        (self.base, self.first_ms, self.timed) = (self.last, None, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn due_ms(schedule: &mut Schedule, time_ms: i64) -> u128 {
        schedule.next_send(Some(time_ms), false).unwrap().as_millis()
    }

    #[test]
    fn recorded_spacing_is_kept_and_never_goes_back() {
        let mut schedule = Schedule::new(Pace::Recorded(10.0));
        let due: Vec<_> = [5_000, 6_000, 5_500, 5_900, 9_000].map(|time| due_ms(&mut schedule, time)).into();
        assert_eq!((due, schedule.backwards), (vec![0, 100, 100, 100, 400], 2));
        assert_eq!(schedule.next_send(None, false), Some(Duration::from_millis(400)));
        assert_eq!(schedule.timeless, 1);
        assert_eq!(schedule.next_send(Some(1), true), Some(Duration::from_millis(400)), "a copy is due with its record");
        assert_eq!(schedule.backwards, 2);
    }

    #[test]
    fn another_round_follows_as_records_follow() {
        let mut schedule = Schedule::new(Pace::Recorded(1.0));
        assert_eq!([0, 100, 200].map(|time| due_ms(&mut schedule, time)), [0, 100, 200]);
        schedule.begin_round();
        assert_eq!([0, 100, 200].map(|time| due_ms(&mut schedule, time)), [300, 400, 500]);
        let mut lone = Schedule::new(Pace::Recorded(1.0));
        due_ms(&mut lone, 7);
        lone.begin_round();
        assert_eq!(due_ms(&mut lone, 7), 0);
    }

    #[test]
    fn a_rate_counts_every_send() {
        let mut schedule = Schedule::new(Pace::Rate(4.0));
        let due = [false, true, false, true].map(|is_copy| schedule.next_send(None, is_copy).unwrap().as_millis());
        assert_eq!(due, [0, 250, 500, 750]);
        assert_eq!(Schedule::new(Pace::Max).next_send(Some(7), false), None);
    }

    #[test]
    fn only_speeds_and_rates_that_can_be_kept_are_taken() {
        assert_eq!((read_speed("10x"), read_speed("0.5x")), (Ok(10.0), Ok(0.5)));
        assert_eq!((read_rate("500/s"), read_rate("max")), (Ok(Pace::Rate(500.0)), Ok(Pace::Max)));
        for text in ["", "x", "10", "0x", "-1x", "NaNx", "infx", "1e9x"] {
            assert!(read_speed(text).unwrap_err().contains("such as 10x"), "{text}");
        }
        for text in ["", "/s", "10", "0/s", "-1/s", "NaN/s", "inf/s", "1e9/s", "MAX"] {
            assert!(read_rate(text).unwrap_err().contains("such as 500/s"), "{text}");
        }
    }
}
