//! Writes findings as text: tables that read well on a terminal and on a page.

use std::fmt::Write as _;

use super::{Findings, Row, rows};
use crate::watched::DrainRound;
use crate::{Drained, Offline, Overload, PartitionCost, Phase, Ratio, Versus};

/// Returns the findings, as far as there are any: the machine, the table of targets, then the details.
pub fn markdown(findings: &Findings) -> String {
    page(findings, "")
}

/// Returns the page with something between the table and the details, such as a picture.
pub fn page(findings: &Findings, between: &str) -> String {
    let mut out = String::new();
    // Writing to a string does not fail.
    let _infallible = write(&mut out, findings, between);
    out
}

fn write(out: &mut String, findings: &Findings, between: &str) -> std::fmt::Result {
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
    if machine.is_busy() {
        let (load, cores) = (machine.load, machine.cores);
        writeln!(out, "\n**The machine was busy** when this began (a load of {load:.1} on {cores} cores): these figures say little.")?;
    }
    write_targets(out, findings)?;
    if !between.is_empty() {
        writeln!(out, "\n{between}")?;
    }
    if let Some(peak) = &findings.peak {
        write!(out, "\nPeak: {:.0} events per second sustained", peak.per_second)?;
        match &findings.pass_through_peak {
            Some(other) => writeln!(out, ", {:.0} by the pass-through.", other.per_second)?,
            None => writeln!(out, ".")?,
        }
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
        write_overload(out, overload)?;
    }
    if let Some(versus) = &findings.versus {
        write_versus(out, versus)?;
    }
    if !findings.drained.is_empty() {
        write_drained(out, &findings.drained)?;
    }
    if let Some(abuse) = &findings.abuse {
        super::abuse::write(out, abuse)?;
    }
    write_core(out, &findings.offline)?;
    write_growth(out, findings)?;
    write_end(out, findings)
}

fn write_overload(out: &mut String, overload: &Overload) -> std::fmt::Result {
    let seconds = |seconds: Option<f64>| seconds.map_or_else(|| "not while it was watched".to_owned(), |seconds| format!("{seconds:.1} s"));
    writeln!(
        out,
        "\nOverload: {:.1} times the peak of {:.0} events per second for {:.0} s, {:.0} % of the peak kept; memory {:.0} MB, {:.0} MB \
         before; longest wait {:.1} s. Nothing is shed: the backlog at its end takes {:.1} s. From when the load fell to a tenth of the peak \
         to when latency was as usual: {}; after {:.0} s of the same: {}.",
        overload.factor,
        overload.peak_per_second,
        overload.seconds,
        overload.kept * 100.0,
        megabytes(overload.phase.resident_bytes_max),
        megabytes(overload.resident_bytes_before),
        overload.longest_wait_seconds,
        overload.backlog_seconds,
        seconds(overload.recovery_seconds),
        overload.burst.seconds,
        seconds(overload.burst.recovery_seconds)
    )
}

fn write_core(out: &mut String, offline: &Offline) -> std::fmt::Result {
    if !offline.decision.is_empty() {
        writeln!(out, "\nDeciding on an event, from its bytes to the verdict's, without Kafka:\n")?;
        writeln!(out, "| event | bytes | µs | allocations | bytes allocated | over serde_json | instructions |")?;
        writeln!(out, "|---|---:|---:|---:|---:|---:|---:|")?;
        for cost in &offline.decision {
            let instructions = offline.instructions.iter().find(|found| found.name == cost.name);
            let instructions = instructions.map_or_else(|| "–".to_owned(), |found| format!("{:.0}", found.per_event));
            let over = cost.over_serde_json.map_or_else(|| "–".to_owned(), |over| format!("{over:.2}×"));
            writeln!(
                out,
                "| {} | {} | {:.2} | {:.1} | {:.0} | {over} | {instructions} |",
                cost.name,
                cost.bytes,
                cost.ns / 1e3,
                cost.allocations,
                cost.allocated_bytes
            )?;
        }
    }
    if !offline.memory.is_empty() {
        writeln!(out, "\nMemory per live thread:\n\n| threads | number | bytes each |\n|---|---:|---:|")?;
        for memory in &offline.memory {
            writeln!(out, "| {} | {} | {:.0} |", memory.name, memory.threads, memory.bytes_per_thread)?;
        }
    }
    Ok(())
}

