//! The slots of state that hold the controllers' memories. With them a controller can be added, be removed or change its memory, and the
//! rest stays readable.
//!
//! A slot is written as its number, the version of its layout, its length and its bytes. Numbers ascend, and a controller with an empty
//! memory has no slot. A slot with an unknown number or version is skipped: it was written by a newer release, or by one with a controller
//! that was removed. That controller then begins anew. Whether the thread holds a stop is written outside the slots, and stays.

use crate::engine::wire::{Input, Malformed, Wire, write_sized};

use super::{ControllerMemory, LoopController};

/// Appends the slot of a controller, unless its memory is empty.
pub(super) fn write<C: LoopController>(number: u64, memory: &C::Memory, out: &mut Vec<u8>) {
    if !memory.is_blank() {
        number.write(out);
        C::SLOT_VERSION.write(out);
        write_sized(memory, out);
    }
}

/// Reads the number of slots and then the slots. `take` gets the number, the version and the bytes of each.
pub(super) fn read(input: &mut Input<'_>, mut take: impl FnMut(u64, u32, Input<'_>) -> Result<(), Malformed>) -> Result<(), Malformed> {
    let mut last = None;
    for _ in 0..u64::read(input)? {
        let (number, version) = <(u64, u32)>::read(input)?;
        if last.is_some_and(|last| last >= number) || version == 0 {
            return Err(Malformed::Invalid("a loop controller's slot"));
        }
        last = Some(number);
        take(number, version, Input::new(version, input.sized()?))?;
    }
    Ok(())
}

/// Reads a controller's memory from its slot, unless a newer release has written it.
pub(super) fn take<C: LoopController>(memory: &mut C::Memory, version: u32, bytes: Input<'_>) -> Result<(), Malformed> {
    if version <= C::SLOT_VERSION {
        *memory = bytes.whole()?;
    }
    Ok(())
}

/// Returns whether each number is greater than the one before it.
pub(super) const fn ascend(numbers: &[u64]) -> bool {
    let mut rest = numbers;
    while let [first, others @ ..] = rest {
        if let [second, ..] = others
            && *first >= *second
        {
            return false;
        }
        rest = others;
    }
    true
}
