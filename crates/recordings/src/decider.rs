//! Deciding on captured records in this process: each partition has a state of its own, as in a worker.

use std::fmt::Debug;
use std::sync::Arc;

use tollgate_core::decide::deciding::{Deciding, Outcome, VerdictBuffer};
use tollgate_core::decide::guardrail::{Answer, ProviderError, Question};
use tollgate_core::decide::policy::Policy;
use tollgate_core::engine::stage::{Progress, Resumed, Stage};
use tollgate_core::event::decode::{Rejection, RejectionCode};
use tollgate_core::event::record::{Offset, Record};

use super::partitions::Partitions;

/// The policy servers. The caller brings them, because this crate has no network.
pub trait AskServers: Debug + Send + Sync {
    /// Asks a policy server, and returns its answer once the answer is there.
    ///
    /// # Errors
    /// The threads that ask have ended.
    fn ask(&self, question: Question) -> anyhow::Result<Answer>;

    /// Tells that a provider, by its place in the chain, gave no decision on a call.
    fn failed(&self, provider: usize, error: ProviderError);
}

/// The deciding stage of every partition that a stream of records has named so far.
#[derive(Debug)]
pub struct Decider {
    policy: Arc<Policy>,
    servers: Arc<dyn AskServers>,
    partitions: Partitions<Deciding>,
}

impl Decider {
    /// Returns a decider that knows no thread. It asks these policy servers.
    pub fn new(policy: Arc<Policy>, servers: Arc<dyn AskServers>) -> Self {
        Self { policy, servers, partitions: Partitions::default() }
    }

    /// Returns the policy in force.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Decides on a record, and returns the outcome; the verdict is in `out`. It waits for the answers of policy servers, since verdicts
    /// come in the order of their events. `is_readable` says whether the names of all headers are UTF-8: a worker rejects other records.
    ///
    /// # Errors
    /// There are too many partitions.
    pub fn decide(&mut self, record: &Record<'_>, is_readable: bool, out: &mut VerdictBuffer) -> anyhow::Result<Outcome> {
        let deciding = self.partitions.of(record, || Deciding::new(Arc::clone(&self.policy)))?;
        if !is_readable {
            return Ok(deciding.reject(record, unreadable_header(), out));
        }
        let progress = deciding.apply(record, out);
        conclude(&*self.servers, deciding, record.offset, progress, out)
    }

    /// Returns how many threads made room for others or were refused. Where there are none, verdicts do not depend on how the threads were
    /// split over partitions.
    pub fn displaced(&self) -> u64 {
        let departures = self.partitions.iter().map(|deciding| deciding.threads().departures());
        departures.map(|departures| departures.evicted + departures.refused).sum()
    }
}

/// Returns why a worker rejects a record with a header whose name cannot be read.
pub fn unreadable_header() -> Rejection {
    Rejection::new(RejectionCode::HeaderInvalid, "headers", "a header whose name is not UTF-8", "name headers in UTF-8")
}

/// Asks the policy servers until an event is decided, tells them of providers that gave no decision, and returns the outcome.
///
/// # Errors
/// The threads that ask have ended.
pub fn conclude(
    servers: &dyn AskServers,
    deciding: &mut Deciding,
    offset: Offset,
    mut progress: Progress<Outcome, Question>,
    out: &mut VerdictBuffer,
) -> anyhow::Result<Outcome> {
    let outcome = loop {
        let question = match progress {
            Progress::Done(outcome) => break outcome,
            Progress::Asks(question) => question,
            Progress::Waits => anyhow::bail!("an event waits for another one that is not there"),
        };
        deciding.answer(offset, servers.ask(question)?);
        progress = match deciding.resume(out) {
            Some(Resumed::Done { outcome, .. }) => Progress::Done(outcome),
            Some(Resumed::Asks(_, question)) => Progress::Asks(question),
            None => anyhow::bail!("an event that was answered does not go on"),
        };
    };
    if let Outcome::Verdict { decided, .. } = &outcome {
        let failed = decided.provider_calls.iter().filter_map(|(provider, call)| Some((*provider, call.error()?)));
        failed.for_each(|(provider, error)| servers.failed(provider, error));
    }
    Ok(outcome)
}
