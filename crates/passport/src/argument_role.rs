//! What the arguments of tools are: a path, a URL, a command or a text.

use tollgate_json::{Shape, Text, Value};

use super::name_kind::NameKind;

/// What an argument is to its tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ArgumentRole {
    /// A command line.
    Command,
    /// A command line, or a list of words of which a program is started without a shell.
    Words,
    /// The folder in which a command runs.
    Folder,
    /// The language of a command, which has to be a shell's.
    Language,
    /// A path of a file or folder.
    Path,
    /// A patch, which names files of its own: see [`bash_commands::patched`].
    Patch,
    /// A pattern of paths below the folder that the call names.
    Pattern,
    /// A URL.
    Url,
    /// A host, or a URL.
    Host,
    /// The method of a request.
    Method,
    /// The body of a request.
    Body,
    /// A route of an API, which may be a whole address.
    Route,
    /// Somebody who gets a message.
    Recipient,
    /// A channel that a message is sent to.
    Channel,
    /// The kind of an agent that is started.
    SessionType,
    /// Headers of a request: an object with their values.
    Headers,
    /// A text or a choice. No tool reads a file, fetches a URL or runs a command because of it.
    Text,
    /// Something that changes what a call does in ways that cannot be judged. A call that has it is denied.
    Refused,
    /// Something of this kind that has a value with which the call does what it does without the argument.
    RefusedBut(&'static str),
}

impl ArgumentRole {
    /// The roles that configuration can give to an argument, with their names.
    pub const CONFIGURABLE: [(&'static str, Self); 12] = [
        ("command", Self::Command),
        ("folder", Self::Folder),
        ("language", Self::Language),
        ("path", Self::Path),
        ("pattern", Self::Pattern),
        ("url", Self::Url),
        ("method", Self::Method),
        ("body", Self::Body),
        ("recipient", Self::Recipient),
        ("channel", Self::Channel),
        ("session_type", Self::SessionType),
        ("text", Self::Text),
    ];

    /// Returns whether an argument with the role and this value is refused.
    pub(super) fn refuses(self, value: Value<'_>) -> bool {
        match self {
            Self::Refused => holds(value),
            Self::RefusedBut(harmless) => holds(value) && value.as_text().and_then(Text::into_str).is_none_or(|text| text != harmless),
            _ => false,
        }
    }

    /// Returns what the role says of a text that a tool of an MCP server is given. Roles other than those of texts come from a configuration.
    pub(super) fn name_kind(self) -> NameKind {
        match self {
            Self::Path | Self::Pattern | Self::Folder => NameKind::File,
            Self::Url => NameKind::Url,
            Self::Host => NameKind::Host,
            _ => NameKind::Unknown,
        }
    }

    /// Returns whether all that lies in an argument with the role is of the role, whatever the names below say.
    pub(super) fn holds_its_kind(self) -> bool {
        matches!(self, Self::Url | Self::Host | Self::Recipient | Self::Channel | Self::SessionType | Self::Folder | Self::Method)
    }
}

/// Returns whether a value is neither null, false nor empty.
pub(super) fn holds(value: Value<'_>) -> bool {
    let is_empty = match value.shape() {
        Shape::String => value.source().is_empty(),
        Shape::Array => value.items().next().is_none(),
        Shape::Object => value.members().next().is_none(),
        _ => value.is_null() || value.as_bool() == Some(false),
    };
    !is_empty
}
