//! The guardrail chain: it asks its providers in order. A denial stops it. A provider that fails either denies (fail closed) or is noted as
//! having failed open.
//!
//! A provider that needs an answer from a policy server interrupts the chain: its progress so far waits as an [`Asking`], and the answer
//! resumes it. So a server is asked about a call only once all providers before it have allowed the call.

use super::{Answer, GuardrailDecision, GuardrailProvider, GuardrailRequest, ProviderError, Step};
use crate::decide::ruling::{GuardrailReason, Reason};
use crate::decide::tools::ToolPatterns;

/// The code of a denial by a provider that gave no decision.
pub const EVALUATOR_ERROR: &str = "oap.evaluator_error";

/// A provider with the tools that it decides on, as one element of a chain.
#[derive(Debug)]
pub struct Link {
    /// The provider.
    pub provider: Box<dyn GuardrailProvider>,
    /// The only tools that it decides on; `None` is all.
    pub tools: Option<ToolPatterns>,
}

/// The guardrail providers in force, in order.
#[derive(Debug)]
pub struct GuardrailChain {
    links: Vec<Link>,
    fail_closed: bool,
    passport: Option<String>,
}

/// The progress of a chain on one call.
#[derive(Debug)]
pub enum Progress {
    /// The chain has reached its end.
    Concluded(ChainOutcome),
    /// The chain waits for an answer.
    Asking(Asking),
}

/// A chain that waits for an answer.
#[derive(Debug)]
pub struct Asking {
    question: Question,
    so_far: ChainOutcome,
}

/// A question for a policy server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// The provider's place in the chain.
    pub provider: usize,
    /// The body to send to its endpoint.
    pub body: Vec<u8>,
}

/// The conclusion of a chain on one call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChainOutcome {
    /// The reasons of the denial that decides, the decisive one first; empty if no provider denies.
    pub denial: Vec<Reason>,
    /// Reasons that are recorded besides: the evidence of providers that allowed, and the providers that failed open.
    pub notes: Vec<Reason>,
    /// The outcome of each provider that was asked, by its place in the chain.
    pub calls: Vec<(usize, ProviderOutcome)>,
}

/// The outcome of asking one provider. Failing open is an outcome of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProviderOutcome {
    /// It allowed the call.
    Allowed,
    /// It denied the call.
    Denied,
    /// It failed, and that denied the call.
    FailedClosed(ProviderError),
    /// It failed, and the call went on.
    FailedOpen(ProviderError),
}

impl ProviderOutcome {
    /// Returns the outcome as a label.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::Denied => "denied",
            Self::FailedClosed(_) => "failed_closed",
            Self::FailedOpen(_) => "failed_open",
        }
    }

    /// Returns why the provider failed, if it did.
    #[must_use]
    pub fn error(self) -> Option<ProviderError> {
        match self {
            Self::Allowed | Self::Denied => None,
            Self::FailedClosed(error) | Self::FailedOpen(error) => Some(error),
        }
    }
}

impl Link {
    fn covers(&self, request: &GuardrailRequest<'_>) -> bool {
        self.tools.as_ref().is_none_or(|tools| tools.matches(request.tool_name))
    }
}

impl Asking {
    /// Returns the question that has to be answered.
    #[must_use]
    pub fn question(&self) -> &Question {
        &self.question
    }
}

impl GuardrailChain {
    /// Returns a chain of these providers. With `fail_closed` a provider that fails denies, otherwise it fails open.
    #[must_use]
    pub fn new(links: Vec<Link>, fail_closed: bool, passport: Option<String>) -> Self {
        Self { links, fail_closed, passport }
    }

    /// Returns a chain that allows everything.
    #[must_use]
    pub fn none() -> Self {
        Self::new(Vec::new(), true, None)
    }

    /// Returns the configured passport reference.
    #[must_use]
    pub fn passport(&self) -> Option<&str> {
        self.passport.as_deref()
    }

    /// Returns the name of the provider at a place, for metrics and logs.
    #[must_use]
    pub fn name_of(&self, provider: usize) -> &str {
        self.links.get(provider).map_or("", |link| link.provider.name())
    }

    /// Asks the providers in order, up to the first that needs an answer from a policy server.
    #[must_use]
    pub fn begin(&self, request: &GuardrailRequest<'_>) -> Progress {
        self.advance(request, 0, ChainOutcome::default())
    }

