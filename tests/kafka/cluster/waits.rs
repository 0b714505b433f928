//! How long verdicts were waited for, and what was going on meanwhile.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::path::PathBuf;

use super::clock::{Chronicle, stamp};
use super::events::Event;

/// How many partitions the account of the longest waits has.
const PARTITIONS_SHOWN: usize = 3;
/// How often a line of a log is shown; others like it are counted.
const ALIKE_SHOWN: usize = 2;
const LINES_SHOWN: usize = 60;
const LINE_CHARS_MAX: usize = 260;
/// How much before and after a wait the logs are shown, in microseconds.
const MARGIN_US: u64 = 300_000;

/// The waits of one group, in seconds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Waits {
    pub(crate) longest: f64,
    pub(crate) p999: f64,
    pub(crate) p99: f64,
    pub(crate) median: f64,
    /// Events that waited for longer than two seconds.
    pub(crate) over_two_seconds: usize,
}

impl Waits {
    /// Sums up waits in microseconds.
    pub(crate) fn of(mut waits: Vec<u64>) -> Self {
        waits.sort_unstable();
        let at = |share: f64| waits.get(((waits.len() as f64 * share) as usize).min(waits.len().saturating_sub(1))).copied();
        let seconds = |share| at(share).unwrap_or_default() as f64 / 1e6;
        let over_two_seconds = waits.iter().filter(|wait| **wait > 2_000_000).count();
        Self { longest: seconds(1.0), p999: seconds(0.999), p99: seconds(0.99), median: seconds(0.5), over_two_seconds }
    }
}

/// Returns the waits of the gate: from the acknowledgement to the verdict that a client sees, and to the broker's having it.
pub(crate) fn of_gate(events: &[Event]) -> (Waits, Waits) {
    let appended = |event: &Event| event.waited_us().map(|_| (event.appended_ms as u64 * 1_000).saturating_sub(event.acknowledged_us));
    (Waits::of(events.iter().filter_map(Event::waited_us).collect()), Waits::of(events.iter().filter_map(appended).collect()))
}

/// Returns the waits of the producer of events for the brokers, which whoever publishes verdicts has too.
pub(crate) fn of_sender(events: &[Event]) -> Waits {
    Waits::of(events.iter().filter_map(Event::unacknowledged_us).collect())
}

/// Returns the waits of the plain group, and how many acknowledged events it has never read.
pub(crate) fn of_plain(events: &[Event], first_reads: &[u64]) -> (Waits, usize) {
    let acknowledged = || events.iter().zip(first_reads).filter(|(event, _)| event.acknowledged_us > 0);
    let waits = acknowledged().filter(|(_, read)| **read > 0).map(|(event, read)| read.saturating_sub(event.acknowledged_us));
    (Waits::of(waits.collect()), acknowledged().filter(|(_, read)| **read == 0).count())
}

/// Returns an account of the longest waits: partition, thread, from when to when there was no verdict, and what was done and logged then.
pub(crate) fn account(events: &[Event], first_reads: &[u64], chronicle: &Chronicle, logs: &[PathBuf]) -> String {
    let mut longest: BTreeMap<i32, (u64, usize)> = BTreeMap::new();
    for (number, event) in events.iter().enumerate() {
        if let Some(wait) = event.waited_us() {
            let entry = longest.entry(event.partition).or_default();
            *entry = (*entry).max((wait, number));
        }
    }
    let mut longest: Vec<_> = longest.into_iter().map(|(partition, (wait, number))| (wait, partition, number)).collect();
    longest.sort_unstable_by(|a, b| b.cmp(a));
    let mut out = String::from("longest wait of each partition (s):");
    for (wait, partition, _) in &longest {
        // Writing to memory does not fail.
        let _written = write!(out, " {partition}: {:.1},", *wait as f64 / 1e6);
    }
    let plain = plain_by_partition(events, first_reads);
    out.push('\n');
    for (wait, partition, number) in longest.into_iter().take(PARTITIONS_SHOWN) {
        one(&mut out, events, (wait, partition, number), plain.get(&partition).copied().unwrap_or_default(), chronicle, logs);
    }
    out
}

