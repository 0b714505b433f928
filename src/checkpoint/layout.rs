//! Version 1 of the layout: what is written of every type, in which order.
//!
//! This file is the format. A change to it is a new version, with a golden of its own; what older versions wrote stays readable.

use crate::decode::Offset;
use crate::digest::Fingerprint;
use crate::evaluate::loops::{LoopCode, LoopMemory, SignatureCount, ToolCount};
use crate::evaluate::verdict::{Basis, GuardrailReason, Reason, Ruling};
use crate::thread::{Answer, CallRecord, Calls, StoredThread, StreamClock, Suppression, Thread, Turn, TurnMemory};

use super::PartitionState;
use super::wire::{Input, Malformed, Wire, write_list};

macro_rules! layout {
    ($($type:ident { $($field:ident),+ $(,)? })+) => {
        $(impl Wire for $type {
            fn write(&self, out: &mut Vec<u8>) {
                $(self.$field.write(out);)+
            }

            fn read(input: &mut Input<'_>) -> Result<Self, Malformed> {
                Ok(Self { $($field: Wire::read(input)?),+ })
            }
        })+
    };
}

layout! {
    PartitionState { owner, next, clock }
    StreamClock { began_ms, now_ms, outvoted }
    StoredThread { applied, touched_ms, thread }
    Thread { last_event_ms, turn }
    Turn { id, started_by, has_ended, earlier, memory }
    TurnMemory { loops, calls, suppression }
    LoopMemory { tools, signatures, holds_a_stop }
    ToolCount { tool, failures }
    SignatureCount { tool, args, failures, progress, is_stopped }
    CallRecord { id, tool, args, call, result, is_open }
    Answer { event, ruling }
    Ruling { reasons, basis }
    GuardrailReason { code, message, policy_id }
    Suppression { ids, unnamed_tools, has_unknown, has_overflowed }
}

impl Wire for Offset {
    fn write(&self, out: &mut Vec<u8>) {
        self.0.write(out);
    }

    fn read(input: &mut Input<'_>) -> Result<Self, Malformed> {
        i64::read(input).map(Self)
    }
}

impl Wire for (Fingerprint, u32) {
    fn write(&self, out: &mut Vec<u8>) {
        self.0.write(out);
        self.1.write(out);
    }

    fn read(input: &mut Input<'_>) -> Result<Self, Malformed> {
        Ok((Wire::read(input)?, Wire::read(input)?))
    }
}

impl Wire for Calls {
    fn write(&self, out: &mut Vec<u8>) {
        write_list(self.records(), out);
    }

    fn read(input: &mut Input<'_>) -> Result<Self, Malformed> {
        Vec::read(input).map(Self::of)
    }
}

impl Wire for Basis {
    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::NotAsked => out.push(0),
            Self::Counted(count) => {
                out.push(1);
                count.write(out);
            }
            Self::NotExecuted => out.push(2),
        }
    }

    fn read(input: &mut Input<'_>) -> Result<Self, Malformed> {
        Ok(match input.byte()? {
            0 => Self::NotAsked,
            1 => Self::Counted(Wire::read(input)?),
            2 => Self::NotExecuted,
            _ => return Err(Malformed::Invalid("a ruling's basis")),
        })
    }
}

impl Wire for Reason {
    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Loop { code, count } => {
                out.push(0);
                code.write(out);
                count.write(out);
            }
            Self::Denied(reason) => {
                out.push(1);
                reason.write(out);
            }
            Self::FailedOpen(reason) => {
                out.push(2);
                reason.write(out);
            }
            Self::Suppressed => out.push(3),
            Self::ThreadStoreFull => out.push(4),
        }
    }

    fn read(input: &mut Input<'_>) -> Result<Self, Malformed> {
        Ok(match input.byte()? {
            0 => Self::Loop { code: Wire::read(input)?, count: Wire::read(input)? },
            1 => Self::Denied(Wire::read(input)?),
            2 => Self::FailedOpen(Wire::read(input)?),
            3 => Self::Suppressed,
            4 => Self::ThreadStoreFull,
            _ => return Err(Malformed::Invalid("a reason")),
        })
    }
}

/// The codes by the number that stands for them.
const LOOP_CODES: [LoopCode; 6] = [
    LoopCode::RepeatedExactFailureWarning,
    LoopCode::RepeatedExactFailureBlock,
    LoopCode::SameToolFailureWarning,
    LoopCode::SameToolFailureHalt,
    LoopCode::IdempotentNoProgressWarning,
    LoopCode::IdempotentNoProgressBlock,
];

impl Wire for LoopCode {
    fn write(&self, out: &mut Vec<u8>) {
        let number = LOOP_CODES.iter().position(|code| code == self).unwrap_or(LOOP_CODES.len());
        (number as u64).write(out);
    }

    fn read(input: &mut Input<'_>) -> Result<Self, Malformed> {
        let number = usize::try_from(u64::read(input)?).ok();
        number.and_then(|number| LOOP_CODES.get(number)).copied().ok_or(Malformed::Invalid("a loop code"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_loop_code_has_a_number() {
        for code in LoopCode::ALL {
            let mut out = Vec::new();
            code.write(&mut out);
            assert_eq!(Input::new(&out).whole(), Ok(code));
        }
    }
}
