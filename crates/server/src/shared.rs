//! What requests share with the threads that speak with Kafka: the waits, and whether the log can be reached.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tollgate_json::digest::Fingerprint;
use tollgate_worker::health::{Health, MemberId, MemberPartitions, MemberPhase};
use tollgate_worker::metrics::Metrics;

use tollgate_core::event::record::Partition;

use crate::refusal::Refusal;
use crate::waits::{VerdictBytes, Waits};

/// The name of the server in the health report.
const SERVER: MemberId = MemberId { stage: Some("serve"), number: 0 };
/// The part of the health report that says why the server cannot answer.
const PART: &str = "serve";

/// How long events go without any verdict before the server says that workers seem to be away.
const SILENCE_MAX: Duration = Duration::from_secs(1);

/// How long the workers have answered nothing.
#[derive(Debug, Default)]
struct Silence {
    /// When the first event was asked about since the last verdict came.
    since: Option<Instant>,
    is_reported: bool,
}

/// Whether requests can be answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    /// The server has not yet seen that its replies arrive, and that no other server reads them.
    Starting,
    /// Requests are answered.
    Ready,
    /// The brokers cannot be reached, or the replies topic lacks the partition: why, for people.
    CutOff {
        /// The code of the refusal.
        code: &'static str,
        /// The sentence.
        why: String,
    },
    /// The server stops: the waits that there are end, and nothing new begins.
    Draining,
}

/// The code of refusals by a server that has no partition of its own.
pub(crate) const PARTITION_TAKEN: &str = "partition_taken";
/// The code of refusals while the brokers do not take the time of the server's clock.
pub(crate) const CLOCK_WRONG: &str = "clock_wrong";
/// The code of refusals while the replies topic takes no claim of the server for another reason.
pub(crate) const CLAIM_REFUSED: &str = "replies_refused";

/// The state that requests and threads share.
#[derive(Debug)]
pub struct Shared {
    waits: Mutex<Waits>,
    condition: watch::Sender<Condition>,
    silence: Mutex<Silence>,
    partition: Partition,
    health: Arc<Health>,
    /// The metrics of the process.
    pub metrics: Metrics,
}

impl Shared {
    /// Returns the state of a server that starts, which reads this partition of the replies topic.
    #[must_use]
    pub fn new(waits: Waits, partition: Partition, health: Arc<Health>, metrics: Metrics) -> Self {
        health.set(SERVER, MemberPhase::Starting, MemberPartitions::default());
        let condition = watch::Sender::new(Condition::Starting);
        Self { waits: Mutex::new(waits), condition, silence: Mutex::default(), partition, health, metrics }
    }

    /// Runs something over the waits.
    pub fn with_waits<T>(&self, run: impl FnOnce(&mut Waits) -> T) -> T {
        let mut waits = self.waits.lock().unwrap_or_else(PoisonError::into_inner);
        let result = run(&mut waits);
        self.metrics.serve_in_flight.set(i64::try_from(waits.waiting()).unwrap_or(i64::MAX));
        result
    }

    /// Hands a verdict to all who wait for it.
    pub fn answer(&self, verdict: Fingerprint, bytes: &VerdictBytes) -> bool {
        let before = std::mem::take(&mut *self.silence());
        if before.is_reported {
            tracing::info!("verdicts come again");
            self.health.set_warning(PART, None);
        }
        self.with_waits(|waits| waits.answer(verdict, bytes))
    }

    /// Notes that an event was asked about.
    pub fn asked(&self) {
        self.silence().since.get_or_insert_with(Instant::now);
    }

    /// Says that no verdict comes, where a wait has ended without its verdict and no other verdict came for a while. The server stays ready:
    /// only what it asks about can show that workers are back.
    pub fn missed(&self) {
        let mut silence = self.silence();
        let Some(since) = silence.since.filter(|since| since.elapsed() >= SILENCE_MAX && !silence.is_reported) else { return };
        silence.is_reported = true;
        let sentence = format!(
            "no verdict has come for {} s, though events were asked about; see whether workers run and read the events topic (`tollgate top`)",
            since.elapsed().as_secs()
        );
        tracing::warn!("{sentence}");
        self.health.set_warning(PART, Some(sentence));
    }

