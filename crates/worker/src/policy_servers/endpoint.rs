//! One policy server with all that surrounds a request to it: the deadline, the queue, the breaker and the retries.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hyper::body::Bytes;
use hyper::header::HeaderMap;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{sleep, timeout_at};

use crate::metrics::Metrics;
use tollgate_core::decide::guardrail::HttpSettings;
use tollgate_core::decide::guardrail::{Answer, ProviderError};

use super::EndpointError;
use super::breaker::{Breaker, Permit, Sign};
use super::fault::{Fault, Retries};
use super::meters::{Counted, Meters};
use super::pool::Pool;

/// One policy server, shared by all members of the process.
#[derive(Debug)]
pub struct Endpoint {
    timeout: Duration,
    answer_bytes_max: usize,
    is_idempotent: bool,
    pool: Pool,
    /// One permit for each question that may be waiting or in flight.
    admissions: Arc<Semaphore>,
    /// One permit for each question that may be in flight. The question that has waited longest is next.
    slots: Semaphore,
    breaker: Mutex<Breaker>,
    /// The start from which the breaker's time counts.
    started_at: Instant,
    meters: Meters,
    /// Why the last question that failed did.
    last_cause: Mutex<String>,
}

/// A question that was admitted: when it came, and its permit, which is given back when the question has ended.
#[derive(Debug)]
pub(super) struct Admission {
    asked_at: Instant,
    _permit: OwnedSemaphorePermit,
}

impl Endpoint {
    /// Returns an endpoint for these settings. No connection is made yet.
    ///
    /// # Errors
    /// [`EndpointError`] if the settings name no server that can be asked.
    pub fn new(settings: &HttpSettings, metrics: &Metrics) -> Result<Self, EndpointError> {
        for (key, value) in [("timeout_ms", settings.timeout_ms), ("concurrency_max", settings.concurrency_max)] {
            if value == 0 {
                return Err(EndpointError::new(settings, key, "found 0, with which nothing could be asked; write 1 or more"));
            }
        }
        let concurrency_max = count(settings.concurrency_max);
        let admissions = concurrency_max.saturating_add(count(settings.queue_max));
        let open_for = Duration::from_millis(settings.breaker_open_ms.into());
        Ok(Self {
            timeout: Duration::from_millis(settings.timeout_ms.into()),
            answer_bytes_max: usize::try_from(settings.answer_bytes_max).unwrap_or(usize::MAX),
            is_idempotent: settings.is_idempotent,
            pool: Pool::new(settings)?,
            admissions: Arc::new(Semaphore::new(admissions.min(Semaphore::MAX_PERMITS))),
            slots: Semaphore::new(concurrency_max),
            breaker: Mutex::new(Breaker::new(settings.breaker_failures, open_for)),
            started_at: Instant::now(),
            meters: Meters::new(metrics, &settings.name),
            last_cause: Mutex::default(),
        })
    }

    /// Posts a question and returns the body of the answer, within the deadline. It needs a Tokio runtime with I/O and time.
    ///
    /// # Errors
    /// [`ProviderError`] for anything but a whole answer of status 200 within the limits.
    pub async fn ask(&self, question: Vec<u8>) -> Answer {
        let admission = self.admit()?;
        self.answer(admission, question).await
    }

    /// Admits a question, or refuses it at once. It needs no runtime.
    pub(super) fn admit(&self) -> Result<Admission, ProviderError> {
        let asked_at = Instant::now();
        let permit = if self.breaker().refuses(self.now()) {
            Err(ProviderError::CircuitOpen)
        } else {
            Arc::clone(&self.admissions).try_acquire_owned().map_err(|_| ProviderError::Overloaded)
        };
        match permit {
            Ok(permit) => Ok(Admission { asked_at, _permit: permit }),
            Err(error) => {
                self.meters.ended(&Err(error), Duration::ZERO);
                Err(error)
            }
        }
    }

    /// Asks a question that was admitted, and returns the answer.
    pub(super) async fn answer(&self, admission: Admission, question: Vec<u8>) -> Answer {
        let answer = self.ask_in_turn(admission.asked_at + self.timeout, question.into()).await;
        self.meters.ended(&answer, admission.asked_at.elapsed());
        answer
    }

