//! Tests damaged bytes: a value that is cut off, that goes on, or that stands under another kind of key is refused. Random damage is fuzzed.

use tollgate_core::decide::thread::{ThreadStore, read_thread};
use tollgate_core::engine::checkpoint::{KeyedState, Malformed, StateError, StateKey, StateRecord, VERSION, read_partition, read_rekey};

use super::goldens;

/// Reads a record's value as what its key says that it is, and writes it again.
fn written_again(key: &str, value: &[u8]) -> Result<Vec<u8>, StateError> {
    let record = match StateKey::read(Some(key.as_bytes()), ThreadStore::KIND)? {
        StateKey::Entry(id) => StateRecord::entry::<ThreadStore>(id, Some(&read_thread(value)?)),
        StateKey::Partition => StateRecord::partition(&read_partition(value)?),
        StateKey::Rekey => StateRecord::rekey(Some(&read_rekey(value)?)),
    };
    Ok(record.value.unwrap())
}

#[test]
fn what_is_read_is_written_as_the_same_bytes() {
    for (_, key, value) in goldens(VERSION) {
        assert_eq!(written_again(&key, &value), Ok(value), "{key}");
    }
}

#[test]
fn a_value_that_ends_too_early_is_refused_wherever_it_ends() {
    for (_, key, value) in goldens(1) {
        for length in 0..value.len() {
            let read = written_again(&key, &value[..length]);
            assert_eq!(read, Err(StateError::Malformed(Malformed::Truncated)), "{key}, {length} of {} bytes", value.len());
        }
    }
}

#[test]
fn bytes_behind_a_value_are_refused() {
    for (_, key, value) in goldens(1) {
        for behind in [&[0][..], &[VERSION; 3]] {
            let read = written_again(&key, &[value.as_slice(), behind].concat());
            assert_eq!(read, Err(StateError::Malformed(Malformed::Trailing(behind.len()))), "{key}");
        }
    }
}

/// A thread's value is not read as a partition's, nor a partition's as a thread's.
#[test]
fn a_value_under_the_wrong_kind_of_key_is_refused() {
    for (_, key, value) in goldens(1) {
        let other = if key == "partition" { "thread/t" } else { "partition" };
        assert!(matches!(written_again(other, &value), Err(StateError::Malformed(_))), "{key}");
    }
}
