//! Decoding control records: a record gives a control, or a rejection that says what to mend. Decoding is strict: what a value says of
//! itself must agree with its key.

use std::sync::Arc;

use super::rejection::{ControlRejection, ControlRejectionCode as Code};
use super::subject::parse_hash;
use crate::decide::ruling::SubjectKind;
use tollgate_json::digest::Digest;
use tollgate_json::time::parse_timestamp;
use tollgate_json::{Parser, SyntaxErrorKind, Value};
use tollgate_passport::Passport;

/// The largest value, in bytes.
pub const CONTROL_BYTES_MAX: usize = 1 << 20;
/// The longest agent id that a passport can be set for, in bytes.
pub const AGENT_ID_BYTES_MAX: usize = 512;
/// The longest reason of a suspension, in bytes. Verdicts repeat it, and state remembers it.
pub const REASON_BYTES_MAX: usize = 256;
/// The longest id of an abuse rule, in bytes, and of an alert. Verdicts name the rule.
pub const RULE_BYTES_MAX: usize = 128;
/// How many containers may be open at once.
const DEPTH_MAX: usize = 64;

const KEY_FIX: &str = "write passport/<agent_id>, subject/<kind>/<hash> or subject/<kind>/<hash>/abuse";
/// What the key of a machine's record ends in.
const ABUSE_SUFFIX: &str = "/abuse";
/// What the keys of notes begin with: what workers say of themselves, and what operators have changed.
const NOTES: [&str; 2] = ["worker/", HISTORY];
/// What the keys of the notes of operators' changes begin with. The key of the control follows.
pub const HISTORY: &str = "history/";
const OBJECT_FIX: &str = "write one JSON object, or null to remove the control";

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

/// A decoded record: what it is about, and what it sets. `None` removes what was set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Control {
    /// An agent's passport.
    Passport(String, Option<Arc<Passport>>),
    /// What operators say of a subject.
    Subject(SubjectKind, Digest, Option<SubjectState>),
    /// A suspension by the abuse stage.
    Abuse(SubjectKind, Digest, Option<AbuseSuspension>),
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
        let Some(hash) = parse_hash(hash) else {
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

/// Decodes a control record from its key and value. A null value removes the control.
///
/// # Errors
/// [`ControlRejection`] for the first rule that the record breaks.
pub fn decode(key: Option<&[u8]>, value: Option<&[u8]>) -> Result<Control, ControlRejection> {
    let id = ControlId::read(key)?;
    let mut parser = Parser::new();
    let fields =
        value.filter(|_| !matches!(id, ControlId::Note(_))).map(|text| read_value(text, &mut parser).and_then(Fields::of)).transpose()?;
    if let Some(fields) = &fields {
        fields.check_type(&id)?;
    }
    Ok(match id {
        ControlId::Passport(agent_id) => {
            let passport = fields.map(|fields| fields.passport(&agent_id).map(Arc::new)).transpose()?;
            Control::Passport(agent_id, passport)
        }
        ControlId::Subject(kind, hash) => {
            let state = fields.map(|fields| fields.subject(kind, &hash)).transpose()?;
            Control::Subject(kind, hash, state)
        }
        ControlId::Abuse(kind, hash) => {
            let suspended = fields.map(|fields| fields.abuse(kind, &hash)).transpose()?;
            Control::Abuse(kind, hash, suspended)
        }
        ControlId::Note(_) => Control::Note,
    })
}

/// Reads JSON text into one object.
pub(super) fn read_value<'d>(text: &'d [u8], parser: &'d mut Parser) -> Result<Value<'d>, ControlRejection> {
    let rejection = |code, found| ControlRejection::new(code, "value", found, OBJECT_FIX);
    if text.is_empty() {
        return Err(rejection(Code::ValueEmpty, "0 bytes".to_owned()));
    }
    if text.len() > CONTROL_BYTES_MAX {
        return Err(ControlRejection::new(Code::ValueTooLarge, "value", format!("{} bytes", text.len()), "write at most 1 MiB"));
    }
    if let Err(error) = std::str::from_utf8(text) {
        let found = format!("{} bytes, not UTF-8 from byte {} on", text.len(), error.valid_up_to());
        return Err(rejection(Code::ValueNotUtf8, found));
    }
    let root = parser.parse(text, DEPTH_MAX).map_err(|error| {
        let code = if error.kind == SyntaxErrorKind::TooDeep { Code::ValueTooDeep } else { Code::ValueNotJson };
        rejection(code, format!("{} bytes, {error}", text.len()))
    })?;
    if !root.is_object() {
        return Err(rejection(Code::ValueNotAnObject, root.shape().to_string()));
    }
    Ok(root)
}

/// The fields of a value that are used. Unknown ones are ignored.
#[derive(Debug, Default)]
struct Fields<'d> {
    control_type: Option<Value<'d>>,
    agent_id: Option<Value<'d>>,
    passport: Option<Value<'d>>,
    kind: Option<Value<'d>>,
    hash: Option<Value<'d>>,
    state: Option<Value<'d>>,
    reason: Option<Value<'d>>,
    until: Option<Value<'d>>,
    rule: Option<Value<'d>>,
    step: Option<Value<'d>>,
    alert_id: Option<Value<'d>>,
}

