//! The chain: providers in order, the first denial decides, a provider that fails closes or is said to have failed open.

use super::super::verdict::{GuardrailReason, Reason};
use super::{Answer, GuardrailDecision, GuardrailProvider, GuardrailRequest, ProviderError, Step};

/// The providers in force.
#[derive(Debug)]
pub struct GuardrailChain {
    providers: Vec<Box<dyn GuardrailProvider>>,
    fail_closed: bool,
    passport: Option<String>,
}

/// What every provider that matters said while planning, in the chain's order. Providers behind a local denial are not asked.
#[derive(Debug, Default)]
pub struct ChainPlan {
    steps: Vec<Step>,
}

/// What the chain concludes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChainOutcome {
    /// The reasons of the denial that decides, the first one decisive; empty if nobody denies.
    pub denial: Vec<Reason>,
    /// Providers that failed and were passed over, for the record.
    pub notes: Vec<Reason>,
    /// What each asked provider answered, for metrics: its name and how it went.
    pub calls: Vec<(&'static str, ProviderOutcome)>,
}

/// How asking one provider went. Passing over a failure is an outcome of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ProviderOutcome {
    /// It allowed the call.
    Allowed,
    /// It denied the call.
    Denied,
    /// It failed, which denied the call.
    FailedClosed,
    /// It failed, and the call went on.
    FailedOpen,
}

impl ProviderOutcome {
    /// The outcome as a label.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::Denied => "denied",
            Self::FailedClosed => "failed_closed",
            Self::FailedOpen => "failed_open",
        }
    }
}

impl ChainPlan {
    /// The questions that have to be asked before the plan can be folded: the provider's place in the chain, and what to ask it.
    pub fn questions(&self) -> impl Iterator<Item = (usize, &[u8])> {
        self.steps.iter().enumerate().filter_map(|(provider, step)| match step {
            Step::Ask(question) => Some((provider, question.as_slice())),
            Step::Decided(_) => None,
        })
    }
}

impl GuardrailChain {
    /// A chain of these providers. With `fail_closed` a provider that fails denies, else it is passed over.
    #[must_use]
    pub fn new(providers: Vec<Box<dyn GuardrailProvider>>, fail_closed: bool, passport: Option<String>) -> Self {
        Self { providers, fail_closed, passport }
    }

    /// A chain that allows everything.
    #[must_use]
    pub fn none() -> Self {
        Self::new(Vec::new(), true, None)
    }

    /// The configured passport reference.
    #[must_use]
    pub fn passport(&self) -> Option<&str> {
        self.passport.as_deref()
    }

    /// Lets every provider decide or ask.
    pub fn plan(&self, request: &GuardrailRequest<'_>) -> ChainPlan {
        let mut steps = Vec::with_capacity(self.providers.len());
        for provider in &self.providers {
            let step = provider.plan(request);
            let denies = match &step {
                Step::Decided(Ok(decision)) => !decision.allow,
                Step::Decided(Err(_)) => self.fail_closed,
                Step::Ask(_) => false,
            };
            steps.push(step);
            if denies {
                break;
            }
        }
        ChainPlan { steps }
    }

    /// Concludes from a plan and the answers to its questions; a question without an answer is a provider error.
    pub fn fold(&self, plan: ChainPlan, answers: impl IntoIterator<Item = Answer>) -> ChainOutcome {
        let mut answers = answers.into_iter();
        let mut outcome = ChainOutcome::default();
        for (provider, step) in self.providers.iter().zip(plan.steps) {
            let decided = match step {
                Step::Decided(decided) => decided,
                Step::Ask(_) => answers.next().unwrap_or(Err(ProviderError::NotAsked)).and_then(|answer| provider.read(&answer)),
            };
            let how = self.conclude_one(decided, &mut outcome);
            outcome.calls.push((provider.name(), how));
            if !outcome.denial.is_empty() {
                break;
            }
        }
        outcome
    }

    fn conclude_one(&self, decided: Result<GuardrailDecision, ProviderError>, outcome: &mut ChainOutcome) -> ProviderOutcome {
        match decided {
            Ok(decision) if decision.allow => {
                // What an allowing provider stood on is kept; that it had nothing to say is not.
                let evident = decision.reasons.into_iter().filter(|reason| reason.evidence.is_some());
                outcome.notes.extend(evident.map(|reason| Reason::Allowed(Box::new(reason))));
                ProviderOutcome::Allowed
            }
            Ok(decision) => {
                outcome.denial = denial(decision.reasons);
                ProviderOutcome::Denied
            }
            Err(_) if self.fail_closed => {
                outcome.denial = vec![reason(Reason::Denied, "oap.evaluator_error", "guardrail provider error (fail-closed)")];
                ProviderOutcome::FailedClosed
            }
            Err(_) => {
                outcome.notes.push(reason(Reason::FailedOpen, "guardrail_failed_open", "guardrail provider error (fail-open)"));
                ProviderOutcome::FailedOpen
            }
        }
    }
}

