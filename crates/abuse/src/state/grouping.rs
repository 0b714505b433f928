//! Grouping: a rule that raises very many alerts in a minute raises one for the rest of them. Nothing is muted: they are counted in it.

use tollgate_core::engine::wire::layout;

/// As many alerts a rule raises in a minute, one by one.
pub(crate) const ALERTS_PER_MINUTE_MAX: u32 = 20;

pub(crate) const MINUTE_MS: i64 = 60_000;

/// The alerts of one rule in the current minute of the partition's time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Grouping {
    /// The minute, since the epoch.
    minute: i64,
    /// How many alerts it has raised.
    raised: u32,
    /// How many it has left to the grouped one.
    grouped: u32,
}

/// A minute that is over, and how many alerts its grouped one stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Group {
    /// The beginning of the minute, in milliseconds since the epoch.
    pub from_ms: i64,
    /// How many alerts it stands for.
    pub alerts: u32,
}

impl Grouping {
    /// Returns the group of the minute before, if there is one and it is over by `now_ms`.
    pub(crate) fn flush(&mut self, now_ms: i64) -> Option<Group> {
        if self.grouped == 0 || now_ms.div_euclid(MINUTE_MS) <= self.minute {
            return None;
        }
        let group = Group { from_ms: self.minute.saturating_mul(MINUTE_MS), alerts: self.grouped };
        self.grouped = 0;
        Some(group)
    }

    /// Counts an alert, and returns whether it is raised by itself. What is over has to be flushed before.
    pub(crate) fn raises(&mut self, now_ms: i64) -> bool {
        let minute = now_ms.div_euclid(MINUTE_MS);
        // While a source has not told its time, that of the signals goes back and forth.
        if minute > self.minute {
            (self.minute, self.raised) = (minute, 0);
        }
        let is_raised = self.raised < ALERTS_PER_MINUTE_MAX;
        let count = if is_raised { &mut self.raised } else { &mut self.grouped };
        *count = count.saturating_add(1);
        is_raised
    }

    /// Returns when a grouped alert is due, in milliseconds since the epoch.
    pub(crate) fn due_ms(&self) -> Option<i64> {
        (self.grouped > 0).then(|| self.minute.saturating_add(1).saturating_mul(MINUTE_MS))
    }
}

layout! {
    Grouping { minute, raised, grouped }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beyond_so_many_a_minute_they_are_grouped() {
        let mut grouping = Grouping::default();
        let raised = (0..50).filter(|at| grouping.raises(60_000 + at)).count();
        assert_eq!((raised, grouping.due_ms(), grouping.flush(119_999)), (20, Some(120_000), None));
        assert_eq!(grouping.flush(120_000), Some(Group { from_ms: 60_000, alerts: 30 }));
        assert_eq!((grouping.flush(120_000), grouping.due_ms(), grouping.raises(120_000)), (None, None, true));
    }
}
