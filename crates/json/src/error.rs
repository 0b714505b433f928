//! Why a text is not JSON.

/// The error of a text that is not JSON, and where it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{kind} at byte {at}")]
pub struct SyntaxError {
    /// The offset into the text, in bytes.
    pub at: usize,
    /// What is wrong there.
    pub kind: SyntaxErrorKind,
}

/// The reasons why a text is not JSON. None of them carries text of the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SyntaxErrorKind {
    /// The text ends inside a value, or is empty.
    #[error("unexpected end of text")]
    UnexpectedEnd,
    /// A byte that cannot stand there: a bad literal, a missing colon, a trailing comma, a byte order mark.
    #[error("unexpected character")]
    UnexpectedCharacter,
    /// A control character below 0x20 inside a string; JSON wants it escaped.
    #[error("unescaped control character in a string")]
    ControlCharacter,
    /// A backslash followed by something that JSON does not define.
    #[error("unknown escape in a string")]
    UnknownEscape,
    /// An integer of more than [`super::INTEGER_DIGITS_MAX`] digits.
    #[error("integer of more than 4300 digits")]
    IntegerTooLong,
    /// More than [`super::VALUES_MAX`] values, keys included.
    #[error("more than 500000 values")]
    TooManyValues,
    /// More containers open at once than the caller allows.
    #[error("nested too deep")]
    TooDeep,
    /// Something after the value.
    #[error("text after the value")]
    TrailingText,
    /// A text of 4 GiB or more, which the node table cannot address.
    #[error("text of 4 GiB or more")]
    TooLong,
}
