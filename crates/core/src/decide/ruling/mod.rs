//! Rulings: what is decided about a call or a result, and why. State stores them, so that an event that is sent again gets the same bytes
//! again.

mod intervention;
mod loop_code;
mod reason;
mod rule;

pub use intervention::Intervention;
pub use loop_code::LoopCode;
pub use reason::{Action, DecidedBy, Evidence, GuardrailReason, Reason, SubjectKind, Suspension};
pub use rule::{Rule, RuleFinding};

/// The ruling on a tool call or result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ruling {
    /// All reasons, the decisive one first; none at all is a plain allow.
    pub reasons: Reasons,
    /// What it is based on besides the reasons.
    pub basis: Basis,
}

/// What a ruling is based on besides its reasons.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Basis {
    /// Nothing: the loop controllers were not asked.
    NotAsked,
    /// The loop controllers' count.
    Counted(u32),
    /// It is the ruling on a result whose call was not allowed to run.
    NotExecuted,
}

/// The reasons of a ruling, as thin as a pointer: most rulings have none, and a thread keeps two rulings for each call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reasons(Option<Box<ReasonList>>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct ReasonList(Box<[Reason]>);

impl From<Vec<Reason>> for Reasons {
    fn from(reasons: Vec<Reason>) -> Self {
        Self((!reasons.is_empty()).then(|| Box::new(ReasonList(reasons.into()))))
    }
}

impl std::ops::Deref for Reasons {
    type Target = [Reason];

    fn deref(&self) -> &[Reason] {
        self.0.as_ref().map_or(&[], |list| &list.0)
    }
}

impl Ruling {
    /// Returns the ruling on a result whose call was not allowed to run.
    #[must_use]
    pub fn not_executed() -> Self {
        Self { reasons: Reasons::default(), basis: Basis::NotExecuted }
    }

    /// Returns a ruling for these reasons, with the loop controllers' count if they were asked.
    #[must_use]
    pub fn new(reasons: Vec<Reason>, count: Option<u32>) -> Self {
        Self { reasons: reasons.into(), basis: count.map_or(Basis::NotAsked, Basis::Counted) }
    }

    /// Returns the loop controllers' count; `None` where they were not asked.
    #[must_use]
    pub fn count(&self) -> Option<u32> {
        match self.basis {
            Basis::Counted(count) => Some(count),
            Basis::NotAsked | Basis::NotExecuted => None,
        }
    }

    /// Returns the reason that decides; `None` is a plain allow, whatever else was noted.
    #[must_use]
    pub fn decisive(&self) -> Option<&Reason> {
        self.reasons.first().filter(|reason| !matches!(reason, Reason::Allowed(_)))
    }

    /// Returns the action: what happens next.
    #[must_use]
    pub fn action(&self) -> Action {
        self.decisive().map_or(Action::Allow, Reason::action)
    }

    /// Returns whether a tool may run.
    #[must_use]
    pub fn allows_execution(&self) -> bool {
        matches!(self.action(), Action::Allow | Action::Warn)
    }

    /// Returns how many bytes it takes on the heap.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        let list = self.reasons.0.as_ref().map_or(0, |_| size_of::<ReasonList>());
        list + self.reasons.iter().map(|reason| size_of::<Reason>() + reason.heap_bytes()).sum::<usize>()
    }
}
