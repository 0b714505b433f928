//! Tests damaged bytes: a reader may refuse them or not, but it does not panic.

use proptest::collection::vec;
use proptest::prelude::*;
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

/// Some flipped bits make another valid value; the rest is refused.
#[test]
fn no_flipped_bit_upsets_the_reader() {
    let (mut refused, mut read) = (0, 0);
    for (_, key, value) in goldens(1) {
        for bit in 0..value.len() * 8 {
            let mut flipped = value.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            match written_again(&key, &flipped) {
                Ok(again) => {
                    assert_eq!(written_again(&key, &again).as_ref(), Ok(&again), "{key}, bit {bit}");
                    read += 1;
                }
                Err(StateError::Malformed(_) | StateError::Newer { .. }) => refused += 1,
                Err(error) => panic!("{key}, bit {bit}: {error}"),
            }
        }
    }
    assert!(refused > 1_000 && read > 1_000, "{refused} were refused and {read} were read");
}

/// Fails unless a value is refused, or read and written as something that is read as the same again.
fn check(key: &str, value: &[u8]) -> Result<(), TestCaseError> {
    match written_again(key, value) {
        Ok(again) => prop_assert_eq!(written_again(key, &again), Ok(again)),
        Err(error) => prop_assert!(matches!(error, StateError::Malformed(_) | StateError::Newer { .. }), "{}", error),
    }
    Ok(())
}

proptest! {
    #[test]
    fn no_bytes_upset_the_reader(version in 0..=VERSION + 1, bytes in vec(any::<u8>(), 0..300)) {
        let value = [&[version], bytes.as_slice()].concat();
        check("thread/t", &value)?;
        check("partition", &value)?;
    }

    #[test]
    fn no_bytes_in_the_middle_of_a_value_upset_the_reader(
        chosen in any::<prop::sample::Index>(),
        (from, to) in any::<(prop::sample::Index, prop::sample::Index)>(),
        bytes in vec(any::<u8>(), 0..20),
    ) {
        let goldens = goldens(1);
        let (_, key, value) = chosen.get(&goldens);
        let (from, to) = (from.index(value.len()), to.index(value.len()));
        let damaged = [&value[..from.min(to)], &bytes, &value[from.max(to)..]].concat();
        check(key, &damaged)?;
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
