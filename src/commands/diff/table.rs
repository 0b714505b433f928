//! A comparison on a terminal: sentences, tables and bars.

use std::io::{self, Write};

use tollgate_recordings::compare::{RuleFound, SideSummary, Summary, Suspensions};

use crate::commands::shared::flips::{THREADS, percent, short, write_flips};
use crate::commands::shared::recorded::redacted;
use crate::commands::shared::{Column, DIM, OutputFormat, Screen, TITLE, Table, number, shown, text};

/// Writes a comparison.
pub(super) fn write(out: &mut impl Write, summary: &Summary, screen: Screen, format: OutputFormat) -> io::Result<()> {
    let Summary { records, verdicts, flips, first_flips, threads_with_flips, .. } = summary;
    for (label, side) in ["A", "B"].into_iter().zip(&summary.sides) {
        writeln!(out, "{}  {}", screen.paint(TITLE, label), shown(&side_line(side)))?;
    }
    writeln!(out)?;
    writeln!(
        out,
        "{flips} of {verdicts} verdicts differ ({}), in {threads_with_flips} threads; {records} records were read",
        percent(*flips, *verdicts)
    )?;
    if flips > first_flips {
        writeln!(out, "{first_flips} of them are the first of their turn; the others may follow from these")?;
    }
    if summary.unmatched > 0 {
        writeln!(out, "{} verdicts are on one side only", summary.unmatched)?;
    }
    if summary.redacted > 0 {
        writeln!(out, "{}", redacted(summary.redacted))?;
    }
    for (reason, records) in &summary.unreadable {
        writeln!(out, "{records} records cannot be read: {reason}")?;
    }
    writeln!(out, "B would have refused {} calls that succeeded", summary.refused_calls)?;
    writeln!(
        out,
        "{} calls that succeeded came after B would have stopped their turn, in {} turns",
        summary.cut_off_calls, summary.cut_off_turns
    )?;
    if let Some(abuse) = &summary.abuse {
        write_abuse(out, abuse, screen)?;
    }
    if summary.flips == 0 {
        return out.flush();
    }
    let names = [("Tools", &summary.tools), ("Agents", &summary.agents), ("Tenants", &summary.tenants), (THREADS, &summary.threads)];
    write_flips(out, &summary.changes, *verdicts, &names, (screen, format))?;
    out.flush()
}

const RULES: &[Column] =
    &[text("rule"), number("A catches"), number("B catches"), number("gained"), number("lost"), number("A suspends"), number("B suspends")];

/// Writes what the rules against abuse find.
fn write_abuse(out: &mut impl Write, abuse: &Suspensions, screen: Screen) -> io::Result<()> {
    let Suspensions { calls, blocked: [one, other], suspended, freed, rules, uncounted } = abuse;
    writeln!(out, "suspensions by rules block {one} calls under A and {other} under B, of {calls}")?;
    writeln!(out, "{suspended} calls ({}) are blocked by one under B and not under A, {freed} the other way", percent(*suspended, *calls))?;
    for (label, sentences) in ["A", "B"].into_iter().zip(uncounted) {
        sentences.iter().try_for_each(|sentence| writeln!(out, "{label}: {sentence}"))?;
    }
    if rules.is_empty() {
        return writeln!(out, "no rule finds anybody");
    }
    let mut table = Table::new(RULES);
    for found in rules {
        let [caught_one, caught_other] = found.caught;
        let [suspended_one, suspended_other] = found.suspended;
        let numbers = [caught_one, caught_other, found.gained, found.lost, suspended_one, suspended_other];
        table.row(std::iter::once(found.rule.clone()).chain(numbers.iter().map(usize::to_string)).collect());
    }
    writeln!(out, "\n{}", screen.paint(TITLE, "Subjects that rules against abuse catch"))?;
    table.lines(false, screen.size().0.saturating_sub(2)).iter().try_for_each(|line| writeln!(out, "  {line}"))?;
    rules.iter().try_for_each(|found| write_found(out, found, screen))
}

/// Writes what the figures of a rule do not say: whether it was paused, and some of those whom the sides treat differently.
fn write_found(out: &mut impl Write, found: &RuleFound, screen: Screen) -> io::Result<()> {
    for (label, _) in ["A", "B"].into_iter().zip(found.paused).filter(|(_, is_paused)| *is_paused) {
        let rule = &found.rule;
        writeln!(out, "{rule} is paused under {label}: it was about to suspend too many at once, and suspended nobody from then on")?;
    }
    for (what, subjects) in found.examples.lists() {
        writeln!(out, "\n  {}", screen.paint(DIM, &format!("{}, {what}, for example:", found.rule)))?;
        subjects.iter().try_for_each(|subject| writeln!(out, "    {subject}"))?;
    }
    Ok(())
}

fn side_line(side: &SideSummary) -> String {
    let actions: Vec<_> = side.actions.iter().map(|(action, verdicts)| format!("{action} {verdicts}")).collect();
    format!(
        "{} (policy {}): {}",
        side.name,
        side.policy_versions.iter().map(|version| short(version)).collect::<Vec<_>>().join(", "),
        actions.join(", ")
    )
}