/// Writes what an event costs as work grows.
fn write_growth(out: &mut String, findings: &Findings) -> std::fmt::Result {
    let partitions = &findings.partitions;
    if findings.offline.growth.is_empty() && partitions.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nCost per event as work grows:\n\n| what | from | to | µs | µs then | ratio |\n|---|---:|---:|---:|---:|---:|")?;
    for growth in &findings.offline.growth {
        let (from, to) = (growth.ns_from / 1e3, growth.ns_to / 1e3);
        writeln!(out, "| {} | {} | {} | {from:.2} | {to:.2} | {:.2}× |", growth.what, growth.from, growth.to, growth.ratio)?;
    }
    let Some((few, more)) = partitions.split_first() else { return Ok(()) };
    for cost in more {
        let median = |cost: &PartitionCost| cost.median_us().unwrap_or_default();
        let ratio = cost.over(few).map_or_else(|| "–".to_owned(), |ratio| ratio.to_string());
        let (from, to) = (median(few), median(cost));
        writeln!(out, "| partitions (CPU of the worker) | {} | {} | {from:.2} | {to:.2} | {ratio} |", few.partitions, cost.partitions)?;
    }
    Ok(())
}

/// Writes what is missing, and how long the report took.
fn write_end(out: &mut String, findings: &Findings) -> std::fmt::Result {
    if !findings.absences.is_empty() {
        writeln!(out, "\nNot measured:\n")?;
    }
    for absence in &findings.absences {
        writeln!(out, "- {}: {}", absence.part, absence.why)?;
    }
    if findings.seconds > 0.0 {
        let minutes = findings.seconds / 60.0;
        writeln!(out, "\nAll of this is one run of `tollgate-bench --report`, which took {minutes:.0} minutes, builds included.")?;
    }
    Ok(())
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
    for drained in drained.iter().filter(|drained| !drained.rounds.is_empty()) {
        let median = |of: fn(&DrainRound) -> f64| Ratio::of(drained.rounds.iter().map(of)).map_or(0.0, |ratio| ratio.median);
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
    let is_report = findings.seconds > 0.0 || !findings.absences.is_empty();
    if !is_report && rows.iter().all(|row| row.measured.is_none()) {
        return Ok(());
    }
    write_rows(out, rows)
}

/// Writes a table of targets.
pub fn write_rows(out: &mut String, rows: Vec<Row>) -> std::fmt::Result {
    writeln!(out, "\n| what | target | measured | met |\n|---|---|---|---|")?;
    for row in rows {
        let met = match row.met {
            Some(true) => "yes",
            Some(false) => "**no**",
            None => "–",
        };
        let measured = match (row.measured, row.why) {
            (Some(measured), _) => measured,
            (None, Some(why)) => format!("not measured: {why}"),
            (None, None) => "not measured in this run".to_owned(),
        };
        writeln!(out, "| {} | {} | {measured} | {met} |", row.what, row.target)?;
    }
    Ok(())
}

/// Returns bytes as megabytes.
pub fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

#[cfg(test)]
mod tests {
    use super::super::samples::findings;
    use super::*;

    /// The whole text, so that nobody changes it unseen. `TOLLGATE_UPDATE_FIXTURES=1` writes it anew.
    #[test]
    fn the_report_is_as_it_was() {
        let picture = "![Latency against offered load](plot.svg)";
        super::super::plot::tests::check_snapshot("tests/fixtures/bench/report.md", &page(&findings(), picture));
    }

    #[test]
    fn growth_of_the_core_stands_beside_that_of_partitions() {
        let mut found = findings();
        found.offline.growth = super::super::samples::growth();
        let text = markdown(&found);
        assert!(text.contains("| rules | 10 | 10000 | 1.50 | 1.50 | 1.00× |"), "{text}");
        assert!(text.contains("| partitions (CPU of the worker) | 1 | 64 | 20.00 | 24.00 | 1.20×"), "{text}");
    }

    #[test]
    fn a_report_that_measured_nothing_shows_its_table_all_the_same() {
        let all = findings();
        let nothing = markdown(&Findings { absences: all.absences, ..Findings::new(all.machine, all.plan) });
        assert!(nothing.contains("not measured: java is not installed (17 or newer)") && nothing.contains("not measured in this run"));
    }

    #[test]
    fn a_busy_machine_is_named() {
        let mut found = findings();
        assert!(!markdown(&found).contains("busy**"));
        found.machine.load = 2.1;
        assert!(markdown(&found).contains("a load of 2.1 on 2 cores"));
    }

    #[test]
    fn what_was_not_measured_is_left_out() {
        let all = findings();
        let little = markdown(&Findings { peak: all.peak, ..Findings::new(all.machine, all.plan) });
        assert!(little.contains("Peak: 20000 events per second sustained.") && !little.contains('|'), "{little}");
    }
}
