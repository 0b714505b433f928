//! The table of all controls in force: it has many readers, and is updated by key.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use dashmap::DashMap;

use super::recent::Recent;
use super::record::{Control, SuspendedUntil, decode};
use super::rejection::ControlRejection;
use super::subject::{Subject, SubjectHasher};
use crate::decode::Event;
use crate::digest::Digest;
use crate::passport::Passport;
use crate::ruling::{SubjectKind, Suspension};

/// All controls in force: passports by agent, and suspended subjects.
#[derive(Debug)]
pub struct Controls {
    passports: DashMap<String, Arc<Passport>>,
    suspended: DashMap<(SubjectKind, Digest), SuspendedUntil>,
    /// How many subjects of each kind are suspended, in the order of [`SubjectKind::ALL`]. While there are none of a kind, nothing of that
    /// kind has to be hashed.
    counts: [AtomicUsize; SubjectKind::ALL.len()],
    hasher: SubjectHasher,
    recent: Recent,
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
    /// Returns an empty table. `subject_key` is the HMAC key of subject hashes.
    #[must_use]
    pub fn new(subject_key: Option<&str>) -> Self {
        Self {
            passports: DashMap::new(),
            suspended: DashMap::new(),
            counts: Default::default(),
            hasher: SubjectHasher::new(subject_key),
            recent: Recent::default(),
        }
    }

    /// Applies a record of the controls topic; a null value removes what its key names.
    ///
    /// # Errors
    /// [`ControlRejection`] for a record that cannot be read. The controls in force then stay as they are.
    pub fn apply(&self, key: Option<&[u8]>, value: Option<&[u8]>) -> Result<Change, ControlRejection> {
        Ok(match decode(key, value)? {
            Control::Subject(kind, hash, suspended) => {
                let effect = match suspended {
                    Some(suspended) => self.suspend(kind, hash, suspended),
                    None => self.resume(kind, hash),
                };
                Change { control_type: "subject", effect }
            }
            Control::Passport(agent_id, passport) => {
                let effect = match passport {
                    Some(passport) => {
                        self.passports.insert(agent_id, passport);
                        Effect::Set
                    }
                    None => self.passports.remove(&agent_id).map_or(Effect::Absent, |_| Effect::Removed),
                };
                Change { control_type: "passport", effect }
            }
        })
    }

    fn suspend(&self, kind: SubjectKind, hash: Digest, suspended: SuspendedUntil) -> Effect {
        // The count goes up first, so that no reader finds a count of zero beside a suspension.
        self.count(kind).fetch_add(1, Ordering::AcqRel);
        if self.suspended.insert((kind, hash), suspended).is_some() {
            self.count(kind).fetch_sub(1, Ordering::AcqRel);
        }
        Effect::Set
    }

    fn resume(&self, kind: SubjectKind, hash: Digest) -> Effect {
        if self.suspended.remove(&(kind, hash)).is_none() {
            return Effect::Absent;
        }
        self.count(kind).fetch_sub(1, Ordering::AcqRel);
        Effect::Removed
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
    /// also that of its subagents' threads. Time is the event's own and never the host's. An event of unknown time is never past the end of a suspension: its subject stays suspended.
    #[must_use]
    pub fn suspension(&self, event: &Event<'_>) -> Option<Suspension> {
        SubjectKind::ALL.into_iter().find_map(|kind| {
            if self.suspended_count(kind) == 0 {
                return None;
            }
            Subject::all_of(event, kind).find_map(|subject| self.suspension_of(&subject, event.time_ms))
        })
    }

    fn suspension_of(&self, subject: &Subject<'_>, time_ms: Option<i64>) -> Option<Suspension> {
        let hash = self.recent.hash(subject, |subject| self.hasher.hash(subject));
        let suspended = self.suspended.get(&(subject.kind, hash))?;
        let is_over = suspended.until_ms.zip(time_ms).is_some_and(|(until, time)| time >= until);
        (!is_over).then(|| Suspension { kind: subject.kind, reason: suspended.reason.clone() })
    }

    /// Returns how many subjects of a kind are suspended. Those whose time is over count until they are removed.
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
        self.hasher.is_keyed()
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::*;
    use crate::controls::ControlRejectionCode;
    use crate::decode::{Attribution, Body};

    const UNTIL: i64 = 1_767_225_600_000;

    fn event<'e>(user: Option<&'e str>, tenant: Option<&'e str>, time_ms: Option<i64>) -> Event<'e> {
        let attribution = Attribution { user_id: user.map(Cow::Borrowed), tenant_id: tenant.map(Cow::Borrowed), ..Attribution::default() };
        Event { thread_id: "t".into(), event_id: "e".into(), turn_id: None, time_ms, record_ms: None, attribution, body: Body::TurnEnd }
    }

    fn record(kind: SubjectKind, tenant: &str, id: &str, more: &str) -> (String, String) {
        let hash = SubjectHasher::new(Some("k")).hash(&Subject { kind, tenant, id });
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
