//! What a control record says: the subject that its key names, and the control in its value.

use std::sync::Arc;

use super::rejection::{ControlRejection, ControlRejectionCode as Code};
use crate::decide::ruling::SubjectKind;
use tollgate_json::digest::Digest;
use tollgate_passport::{Passport, PassportFault};

/// The longest agent id that a passport can be set for, in bytes.
pub const AGENT_ID_BYTES_MAX: usize = 512;
/// The longest reason of a suspension, in bytes. Verdicts repeat it, and state remembers it.
pub const REASON_BYTES_MAX: usize = 256;
/// The longest id of an abuse rule, in bytes, and of an alert. Verdicts name the rule.
pub const RULE_BYTES_MAX: usize = 128;

const KEY_FIX: &str = "write passport/<agent_id>, subject/<kind>/<hash> or subject/<kind>/<hash>/abuse";
/// What the key of a machine's record ends in.
const ABUSE_SUFFIX: &str = "/abuse";
/// What the keys of notes begin with: what workers say of themselves, and what operators have changed.
const NOTES: [&str; 2] = ["worker/", HISTORY];
/// What the keys of the notes of operators' changes begin with. The key of the control follows.
pub const HISTORY: &str = "history/";

/// The subject of a control, as its record's key names it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ControlId {
    /// The passport of an agent.
    Passport(String),
    /// What operators say of a subject, by its kind and hash.
    Subject(SubjectKind, Digest),
    /// What the abuse stage says of a subject, by its kind and hash.
    Abuse(SubjectKind, Digest),
    /// A note of a worker or a command for other commands, by its key. It switches nothing.
    Note(String),
}

/// The passport of an agent, or why none can be used, so that every call of the agent is denied.
pub type AgentPassport = Result<Arc<Passport>, PassportFault>;

/// A decoded record: what it is about, and what it sets. `None` removes what was set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Control {
    /// An agent's passport.
    Passport(String, Option<AgentPassport>),
    /// What operators say of a subject.
    Subject(SubjectKind, Digest, Option<SubjectState>),
    /// A suspension by the abuse stage; the code of the rejection where its record cannot be read, and the suspension has no end.
    Abuse(SubjectKind, Digest, Option<Result<AbuseSuspension, Code>>),
    /// A note, whose value only commands read.
    Note,
}

/// What an operator says of a subject.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SubjectState {
    /// Its tool calls are blocked.
    Suspended(HoldsUntil),
    /// The abuse stage does not suspend it.
    Exempt(HoldsUntil),
}

/// Until when a state holds, and why.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HoldsUntil {
    /// The reason, in the operator's words.
    pub reason: Option<String>,
    /// The end, in milliseconds since the epoch; `None` is until the control is removed.
    pub until_ms: Option<i64>,
}

/// A suspension by the abuse stage. It always ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AbuseSuspension {
    /// The end, in milliseconds since the epoch.
    pub until_ms: i64,
    /// The rule that decided.
    pub rule: String,
    /// The step of the rule's ladder, where the record says it.
    pub step: Option<u32>,
    /// The alert that gives the evidence, where the record says it.
    pub alert_id: Option<String>,
}

impl HoldsUntil {
    /// Returns whether it is over at an event's time, or may be: the end of a state that permits is known to have not come.
    #[must_use]
    pub fn may_be_over(&self, time_ms: Option<i64>) -> bool {
        self.until_ms.is_some_and(|until_ms| time_ms.is_none_or(|time_ms| time_ms >= until_ms))
    }

    /// Returns whether it is over at an event's time. An event of unknown time is never past an end.
    #[must_use]
    pub fn is_over(&self, time_ms: Option<i64>) -> bool {
        self.until_ms.zip(time_ms).is_some_and(|(until_ms, time_ms)| time_ms >= until_ms)
    }
}

impl ControlId {
    /// Returns the type as values and labels write it.
    #[must_use]
    pub fn control_type(&self) -> &'static str {
        match self {
            Self::Passport(_) => "passport",
            Self::Subject(..) | Self::Abuse(..) => "subject",
            Self::Note(_) => "note",
        }
    }

    /// Reads a record's key.
    ///
    /// # Errors
    /// [`ControlRejection`] for a key that names no control.
    pub fn read(key: Option<&[u8]>) -> Result<Self, ControlRejection> {
        let key = key.ok_or_else(|| ControlRejection::new(Code::KeyMissing, "key", "null", KEY_FIX))?;
        let key = std::str::from_utf8(key).map_err(|error| {
            let found = format!("{} bytes, not UTF-8 from byte {} on", key.len(), error.valid_up_to());
            ControlRejection::new(Code::KeyNotUtf8, "key", found, KEY_FIX)
        })?;
        if let Some(agent_id) = key.strip_prefix("passport/") {
            return Self::read_agent(agent_id);
        }
        if NOTES.iter().any(|prefix| key.strip_prefix(prefix).is_some_and(|rest| !rest.is_empty())) {
            return Ok(Self::Note(key.to_owned()));
        }
        let unknown = || ControlRejection::new(Code::KeyUnknown, "key", format!("an unknown form of {} bytes", key.len()), KEY_FIX);
        let (kind, hash) = key.strip_prefix("subject/").and_then(|rest| rest.split_once('/')).ok_or_else(unknown)?;
        let Some(kind) = SubjectKind::from_name(kind) else {
            let found = format!("a subject of an unknown kind of {} bytes", kind.len());
            return Err(ControlRejection::new(Code::KeyInvalid, "key", found, "write the kind user, tenant, agent or thread"));
        };
        let (hash, is_machines) = hash.strip_suffix(ABUSE_SUFFIX).map_or((hash, false), |hash| (hash, true));
        let Some(hash) = Digest::parse(hash) else {
            let found = format!("a subject whose hash of {} bytes is none", hash.len());
            return Err(ControlRejection::new(Code::KeyInvalid, "key", found, "write the hash as 64 lower-case hex digits"));
        };
        Ok(if is_machines { Self::Abuse(kind, hash) } else { Self::Subject(kind, hash) })
    }

    fn read_agent(agent_id: &str) -> Result<Self, ControlRejection> {
        if agent_id.is_empty() || agent_id.len() > AGENT_ID_BYTES_MAX {
            let found = format!("a passport of an agent whose id has {} bytes", agent_id.len());
            return Err(ControlRejection::new(Code::KeyInvalid, "key", found, "write an agent_id of 1 to 512 bytes"));
        }
        Ok(Self::Passport(agent_id.to_owned()))
    }
}

impl std::fmt::Display for ControlId {
    /// Writes the key.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Passport(agent_id) => write!(f, "passport/{agent_id}"),
            Self::Subject(kind, hash) => write!(f, "subject/{}/{hash}", kind.as_str()),
            Self::Abuse(kind, hash) => write!(f, "subject/{}/{hash}{ABUSE_SUFFIX}", kind.as_str()),
            Self::Note(key) => f.write_str(key),
        }
    }
}
