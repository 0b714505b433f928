//! Writes the table of targets: what was promised, what was measured, and whether it holds.

use serde::Serialize;

use super::Findings;
use crate::abuse::SWITCH_MS_MAX;
use crate::offline::{Growth, ThreadMemory};
use crate::{Drained, PARTITIONS, Ratio};

/// The factor by which counting signals may raise the CPU time of an event.
pub(super) const CPU_MAX: f64 = 1.05;
/// The factor by which the worker's memory may grow under an overload: its queues are bounded by count, and events are large.
const GROWTH_MAX: f64 = 4.0;
/// The most seconds that an event of an overload waits beyond the backlog in front of it.
const EXCESS_WAIT_MAX: f64 = 2.0;
/// The most seconds from the fall of the load until events are answered as quickly as usual.
const RECOVERY_MAX: f64 = 5.0;
const KEPT_MIN: f64 = 0.95;
/// The size of the tool call that the target of deciding is about, in bytes.
const CALL_BYTES: std::ops::RangeInclusive<u64> = 550..=650;
const CALL_NS_MAX: f64 = 2_000.0;
const CALL_ALLOCATIONS_MAX: f64 = 5.0;
/// The number of live threads that the target of memory is about.
const LIVE_THREADS: u64 = 1_000_000;
const BUSY_BYTES_MAX: f64 = 1_400.0;
const QUIET_BYTES_MAX: f64 = 230.0;
const DIGEST_MIN: f64 = 400_000.0;
/// The factors by which the cost of an event may grow as threads, rules and partitions grow.
const THREADS_GROWTH_MAX: f64 = 1.5;
const COST_GROWTH_MAX: f64 = 1.3;

/// One line of the table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Row {
    /// The quantity that the target is about.
    pub what: String,
    /// The target.
    pub target: String,
    /// The measured value; `None` if this run did not measure it.
    pub measured: Option<String>,
    /// Whether the target is met.
    pub met: Option<bool>,
    /// Why it was not measured, if that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// A measured value, and whether it meets its target.
pub(super) type Judged = Option<(String, Option<bool>)>;

/// Returns the table of deciding.
pub(super) fn rows(findings: &Findings) -> Vec<Row> {
    let mut rows = over_others(findings);
    rows.extend(with_abuse(findings));
    rows.extend(overload(findings));
    rows.extend(core(findings));
    rows.extend(growth(findings));
    rows
}

impl Findings {
    /// Returns a row. `parts` are those that it comes from; the first one that is missing says why there is nothing.
    pub(super) fn row(&self, what: &str, target: String, judged: Judged, parts: &[&str]) -> Row {
        let (measured, met) = judged.map_or((None, None), |(measured, met)| (Some(measured), met));
        let find = |part: &&str| self.absences.iter().find(|absence| absence.part == **part);
        let why = parts.iter().find_map(find).filter(|_| measured.is_none()).map(|absence| absence.why.clone());
        Row { what: what.to_owned(), target, measured, met, why }
    }

    pub(super) fn at_most(&self, what: &str, limit: f64, ratio: Option<Ratio>, parts: &[&str]) -> Row {
        self.row(what, format!("≤ {limit}×"), ratio.map(|ratio| (ratio.to_string(), Some(ratio.median <= limit))), parts)
    }

    pub(super) fn at_least(&self, what: &str, limit: f64, ratio: Option<Ratio>, parts: &[&str]) -> Row {
        self.row(what, format!("≥ {limit}×"), ratio.map(|ratio| (ratio.to_string(), Some(ratio.median >= limit))), parts)
    }
}

