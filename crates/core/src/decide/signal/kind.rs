//! The kinds of signals.

use crate::codes::codes;

codes! {
    /// A kind of fact of which each one counts by itself.
    PointKind {
        /// A response was cut off by its provider's safety system: the first one of a turn.
        SafetyStop = "safety_stop",
        /// A guardrail provider denied a call.
        Denial = "denial",
        /// A loop controller stopped a call or a turn.
        LoopStop = "loop_stop",
        /// A call of a response that was cut off was blocked.
        SuppressedCall = "suppressed_call",
        /// A call of a suspended subject was blocked.
        SuspendedCall = "suspended_call",
        /// A tool failed.
        ToolFailure = "tool_failure",
        /// A thread began, or one began anew of which nothing is remembered.
        ThreadStart = "thread_start",
    }
}

codes! {
    /// A kind of amount, which is summed by subject and second.
    VolumeKind {
        /// Tool calls.
        Call = "call",
        /// Model responses.
        Response = "response",
        /// Tokens, as the responses' usage reports them.
        Tokens = "tokens",
        /// The part of the input that providers read from their caches.
        CachedTokens = "cached_tokens",
        /// The part of the output that models thought and did not say.
        ReasoningTokens = "reasoning_tokens",
        /// The part of input and output that is sound.
        AudioTokens = "audio_tokens",
    }
}

/// A kind of signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SignalKind {
    /// Facts that count one by one.
    Point(PointKind),
    /// Amounts that are summed.
    Volume(VolumeKind),
}

impl PointKind {
    /// Returns whether it is written only where a rule uses it. The others are always written, so that a rule that is new finds them.
    #[must_use]
    pub fn is_optional(self) -> bool {
        matches!(self, Self::ToolFailure | Self::ThreadStart)
    }
}

impl SignalKind {
    /// Returns the kind with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        PointKind::from_name(name).map(Self::Point).or_else(|| VolumeKind::from_name(name).map(Self::Volume))
    }

    /// Returns the name, as rules and signals write it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Point(kind) => kind.as_str(),
            Self::Volume(kind) => kind.as_str(),
        }
    }

    /// Returns the names of all kinds.
    pub fn names() -> impl Iterator<Item = &'static str> {
        PointKind::ALL.iter().map(|kind| kind.as_str()).chain(VolumeKind::ALL.iter().map(|kind| kind.as_str()))
    }
}
