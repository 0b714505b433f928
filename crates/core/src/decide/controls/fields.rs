//! The fields of a control record's value: reading them, and checking that they agree with the key.

use super::record::{AbuseSuspension, ControlId, HoldsUntil, REASON_BYTES_MAX, RULE_BYTES_MAX, SubjectState};
use super::rejection::{ControlRejection, ControlRejectionCode as Code};
use crate::decide::ruling::SubjectKind;
use tollgate_json::Value;
use tollgate_json::digest::Digest;
use tollgate_json::time::parse_timestamp;
use tollgate_passport::Passport;

/// The fields of a value that are used. Unknown ones are ignored, but in what permits.
#[derive(Debug, Default)]
pub(super) struct Fields<'d> {
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
    /// The length of the name of a field that is not known, in bytes.
    unknown: Option<usize>,
}

impl<'d> Fields<'d> {
    /// Reads the fields of an object, of which none may stand twice.
    pub(super) fn of(root: Value<'d>) -> Result<Self, ControlRejection> {
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
                b"by" | b"at" | b"tool" => continue,
                name => {
                    fields.unknown = fields.unknown.or((!value.is_null()).then_some(name.len()));
                    continue;
                }
            };
            if slot.replace(value).is_some() {
                return Err(ControlRejection::new(Code::FieldRepeated, name, "the field more than once", "write each field once"));
            }
        }
        Ok(fields)
    }

    /// Returns the passport of an agent.
    pub(super) fn passport(&self, agent_id: &str) -> Result<Passport, ControlRejection> {
        const FIX: &str = "write the passport as a JSON object";
        const KNOWN: &str = "write type, agent_id and passport, and who wrote it as by, at and tool; limits stand in the passport";
        let found = required(self.agent_id, "agent_id", [Code::AgentIdMissing, Code::AgentIdInvalid])?;
        agree(&found, agent_id, "agent_id", Code::AgentIdMismatch)?;
        let Some(passport) = self.passport else {
            return Err(ControlRejection::new(Code::PassportMissing, "passport", "nothing", FIX));
        };
        self.check_known(KNOWN)?;
        let of_subjects = [self.kind, self.hash, self.state, self.reason, self.until, self.rule, self.step, self.alert_id];
        check_none(&of_subjects, "a field of subjects' records", KNOWN)?;
        if !passport.is_object() {
            return Err(ControlRejection::new(Code::PassportInvalid, "passport", passport.shape().to_string(), FIX));
        }
        Passport::read(passport.source()).map_err(|fault| {
            let fix = "write a passport that `tollgate passport check` can read";
            ControlRejection::new(Code::PassportInvalid, "passport", format!("an object that is no passport ({fault})"), fix)
        })
    }

    /// Returns what operators say of a subject.
    pub(super) fn subject(&self, kind: SubjectKind, hash: &Digest) -> Result<SubjectState, ControlRejection> {
        const FIX: &str = "write suspended or exempt; a null value in place of the whole record takes either back";
        const KNOWN: &str =
            "write type, kind, hash, state, reason and until, and who wrote it as by, at and tool; an exemption is one from all rules";
        let state = self.state_of(kind, hash)?;
        let holds = || Ok(HoldsUntil { reason: self.reason()?, until_ms: self.until_ms()? });
        match state.as_str() {
            "suspended" => holds().map(SubjectState::Suspended),
            "exempt" => {
                self.check_known(KNOWN)?;
                check_none(&[self.agent_id, self.passport, self.rule, self.step, self.alert_id], "a field of other records", KNOWN)?;
                holds().map(SubjectState::Exempt)
            }
            _ => Err(ControlRejection::new(Code::StateUnknown, "state", format!("an unknown state of {} bytes", state.len()), FIX)),
        }
    }

    /// Checks that no field is unknown: in a record that permits, such a field might be meant to restrict.
    fn check_known(&self, fix: &'static str) -> Result<(), ControlRejection> {
        let found = |bytes| ControlRejection::new(Code::FieldUnknown, "value", format!("a field with a name of {bytes} bytes"), fix);
        self.unknown.map_or(Ok(()), |bytes| Err(found(bytes)))
    }

    /// Returns the suspension of a subject by the abuse stage.
    pub(super) fn abuse(&self, kind: SubjectKind, hash: &Digest) -> Result<AbuseSuspension, ControlRejection> {
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

    /// Checks that the value is of the key's type.
    pub(super) fn check_type(&self, id: &ControlId) -> Result<(), ControlRejection> {
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

/// Checks that none of some values is there, which stand in records of other kinds.
fn check_none(values: &[Option<Value<'_>>], found: &str, fix: &'static str) -> Result<(), ControlRejection> {
    match values.iter().flatten().any(|value| !value.is_null()) {
        true => Err(ControlRejection::new(Code::FieldUnknown, "value", found, fix)),
        false => Ok(()),
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
