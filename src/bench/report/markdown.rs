//! Findings as text: tables that read well on a terminal and on a page.

use std::fmt::Write as _;

use super::super::{Drained, Phase, Versus};
use super::{Findings, rows};

/// The findings, as far as there are any.
#[must_use]
pub fn markdown(findings: &Findings) -> String {
    let mut out = String::new();
    // Writing to a string does not fail.
    let _infallible = write(&mut out, findings);
    out
}

fn write(out: &mut String, findings: &Findings) -> std::fmt::Result {
    let machine = &findings.machine;
    writeln!(
        out,
        "tollgate {}{}, {} ({} cores, {:.0} GB), {}, broker: {}",
        machine.version,
        if machine.is_release { "" } else { " (a debug build)" },
        machine.cpu,
        machine.cores,
        machine.memory_bytes as f64 / f64::from(1 << 30),
        machine.kernel,
        machine.broker
    )?;
    if let Some(peak) = &findings.peak {
        writeln!(out, "\nPeak: {:.0} events per second sustained.", peak.per_second)?;
    }
    if let Some(phase) = &findings.latency {
        writeln!(out, "\nLatency from the moment an event was due to its verdict:\n")?;
        phase_table(out, [("tollgate", phase)])?;
    }
    if !findings.sweep.is_empty() {
        writeln!(out, "\nLatency against offered load:\n")?;
        phase_table(out, findings.sweep.iter().map(|point| (point.name.as_str(), &point.phase)))?;
    }
    if let Some(overload) = &findings.overload {
        writeln!(
            out,
            "\nOverload: {:.1} times the peak offered, {:.0} % of the peak kept; memory {:.0} MB, {:.0} MB before; a backlog of {:.1} s, \
             longest wait {:.1} s; recovered {} after the load fell.",
            overload.factor,
            overload.kept * 100.0,
            megabytes(overload.phase.resident_bytes_max),
            megabytes(overload.resident_bytes_before),
            overload.backlog_seconds,
            overload.longest_wait_seconds,
            overload.recovery_seconds.map_or_else(|| "not in time".to_owned(), |seconds| format!("{seconds:.1} s"))
        )?;
    }
    if let Some(versus) = &findings.versus {
        write_versus(out, versus)?;
    }
    if !findings.drained.is_empty() {
        write_drained(out, &findings.drained)?;
    }
    write_targets(out, findings)
}

fn phase_table<'p>(out: &mut String, phases: impl IntoIterator<Item = (&'p str, &'p Phase)>) -> std::fmt::Result {
    writeln!(out, "| worker | asked/s | achieved/s | p50 ms | p90 | p99 | p99.9 | p99.99 | max | misses | CPU µs/event |")?;
    writeln!(out, "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|")?;
    for (name, phase) in phases {
        let latency = phase.tally.latency_ms;
        write!(out, "| {name} | {:.0} | {:.0} |", phase.asked_per_second, phase.achieved_per_second)?;
        for milliseconds in [latency.p50, latency.p90, latency.p99, latency.p999, latency.p9999, latency.max] {
            write!(out, " {milliseconds:.1} |")?;
        }
        let cpu = phase.cpu_us_per_event.map_or_else(|| "–".to_owned(), |cpu| format!("{cpu:.1}"));
        writeln!(out, " {} | {cpu} |", phase.tally.misses)?;
    }
    Ok(())
}

fn write_versus(out: &mut String, versus: &Versus) -> std::fmt::Result {
    writeln!(out, "\nThe gate over the pass-through, median of the rounds (lowest to highest):\n")?;
    writeln!(out, "| | ratio |\n|---|---:|")?;
    for (what, ratio) in [
        ("CPU per event, draining", versus.cpu_draining),
        ("CPU per event, at half of peak", versus.cpu_at_half),
        ("peak throughput", versus.peak),
        ("p50 at half of peak", versus.p50),
        ("p99 at half of peak", versus.p99),
        ("p99.9 at half of peak", versus.p999),
    ] {
        writeln!(out, "| {what} | {} |", ratio.map_or_else(|| "–".to_owned(), |ratio| ratio.to_string()))?;
    }
    Ok(())
}

fn write_drained(out: &mut String, drained: &[Drained]) -> std::fmt::Result {
    writeln!(out, "\nDraining the same preloaded topic, median of the rounds:\n")?;
    writeln!(out, "| worker | events/s | events per CPU second | CPU µs/event | verdicts equal to ours |\n|---|---:|---:|---:|---:|")?;
    for drained in drained {
        let median =
            |of: fn(&super::super::DrainRound) -> f64| super::super::Ratio::of(drained.rounds.iter().map(of)).map_or(0.0, |r| r.median);
        let (rate, per_cpu_second) = (median(|round| round.events_per_second), median(|round| round.events_per_cpu_second));
        let agreement = drained.agreement.as_ref().map_or_else(
            || "–".to_owned(),
            |agreement| format!("{} of {}", agreement.equal, agreement.equal + agreement.different + agreement.missing),
        );
        writeln!(out, "| {} | {rate:.0} | {per_cpu_second:.0} | {:.2} | {agreement} |", drained.name, 1e6 / per_cpu_second)?;
    }
    for (name, [event, ours, theirs]) in drained.iter().flat_map(|drained| {
        drained.agreement.iter().flat_map(move |agreement| agreement.examples.iter().map(move |example| (&drained.name, example)))
    }) {
        writeln!(out, "\n{name} differs on {event}: ours is {ours}, theirs {theirs}")?;
    }
    Ok(())
}

fn write_targets(out: &mut String, findings: &Findings) -> std::fmt::Result {
    let rows = rows(findings);
    if rows.iter().all(|row| row.measured.is_none()) {
        return Ok(());
    }
    writeln!(out, "\n| what | target | measured | met |\n|---|---|---|---|")?;
    for row in rows {
        let met = match row.met {
            Some(true) => "yes",
            Some(false) => "**no**",
            None => "–",
        };
        writeln!(out, "| {} | {} | {} | {met} |", row.what, row.target, row.measured.as_deref().unwrap_or("not measured in this run"))?;
    }
    Ok(())
}

fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

#[cfg(test)]
mod tests {
    use super::super::samples::findings;
    use super::*;

    /// The whole text, so that nobody changes it unseen. `UPDATE_SNAPSHOTS=1` writes it anew.
    #[test]
    fn the_report_is_as_it_was() {
        super::super::plot::tests::check_snapshot("tests/fixtures/bench/report.md", &markdown(&findings()));
    }

    #[test]
    fn what_was_not_measured_is_left_out() {
        let all = findings();
        let little = markdown(&Findings { peak: all.peak, ..Findings::new(all.machine, all.plan) });
        assert!(little.contains("Peak: 20000 events per second sustained.") && !little.contains('|'), "{little}");
    }
}
