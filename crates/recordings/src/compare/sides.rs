//! What the two sides say of a record: two policies, or the verdicts that were published and a policy.

use std::sync::Arc;

use tollgate_core::decide::deciding::{Deciding, DecidingPair, Outcome, VerdictBuffer};
use tollgate_core::decide::evaluate::verdict::verdict_id;
use tollgate_core::decide::policy::Policy;
use tollgate_core::engine::stage::Stage;
use tollgate_core::event::decode::{Event, Rejection};
use tollgate_core::event::record::Record;

use crate::{AskServers, Partitions, conclude, unreadable_header};

use super::flip::Side;
use super::recorded::Recorded;

/// A policy, and the policy servers that it asks.
#[derive(Debug, Clone)]
pub struct Judge {
    /// The policy.
    pub policy: Arc<Policy>,
    /// The policy servers.
    pub servers: Arc<dyn AskServers>,
}

/// The two sides, with the state of their partitions.
#[derive(Debug)]
pub(super) enum Sides {
    /// Two policies.
    Policies { judges: [Judge; 2], partitions: Partitions<DecidingPair>, outs: Box<[VerdictBuffer; 2]> },
    /// What was published, and a policy.
    Published { recorded: Arc<Recorded>, judge: Judge, partitions: Partitions<Deciding>, out: Box<VerdictBuffer> },
}

/// What both sides say of a record, and why it cannot be read if it cannot.
pub(super) struct BothSides {
    pub(super) sides: [Option<Side>; 2],
    /// The last policy's outcome, where the record cannot be read.
    pub(super) rejection: Option<Rejection>,
}

impl Sides {
    /// Returns two policies that know no thread.
    pub(super) fn policies(judges: [Judge; 2]) -> Self {
        Self::Policies { judges, partitions: Partitions::default(), outs: Default::default() }
    }

    /// Returns what was published, and a policy that knows no thread.
    pub(super) fn published(recorded: Arc<Recorded>, judge: Judge) -> Self {
        Self::Published { recorded, judge, partitions: Partitions::default(), out: Box::default() }
    }

    /// Returns what both policies wrote of the last record; `None` if one side is what was published.
    pub(super) fn outs(&self) -> Option<&[VerdictBuffer; 2]> {
        match self {
            Self::Policies { outs, .. } => Some(&**outs),
            Self::Published { .. } => None,
        }
    }

    /// Returns the messages of the last record's verdicts. Of what was published no message is known.
    pub(super) fn messages(&self) -> [String; 2] {
        let message = |out: &VerdictBuffer| {
            let verdict: serde_json::Value = serde_json::from_slice(&out.json).unwrap_or_default();
            verdict.get("message").and_then(serde_json::Value::as_str).unwrap_or_default().to_owned()
        };
        match self {
            Self::Policies { outs, .. } => outs.each_ref().map(message),
            Self::Published { out, .. } => [String::new(), message(out)],
        }
    }

    /// Returns whether a policy has a part that reads the arguments of calls: passports, or a policy server.
    pub(super) fn read_arguments(&self) -> bool {
        match self {
            Self::Policies { judges, .. } => judges.iter().any(|judge| judge.policy.reads_arguments()),
            Self::Published { judge, .. } => judge.policy.reads_arguments(),
        }
    }

    /// Asks both sides. `look` is given the event first, if it can be read.
    pub(super) fn ask(&mut self, record: &Record<'_>, is_readable: bool, look: impl FnOnce(&Event<'_>)) -> anyhow::Result<BothSides> {
        match self {
            Self::Policies { judges, partitions, outs } => {
                let new = || DecidingPair::new(judges.each_ref().map(|judge| Deciding::new(Arc::clone(&judge.policy))));
                let pair = partitions.of(record, new)?;
                let [first, second] = if is_readable {
                    let [one, other] = pair.apply(record, outs, look);
                    let ([a, b], [judge_a, judge_b], [out_a, out_b]) = (pair.sides_mut(), &*judges, &mut **outs);
                    let one = conclude(&*judge_a.servers, a, record.offset, one, out_a)?;
                    [one, conclude(&*judge_b.servers, b, record.offset, other, out_b)?]
                } else {
                    let ([a, b], [out_a, out_b]) = (pair.sides_mut(), &mut **outs);
                    [a.reject(record, unreadable_header(), out_a), b.reject(record, unreadable_header(), out_b)]
                };
                let rejection = rejection_of(&second).or_else(|| rejection_of(&first));
                Ok(BothSides { sides: [Side::of(first), Side::of(second)], rejection })
            }
            Self::Published { recorded, judge, partitions, out } => {
                let deciding = partitions.of(record, || Deciding::new(Arc::clone(&judge.policy)))?;
                let outcome = if is_readable {
                    let progress = deciding.apply_looking(record, out, look);
                    conclude(&*judge.servers, deciding, record.offset, progress, out)?
                } else {
                    deciding.reject(record, unreadable_header(), out)
                };
                let rejection = rejection_of(&outcome);
                let second = Side::of(outcome);
                // What gets no verdict has no place among those that were published.
                let first = second.as_ref().and_then(|_| recorded.get(verdict_id(&out.thread_id, &out.event_id)));
                Ok(BothSides { sides: [first, second], rejection })
            }
        }
    }
}

fn rejection_of(outcome: &Outcome) -> Option<Rejection> {
    match outcome {
        Outcome::DeadLetter(rejection) => Some(rejection.clone()),
        Outcome::Verdict { .. } | Outcome::Boundary(_) => None,
    }
}
