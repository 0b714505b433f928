//! A policy on trial beside the one in force: it decides on the same records from a state of its own, and its verdicts are compared.
//!
//! ```text
//! record, ours ─▶ its own deciding stage ─▶ theirs ─▶ equal, or a flip
//! ```
//!
//! Only what it has seen from the beginning of a turn is compared. A thread that was in the middle of a turn when its partition was taken
//! over, or of which a record was missed, is left out until its next turn begins: a verdict that differs because the state does says
//! nothing of the policies.

mod sample;

pub use sample::Sample;

use std::borrow::Cow;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::decide::deciding::{Deciding, Outcome, VerdictBuffer};
use crate::decide::evaluate::Decided;
use crate::decide::evaluate::verdict::{INVALID_EVENT, verdict_id};
use crate::decide::policy::Policy;
use crate::decide::ruling::{Action, DecidedBy};
use crate::decide::thread::{Id, IdText, ThreadStore};
use crate::engine::stage::Progress;
use crate::event::decode::{Body, EventType};
use crate::event::record::Record;
use tollgate_json::digest::Fingerprint;

/// What a policy says of an event, as far as it is compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// What happens next.
    pub action: Action,
    /// The verdict's code.
    pub code: Cow<'static, str>,
    /// What decided.
    pub decided_by: DecidedBy,
}

impl Decision {
    /// Returns what was decided.
    #[must_use]
    pub fn of(decided: &Decided) -> Self {
        Self { action: decided.action, code: decided.code.clone(), decided_by: decided.decided_by }
    }

    /// Returns whether two policies say the same: the same action for the same code.
    fn agrees(&self, other: &Self) -> bool {
        self.action == other.action && self.code == other.code
    }
}

/// A verdict that the policy on trial would have changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flip {
    /// The verdict, by its id.
    pub verdict_id: Fingerprint,
    /// The event's type.
    pub event_type: EventType,
    /// The tool of a call or result.
    pub tool: Option<String>,
    /// The agent, if the event names one.
    pub agent_id: Option<String>,
    /// What the policy in force says.
    pub from: Decision,
    /// What the policy on trial says.
    pub to: Decision,
}

/// The comparison of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Compared {
    /// Both policies say the same.
    Same,
    /// They do not.
    Flip(Box<Flip>),
    /// The policy on trial does not know all of the running turn.
    LeftOut,
    /// There is no verdict to compare.
    NoVerdict,
}

/// The state of a policy on trial in one partition.
#[derive(Debug)]
pub struct Shadow {
    deciding: Deciding,
    /// The threads whose running turn is not known from its beginning.
    partial: FxHashMap<Box<str>, Known>,
    /// Whether so many threads were partial that some were let go of. Then a thread that is not in the state may be one of them.
    has_let_go: bool,
    out: VerdictBuffer,
}

/// What is known of a thread that is partial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Known {
    /// Which turn it is in.
    Turn,
    /// Not even that: a record was missed, and may have begun one.
    Nothing,
}

/// What tells a turn from another.
type TurnMark = Option<(Option<Id>, Option<Fingerprint>, bool)>;

impl Shadow {
    /// Returns the state of a policy in a partition that was just taken over. `restored` are the threads that the policy in force remembers
    /// there. Their turns go on, and so do they in the state on trial; they are compared from their next turn on.
    #[must_use]
    pub fn new(policy: Arc<Policy>, restored: Option<ThreadStore>) -> Self {
        let threads = restored.unwrap_or_else(|| ThreadStore::new(policy.store_limits()));
        let partial = threads.iter().map(|(thread_id, _)| (thread_id.to_string().into(), Known::Turn)).collect();
        Self { deciding: Deciding::with_threads(policy, threads), partial, has_let_go: false, out: VerdictBuffer::default() }
    }

    /// Returns the threads of a sample out of those that the policy in force remembers, for the state of a policy on trial.
    #[must_use]
    pub fn sampled(ours: &ThreadStore, policy: &Policy, sample: Sample) -> ThreadStore {
        let threads = ours.iter().filter(|(thread_id, _)| sample.has(thread_id.text(&mut IdText::default())));
        ThreadStore::restored(policy.store_limits(), ours.clock(), threads.map(|(id, stored)| (id.to_string().into(), stored.clone())))
    }

    /// Notes that a record of a thread was missed.
    pub fn missed(&mut self, thread_id: &str) {
        self.partial.insert(thread_id.into(), Known::Nothing);
        self.bound();
    }

    /// Notes that records of any threads were missed.
    pub fn missed_any(&mut self) {
        self.partial = self.deciding.threads().iter().map(|(thread_id, _)| (thread_id.to_string().into(), Known::Nothing)).collect();
        self.has_let_go = true;
    }