/// Returns the rows of the gate over a worker that decides nothing, and over what others would run.
fn over_others(findings: &Findings) -> Vec<Row> {
    let versus = findings.versus.as_ref();
    let draining = |over, under| per_cpu_second(&findings.drained, over, under);
    let smaller = per_cpu_second(&findings.drained_smaller, "pass-through", "tollgate");
    let drained = |who| [who, "tollgate", "pass-through", "drain", "broker"];
    let loaded = ["versus", "peak", "gate under load", "broker"];
    vec![
        findings.at_most(
            "CPU per event over pass-through, draining events of 3 KB",
            1.6,
            draining("pass-through", "tollgate"),
            &drained("tollgate"),
        ),
        findings.at_most(
            "CPU per event over pass-through, draining events of 1.3 KB",
            1.7,
            smaller,
            &["drain of smaller events", "broker"],
        ),
        findings.at_most("CPU per event over pass-through, at half of peak", 1.25, versus.and_then(|versus| versus.cpu_at_half), &loaded),
        findings.at_most("CPU per event of the pass-through over a bare loop", 1.1, draining("bare", "pass-through"), &drained("bare")),
        findings.at_least("events per CPU second over the Python worker", 3.0, draining("tollgate", "python"), &drained("python")),
        findings.at_least(
            "events per CPU second over the Kafka Streams application",
            5.0,
            draining("tollgate", "kafka-streams"),
            &drained("kafka-streams"),
        ),
        findings.at_most(
            "p99 from intended send to verdict at half of peak, over pass-through",
            1.1,
            versus.and_then(|versus| versus.p99),
            &loaded,
        ),
    ]
}

/// Returns the events per CPU second of `over` as a multiple of those of `under`, round by round.
fn per_cpu_second(drained: &[Drained], over: &str, under: &str) -> Option<Ratio> {
    let of = |name: &str| drained.iter().find(|drained| drained.name == name).map(Drained::cpu_us);
    Ratio::between(&of(under)?, &of(over)?)
}

/// Returns the rows of what abuse over the fleet adds, and of captures.
fn with_abuse(findings: &Findings) -> [Row; 3] {
    let switch = findings.switch_ms.map(|ms| (format!("{ms:.0} ms"), Some(ms <= SWITCH_MS_MAX)));
    let digest = findings.digest_per_cpu_second.map(|count| (format!("{:.0}k", count / 1e3), Some(count >= DIGEST_MIN)));
    [
        findings.at_most("CPU per event of deciding, abuse on over off", CPU_MAX, findings.abuse_cpu, &["abuse over off", "broker"]),
        findings.row(
            "suspension → blocked on all of 16 partitions under load, p99",
            format!("≤ {SWITCH_MS_MAX} ms"),
            switch,
            &["kill switch", "broker"],
        ),
        findings.row("`eval --digest`, events per CPU second", format!("≥ {:.0}k", DIGEST_MIN / 1e3), digest, &["digest", "broker"]),
    ]
}

fn overload(findings: &Findings) -> [Row; 4] {
    let found = findings.overload.as_ref();
    let (factor, seconds, burst) = found.map_or((2.0, 10.0, 2.0), |found| (found.factor, found.seconds, found.burst.seconds));
    let what = |what: &str, seconds: f64| format!("{factor:.0}× the peak offered for {seconds:.0} s: {what}");
    let row =
        |what: &str, target: String, judged: Judged| findings.row(what, target, judged, &["overload", "peak", "gate under load", "broker"]);
    // Without an overload there is no target to meet.
    let meets = |met: bool| found.filter(|found| !found.is_none()).map(|_| met);
    let kept = found.map(|found| {
        let none = if found.is_none() { ": all of it was dealt with, the peak that was found is none" } else { "" };
        (format!("{:.0} %{none}", found.kept * 100.0), meets(found.kept >= KEPT_MIN))
    });
    let memory = found.map(|found| (format!("{:.1}×", found.memory_growth()), meets(found.memory_growth() <= GROWTH_MAX)));
    let wait = found.map(|found| {
        let text = format!("{:.1} s; longest wait {:.1} s", found.excess_wait_seconds(), found.longest_wait_seconds);
        (text, meets(found.excess_wait_seconds() <= EXCESS_WAIT_MAX))
    });
    let recovery = found.map(|found| {
        let seconds = found.burst.recovery_seconds;
        let text = seconds.map_or_else(|| "not while it was watched".to_owned(), |seconds| format!("{seconds:.1} s"));
        (text, meets(seconds.is_some_and(|seconds| seconds <= RECOVERY_MAX)))
    });
    [
        row(&what("share of the peak that is kept", seconds), "≥ 95 %".to_owned(), kept),
        row(&what("memory, over that at a tenth of the peak", seconds), format!("≤ {GROWTH_MAX}×"), memory),
        row(&what("longest wait beyond the time that the backlog takes", seconds), format!("≤ {EXCESS_WAIT_MAX} s"), wait),
        row(&what("from the fall of the load to usual latency", burst), format!("≤ {RECOVERY_MAX} s"), recovery),
    ]
}

