//! Asks the gate: publishes events in order, and waits for their verdicts until a deadline.

use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout_at};

use tollgate_json::digest::Fingerprint;

use crate::events::Prepared;
use crate::publisher::{Publisher, Tag, Trace};
use crate::refusal::Refusal;
use crate::shared::{Condition, Shared};
use crate::waits::{Asked, Ended, NotAsked, VerdictBytes, Waits};

/// The code of refusals for which no verdict came in time.
const DEADLINE_EXCEEDED: &str = "deadline_exceeded";

/// The gate as requests see it.
#[derive(Debug)]
pub struct Gate {
    /// What requests share with the threads of Kafka.
    pub shared: Arc<Shared>,
    /// Hands events to the log.
    pub publisher: Arc<Publisher>,
}

/// What comes of an event.
enum Pending {
    /// It is known already.
    Ended(Ended),
    /// Its verdict is awaited.
    Verdict(oneshot::Receiver<Ended>, Fingerprint, Leave),
    /// The acknowledgement is awaited. The event has this outcome once the log has the event.
    Acknowledged(oneshot::Receiver<Result<(), Refusal>>, Outcome),
}

/// Notes that a request no longer waits, however it ends: a client may go away.
struct Leave(Arc<Shared>);

impl Drop for Leave {
    fn drop(&mut self) {
        self.0.with_waits(Waits::leave);
    }
}

/// The outcome of an event: the bytes of its verdict, or `None` for an event that gets no verdict and is in the log.
pub type Outcome = Result<Option<VerdictBytes>, Refusal>;

impl Gate {
    /// Publishes events in their order, and returns the id of each event with what came of it. While requests wait, they hold no event.
    pub async fn ask(&self, events: Vec<Prepared>, trace: &Trace, wait: Duration) -> Vec<(String, Outcome)> {
        let deadline = Instant::now() + wait;
        if let Err(refusal) = self.started(deadline).await {
            return events.into_iter().map(|event| (event.event_id.clone(), Err(refusal.clone().of_event(&event.event_id)))).collect();
        }
        // All are published before the first is waited for. An event that is not taken may stop the calls behind it.
        let mut is_taken = true;
        let begin = |event: Prepared| {
            let pending = if is_taken { self.begin(&event, trace) } else { Pending::Ended(Err(behind_refused())) };
            is_taken &= !matches!(pending, Pending::Ended(Err(_)) | Pending::Acknowledged(_, Err(_)));
            (pending, event.event_id)
        };
        let pending: Vec<_> = events.into_iter().map(begin).collect();
        let mut outcomes = Vec::with_capacity(pending.len());
        for (pending, event_id) in pending {
            let outcome = ended(pending, deadline, wait).await.map_err(|refusal| refusal.of_event(&event_id));
            if let Err(refusal) = &outcome {
                if refusal.code == DEADLINE_EXCEEDED {
                    self.shared.missed();
                }
                self.shared.metrics.serve_unanswered.with_label_values(&[refusal.code]).inc();
            }
            outcomes.push((event_id, outcome));
        }
        outcomes
    }

    /// Waits for a verdict that was asked for before; `None` if the server does not know of it.
    pub async fn again(&self, verdict: Fingerprint, wait: Duration) -> Option<Outcome> {
        let asked = self.shared.with_waits(|waits| waits.again(verdict))?;
        let pending = match asked {
            Ok(Asked::Known(bytes)) => Pending::Ended(Ok(bytes)),
            Ok(Asked::New(receiver) | Asked::Waiting(receiver)) => Pending::Verdict(receiver, verdict, Leave(Arc::clone(&self.shared))),
            Err(fault) => Pending::Ended(Err(not_asked(fault))),
        };
        Some(ended(pending, Instant::now() + wait, wait).await)
    }

    /// Waits until the server has started, or until the deadline. Who waits so has a place among the requests in flight.
    async fn started(&self, deadline: Instant) -> Result<(), Refusal> {
        if self.shared.condition() == Condition::Starting {
            self.shared.with_waits(Waits::enter).map_err(not_asked)?;
            let _leave = Leave(Arc::clone(&self.shared));
            let _still_starting = timeout_at(deadline, self.shared.started()).await;
        }
        Ok(())
    }

