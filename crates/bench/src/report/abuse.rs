//! Writes the targets of abuse over the fleet, and the figures behind them.

use std::fmt::Write as _;

use super::targets::CPU_MAX;
use super::{Findings, Row};
use crate::{AbuseFindings, FoldCost};

const SIGNALS_MIN: f64 = 1e6;
const BYTES_MAX: f64 = 200.0;
const ALERT_MAX: f64 = 2.0;
const BLOCKED_MS_MAX: f64 = 400.0;
const HOT_THROUGHPUT_MIN: f64 = 0.8;
const HOT_DELAY_MAX: f64 = 1.5;
const RULES_MAX: f64 = 2.0;
/// The numbers of subjects that the targets of the fold are about.
const SUBJECTS: u64 = 1_000_000;
const MANY_SUBJECTS: u64 = 10_000_000;

const FOLD: &str = "fold, uniform";
const NAIVE: &str = "naive prototype";
const ALERTS: &str = "alerts at half of peak";

/// Returns the table of targets.
pub(super) fn rows(findings: &Findings, found: &AbuseFindings) -> Vec<Row> {
    let usual = found.usual.as_ref();
    let alert = usual.map(|usual| usual.alerts.p99_ms / usual.phase.tally.latency_ms.p99);
    let others = usual.zip(found.hot.as_ref()).map(|(usual, hot)| hot.alerts.p99_ms / usual.alerts.p99_ms);
    let rules = found.cost(FOLD).zip(found.cost("fold, 200 rules"));
    let rules = rules.map(|(few, many)| few.signals_per_second / many.signals_per_second);
    let blocked = found.blocked.map(|delays| (format!("{:.0} ms", delays.p99_ms), Some(delays.p99_ms <= BLOCKED_MS_MAX)));
    vec![
        findings.at_most(
            "CPU per event of deciding, pack on and 1,000 subjects suspended, over off",
            CPU_MAX,
            found.cpu,
            &["CPU of deciding"],
        ),
        signals(findings, found),
        bytes(findings, found, SUBJECTS),
        bytes(findings, found, MANY_SUBJECTS),
        findings.row(
            "event → alert p99 over event → verdict p99, half of peak",
            format!("≤ {ALERT_MAX}×"),
            at_most(alert, ALERT_MAX),
            &[ALERTS],
        ),
        findings.row(
            "event → first blocked call on each of 16 partitions, p99",
            format!("≤ {BLOCKED_MS_MAX} ms"),
            blocked,
            &["blocked calls"],
        ),
        findings.at_least(
            "one user with half of all traffic: throughput over usual",
            HOT_THROUGHPUT_MIN,
            found.throughput,
            &["throughput"],
        ),
        findings.row(
            "one user with half of all traffic: p99 of others' alerts over usual",
            format!("≤ {HOT_DELAY_MAX}×"),
            at_most(others, HOT_DELAY_MAX),
            &[ALERTS],
        ),
        findings.row("cost per signal, 10 → 200 rules", format!("≤ {RULES_MAX}×"), at_most(rules, RULES_MAX), &["fold"]),
    ]
}

/// Returns a ratio as text, and whether it is low enough.
fn at_most(ratio: Option<f64>, limit: f64) -> super::targets::Judged {
    ratio.map(|ratio| (format!("{ratio:.2}×"), Some(ratio <= limit)))
}

fn signals(findings: &Findings, found: &AbuseFindings) -> Row {
    let judged = found.cost(FOLD).map(|fold| {
        let naive = found.cost(NAIVE).map_or_else(String::new, |naive| {
            format!("; naive {}, {:.2}×", millions(naive), fold.signals_per_second / naive.signals_per_second)
        });
        // Fewer subjects say nothing about many.
        let met = (fold.subjects >= SUBJECTS).then_some(fold.signals_per_second >= SIGNALS_MIN);
        (format!("{}, at {} subjects{naive}", millions(fold), fold.subjects), met)
    });
    findings.row("signals per second and core in the fold, 1 million subjects", "≥ 1.00 million".to_owned(), judged, &["fold"])
}

fn millions(cost: &FoldCost) -> String {
    format!("{:.2} million", cost.signals_per_second / 1e6)
}

fn bytes(findings: &Findings, found: &AbuseFindings, subjects: u64) -> Row {
    let judged = found.cost(FOLD).filter(|fold| fold.subjects == subjects).map(|fold| {
        let naive = found.cost(NAIVE).map_or_else(String::new, |naive| format!("; naive {:.0} B", naive.bytes_per_subject));
        (format!("{:.0} B{naive}", fold.bytes_per_subject), Some(fold.bytes_per_subject <= BYTES_MAX))
    });
    let what = format!("bytes per live subject, 3 signals each, {} million subjects", subjects / 1_000_000);
    let mut row = findings.row(&what, format!("≤ {BYTES_MAX} B"), judged, &["fold"]);
    if row.measured.is_none() && row.why.is_none() {
        row.why = Some(format!("TOLLGATE_ABUSE_SUBJECTS={subjects} measures it"));
    }
    row
}

