//! Reports on runs: what was done, how long verdicts were waited for, and what was found. The table has a row for each fault.

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter, Write as _};
use std::time::Duration;

use tollgate_core::event::record::Departures;

use super::waits::{AllWaits, Waits};

/// The most examples of each kind.
const EXAMPLES_MAX: usize = 3;
/// The most characters of an example; threads and verdicts can be long.
const EXAMPLE_CHARACTERS_MAX: usize = 4_000;

/// What was found wrong, by kind. All of it is collected before the test fails.
#[derive(Default)]
pub(crate) struct Findings(BTreeMap<&'static str, Kind>);

#[derive(Default)]
struct Kind {
    count: u64,
    examples: Vec<String>,
}

impl Findings {
    /// Names a kind that was looked for, so that the report shows that there was none.
    pub(super) fn look_for(&mut self, kinds: &[&'static str]) {
        kinds.iter().for_each(|kind| _ = self.0.entry(kind).or_default());
    }

    pub(super) fn add(&mut self, kind: &'static str, example: impl FnOnce() -> String) {
        let kind = self.0.entry(kind).or_default();
        kind.count += 1;
        if kind.examples.len() < EXAMPLES_MAX {
            kind.examples.push(example().chars().take(EXAMPLE_CHARACTERS_MAX).collect());
        }
    }

    pub(super) fn count(&self) -> u64 {
        self.0.values().map(|kind| kind.count).sum()
    }
}

impl Display for Findings {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (name, kind) in &self.0 {
            writeln!(f, "    {name:<44} {:>9}", kind.count)?;
            for example in &kind.examples {
                writeln!(f, "        {}", example.replace('\n', "\n        "))?;
            }
        }
        Ok(())
    }
}

/// The faults done to the group, and counts of what its workers have logged.
#[derive(Default)]
pub(super) struct FaultCounts {
    pub(super) kills: u64,
    pub(super) kills_while_starting: u64,
    pub(super) freezes: u64,
    pub(super) thaws: u64,
    pub(super) adds: u64,
    pub(super) stops: u64,
    /// Crashes of the one broker.
    pub(super) crashes: u64,
    pub(super) workers: u64,
    /// Counts by the text of the line.
    pub(super) logged: BTreeMap<&'static str, u64>,
    /// How long the group took to catch up, each time.
    pub(super) catch_ups: Vec<Duration>,
    /// How often it had not caught up when the time was over.
    pub(super) catch_ups_in_vain: u64,
}

/// Counts of what the topics hold.
#[derive(Default)]
pub(super) struct Totals {
    pub(super) events: usize,
    /// Events that the brokers hold again, because the producer sent them again.
    pub(super) stored_again: usize,
    /// Expected verdicts by action.
    pub(super) verdicts: BTreeMap<&'static str, u64>,
    /// Copies beyond the first.
    pub(super) duplicates: u64,
    pub(super) dead_letters: u64,
    pub(super) duplicate_dead_letters: u64,
    pub(super) threads: u64,
    pub(super) state_records: u64,
    /// Threads that the folds dropped.
    pub(super) departures: Departures,
}

/// The whole report of a run.
pub(super) struct Report {
    pub(super) name: String,
    pub(super) seed: u64,
    pub(super) duration: Duration,
    pub(super) fault_counts: FaultCounts,
    pub(super) totals: Totals,
    pub(super) waits: AllWaits,
    pub(super) findings: Findings,
}

impl Display for Report {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { name, seed, duration, fault_counts, totals, waits, findings } = self;
        writeln!(f, "chaos: {name}, seed {seed}, {:.1} s", duration.as_secs_f64())?;
        writeln!(
            f,
            "  kills           {} ({} of workers that were still starting)",
            fault_counts.kills, fault_counts.kills_while_starting
        )?;
        writeln!(f, "  freezes, thaws  {}, {}", fault_counts.freezes, fault_counts.thaws)?;
        writeln!(f, "  adds, stops     {}, {}", fault_counts.adds, fault_counts.stops)?;
        writeln!(f, "  broker crashes  {}", fault_counts.crashes)?;
        let logged = fault_counts.logged.iter().map(|(what, count)| format!(", {what} {count}")).collect::<String>();
        writeln!(f, "  workers         {}{logged}", fault_counts.workers)?;
        let (slowest, sum) =
            (fault_counts.catch_ups.iter().max().copied().unwrap_or_default(), fault_counts.catch_ups.iter().sum::<Duration>());
        let mean = sum.checked_div(u32::try_from(fault_counts.catch_ups.len()).unwrap_or(1)).unwrap_or_default();
        write!(f, "  catching up     {} times, mean {:.1} s, ", fault_counts.catch_ups.len(), mean.as_secs_f64())?;
        writeln!(f, "longest {:.1} s, not in time {}", slowest.as_secs_f64(), fault_counts.catch_ups_in_vain)?;
        writeln!(f, "  events          {}, stored again {}", totals.events, totals.stored_again)?;
        let actions = totals.verdicts.iter().map(|(action, count)| format!(", {action} {count}")).collect::<String>();
        writeln!(f, "  verdicts        {}{actions}, published again {}", totals.verdicts.values().sum::<u64>(), totals.duplicates)?;
        writeln!(f, "  dead letters    {}, published again {}", totals.dead_letters, totals.duplicate_dead_letters)?;
        let Departures { expired, evicted, refused } = totals.departures;
        writeln!(f, "  threads         {expired} expired, {evicted} evicted, {refused} times refused")?;
        writeln!(f, "  state           {} threads of {} records", totals.threads, totals.state_records)?;
        let AllWaits { gate, appended, plain, sender, account } = waits;
        for (what, waits) in [("gate", gate), ("until appended", appended), ("plain group", plain), ("sender", sender)] {
            let Waits { longest, p99, median, .. } = waits;
            writeln!(f, "  waits, {what:<16} median {median:.3} s, p99 {p99:.3} s, longest {longest:.1} s")?;
        }
        write!(f, "{account}")?;
        writeln!(f, "  findings        {}", findings.count())?;
        write!(f, "{findings}")
    }
}

/// Returns the runs as a table in Markdown: of several runs of a fault, the longest waits.
pub(super) fn table(reports: &[Report]) -> String {
    let mut out = String::from(
        "| fault | longest wait, gate (s) | until appended | plain group (s) | ratio | sender (s) | > 2 s, gate | > 2 s, plain | runs | events | findings |\n\
         |---|---|---|---|---|---|---|---|---|---|---|\n",
    );
    for runs in reports.chunk_by(|one, next| one.name == next.name) {
        let longest = |of: fn(&AllWaits) -> Waits| runs.iter().map(|run| of(&run.waits).longest).fold(0.0, f64::max);
        let over_two_seconds = |of: fn(&AllWaits) -> Waits| runs.iter().map(|run| of(&run.waits).over_two_seconds).sum::<usize>();
        let (gate, plain) = (longest(|waits| waits.gate), longest(|waits| waits.plain));
        // Writing to memory does not fail.
        let _written = writeln!(
            out,
            "| {} | {gate:.1} | {:.1} | {plain:.1} | {:.2} | {:.1} | {} | {} | {} | {} | {} |",
            runs[0].name,
            longest(|waits| waits.appended),
            gate / plain.max(0.001),
            longest(|waits| waits.sender),
            over_two_seconds(|waits| waits.gate),
            over_two_seconds(|waits| waits.plain),
            runs.len(),
            runs.iter().map(|run| run.totals.events).sum::<usize>(),
            runs.iter().map(|run| run.findings.count()).sum::<u64>(),
        );
    }
    out
}