    /// Resumes the chain with the answer to its question. `request` is the one that the chain began with. The providers before the one that
    /// asked are asked again: a passport may have been suspended in the meantime.
    #[must_use]
    pub fn resume(&self, request: &GuardrailRequest<'_>, asking: Asking, answer: Answer) -> Progress {
        let Asking { question: Question { provider, .. }, mut so_far } = asking;
        let Some(link) = self.links.get(provider) else { return Progress::Concluded(so_far) };
        self.record(provider, answer.and_then(|answer| link.provider.read(&answer)), &mut so_far);
        if so_far.denial.is_empty()
            && let Some((earlier, denied)) = self.denied_since(request, provider)
        {
            self.record(earlier, Ok(denied), &mut so_far);
        }
        self.advance(request, provider + 1, so_far)
    }

    /// Returns the denial of a provider before a place, if one denies now that did not when the chain passed it.
    fn denied_since(&self, request: &GuardrailRequest<'_>, place: usize) -> Option<(usize, GuardrailDecision)> {
        let earlier = self.links.iter().enumerate().take(place).filter(|(_, link)| link.covers(request));
        earlier.into_iter().find_map(|(earlier, link)| match link.provider.plan(request) {
            Step::Decided(Ok(decision)) if !decision.allow => Some((earlier, decision)),
            _ => None,
        })
    }

    fn advance(&self, request: &GuardrailRequest<'_>, from: usize, mut outcome: ChainOutcome) -> Progress {
        for (provider, link) in self.links.iter().enumerate().skip(from) {
            if !outcome.denial.is_empty() {
                break;
            }
            if !link.covers(request) {
                continue;
            }
            match link.provider.plan(request) {
                Step::Decided(decided) => self.record(provider, decided, &mut outcome),
                Step::Ask(body) => return Progress::Asking(Asking { question: Question { provider, body }, so_far: outcome }),
            }
        }
        Progress::Concluded(outcome)
    }

    fn record(&self, provider: usize, decided: Result<GuardrailDecision, ProviderError>, outcome: &mut ChainOutcome) {
        let how = match decided {
            Ok(decision) if decision.allow => {
                let evident = decision.reasons.into_iter().filter(|reason| reason.evidence.is_some());
                outcome.notes.extend(evident.map(|reason| Reason::Allowed(Box::new(reason))));
                ProviderOutcome::Allowed
            }
            Ok(decision) => {
                outcome.denial = denial(decision.reasons);
                ProviderOutcome::Denied
            }
            Err(error) if self.fail_closed => {
                let reason = GuardrailReason::new(EVALUATOR_ERROR, "guardrail provider error (fail-closed)");
                outcome.denial = vec![Reason::Denied(Box::new(reason))];
                ProviderOutcome::FailedClosed(error)
            }
            Err(error) => {
                let reason = GuardrailReason::new("guardrail_failed_open", "guardrail provider error (fail-open)");
                outcome.notes.push(Reason::FailedOpen(Box::new(reason)));
                ProviderOutcome::FailedOpen(error)
            }
        };
        outcome.calls.push((provider, how));
    }
}

/// Returns the reasons of a denial. The provider's first reason comes first, because the agent is shown it. A denial without reasons gets
/// DeerFlow's own words.
fn denial(mut reasons: Vec<GuardrailReason>) -> Vec<Reason> {
    if reasons.is_empty() {
        reasons.push(GuardrailReason::new("oap.denied", "blocked by guardrail policy"));
    }
    reasons.into_iter().map(|reason| Reason::Denied(Box::new(reason))).collect()
}

#[cfg(test)]
mod tests {
    use super::super::Allowlist;
    use super::*;
    use crate::event::decode::Attribution;
    use tollgate_passport::ToolInput;

    /// A provider that asks a policy server: `yes` allows, `no` denies, anything else is malformed.
    #[derive(Debug)]
    struct Remote;