fn plain_by_partition(events: &[Event], first_reads: &[u64]) -> BTreeMap<i32, u64> {
    let mut longest = BTreeMap::new();
    for (event, read) in events.iter().zip(first_reads).filter(|(event, read)| event.acknowledged_us > 0 && **read > 0) {
        let entry: &mut u64 = longest.entry(event.partition).or_default();
        *entry = (*entry).max(read.saturating_sub(event.acknowledged_us));
    }
    longest
}

fn one(out: &mut String, events: &[Event], longest: (u64, i32, usize), plain: u64, chronicle: &Chronicle, logs: &[PathBuf]) {
    let (wait, partition, number) = longest;
    let event = &events[number];
    let of_partition = || events.iter().filter(|other| other.partition == partition && other.seen_us > 0);
    // The last verdict of the partition before the silence in which this event waited.
    let before = of_partition().map(|other| other.seen_us).filter(|seen| *seen < event.seen_us);
    let silent_from = before.filter(|seen| *seen <= event.acknowledged_us + wait / 4).max().unwrap_or(event.acknowledged_us);
    let behind = of_partition().filter(|other| other.acknowledged_us > silent_from && other.acknowledged_us < event.seen_us).count();
    let appended = (event.appended_ms as u64 * 1_000).saturating_sub(event.acknowledged_us);
    let _written = write!(
        out,
        "\n--- partition {partition}: {:.2} s (appended after {:.2} s; plain group at most {:.2} s)\n\
         event {number} of {}, offset {}: acknowledged {}, verdict seen {}\n\
         no verdict from {} to {}; {behind} verdicts of the partition came for events of that time\n",
        wait as f64 / 1e6,
        appended as f64 / 1e6,
        plain as f64 / 1e6,
        event.thread,
        event.offset,
        stamp(event.acknowledged_us),
        stamp(event.seen_us),
        stamp(silent_from),
        stamp(event.seen_us),
    );
    let (from, to) = (silent_from.min(event.acknowledged_us).saturating_sub(MARGIN_US), event.seen_us + MARGIN_US);
    for line in excerpt(partition, from, to, chronicle, logs) {
        let _written = writeln!(out, "{line}");
    }
}

/// Returns what was done and what the workers logged in that time about this partition or about none, in order.
fn excerpt(partition: i32, from: u64, to: u64, chronicle: &Chronicle, logs: &[PathBuf]) -> Vec<String> {
    let (first, last) = (stamp(from), stamp(to));
    // A fault that still goes on may have begun some seconds before.
    let mut lines: Vec<_> =
        chronicle.between(from.saturating_sub(15_000_000), to).into_iter().map(|line| format!("{line}   <====")).collect();
    let (ours, any) = (format!("partition={partition}"), "partition=");
    for path in logs {
        let name = path.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let text = std::fs::read_to_string(path).unwrap_or_default();
        for line in text.lines().filter(|line| line.get(..first.len()).is_some_and(|at| at >= first.as_str() && at <= last.as_str())) {
            let is_ours = line.split(&ours).nth(1).is_some_and(|rest| !rest.starts_with(|next: char| next.is_ascii_digit()));
            if is_ours || !line.contains(any) {
                let (at, rest) = line.split_at(first.len());
                lines.push(format!("{at} {name}{}", rest.chars().take(LINE_CHARS_MAX).collect::<String>()));
            }
        }
    }
    lines.sort();
    shortened(lines, first.len())
}

/// Shows some of the lines that differ in numbers alone, and counts the others.
fn shortened(lines: Vec<String>, stamp_bytes: usize) -> Vec<String> {
    let mut seen: HashMap<String, usize> = HashMap::new();
    let (mut shown, mut left_out) = (Vec::new(), 0);
    for line in lines {
        let kind: String = line.chars().skip(stamp_bytes).filter(|letter| !letter.is_ascii_digit()).collect();
        let count = seen.entry(kind).or_default();
        *count += 1;
        if *count <= ALIKE_SHOWN && shown.len() < LINES_SHOWN || line.ends_with("<====") {
            shown.push(line);
        } else {
            left_out += 1;
        }
    }
    if left_out > 0 {
        shown.push(format!("({left_out} more lines, most of them like those above)"));
    }
    shown
}
