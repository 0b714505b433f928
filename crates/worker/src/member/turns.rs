//! How long costly events of each partition are decided in one round, so that they do not hold up the other partitions.

use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;
use tollgate_core::event::record::Partition;

/// How long costly events of a partition are decided in one round. An event is decided as a whole, so that the last event may take longer.
const TURN: Duration = Duration::from_millis(100);
/// What an event may take, whatever its size, before it is costly: a hundred times what a small event takes.
const ORDINARY: Duration = Duration::from_millis(1);
/// What each byte of an event may take besides: ten times what it takes to read and to hash it.
const ORDINARY_PER_BYTE: Duration = Duration::from_nanos(50);

/// The time that the costly events of each partition have taken in one round.
#[derive(Debug, Default)]
pub(super) struct Turns {
    /// When the last record was decided, or the first record came.
    last: Option<Instant>,
    costly: FxHashMap<Partition, Duration>,
}

impl Turns {
    /// Notes that a record has come. Only the first record of a round is waited for.
    pub(super) fn begin(&mut self) {
        self.last.get_or_insert_with(Instant::now);
    }

    /// Notes that a record of so many bytes is decided, and returns whether its partition has had its turn.
    pub(super) fn is_over(&mut self, partition: Partition, bytes: usize) -> bool {
        let now = Instant::now();
        let time = now.saturating_duration_since(self.last.replace(now).unwrap_or(now));
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        if time <= ORDINARY + ORDINARY_PER_BYTE * bytes {
            return false;
        }
        let costly = self.costly.entry(partition).or_default();
        *costly += time;
        *costly >= TURN
    }
}
