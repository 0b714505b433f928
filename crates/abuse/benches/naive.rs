//! The fold as one would write it in an afternoon: a map of subjects, and a vector of times for each rule. It has no clock, no evidence, no
//! memory of what was applied, and no limit.

use std::collections::HashMap;

use tollgate_core::decide::signal::Point;
use tollgate_json::digest::Digest;

/// What the prototype remembers of a subject: the times of each rule, and when it fired last.
#[derive(Default)]
struct Subject {
    times: [Vec<i64>; 4],
    fired: [Option<i64>; 4],
}

/// The prototype.
#[derive(Default)]
pub struct Naive {
    subjects: HashMap<Digest, Subject>,
    pub fired: usize,
}

/// The threshold and the timespan of each rule, in milliseconds. The first two count safety stops, the others denials.
const RULES: [(usize, i64); 4] = [(5, 3_600_000), (15, 86_400_000), (4, 900_000), (5, 600_000)];

impl Naive {
    pub fn fold(&mut self, point: &Point<'_>) {
        let subject = self.subjects.entry(point.subject.hash).or_default();
        let rules = if point.kind.as_str() == "safety_stop" { 0..2 } else { 2..4 };
        for rule in rules {
            let (threshold, timespan_ms) = RULES[rule];
            let times = &mut subject.times[rule];
            times.retain(|time_ms| point.time_ms - time_ms < timespan_ms);
            times.push(point.time_ms);
            if times.len() >= threshold {
                times.clear();
                subject.fired[rule] = Some(point.time_ms);
                self.fired += 1;
            }
        }
    }
}