    fn begin(&self, event: &Prepared, trace: &Trace) -> Pending {
        if !event.has_verdict {
            return self.begin_unanswered(event, trace, Ok(None));
        }
        let asked = self.shared.with_waits(|waits| waits.ask(event.verdict, event.digest));
        let (receiver, is_new) = match asked {
            Ok(Asked::Known(bytes)) => return Pending::Ended(Ok(bytes)),
            Ok(Asked::Waiting(receiver)) => (receiver, false),
            Ok(Asked::New(receiver)) => (receiver, true),
            // Safety may have stopped the response: the thread has to know of it under whatever id.
            Err(fault @ NotAsked::AnotherEvent) if event.is_response => return self.begin_unanswered(event, trace, Err(not_asked(fault))),
            Err(fault) => return Pending::Ended(Err(not_asked(fault))),
        };
        let leave = Leave(Arc::clone(&self.shared));
        if is_new && let Err(refusal) = self.publish(event, trace, Tag::Verdict(event.verdict)) {
            self.shared.with_waits(|waits| waits.fail(event.verdict, &refusal));
            return Pending::Ended(Err(refusal));
        }
        Pending::Verdict(receiver, event.verdict, leave)
    }

    /// Hands over an event without waiting for a verdict. The event has `outcome` once the log has the event.
    fn begin_unanswered(&self, event: &Prepared, trace: &Trace, outcome: Outcome) -> Pending {
        let (sender, receiver) = oneshot::channel();
        let published = self.publish(event, trace, Tag::Acknowledged(sender));
        published.map_or_else(|refusal| Pending::Ended(Err(refusal)), |()| Pending::Acknowledged(receiver, outcome))
    }

    /// Hands an event over, unless the server cannot answer now.
    fn publish(&self, event: &Prepared, trace: &Trace, tag: Tag) -> Result<(), Refusal> {
        self.shared.refusal().map_or(Ok(()), Err)?;
        if matches!(tag, Tag::Verdict(_)) {
            self.shared.asked();
        }
        self.publisher.publish(event, trace, tag)
    }
}

/// Waits until a deadline for what comes of an event. `wait` is how long the request waits in all.
async fn ended(pending: Pending, deadline: Instant, wait: Duration) -> Outcome {
    match pending {
        Pending::Ended(ended) => ended.map(Some),
        Pending::Verdict(receiver, verdict, _leave) => match timeout_at(deadline, receiver).await {
            Ok(Ok(ended)) => ended.map(Some),
            // The entry was forgotten for newer entries.
            Ok(Err(_)) | Err(_) => Err(Refusal { awaited: Some(verdict), ..deadline_exceeded(wait) }),
        },
        Pending::Acknowledged(receiver, outcome) => match timeout_at(deadline, receiver).await {
            Ok(Ok(acknowledged)) => acknowledged.and(outcome),
            Ok(Err(_)) | Err(_) => Err(unacknowledged(wait)),
        },
    }
}

fn deadline_exceeded(wait: Duration) -> Refusal {
    let message = format!(
        "no worker answered within {} ms; see whether workers run, ask again under the same event id, or wait longer (Prefer: wait=MS, \
         serve.deadline_ms)",
        wait.as_millis()
    );
    Refusal::new(StatusCode::GATEWAY_TIMEOUT, DEADLINE_EXCEEDED, message)
}

fn unacknowledged(wait: Duration) -> Refusal {
    let message = format!(
        "the brokers have not acknowledged the event within {} ms; see whether they answer, and send it again under the same event id",
        wait.as_millis()
    );
    Refusal::new(StatusCode::GATEWAY_TIMEOUT, DEADLINE_EXCEEDED, message)
}

fn behind_refused() -> Refusal {
    let message = "the list has an event before this event that was not taken; mend the earlier event, and send the list again";
    Refusal::unavailable("event_before_refused", message)
}

fn not_asked(fault: NotAsked) -> Refusal {
    match fault {
        NotAsked::TooMany => {
            Refusal::unavailable("too_many_waits", "as many events wait for their verdicts as may (serve.in_flight_max); try again")
        }
        NotAsked::AnotherEvent => {
            let message = "event_id: found the id of another event of this thread; give each event an id of its own";
            Refusal::new(StatusCode::CONFLICT, "event_id_taken", message)
        }
    }
}
