//! What checks find: the denial of a call, and who is told of every outcome.

use std::borrow::Cow;

/// The denial of a call: its code and its sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denial {
    /// Its OAP code.
    pub code: &'static str,
    /// Its sentence. It quotes the passport and never the call.
    pub message: Cow<'static, str>,
}

impl Denial {
    pub(super) fn new(code: &'static str, message: impl Into<Cow<'static, str>>) -> Self {
        Self { code, message: message.into() }
    }

    /// Returns the denial for a passport that is not valid.
    pub(super) fn invalid(what: impl std::fmt::Display) -> Self {
        Self::new("oap.passport_invalid", format!("Passport is not valid: {what}"))
    }
}

/// The outcome of one check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// There is nothing against the call.
    Passed,
    /// The call may not run.
    Denied(Denial),
    /// The check was not made, for this reason.
    NotAsked(&'static str),
}

/// A receiver for the outcomes of the checks.
pub trait Report {
    /// Takes the outcome of a check.
    fn outcome(&mut self, check: &'static str, outcome: Outcome);

    /// Takes the policy that the checks from here on belong to.
    fn policy(&mut self, policy_id: Cow<'static, str>) {
        let _ = policy_id;
    }

    /// Takes a function that says which entry of a list a denied call comes nearest to. Its sentence has words of the passport alone. Those who
    /// explain a decision call it; a verdict has no such sentence.
    fn near(&mut self, nearest: &dyn Fn() -> Option<String>) {
        let _ = nearest;
    }
}

/// Reports the result of a check.
pub(super) fn report(to: &mut dyn Report, check: &'static str, outcome: Result<(), Denial>) {
    to.outcome(check, outcome.map_or_else(Outcome::Denied, |()| Outcome::Passed));
}
