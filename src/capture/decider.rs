//! Deciding on captured records in this process: each partition has a state of its own, as in a worker.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::channel;

use rustc_hash::FxHashMap;
use tollgate_core::deciding::{Deciding, Outcome, VerdictBuffer};
use tollgate_core::decode::{Rejection, RejectionCode};
use tollgate_core::guardrail::Question;
use tollgate_core::policy::Policy;
use tollgate_core::record::{Offset, Record};
use tollgate_core::stage::{Progress, Resumed, Stage};

use crate::policy_servers::PolicyServers;

/// How many partitions a stream of records may name. Each has a state of its own.
const PARTITIONS_MAX: usize = 10_000;

/// The deciding stage of every partition that a stream of records has named so far.
#[derive(Debug)]
pub(crate) struct Decider {
    policy: Arc<Policy>,
    servers: PolicyServers,
    /// By topic and number.
    topics: FxHashMap<Box<str>, BTreeMap<i32, Deciding>>,
    partitions: usize,
}

impl Decider {
    /// Returns a decider that knows no thread. It asks these policy servers.
    pub(crate) fn new(policy: Arc<Policy>, servers: PolicyServers) -> Self {
        Self { policy, servers, topics: FxHashMap::default(), partitions: 0 }
    }

    /// Returns the policy in force.
    pub(crate) fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Decides on a record, and returns the outcome; the verdict is in `out`. It waits for the answers of policy servers, since verdicts
    /// come in the order of their events. `is_readable` says whether the names of all headers are UTF-8: a worker rejects other records.
    ///
    /// # Errors
    /// There are too many partitions.
    pub(crate) fn decide(&mut self, record: &Record<'_>, is_readable: bool, out: &mut VerdictBuffer) -> anyhow::Result<Outcome> {
        let Self { policy, servers, topics, partitions } = self;
        let deciding = partition(topics, partitions, record, policy)?;
        if !is_readable {
            let (found, fix) = ("a header whose name is not UTF-8", "name headers in UTF-8");
            let rejection = Rejection::new(RejectionCode::HeaderInvalid, "headers", found, fix);
            return Ok(deciding.reject(record, rejection, out));
        }
        match deciding.apply(record, out) {
            Progress::Done(outcome) => Ok(outcome),
            Progress::Asks(question) => ask(servers, deciding, record.offset, question, out),
            Progress::Waits => anyhow::bail!("an event waits for another one that is not there"),
        }
    }
}

/// Returns the stage of a record's partition, which knows no thread at first.
fn partition<'t>(
    topics: &'t mut FxHashMap<Box<str>, BTreeMap<i32, Deciding>>,
    count: &mut usize,
    record: &Record<'_>,
    policy: &Arc<Policy>,
) -> anyhow::Result<&'t mut Deciding> {
    // A lookup with a copy of the name would allocate for every record.
    if !topics.contains_key(record.topic) {
        topics.insert(record.topic.into(), BTreeMap::new());
    }
    let Some(partitions) = topics.get_mut(record.topic) else { anyhow::bail!("a topic that was just added is not there") };
    if !partitions.contains_key(&record.partition.0) {
        anyhow::ensure!(*count < PARTITIONS_MAX, "the input names more than {PARTITIONS_MAX} partitions");
        *count += 1;
    }
    Ok(partitions.entry(record.partition.0).or_insert_with(|| Deciding::new(Arc::clone(policy))))
}

/// Asks the policy servers until the event is decided.
fn ask(
    servers: &PolicyServers,
    deciding: &mut Deciding,
    offset: Offset,
    mut question: Question,
    out: &mut VerdictBuffer,
) -> anyhow::Result<Outcome> {
    let (sender, answers) = channel();
    loop {
        servers.ask(question.provider, question.body, (), &sender);
        let ((), answer) = answers.recv()?;
        deciding.answer(offset, answer);
        question = match deciding.resume(out) {
            Some(Resumed::Done { outcome, .. }) => return Ok(outcome),
            Some(Resumed::Asks(_, question)) => question,
            None => anyhow::bail!("an event that was answered does not go on"),
        };
    }
}
