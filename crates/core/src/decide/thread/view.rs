//! A view of a thread's state for people to read: ids of turns, digests, codes and counters.
//!
//! The state holds nothing else except for the sentences of guardrail providers, which the view leaves out.

use serde::Serialize;

use crate::decide::loops::LoopMemory;
use crate::decide::ruling::{Action, Basis, Reason};
use crate::decide::thread::{Answer, CallRecord, Id, NewCalls, StoredThread, Suppression, Turn};
use crate::event::record::Partition;
use tollgate_json::digest::{Digest, Fingerprint};
use tollgate_json::time::rfc_3339;

use crate::engine::checkpoint::PartitionState;

/// A thread's state with the checkpoint that holds it. Fields are shown in this order.
#[derive(Debug, Serialize)]
pub struct ThreadView<'s> {
    thread_id: &'s str,
    /// The owner of the state.
    owner: &'s str,
    partition: i32,
    /// The first event of the partition that is not in the checkpoint.
    next: i64,
    /// The last event that was applied to the thread.
    applied: i64,
    /// The bytes of the record, key and value.
    bytes: usize,
    last_event: Option<String>,
    last_event_ms: Option<i64>,
    /// The partition's time when the last event was applied. The idle time of a thread is measured from it.
    touched_ms: Option<i64>,
    holds_a_stop: bool,
    turn: TurnView<'s>,
    loops: &'s LoopMemory,
    suppression: SuppressionView,
    calls: Vec<CallView<'s>>,
}

#[derive(Debug, Serialize)]
struct TurnView<'s> {
    id: Option<&'s Id>,
    started_by: Option<Fingerprint>,
    has_ended: bool,
    earlier: &'s [Fingerprint],
}

#[derive(Debug, Serialize)]
struct SuppressionView {
    ids: usize,
    unnamed_tools: usize,
    has_unknown: bool,
    has_overflowed: bool,
    new_calls_may_run: bool,
}

#[derive(Debug, Serialize)]
struct CallView<'s> {
    id: Fingerprint,
    tool: Fingerprint,
    args_hash: Digest,
    is_open: bool,
    call: Option<AnswerView<'s>>,
    result: Option<AnswerView<'s>>,
}

#[derive(Debug, Serialize)]
struct AnswerView<'s> {
    /// The id of the event's verdict on the decisions topic.
    verdict_id: Fingerprint,
    action: Action,
    codes: Vec<&'s str>,
    count: Option<u32>,
    /// Whether it answers a result whose call was not allowed to run.
    is_not_executed: bool,
}

impl<'s> ThreadView<'s> {
    /// Returns the view of a thread whose record takes `bytes`, in a partition whose own record is `state`.
    #[must_use]
    pub fn new(thread_id: &'s str, partition: Partition, bytes: usize, stored: &'s StoredThread, state: &'s PartitionState) -> Self {
        let StoredThread { thread, applied, touched_ms, .. } = stored;
        let memory = thread.turn.memory();
        Self {
            thread_id,
            owner: &state.owner,
            partition: partition.0,
            next: state.next.0,
            applied: applied.0,
            bytes,
            last_event: thread.last_event_ms.and_then(rfc_3339),
            last_event_ms: thread.last_event_ms,
            touched_ms: *touched_ms,
            holds_a_stop: thread.holds_a_stop(),
            turn: TurnView::new(&thread.turn),
            loops: &memory.loops,
            suppression: SuppressionView::new(&memory.suppression),
            calls: memory.calls.records().iter().map(CallView::new).collect(),
        }
    }
}

impl<'s> TurnView<'s> {
    fn new(turn: &'s Turn) -> Self {
        Self { id: turn.id.as_ref(), started_by: turn.started_by, has_ended: turn.has_ended, earlier: &turn.earlier }
    }
}

impl SuppressionView {
    fn new(suppression: &Suppression) -> Self {
        Self {
            ids: suppression.ids.len(),
            unnamed_tools: suppression.unnamed_tools.len(),
            has_unknown: suppression.has_unknown,
            has_overflowed: suppression.has_overflowed,
            new_calls_may_run: suppression.new_calls == NewCalls::Free,
        }
    }
}

impl<'s> CallView<'s> {
    fn new(record: &'s CallRecord) -> Self {
        let CallRecord { id, tool, args, spelling: _, call, result, is_open } = record;
        let answer = |answer: &'s Option<Answer>| answer.as_ref().map(AnswerView::new);
        Self { id: *id, tool: *tool, args_hash: *args, is_open: *is_open, call: answer(call), result: answer(result) }
    }
}

