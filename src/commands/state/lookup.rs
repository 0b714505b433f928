//! Looks one thread up among the records of its state partition.

use anyhow::anyhow;

use tollgate_core::decide::thread::{StoredThread, ThreadStore, ThreadView};
use tollgate_core::engine::checkpoint::{KeyedState, Latest, PartitionState, StateError, StateKey};
use tollgate_core::event::record::{Offset, Partition};

use tollgate_operations::{Topic, Topics};

/// A lookup of one thread. It is fed every record of a state partition, from its beginning, and ignores other threads.
#[derive(Debug)]
struct Lookup<'a> {
    thread_id: &'a str,
    latest: Latest<(StoredThread, usize)>,
}

/// What is known of a thread.
#[derive(Debug)]
pub(super) struct ThreadReport<'a> {
    thread_id: &'a str,
    partition: Partition,
    /// The thread's state, and the size of its record in bytes.
    thread: Option<(StoredThread, usize)>,
    /// The partition's own record, which says as of which offset the state is; `None` if it was never written.
    state: Option<PartitionState>,
}

/// Looks a thread up in a partition of the state topic.
pub(super) fn look_up<'a>(
    topics: &Topics<'_>,
    topic: Topic<'_>,
    partition: Partition,
    thread_id: &'a str,
) -> anyhow::Result<ThreadReport<'a>> {
    let mut lookup = Lookup { thread_id, latest: Latest::default() };
    topics.read(topic, partition, |offset, key, value| lookup.take(offset, key, value))?;
    let known = lookup.finish(partition);
    known.map_err(|(offset, error)| anyhow!("partition {partition} of {}, record at offset {offset}: {error}", topic.name))
}

impl<'a> Lookup<'a> {
    fn take(&mut self, offset: Offset, key: Option<&[u8]>, value: Option<&[u8]>) {
        let concerns_it = match StateKey::read(key, ThreadStore::KIND) {
            Ok(StateKey::Entry(id)) => id == self.thread_id,
            Ok(StateKey::Partition) => true,
            _ => false,
        };
        if concerns_it {
            self.latest.take::<ThreadStore>(offset, key, value, |_, bytes, stored| (stored, bytes));
        }
    }

    fn finish(mut self, partition: Partition) -> Result<ThreadReport<'a>, (Offset, StateError)> {
        if let Some(fault) = self.latest.take_unreadable().into_iter().next() {
            return Err(fault);
        }
        let (thread, state) = (self.latest.entries.swap_remove(self.thread_id), self.latest.partition);
        Ok(ThreadReport { thread_id: self.thread_id, partition, thread, state })
    }
}

