//! The table of all controls in force: it has many readers, and is updated by key.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use dashmap::DashMap;
use rustc_hash::FxBuildHasher;

use super::keyed::Keyed;
use super::record::{Control, decode};
use super::rejection::ControlRejection;
use super::subject::Subject;
use super::switches::Switches;
use crate::decide::ruling::{SubjectKind, Suspension};
use crate::event::decode::Event;
use tollgate_json::digest::Digest;
use tollgate_passport::Passport;

/// All controls in force: passports by agent, and what is said of subjects.
#[derive(Debug)]
pub struct Controls {
    passports: DashMap<String, Arc<Passport>>,
    /// Their keys are digests, which a quick hash spreads well enough.
    subjects: DashMap<(SubjectKind, Digest), Switches, FxBuildHasher>,
    /// How many subjects of each kind may be suspended, in the order of [`SubjectKind::ALL`]. While there are none of a kind, nothing of
    /// that kind has to be hashed.
    counts: [AtomicUsize; SubjectKind::ALL.len()],
    keyed: Keyed,
}

/// The change that a control record has made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change {
    /// The type of the control, `passport` or `subject`.
    pub control_type: &'static str,
    /// What the record did.
    pub effect: Effect,
}

/// The effect of a control record on the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// The control is set, whatever there was before.
    Set,
    /// The control is removed.
    Removed,
    /// There was no such control to remove.
    Absent,
}

impl Default for Controls {
    /// Returns an empty table, whose subjects are hashed without a key.
    fn default() -> Self {
        Self::new(None)
    }
}

impl Controls {
    /// Returns an empty table. `subject_keys` are the HMAC keys of subject hashes: the one that hashes are written under, and then those
    /// under which they are still found. Without any, subjects are hashed without a key.
    #[must_use]
    pub fn new<'k>(subject_keys: impl IntoIterator<Item = &'k str>) -> Self {
        Self { passports: DashMap::new(), subjects: DashMap::default(), counts: Default::default(), keyed: Keyed::new(subject_keys) }
    }

    /// Applies a record of the controls topic; a null value removes what its key names.
    ///
    /// # Errors
    /// [`ControlRejection`] for a record that cannot be read. The controls in force then stay as they are.
    pub fn apply(&self, key: Option<&[u8]>, value: Option<&[u8]>) -> Result<Change, ControlRejection> {
        let (control_type, effect) = match decode(key, value)? {
            Control::Subject(kind, hash, state) => {
                ("subject", self.switch((kind, hash), |switches| change(&mut switches.operators, state)))
            }
            Control::Abuse(kind, hash, suspended) => {
                ("subject", self.switch((kind, hash), |switches| change(&mut switches.machines, suspended)))
            }
            Control::Passport(agent_id, Some(passport)) => {
                self.passports.insert(agent_id, passport);
                ("passport", Effect::Set)
            }
            Control::Passport(agent_id, None) => ("passport", self.passports.remove(&agent_id).map_or(Effect::Absent, |_| Effect::Removed)),
        };
        Ok(Change { control_type, effect })
    }

    /// Changes what is said of a subject. The count changes while its entry is locked, so that no reader finds a count of zero beside a
    /// suspension.
    fn switch(&self, subject: (SubjectKind, Digest), change: impl FnOnce(&mut Switches) -> Effect) -> Effect {
        let count = self.count(subject.0);
        let mut entry = self.subjects.entry(subject).or_default();
        let could_suspend = entry.can_suspend();
        let effect = change(&mut entry);
        match (could_suspend, entry.can_suspend()) {
            (false, true) => _ = count.fetch_add(1, Ordering::AcqRel),
            (true, false) => _ = count.fetch_sub(1, Ordering::AcqRel),
            _ => {}
        }
        drop(entry);
        self.subjects.remove_if(&subject, |_, switches| switches.is_empty());
        effect
    }

    fn count(&self, kind: SubjectKind) -> &AtomicUsize {
        let [user, tenant, agent, thread] = &self.counts;
        match kind {
            SubjectKind::User => user,
            SubjectKind::Tenant => tenant,
            SubjectKind::Agent => agent,
            SubjectKind::Thread => thread,
        }
    }

    /// Returns the passport of an agent.
    #[must_use]
    pub fn passport(&self, agent_id: &str) -> Option<Arc<Passport>> {
        self.passports.get(agent_id).map(|passport| Arc::clone(&passport))
    }

    /// Returns the suspension of a subject that an event is on behalf of, if one is in force at the event's time. A thread's suspension is
    /// also that of its subagents' threads. Time is the event's own, never the host's, and not later than that of its record: nobody gets out
    /// by a time that has not come. An event of unknown time is never past the end of a suspension: its subject stays suspended.
    #[must_use]
    pub fn suspension(&self, event: &Event<'_>) -> Option<Suspension> {
        let time_ms = event.time_ms.map(|time_ms| event.record_ms.map_or(time_ms, |record_ms| time_ms.min(record_ms)));
        SubjectKind::ALL.into_iter().find_map(|kind| {
            if self.suspended_count(kind) == 0 {
                return None;
            }
            Subject::all_of(event, kind).find_map(|subject| self.suspension_of(&subject, time_ms))
        })
    }

    /// Returns the suspension of one subject at an event's time, by all records about it, under whichever key.
    fn suspension_of(&self, subject: &Subject<'_>, time_ms: Option<i64>) -> Option<Suspension> {
        let mut found = self.keyed.hashes(subject).filter_map(|hash| self.subjects.get(&(subject.kind, hash)).map(|said| said.clone()));
        let mut said = found.next()?;
        found.for_each(|other| said = std::mem::take(&mut said).over(other));
        said.suspension(time_ms).map(|reason| Suspension { kind: subject.kind, reason })
    }

    /// Returns the hash of a subject under the first key, as signals name it. Hashes of recent subjects are remembered.
    #[must_use]
    pub fn subject_hash(&self, subject: &Subject<'_>) -> Digest {
        self.keyed.hash(subject)
    }

    /// Returns the hash of a call under the first key, whoever makes it: that of kind `call`, no tenant, and the tool and the digest of its
    /// arguments as its id.
    #[must_use]
    pub fn call_hash(&self, tool_name: &str, args_hash: &Digest) -> Digest {
        self.keyed.hasher().call_hash(tool_name, args_hash)
    }

    /// Returns how many subjects of a kind may be suspended. Those whose time is over count until they are removed, and those that are
    /// exempt for a time count too.
    #[must_use]
    pub fn suspended_count(&self, kind: SubjectKind) -> usize {
        self.count(kind).load(Ordering::Acquire)
    }

    /// Returns how many agents have a passport.
    #[must_use]
    pub fn passport_count(&self) -> usize {
        self.passports.len()
    }

    /// Returns whether subjects are hashed under a key.
    #[must_use]
    pub fn is_keyed(&self) -> bool {
        self.keyed.hasher().is_keyed()
    }
}