    async fn ask_in_turn(&self, deadline: Instant, question: Bytes) -> Answer {
        let queued = Counted::new(&self.meters.queued);
        let slot = timeout_at(deadline.into(), self.slots.acquire()).await;
        drop(queued);
        // The semaphore is never closed.
        let Ok(Ok(_slot)) = slot else { return Err(ProviderError::TimedOut) };
        let _in_flight = Counted::new(&self.meters.in_flight);
        self.ask_until(deadline, question).await
    }

    /// Asks until there is an answer, and again after a fault where that is allowed. Every attempt needs a permit of the breaker.
    async fn ask_until(&self, deadline: Instant, question: Bytes) -> Answer {
        let mut retries = Retries::new(self.is_idempotent);
        let mut last = None::<Fault>;
        loop {
            let Some(attempt) = Attempt::new(self) else {
                return Err(last.map_or(ProviderError::CircuitOpen, |fault| fault.error()));
            };
            if last.is_some() {
                self.meters.retries.inc();
            }
            let asked = self.ask_once(deadline, question.clone()).await;
            attempt.end(asked.as_ref().err());
            let fault = match asked {
                Ok(answer) => return Ok(answer),
                Err(fault) => fault,
            };
            tracing::debug!(provider = self.meters.provider(), error = fault.error().as_str(), cause = fault.cause(), "asking failed");
            if fault.is_of_pooled_connection() {
                // A server that has closed one pooled connection has most likely closed them all.
                self.pool.clear();
            }
            match retries.next(&fault) {
                // There is no retry when the deadline would end the pause: the fault is known by now.
                Some(pause) if Instant::now() + pause < deadline => {
                    if !pause.is_zero() {
                        sleep(pause).await;
                    }
                    last = Some(fault);
                }
                _ => {
                    fault.cause().clone_into(&mut self.last_cause());
                    return Err(fault.error());
                }
            }
        }
    }

    /// Returns an error as a sentence: one about the connection names the cause of the last fault.
    pub(super) fn explain(&self, error: ProviderError) -> String {
        let cause = self.last_cause();
        if error == ProviderError::Connection && !cause.is_empty() { format!("{error}: {cause}") } else { error.to_string() }
    }

    fn last_cause(&self) -> MutexGuard<'_, String> {
        self.last_cause.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn ask_once(&self, deadline: Instant, question: Bytes) -> Result<Vec<u8>, Fault> {
        let remaining = deadline.saturating_duration_since(Instant::now());
        let timed_out = Fault::TimedOut { had_time: remaining >= self.timeout / 2 };
        if remaining.is_zero() {
            return Err(timed_out);
        }
        let (bytes_max, no_proof) = (self.answer_bytes_max, HeaderMap::new());
        timeout_at(deadline.into(), self.pool.ask(question, bytes_max, &no_proof)).await.unwrap_or(Err(timed_out))
    }

    fn breaker(&self) -> MutexGuard<'_, Breaker> {
        self.breaker.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Duration {
        self.started_at.elapsed()
    }

    fn settle(&self, permit: Permit, sign: Sign, fault: Option<&Fault>) {
        let transition = {
            let mut breaker = self.breaker();
            let transition = breaker.settle(permit, sign, self.now());
            // The gauge is set under the lock, so that it shows the last of two transitions.
            transition.inspect(|transition| self.meters.show(*transition))
        };
        if let Some(transition) = transition {
            self.meters.log(transition, fault);
        }
    }
}

/// One attempt that the breaker has permitted. If it is dropped before its end, the breaker records that it says nothing.
struct Attempt<'e> {
    endpoint: &'e Endpoint,
    permit: Option<Permit>,
}

impl<'e> Attempt<'e> {
    fn new(endpoint: &'e Endpoint) -> Option<Self> {
        let permit = endpoint.breaker().admit(endpoint.now())?;
        Some(Self { endpoint, permit: Some(permit) })
    }

    fn end(mut self, fault: Option<&Fault>) {
        if let Some(permit) = self.permit.take() {
            self.endpoint.settle(permit, fault.map_or(Sign::Success, Fault::sign), fault);
        }
    }
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        if let Some(permit) = self.permit.take() {
            self.endpoint.settle(permit, Sign::Nothing, None);
        }
    }
}

fn count(setting: u32) -> usize {
    usize::try_from(setting).unwrap_or(usize::MAX).min(Semaphore::MAX_PERMITS)
}
