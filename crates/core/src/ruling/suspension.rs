//! Suspensions of subjects, as verdicts tell of them.

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

    /// Returns the kind as it stands in control records.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Tenant => "tenant",
            Self::Agent => "agent",
            Self::Thread => "thread",
        }
    }

    /// Returns the kind of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
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
    /// Returns the sentence of the verdict.
    #[must_use]
    pub fn message(&self) -> String {
        let kind = self.kind.as_str();
        match &self.reason {
            Some(reason) => format!("The {kind} is suspended: {reason}"),
            None => format!("The {kind} is suspended."),
        }
    }

    /// Returns bytes in memory.
    #[must_use]
    pub fn bytes(&self) -> usize {
        size_of::<Self>() + self.reason.as_ref().map_or(0, String::len)
    }
}
