//! The memory of the step controller behind a pointer: threads under another preset have none, and there are many of them.

use std::ops::{Deref, DerefMut};

use serde::{Serialize, Serializer};

use super::super::ControllerMemory;
use super::memory::StepMemory;
use crate::engine::wire::{Input, Malformed, Wire};

/// What the step controller remembers, on the heap; nothing at all where it remembers nothing.
#[derive(Debug, Clone, Default)]
pub struct BoxedSteps(Option<Box<StepMemory>>);

static NOTHING: StepMemory = StepMemory::BLANK;

impl Deref for BoxedSteps {
    type Target = StepMemory;

    fn deref(&self) -> &StepMemory {
        self.0.as_deref().unwrap_or(&NOTHING)
    }
}

impl DerefMut for BoxedSteps {
    fn deref_mut(&mut self) -> &mut StepMemory {
        self.0.get_or_insert_default()
    }
}

impl From<StepMemory> for BoxedSteps {
    fn from(memory: StepMemory) -> Self {
        Self(Some(Box::new(memory)))
    }
}

impl PartialEq for BoxedSteps {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for BoxedSteps {}

impl Serialize for BoxedSteps {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (**self).serialize(serializer)
    }
}

impl Wire for BoxedSteps {
    fn write(&self, out: &mut Vec<u8>) {
        (**self).write(out);
    }

    fn read(input: &mut Input<'_>) -> Result<Self, Malformed> {
        StepMemory::read(input).map(Self::from)
    }
}

impl ControllerMemory for BoxedSteps {
    const BLANK: Self = Self(None);

    fn next_turn(&mut self) {
        self.0.as_mut().into_iter().for_each(|memory| memory.next_turn());
        if self.is_blank() {
            self.0 = None;
        }
    }

    fn trim(&mut self, bytes_max: usize) {
        self.0.as_mut().into_iter().for_each(|memory| memory.trim(bytes_max));
    }

    fn heap_bytes(&self) -> usize {
        self.0.as_ref().map_or(0, |memory| size_of::<StepMemory>() + memory.heap_bytes())
    }
}