/// Returns the rows of the core alone.
fn core(findings: &Findings) -> [Row; 3] {
    let is_call = |name: &str, bytes| name == "tool_call" && CALL_BYTES.contains(&bytes);
    let call = findings.offline.decision.iter().find(|cost| is_call(&cost.name, cost.bytes)).map(|cost| {
        let met = cost.ns <= CALL_NS_MAX && cost.allocations <= CALL_ALLOCATIONS_MAX;
        (format!("{:.2} µs, {:.1} allocations", cost.ns / 1e3, cost.allocations), Some(met))
    });
    let memory = |kind: &str, bytes_max: f64| {
        let found = findings.offline.memory.iter().find(|memory| memory.name == kind).map(|memory| judge_memory(memory, bytes_max));
        findings.row(&format!("memory per live thread, {kind}, at 1 million threads"), format!("≤ {bytes_max:.0} B"), found, &["memory"])
    };
    [
        findings.row("whole-event decision path, a tool call of 600 bytes", "≤ 2 µs and ≤ 5 allocations".to_owned(), call, &["decision"]),
        memory("busy", BUSY_BYTES_MAX),
        memory("quiet", QUIET_BYTES_MAX),
    ]
}

fn judge_memory(memory: &ThreadMemory, bytes_max: f64) -> (String, Option<bool>) {
    let text = format!("{:.0} B", memory.bytes_per_thread);
    // Fewer threads say nothing about many.
    match memory.threads {
        LIVE_THREADS.. => (text, Some(memory.bytes_per_thread <= bytes_max)),
        threads => (format!("{text}, at {threads} threads"), None),
    }
}

