//! Signals that come late: what a counter would have come to if all of its signals had come in order of time.
//!
//! Sources are read in any order, and a signal may come that is before a firing. Then the rule would have fired earlier, perhaps once more,
//! and the subject would be elsewhere on the ladder. So the place on the ladder before the firings that are not certain is kept, and the way
//! up is taken again from there. A signal that comes in order costs nothing more.

use tollgate_core::decide::signal::KeyKind;
use tollgate_json::digest::Fingerprint;

use super::ladder::{climb, enforces, go_down, go_up};
use crate::rules::Rule;
use crate::subjects::{Episode, Opened};

impl Opened {
    /// Notes that no signal can come any more that is before a time, in milliseconds since the epoch.
    pub(crate) fn make_certain(&mut self, rule: &Rule, kind: KeyKind, certain_ms: i64) {
        let times = self.window.take_certain(rule, certain_ms);
        if !self.window.has_used() {
            self.before = None;
        } else if let Some((before, episode)) = self.before.as_mut().zip(self.episode.as_deref()) {
            let place = before.take().map(|before| *before);
            let place = times.into_iter().fold(place, |place, at_ms| Some(fire_again(rule, kind, place, at_ms, episode.alert_id)));
            *before = place.map(Box::new);
        }
    }

    /// Takes the way up the ladder again, by the firings of the window that are not certain, except for those that are `new`. What alerts
    /// have said stays.
    pub(crate) fn climb_again(&mut self, rule: &Rule, kind: KeyKind, new: usize) {
        let Some((before, episode)) = self.before.as_ref().zip(self.episode.as_deref_mut()) else { return };
        let place = before.as_deref().cloned();
        let times = self.window.used_ms(rule);
        let known = times.len().saturating_sub(new);
        let place = times.into_iter().take(known).fold(place, |place, at_ms| Some(fire_again(rule, kind, place, at_ms, episode.alert_id)));
        if let Some(Episode { step, descends_ms, until_ms, .. }) = place {
            (episode.step, episode.descends_ms, episode.until_ms) = (step, descends_ms, until_ms);
        }
    }
}

/// Returns where a firing takes an episode, as one that is dealt with by itself does.
fn fire_again(rule: &Rule, kind: KeyKind, mut place: Option<Episode>, at_ms: i64, alert_id: Fingerprint) -> Episode {
    place.iter_mut().for_each(|episode| go_down(rule, episode, at_ms));
    let place = place.filter(|episode| episode.step > 0);
    let climb = climb(rule, place.as_ref().map_or(0, |episode| episode.step));
    let suspends_ms = climb.suspends_ms.filter(|_| enforces(rule, kind));
    go_up(rule, place, at_ms, (climb.step, suspends_ms), || alert_id)
}
