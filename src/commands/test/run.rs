//! Running a case: its events come to the deciding stage as a worker's would, and its answers stand in for policy servers.

use std::collections::VecDeque;
use std::sync::Arc;

use serde_json::{Value, json};
use tollgate_core::decide::controls::Controls;
use tollgate_core::decide::deciding::{Deciding, Outcome, VerdictBuffer};
use tollgate_core::decide::guardrail::{Dialect, ProviderError, ProviderOutcome, Question};
use tollgate_core::decide::policy::Policy;
use tollgate_core::engine::stage::{Progress, Resumed, Stage};
use tollgate_core::event::decode::Rejection;
use tollgate_core::event::record::Record;

use super::answer::StubAnswer;
use super::expected::{Expected, REJECTED};
use super::suite::{Case, Step, Tested};
use crate::commands::shared::suites::Failure;

/// What a step came to.
#[derive(Debug, Default)]
pub(super) struct StepResult {
    /// The verdict; of a record that cannot be read, with the code of its rejection.
    pub(super) verdict: Option<Value>,
    /// How the providers answered, by their places in the chain.
    pub(super) provider_calls: Vec<(usize, ProviderOutcome)>,
}

/// Runs a case on a state that knows nothing, and returns what failed. `look` is given what each step came to.
pub(super) fn run(case: &Case, tested: &Tested, mut look: impl FnMut(&StepResult)) -> Vec<Failure> {
    let controls = Controls::new(tested.subject_keys.iter());
    for control in &case.controls {
        // It was tried when the file was read.
        let _is_read = controls.apply(Some(control.key.as_bytes()), control.value.as_deref().map(str::as_bytes));
    }
    let policy = Arc::new(Policy::under(&tested.settings, Arc::new(controls)));
    let (mut deciding, mut failures) = (Deciding::new(policy), Vec::new());
    for (number, step) in (1..).zip(&case.steps) {
        let mut asked = StubServers { tested, answers: step.answers.iter().cloned().collect(), problems: Vec::new() };
        let (got, rejection) = step.message.with_record(&tested.topic, number, |record| decide(&mut deciding, record, &mut asked));
        look(&got);
        let failure = judge(number, step, &got, rejection, asked);
        if !failure.differences.is_empty() || !failure.problems.is_empty() {
            failures.push(failure);
        }
    }
    failures
}

fn judge(number: usize, step: &Step, got: &StepResult, rejection: Option<Rejection>, asked: StubServers<'_>) -> Failure {
    let mut problems = asked.problems;
    let left = asked.answers.len();
    if left > 0 {
        problems.push(format!("{left} of its answers were not asked for; remove them, or look why no server was asked"));
    }
    let mut differences = Vec::new();
    match rejection.filter(|_| !step.expected.is_rejection()) {
        // A mistake in a test file must not pass for an event.
        Some(Rejection { code, field, found, fix, .. }) => problems.push(format!(
            "it is no event: {}: {field}: found {found}; {fix} (or expect `{REJECTED}: {}`)",
            code.as_str(),
            code.as_str()
        )),
        None => differences = step.expected.differences(got.verdict.as_ref()),
    }
    if step.expected == Expected::Nothing {
        differences.retain(|difference| difference.field != REJECTED);
    }
    Failure { what: "event", number, line: step.line, differences, problems }
}

/// Decides on a record.
fn decide(deciding: &mut Deciding, record: &Record<'_>, asked: &mut StubServers<'_>) -> (StepResult, Option<Rejection>) {
    let mut out = VerdictBuffer::default();
    let mut progress = deciding.apply(record, &mut out);
    let outcome = loop {
        match progress {
            Progress::Done(outcome) => break Some(outcome),
            Progress::Waits => break None,
            Progress::Asks(question) => {
                deciding.answer(record.offset, asked.answer(deciding.policy(), &question));
                progress = match deciding.resume(&mut out) {
                    Some(Resumed::Done { outcome, .. }) => Progress::Done(outcome),
                    Some(Resumed::Asks(_, question)) => Progress::Asks(question),
                    None => Progress::Waits,
                };
            }
        }
    };
    let verdict = serde_json::from_slice(&out.json).ok();
    match outcome {
        Some(Outcome::Verdict { decided, .. }) => (StepResult { verdict, provider_calls: decided.provider_calls }, None),
        Some(Outcome::DeadLetter(rejection)) => {
            let mut verdict = verdict.unwrap_or_else(|| json!({}));
            if let Some(members) = verdict.as_object_mut() {
                members.insert(REJECTED.to_owned(), rejection.code.as_str().into());
            }
            (StepResult { verdict: Some(verdict), provider_calls: Vec::new() }, Some(rejection))
        }
        Some(Outcome::Boundary(_)) | None => (StepResult::default(), None),
    }
}

/// The policy servers of a step: the answers that are left.
struct StubServers<'t> {
    tested: &'t Tested,
    answers: VecDeque<StubAnswer>,
    problems: Vec<String>,
}

impl StubServers<'_> {
    fn answer(&mut self, policy: &Policy, question: &Question) -> Result<Vec<u8>, ProviderError> {
        let server = policy.guardrails().name_of(question.provider);
        match self.answers.pop_front() {
            None => {
                self.problems
                    .push(format!("the policy server `{server}` is asked and the event has no answer for it; write one under `answers`"));
                Err(ProviderError::NotAsked)
            }
            Some(given) => {
                if let Some(other) = given.server.as_deref().filter(|other| *other != server) {
                    self.problems.push(format!("the policy server `{server}` is asked, and the next answer is that of `{other}`"));
                }
                given.into_answer(self.dialect(question.provider))
            }
        }
    }

    fn dialect(&self, place: usize) -> Dialect {
        let mut servers = self.tested.settings.guardrails.iter().flat_map(|guardrails| guardrails.servers());
        servers.find(|(at, _)| *at == place).map_or(Dialect::Tollgate, |(_, server)| server.dialect)
    }
}
