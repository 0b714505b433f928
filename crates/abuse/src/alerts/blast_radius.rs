//! The blast radius: how many subjects a rule suspends, against how many there are.
//!
//! A provider may change its filter overnight, and half of all customers seem to be offenders. A rule that is about to suspend too many of
//! them stops, and a person has to look.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use tollgate_core::decide::signal::KeyKind;

use crate::subjects::{Counter, Subject};

/// As many subjects a rule may suspend in any case.
pub(crate) const SUSPENDED_FREE: u64 = 20;
/// One of so many active subjects a rule may suspend: 2 %.
pub(crate) const ACTIVE_PER_SUSPENDED: u64 = 50;

const MINUTE_MS: i64 = 60_000;

/// How many subjects had their latest signal, or their latest suspension, in each minute.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally(BTreeMap<i64, u64>);

/// Who is active, and whom the rules have suspended.
#[derive(Debug, Default)]
pub(crate) struct Census {
    active: FxHashMap<KeyKind, Tally>,
    suspended: FxHashMap<u32, Tally>,
}

/// Returns the latest firing by which a rule suspended a subject, in any of its groups: a subject counts once, however many groups of a
/// rule's dimensions it is found in.
pub(crate) fn suspended_ms(subject: &mut Subject<'_>, rule: u32) -> Option<i64> {
    let places = 0..subject.counters.len();
    let is_of_rule = |counter: &Counter<'_>| counter.rule == rule && counter.is_on_ladder;
    let mut latest_ms = None;
    for at in places {
        if subject.counters.get(at).is_some_and(is_of_rule) {
            let opened = subject.open(at).ok();
            latest_ms = latest_ms.max(opened.and_then(|opened| opened.episode.as_ref()?.suspended_ms));
        }
    }
    latest_ms
}

impl Tally {
    /// Moves a subject from the minute of one time to that of another, in milliseconds since the epoch.
    pub(crate) fn shift(&mut self, from_ms: Option<i64>, to_ms: Option<i64>) {
        let minutes = [from_ms, to_ms].map(|time_ms| time_ms.map(|time_ms| time_ms.div_euclid(MINUTE_MS)));
        let [from, to] = minutes;
        if from == to {
            return;
        }
        if let Some(from) = from
            && let Some(count) = self.0.get_mut(&from)
        {
            *count = count.saturating_sub(1);
            if *count == 0 {
                self.0.remove(&from);
            }
        }
        if let Some(to) = to {
            *self.0.entry(to).or_default() += 1;
        }
    }

    /// Returns how many subjects are in the minute of a time or behind it.
    fn since(&self, time_ms: i64) -> u64 {
        self.0.range(time_ms.div_euclid(MINUTE_MS)..).map(|(_, count)| count).sum()
    }

    /// Returns the beginning of the latest minute, in milliseconds since the epoch.
    fn latest_ms(&self) -> Option<i64> {
        self.0.last_key_value().map(|(minute, _)| minute.saturating_mul(MINUTE_MS))
    }
}

impl Census {
    /// Notes the latest signal of a subject, and the one before it.
    pub(crate) fn active(&mut self, kind: KeyKind, before_ms: Option<i64>, now_ms: Option<i64>) {
        self.active.entry(kind).or_default().shift(before_ms, now_ms);
    }

    /// Notes the latest suspension of a subject by the rule with a number, and the one before it.
    pub(crate) fn suspended(&mut self, rule: u32, before_ms: Option<i64>, now_ms: Option<i64>) {
        self.suspended.entry(rule).or_default().shift(before_ms, now_ms);
    }

    /// Forgets whom a rule has suspended, and returns the end of the latest minute that it did so in, in milliseconds since the epoch.
    pub(crate) fn forget(&mut self, rule: u32) -> Option<i64> {
        let latest_ms = self.suspended.remove(&rule)?.latest_ms()?;
        Some(latest_ms.saturating_add(MINUTE_MS))
    }

    /// Returns whether a rule has suspended too many since a time, in milliseconds since the epoch.
    pub(crate) fn is_too_much(&self, rule: u32, kind: KeyKind, since_ms: i64) -> bool {
        let suspended = self.suspended.get(&rule).map_or(0, |tally| tally.since(since_ms));
        // Counting the active ones takes longer, and most often it is not needed.
        suspended > SUSPENDED_FREE
            && suspended.saturating_mul(ACTIVE_PER_SUSPENDED) > self.active.get(&kind).map_or(0, |tally| tally.since(since_ms))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn census(active: i64, suspended: i64) -> Census {
        let mut census = Census::default();
        (0..active).for_each(|_| census.active(KeyKind::User, None, Some(0)));
        (0..suspended).for_each(|_| census.suspended(7, None, Some(0)));
        census
    }

    fn is_too_much(active: i64, suspended: i64) -> bool {
        census(active, suspended).is_too_much(7, KeyKind::User, 0)
    }

    #[test]
    fn a_few_are_never_too_many_and_more_are_measured_by_all() {
        assert!(!is_too_much(20, 20), "20 of 20");
        assert!(is_too_much(21, 21));
        assert!(!is_too_much(1_050, 21), "exactly 2 %");
        assert!(is_too_much(1_049, 21));
    }

    #[test]
    fn who_is_counted_again_is_counted_once_and_what_is_long_ago_is_not() {
        let mut census = census(0, 30);
        census.suspended(7, Some(0), Some(120_000));
        assert!(census.is_too_much(7, KeyKind::User, 0) && !census.is_too_much(7, KeyKind::User, 60_000));
        assert_eq!((census.forget(7), census.forget(7)), (Some(180_000), None));
        assert!(!census.is_too_much(7, KeyKind::User, 0));
    }
}
