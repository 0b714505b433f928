//! The queues of threads that wait for a policy server's answer: the event that waits, and the later events of its thread in order.
//!
//! ```text
//! record ─▶ its thread waits? ──yes──▶ the thread's queue ◀─ answer
//!                 │ no                       │ resume, one event after the other
//!                 ▼                          ▼
//!              decided now              decided then, or asks again
//! ```
//!
//! A thread that waits holds up no other thread. If its queue is too long, no policy server is asked about its calls any more: they count
//! as overloaded until the queue is short again. So no thread can make its partition wait for minutes.

use std::collections::{HashMap, VecDeque};

use rustc_hash::FxHashMap;

use crate::decide::evaluate::Prepared;
use crate::decide::guardrail::Answer;
use crate::decide::thread::{SlotKey, Touch};
use crate::engine::stage::Waiting;
use crate::event::record::{Offset, OwnedRecord};

/// The waiting threads of one partition.
#[derive(Debug, Default)]
pub(super) struct WaitingThreads {
    /// The queues by thread. Whoever sends events chooses thread ids, so their hash is keyed.
    queues: HashMap<Box<str>, Queue>,
    /// The thread whose event asked, by the offset of that event.
    asked: FxHashMap<Offset, Box<str>>,
    /// Threads whose first event can be resumed.
    ready: VecDeque<Box<str>>,
    size: Waiting,
}

/// The waiting events of one thread, in order.
#[derive(Debug, Default)]
struct Queue {
    events: VecDeque<(OwnedRecord, Touch)>,
    head: Option<Head>,
}

/// The state of a queue's first event, which has asked.
#[derive(Debug)]
pub(super) struct Head {
    pub(super) key: SlotKey,
    pub(super) prepared: Prepared,
    pub(super) answer: Option<Answer>,
}

/// An event that can be resumed, taken off its queue.
pub(super) struct Resumable {
    pub(super) thread_id: Box<str>,
    pub(super) record: OwnedRecord,
    pub(super) touch: Touch,
    pub(super) head: Option<Head>,
    /// How many events of its thread wait behind it.
    pub(super) behind: usize,
}

impl WaitingThreads {
    pub(super) fn is_waiting(&self, thread_id: &str) -> bool {
        !self.queues.is_empty() && self.queues.contains_key(thread_id)
    }

    /// Appends an event to the queue of its thread.
    pub(super) fn push(&mut self, thread_id: &str, record: OwnedRecord, touch: Touch) {
        self.size.records += 1;
        self.size.bytes += record.bytes();
        if let Some(queue) = self.queues.get_mut(thread_id) {
            return queue.events.push_back((record, touch));
        }
        self.queues.insert(thread_id.into(), Queue { events: [(record, touch)].into(), head: None });
    }

    /// Notes that the first event of a thread's queue waits for an answer.
    pub(super) fn ask(&mut self, thread_id: &str, key: SlotKey, prepared: Prepared) {
        let Some(queue) = self.queues.get_mut(thread_id) else { return };
        if let Some((_, touch)) = queue.events.front() {
            self.asked.insert(touch.offset, thread_id.into());
            queue.head = Some(Head { key, prepared, answer: None });
        }
    }

    /// Takes the answer for the event at an offset. Its thread can be resumed then.
    pub(super) fn answer(&mut self, offset: Offset, answer: Answer) {
        let Some(thread_id) = self.asked.remove(&offset) else { return };
        if let Some(head) = self.queues.get_mut(&thread_id).and_then(|queue| queue.head.as_mut()) {
            head.answer = Some(answer);
            self.ready.push_back(thread_id);
        }
    }

    /// Takes the next event that can be resumed off its queue and returns it.
    pub(super) fn take(&mut self) -> Option<Resumable> {
        loop {
            let thread_id = self.ready.pop_front()?;
            let Some(queue) = self.queues.get_mut(&thread_id) else { continue };
            let Some((record, touch)) = queue.events.pop_front() else { continue };
            let (head, behind) = (queue.head.take(), queue.events.len());
            return Some(Resumable { thread_id, record, touch, head, behind });
        }
    }

    /// Puts an event back at the front of its queue.
    pub(super) fn put_back(&mut self, thread_id: &str, record: OwnedRecord, touch: Touch) {
        if let Some(queue) = self.queues.get_mut(thread_id) {
            queue.events.push_front((record, touch));
        }
    }

    /// Notes that an event that was taken is decided. Returns the offset of the next event of its thread, which can be resumed then.
    pub(super) fn decided(&mut self, thread_id: &str, record: &OwnedRecord) -> Option<Offset> {
        self.size.records -= 1;
        self.size.bytes -= record.bytes();
        let next = self.queues.get(thread_id).and_then(|queue| queue.events.front()).map(|(_, touch)| touch.offset);
        match next {
            Some(_) => self.ready.push_front(thread_id.into()),
            None => _ = self.queues.remove(thread_id),
        }
        next
    }

    /// Returns how many records wait, and their bytes.
    pub(super) fn size(&self) -> Waiting {
        self.size
    }

    /// Returns the ids of the threads that wait.
    pub(super) fn thread_ids(&self) -> impl Iterator<Item = &str> {
        self.queues.keys().map(|id| &**id)
    }
}