impl ThreadReport<'_> {
    /// Returns the owner of the state, if there is any state.
    pub(super) fn owner(&self) -> Option<&str> {
        self.state.as_ref().map(|state| state.owner.as_str())
    }

    /// Returns the thread for people to read, or `None` if nothing is known of it.
    pub(super) fn view(&self) -> anyhow::Result<Option<ThreadView<'_>>> {
        match (&self.thread, &self.state) {
            (None, _) => Ok(None),
            (Some((stored, bytes)), Some(state)) => Ok(Some(ThreadView::new(self.thread_id, self.partition, *bytes, stored, state))),
            (Some(_), None) => {
                Err(anyhow!("partition {}: {}", self.partition, StateError::NoPartition { entries: 1, kind: ThreadStore::KIND }))
            }
        }
    }

    /// Returns what is known as a sentence; `turn_id` is the turn that a reset is meant for.
    pub(super) fn summary(&self, turn_id: Option<&str>) -> String {
        let Some((StoredThread { thread, applied, .. }, _)) = &self.thread else { return self.absence() };
        let turn = &thread.turn;
        let name = turn.id.as_ref().map_or_else(|| "a turn without an id".to_owned(), |id| format!("turn {id}"));
        let ended = if turn.has_ended { ", which has ended" } else { "" };
        let stop = if thread.holds_a_stop() { "it holds a stop" } else { "it holds no stop" };
        let calls = turn.memory().calls.len();
        let other = match turn_id {
            Some(wanted) if !turn.is_named(wanted) => "; a reset of another turn changes nothing",
            _ => "",
        };
        format!("thread {} as of offset {applied}: {name}{ended}, {calls} calls remembered, {stop}{other}", self.thread_id)
    }

    /// Returns a sentence that nothing is known of the thread, and where it was looked for.
    pub(super) fn absence(&self) -> String {
        let Self { thread_id, partition, .. } = self;
        let as_of = match &self.state {
            Some(state) => format!("whose state is as of offset {}", state.next),
            None => "of which nothing was ever written down".to_owned(),
        };
        format!("nothing is known of thread {thread_id} in partition {partition}, {as_of}; a thread whose turn has ended leaves nothing")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tollgate_core::decide::thread::Thread;
    use tollgate_core::engine::checkpoint::StateRecord;

    fn lookup() -> Lookup<'static> {
        Lookup { thread_id: "t", latest: Latest::default() }
    }

    fn feed(lookup: &mut Lookup<'_>, offset: i64, record: &StateRecord) {
        lookup.take(Offset(offset), Some(record.key.as_bytes()), record.value.as_deref());
    }

    fn partition_record() -> StateRecord {
        StateRecord::partition(&PartitionState { owner: "g".to_owned(), next: Offset(9), ..PartitionState::default() })
    }

    fn thread_record(id: &str, turn_id: &str, applied: i64) -> StateRecord {
        let mut thread = Thread::default();
        thread.turn.id = Some(turn_id.into());
        StateRecord::entry::<ThreadStore>(id, Some(&StoredThread { thread, applied: Offset(applied), ..StoredThread::default() }))
    }

    #[test]
    fn the_last_record_of_the_thread_counts() {
        let mut lookup = lookup();
        feed(&mut lookup, 0, &thread_record("t", "turn-1", 3));
        feed(&mut lookup, 1, &thread_record("t2", "turn-1", 4));
        feed(&mut lookup, 2, &thread_record("t", "turn-2", 5));
        feed(&mut lookup, 3, &partition_record());
        // Another thread's record that cannot be read does not matter here.
        lookup.take(Offset(4), Some(b"thread/t3"), Some(b"\xff"));
        lookup.take(Offset(5), Some(b"nonsense"), Some(b"\xff"));
        let known = lookup.finish(Partition(1)).unwrap();
        let shown = serde_json::to_value(known.view().unwrap()).unwrap();
        assert_eq!((&shown["applied"], &shown["turn"]["id"], &shown["next"]), (&5.into(), &"turn-2".into(), &9.into()));
        assert_eq!(shown["bytes"].as_u64(), Some(thread_record("t", "turn-2", 5).bytes() as u64));
        assert_eq!(known.summary(None), "thread t as of offset 5: turn turn-2, 0 calls remembered, it holds no stop");
        assert!(known.summary(Some("turn-1")).ends_with("; a reset of another turn changes nothing"));
        assert!(known.summary(Some("turn-2")).ends_with("it holds no stop"));
    }

    #[test]
    fn a_thread_that_is_gone_is_not_known() {
        let mut lookup = lookup();
        feed(&mut lookup, 0, &thread_record("t", "turn-1", 3));
        feed(&mut lookup, 1, &StateRecord::entry::<ThreadStore>("t", None));
        feed(&mut lookup, 2, &partition_record());
        let known = lookup.finish(Partition(1)).unwrap();
        assert!(known.view().unwrap().is_none());
        assert!(known.absence().contains("thread t in partition 1, whose state is as of offset 9"), "{}", known.absence());
    }

    #[test]
    fn a_record_that_cannot_be_read_is_named_unless_it_is_written_over() {
        let mut lookup = self::lookup();
        lookup.take(Offset(7), Some(b"thread/t"), Some(b"\xff"));
        feed(&mut lookup, 8, &partition_record());
        assert_eq!(lookup.finish(Partition(0)).unwrap_err(), (Offset(7), StateError::Newer { found: 255 }));

        let mut lookup = self::lookup();
        lookup.take(Offset(7), Some(b"thread/t"), Some(b"\xff"));
        feed(&mut lookup, 8, &thread_record("t", "turn-1", 3));
        let known = lookup.finish(Partition(0)).unwrap();
        assert!(known.view().unwrap_err().to_string().contains("no record of the partition"));
    }
}
