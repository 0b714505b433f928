//! Whose beat has stood still for too long. It reads no clock: the caller says how much time counts.

use std::collections::BTreeMap;
use std::time::Duration;

use super::beat::{Beat, Beats};

/// By how much less the time counts of a worker that waits for its first assignment: no living worker beats while a rebalance lasts.
const UNASSIGNED_DIVISOR: u32 = 3;

/// What one worker knows of the beats of its peers.
#[derive(Debug)]
pub(super) struct Silence {
    worker: String,
    max: Duration,
    own: Vec<i64>,
    peers: BTreeMap<String, Peer>,
}

#[derive(Debug, Default, Clone, PartialEq, Eq)]
struct Peer {
    /// The moments that stand on its partitions.
    moments: Vec<i64>,
    /// For how long they have stood there.
    silent: Duration,
}

impl Silence {
    /// Returns what a worker of this name knows at first, which is nothing.
    pub(super) fn new(worker: &str, max: Duration) -> Self {
        Self { worker: worker.to_owned(), max, own: Vec::new(), peers: BTreeMap::new() }
    }

    /// Takes the beats as they stand `since` after the last time, and returns those of workers to be taken for dead. The workers that live
    /// act in the order of their names, a quarter of the time one after the other, so that mostly one of them does. `is_assigned`: whether this
    /// worker has an assignment of the group, which may be empty.
    pub(super) fn observe(&mut self, beats: &Beats, is_assigned: bool, since: Duration) -> Vec<Beat> {
        let mut moments = BTreeMap::<&str, Vec<i64>>::new();
        beats.0.iter().for_each(|(_, beat)| moments.entry(&beat.worker).or_default().push(beat.moment_ms));
        let own = moments.remove(self.worker.as_str()).unwrap_or_default();
        // Where not even the own beat comes through, a rebalance holds all of them up. A worker that waits for its first assignment waits for
        // the end of a rebalance too, which a dead worker may hold up: its time counts for less.
        let counted = match (own.is_empty(), own != self.own) {
            (true, _) if is_assigned => since,
            (true, _) => since / UNASSIGNED_DIVISOR,
            (false, true) => since,
            (false, false) => Duration::ZERO,
        };
        self.own = own;
        self.peers.retain(|worker, _| moments.contains_key(worker.as_str()));
        for (worker, moments) in moments {
            let peer = self.peers.entry(worker.to_owned()).or_default();
            if peer.moments != moments {
                *peer = Peer { moments, silent: Duration::ZERO };
            } else {
                peer.silent += counted;
            }
        }
        let before_us = self.peers.iter().filter(|(worker, peer)| **worker < self.worker && peer.silent < self.max / 2).count();
        let max = self.max + self.max / 4 * u32::try_from(before_us).unwrap_or(u32::MAX).min(8);
        let mut dead = Vec::new();
        for (worker, peer) in self.peers.iter_mut().filter(|(_, peer)| peer.silent >= max) {
            // If that does not help, it is tried again.
            peer.silent = Duration::ZERO;
            dead.extend(
                beats.0.iter().map(|(_, beat)| beat).filter(|beat| beat.worker == *worker).max_by_key(|beat| beat.moment_ms).cloned(),
            );
        }
        dead
    }
}

#[cfg(test)]
mod tests {
    use super::super::interval;
    use super::*;
    use crate::kafka::SILENCE_MAX;
    use tollgate_core::event::record::Partition;

    const STEP: Duration = Duration::from_secs(1);
    const MAX: Duration = Duration::from_secs(4);

    /// The beats of workers, each on a partition of its own.
    fn beats(of: &[(&str, i64)]) -> Beats {
        let beat = |(number, (worker, moment_ms)): (usize, &(&str, i64))| {
            (Partition(number as i32), Beat { moment_ms: *moment_ms, members: 1, worker: (*worker).to_owned() })
        };
        Beats(of.iter().enumerate().map(beat).collect())
    }

    /// Returns the steps at which a worker takes `dead` for dead, whose beat stands still from the beginning.
    fn steps(worker: &str, count: i64, others: impl Fn(i64) -> Vec<(&'static str, i64)>) -> Vec<(i64, String)> {
        let mut silence = Silence::new(worker, MAX);
        let dead = |step: i64| {
            let found = silence.observe(&beats(&[vec![("dead", 7)], others(step)].concat()), worker != "new", STEP);
            found.into_iter().map(|beat| (step, beat.worker)).collect::<Vec<_>>()
        };
        (0..count).flat_map(dead).collect()
    }

    #[test]
    fn a_peer_is_dead_once_its_beat_has_stood_still_for_long_enough() {
        let moving = |step| vec![("a", step), ("b", step * 3)];
        assert_eq!(steps("a", 10, moving), [(4, "dead".to_owned()), (8, "dead".to_owned())], "and again if it is still there");
        assert_eq!(steps("b", 6, moving), [(5, "dead".to_owned())], "a is the first to act");
        assert_eq!(steps("spare", 7, |step| vec![("zoe", step)]), [(4, "dead".to_owned())], "a worker without partitions watches too");
    }

    #[test]
    fn a_peer_with_a_longer_session_lives() {
        let (step, beat) = (interval(SILENCE_MAX), interval(Duration::from_secs(300)));
        let mut silence = Silence::new("a", SILENCE_MAX);
        for number in 0..200 {
            let moment = (step * number).as_nanos() / beat.as_nanos();
            let found = silence.observe(&beats(&[("a", i64::from(number)), ("b", i64::try_from(moment).unwrap())]), true, step);
            assert_eq!(found, [], "after {:?}", step * number);
        }
    }

    #[test]
    fn time_counts_only_while_the_own_beat_moves() {
        assert_eq!(steps("a", 60, |_| vec![("a", 1), ("b", 1)]), []);
        let patient = [(13, "b".to_owned()), (13, "dead".to_owned())];
        assert_eq!(steps("new", 14, |_| vec![("b", 1)]), patient, "a rebalance lasts while a worker waits for its first assignment");
        assert_eq!(steps("a", 20, |step| vec![("a", step / 2)]).first(), Some(&(8, "dead".to_owned())));
    }

    #[test]
    fn a_peer_that_was_slow_and_one_that_is_gone_are_left_alone() {
        let mut silence = Silence::new("a", MAX);
        let mut step = 0;
        let mut observe = |peers: &[(&str, i64)]| {
            step += 1;
            silence.observe(&beats(&[&[("a", step)], peers].concat()), true, STEP)
        };
        for moment in [1, 1, 1, 1, 2, 2, 2, 2] {
            assert_eq!(observe(&[("b", moment)]), []);
        }
        assert_eq!(observe(&[]), []);
        assert_eq!(observe(&[("b", 2)]), [], "it is new again");
    }
}
