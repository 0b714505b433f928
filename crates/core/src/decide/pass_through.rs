//! The pass-through: a stage that decides nothing and gives a constant verdict on every record. It measures what the rest of a worker
//! costs.

use std::convert::Infallible;

use crate::decide::deciding::VerdictBuffer;
use crate::decide::thread::read_thread;
use crate::engine::checkpoint::{KeyedState, StateError};
use crate::engine::stage::{Progress, Resumed, Stage, Waiting};
use crate::event::decode::Rejection;
use crate::event::record::{Offset, Record, StreamClock};

/// The text in place of a policy version, since there is no policy.
pub const PASS_THROUGH: &str = "pass-through";

/// The constant verdict. It has the size of a usual verdict on a tool call, and names no event, so that a host that waits for a verdict
/// does not take it for its own.
const VERDICT: &str = concat!(
    r#"{"verdict_id":"00000000000000000000000000000000","event_id":"","type":"tool_call","thread_id":"","turn_id":"","tool_call_id":"","#,
    r#""tool_name":"","action":"allow","allows_execution":true,"should_halt":false,"code":"pass_through","message":"","decided_by":"none","#,
    r#""reasons":[],"count":0,"signature":{"tool_name":"","args_hash":"0000000000000000000000000000000000000000000000000000000000000000"},"#,
    r#""policy_version":"pass-through","agent_id":"","timestamp":"1970-01-01T00:00:00.000Z"}"#,
);

/// The stage that lets every record of a partition through, readable or not.
#[derive(Debug, Default)]
pub struct PassThrough {
    state: Nothing,
}

impl PassThrough {
    /// Returns a stage with the time of a checkpoint.
    #[must_use]
    pub fn with_state(state: Nothing) -> Self {
        Self { state }
    }
}

impl Stage for PassThrough {
    type Outcome = ();
    type Request = Infallible;
    type Response = Infallible;
    type Output = VerdictBuffer;
    type State = Nothing;

    /// Writes the constant verdict without looking at the record's value. The verdict's key is the record's key, or its coordinates if it
    /// has none. The event's id is the coordinates.
    fn apply(&mut self, record: &Record<'_>, out: &mut VerdictBuffer) -> Progress<(), Infallible> {
        let coordinates = record.coordinates();
        let key = record.key.map(String::from_utf8_lossy).filter(|key| !key.is_empty());
        out.address(key.as_deref().unwrap_or(&coordinates), &coordinates);
        out.json.extend_from_slice(VERDICT.as_bytes());
        Progress::Done(())
    }

    fn reject(&mut self, record: &Record<'_>, _: Rejection, out: &mut VerdictBuffer) {
        let _done = self.apply(record, out);
    }

    fn answer(&mut self, _: Offset, response: Infallible) {
        match response {}
    }

    fn resume(&mut self, _: &mut VerdictBuffer) -> Option<Resumed<(), Infallible>> {
        None
    }

    fn waiting(&self) -> Waiting {
        Waiting::default()
    }

    fn waiting_keys(&self) -> impl Iterator<Item = &str> {
        std::iter::empty()
    }

    fn state(&self) -> &Nothing {
        &self.state
    }

    fn state_mut(&mut self) -> &mut Nothing {
        &mut self.state
    }
}

/// The state of a stage that needs none, apart from the partition's time. Threads that a deciding worker left in the topic are ignored and
/// stay there.
#[derive(Debug, Default)]
pub struct Nothing {
    clock: StreamClock,
}

impl KeyedState for Nothing {
    const KIND: &'static str = "thread";
    type Entry = Offset;
    type Limits = ();

    fn encode(_: &Offset, _: &mut Vec<u8>) {}

    fn decode(value: &[u8]) -> Result<Offset, StateError> {
        Ok(read_thread(value)?.applied)
    }

    fn applied(entry: &Offset) -> Offset {
        *entry
    }

    fn restored((): (), clock: StreamClock, _: impl IntoIterator<Item = (Box<str>, Offset)>) -> Self {
        Self { clock }
    }

    fn clock(&self) -> StreamClock {
        self.clock
    }

    fn len(&self) -> usize {
        0
    }

    fn bytes(&self) -> usize {
        0
    }

    fn take_changes(&mut self, _: impl FnMut(&str, Option<&Offset>)) {}

    fn take_change(&mut self, _: &str) -> Option<&Offset> {
        None
    }

