//! How severe a finding is.

/// The severity of a finding. The order is the order of precedence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Intervention {
    /// The agent is warned. The tool runs, or has run.
    Warn,
    /// This call may not run, and the turn goes on.
    Deny,
    /// This call may not run, and the turn should stop.
    Block,
    /// The result stands, and the turn should stop.
    Halt,
}

impl Intervention {
    /// Returns whether the turn should stop.
    #[must_use]
    pub fn halts(self) -> bool {
        matches!(self, Self::Block | Self::Halt)
    }
}
