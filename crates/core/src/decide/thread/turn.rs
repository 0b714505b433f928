//! The state of a turn: from what the user said to the agent's last word.

use crate::decide::loops::LoopMemory;
use crate::event::decode::Event;
use crate::rare::Rare;
use tollgate_json::digest::Fingerprint;

use super::calls::Calls;
use super::id::{Id, IdText};
use super::suppression::Suppression;

/// How many earlier turns a thread remembers, to recognise events that come late.
const EARLIER_TURNS_MAX: usize = 4;
/// How many responses a thread remembers, to recognise a response that is delivered again.
pub(crate) const RESPONSES_MAX: usize = 3;

/// The state of one turn. There are many threads between two calls, which remember little, so what only a busy turn has is on the heap.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Turn {
    /// The turn's id, if the orchestrator names turns.
    pub id: Option<Id>,
    /// The fingerprint of the `turn_start` that began it, so that the same event sent twice begins it once.
    pub started_by: Option<Fingerprint>,
    /// Whether the turn has ended.
    pub has_ended: bool,
    /// The fingerprints of the ids of the turns before it, latest last.
    pub(crate) earlier: Box<[Fingerprint]>,
    /// What the turn remembers of its calls; `None` is an empty memory.
    pub(crate) memory: Option<Box<TurnMemory>>,
    /// The responses that were seen.
    pub(crate) seen: SeenResponses,
}

/// The latest responses of a thread, of this turn and of those before it. No thread is kept for them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SeenResponses {
    /// Their marks, latest first; 0 is no response.
    pub(crate) latest: [u64; RESPONSES_MAX],
    /// Whether signals have counted a safety stop of the running turn.
    pub(crate) counted_stop: bool,
}

/// What a turn remembers of its calls.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TurnMemory {
    /// What the loop controllers remember.
    pub loops: LoopMemory,
    /// The calls of the turn.
    pub calls: Calls,
    /// The calls that safety stops have suppressed, in this turn and in those before it.
    pub suppression: Rare<Suppression>,
}

/// The memory of a turn without calls.
static BLANK: TurnMemory = TurnMemory { loops: LoopMemory::BLANK, calls: Calls::BLANK, suppression: Rare::BLANK };

impl Turn {
    /// Returns what the turn remembers of its calls.
    #[must_use]
    pub fn memory(&self) -> &TurnMemory {
        self.memory.as_deref().unwrap_or(&BLANK)
    }

    /// Returns what the turn remembers of its calls, to be changed. An empty memory is allocated.
    pub fn memory_mut(&mut self) -> &mut TurnMemory {
        self.memory.get_or_insert_default()
    }

    /// Returns the turn that follows this one. Calls that were suppressed stay so: one that comes late may bear the id of any turn. New calls
    /// stay so too, until [`Self::free_new_calls`].
    #[must_use]
    pub fn next(self, id: Option<&str>, started_by: Option<Fingerprint>) -> Self {
        let Self { id: last, earlier, memory, seen, .. } = self;
        let earlier = last.map_or(earlier.clone(), |last| with_latest(&earlier, Fingerprint::of(last.text(&mut IdText::default()))));
        let memory = memory.and_then(|memory| memory.next_turn());
        // A response that comes again is the same one, whatever turn it comes in.
        let seen = SeenResponses { counted_stop: false, ..seen };
        Self { id: id.map(Into::into), started_by, has_ended: false, earlier, memory, seen }
    }

    /// Notes that the host has begun this turn, so that calls that are new in it are not of the responses before it.
    pub fn free_new_calls(&mut self) {
        if let Some(memory) = &mut self.memory {
            memory.suppression.change(Suppression::turn_over);
        }
        self.memory.take_if(|memory| **memory == BLANK);
    }

    /// Returns what is left of this turn once it has ended.
    #[must_use]
    pub fn end(self) -> Self {
        match self.memory.and_then(|memory| memory.next_turn()) {
            None => Self::default(),
            memory => Self { has_ended: true, memory, ..self },
        }
    }

