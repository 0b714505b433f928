//! The packs of rules for capabilities.

/// A pack of rules for one capability.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Pack {
    /// Shell commands.
    Command,
    /// Files that are read.
    FileRead,
    /// Files that are written.
    FileWrite,
    /// URLs that are fetched, and searches.
    WebFetch,
    /// A browser.
    WebBrowser,
    /// Tools of MCP servers.
    Mcp,
    /// Messages to people.
    Messaging,
    /// Agents that are started.
    Session,
}

impl Pack {
    /// Every pack.
    pub const ALL: [Self; 8] =
        [Self::Command, Self::FileRead, Self::FileWrite, Self::WebFetch, Self::WebBrowser, Self::Mcp, Self::Messaging, Self::Session];

    /// Returns the capability that the pack is for.
    #[must_use]
    pub const fn capability(self) -> &'static str {
        match self {
            Self::Command => "system.command.execute",
            Self::FileRead => "data.file.read",
            Self::FileWrite => "data.file.write",
            Self::WebFetch => "web.fetch",
            Self::WebBrowser => "web.browser",
            Self::Mcp => "mcp.tool.execute",
            Self::Messaging => "messaging.send",
            Self::Session => "agent.session.create",
        }
    }

    /// Returns the pack's id, as decisions report it.
    #[must_use]
    pub fn policy_id(self) -> &'static str {
        match self {
            Self::Command => "system.command.execute.v1",
            Self::FileRead => "data.file.read.v1",
            Self::FileWrite => "data.file.write.v1",
            Self::WebFetch => "web.fetch.v1",
            Self::WebBrowser => "web.browser.v1",
            Self::Mcp => "mcp.tool.execute.v1",
            Self::Messaging => "messaging.message.send.v1",
            Self::Session => "agent.session.create.v1",
        }
    }

    /// Returns the keys of `limits` that the pack reads: the capability's key, and for messages also the policy's, which documents in use have.
    pub fn limit_keys(self) -> impl Iterator<Item = &'static str> {
        let policy = self.policy_id().strip_suffix(".v1").filter(|policy| *policy != self.capability());
        std::iter::once(self.capability()).chain(policy)
    }

    /// Returns the pack for a capability.
    #[must_use]
    pub fn of(capability: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|pack| pack.capability() == capability)
    }
}

/// The name in place of a capability for harmless tools, which need no more than an active passport.
pub const NO_CAPABILITY: &str = "none";
