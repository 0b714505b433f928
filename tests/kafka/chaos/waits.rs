//! How long verdicts were waited for, and what was going on meanwhile.

use super::clock::{Chronicle, stamp};
use super::load::Event;

/// How many partitions the account of the longest waits has.
const PARTITIONS_SHOWN: usize = 3;
/// A fault that still goes on may have begun some seconds before, in microseconds.
const BEFORE_US: u64 = 15_000_000;
/// How much of what was done is shown for each of them: the last lines.
const DONE_SHOWN: usize = 12;

/// The waits of one group, in seconds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Waits {
    pub(super) longest: f64,
    pub(super) p99: f64,
    pub(super) median: f64,
    /// Events that waited for longer than two seconds.
    pub(super) over_two_seconds: usize,
}

/// The waits of a run. Each begins when the producer of an event heard that the event is written.
#[derive(Debug, Default)]
pub(super) struct AllWaits {
    /// Until a client saw the verdict.
    pub(super) gate: Waits,
    /// Until the broker had the verdict: what remains is the reader's own wait.
    pub(super) appended: Waits,
    /// Until the plain group had read the event.
    pub(super) plain: Waits,
    /// From an event's being sent to its acknowledgement: what a publication to the same brokers takes.
    pub(super) sender: Waits,
    /// The longest waits, and what was done meanwhile.
    pub(super) account: String,
}

impl Waits {
    /// Sums up waits in microseconds.
    fn of(waits: impl Iterator<Item = u64>) -> Self {
        let mut waits: Vec<u64> = waits.collect();
        waits.sort_unstable();
        let at = |share: f64| waits.get(((waits.len() as f64 * share) as usize).min(waits.len().saturating_sub(1))).copied();
        let seconds = |share| at(share).unwrap_or_default() as f64 / 1e6;
        let over_two_seconds = waits.iter().filter(|wait| **wait > 2_000_000).count();
        Self { longest: seconds(1.0), p99: seconds(0.99), median: seconds(0.5), over_two_seconds }
    }
}

impl AllWaits {
    /// Sums up the waits of events. `first_reads` are the times at which the plain group read them, by their number.
    pub(super) fn of(events: &[Event], first_reads: &[u64], chronicle: &Chronicle) -> Self {
        let acknowledged = || events.iter().filter(|event| event.acknowledged_us > 0);
        let answered = || acknowledged().filter(|event| event.seen_us > 0);
        let read = events.iter().zip(first_reads).filter(|(event, read)| event.acknowledged_us > 0 && **read > 0);
        Self {
            gate: Waits::of(answered().map(waited_us)),
            appended: Waits::of(answered().map(|event| event.appended_us.saturating_sub(event.acknowledged_us))),
            plain: Waits::of(read.map(|(event, read)| read.saturating_sub(event.acknowledged_us))),
            sender: Waits::of(acknowledged().map(|event| event.acknowledged_us.saturating_sub(event.sent_us))),
            account: account(answered(), chronicle),
        }
    }
}

fn waited_us(event: &Event) -> u64 {
    event.seen_us.saturating_sub(event.acknowledged_us)
}

/// Returns an account of the longest waits: partition, from when to when there was no verdict, and what was done then. The workers' logs have
/// the same times.
fn account<'e>(answered: impl Iterator<Item = &'e Event>, chronicle: &Chronicle) -> String {
    let mut longest: Vec<&Event> = answered.collect();
    longest.sort_unstable_by_key(|event| std::cmp::Reverse(waited_us(event)));
    let mut shown: Vec<i32> = Vec::new();
    let mut out = String::new();
    for event in longest {
        if shown.len() < PARTITIONS_SHOWN && !shown.contains(&event.partition) {
            shown.push(event.partition);
            let (from, to) = (event.acknowledged_us, event.seen_us);
            let seconds = waited_us(event) as f64 / 1e6;
            out.push_str(&format!("  partition {}: {seconds:.2} s, from {} to {}\n", event.partition, stamp(from), stamp(to)));
            let done = chronicle.between(from.saturating_sub(BEFORE_US), to);
            out.extend(done.iter().skip(done.len().saturating_sub(DONE_SHOWN)).map(|line| format!("      {line}\n")));
        }
    }
    out
}