impl<'d> Fields<'d> {
    fn of(root: Value<'d>) -> Result<Self, ControlRejection> {
        let mut fields = Self::default();
        for (key, value) in root.members() {
            let Some(key) = key.as_text() else { continue };
            let (name, slot) = match key.as_bytes() {
                b"type" => ("type", &mut fields.control_type),
                b"agent_id" => ("agent_id", &mut fields.agent_id),
                b"passport" => ("passport", &mut fields.passport),
                b"kind" => ("kind", &mut fields.kind),
                b"hash" => ("hash", &mut fields.hash),
                b"state" => ("state", &mut fields.state),
                b"reason" => ("reason", &mut fields.reason),
                b"until" => ("until", &mut fields.until),
                b"rule" => ("rule", &mut fields.rule),
                b"step" => ("step", &mut fields.step),
                b"alert_id" => ("alert_id", &mut fields.alert_id),
                _ => continue,
            };
            if slot.replace(value).is_some() {
                return Err(ControlRejection::new(Code::FieldRepeated, name, "the field more than once", "write each field once"));
            }
        }
        Ok(fields)
    }

    fn passport(&self, agent_id: &str) -> Result<Passport, ControlRejection> {
        const FIX: &str = "write the passport as a JSON object";
        let found = required(self.agent_id, "agent_id", [Code::AgentIdMissing, Code::AgentIdInvalid])?;
        agree(&found, agent_id, "agent_id", Code::AgentIdMismatch)?;
        let Some(passport) = self.passport else {
            return Err(ControlRejection::new(Code::PassportMissing, "passport", "nothing", FIX));
        };
        if !passport.is_object() {
            return Err(ControlRejection::new(Code::PassportInvalid, "passport", passport.shape().to_string(), FIX));
        }
        Passport::read(passport.source()).map_err(|fault| {
            let fix = "write a passport that `tollgate passport check` can read";
            ControlRejection::new(Code::PassportInvalid, "passport", format!("an object that is no passport ({fault})"), fix)
        })
    }

    fn subject(&self, kind: SubjectKind, hash: &Digest) -> Result<SubjectState, ControlRejection> {
        const FIX: &str = "write suspended or exempt; a null value in place of the whole record takes either back";
        let state = self.state_of(kind, hash)?;
        let holds = || Ok(HoldsUntil { reason: self.reason()?, until_ms: self.until_ms()? });
        match state.as_str() {
            "suspended" => holds().map(SubjectState::Suspended),
            "exempt" => holds().map(SubjectState::Exempt),
            _ => Err(ControlRejection::new(Code::StateUnknown, "state", format!("an unknown state of {} bytes", state.len()), FIX)),
        }
    }

    fn abuse(&self, kind: SubjectKind, hash: &Digest) -> Result<AbuseSuspension, ControlRejection> {
        const FIX: &str = "write suspended; an operator's exemption stands under the key without /abuse";
        let state = self.state_of(kind, hash)?;
        if state != "suspended" {
            return Err(ControlRejection::new(Code::StateUnknown, "state", format!("another state, of {} bytes", state.len()), FIX));
        }
        let missing = || ControlRejection::new(Code::UntilMissing, "until", "nothing", "write when the suspension ends, as RFC 3339 says");
        Ok(AbuseSuspension {
            until_ms: self.until_ms()?.ok_or_else(missing)?,
            rule: self.named(self.rule, "rule")?.ok_or_else(|| ControlRejection::new(Code::RuleInvalid, "rule", "nothing", RULE_FIX))?,
            step: self.step()?,
            alert_id: self.named(self.alert_id, "alert_id")?,
        })
    }