/// Sets or removes what a record says.
fn change<T>(place: &mut Option<T>, said: Option<T>) -> Effect {
    let (is_set, was_set) = (said.is_some(), place.is_some());
    *place = said;
    match (is_set, was_set) {
        (true, _) => Effect::Set,
        (false, true) => Effect::Removed,
        (false, false) => Effect::Absent,
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::*;
    use crate::decide::controls::{ControlRejectionCode, SubjectHasher};
    use crate::event::decode::{Attribution, Body};

    const UNTIL: i64 = 1_767_225_600_000;

    fn hash(key: &str, kind: SubjectKind, tenant: &str, id: &str) -> Digest {
        SubjectHasher::new(Some(key)).hash(&Subject { kind, tenant, id })
    }

    fn event<'e>(user: Option<&'e str>, tenant: Option<&'e str>, time_ms: Option<i64>) -> Event<'e> {
        let attribution = Attribution { user_id: user.map(Cow::Borrowed), tenant_id: tenant.map(Cow::Borrowed), ..Attribution::default() };
        Event {
            thread_id: "t".into(),
            event_id: "e".into(),
            turn_id: None,
            time_ms,
            record_ms: None,
            attribution,
            provider: None,
            body: Body::TurnEnd,
        }
    }

    fn record(kind: SubjectKind, tenant: &str, id: &str, more: &str) -> (String, String) {
        let hash = hash("k", kind, tenant, id);
        let kind = kind.as_str();
        let value = format!(r#"{{"type":"subject","kind":"{kind}","hash":"{hash}","state":"suspended"{more}}}"#);
        (format!("subject/{kind}/{hash}"), value)
    }

    fn set(controls: &Controls, (key, value): &(String, String)) -> Effect {
        controls.apply(Some(key.as_bytes()), Some(value.as_bytes())).unwrap().effect
    }

    fn remove(controls: &Controls, (key, _): &(String, String)) -> Effect {
        controls.apply(Some(key.as_bytes()), None).unwrap().effect
    }

    #[test]
    fn a_suspension_is_of_one_kind_one_tenant_and_one_id() {
        let controls = Controls::new(Some("k"));
        let of = |user, tenant| controls.suspension(&event(user, tenant, None)).map(|suspension| suspension.kind);
        assert_eq!(of(Some("42"), Some("acme")), None);
        let user = record(SubjectKind::User, "acme", "42", "");
        assert_eq!(set(&controls, &user), Effect::Set);
        assert_eq!(of(Some("42"), Some("acme")), Some(SubjectKind::User));
        for (other, tenant) in [(Some("42"), None), (Some("42"), Some("other")), (Some("43"), Some("acme")), (None, Some("acme"))] {
            assert_eq!(of(other, tenant), None);
        }
        // A tenant of its own has no tenant, and every subject of its is stopped.
        let tenant = record(SubjectKind::Tenant, "", "acme", "");
        set(&controls, &tenant);
        assert_eq!(of(Some("43"), Some("acme")), Some(SubjectKind::Tenant));
        assert_eq!(of(None, Some("acme")), Some(SubjectKind::Tenant));
        remove(&controls, &tenant);
        let thread = record(SubjectKind::Thread, "acme", "t", "");
        set(&controls, &thread);
        assert_eq!((of(Some("43"), Some("acme")), of(Some("43"), None)), (Some(SubjectKind::Thread), None));
    }

    #[test]
    fn a_suspended_thread_takes_all_threads_below_it_with_it() {
        let controls = Controls::new(Some("k"));
        let of = |thread_id: &str, tenant| {
            let event = Event { thread_id: thread_id.to_owned().into(), ..event(Some("42"), tenant, Some(UNTIL)) };
            controls.suspension(&event).map(|suspension| suspension.reason.unwrap_or_default())
        };
        set(&controls, &record(SubjectKind::Thread, "acme", "a/b", r#","reason":"b""#));
        // A user's id with a slash has no users above it.
        set(&controls, &record(SubjectKind::User, "acme", "a", ""));
        for (thread_id, reason) in [
            ("a/b", Some("b")),
            ("a/b/c", Some("b")),
            ("a/b/c//d/", Some("b")),
            ("a/b/", Some("b")),
            ("a", None),
            ("a/bc", None),
            ("a/c", None),
            ("b", None),
            ("/a/b", None),
            ("x/a/b", None),
        ] {
            assert_eq!(of(thread_id, Some("acme")).as_deref(), reason, "{thread_id}");
        }
        assert_eq!(of("a/b/c", Some("other")), None);
        // The nearest one is told, and one that is over does not hide those above it.
        set(&controls, &record(SubjectKind::Thread, "acme", "a", r#","reason":"a""#));
        assert_eq!((of("a/b/c", Some("acme")).as_deref(), of("a/c", Some("acme")).as_deref()), (Some("b"), Some("a")));
        set(&controls, &record(SubjectKind::Thread, "acme", "a/b", r#","reason":"b","until":"2026-01-01T00:00:00Z""#));
        assert_eq!(of("a/b/c", Some("acme")).as_deref(), Some("a"));
        assert_eq!(of(&"/".repeat(256), Some("acme")), None);
    }

    #[test]
    fn a_suspension_is_over_by_the_time_of_the_event() {
        let controls = Controls::new(Some("k"));
        set(&controls, &record(SubjectKind::User, "", "42", r#","reason":"chargeback","until":"2026-01-01T00:00:00Z""#));
        let at = |time| controls.suspension(&event(Some("42"), None, time)).and_then(|suspension| suspension.reason);
        assert_eq!(at(Some(UNTIL - 1)).as_deref(), Some("chargeback"));
        assert_eq!(at(Some(UNTIL)), None);
        assert_eq!(at(None).as_deref(), Some("chargeback"));
        let ahead = |record_ms| controls.suspension(&Event { record_ms: Some(record_ms), ..event(Some("42"), None, Some(UNTIL + 9)) });
        assert_eq!([UNTIL - 1, UNTIL].map(|record_ms| ahead(record_ms).is_some()), [true, false], "anybody can write a time");
    }

    /// Returns the abuse stage's record about a user.
    fn machines(key: &str, id: &str, until: &str) -> (String, String) {
        let hash = hash(key, SubjectKind::User, "", id);
        let more = format!(r#""until":"{until}","rule":"safety-stop-user","step":1,"alert_id":"a1""#);
        let value = format!(r#"{{"type":"subject","kind":"user","hash":"{hash}","state":"suspended",{more}}}"#);
        (format!("subject/user/{hash}/abuse"), value)
    }

    #[test]
    fn the_machines_record_is_another_than_the_operators() {
        let controls = Controls::new(Some("k"));
        let at = |time| controls.suspension(&event(Some("42"), None, Some(time))).and_then(|suspension| suspension.reason);
        let (operators, machines) =
            (record(SubjectKind::User, "", "42", r#","reason":"chargeback""#), machines("k", "42", "2026-01-01T00:00:00Z"));
        set(&controls, &machines);
        assert_eq!((at(UNTIL - 1).as_deref(), at(UNTIL)), (Some("abuse rule safety-stop-user"), None));
        set(&controls, &operators);
        assert_eq!((at(0).as_deref(), controls.suspended_count(SubjectKind::User)), (Some("chargeback"), 1));
        assert_eq!(remove(&controls, &operators), Effect::Removed);
        assert_eq!(at(0).as_deref(), Some("abuse rule safety-stop-user"));
        let exempt = (operators.0.clone(), operators.1.replace("suspended", "exempt"));
        set(&controls, &exempt);
        assert_eq!((at(0), controls.suspended_count(SubjectKind::User)), (None, 0));
        assert_eq!((remove(&controls, &machines), remove(&controls, &machines)), (Effect::Removed, Effect::Absent));
        assert_eq!(remove(&controls, &exempt), Effect::Removed);
        assert!(controls.subjects.is_empty());
    }

    #[test]
    fn what_was_written_under_an_earlier_key_is_still_found() {
        let controls = Controls::new(["k", "old", "older"]);
        let of = |user| controls.suspension(&event(Some(user), None, Some(UNTIL))).map(|suspension| suspension.reason.unwrap_or_default());
        for (key, user) in [("k", "1"), ("old", "2"), ("older", "3"), ("foreign", "4")] {
            set(&controls, &machines(key, user, "2026-02-01T00:00:00Z"));
            assert_eq!(of(user).is_some(), key != "foreign", "{key}");
        }
        let user = |id| Subject { kind: SubjectKind::User, tenant: "", id };
        assert_eq!(controls.subject_hash(&user("2")), hash("k", SubjectKind::User, "", "2"));
        // Of two records of the machine the longer one counts, and an operator's newer one stands for the older.
        set(&controls, &machines("k", "2", "2026-01-01T00:00:00Z"));
        assert!(of("2").is_some());
        let operators = |key: &str, state: &str| {
            let hash = hash(key, SubjectKind::User, "", "2");
            (format!("subject/user/{hash}"), format!(r#"{{"type":"subject","kind":"user","hash":"{hash}","state":"{state}"}}"#))
        };
        set(&controls, &operators("old", "suspended"));
        assert_eq!(of("2").as_deref(), Some(""));
        set(&controls, &operators("k", "exempt"));
        assert_eq!(of("2"), None);
    }

    #[test]
    fn counts_follow_what_is_set_and_removed() {
        let controls = Controls::new(Some("k"));
        let (one, other) = (record(SubjectKind::User, "", "1", ""), record(SubjectKind::User, "", "2", ""));
        let count = || controls.suspended_count(SubjectKind::User);
        let effects =
            [set(&controls, &one), set(&controls, &one), set(&controls, &other), remove(&controls, &one), remove(&controls, &one)];
        assert_eq!((effects, count()), ([Effect::Set, Effect::Set, Effect::Set, Effect::Removed, Effect::Absent], 1));
        assert_eq!((remove(&controls, &other), count()), (Effect::Removed, 0));
        assert_eq!(controls.suspended_count(SubjectKind::Agent), 0);
    }

    #[test]
    fn what_cannot_be_read_leaves_the_last_good_value_in_force() {
        let controls = Controls::new(Some("k"));
        let user = record(SubjectKind::User, "", "42", "");
        set(&controls, &user);
        let passport = |value: &str| controls.apply(Some(b"passport/coder"), Some(value.as_bytes()));
        passport(r#"{"type":"passport","agent_id":"coder","passport":{"status":"active"}}"#).unwrap();
        let before = controls.passport("coder").unwrap();
        let refused = controls.apply(Some(user.0.as_bytes()), Some(br#"{"type":"subject"}"#)).unwrap_err();
        assert_eq!(refused.code, ControlRejectionCode::KindMissing);
        assert_eq!(passport("{").unwrap_err().code, ControlRejectionCode::ValueNotJson);
        assert!(controls.suspension(&event(Some("42"), None, None)).is_some());
        assert_eq!(controls.passport("coder"), Some(before));
        controls.apply(Some(b"passport/coder"), None).unwrap();
        assert_eq!((controls.passport("coder"), controls.passport_count()), (None, 0));
    }

    #[test]
    fn readers_on_many_threads_see_what_one_writer_sets() {
        let controls = Controls::new(Some("k"));
        let user = record(SubjectKind::User, "", "42", "");
        let seen = AtomicUsize::new(0);
        std::thread::scope(|threads| {
            for _ in 0..4 {
                threads.spawn(|| {
                    while controls.suspension(&event(Some("42"), None, None)).is_none() {
                        std::thread::yield_now();
                    }
                    seen.fetch_add(1, Ordering::AcqRel);
                    while controls.suspension(&event(Some("42"), None, None)).is_some() {
                        std::thread::yield_now();
                    }
                });
            }
            set(&controls, &user);
            while seen.load(Ordering::Acquire) < 4 {
                std::thread::yield_now();
            }
            remove(&controls, &user);
        });
    }
}