impl<'s> AnswerView<'s> {
    fn new(answer: &'s Answer) -> Self {
        let ruling = &answer.ruling;
        Self {
            verdict_id: answer.event,
            action: ruling.action(),
            codes: ruling.reasons.iter().map(Reason::code).collect(),
            count: ruling.count(),
            is_not_executed: ruling.basis == Basis::NotExecuted,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use serde_json::{Value, json};

    use super::*;
    use crate::decide::loops::{Arguments, SignatureCount, ToolCount};
    use crate::decide::ruling::{GuardrailReason, LoopCode, Ruling};
    use crate::decide::thread::Thread;
    use crate::event::record::Offset;

    fn state() -> PartitionState {
        PartitionState { owner: "tollgate".to_owned(), next: Offset(18), ..PartitionState::default() }
    }

    fn view(stored: &StoredThread) -> Value {
        serde_json::to_value(ThreadView::new("t", Partition(2), 123, stored, &state())).unwrap()
    }

    /// Returns a thread that remembers something of every kind.
    fn thread(tool: Fingerprint, args: Digest, id: Fingerprint, event: Fingerprint) -> Thread {
        let mut thread = Thread { last_event_ms: Some(1_767_225_600_123), ..Thread::default() };
        thread.turn.id = Some("turn-8".into());
        thread.turn.started_by = Some(event);
        thread.turn.earlier = Box::new([Fingerprint::of("turn-7")]);
        let memory = thread.turn.memory_mut();
        memory.loops.holds_a_stop = true;
        memory.loops.repetition.tools.push(ToolCount { tool, failures: 2 });
        let half = args.fingerprint();
        memory.loops.repetition.signatures.push(SignatureCount { tool, args: half, failures: 2, progress: None, is_stopped: true });
        memory.loops.repetition.signatures.push(SignatureCount {
            tool,
            args: half,
            failures: 0,
            progress: Some((event, NonZeroU32::MIN.saturating_add(2))),
            is_stopped: false,
        });
        let denied = GuardrailReason::new("oap.denied", "a sentence");
        let reasons = vec![Reason::Denied(Box::new(denied)), Reason::Loop { code: LoopCode::RepeatedExactFailureBlock, count: 2 }];
        memory.calls.note_call(
            id,
            tool,
            Arguments { canonical: args, spelling: half },
            Answer { event, ruling: Ruling::new(reasons, Some(2)) },
        );
        memory.calls.note_result(id, tool, args, Answer { event, ruling: Ruling::not_executed() });
        memory.suppression.add(Some("c2"), None);
        memory.suppression.add(None, None);
        thread
    }

    #[test]
    fn a_thread_is_shown_by_digests_codes_and_counts() {
        let (tool, args, id, event) = (Fingerprint::of("terminal"), Digest::of(b"{}"), Fingerprint::of("c1"), Fingerprint::of("e1"));
        let thread = thread(tool, args, id, event);
        let shown = view(&StoredThread { thread, applied: Offset(17), touched_ms: Some(5), ..StoredThread::default() });
        let half = args.fingerprint().to_string();
        let (tool, args, id, event) = (tool.to_string(), args.to_string(), id.to_string(), event.to_string());
        let expected = json!({
            "thread_id": "t",
            "owner": "tollgate",
            "partition": 2,
            "next": 18,
            "applied": 17,
            "bytes": 123,
            "last_event": "2026-01-01T00:00:00.123Z",
            "last_event_ms": 1_767_225_600_123_i64,
            "touched_ms": 5,
            "holds_a_stop": true,
            "turn": {"id": "turn-8", "started_by": event, "has_ended": false, "earlier": [Fingerprint::of("turn-7").to_string()]},
            "loops": {
                "holds_a_stop": true,
                "tools": [{"tool": tool, "failures": 2}],
                "signatures": [
                    {"tool": tool, "args_hash": half, "failures": 2, "last_result": null, "repeats": 0, "is_stopped": true},
                    {"tool": tool, "args_hash": half, "failures": 0, "last_result": event, "repeats": 3, "is_stopped": false},
                ],
            },
            "suppression": {"ids": 1, "unnamed_tools": 0, "has_unknown": true, "has_overflowed": false, "new_calls_may_run": true},
            "calls": [{
                "id": id,
                "tool": tool,
                "args_hash": args,
                "is_open": false,
                "call": {
                    "verdict_id": event,
                    "action": "block",
                    "codes": ["oap.denied", "repeated_exact_failure_block"],
                    "count": 2,
                    "is_not_executed": false,
                },
                "result": {"verdict_id": event, "action": "allow", "codes": [], "count": null, "is_not_executed": true},
            }],
        });
        assert_eq!(shown, expected);
    }

    /// People read the output from top to bottom, and scripts compare it as text.
    #[test]
    fn what_loop_controllers_remember_is_shown_in_the_same_order_as_ever() {
        let (tool, args, id, event) = (Fingerprint::of("terminal"), Digest::of(b"{}"), Fingerprint::of("c1"), Fingerprint::of("e1"));
        let thread = thread(tool, args, id, event);
        let stored = StoredThread { thread, applied: Offset(17), touched_ms: Some(5), ..StoredThread::default() };
        let shown = serde_json::to_string(&ThreadView::new("t", Partition(2), 123, &stored, &state())).unwrap();
        let signature = format!(r#"{{"tool":"{tool}","args_hash":"{}""#, args.fingerprint());
        let expected = format!(
            r#""loops":{{"holds_a_stop":true,"tools":[{{"tool":"{tool}","failures":2}}],"signatures":[{signature},"failures":2,"last_result":null,"repeats":0,"is_stopped":true}},{signature},"failures":0,"last_result":"{event}","repeats":3,"is_stopped":false}}]}},"suppression":"#
        );
        assert!(shown.contains(&expected), "{shown}");
    }

    #[test]
    fn a_thread_that_remembers_nothing_can_be_shown() {
        let shown = view(&StoredThread::default());
        assert_eq!((&shown["calls"], &shown["last_event"], &shown["turn"]["id"]), (&json!([]), &Value::Null, &Value::Null));
    }

    #[test]
    fn times_are_spelled_as_rfc_3339() {
        assert_eq!(rfc_3339(0).as_deref(), Some("1970-01-01T00:00:00.000Z"));
        assert_eq!(rfc_3339(-1).as_deref(), Some("1969-12-31T23:59:59.999Z"));
        assert_eq!(rfc_3339(1_709_210_096_007).as_deref(), Some("2024-02-29T12:34:56.007Z"));
        assert_eq!((rfc_3339(i64::MAX), rfc_3339(-62_200_000_000_000)), (None, None));
    }
}