    /// Returns the state, once kind and hash agree with the key.
    fn state_of(&self, kind: SubjectKind, hash: &Digest) -> Result<String, ControlRejection> {
        let found = required(self.kind, "kind", [Code::KindMissing, Code::KindInvalid])?;
        agree(&found, kind.as_str(), "kind", Code::KindMismatch)?;
        let found = required(self.hash, "hash", [Code::HashMissing, Code::HashInvalid])?;
        agree(&found, &hash.to_string(), "hash", Code::HashMismatch)?;
        required(self.state, "state", [Code::StateMissing, Code::StateInvalid])
    }

    /// Returns the id of a rule or alert.
    fn named(&self, value: Option<Value<'d>>, field: &'static str) -> Result<Option<String>, ControlRejection> {
        let Some(value) = value.filter(|value| !value.is_null()) else { return Ok(None) };
        let code = if field == "rule" { Code::RuleInvalid } else { Code::AlertIdInvalid };
        let text = string(value, field, code)?;
        if text.is_empty() || text.len() > RULE_BYTES_MAX {
            return Err(ControlRejection::new(code, field, format!("a string of {} bytes", text.len()), RULE_FIX));
        }
        Ok(Some(text))
    }

    fn step(&self) -> Result<Option<u32>, ControlRejection> {
        let Some(value) = self.step.filter(|value| !value.is_null()) else { return Ok(None) };
        let digits = std::str::from_utf8(value.source()).ok().filter(|text| value.as_text().is_none() && !text.starts_with('+'));
        let step = digits.and_then(|text| text.parse().ok());
        step.map(Some).ok_or_else(|| {
            ControlRejection::new(Code::StepInvalid, "step", value.shape().to_string(), "write the step of the ladder as a whole number")
        })
    }

    fn check_type(&self, id: &ControlId) -> Result<(), ControlRejection> {
        const FIX: &str = "write passport or subject, as the key says";
        let control_type = required(self.control_type, "type", [Code::TypeMissing, Code::TypeInvalid])?;
        match control_type.as_str() {
            found if found == id.control_type() => Ok(()),
            "passport" | "subject" => Err(ControlRejection::new(Code::TypeMismatch, "type", "another type than the key's", FIX)),
            other => Err(ControlRejection::new(Code::TypeUnknown, "type", format!("an unknown name of {} bytes", other.len()), FIX)),
        }
    }

    fn reason(&self) -> Result<Option<String>, ControlRejection> {
        let Some(value) = self.reason.filter(|value| !value.is_null()) else { return Ok(None) };
        let reason = string(value, "reason", Code::ReasonInvalid)?;
        if reason.len() > REASON_BYTES_MAX {
            let found = format!("a string of {} bytes", reason.len());
            return Err(ControlRejection::new(Code::ReasonTooLong, "reason", found, "write at most 256 bytes"));
        }
        Ok(Some(reason).filter(|reason| !reason.is_empty()))
    }

    fn until_ms(&self) -> Result<Option<i64>, ControlRejection> {
        const FIX: &str = "write a moment as RFC 3339 says, such as 2026-01-31T12:00:00Z";
        let Some(value) = self.until.filter(|value| !value.is_null()) else { return Ok(None) };
        let rejection = |found| ControlRejection::new(Code::UntilInvalid, "until", found, FIX);
        let text = value.as_text().and_then(|text| text.into_str()).ok_or_else(|| rejection(value.shape().to_string()))?;
        let until = parse_timestamp(&text).ok_or_else(|| rejection(format!("a string of {} bytes that is no moment", text.len())))?;
        Ok(Some(until))
    }
}

const RULE_FIX: &str = "write an id of 1 to 128 bytes";

fn required(value: Option<Value<'_>>, field: &'static str, codes: [Code; 2]) -> Result<String, ControlRejection> {
    let [missing, invalid] = codes;
    match value.filter(|value| !value.is_null()) {
        None => Err(ControlRejection::new(missing, field, "nothing", "write what the key says")),
        Some(value) => string(value, field, invalid),
    }
}

fn string(value: Value<'_>, field: &'static str, code: Code) -> Result<String, ControlRejection> {
    let Some(text) = value.as_text() else {
        return Err(ControlRejection::new(code, field, value.shape().to_string(), "write a string"));
    };
    let text = text.into_str().ok_or_else(|| ControlRejection::new(code, field, "a string with a lone surrogate", "write a string"))?;
    Ok(text.into_owned())
}

fn agree(found: &str, wanted: &str, field: &'static str, code: Code) -> Result<(), ControlRejection> {
    if found == wanted {
        return Ok(());
    }
    Err(ControlRejection::new(code, field, "another one than the key's", "write what the key says"))
}
