//! The layout of what a checkpoint says of its partition. A stage lays out its own entries; `decide/thread/layout.rs` those of threads.

use crate::engine::wire::{Input, Malformed, Wire, layout};
use crate::event::record::{Offset, StreamClock};

use super::{PartitionState, RekeyMark, StateSum};

layout! {
    PartitionState { owner, next, clock, partitions }
    RekeyMark { from, to, sum }
    StateSum { entries, high, low }
    StreamClock { began_ms, now_ms, outvoted }
}

impl Wire for Offset {
    fn write(&self, out: &mut Vec<u8>) {
        self.0.write(out);
    }

    fn read(input: &mut Input<'_>) -> Result<Self, Malformed> {
        i64::read(input).map(Self)
    }
}
