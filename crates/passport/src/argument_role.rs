//! What the arguments of tools are: a path, a URL, a command or a text.

/// What an argument is to its tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ArgumentRole {
    /// A command line.
    Command,
    /// The folder in which a command runs.
    Folder,
    /// The language of a command, which has to be a shell's.
    Language,
    /// A path of a file or folder.
    Path,
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

    /// Returns whether all that lies in an argument with the role is of the role, whatever the names below say.
    pub(super) fn holds_its_kind(self) -> bool {
        matches!(self, Self::Url | Self::Host | Self::Recipient | Self::Channel | Self::SessionType | Self::Folder | Self::Method)
    }
}