    /// Lets a server begin again whose claims the brokers refused before.
    pub fn claim_written(&self) {
        if matches!(self.condition(), Condition::CutOff { code: CLOCK_WRONG | CLAIM_REFUSED, .. }) {
            self.set(Condition::Starting);
        }
    }

    /// Says in the health report what some events meet with, or that they no longer do. The server stays ready for the others.
    pub fn set_warning(&self, part: &'static str, warning: Option<String>) {
        if self.health.set_warning(part, warning.clone())
            && let Some(sentence) = warning
        {
            tracing::warn!("{sentence}");
        }
    }

    fn silence(&self) -> MutexGuard<'_, Silence> {
        self.silence.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says that the server works.
    pub fn beat(&self) {
        self.health.beat(SERVER);
    }

    /// Returns the condition.
    #[must_use]
    pub fn condition(&self) -> Condition {
        self.condition.borrow().clone()
    }

    /// Waits until the server no longer starts. Requests that come in its first second are asked about then.
    pub async fn started(&self) {
        // The sender is here, so the wait has no other end.
        let mut condition = self.condition.subscribe();
        let _sender_gone = condition.wait_for(|condition| *condition != Condition::Starting).await;
    }

    /// Changes the condition. A server that drains does nothing else any more.
    pub fn set(&self, condition: Condition) {
        self.condition.send_if_modified(|current| {
            let is_final = matches!(current, Condition::Draining | Condition::CutOff { code: PARTITION_TAKEN, .. });
            let changes = *current != condition && (!is_final || condition == Condition::Draining);
            if changes {
                self.report(&condition);
                *current = condition;
            }
            changes
        });
    }

    /// Ends readiness for good, while requests are answered as before.
    pub fn leave(&self) {
        self.health.set_problem("serve stop", Some("the HTTP server stops".to_owned()));
    }

    /// Says in the log and in the health report what the condition is now.
    fn report(&self, condition: &Condition) {
        let held = MemberPartitions { held: vec![self.partition], ..MemberPartitions::default() };
        let problem = match condition {
            Condition::Starting => {
                self.health.set(SERVER, MemberPhase::Starting, MemberPartitions::default());
                None
            }
            Condition::Ready => {
                tracing::info!(partition = self.partition.0, "requests are answered");
                self.health.set(SERVER, MemberPhase::Assigned, held);
                None
            }
            Condition::CutOff { why, .. } => {
                tracing::error!(reason = why, "requests are refused with 503 until this is over");
                Some(why.clone())
            }
            Condition::Draining => {
                self.health.set(SERVER, MemberPhase::Draining, held);
                None
            }
        };
        self.health.set_problem(PART, problem);
    }

    /// Says in the health report that another server reads the same partition, or no longer does.
    pub fn set_other_server(&self, other: Option<String>) {
        if self.health.set_problem("serve partition", other.clone())
            && let Some(sentence) = other
        {
            tracing::error!("{sentence}");
        }
    }

    /// Returns why nothing new can be asked now; `None` if it can.
    #[must_use]
    pub fn refusal(&self) -> Option<Refusal> {
        match self.condition() {
            Condition::Ready => None,
            Condition::Starting => {
                Some(Refusal::unavailable("starting", "the server is still finding out that its replies arrive; try again"))
            }
            // A refusal may come before a model, and these sentences name hosts.
            Condition::CutOff { code: code @ ("kafka_unreachable" | "partition_taken"), .. } => {
                Some(Refusal::unavailable(code, "the server cannot read its replies from Kafka now; its log and its `/readyz` say why"))
            }
            Condition::CutOff { code, why } => Some(Refusal::unavailable(code, why)),
            Condition::Draining => Some(Refusal::unavailable("draining", "the server stops; ask another server")),
        }
    }
}
