//! The controls topic, as these commands read it: what operators and the abuse stage say of subjects.

use std::collections::BTreeMap;

use tollgate_config::topics::TopicRole;
use tollgate_core::decide::controls::{AbuseSuspension, Control, ControlRejectionCode, SubjectState, in_force};
use tollgate_core::decide::signal::{KeyKind, SubjectKey};

use tollgate_operations::Topics;

/// What control records say of one subject.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Switches {
    /// An operator's word.
    pub(super) operators: Option<SubjectState>,
    /// A suspension by the abuse stage.
    pub(super) machines: Option<AbuseSuspension>,
    /// Why the record under the abuse stage's key cannot be read, if it cannot: it suspends without end.
    pub(super) unreadable: Option<ControlRejectionCode>,
}

/// The subjects of which something is said, in the order of their names.
#[derive(Debug, Clone, Default)]
pub(super) struct AllSwitches(pub(super) BTreeMap<String, (SubjectKey, Switches)>);

impl AllSwitches {
    /// Takes a record. What cannot be read restricts, as in workers.
    pub(super) fn take(&mut self, key: Option<&[u8]>, value: Option<&[u8]>) {
        let Ok((control, _)) = in_force(key, value) else { return };
        match control {
            Control::Subject(kind, hash, state) => self.of(kind.into(), hash, |switches| switches.operators = state),
            Control::Abuse(kind, hash, said) => self.of(kind.into(), hash, |switches| {
                switches.unreadable = said.as_ref().and_then(|said| said.as_ref().err().copied());
                switches.machines = said.and_then(Result::ok);
            }),
            Control::Passport(..) | Control::Note => {}
        }
    }

    fn of(&mut self, kind: KeyKind, hash: tollgate_json::digest::Digest, set: impl FnOnce(&mut Switches)) {
        let key = SubjectKey { kind, hash };
        let (_, switches) = self.0.entry(key.to_string()).or_insert_with(|| (key, Switches::default()));
        set(switches);
        if *switches == Switches::default() {
            self.0.remove(&key.to_string());
        }
    }

    /// Adds what another partition says. Where both speak of a subject, the stricter record counts, and of equal records the first, as in
    /// workers.
    fn add(&mut self, other: Self) {
        for (name, (key, said)) in other.0 {
            let (_, known) = self.0.entry(name).or_insert_with(|| (key, Switches::default()));
            known.operators = [known.operators.take(), said.operators].into_iter().flatten().reduce(SubjectState::stricter);
            known.machines = [known.machines.take(), said.machines]
                .into_iter()
                .flatten()
                .reduce(|first, other| if first.until_ms >= other.until_ms { first } else { other });
            known.unreadable = known.unreadable.or(said.unreadable);
        }
    }

    /// Returns what is said of a subject; nothing if nothing is.
    pub(super) fn get(&self, key: SubjectKey) -> Switches {
        self.0.get(&key.to_string()).map(|(_, switches)| switches.clone()).unwrap_or_default()
    }
}

/// Reads the controls topic.
pub(super) fn read(topics: &Topics<'_>) -> anyhow::Result<AllSwitches> {
    let topic = topics.find(TopicRole::Controls)?;
    let mut all = AllSwitches::default();
    for partition in topic.all()? {
        let mut own = AllSwitches::default();
        topics.read(topic, partition, |_, key, value| own.take(key, value))?;
        all.add(own);
    }
    Ok(all)
}

impl Switches {
    /// Returns whether the abuse stage's record suspends the subject, be it over or not readable: the stage takes its record back.
    pub(super) fn has_machines(&self) -> bool {
        self.machines.is_some() || self.unreadable.is_some()
    }

    /// Returns whether an operator exempts the subject at a time, in milliseconds since the epoch.
    pub(super) fn is_exempt(&self, now_ms: i64) -> bool {
        matches!(&self.operators, Some(SubjectState::Exempt(holds)) if !holds.is_over(Some(now_ms)))
    }

