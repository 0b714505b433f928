//! Tests records that are not the state of a partition, and the errors that they lead to.

use tollgate_core::decide::thread::{ThreadStore, read_thread};
use tollgate_core::engine::checkpoint::{
    KeyedState, Malformed, PartitionState, Restore, Restored, StateError, StateKey, StateRecord, VERSION,
};
use tollgate_core::event::record::Offset;
use tollgate_fixtures::checks::check_each;

use super::script::{OWNER, policy};
use super::{golden, values};

type Taken<'t> = (Option<&'t [u8]>, Option<&'t [u8]>);

const NEWER: u8 = VERSION + 1;

/// Restores from these records, which stand from offset 10 on.
fn restore(records: &[Taken<'_>]) -> Result<Option<Restored<ThreadStore>>, (Option<Offset>, StateError)> {
    let mut restore = Restore::default();
    records.iter().zip(10..).for_each(|((key, value), offset)| restore.take(Offset(offset), *key, *value));
    restore.finish(OWNER, policy().store_limits())
}

fn refusal(records: &[Taken<'_>]) -> (Option<Offset>, StateError) {
    restore(records).expect_err("it is refused")
}

/// Returns a thread's value, and the offset that it is as of.
fn thread() -> (Vec<u8>, Offset) {
    let golden = golden(VERSION);
    let (_, value) = values(&golden).find(|(key, _)| *key == "thread/started").unwrap();
    (value.to_vec(), read_thread(value).unwrap().applied)
}

fn partition(owner: &str, next: Offset) -> Vec<u8> {
    let state = PartitionState { owner: owner.to_owned(), next, ..PartitionState::default() };
    StateRecord::partition(&state).value.unwrap()
}

const PARTITION_KEY: Option<&[u8]> = Some(b"partition");
const THREAD_KEY: Option<&[u8]> = Some(b"thread/t");

#[test]
fn a_topic_without_records_is_no_state() {
    assert!(restore(&[]).unwrap().is_none());
    assert!(restore(&[(THREAD_KEY, None), (PARTITION_KEY, None)]).unwrap().is_none());
}

#[test]
fn a_newer_version_is_refused_and_who_finds_it_is_told_what_to_do() {
    let (value, _) = thread();
    for version in NEWER..=u8::MAX {
        let newer = [&[version], &value[1..]].concat();
        assert_eq!(read_thread(&newer), Err(StateError::Newer { found: version }));
        let (at, error) = refusal(&[(PARTITION_KEY, Some(&partition(OWNER, Offset(1)))), (THREAD_KEY, Some(&newer))]);
        assert_eq!((at, &error), (Some(Offset(11)), &StateError::Newer { found: version }));
        let message = error.to_string();
        assert!(message.contains(&format!("version {version}")) && message.contains("run the newer tollgate"), "{message}");
    }
}

#[test]
fn version_0_is_nobodys() {
    let (value, _) = thread();
    let read = read_thread(&[&[0], &value[1..]].concat());
    assert_eq!(read, Err(StateError::Malformed(Malformed::Invalid("the version"))));
}

#[test]
fn a_key_that_no_version_has_used_is_refused() {
    let foreign: [Option<&[u8]>; 9] = [
        None,
        Some(b""),
        Some(b"t"),
        Some(b"thread"),
        Some(b"threads/t"),
        Some(b"Partition"),
        Some(b"partition/"),
        Some(b"thread/\xff"),
        Some(b"\xff\xfe"),
    ];
    let (value, _) = thread();
    for key in foreign {
        let expected = StateError::Key { bytes: key.unwrap_or_default().len(), kind: ThreadStore::KIND };
        assert_eq!(StateKey::read(key, ThreadStore::KIND), Err(expected.clone()), "{key:?}");
        assert_eq!(refusal(&[(key, Some(&value))]), (Some(Offset(10)), expected), "{key:?}");
    }
    assert_eq!(StateKey::read(Some(b"thread/a/b"), ThreadStore::KIND), Ok(StateKey::Entry("a/b")));
    assert_eq!(StateKey::read(Some(b"thread/partition"), ThreadStore::KIND), Ok(StateKey::Entry("partition")));
    assert_eq!(StateKey::read(PARTITION_KEY, ThreadStore::KIND), Ok(StateKey::Partition));
}

#[test]
fn threads_without_a_partition_are_refused() {
    let (value, applied) = thread();
    let partition = partition(OWNER, applied.next());
    let expected = (None, StateError::NoPartition { entries: 2, kind: "thread" });
    let threads: [Taken<'_>; 2] = [(THREAD_KEY, Some(&value)), (Some(b"thread/u"), Some(&value))];
    assert_eq!(refusal(&threads), expected);
    assert_eq!(refusal(&[threads[0], (PARTITION_KEY, Some(&partition)), threads[1], (PARTITION_KEY, None)]), expected, "it is gone");
}

#[test]
fn the_state_of_another_group_is_refused() {
    let (value, applied) = thread();
    let foreign = partition("tollgate-golden-2", applied.next());
    let (at, error) = refusal(&[(PARTITION_KEY, Some(&foreign)), (THREAD_KEY, Some(&value))]);
    assert_eq!((at, &error), (None, &StateError::Foreign { found: "tollgate-golden-2".to_owned(), wanted: OWNER.to_owned() }));
}

#[test]
fn a_thread_ahead_of_its_partition_is_refused() {
    let (value, applied) = thread();
    let restore_at = |next: Offset| restore(&[(THREAD_KEY, Some(&value)), (PARTITION_KEY, Some(&partition(OWNER, next)))]);
    for next in [applied, Offset(0)] {
        assert_eq!(restore_at(next).err(), Some((None, StateError::Ahead { kind: "thread", applied, next })));
    }
    assert_eq!(restore_at(applied.next()).unwrap().unwrap().next, applied.next());
}

/// The topic may hold a record that was written wrongly and then put right: the last record of a key counts.
#[test]
fn a_record_that_cannot_be_read_is_of_no_account_once_another_stands_in_its_place() {
    let (value, applied) = thread();
    let partition = partition(OWNER, applied.next());
    let broken: &[u8] = &value[..5];
    let newer: &[u8] = &[NEWER];
    let rest: Taken<'_> = (PARTITION_KEY, Some(&partition));
    let threads = |records: &[Taken<'_>]| restore(records).unwrap().unwrap().state.len();
    assert_eq!(threads(&[(THREAD_KEY, Some(broken)), rest, (THREAD_KEY, Some(&value))]), 1);
    assert_eq!(threads(&[(THREAD_KEY, Some(newer)), rest, (THREAD_KEY, None)]), 0);
    assert_eq!(threads(&[(PARTITION_KEY, Some(b"")), rest]), 0);
    // A record with a foreign key can only be deleted.
    assert_eq!(threads(&[rest, (Some(b"foreign"), Some(broken)), (Some(b"foreign"), None)]), 0);
    assert_eq!(threads(&[rest, (Some(b"thread/\xff"), Some(broken)), (Some(b"thread/\xff"), None)]), 0);
    // Neither another record nor an earlier one of the same key puts it right.
    let (at, error) = refusal(&[(THREAD_KEY, Some(&value)), rest, (THREAD_KEY, Some(broken)), (Some(b"thread/u"), Some(&value))]);
    assert_eq!((at, error), (Some(Offset(12)), StateError::Malformed(Malformed::Truncated)));
}

#[test]
fn the_first_record_that_cannot_be_read_is_the_one_that_is_told_of() {
    let records: [Taken<'_>; 3] = [(Some(b"thread/z"), Some(b"")), (Some(b"thread/a"), Some(&[NEWER])), (Some(b"x"), Some(b"y"))];
    assert_eq!(refusal(&records), (Some(Offset(10)), StateError::Malformed(Malformed::Truncated)));
    assert_eq!(refusal(&records[1..]), (Some(Offset(10)), StateError::Newer { found: NEWER }));
}

/// Every message says what is wrong and what it means: its reader has a worker that does not start, and no other hint.
#[test]
fn every_message_says_what_is_wrong_and_what_it_means() {
    let by_other = "something other than tollgate has written it";
    let cases: Vec<(StateError, Vec<&str>)> = vec![
        (StateError::Newer { found: 9 }, vec!["version 9", "this tollgate reads up to", "run the newer tollgate"]),
        (Malformed::Truncated.into(), vec!["cannot be read (it ends too early)", by_other]),
        (Malformed::Trailing(3).into(), vec!["cannot be read (3 bytes follow its end)", by_other]),
        (Malformed::Invalid("a flag").into(), vec!["cannot be read (a flag has a value that it cannot have)", by_other]),
        (StateError::Key { bytes: 4, kind: "thread" }, vec!["a key of 4 bytes", "neither `partition` nor `thread/<id>`", by_other]),
        (StateError::NoPartition { entries: 2, kind: "thread" }, vec!["threads: 2", "no record of the partition"]),
        (
            StateError::Ahead { kind: "thread", applied: Offset(8), next: Offset(5) },
            vec!["as of offset 8", "(5)", "not what tollgate left there"],
        ),
        (StateError::Foreign { found: "a".to_owned(), wanted: "b".to_owned() }, vec!["that of a", "this is b", "kafka.topics.state"]),
    ];
    check_each(
        cases,
        |(error, _)| error.to_string(),
        |(error, parts)| {
            let message = error.to_string();
            assert!(parts.iter().all(|part| message.contains(part)), "{message} does not say all of {parts:?}");
        },
    );
}
