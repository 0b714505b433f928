//! The deciding stage: it takes the events of one partition and gives verdicts on them.
//!
//! ```text
//! record ─▶ decode ─▶ thread of the store ─▶ evaluate ─▶ verdict bytes
//!                          waiting ◀─ question ─┘ ▲ answer
//! ```

mod outcome;
mod pair;
mod waiting;

pub use outcome::{Outcome, VerdictBuffer};
pub use pair::{DecidingPair, Progresses};

use std::sync::Arc;

use crate::decide::evaluate::{self, Prepared, Tools};
use crate::decide::guardrail::{Answer, ProviderError, Question};
use crate::decide::policy::Policy;
use crate::decide::signal::counted_time;
use crate::decide::thread::{Admission, NewCalls, SlotKey, ThreadStore, Touch};
use crate::engine::stage::{self, Progress, Stage};
use crate::event::decode::{Body, Event, EventType, Rejection, RejectionCode, decode, partial_event_of};
use crate::event::record::{Offset, OwnedRecord, Record};
use tollgate_json::Parser;

use outcome::reject;
use waiting::{Head, Resumable, WaitingThreads};

/// The deciding stage of one partition: its policy and its threads.
#[derive(Debug)]
pub struct Deciding {
    policy: Arc<Policy>,
    threads: ThreadStore,
    waiting: WaitingThreads,
    tools: Tools,
    parser: Parser,
}

impl Deciding {
    /// Returns a stage that knows no thread.
    #[must_use]
    pub fn new(policy: Arc<Policy>) -> Self {
        let threads = ThreadStore::new(policy.store_limits());
        Self::with_threads(policy, threads)
    }

    /// Returns a stage with the threads of a checkpoint.
    #[must_use]
    pub fn with_threads(policy: Arc<Policy>, threads: ThreadStore) -> Self {
        Self { policy, threads, waiting: WaitingThreads::default(), tools: Tools::default(), parser: Parser::new() }
    }

    /// Returns the policy in force.
    #[must_use]
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Returns the threads that the stage remembers.
    #[must_use]
    pub fn threads(&self) -> &ThreadStore {
        &self.threads
    }

    /// Takes a record as [`Stage::apply`] does. Before that, `look` is given the event if it can be read.
    pub fn apply_looking(
        &mut self,
        record: &Record<'_>,
        out: &mut VerdictBuffer,
        look: impl FnOnce(&Event<'_>),
    ) -> Progress<Outcome, Question> {
        // The event borrows from the parser, which is put aside meanwhile.
        let mut parser = std::mem::take(&mut self.parser);
        let progress = match decode(record, &mut parser, self.policy.limits().event_bytes_max) {
            Ok(event) => {
                look(&event);
                self.apply_event(record, &event, out)
            }
            Err(rejection) => self.apply_unread(record, rejection, out),
        };
        self.parser = parser;
        progress
    }

    /// Takes a record that cannot be read. If it may be a response of a known thread, the thread's state says that it was not read.
    fn apply_unread(&mut self, record: &Record<'_>, rejection: Rejection, out: &mut VerdictBuffer) -> Progress<Outcome, Question> {
        if let Some(thread_id) = response_not_read(&rejection) {
            let touch = self.threads.advance(record.offset, record.timestamp_ms);
            if self.waiting.is_waiting(thread_id) {
                self.waiting.push(thread_id, OwnedRecord::of(record), touch);
                return Progress::Waits;
            }
            note_not_read(&mut self.threads, touch, thread_id, rejection.event.turn_id.as_deref());
        }
        Progress::Done(reject(&self.policy, record, rejection, out))
    }

    /// Takes an event that was decoded from this record already. The rest is as in [`Stage::apply`].
    fn apply_event(&mut self, record: &Record<'_>, event: &Event<'_>, out: &mut VerdictBuffer) -> Progress<Outcome, Question> {
        out.signals.clear();
        let Self { policy, threads, tools, waiting, .. } = self;
        let touch = threads.advance(record.offset, event.time_ms);
        if waiting.is_waiting(&event.thread_id) {
            waiting.push(&event.thread_id, OwnedRecord::of(record), touch);
            return Progress::Waits;
        }
        match begin(threads, tools, policy, event, touch, None, out) {
            Ok(Step::Decided(outcome)) => Progress::Done(outcome),
            Ok(Step::Asks { key, prepared, question }) => {
                waiting.push(&event.thread_id, OwnedRecord::of(record), touch);
                waiting.ask(&event.thread_id, key, prepared);
                Progress::Asks(question)
            }
            Err(rejection) => Progress::Done(reject(policy, record, rejection, out)),
        }
    }
}

impl Stage for Deciding {
    type Outcome = Outcome;
    type Request = Question;
    type Response = Answer;
    type Output = VerdictBuffer;
    type State = ThreadStore;

    fn apply(&mut self, record: &Record<'_>, out: &mut VerdictBuffer) -> Progress<Outcome, Question> {
        self.apply_looking(record, out, |_| ())
    }

    fn reject(&mut self, record: &Record<'_>, rejection: Rejection, out: &mut VerdictBuffer) -> Outcome {
        reject(&self.policy, record, rejection.with_event(partial_event_of(record)), out)
    }

    fn answer(&mut self, offset: Offset, response: Answer) {
        self.waiting.answer(offset, response);
    }

