//! Suspensions of subjects, as verdicts report them.

/// The kind of a subject that can be suspended.
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
    /// Every kind, in the order in which suspensions are looked up.
    pub const ALL: [Self; 4] = [Self::User, Self::Tenant, Self::Agent, Self::Thread];

    /// Returns the kind as control records write it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Tenant => "tenant",
            Self::Agent => "agent",
            Self::Thread => "thread",
        }
    }

    /// Returns the kind with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
    }
}

/// The suspension of a subject, as a verdict reports it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suspension {
    /// The kind of the suspended subject.
    pub kind: SubjectKind,
    /// The reason, in the operator's words.
    pub reason: Option<String>,
}

impl Suspension {
    /// Returns the sentence for the verdict.
    #[must_use]
    pub fn message(&self) -> String {
        let kind = self.kind.as_str();
        match &self.reason {
            Some(reason) => format!("The {kind} is suspended: {reason}"),
            None => format!("The {kind} is suspended."),
        }
    }

    /// Returns how many bytes it takes in memory.
    #[must_use]
    pub fn bytes(&self) -> usize {
        size_of::<Self>() + self.reason.as_ref().map_or(0, String::len)
    }
}
