//! Verdicts that differ: the changes, the names under which most differs, shares and bars.

use std::io::{self, Write};

use tollgate_recordings::compare::{ChangeSummary, NOBODY, Named, Side};

use super::{Column, DIM, OutputFormat, Screen, TITLE, Table, number, shown, style_of, text};

/// How many cells the longest bar takes.
const BAR_CELLS: f64 = 24.0;
/// How many names of a kind are shown.
const ROWS_MAX: usize = 10;

const NAMES: &[Column] = &[text(""), number("differ"), number("of"), number("share"), text("")];

/// The title of the threads with most differences.
pub(crate) const THREADS: &str = "Threads hit most";

/// Writes what differs: the changes, of so many verdicts if that is known, and the names under which most differs, each with its title.
pub(crate) fn write_flips(
    out: &mut impl Write,
    changes: &[ChangeSummary],
    verdicts: u64,
    names: &[(&str, &Vec<Named>)],
    (screen, format): (Screen, OutputFormat),
) -> io::Result<()> {
    writeln!(out, "\n{}", screen.paint(TITLE, "A → B"))?;
    let most = changes.iter().map(|change| change.flips).max().unwrap_or_default();
    changes.iter().try_for_each(|change| write_change(out, change, (most, verdicts), screen))?;
    names.iter().try_for_each(|(title, names)| write_names(out, title, names, screen, format))
}

/// Returns the beginning of a policy version, which is enough to tell it from others.
pub(crate) fn short(version: &str) -> String {
    version.chars().take("sha256:".len() + 12).collect()
}

fn write_change(out: &mut impl Write, change: &ChangeSummary, (most, verdicts): (u64, u64), screen: Screen) -> io::Result<()> {
    let ChangeSummary { from, to, flips, examples } = change;
    let side = |side: &Side| {
        let action = side.action.as_str();
        let code = if side.code == action { String::new() } else { format!(" {}", shown(&side.code)) };
        format!("{}{code}", screen.paint(style_of(action), action))
    };
    let share = if verdicts > 0 { format!(" {:>7}", percent(*flips, verdicts)) } else { String::new() };
    writeln!(out, "  {flips:>9}{share}  {} → {}  {}", side(from), side(to), bar(*flips, most))?;
    for example in examples.iter().take(2) {
        let event = if example.event_id.is_empty() { String::new() } else { format!(", event {}", example.event_id) };
        let line = format!("thread {}{event}, at {}/{}/{}", example.thread_id, example.topic, example.partition, example.offset);
        writeln!(out, "                     {}", screen.paint(DIM, &shown(&line)))?;
        for (label, message) in [("A", &example.from_message), ("B", &example.to_message)].into_iter().filter(|(_, text)| !text.is_empty())
        {
            writeln!(out, "                       {}", screen.paint(DIM, &shown(&format!("{label}: {message}"))))?;
        }
    }
    Ok(())
}

fn write_names(out: &mut impl Write, title: &str, names: &[Named], screen: Screen, format: OutputFormat) -> io::Result<()> {
    // One name that stands for everything tells nothing.
    let Some(first) = names.first().filter(|first| names.len() > 1 || first.name != NOBODY) else { return Ok(()) };
    let most = first.share.flips;
    let mut table = Table::new(NAMES);
    for Named { name, share } in names.iter().take(if format == OutputFormat::Wide { names.len() } else { ROWS_MAX }) {
        let cells = [
            name.clone(),
            share.flips.to_string(),
            if share.verdicts > 0 { share.verdicts.to_string() } else { String::new() },
            if share.verdicts > 0 { percent(share.flips, share.verdicts) } else { String::new() },
            bar(share.flips, most),
        ];
        table.row(cells.into());
    }
    writeln!(
        out,
        "\n{}",
        screen.paint(TITLE, &format!("{title}: verdicts that differ{}", if first.share.verdicts > 0 { ", of all" } else { "" }))
    )?;
    table
        .lines(format == OutputFormat::Wide, screen.size().0.saturating_sub(2))
        .iter()
        .skip(1)
        .try_for_each(|line| writeln!(out, "  {line}"))
}

/// Returns a bar whose length is the share of the longest one, to an eighth of a cell.
fn bar(flips: u64, most: u64) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = (flips as f64 / most.max(1) as f64 * BAR_CELLS * 8.0).round().max(1.0) as usize;
    format!("{}{}", "█".repeat(eighths / 8), EIGHTHS.get(eighths % 8).unwrap_or(&""))
}

/// Returns a share, with as many digits as tell it from nothing.
pub(crate) fn percent(part: u64, of: u64) -> String {
    let percent = part as f64 * 100.0 / of.max(1) as f64;
    match percent {
        _ if part == 0 => "0 %".to_owned(),
        10.0.. => format!("{percent:.0} %"),
        1.0.. => format!("{percent:.1} %"),
        0.01.. => format!("{percent:.2} %"),
        _ => "< 0.01 %".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_told_from_nothing() {
        assert_eq!(
            [(0, 10), (1, 100_000), (1, 1_000), (1, 50), (1, 2)].map(|(part, of)| percent(part, of)),
            ["0 %", "< 0.01 %", "0.10 %", "2.0 %", "50 %"]
        );
    }

    #[test]
    fn bars_are_as_long_as_their_share() {
        assert_eq!(bar(10, 10), "█".repeat(24));
        assert_eq!(bar(5, 10), "█".repeat(12));
        assert_eq!(bar(1, 1_000_000), "▏");
    }
}
