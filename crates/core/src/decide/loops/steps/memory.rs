//! What the step controller remembers: the last steps of a turn, attempts without a result, and what outlives the turn.

use serde::{Serialize, Serializer};

use super::super::{ControllerMemory, is_zero};
use crate::decide::loops::failure::Asked;
use crate::engine::wire::{Input, Malformed, Wire, layout};
use crate::lists::push_tightly;
use crate::rare::{Blank, Rare};

/// How many steps of a turn are remembered.
pub const STEPS_MAX: usize = 64;
/// How many attempts without a result are remembered.
const OPEN_MAX: usize = 64;
/// How many errors are remembered over turns.
const REFUSALS_MAX: usize = 8;
/// How many tallies are remembered, besides those of tools whose calls are limited.
pub const TALLIES_MAX: u32 = 64;

/// What is known of a step or an attempt besides its hashes: a set of flags.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Marks(u8);

impl Marks {
    /// The call failed.
    pub const FAILED: u8 = 1;
    /// The failure is one that may pass.
    pub const PASSING: u8 = 2;
    /// The program that the call starts is missing.
    pub const MISSING: u8 = 4;
    /// The result is the empty answer to a look-up.
    pub const NOTHING: u8 = 8;
    /// The same call has brought the same result before, in this turn.
    pub const KNOWN: u8 = 16;
    /// The call waits for something.
    pub const WAITING: u8 = 32;
    /// The call acts on something that its result need not show: a click, a key.
    pub const ACTING: u8 = 64;
    /// The result does not tell whether another call may bring more.
    pub const UNCLEAR: u8 = 128;

    /// The marks that a call has before its result is there.
    const OF_CALL: u8 = Self::WAITING | Self::ACTING;

    /// Returns the marks of a call, which holds what the call asks for in the place of the marks of results.
    #[must_use]
    pub fn of_attempt(self, asked: Asked) -> Self {
        Self((self.0 & Self::OF_CALL) | asked.bits())
    }

    /// Returns what these marks of an attempt say that the call asks for.
    #[must_use]
    pub fn asked(self) -> Asked {
        Asked::from_bits(self.0)
    }

    /// Returns those marks of an attempt that its step has too.
    #[must_use]
    pub fn of_call(self) -> Self {
        Self(self.0 & Self::OF_CALL)
    }

    /// Returns the marks with one more, if it applies.
    #[must_use]
    pub fn with(self, mark: u8, applies: bool) -> Self {
        Self(if applies { self.0 | mark } else { self.0 })
    }

    /// Returns whether a mark is set.
    #[must_use]
    pub fn has(self, mark: u8) -> bool {
        self.0 & mark != 0
    }
}

/// A call of the turn with its result, in hashes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Step {
    /// The tool and the arguments.
    pub call: u32,
    /// The result without its volatile parts.
    pub masked: u32,
    /// The tool.
    pub tool: u16,
    /// The class of the error; of a success, a hash of the numbers and ids that `masked` leaves out.
    pub class: u16,
    /// A sketch of the result's lines, see [`super::mask::Masked`].
    pub sketch: [u8; 8],
    /// The round in which the call was made: calls of one response share it.
    pub round: u8,
    /// What else is known.
    pub marks: Marks,
}

/// A call that was allowed and has no result yet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Attempt {
    /// The call's id.
    pub id: u32,
    /// The tool and the arguments.
    pub call: u32,
    /// The round in which it was made.
    pub round: u8,
    /// What is known of it, see [`Marks::of_attempt`].
    pub marks: Marks,
}

/// An error that outlives turns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Refusal {
    /// The tool and the arguments.
    pub call: u32,
    /// The result without its volatile parts.
    pub masked: u32,
    /// How often it came.
    pub count: u32,
}

/// How often something was done in the turn: a call that may be made once, or any call of a tool whose calls are limited.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// The call, or the tool's pattern.
    pub key: u32,
    /// How often.
    pub count: u32,
}

/// What the step controller remembers of a thread.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct StepMemory {
    /// The last steps of the turn, latest last.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<Step>,
    /// Attempts without a result, latest last.
    #[serde(skip)]
    pub open: Vec<Attempt>,
    /// Errors that came in this turn and in those before it.
    #[serde(skip)]
    pub refusals: Vec<Refusal>,
    /// What was done how often in the turn.
    #[serde(skip)]
    pub tallies: Vec<Tally>,
    /// How many calls were refused since something new came.
    #[serde(skip_serializing_if = "is_zero")]
    pub denials: u32,
    /// The round that is under way.
    #[serde(skip)]
    pub round: u8,
}

layout! {
    StepMemory { steps, open, refusals, tallies, denials, round }
    Step { call, masked, tool, class, sketch, round, marks }
    Attempt { id, call, round, marks }
    Refusal { call, masked, count }
    Tally { key, count }
}

impl StepMemory {
    /// Appends a step. The oldest makes room.
    pub fn push(&mut self, step: Step) {
        if self.steps.len() >= STEPS_MAX {
            self.steps.remove(0);
        }
        // It grows by a half, up to what it holds at most.
        if self.steps.len() == self.steps.capacity() {
            self.steps.reserve_exact((self.steps.len() / 2).max(2).min(STEPS_MAX - self.steps.len()));
        }
        self.steps.push(step);
    }