    fn resume(&mut self, out: &mut VerdictBuffer) -> Option<stage::Resumed<Outcome, Question>> {
        let Resumable { thread_id, record, touch, head, behind } = self.waiting.take()?;
        out.signals.clear();
        let Self { policy, threads, tools, parser, .. } = self;
        let step = record.with_borrowed(|record| {
            let step = decode(record, parser, policy.limits().event_bytes_max).and_then(|event| match head {
                None => {
                    let is_overlong = behind >= policy.limits().thread_queue_max;
                    begin(threads, tools, policy, &event, touch, is_overlong.then_some(ProviderError::Overloaded), out)
                }
                Some(Head { key, prepared, answer }) => {
                    let prepared = prepared.answered(policy, &event, answer.unwrap_or(Err(ProviderError::NotAsked)));
                    finish(threads, policy, &event, touch, key, prepared, out)
                }
            });
            step.unwrap_or_else(|rejection| {
                if let Some(thread_id) = response_not_read(&rejection) {
                    note_not_read(threads, touch, thread_id, rejection.event.turn_id.as_deref());
                }
                Step::Decided(reject(policy, record, rejection, out))
            })
        });
        Some(match step {
            Step::Asks { key, prepared, question } => {
                self.waiting.put_back(&thread_id, record, touch);
                self.waiting.ask(&thread_id, key, prepared);
                stage::Resumed::Asks(touch.offset, question)
            }
            Step::Decided(outcome) => {
                let next = self.waiting.decided(&thread_id, &record);
                stage::Resumed::Done { record, outcome, key: thread_id, next }
            }
        })
    }

    fn waiting(&self) -> stage::Waiting {
        self.waiting.size()
    }

    fn waiting_keys(&self) -> impl Iterator<Item = &str> {
        self.waiting.thread_ids()
    }

    fn state(&self) -> &ThreadStore {
        &self.threads
    }

    fn state_mut(&mut self) -> &mut ThreadStore {
        &mut self.threads
    }
}

/// Returns the thread of a record that could not be read, if it is known, and the record may be a response. The model writes how deep and how
/// large a response is, and so whether its type is read. A record without a value holds nothing of a model.
fn response_not_read(rejection: &Rejection) -> Option<&str> {
    let event = &rejection.event;
    let is_empty = matches!(rejection.code, RejectionCode::ValueNull | RejectionCode::ValueEmpty);
    event.thread_id.as_deref().filter(|_| event.event_type.map_or(!is_empty, |kind| kind == EventType::ModelResponse))
}

/// Notes that a thread's response could not be read, so that none of its calls may run. If the store is full, the thread's calls are refused
/// for that.
fn note_not_read(threads: &mut ThreadStore, touch: Touch, thread_id: &str, turn_id: Option<&str>) {
    if let Admission::Admitted(key, thread) = threads.admit(thread_id, None) {
        let is_late = turn_id.is_some_and(|id| thread.turn.is_earlier(id));
        thread.turn.memory_mut().suppression.cut_off(NewCalls::NotRead, is_late);
        threads.settle(key, touch, None);
    }
}

/// The result of one attempt to decide on an event.
enum Step {
    Decided(Outcome),
    /// A policy server has to be asked first. The event's thread is admitted and not settled yet.
    Asks {
        key: SlotKey,
        prepared: Prepared,
        question: Question,
    },
}

/// Begins to decide on an event: admits its thread and prepares it. If `unasked` is given, no policy server is asked, and every question is
/// answered with that error.
fn begin(
    threads: &mut ThreadStore,
    tools: &mut Tools,
    policy: &Policy,
    event: &Event<'_>,
    touch: Touch,
    unasked: Option<ProviderError>,
    out: &mut VerdictBuffer,
) -> Result<Step, Rejection> {
    // A boundary brings no thread to a stop.
    let is_boundary = matches!(event.body, Body::TurnStart | Body::TurnEnd | Body::ThreadReset);
    match threads.admit(&event.thread_id, event.attribution.tenant_id.as_deref().filter(|_| !is_boundary)) {
        Admission::Admitted(key, thread) => {
            let mut prepared = evaluate::prepare(policy, tools, thread, event, &mut out.json);
            if let Some(why) = unasked {
                prepared = prepared.unanswered(policy, event, why);
            }
            finish(threads, policy, event, touch, key, prepared, out)
        }
        Admission::Full => {
            out.address(&event.thread_id, &event.event_id);
            begin_signals(policy, event, touch, out);
            Ok(Step::Decided(Outcome::of(event, evaluate::refuse(policy, event, &mut out.json))))
        }
    }
}

/// Decides on an event whose thread is admitted, unless a policy server has to be asked first.
fn finish(
    threads: &mut ThreadStore,
    policy: &Policy,
    event: &Event<'_>,
    touch: Touch,
    key: SlotKey,
    prepared: Prepared,
    out: &mut VerdictBuffer,
) -> Result<Step, Rejection> {
    if let Some(question) = prepared.question().cloned() {
        return Ok(Step::Asks { key, prepared, question });
    }
    out.address(&event.thread_id, &event.event_id);
    begin_signals(policy, event, touch, out);
    let decided = match threads.admitted(key) {
        Some(thread) => evaluate::fold(policy, thread, event, prepared, &mut out.json, &mut out.signals),
        None => Ok(evaluate::refuse(policy, event, &mut out.json)),
    };
    out.signals.end();
    threads.settle(key, touch, event.attribution.tenant_id.as_deref());
    Ok(Step::Decided(Outcome::of(event, decided?)))
}

/// Returns whether an event says which user it is on behalf of.
fn names_user(event: &Event<'_>) -> bool {
    event.attribution.user_id.as_deref().is_some_and(|id| !id.is_empty())
}

/// Notes when an event counts, if the policy has signals.
fn begin_signals(policy: &Policy, event: &Event<'_>, touch: Touch, out: &mut VerdictBuffer) {
    if policy.signals().is_some() {
        out.signals.begin(counted_time(event.time_ms, event.record_ms, touch.time_ms), names_user(event));
    }
}
