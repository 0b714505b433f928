//! Shares out the time of a report among its parts. What a part leaves over goes to the parts behind it, so that together they never take
//! more.

use std::time::{Duration, Instant};

/// A time that is shared out among parts.
#[derive(Debug, Clone, Copy)]
pub struct Budget {
    end: Instant,
    /// The weight of the parts that are still to come.
    weight_left: u32,
}

impl Budget {
    /// Returns a budget of this time from now on, for parts of this total weight.
    pub fn new(time: Duration, weight: u32) -> Self {
        Self { end: Instant::now() + time, weight_left: weight }
    }

    /// Takes the share of the next part, which has this weight, and returns when that part has to end.
    pub fn take(&mut self, weight: u32) -> Instant {
        let now = Instant::now();
        let part = part_of(self.end.saturating_duration_since(now), weight, self.weight_left);
        self.weight_left = self.weight_left.saturating_sub(weight);
        now + part
    }
}

/// Returns the share of `left` that `weight` of `weight_left` gets.
fn part_of(left: Duration, weight: u32, weight_left: u32) -> Duration {
    if weight >= weight_left { left } else { left.mul_f64(f64::from(weight) / f64::from(weight_left)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_gets_its_share_of_what_is_left_and_the_last_one_all_of_it() {
        let seconds = Duration::from_secs;
        assert_eq!(part_of(seconds(900), 3, 9), seconds(300));
        assert_eq!(part_of(seconds(800), 2, 6).as_secs(), 266);
        assert_eq!(
            [part_of(seconds(50), 4, 4), part_of(seconds(50), 4, 1), part_of(seconds(0), 1, 2)],
            [seconds(50), seconds(50), seconds(0)]
        );
    }

    #[test]
    fn what_a_part_leaves_goes_to_those_behind_it_and_the_end_stays() {
        let start = Instant::now();
        let mut budget = Budget::new(Duration::from_secs(100), 4);
        let first = budget.take(1).duration_since(start);
        // It took no time at all: a third of 100 seconds is next, not a third of 75.
        let second = budget.take(1).duration_since(start);
        let last = budget.take(2).duration_since(start);
        // Each may be later by what has passed since the beginning.
        let passed = start.elapsed();
        for (end, wanted) in [(first, 100.0 / 4.0), (second, 100.0 / 3.0), (last, 100.0)] {
            assert!((wanted - 0.1..wanted + 0.1 + passed.as_secs_f64()).contains(&end.as_secs_f64()), "{end:?} instead of {wanted} s");
        }
    }
}