    /// Notes an attempt. The same call that is asked about again is the same attempt.
    pub fn begin(&mut self, attempt: Attempt) {
        self.open.retain(|open| (open.id, open.call) != (attempt.id, attempt.call));
        if self.open.len() >= OPEN_MAX {
            self.open.remove(0);
        }
        push_tightly(&mut self.open, attempt);
    }

    /// Takes the attempt of this id out, or else one of the same call.
    pub fn end(&mut self, id: u32, call: u32) -> Option<Attempt> {
        let place = |is_its: &dyn Fn(&Attempt) -> bool| self.open.iter().position(is_its);
        let same = place(&|open| (open.id, open.call) == (id, call));
        let at = same.or_else(|| place(&|open| open.id == id)).or_else(|| place(&|open| open.call == call))?;
        Some(self.open.remove(at))
    }

    /// Counts an error for the turns to come. The one that came least often makes room.
    pub fn count_refusal(&mut self, call: u32, masked: u32) {
        if let Some(known) = self.refusals.iter_mut().find(|known| (known.call, known.masked) == (call, masked)) {
            known.count = known.count.saturating_add(1);
            return;
        }
        if self.refusals.len() >= REFUSALS_MAX {
            let least = self.refusals.iter().enumerate().min_by_key(|(_, known)| known.count).map_or(0, |(at, _)| at);
            self.refusals.remove(least);
        }
        push_tightly(&mut self.refusals, Refusal { call, masked, count: 1 });
    }

    /// Returns a tally.
    #[must_use]
    pub fn tally(&self, key: u32) -> u32 {
        self.tallies.iter().find(|tally| tally.key == key).map_or(0, |tally| tally.count)
    }

    /// Returns whether no further call can be tallied that may be made once.
    #[must_use]
    pub fn is_tallied_out(&self) -> bool {
        self.tallies.len() >= TALLIES_MAX as usize
    }

    /// Adds to a tally.
    pub fn count(&mut self, key: u32) {
        match self.tallies.iter_mut().find(|tally| tally.key == key) {
            Some(tally) => tally.count = tally.count.saturating_add(1),
            None => push_tightly(&mut self.tallies, Tally { key, count: 1 }),
        }
    }
}

impl Blank for StepMemory {
    const NOTHING: &'static Self =
        &Self { steps: Vec::new(), open: Vec::new(), refusals: Vec::new(), tallies: Vec::new(), denials: 0, round: 0 };
}

/// Threads under another preset remember no steps.
impl ControllerMemory for Rare<StepMemory> {
    const BLANK: Self = Self::BLANK;

    fn next_turn(&mut self) {
        self.change(StepMemory::next_turn);
    }

    fn trim(&mut self, bytes_max: usize) {
        self.change(|memory| memory.trim(bytes_max));
    }

    fn heap_bytes(&self) -> usize {
        self.boxed_bytes(StepMemory::heap_bytes)
    }
}

impl StepMemory {
    fn next_turn(&mut self) {
        // Only what came twice may be on its way to go on over turns.
        self.refusals.retain(|refusal| refusal.count > 1);
        *self = Self { refusals: std::mem::take(&mut self.refusals), ..Self::default() };
    }

    /// Drops the oldest steps. Only what is in use counts, not what is reserved: state that comes from a checkpoint reserves differently and
    /// must be trimmed alike.
    fn trim(&mut self, bytes_max: usize) {
        let others = size_of_val(&*self.open) + size_of_val(&*self.refusals) + size_of_val(&*self.tallies);
        let steps_max = bytes_max.saturating_sub(others) / size_of::<Step>();
        if self.steps.len() > steps_max {
            self.steps.drain(..self.steps.len() - steps_max);
        }
        if self.steps.capacity() > steps_max {
            self.steps.shrink_to(steps_max);
        }
    }

    fn heap_bytes(&self) -> usize {
        self.steps.capacity() * size_of::<Step>()
            + self.open.capacity() * size_of::<Attempt>()
            + self.refusals.capacity() * size_of::<Refusal>()
            + self.tallies.capacity() * size_of::<Tally>()
    }
}

impl Wire for Marks {
    fn write(&self, out: &mut Vec<u8>) {
        self.0.write(out);
    }

    fn read(input: &mut Input<'_>) -> Result<Self, Malformed> {
        Wire::read(input).map(Self)
    }
}

impl Serialize for Step {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Shown {
            call: String,
            result: String,
            class: Option<String>,
            round: u8,
            is_known: bool,
        }
        let hex = |hash: u32| format!("{hash:08x}");
        let class = self.marks.has(Marks::FAILED).then(|| format!("{:04x}", self.class));
        let shown =
            Shown { call: hex(self.call), result: hex(self.masked), class, round: self.round, is_known: self.marks.has(Marks::KNOWN) };
        shown.serialize(serializer)
    }
}
