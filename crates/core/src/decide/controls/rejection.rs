//! Rejections of control records: why a record is not a control, and what to write instead.

use crate::codes::codes;

codes! {
    /// The code of a broken rule, one per rule. It is the metric's label, and the log names it.
    ControlRejectionCode {
        /// A record without a key.
        KeyMissing = "key_missing",
        /// A key that is not UTF-8.
        KeyNotUtf8 = "key_not_utf8",
        /// A key that names no kind of control.
        KeyUnknown = "key_unknown",
        /// A key whose agent, subject kind or hash is not valid.
        KeyInvalid = "key_invalid",
        /// A value of no bytes.
        ValueEmpty = "value_empty",
        /// A value of more than 1 MiB.
        ValueTooLarge = "value_too_large",
        /// A value that is not UTF-8.
        ValueNotUtf8 = "value_not_utf8",
        /// A value that is not JSON.
        ValueNotJson = "value_not_json",
        /// A value that nests too many containers.
        ValueTooDeep = "value_too_deep",
        /// A value that is JSON, but not an object.
        ValueNotAnObject = "value_not_an_object",
        /// A field that stands twice: which one counts would depend on the reader.
        FieldRepeated = "field_repeated",
        /// A field that is not known in a record that permits, an exemption or a passport: it may be meant to restrict.
        FieldUnknown = "field_unknown",
        /// No type.
        TypeMissing = "type_missing",
        /// A type that is not a string.
        TypeInvalid = "type_invalid",
        /// A type that Tollgate does not know.
        TypeUnknown = "type_unknown",
        /// A type other than the key's.
        TypeMismatch = "type_mismatch",
        /// A passport without its agent.
        AgentIdMissing = "agent_id_missing",
        /// An agent that is not a string.
        AgentIdInvalid = "agent_id_invalid",
        /// An agent other than the key's.
        AgentIdMismatch = "agent_id_mismatch",
        /// A passport record without a passport.
        PassportMissing = "passport_missing",
        /// A passport that is not an object, or that cannot be read.
        PassportInvalid = "passport_invalid",
        /// A subject without its kind.
        KindMissing = "kind_missing",
        /// A kind that is not a string.
        KindInvalid = "kind_invalid",
        /// A kind other than the key's.
        KindMismatch = "kind_mismatch",
        /// A subject without its hash.
        HashMissing = "hash_missing",
        /// A hash that is not a string.
        HashInvalid = "hash_invalid",
        /// A hash other than the key's.
        HashMismatch = "hash_mismatch",
        /// A subject without a state.
        StateMissing = "state_missing",
        /// A state that is not a string.
        StateInvalid = "state_invalid",
        /// A state that Tollgate does not know, or one that operators alone can set in a record of the abuse stage.
        StateUnknown = "state_unknown",
        /// A reason that is not a string.
        ReasonInvalid = "reason_invalid",
        /// A reason of more than 256 bytes.
        ReasonTooLong = "reason_too_long",
        /// An end that is not RFC 3339.
        UntilInvalid = "until_invalid",
        /// A record of the abuse stage without an end.
        UntilMissing = "until_missing",
        /// A record of the abuse stage without its rule, or whose rule is not an id of 1 to 128 bytes.
        RuleInvalid = "rule_invalid",
        /// A step that is not a whole number.
        StepInvalid = "step_invalid",
        /// An alert that is not an id of 1 to 128 bytes.
        AlertIdInvalid = "alert_id_invalid",
    }
}

/// A record that is not a control: the field, the shape of what was found there and what to write instead. It never holds a value from
/// the record.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: found {found}; {fix}")]
pub struct ControlRejection {
    /// The rule that was broken.
    pub code: ControlRejectionCode,
    /// The field that broke it (`key` and `value` are the record's).
    pub field: &'static str,
    /// The shape of what was found.
    pub found: String,
    /// What to write instead.
    pub fix: &'static str,
}

impl ControlRejectionCode {
    /// Returns whether the key names no control, so that the record changes nothing. With any other code, the record's subject is suspended, or
    /// its agent denied every call.
    #[must_use]
    pub fn is_of_key(self) -> bool {
        matches!(self, Self::KeyMissing | Self::KeyNotUtf8 | Self::KeyUnknown | Self::KeyInvalid)
    }
}

impl ControlRejection {
    pub(super) fn new(code: ControlRejectionCode, field: &'static str, found: impl Into<String>, fix: &'static str) -> Self {
        Self { code, field, found: found.into(), fix }
    }
}