/// The agent is shown the first reason of a denial; one without any gets DeerFlow's own words.
fn denial(reasons: Vec<GuardrailReason>) -> Vec<Reason> {
    if reasons.is_empty() {
        return vec![reason(Reason::Denied, "oap.denied", "blocked by guardrail policy")];
    }
    reasons.into_iter().map(|reason| Reason::Denied(Box::new(reason))).collect()
}

fn reason(kind: fn(Box<GuardrailReason>) -> Reason, code: &'static str, message: &'static str) -> Reason {
    kind(Box::new(GuardrailReason::new(code, message)))
}

#[cfg(test)]
mod tests {
    use super::super::Allowlist;
    use super::*;
    use crate::decode::{Attribution, ToolInput};

    /// A provider that has to ask somebody: `yes` allows, `no` denies, anything else is malformed.
    #[derive(Debug)]
    struct Remote;

    impl GuardrailProvider for Remote {
        fn name(&self) -> &'static str {
            "remote"
        }
        fn plan(&self, request: &GuardrailRequest<'_>) -> Step {
            Step::Ask(request.tool_name.as_bytes().to_vec())
        }
        fn read(&self, answer: &[u8]) -> Result<GuardrailDecision, ProviderError> {
            match answer {
                b"yes" => Ok(GuardrailDecision { allow: true, reasons: Vec::new() }),
                b"no" => Ok(GuardrailDecision { allow: false, reasons: Vec::new() }),
                _ => Err(ProviderError::Malformed("neither yes nor no")),
            }
        }
    }

    fn chain(fail_closed: bool) -> GuardrailChain {
        let denied = Allowlist { allowed_tools: None, denied_tools: ["bash".to_owned()].into() };
        GuardrailChain::new(vec![Box::new(Remote), Box::new(denied), Box::new(Remote)], fail_closed, None)
    }

    fn plan(chain: &GuardrailChain, tool_name: &str) -> ChainPlan {
        let request = GuardrailRequest {
            tool_name,
            tool_input: &ToolInput::Absent { null: false },
            tool_call_id: "c",
            thread_id: "t",
            turn_id: None,
            time_ms: None,
            attribution: &Attribution::default(),
            passport: None,
        };
        chain.plan(&request)
    }

    fn answer(text: &str) -> Answer {
        Ok(text.as_bytes().to_vec())
    }

    #[test]
    fn a_local_denial_spares_the_questions_behind_it() {
        let chain = chain(true);
        assert_eq!(plan(&chain, "bash").questions().count(), 1);
        assert_eq!(plan(&chain, "ls").questions().count(), 2);
    }

    #[test]
    fn the_first_denial_decides() {
        let chain = chain(true);
        let outcome = chain.fold(plan(&chain, "ls"), [answer("yes"), answer("no")]);
        assert_eq!(outcome.denial.first().map(Reason::code), Some("oap.denied"));
        let outcome = chain.fold(plan(&chain, "bash"), [answer("yes")]);
        assert_eq!(outcome.denial.first().map(|denial| denial.message("bash")), Some("tool 'bash' is denied".to_owned()));
        let outcome = chain.fold(plan(&chain, "bash"), [answer("no")]);
        assert_eq!(outcome.calls, [("remote", ProviderOutcome::Denied)]);
    }

    #[test]
    fn failures_close_unless_configured_to_be_passed_over() {
        for answers in [vec![], vec![answer("perhaps")], vec![Err(ProviderError::NotAsked)]] {
            let closed = chain(true);
            let outcome = closed.fold(plan(&closed, "ls"), answers.clone());
            assert_eq!(outcome.denial.first().map(Reason::code), Some("oap.evaluator_error"));
            let open = chain(false);
            let outcome = open.fold(plan(&open, "ls"), answers);
            assert_eq!(outcome.denial, []);
            assert_eq!(outcome.notes.first().map(Reason::code), Some("guardrail_failed_open"));
            assert_eq!(outcome.calls.first(), Some(&("remote", ProviderOutcome::FailedOpen)));
        }
    }
}