    /// Decides on a record, and compares that with what the policy in force says; `None` where that gives no verdict.
    pub fn compare(&mut self, record: &Record<'_>, thread_id: &str, ours: Option<Decision>) -> Compared {
        let before = self.turn_of(thread_id);
        if before.is_none() && self.has_let_go && !self.partial.contains_key(thread_id) {
            self.partial.insert(thread_id.into(), Known::Nothing);
            self.bound();
        }
        let (mut event, mut tool, mut agent_id, mut begins) = (None, None, None, false);
        let progress = self.deciding.apply_looking(record, &mut self.out, |read| {
            event = Some((read.event_type(), verdict_id(&read.thread_id, &read.event_id)));
            begins = matches!(read.body, Body::TurnStart);
            agent_id = read.attribution.agent_id.as_deref().map(str::to_owned);
            tool = match &read.body {
                Body::ToolCall(call) => Some(call.tool_name.to_string()),
                Body::ToolResult(result) => Some(result.tool_name.to_string()),
                _ => None,
            };
        });
        self.follow(thread_id, &before, begins);
        let theirs = match progress {
            Progress::Done(Outcome::Verdict { decided, .. }) => Some(Decision::of(&decided)),
            Progress::Done(Outcome::DeadLetter(rejection)) if rejection.is_answered() => {
                Some(Decision { action: Action::Block, code: Cow::Borrowed(INVALID_EVENT), decided_by: DecidedBy::Envelope })
            }
            Progress::Done(_) | Progress::Asks(_) | Progress::Waits => None,
        };
        let (Some(ours), Some(theirs), Some((event_type, verdict_id))) = (ours, theirs, event) else { return Compared::NoVerdict };
        if self.partial.contains_key(thread_id) {
            return Compared::LeftOut;
        }
        if ours.agrees(&theirs) {
            return Compared::Same;
        }
        Compared::Flip(Box::new(Flip { verdict_id, event_type, tool, agent_id, from: ours, to: theirs }))
    }

    /// Compares a partial thread from now on if its record has begun a turn.
    fn follow(&mut self, thread_id: &str, before: &TurnMark, begins: bool) {
        let Some(known) = self.partial.get(thread_id).copied() else { return };
        let after = self.turn_of(thread_id);
        let is_another = match known {
            Known::Turn => after != *before,
            // A turn that seems new may be one whose beginning was missed.
            Known::Nothing => begins || after.is_none(),
        };
        if is_another {
            self.partial.remove(thread_id);
        } else {
            self.partial.insert(thread_id.into(), Known::Turn);
        }
    }

    /// Returns what marks the turn that a thread is in; `None` if nothing is remembered of the thread.
    fn turn_of(&self, thread_id: &str) -> TurnMark {
        let turn = &self.deciding.threads().get(thread_id)?.thread.turn;
        Some((turn.id.clone(), turn.started_by, turn.has_ended))
    }

