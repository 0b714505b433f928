//! Threads that wait for an answer from elsewhere: each with the events that came behind the one that waits, in order.
//!
//! ```text
//! record ─▶ its thread waits? ──yes──▶ the thread's line ◀─ answer
//!                 │ no                       │ resume, one event after the other
//!                 ▼                          ▼
//!              decided now              decided then, or asks again
//! ```
//!
//! One thread's wait holds up nobody else's events. A thread with too long a line is not asked about any more: its calls count as
//! overloaded until the line is short again, so that no thread can make its partition wait for minutes.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use crate::decode::decode;
use crate::evaluate::Prepared;
use crate::guardrail::{Answer, ProviderError, Question};
use crate::policy::Policy;
use crate::record::{Offset, OwnedRecord};
use crate::thread::{SlotKey, Touch};

use super::{Applied, Lane, Step, VerdictBuffer, begin, finish, reject};

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    lines: FxHashMap<Box<str>, Line>,
    /// Whose answer it is that comes for an offset.
    asked: FxHashMap<Offset, Box<str>>,
    /// Threads that can go on.
    ready: VecDeque<Box<str>>,
    records: usize,
    bytes: usize,
}

/// The events of one thread, the one that waits first.
#[derive(Debug, Default)]
struct Line {
    events: VecDeque<Waiter>,
    head: Option<Head>,
}

/// An event, and when it came.
#[derive(Debug)]
struct Waiter {
    record: OwnedRecord,
    touch: Touch,
}

/// How far the first event of a line has come.
#[derive(Debug)]
struct Head {
    key: SlotKey,
    prepared: Prepared,
    answer: Option<Answer>,
}

/// What has become of an event that waited.
#[derive(Debug)]
pub enum Resumed {
    /// It is decided; the verdict's bytes, if it has one, are in the caller's buffer.
    Decided(OwnedRecord, Applied),
    /// It has another question, which is asked under its offset.
    Asks(Offset, Question),
}

impl Waiting {
    pub(super) fn is_waiting(&self, thread_id: &str) -> bool {
        !self.lines.is_empty() && self.lines.contains_key(thread_id)
    }

    /// Puts an event behind those of its thread.
    pub(super) fn push(&mut self, thread_id: &str, record: OwnedRecord, touch: Touch) {
        self.records += 1;
        self.bytes += record.bytes();
        if let Some(line) = self.lines.get_mut(thread_id) {
            return line.events.push_back(Waiter { record, touch });
        }
        self.lines.insert(thread_id.into(), Line { events: [Waiter { record, touch }].into(), head: None });
    }

    /// Has the first event of a thread's line wait for an answer.
    pub(super) fn ask(&mut self, thread_id: &str, key: SlotKey, prepared: Prepared) {
        let Some(line) = self.lines.get_mut(thread_id) else { return };
        if let Some(waiter) = line.events.front() {
            self.asked.insert(waiter.touch.offset, thread_id.into());
            line.head = Some(Head { key, prepared, answer: None });
        }
    }

    fn answer(&mut self, offset: Offset, answer: Answer) {
        let Some(thread_id) = self.asked.remove(&offset) else { return };
        if let Some(head) = self.lines.get_mut(&thread_id).and_then(|line| line.head.as_mut()) {
            head.answer = Some(answer);
            self.ready.push_back(thread_id);
        }
    }

    /// The next event that can go on, taken off its line.
    fn take(&mut self) -> Option<Turn> {
        loop {
            let thread_id = self.ready.pop_front()?;
            let Some(line) = self.lines.get_mut(&thread_id) else { continue };
            let Some(waiter) = line.events.pop_front() else { continue };
            let (head, behind) = (line.head.take(), line.events.len());
            return Some(Turn { thread_id, waiter, head, behind });
        }
    }

    /// Puts an event back to the front of its line.
    fn put_back(&mut self, thread_id: &str, waiter: Waiter) {
        if let Some(line) = self.lines.get_mut(thread_id) {
            line.events.push_front(waiter);
        }
    }

    /// Notes that an event that was taken is decided, and has the next one of its thread go on; the answer is that one's offset.
    fn decided(&mut self, thread_id: Box<str>, record: &OwnedRecord) -> Option<Offset> {
        self.records -= 1;
        self.bytes -= record.bytes();
        let next = self.lines.get(&thread_id).and_then(|line| line.events.front()).map(|waiter| waiter.touch.offset);
        match next {
            Some(_) => self.ready.push_front(thread_id),
            None => _ = self.lines.remove(&thread_id),
        }
        next
    }

    pub(super) fn thread_ids(&self) -> impl Iterator<Item = &str> {
        self.lines.keys().map(|id| &**id)
    }
}

/// An event whose turn it is.
struct Turn {
    thread_id: Box<str>,
    waiter: Waiter,
    head: Option<Head>,
    /// How many events of its thread are behind it.
    behind: usize,
}

impl Lane {
    /// Takes the answer to the question that was asked under an offset, or why there is none. [`Lane::resume`] goes on with it.
    pub fn answer(&mut self, offset: Offset, answer: Answer) {
        self.waiting.answer(offset, answer);
    }

    /// Goes on with an event that waited, if there is one that can; to be called until there is none.
    pub fn resume(&mut self, policy: &Policy, out: &mut VerdictBuffer) -> Option<Resumed> {
        let Turn { thread_id, waiter: Waiter { record, touch }, head, behind } = self.waiting.take()?;
        let Self { threads, tools, parser, .. } = self;
        let step = record.lend(|record| {
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
            step.unwrap_or_else(|rejection| Step::Applied(reject(policy, record, rejection, out)))
        });
        Some(match step {
            Step::Asks { key, prepared, question } => {
                self.waiting.put_back(&thread_id, Waiter { record, touch });
                self.waiting.ask(&thread_id, key, prepared);
                Resumed::Asks(touch.offset, question)
            }
            Step::Applied(applied) => {
                let next = self.waiting.decided(thread_id.clone(), &record);
                self.checkpoints.passed(&thread_id, next, &mut self.threads);
                Resumed::Decided(record, applied)
            }
        })
    }

    /// Events that wait for an answer, or behind one that does.
    #[must_use]
    pub fn waiting_records(&self) -> usize {
        self.waiting.records
    }

    /// Bytes of these, about.
    #[must_use]
    pub fn waiting_bytes(&self) -> usize {
        self.waiting.bytes
    }
}
