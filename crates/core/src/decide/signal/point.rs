//! The two forms of signals: points, which count one by one, with the dimensions that rules can look at, and volumes, which are summed.

use std::borrow::Cow;

use crate::codes::codes;
use crate::event::record::{Offset, Partition};
use tollgate_json::digest::Digest;

use super::{KeyKind, PointKind, SubjectKey, VolumeKind};

/// The longest text of a dimension, in bytes. A longer one stands as `sha256:` and its digest.
pub const TEXT_BYTES_MAX: usize = 128;

codes! {
    /// A field of a point that rules can look at and group by.
    Dimension {
        /// The hash of the user.
        User = "user",
        /// The hash of the tenant.
        Tenant = "tenant",
        /// The hash of the agent.
        Agent = "agent",
        /// The hash of the thread.
        Thread = "thread",
        /// The tool that was called.
        Tool = "tool",
        /// The verdict's code.
        Code = "code",
        /// The digest of the call's arguments.
        ArgsHash = "args_hash",
        /// The category of a safety stop.
        Category = "category",
        /// Whether a safety stop was about the input or the output.
        Stage = "stage",
        /// The model provider, as the event names it.
        Provider = "provider",
        /// The safety detector that saw the stop.
        Detector = "detector",
    }
}

impl Dimension {
    /// Returns the kind of subject whose hash it holds; `None` for a text.
    #[must_use]
    pub fn subject(self) -> Option<KeyKind> {
        match self {
            Self::User => Some(KeyKind::User),
            Self::Tenant => Some(KeyKind::Tenant),
            Self::Agent => Some(KeyKind::Agent),
            Self::Thread => Some(KeyKind::Thread),
            _ => None,
        }
    }
}

/// One fact about one subject. The same fact is written once for each subject that the event has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Point<'a> {
    /// What happened.
    pub kind: PointKind,
    /// The subject that this copy is for.
    pub subject: SubjectKey,
    /// The partition of the events topic that the event stands in.
    pub source: Partition,
    /// The event's offset there.
    pub offset: Offset,
    /// When it happened, in milliseconds since the epoch.
    pub time_ms: i64,
    /// The event's thread.
    pub thread_id: Cow<'a, str>,
    /// The event's id.
    pub event_id: Cow<'a, str>,
    /// The hash of the user; `None` where the event names none, as for the other subjects.
    pub user: Option<Digest>,
    /// The hash of the tenant.
    pub tenant: Option<Digest>,
    /// The hash of the agent.
    pub agent: Option<Digest>,
    /// The hash of the thread.
    pub thread: Option<Digest>,
    /// The digest of the call's arguments.
    pub args_hash: Option<Digest>,
    /// The tool that was called.
    pub tool: Option<Cow<'a, str>>,
    /// The verdict's code.
    pub code: Option<Cow<'a, str>>,
    /// The category of a safety stop.
    pub category: Option<Cow<'a, str>>,
    /// `input` or `output`, for a safety stop.
    pub stage: Option<Cow<'a, str>>,
    /// The model provider.
    pub provider: Option<Cow<'a, str>>,
    /// The safety detector.
    pub detector: Option<Cow<'a, str>>,
}

impl Point<'_> {
    /// Returns a dimension as text: a hash in hex digits, or the text itself; `None` where the event has none.
    #[must_use]
    pub fn dimension(&self, dimension: Dimension) -> Option<Cow<'_, str>> {
        let hash = |digest: Option<Digest>| digest.map(|digest| Cow::Owned(digest.to_string()));
        match dimension {
            Dimension::User => hash(self.user),
            Dimension::Tenant => hash(self.tenant),
            Dimension::Agent => hash(self.agent),
            Dimension::Thread => hash(self.thread),
            Dimension::ArgsHash => hash(self.args_hash),
            Dimension::Tool => self.tool.as_deref().map(Cow::Borrowed),
            Dimension::Code => self.code.as_deref().map(Cow::Borrowed),
            Dimension::Category => self.category.as_deref().map(Cow::Borrowed),
            Dimension::Stage => self.stage.as_deref().map(Cow::Borrowed),
            Dimension::Provider => self.provider.as_deref().map(Cow::Borrowed),
            Dimension::Detector => self.detector.as_deref().map(Cow::Borrowed),
        }
    }

    /// Returns a subject's hash without making a text of it; `None` where the event names no such subject, and for a text.
    #[must_use]
    pub fn hash(&self, dimension: Dimension) -> Option<Digest> {
        match dimension {
            Dimension::User => self.user,
            Dimension::Tenant => self.tenant,
            Dimension::Agent => self.agent,
            Dimension::Thread => self.thread,
            Dimension::ArgsHash => self.args_hash,
            _ => None,
        }
    }
}

/// Returns a text as a dimension holds it: itself, or `sha256:` and its digest if it is longer than [`TEXT_BYTES_MAX`].
#[must_use]
pub fn dimension_text(text: &str) -> Cow<'_, str> {
    if text.len() <= TEXT_BYTES_MAX { Cow::Borrowed(text) } else { Cow::Owned(format!("sha256:{}", Digest::of(text.as_bytes()))) }
}

/// The amounts of one subject in one second of event time, from one partition of the events topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Volume {
    /// What was measured.
    pub kind: VolumeKind,
    /// The subject.
    pub subject: SubjectKey,
    /// The partition of the events topic.
    pub source: Partition,
    /// The second, since the epoch.
    pub second: i64,
    /// The offset of each event, ascending, with its amount. They stand one by one, so that a reader can leave out those that it has counted
    /// already.
    pub amounts: Vec<(Offset, u64)>,
}

impl Volume {
    /// Returns the sum of the amounts behind an offset, which is the last one that was counted already.
    #[must_use]
    pub fn sum_behind(&self, applied: Option<Offset>) -> u64 {
        let is_new = |offset: &Offset| applied.is_none_or(|applied| *offset > applied);
        self.amounts.iter().filter(|(offset, _)| is_new(offset)).fold(0, |sum, (_, amount)| sum.saturating_add(*amount))
    }

    /// Returns the offset of its last event.
    #[must_use]
    pub fn last(&self) -> Option<Offset> {
        self.amounts.last().map(|(offset, _)| *offset)
    }
}