/// Writes the figures behind the table.
pub(super) fn write(out: &mut String, found: &AbuseFindings) -> std::fmt::Result {
    if !found.fold.is_empty() {
        writeln!(out, "\nThe fold alone, on one core:\n\n| row | rules | subjects | signals/s | once all are known | bytes each |")?;
        writeln!(out, "|---|---:|---:|---:|---:|---:|")?;
        for FoldCost { name, rules, subjects, signals_per_second, signals_per_second_known, bytes_per_subject } in &found.fold {
            writeln!(
                out,
                "| {name} | {rules} | {subjects} | {signals_per_second:.0} | {signals_per_second_known:.0} | {bytes_per_subject:.0} |"
            )?;
        }
    }
    let delays = [("usual traffic", found.usual.as_ref()), ("one user has half", found.hot.as_ref())];
    if delays.iter().any(|(_, beside)| beside.is_some()) || found.blocked.is_some() {
        writeln!(out, "\nDelays in milliseconds, from the event:\n\n| until | at | number | missed | p50 | p99 | max |")?;
        writeln!(out, "|---|---|---:|---:|---:|---:|---:|")?;
    }
    for (name, beside) in delays.iter().filter_map(|(name, beside)| Some((name, beside.as_ref()?))) {
        let (tally, alerts, rate) = (&beside.phase.tally, beside.alerts, beside.phase.asked_per_second);
        let latency = tally.latency_ms;
        writeln!(
            out,
            "| verdict, {name} | {rate:.0}/s | {} | {} | {:.1} | {:.1} | {:.1} |",
            tally.awaited, tally.misses, latency.p50, latency.p99, latency.max
        )?;
        let (count, missed) = (alerts.count, alerts.missed);
        writeln!(
            out,
            "| alert, {name} | {rate:.0}/s | {count} | {missed} | {:.1} | {:.1} | {:.1} |",
            alerts.p50_ms, alerts.p99_ms, alerts.max_ms
        )?;
    }
    if let Some(blocked) = found.blocked {
        let (count, missed) = (blocked.count, blocked.missed);
        writeln!(
            out,
            "| blocked on a partition | 800/s | {count} | {missed} | {:.1} | {:.1} | {:.1} |",
            blocked.p50_ms, blocked.p99_ms, blocked.max_ms
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::samples::{findings, phase};
    use super::super::{markdown, rows as all_rows};
    use super::*;
    use crate::abuse::{Delays, RateMeasurement};
    use crate::{Absence, Ratio};

    fn found() -> AbuseFindings {
        let cost = |name: &str, rules, signals_per_second, bytes_per_subject| FoldCost {
            name: name.to_owned(),
            rules,
            subjects: SUBJECTS,
            signals_per_second,
            signals_per_second_known: signals_per_second,
            bytes_per_subject,
        };
        let delays = |p99_ms| Delays { count: 100, missed: 0, p50_ms: 5.0, p99_ms, max_ms: 100.0 };
        AbuseFindings {
            cpu: Ratio::of([1.05]),
            fold: vec![cost(NAIVE, 4, 8e5, 250.0), cost(FOLD, 10, 1.2e6, 180.0), cost("fold, 200 rules", 200, 5e5, 180.0)],
            usual: Some(RateMeasurement { phase: phase(1_000.0, 5.0), alerts: delays(19.0) }),
            hot: Some(RateMeasurement { phase: phase(1_000.0, 5.0), alerts: delays(30.0) }),
            blocked: Some(delays(350.0)),
            throughput: Ratio::of([0.9]),
        }
    }

    #[test]
    fn each_target_is_judged_by_what_was_measured_and_nothing_else_is_met() {
        let (yes, no) = (Some(true), Some(false));
        let mut findings = findings();
        findings.abuse = Some(found());
        let met = |findings: &Findings| all_rows(findings).iter().map(|row| row.met).collect::<Vec<_>>();
        assert_eq!(met(&findings), [yes, yes, yes, None, yes, yes, yes, no, no]);
        let page = markdown(&findings);
        assert!(page.contains("not measured: TOLLGATE_ABUSE_SUBJECTS=10000000 measures it") && page.contains("| alert, usual"), "{page}");
        findings.abuse = Some(AbuseFindings::default());
        findings.absences.push(Absence::failed("blocked calls", "the broker ended"));
        assert_eq!(met(&findings), [None; 9]);
        assert!(markdown(&findings).contains("not measured: the broker ended"));
    }

    #[test]
    fn few_subjects_say_nothing_about_many() {
        let mut findings = findings();
        let mut few = found();
        few.fold.iter_mut().for_each(|cost| cost.subjects = 1_000);
        findings.abuse = Some(few);
        assert_eq!(all_rows(&findings).iter().map(|row| row.met).skip(1).take(3).collect::<Vec<_>>(), [None; 3]);
    }
}
