//! Counts of verdicts over a sliding window, by second.

use std::collections::{BTreeMap, HashMap, VecDeque};

use serde::{Deserialize, Serialize};

/// The length of the window in seconds.
pub(super) const WINDOW_SECONDS: u64 = 60;
/// How many threads are remembered of one second, and how many codes. Those that come later in it are counted and not named.
const NAMES_MAX: usize = 10_000;

/// The actions, in the order in which they are shown.
pub(super) const ACTIONS: [&str; 5] = ["allow", "warn", "block", "halt", "suppress"];

/// What is counted of a verdict.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Fields {
    thread_id: String,
    action: String,
    code: String,
}

/// What one thread got.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(super) struct ThreadCounts {
    /// Verdicts that stop something: block, halt and suppress.
    pub(super) stops: u64,
    pub(super) warnings: u64,
    /// The code of the last of them.
    pub(super) code: String,
}

/// The counts of one second.
#[derive(Debug, Default)]
struct Second {
    at: u64,
    actions: [u64; ACTIONS.len()],
    codes: HashMap<String, u64>,
    threads: HashMap<String, ThreadCounts>,
}

/// The counts of the window.
#[derive(Debug)]
pub(super) struct Tally {
    /// The second in which counting began.
    since: u64,
    seconds: VecDeque<Second>,
}

/// The sums over the window.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Sums {
    /// How long the window is as yet, in seconds.
    pub(super) window: u64,
    pub(super) actions: [u64; ACTIONS.len()],
    /// The codes that are not plain allows, the most frequent first.
    pub(super) codes: Vec<(String, u64)>,
    /// The threads with warnings or stops, the worst first.
    pub(super) threads: Vec<(String, ThreadCounts)>,
}

impl Tally {
    /// Returns an empty tally that counts from this second on.
    pub(super) fn new(now: u64) -> Self {
        Self { since: now, seconds: VecDeque::new() }
    }

    /// Counts a verdict that came in this second.
    pub(super) fn add(&mut self, now: u64, verdict: &[u8]) {
        let fields: Fields = serde_json::from_slice(verdict).unwrap_or_default();
        let Some(action) = ACTIONS.iter().position(|action| *action == fields.action) else { return };
        self.forget(now);
        if self.seconds.back().is_none_or(|second| second.at != now) {
            self.seconds.push_back(Second { at: now, ..Second::default() });
        }
        let Some(second) = self.seconds.back_mut() else { return };
        if let Some(count) = second.actions.get_mut(action) {
            *count += 1;
        }
        if action == 0 {
            return;
        }
        if second.codes.len() < NAMES_MAX || second.codes.contains_key(&fields.code) {
            *second.codes.entry(fields.code.clone()).or_default() += 1;
        }
        if second.threads.len() < NAMES_MAX || second.threads.contains_key(&fields.thread_id) {
            let thread = second.threads.entry(fields.thread_id).or_default();
            *(if action == 1 { &mut thread.warnings } else { &mut thread.stops }) += 1;
            thread.code = fields.code;
        }
    }

    /// Returns the sums, with so many codes and threads at most.
    pub(super) fn sums(&mut self, now: u64, names: usize) -> Sums {
        self.forget(now);
        let mut sums = Sums { window: now.saturating_sub(self.since).clamp(1, WINDOW_SECONDS), ..Sums::default() };
        let (mut codes, mut threads) = (BTreeMap::<&str, u64>::new(), BTreeMap::<&str, ThreadCounts>::new());
        for second in &self.seconds {
            sums.actions.iter_mut().zip(second.actions).for_each(|(sum, count)| *sum += count);
            second.codes.iter().for_each(|(code, count)| *codes.entry(code).or_default() += count);
            for (id, counts) in &second.threads {
                let thread = threads.entry(id).or_default();
                thread.stops += counts.stops;
                thread.warnings += counts.warnings;
                thread.code.clone_from(&counts.code);
            }
        }
        sums.codes = codes.into_iter().map(|(code, count)| (code.to_owned(), count)).collect();
        sums.codes.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        sums.codes.truncate(names);
        sums.threads = threads.into_iter().map(|(id, counts)| (id.to_owned(), counts)).collect();
        sums.threads.sort_by_key(|(_, counts)| std::cmp::Reverse((counts.stops, counts.warnings)));
        sums.threads.truncate(names);
        sums
    }

    fn forget(&mut self, now: u64) {
        while self.seconds.front().is_some_and(|second| second.at + WINDOW_SECONDS <= now) {
            self.seconds.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn verdict(thread: &str, action: &str, code: &str) -> Vec<u8> {
        json!({"thread_id": thread, "action": action, "code": code}).to_string().into_bytes()
    }

    #[test]
    fn the_window_slides() {
        let mut tally = Tally::new(100);
        tally.add(100, &verdict("a", "allow", "allow"));
        tally.add(101, &verdict("a", "block", "x"));
        tally.add(150, &verdict("b", "warn", "y"));
        tally.add(150, &verdict("b", "warn", "y"));
        tally.add(150, &verdict("c", "halt", "z"));
        tally.add(150, b"no verdict");
        let sums = tally.sums(150, 10);
        assert_eq!((sums.window, sums.actions), (50, [1, 2, 1, 1, 0]));
        assert_eq!(sums.codes, [("y".to_owned(), 2), ("x".to_owned(), 1), ("z".to_owned(), 1)]);
        assert_eq!(sums.threads.iter().map(|(id, _)| id.as_str()).collect::<Vec<_>>(), ["a", "c", "b"]);
        assert_eq!(sums.threads[2].1, ThreadCounts { stops: 0, warnings: 2, code: "y".to_owned() });
        // The first two seconds leave the window.
        let sums = tally.sums(161, 1);
        assert_eq!((sums.window, sums.actions, sums.threads.len(), sums.codes.len()), (60, [0, 2, 0, 1, 0], 1, 1));
        assert_eq!(tally.sums(1_000, 10).actions, [0; 5]);
    }
}