    impl GuardrailProvider for Remote {
        fn name(&self) -> &str {
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

    fn link(provider: impl GuardrailProvider + 'static) -> Link {
        Link { provider: Box::new(provider), tools: None }
    }

    /// Returns a chain of two remote providers around a list that denies `bash`.
    fn chain(fail_closed: bool) -> GuardrailChain {
        let denied = Allowlist::new(None, vec!["bash".to_owned()]);
        GuardrailChain::new(vec![link(Remote), link(denied), link(Remote)], fail_closed, None)
    }

    /// Returns the conclusion of a chain with these answers, and the places of the providers that asked.
    fn ask(chain: &GuardrailChain, tool_name: &str, answers: &[Answer]) -> (ChainOutcome, Vec<usize>) {
        let request = GuardrailRequest {
            tool_name,
            tool_input: &ToolInput::Absent { null: false },
            tool_call_id: "c",
            thread_id: "t",
            turn_id: None,
            time_ms: None,
            latest_ms: None,
            attribution: &Attribution::default(),
            passport: None,
        };
        let (mut progress, mut answers, mut asked) = (chain.begin(&request), answers.iter(), Vec::new());
        loop {
            match progress {
                Progress::Concluded(outcome) => return (outcome, asked),
                Progress::Asking(asking) => {
                    asked.push(asking.question().provider);
                    let answer = answers.next().cloned().unwrap_or(Err(ProviderError::NotAsked));
                    progress = chain.resume(&request, asking, answer);
                }
            }
        }
    }

    fn answer(text: &str) -> Answer {
        Ok(text.as_bytes().to_vec())
    }

    #[test]
    fn a_denial_stops_the_chain() {
        let chain = chain(true);
        let (outcome, asked) = ask(&chain, "bash", &[answer("yes")]);
        assert_eq!(outcome.denial.first().map(|denial| denial.message("bash")), Some("tool 'bash' is denied".to_owned()));
        assert_eq!((asked, outcome.calls), (vec![0], vec![(0, ProviderOutcome::Allowed), (1, ProviderOutcome::Denied)]));
        let (outcome, asked) = ask(&chain, "ls", &[answer("no")]);
        assert_eq!(outcome.denial.first().map(Reason::code), Some("oap.denied"));
        assert_eq!((asked, outcome.calls), (vec![0], vec![(0, ProviderOutcome::Denied)]));
    }

    #[test]
    fn everybody_has_to_allow() {
        let (outcome, asked) = ask(&chain(true), "ls", &[answer("yes"), answer("no")]);
        assert_eq!(outcome.denial.first().map(Reason::code), Some("oap.denied"));
        assert_eq!(asked, [0, 2]);
        let (outcome, _) = ask(&chain(true), "ls", &[answer("yes"), answer("yes")]);
        assert_eq!((outcome.denial, outcome.notes), (vec![], vec![]));
    }

    /// A provider that allows the first call that it is asked about, and denies all later ones.
    #[derive(Debug, Default)]
    struct Fickle(std::sync::atomic::AtomicBool);

    impl GuardrailProvider for Fickle {
        fn name(&self) -> &str {
            "fickle"
        }
        fn plan(&self, _: &GuardrailRequest<'_>) -> Step {
            let denies = self.0.swap(true, std::sync::atomic::Ordering::Relaxed);
            Step::Decided(Ok(GuardrailDecision { allow: !denies, reasons: Vec::new() }))
        }
    }

    #[test]
    fn what_was_forbidden_while_an_answer_was_awaited_is_denied() {
        let chain = GuardrailChain::new(vec![link(Fickle::default()), link(Remote)], true, None);
        let (outcome, asked) = ask(&chain, "ls", &[answer("yes")]);
        assert_eq!((outcome.denial.first().map(Reason::code), asked), (Some("oap.denied"), vec![1]));
        assert_eq!(outcome.calls, [(0, ProviderOutcome::Allowed), (1, ProviderOutcome::Allowed), (0, ProviderOutcome::Denied)]);
    }

    #[test]
    fn a_provider_may_have_a_say_in_some_tools_only() {
        let tools = Some(ToolPatterns::new(["web_*".to_owned()]));
        let chain = GuardrailChain::new(vec![Link { provider: Box::new(Remote), tools }], true, None);
        assert_eq!(ask(&chain, "ls", &[]).0, ChainOutcome::default());
        assert_eq!(ask(&chain, "web_fetch", &[answer("no")]).1, [0]);
    }

    #[test]
    fn failures_close_unless_configured_to_be_passed_over() {
        for answers in [vec![], vec![answer("perhaps")], vec![Err(ProviderError::TimedOut)]] {
            let (outcome, _) = ask(&chain(true), "ls", &answers);
            assert_eq!(outcome.denial.first().map(Reason::code), Some(EVALUATOR_ERROR));
            let (outcome, _) = ask(&chain(false), "ls", &answers);
            assert_eq!(outcome.denial, []);
            assert_eq!(outcome.notes.first().map(Reason::code), Some("guardrail_failed_open"));
            assert!(matches!(outcome.calls.first(), Some((0, ProviderOutcome::FailedOpen(_)))), "{outcome:?}");
        }
    }
}
