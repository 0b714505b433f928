//! Reading the section `limits`: sizes and times that decisions depend on.

use crate::decide::policy::LimitSettings;

use crate::settings::Section;

/// The least that a thread may remember whatever is configured, in bytes: a few calls and counters.
const THREAD_BYTES_MIN: u32 = 4 * 1024;
/// The smallest limit of a verdict whatever is configured, in bytes: ids and names of full length, several times.
const VERDICT_BYTES_MIN: u32 = 16 * 1024;

pub(super) fn read(section: &Section<'_>) -> LimitSettings {
    let at_least = |key: &'static str, least: u32| section.between(key, least, u32::MAX) as usize;
    LimitSettings {
        event_bytes_max: section.positive("event_bytes_max") as usize,
        verdict_bytes_max: at_least("verdict_bytes_max", VERDICT_BYTES_MIN),
        threads_per_partition_max: section.positive("threads_per_partition_max") as usize,
        tenant_stops_percent_max: section.between("tenant_stops_percent_max", 1, 100),
        thread_bytes_max: at_least("thread_bytes_max", THREAD_BYTES_MIN),
        thread_queue_max: section.positive("thread_queue_max") as usize,
        thread_idle_seconds_max: section.positive("thread_idle_seconds_max"),
        turn_idle_seconds_max: section.positive("turn_idle_seconds_max"),
    }
}
