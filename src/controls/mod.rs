//! Controls: what operators have switched for the whole fleet, in force for every partition at once.
//!
//! Records of the compacted topic `agent.controls` set passports by agent and suspend subjects. Every lane of a process reads one shared
//! table.

use std::sync::Arc;

use dashmap::DashMap;

use crate::decode::Event;
use crate::passport::Passport;

/// What can be suspended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SubjectKind {
    /// An end user of a tenant.
    User,
    /// A tenant.
    Tenant,
    /// An agent of a tenant.
    Agent,
    /// A thread of a tenant.
    Thread,
}

impl SubjectKind {
    /// Every kind there is, in the order in which they are looked for.
    pub const ALL: [Self; 4] = [Self::User, Self::Tenant, Self::Agent, Self::Thread];

    /// The kind as it stands in control records.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Tenant => "tenant",
            Self::Agent => "agent",
            Self::Thread => "thread",
        }
    }
}

/// A subject's suspension, as a verdict tells of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suspension {
    /// What is suspended.
    pub kind: SubjectKind,
    /// Why, in the operator's words.
    pub reason: Option<String>,
}

impl Suspension {
    /// The sentence of the verdict.
    #[must_use]
    pub fn message(&self) -> String {
        let kind = self.kind.as_str();
        match &self.reason {
            Some(reason) => format!("The {kind} is suspended: {reason}"),
            None => format!("The {kind} is suspended."),
        }
    }

    /// Bytes in memory.
    #[must_use]
    pub fn bytes(&self) -> usize {
        size_of::<Self>() + self.reason.as_ref().map_or(0, String::len)
    }
}

/// The table of everything in force: many readers, keyed updates.
#[derive(Debug, Default)]
pub struct Controls {
    passports: DashMap<String, Arc<Passport>>,
}

impl Controls {
    /// The passport of an agent.
    #[must_use]
    pub fn passport(&self, agent_id: &str) -> Option<Arc<Passport>> {
        self.passports.get(agent_id).map(|passport| Arc::clone(&passport))
    }

    /// Whether a subject on whose behalf an event speaks is suspended at the event's time.
    #[must_use]
    pub fn suspension(&self, event: &Event<'_>) -> Option<Suspension> {
        let _ = event;
        None
    }
}