    /// Returns the turn without any memory of its calls. Of a turn that has ended, nothing is left.
    #[must_use]
    pub fn forget(self) -> Self {
        if self.has_ended { Self::default() } else { Self { memory: None, ..self } }
    }

    /// Returns whether nothing is remembered but responses.
    #[must_use]
    pub fn is_blank(&self) -> bool {
        self.id.is_none() && self.started_by.is_none() && !self.has_ended && self.earlier.is_empty() && self.memory.is_none()
    }

    /// Notes a response by the fingerprint of its event, and by whether it is a stop: a host may use an event's id again. Returns whether it is
    /// another response than the latest.
    pub fn note_response(&mut self, event: Fingerprint, is_stop: bool) -> bool {
        let (mark, latest) = (event.mark() ^ u64::from(is_stop), self.seen.latest);
        let is_new = !latest.contains(&mark);
        if is_new {
            self.seen.latest.iter_mut().zip([mark].into_iter().chain(latest)).for_each(|(place, mark)| *place = mark);
        }
        is_new
    }

    /// Notes a safety stop that signals count. Returns whether it is the turn's first.
    pub fn note_counted_stop(&mut self) -> bool {
        !std::mem::replace(&mut self.seen.counted_stop, true)
    }

    /// Returns whether an event is of a turn that is over.
    #[must_use]
    pub fn is_late(&self, event: &Event<'_>) -> bool {
        self.has_ended || self.is_of_another(event)
    }

    /// Returns whether an event names another turn than this running turn.
    #[must_use]
    pub fn is_of_another(&self, event: &Event<'_>) -> bool {
        event.turn_id.as_deref().is_some_and(|id| !self.is_named(id))
    }

    /// Returns whether an id is this turn's.
    #[must_use]
    pub fn is_named(&self, id: &str) -> bool {
        self.id.as_ref().is_some_and(|own| own.is(id))
    }

    /// Returns whether an id names a turn before this one. Events of such a turn are late and begin no turn.
    #[must_use]
    pub fn is_earlier(&self, id: &str) -> bool {
        !self.earlier.is_empty() && self.earlier.contains(&Fingerprint::of(id))
    }

    /// Returns whether a stop depends on what is remembered here.
    #[must_use]
    pub fn holds_a_stop(&self) -> bool {
        self.memory().loops.holds_a_stop || !self.memory().suppression.is_empty()
    }

    /// Drops the oldest memories until the turn fits into `bytes_max` bytes: half for the calls, a quarter each for the counters and for
    /// suppressed calls. What a stop depends on is dropped last.
    pub fn trim(&mut self, bytes_max: usize) {
        let Some(memory) = &mut self.memory else { return };
        memory.calls.trim(bytes_max / 2);
        memory.loops.trim(bytes_max / 4);
        memory.suppression.change(|suppression| suppression.trim(bytes_max / 4));
        self.memory.take_if(|memory| **memory == BLANK);
    }

    /// Returns how many bytes it takes on the heap.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        let names = self.id.as_ref().map_or(0, Id::heap_bytes) + self.earlier.len() * size_of::<Fingerprint>();
        names + self.memory.as_ref().map_or(0, |memory| size_of::<TurnMemory>() + memory.heap_bytes())
    }
}

impl TurnMemory {
    /// Returns what outlives the turn, if anything does.
    fn next_turn(mut self: Box<Self>) -> Option<Box<Self>> {
        self.loops.next_turn();
        self.calls = Calls::BLANK;
        (*self != BLANK).then_some(self)
    }

    fn heap_bytes(&self) -> usize {
        self.loops.heap_bytes() + self.calls.heap_bytes() + self.suppression.boxed_bytes(Suppression::heap_bytes)
    }
}

fn with_latest(earlier: &[Fingerprint], latest: Fingerprint) -> Box<[Fingerprint]> {
    let kept = earlier.len().saturating_sub(EARLIER_TURNS_MAX - 1);
    earlier.iter().skip(kept).copied().chain([latest]).collect()
}