    /// Lets go of partial threads that the state does not hold, if there are too many.
    fn bound(&mut self) {
        // Only from twice as many on, so that looking through all of them is rare.
        if self.partial.len() / 2 > self.deciding.policy().limits().threads_per_partition_max {
            let threads = self.deciding.threads();
            self.partial.retain(|thread_id, _| threads.get(thread_id).is_some());
            self.has_let_go = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::decide::policy::PolicySettings;
    use crate::engine::stage::Stage;
    use crate::event::record::{Offset, Partition};

    const STRICTER: &str = "tool_loop_guardrails: {exact_failure_block_after: 1, exact_failure_warn_after: 1}";

    /// The policy in force and the one on trial, on the same records.
    struct Trial {
        ours: Deciding,
        shadow: Shadow,
        next: i64,
    }

    fn policy(yaml: &str) -> Arc<Policy> {
        Arc::new(Policy::new(&PolicySettings::from_yaml(yaml).unwrap()))
    }

    impl Trial {
        fn new() -> Self {
            Self { ours: Deciding::new(policy("{}")), shadow: Shadow::new(policy(STRICTER), None), next: 0 }
        }

        /// Takes the partition over again: the policy in force has its state, and the one on trial has none.
        fn take_over(&mut self) {
            let theirs = policy(STRICTER);
            let restored = Shadow::sampled(self.ours.state(), &theirs, Sample::ALL);
            self.shadow = Shadow::new(theirs, Some(restored));
        }

        fn apply(&mut self, thread_id: &str, mut event: Value, is_missed: bool) -> Option<Compared> {
            event["thread_id"] = thread_id.into();
            event["event_id"] = format!("e{}", self.next).into();
            let value = event.to_string();
            let record = Record {
                topic: "agent.events",
                partition: Partition(0),
                offset: Offset(self.next),
                timestamp_ms: None,
                key: None,
                value: Some(value.as_bytes()),
                headers: &[],
            };
            self.next += 1;
            let ours = match self.ours.apply(&record, &mut VerdictBuffer::default()) {
                Progress::Done(Outcome::Verdict { decided, .. }) => Some(Decision::of(&decided)),
                Progress::Done(Outcome::Boundary(_)) => None,
                other => panic!("{other:?}"),
            };
            if is_missed {
                self.shadow.missed(thread_id);
                return None;
            }
            Some(self.shadow.compare(&record, thread_id, ours))
        }

        /// Fails once, and asks for the same call again: only the policy on trial blocks it.
        fn fail(&mut self, thread_id: &str, turn: Option<&str>) -> [Compared; 2] {
            let result = json!({"type": "tool_result", "tool_call_id": "c", "tool_name": "bash", "tool_input": {}, "failed": true, "result": "no", "turn_id": turn});
            let call = json!({"type": "tool_call", "tool_call_id": "d", "tool_name": "bash", "tool_input": {}, "turn_id": turn});
            [self.apply(thread_id, result, false).unwrap(), self.apply(thread_id, call, false).unwrap()]
        }

        fn start(&mut self, thread_id: &str, turn: Option<&str>) {
            assert_eq!(self.apply(thread_id, json!({"type": "turn_start", "turn_id": turn}), false), Some(Compared::NoVerdict));
        }
    }

    fn codes(compared: &[Compared; 2]) -> Vec<String> {
        compared
            .iter()
            .map(|compared| match compared {
                Compared::Flip(flip) => format!("{} -> {}", flip.from.code, flip.to.code),
                other => format!("{other:?}"),
            })
            .collect()
    }

    const FLIPS: [&str; 2] = ["allow -> repeated_exact_failure_warning", "allow -> repeated_exact_failure_block"];
    const LEFT_OUT: [&str; 2] = ["LeftOut"; 2];

    #[test]
    fn what_differs_is_found_with_its_event() {
        let mut trial = Trial::new();
        let [warning, block] = trial.fail("t", None);
        assert_eq!(codes(&[warning, block.clone()]), FLIPS);
        let Compared::Flip(flip) = block else { panic!("{block:?}") };
        assert_eq!((flip.event_type, flip.tool.as_deref(), flip.verdict_id), (EventType::ToolCall, Some("bash"), verdict_id("t", "e1")));
        assert_eq!((flip.from.action, flip.to.action, flip.to.decided_by), (Action::Allow, Action::Block, DecidedBy::Loop));
        let other = json!({"type": "tool_call", "tool_call_id": "e", "tool_name": "ls", "tool_input": {}});
        assert_eq!(trial.apply("t", other, false), Some(Compared::Same));
    }

    #[test]
    fn a_thread_in_the_middle_of_a_turn_is_left_out_until_the_next() {
        for (turn, next) in [(Some("1"), Some("2")), (None, None)] {
            let mut trial = Trial::new();
            trial.start("t", turn);
            trial.fail("t", turn);
            trial.take_over();
            assert_eq!(codes(&trial.fail("t", turn)), LEFT_OUT);
            assert_eq!(codes(&trial.fail("new", None)), FLIPS);
            trial.start("t", next);
            assert_eq!(codes(&trial.fail("t", next)), FLIPS);
        }
    }

    /// Hosts may name turns and send no `turn_start`, and events of an earlier turn may come late.
    #[test]
    fn a_turn_that_is_only_named_begins_too_and_one_that_is_over_does_not() {
        let mut trial = Trial::new();
        trial.fail("t", Some("1"));
        trial.fail("t", Some("2"));
        trial.take_over();
        assert_eq!(codes(&trial.fail("t", Some("1"))), LEFT_OUT);
        assert_eq!(codes(&trial.fail("t", Some("3"))), FLIPS);
    }

    #[test]
    fn a_thread_with_a_missed_record_is_left_out_until_its_next_turn() {
        let mut trial = Trial::new();
        assert_eq!(codes(&trial.fail("t", Some("1"))), FLIPS);
        trial.apply("t", json!({"type": "turn_start", "turn_id": "2"}), true);
        // The beginning of this turn was missed, so the turn is new to the state on trial and not known whole.
        assert_eq!(codes(&trial.fail("t", Some("2"))), LEFT_OUT);
        assert_eq!(codes(&trial.fail("other", None)), FLIPS);
        assert_eq!(codes(&trial.fail("t", Some("3"))), FLIPS);
    }

    #[test]
    fn if_any_record_may_be_missing_every_thread_is_left_out_until_its_next_turn() {
        let mut trial = Trial::new();
        trial.fail("t", None);
        trial.shadow.missed_any();
        assert_eq!(
            (codes(&trial.fail("t", None)), codes(&trial.fail("other", None))),
            (LEFT_OUT.map(str::to_owned).into(), LEFT_OUT.map(str::to_owned).into())
        );
        for thread in ["t", "other", "third"] {
            trial.start(thread, None);
            assert_eq!(codes(&trial.fail(thread, None)), FLIPS, "{thread}");
        }
    }

    #[test]
    fn few_partial_threads_are_remembered() {
        let mut trial = Trial::new();
        let small = policy("limits: {threads_per_partition_max: 10}");
        trial.shadow = Shadow::new(small, None);
        (0..100).for_each(|number| trial.shadow.missed(&format!("t{number}")));
        assert!(trial.shadow.partial.len() <= 21, "{}", trial.shadow.partial.len());
        assert_eq!(codes(&trial.fail("t3", None)), LEFT_OUT);
    }
}