    /// Returns whether the subject is suspended at a time, by whomever.
    pub(super) fn is_suspended_at(&self, now_ms: i64) -> bool {
        let unreadable = self.unreadable.is_some() && !self.is_exempt(now_ms);
        unreadable || self.machines_at(now_ms).is_some() || self.is_suspended_by_operators(now_ms)
    }

    /// Returns whether an operator suspends the subject at a time.
    pub(super) fn is_suspended_by_operators(&self, now_ms: i64) -> bool {
        matches!(&self.operators, Some(SubjectState::Suspended(holds)) if !holds.is_over(Some(now_ms)))
    }

    /// Returns the suspension by the abuse stage that ends behind a time, in force or beaten by an exemption.
    pub(super) fn machines_beyond(&self, now_ms: i64) -> Option<&AbuseSuspension> {
        self.machines.as_ref().filter(|suspended| now_ms < suspended.until_ms)
    }

    /// Returns the suspension by the abuse stage that is in force at a time.
    pub(super) fn machines_at(&self, now_ms: i64) -> Option<&AbuseSuspension> {
        self.machines_beyond(now_ms).filter(|_| !self.is_exempt(now_ms))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tollgate_json::digest::Digest;

    use super::*;

    #[test]
    fn the_last_word_of_each_counts_and_an_exemption_beats_the_machine() {
        let hash = Digest::of(b"x");
        let (key, machines) = (format!("subject/user/{hash}"), format!("subject/user/{hash}/abuse"));
        let exempt = json!({"type": "subject", "kind": "user", "hash": hash.to_string(), "state": "exempt"}).to_string();
        let suspended = json!({"type": "subject", "kind": "user", "hash": hash.to_string(), "state": "suspended",
            "until": "1970-01-01T00:00:10Z", "rule": "r", "step": 2, "alert_id": "a"})
        .to_string();
        let subject = SubjectKey { kind: KeyKind::User, hash };
        let mut all = AllSwitches::default();
        all.take(Some(machines.as_bytes()), Some(suspended.as_bytes()));
        all.take(Some(machines.as_bytes()), Some(b"{"));
        assert!(all.get(subject).unreadable.is_some() && all.get(subject).is_suspended_at(99_999));
        all.take(Some(machines.as_bytes()), Some(suspended.as_bytes()));
        assert!(all.get(subject).unreadable.is_none() && !all.get(subject).is_suspended_at(10_000));
        assert_eq!(all.get(subject).machines_at(9_999).map(|suspended| suspended.step), Some(Some(2)));
        assert!(all.get(subject).machines_at(10_000).is_none() && !all.get(subject).is_suspended_by_operators(0));
        all.take(Some(key.as_bytes()), Some(exempt.as_bytes()));
        assert!(all.get(subject).is_exempt(0) && all.get(subject).machines_at(0).is_none());
        all.take(Some(key.as_bytes()), None);
        assert!(all.get(subject).machines_at(0).is_some());
        let mut other = AllSwitches::default();
        other.take(Some(machines.as_bytes()), Some(suspended.replace("\"step\":2", "\"step\":3").as_bytes()));
        all.add(other);
        assert_eq!(all.get(subject).machines_at(0).map(|suspended| suspended.step), Some(Some(2)), "the first of equal records counts");
        let mut other = AllSwitches::default();
        other.take(Some(key.as_bytes()), Some(exempt.replace("exempt", "suspended").as_bytes()));
        other.take(Some(key.as_bytes()), Some(exempt.as_bytes()));
        all.add(other);
        assert!(all.get(subject).machines_at(0).is_none());
        let mut other = AllSwitches::default();
        other.take(Some(key.as_bytes()), Some(exempt.replace("exempt", "suspended").as_bytes()));
        all.add(other);
        assert!(all.get(subject).is_suspended_by_operators(0), "the stricter one counts");
        all.take(Some(key.as_bytes()), None);
        all.take(Some(machines.as_bytes()), None);
        assert!(all.0.is_empty());
    }
}