    fn mark_changed(&mut self, _: &str) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decide::thread::{StoreLimits, StoredThread, ThreadLimits, ThreadStore};
    use crate::engine::checkpoint::{PartitionState, Restore, Restored, StateRecord};
    use crate::engine::processor::{Applied, PartitionProcessor};
    use crate::event::record::Partition;
    use serde_json::{Value, json};

    #[test]
    fn the_verdict_has_a_typical_size_and_names_no_event() {
        let verdict: Value = serde_json::from_str(VERDICT).unwrap();
        assert!((450..=500).contains(&VERDICT.len()), "{} bytes", VERDICT.len());
        assert_eq!((&verdict["action"], &verdict["policy_version"]), (&json!("allow"), &json!(PASS_THROUGH)));
        assert_eq!((&verdict["thread_id"], &verdict["event_id"]), (&json!(""), &json!("")));
    }

    const OWNER: &str = "tollgate/agent.events";

    fn restore<K: KeyedState>(records: &[StateRecord], limits: K::Limits) -> Restored<K> {
        let mut restore = Restore::<K>::default();
        for (record, offset) in records.iter().zip(0..) {
            restore.take(Offset(offset), Some(record.key.as_bytes()), record.value.as_deref());
        }
        restore.finish(OWNER, limits).unwrap().unwrap()
    }

    /// Returns the records that a deciding worker leaves: one thread, and the partition's own.
    fn left_by_a_deciding_worker(thread: &StoredThread) -> Vec<StateRecord> {
        let mut clock = StreamClock::default();
        clock.advance(1_000, 60_000);
        let partition = PartitionState { owner: OWNER.to_owned(), next: Offset(8), clock, ..PartitionState::default() };
        vec![StateRecord::entry::<ThreadStore>("t", Some(thread)), StateRecord::partition(&partition)]
    }

    #[test]
    fn threads_in_the_topic_are_passed_over_and_stay() {
        let thread = StoredThread { applied: Offset(7), touched_ms: Some(1_000), ..StoredThread::default() };
        let mut records = left_by_a_deciding_worker(&thread);
        let Restored { next, state } = restore::<Nothing>(&records, ());
        assert_eq!((next, state.len(), state.clock().now_ms()), (Offset(8), 0, Some(1_000)));
        let mut processor = PartitionProcessor::restored(Partition(0), PassThrough { state }, next);
        let record = Record {
            topic: "agent.events",
            partition: Partition(0),
            offset: Offset(8),
            timestamp_ms: None,
            key: Some(b"t"),
            value: Some(b"{"),
            headers: &[],
        };
        let mut out = VerdictBuffer::default();
        assert_eq!(processor.apply(&record, &mut out), Ok(Applied::Taken(Progress::Done(()))));
        assert_eq!((out.thread_id.as_str(), out.event_id.as_str(), &*out.json), ("t", "agent.events/0/8", VERDICT.as_bytes()));
        processor.published(Offset(8), 0).unwrap();
        processor.freeze(OWNER);
        let checkpoint = processor.take_checkpoint().unwrap();
        assert_eq!((checkpoint.next, checkpoint.records.len()), (Offset(9), 1), "the partition's own record alone");
        records.extend(checkpoint.records.iter().cloned());
        let limits = StoreLimits {
            threads_max: 10,
            tenant_stops_max: 10,
            thread: ThreadLimits { idle_ms_max: 60_000, turn_idle_ms_max: 60_000, bytes_max: 4_096 },
        };
        let restored = restore::<ThreadStore>(&records, limits);
        assert_eq!((restored.next, restored.state.clock().now_ms()), (Offset(9), Some(1_000)));
        assert_eq!(restored.state.get("t"), Some(&thread));
    }

    /// A thread that is ahead of its partition makes the state invalid, even for a stage that does not use threads.
    #[test]
    fn a_topic_that_is_no_state_is_refused_here_too() {
        let thread = StoredThread { applied: Offset(8), ..StoredThread::default() };
        let records = left_by_a_deciding_worker(&thread);
        let mut restore = Restore::<Nothing>::default();
        for (record, offset) in records.iter().zip(0..) {
            restore.take(Offset(offset), Some(record.key.as_bytes()), record.value.as_deref());
        }
        assert_eq!(restore.entries(), 1);
        assert_eq!(
            restore.finish(OWNER, ()).err(),
            Some((None, StateError::Ahead { kind: "thread", applied: Offset(8), next: Offset(8) }))
        );
    }
}
