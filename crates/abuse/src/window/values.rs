//! The values of a counter that counts distinct ones.

use rustc_hash::FxHashMap;

use tollgate_core::engine::wire::{Input, Malformed};
use tollgate_json::digest::{Digest, Fingerprint};

use super::timed_signals::{Kind, TimedSignals};

/// The longest text that stands for itself. A longer one stands as the first half of its digest.
const TEXT_BYTES_MAX: usize = 15;
const BYTES: usize = TEXT_BYTES_MAX + 1;

/// With more signals that count for the next firing, a value that is repeated is kept less exactly.
const COUNTING_MAX: usize = 64;

/// A value, so short that it can be kept and compared by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Value {
    length: u8,
    bytes: [u8; BYTES],
}

impl Value {
    /// Returns a subject or an argument's digest as a value.
    pub(crate) fn of_digest(digest: &Digest) -> Self {
        Self::of_bytes(digest.fingerprint().as_bytes())
    }

    /// Returns a text as a value.
    pub(crate) fn of_text(text: &str) -> Self {
        if text.len() <= TEXT_BYTES_MAX { Self::of_bytes(text.as_bytes()) } else { Self::of_bytes(Fingerprint::of(text).as_bytes()) }
    }

    fn of_bytes(of: &[u8]) -> Self {
        let mut bytes = [0; BYTES];
        bytes.iter_mut().zip(of).for_each(|(place, byte)| *place = *byte);
        Self { length: of.len().min(BYTES) as u8, bytes }
    }

    fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.length)).unwrap_or_default()
    }
}

/// Distinct values count.
impl Kind for Value {
    type Tally = FxHashMap<Self, usize>;

    fn enter(self, tally: &mut Self::Tally) {
        *tally.entry(self).or_default() += 1;
    }

    fn leave(self, tally: &mut Self::Tally) {
        if let Some(count) = tally.get_mut(&self) {
            *count -= 1;
            if *count == 0 {
                tally.remove(&self);
            }
        }
    }

    fn count(tally: &Self::Tally) -> u64 {
        tally.len() as u64
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.push(self.length);
        out.extend_from_slice(self.as_bytes());
    }

    fn read(input: &mut Input<'_>) -> Result<Self, Malformed> {
        match input.sized()? {
            bytes if bytes.len() <= BYTES => Ok(Self::of_bytes(bytes)),
            _ => Err(Malformed::Invalid("a counted value")),
        }
    }
}

impl TimedSignals<Value> {
    /// Drops the times of a value that no window needs, so that a value that is repeated takes no more room than one that is not. Of those before
    /// `certain_ms`, before which no signal can come any more, a window that ends later needs the latest alone.
    pub(super) fn thin(&mut self, value: &Value, certain_ms: i64, timespan_ms: i64) {
        let is_old = |(time_ms, other): &(i64, Value)| *time_ms < certain_ms && other == value;
        let mut old = self.iter().filter(|signal| is_old(signal)).count();
        if old > 1 {
            self.retain(|signal| {
                let is_old = is_old(signal);
                old -= usize::from(is_old);
                !is_old || old == 0
            });
        }
        if self.counting().len() > COUNTING_MAX {
            self.thin_in_between(value, timespan_ms);
        }
    }

    /// Drops the times of a value that lie between two others less than a timespan apart: whichever window of this length has such a time in it,
    /// has one of the two in it too. A firing that comes to be in between, by a signal that comes late, may then be missed.
    fn thin_in_between(&mut self, value: &Value, timespan_ms: i64) {
        let times: Vec<i64> = self.counting().iter().filter(|(_, other)| other == value).map(|(time_ms, _)| *time_ms).collect();
        let mut needed = Vec::with_capacity(times.len());
        for (at, time_ms) in times.iter().enumerate() {
            let (before, behind) = (needed.last().copied(), times.get(at + 1).copied());
            let is_needed = before.zip(behind).is_none_or(|(before, behind): (i64, i64)| behind.saturating_sub(before) >= timespan_ms);
            if is_needed {
                needed.push(*time_ms);
            }
        }
        let (mut needed, mut used) = (needed.into_iter().peekable(), self.used());
        self.retain(|(time_ms, other)| {
            let is_used = used > 0;
            used = used.saturating_sub(1);
            is_used || other != value || needed.next_if_eq(time_ms).is_some()
        });
    }
}

#[cfg(test)]
mod tests {
    use super::super::timed_signals::Threshold;
    use super::*;

    fn threshold(gte: u64) -> Threshold {
        Threshold { gte, timespan_ms: 100 }
    }

    #[test]
    fn what_is_repeated_takes_no_room() {
        for (lag_ms, most) in [(10, 13), (1_000, COUNTING_MAX)] {
            let mut kept = TimedSignals::default();
            for time_ms in 0..1_000 {
                let value = Value::of_text("a");
                kept.add(time_ms, value, threshold(2));
                kept.thin(&value, time_ms - lag_ms, 100);
                assert!(kept.counting().len() <= most, "{}", kept.counting().len());
            }
        }
    }

    #[test]
    fn long_texts_are_told_apart() {
        let long = "x".repeat(40);
        assert_ne!(Value::of_text(&long), Value::of_text(&format!("{long}y")));
        assert_ne!(Value::of_text("xxxxxxxxxxxxxxx"), Value::of_text("xxxxxxxxxxxxxxxx"));
    }
}
