//! Reports on a run of the chaos test: what was done, what it took, and what was found.

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};
use std::time::Duration;

use tollgate_core::event::record::Departures;

/// The most examples of each kind.
const EXAMPLES_MAX: usize = 3;
/// The most characters of an example; threads and verdicts can be long.
const EXAMPLE_CHARACTERS_MAX: usize = 4_000;

/// What was found wrong, by kind. All of it is collected before the test fails.
#[derive(Default)]
pub(super) struct Findings(BTreeMap<&'static str, Kind>);

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
pub(super) struct Deeds {
    pub(super) kills: u64,
    pub(super) kills_while_starting: u64,
    pub(super) freezes: u64,
    pub(super) thaws: u64,
    pub(super) adds: u64,
    pub(super) removes: u64,
    /// From each crash of the broker until it answered again, in milliseconds since 1970.
    pub(super) outages_ms: Vec<(i64, i64)>,
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
    pub(super) events: u64,
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
    /// When events were sent and the first copies of their verdicts published, in milliseconds since 1970.
    pub(super) answered_ms: Vec<(i64, i64)>,
}

/// The whole report.
pub(super) struct Report {
    pub(super) seed: u64,
    pub(super) duration: Duration,
    pub(super) sent: u64,
    pub(super) deeds: Deeds,
    pub(super) totals: Totals,
    pub(super) findings: Findings,
}

impl Display for Report {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { seed, duration, sent, deeds, totals, findings } = self;
        writeln!(f, "chaos: seed {seed}, {:.1} s", duration.as_secs_f64())?;
        writeln!(f, "  kills           {} ({} of workers that were still starting)", deeds.kills, deeds.kills_while_starting)?;
        writeln!(f, "  freezes, thaws  {}, {}", deeds.freezes, deeds.thaws)?;
        writeln!(f, "  adds, removes   {}, {}", deeds.adds, deeds.removes)?;
        let outage = deeds.outages_ms.iter().map(|(from, to)| to - from).max().unwrap_or_default();
        writeln!(f, "  broker restarts {}, longest outage {outage} ms", deeds.outages_ms.len())?;
        let logged = deeds.logged.iter().map(|(what, count)| format!(", {what} {count}")).collect::<String>();
        writeln!(f, "  workers         {}{logged}", deeds.workers)?;
        let (slowest, sum) = (deeds.catch_ups.iter().max().copied().unwrap_or_default(), deeds.catch_ups.iter().sum::<Duration>());
        let mean = sum.checked_div(u32::try_from(deeds.catch_ups.len()).unwrap_or(1)).unwrap_or_default();
        write!(f, "  catching up     {} times, mean {:.1} s, ", deeds.catch_ups.len(), mean.as_secs_f64())?;
        writeln!(f, "longest {:.1} s, not in time {}", slowest.as_secs_f64(), deeds.catch_ups_in_vain)?;
        writeln!(f, "  events          {} sent, {} in the topic", sent, totals.events)?;
        let actions = totals.verdicts.iter().map(|(action, count)| format!(", {action} {count}")).collect::<String>();
        writeln!(f, "  verdicts        {}{actions}, published again {}", totals.verdicts.values().sum::<u64>(), totals.duplicates)?;
        writeln!(f, "  dead letters    {}, published again {}", totals.dead_letters, totals.duplicate_dead_letters)?;
        let Departures { expired, evicted, refused } = totals.departures;
        writeln!(f, "  threads         {expired} expired, {evicted} evicted, {refused} times refused")?;
        writeln!(f, "  state           {} threads of {} records", totals.threads, totals.state_records)?;
        let is_in_outage = |(sent, published): &&(i64, i64)| deeds.outages_ms.iter().any(|(from, to)| sent <= to && published >= from);
        let mut waits: Vec<i64> = totals.answered_ms.iter().map(|(sent, published)| published - sent).collect();
        waits.sort_unstable();
        let at = |share: f64| waits.get((waits.len().saturating_sub(1) as f64 * share) as usize).copied().unwrap_or_default();
        let with_broker =
            totals.answered_ms.iter().filter(|answered| !is_in_outage(answered)).map(|(sent, published)| published - sent).max();
        write!(f, "  waits           p50 {} ms, p99 {} ms, longest {} ms, ", at(0.5), at(0.99), at(1.0))?;
        writeln!(f, "longest outside of the broker's outages {} ms", with_broker.unwrap_or_default())?;
        let mut published: Vec<i64> = totals.answered_ms.iter().map(|(_, published)| *published).collect();
        published.sort_unstable();
        let gap = published.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or_default();
        writeln!(f, "  longest gap     {gap} ms without a new verdict")?;
        writeln!(f, "  findings        {}", findings.count())?;
        write!(f, "{findings}")
    }
}