/// Returns the rows of the cost per event as work grows: of several figures of a kind the worst one counts.
fn growth(findings: &Findings) -> [Row; 3] {
    let of_core = |kind: &str, limit: f64, what: &str| {
        let worst =
            findings.offline.growth.iter().filter(|growth| growth.what.starts_with(kind)).max_by(|a, b| a.ratio.total_cmp(&b.ratio));
        let judged = worst.map(|worst: &Growth| (format!("{:.2}× ({})", worst.ratio, worst.what), Some(worst.ratio <= limit)));
        findings.row(what, format!("≤ {limit}×"), judged, &["growth"])
    };
    let [few, .., many] = PARTITIONS;
    let cost = |partitions| findings.partitions.iter().find(|cost| cost.partitions == partitions);
    let ratio = cost(many).zip(cost(few)).and_then(|(many, few)| many.over(few));
    [
        of_core("threads", THREADS_GROWTH_MAX, "cost per event, 1,000 → 1 million threads"),
        of_core("rules", COST_GROWTH_MAX, "cost per event, 10 → 10,000 rules"),
        findings.at_most(&format!("cost per event, {few} → {many} partitions"), COST_GROWTH_MAX, ratio, &["partitions", "broker"]),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::samples::{self, findings};
    use super::*;
    use crate::overload::Burst;
    use crate::{Absence, Machine, Overload, PartitionCost};

    fn met(rows: &[Row]) -> Vec<Option<bool>> {
        rows.iter().map(|row| row.met).collect()
    }

    #[test]
    fn every_target_is_judged_by_what_was_measured() {
        let (yes, no) = (Some(true), Some(false));
        let over_others = [yes, yes, no, yes, yes, None, no];
        let others = [yes, no, yes, yes, yes, yes, yes, yes, no, no, None, None, yes];
        let expected = [over_others.as_slice(), others.as_slice()].concat();
        assert_eq!(met(&rows(&findings())), expected);
        let empty = Findings::new(Machine::here(String::new()), findings().plan);
        assert!(rows(&empty).iter().all(|row| row.measured.is_none() && row.met.is_none() && row.why.is_none()));
        assert_eq!(rows(&empty).len(), expected.len());
    }

    #[test]
    fn each_promise_about_an_overload_stands_for_itself() {
        let judged = |change: fn(&mut Overload)| {
            let mut findings = findings();
            findings.overload.iter_mut().for_each(change);
            met(&overload(&findings)).iter().position(|met| *met != Some(true))
        };
        assert_eq!(judged(|found| found.kept = 0.94), Some(0));
        assert_eq!(judged(|found| found.resident_bytes_before = 20 << 20), Some(1));
        assert_eq!(judged(|found| found.longest_wait_seconds = 12.0), Some(2));
        assert_eq!(judged(|found| found.burst = Burst { seconds: 2.0, recovery_seconds: None }), Some(3));
        assert_eq!(judged(|found| found.burst.recovery_seconds = Some(5.1)), Some(3));
        let mut none = findings();
        none.overload.iter_mut().for_each(|found| found.kept = 1.99);
        assert_eq!(met(&overload(&none)), [None; 4]);
    }

    #[test]
    fn more_events_per_cpu_second_are_a_higher_ratio() {
        let found = findings();
        assert!((39.9..40.1).contains(&per_cpu_second(&found.drained, "tollgate", "python").unwrap().median));
        assert!((1.06..1.08).contains(&per_cpu_second(&found.drained, "bare", "pass-through").unwrap().median));
        assert_eq!(per_cpu_second(&found.drained, "tollgate", "nobody"), None);
    }

    #[test]
    fn a_row_says_why_it_was_not_measured_and_only_then() {
        let mut found = findings();
        found.absences.push(Absence::failed("drain", "the broker ended"));
        let why = |at: usize| rows(&found).get(at).and_then(|row| row.why.clone());
        assert_eq!(why(5).as_deref(), Some("java is not installed (17 or newer)"));
        assert_eq!(why(0), None);
        assert!(why(17).is_some_and(|why| why.contains("60 s")));
        found.drained.clear();
        assert_eq!(rows(&found).first().and_then(|row| row.why.clone()).as_deref(), Some("the broker ended"));
    }

    #[test]
    fn the_core_is_judged_at_the_size_that_was_promised() {
        let mut found = findings();
        found.offline.decision.iter_mut().for_each(|cost| cost.allocations = 5.5);
        found.offline.memory.iter_mut().for_each(|memory| memory.threads = 1_000);
        assert_eq!(met(&core(&found)), [Some(false), None, None]);
        found.offline.decision.iter_mut().for_each(|cost| cost.bytes = 5_000);
        assert_eq!(core(&found).first().and_then(|row| row.measured.clone()), None);
    }

    #[test]
    fn the_worst_growth_of_a_kind_counts() {
        let mut found = findings();
        found.offline.growth = samples::growth();
        assert_eq!(met(&growth(&found)), [Some(false), Some(true), Some(true)]);
        let [threads, ..] = growth(&found);
        assert_eq!(threads.measured.as_deref(), Some("1.51× (threads, Zipf)"));
        found.partitions = vec![PartitionCost { partitions: 64, cpu_us: vec![10.0] }];
        assert_eq!(growth(&found).last().and_then(|row| row.met), None);
    }
}
