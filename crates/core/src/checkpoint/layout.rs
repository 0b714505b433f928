//! Version 2 of the layout: what is written of every type, in which order.
//!
//! This file is the format. A change to it is a new version, with a golden of its own; what older versions wrote stays readable. Version 2
//! has reasons that version 1 had not; whatever version 1 wrote means the same in both.

use crate::digest::Fingerprint;
use crate::loops::{LoopMemory, SignatureCount, ToolCount};
use crate::record::Offset;
use crate::ruling::LoopCode;
use crate::ruling::{Basis, Evidence, GuardrailReason, Reason, Ruling};
use crate::ruling::{SubjectKind, Suspension};
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
    Suspension { kind, reason }
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
            Self::Denied(reason) => write_guardrail([1, 5], reason, out),
            Self::FailedOpen(reason) => write_guardrail([2, 6], reason, out),
            Self::Allowed(reason) => write_guardrail([7, 8], reason, out),
            Self::SubjectSuspended(suspension) => {
                out.push(9);
                suspension.write(out);
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
            5 => Self::Denied(Box::new(read_guardrail(input)?)),
            6 => Self::FailedOpen(Box::new(read_guardrail(input)?)),
            7 => Self::Allowed(Wire::read(input)?),
            8 => Self::Allowed(Box::new(read_guardrail(input)?)),
            9 => Self::SubjectSuspended(Wire::read(input)?),
            _ => return Err(Malformed::Invalid("a reason")),
        })
    }
}

/// Writes a guardrail provider's reason under the first number, or, with what it stood on behind it, under the second.
fn write_guardrail([without, with]: [u8; 2], reason: &GuardrailReason, out: &mut Vec<u8>) {
    out.push(if reason.evidence.is_some() { with } else { without });
    reason.write(out);
    if let Some(evidence) = &reason.evidence {
        evidence.write(out);
    }
}

/// Reads a guardrail provider's reason and what it stood on.
fn read_guardrail(input: &mut Input<'_>) -> Result<GuardrailReason, Malformed> {
    let reason = GuardrailReason::read(input)?;
    Ok(GuardrailReason { evidence: Some(Wire::read(input)?), ..reason })
}

impl Wire for GuardrailReason {
    fn write(&self, out: &mut Vec<u8>) {
        self.code.write(out);
        self.message.write(out);
        self.policy_id.write(out);
    }

    fn read(input: &mut Input<'_>) -> Result<Self, Malformed> {
        Ok(Self { code: Wire::read(input)?, message: Wire::read(input)?, policy_id: Wire::read(input)?, evidence: None })
    }
}

impl Wire for Evidence {
    fn write(&self, out: &mut Vec<u8>) {
        let (kind, digest) = match self {
            Self::Passport(digest) => (0, digest),
            Self::Answer(digest) => (1, digest),
        };
        out.push(kind);
        digest.write(out);
    }

    fn read(input: &mut Input<'_>) -> Result<Self, Malformed> {
        Ok(match input.byte()? {
            0 => Self::Passport(Wire::read(input)?),
            1 => Self::Answer(Wire::read(input)?),
            _ => return Err(Malformed::Invalid("what a reason stood on")),
        })
    }
}

impl Wire for SubjectKind {
    fn write(&self, out: &mut Vec<u8>) {
        let number = Self::ALL.iter().position(|kind| kind == self).unwrap_or(Self::ALL.len());
        (number as u64).write(out);
    }

    fn read(input: &mut Input<'_>) -> Result<Self, Malformed> {
        let number = usize::try_from(u64::read(input)?).ok();
        number.and_then(|number| Self::ALL.get(number)).copied().ok_or(Malformed::Invalid("a kind of subject"))
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
