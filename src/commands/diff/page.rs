//! A comparison as a page: one file that needs no other, light or dark as the reader's system prefers.

use std::fmt::{self, Write as _};

use tollgate_recordings::compare::{At, ChangeSummary, Named, Side, SideSummary, Summary, Suspensions};

use crate::commands::shared::flips::percent;
use crate::commands::shared::stamp;

const STYLE: &str = include_str!("page.css");
/// The size of the plot over time.
const PLOT: (f64, f64) = (960.0, 160.0);
/// The room below the plot for its labels.
const LABELS: f64 = 18.0;

/// Returns the page.
pub(super) fn page(summary: &Summary) -> String {
    let mut out = String::new();
    // Writing to a string does not fail.
    let _infallible = write_page(&mut out, summary);
    out
}

fn write_page(out: &mut String, summary: &Summary) -> fmt::Result {
    let Summary { records, verdicts, flips, first_flips, threads_with_flips, unmatched, redacted, .. } = summary;
    let Summary { refused_calls, cut_off_calls, cut_off_turns, .. } = summary;
    write!(out, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>tollgate diff</title>")?;
    write!(out, "<meta name=\"viewport\" content=\"width=device-width\"><style>{STYLE}</style></head><body>")?;
    write!(out, "<h1><span id=\"flips\">{flips}</span> of {verdicts} verdicts differ ({})</h1>", percent(*flips, *verdicts))?;
    write!(out, "<p>In {threads_with_flips} threads; {records} records were read")?;
    if flips > first_flips {
        write!(out, "; {first_flips} of the differences are the first of their turn, and the others may follow from these")?;
    }
    if *redacted > 0 {
        write!(out, "; {redacted} records are redacted, on which verdicts of passports and policy servers are not those of the live gate")?;
    }
    if *unmatched > 0 {
        write!(out, "; {unmatched} verdicts are on one side only")?;
    }
    for (reason, records) in &summary.unreadable {
        write!(out, "; {records} cannot be read: <code>{reason}</code>")?;
    }
    write!(
        out,
        ".</p><p>B would have refused {refused_calls} calls that succeeded. {cut_off_calls} calls that succeeded came after B would have stopped their turn, in {cut_off_turns} turns.</p>"
    )?;
    write!(out, "<table><tr><th></th><th>from</th><th>policy</th><th>verdicts</th></tr>")?;
    for (label, side) in ["A", "B"].into_iter().zip(&summary.sides) {
        write_side(out, label, side)?;
    }
    write!(out, "</table>")?;
    if let Some(abuse) = &summary.abuse {
        write_abuse(out, abuse)?;
    }
    write_times(out, &summary.times)?;
    write_changes(out, &summary.changes, *verdicts)?;
    for (title, names) in
        [("Tools", &summary.tools), ("Agents", &summary.agents), ("Tenants", &summary.tenants), ("Threads hit most", &summary.threads)]
    {
        write_names(out, title, names)?;
    }
    writeln!(out, "</body></html>")
}

/// Writes what the rules against abuse find.
fn write_abuse(out: &mut String, abuse: &Suspensions) -> fmt::Result {
    let Suspensions { calls, blocked: [one, other], suspended, freed, rules, uncounted } = abuse;
    write!(out, "<h2>Abuse</h2><p>Suspensions by rules block {one} calls under A and {other} under B, of {calls}. ")?;
    write!(
        out,
        "<span id=\"suspended\">{suspended}</span> calls ({}) are blocked by one under B and not under A, ",
        percent(*suspended, *calls)
    )?;
    write!(out, "{freed} the other way.</p>")?;
    for (label, sentences) in ["A", "B"].into_iter().zip(uncounted) {
        sentences.iter().try_for_each(|sentence| write!(out, "<p>{label}: {}</p>", escaped(sentence)))?;
    }
    write!(out, "<table id=\"abuse\"><tr><th>rule</th>")?;
    for title in ["A catches", "B catches", "gained", "lost", "A suspends", "B suspends"] {
        write!(out, "<th class=\"number\">{title}</th>")?;
    }
    write!(out, "</tr>")?;
    for found in rules {
        write!(out, "<tr><td>{}", escaped(&found.rule))?;
        for (label, _) in ["A", "B"].into_iter().zip(found.paused).filter(|(_, is_paused)| *is_paused) {
            write!(out, "<p>paused under {label}, because it was about to suspend too many at once</p>")?;
        }
        write!(out, "<details><summary>examples</summary>")?;
        for (what, subjects) in found.examples.lists() {
            write!(out, "<p>{what}:</p>")?;
            subjects.iter().try_for_each(|subject| write!(out, "<p><code>{}</code></p>", escaped(subject)))?;
        }
        write!(out, "</details></td>")?;
        let [caught_one, caught_other] = found.caught;
        let [suspended_one, suspended_other] = found.suspended;
        for number in [caught_one, caught_other, found.gained, found.lost, suspended_one, suspended_other] {
            write!(out, "<td class=\"number\">{number}</td>")?;
        }
        write!(out, "</tr>")?;
    }
    write!(out, "</table>")
}

fn write_side(out: &mut String, label: &str, side: &SideSummary) -> fmt::Result {
    let actions: Vec<_> = side.actions.iter().map(|(action, verdicts)| format!("{action} {verdicts}")).collect();
    let versions: Vec<_> = side.policy_versions.iter().map(|version| format!("<code>{}</code>", escaped(version))).collect();
    write!(
        out,
        "<tr><th>{label}</th><td>{}</td><td>{}</td><td>{}</td></tr>",
        escaped(&side.name),
        versions.join(", "),
        escaped(&actions.join(", "))
    )
}

fn write_changes(out: &mut String, changes: &[ChangeSummary], verdicts: u64) -> fmt::Result {
    let most = changes.iter().map(|change| change.flips).max().unwrap_or_default();
    write!(out, "<h2>What changes</h2><table id=\"changes\"><tr><th>A</th><th>B</th><th class=\"number\">verdicts</th>")?;
    write!(out, "<th class=\"number\">of all</th><th></th></tr>")?;
    for ChangeSummary { from, to, flips, examples } in changes {
        write!(out, "<tr><td>{}</td><td>{}<details><summary>examples</summary>", side(from), side(to))?;
        for example in examples {
            let place = format!("{}/{}/{}", example.topic, example.partition, example.offset);
            let (thread, event) = (escaped(&example.thread_id), escaped(&example.event_id));
            write!(out, "<p>thread <code>{thread}</code>, event <code>{event}</code>, at <code>{}</code></p>", escaped(&place))?;
        }
        write!(out, "</details></td>")?;
        write_share(out, *flips, verdicts, *flips, most)?;
        write!(out, "</tr>")?;
    }
    write!(out, "</table>")
}

fn side(side: &Side) -> String {
    format!("{} <code>{}</code>", side.action.as_str(), escaped(&side.code))
}

fn write_names(out: &mut String, title: &str, names: &[Named]) -> fmt::Result {
    let Some(first) = names.first() else { return Ok(()) };
    write!(out, "<h2>{title}</h2><table><tr><th></th><th class=\"number\">differ</th><th class=\"number\">share</th><th></th></tr>")?;
    for Named { name, share } in names {
        write!(out, "<tr><td>{}</td>", escaped(name))?;
        write_share(out, share.flips, share.verdicts, share.flips, first.share.flips)?;
        write!(out, "</tr>")?;
    }
    write!(out, "</table>")
}

/// Writes the cells of a count: itself, its share and its bar.
fn write_share(out: &mut String, flips: u64, of: u64, length: u64, most: u64) -> fmt::Result {
    let width = length as f64 * 100.0 / most.max(1) as f64;
    write!(
        out,
        "<td class=\"number\">{flips}</td><td class=\"number\">{}</td><td class=\"bar\">",
        if of > 0 { percent(flips, of) } else { String::new() }
    )?;
    write!(
        out,
        "<svg height=\"14\" role=\"img\" aria-label=\"{flips}\"><rect class=\"bar\" height=\"14\" width=\"{width:.1}%\"/></svg></td>"
    )
}

/// Draws how much differs over time.
fn write_times(out: &mut String, times: &[At]) -> fmt::Result {
    let (Some(first), Some(last)) = (times.first(), times.last()) else { return Ok(()) };
    let (width, height) = PLOT;
    let share = |at: &At| at.share.flips as f64 / at.share.verdicts.max(1) as f64;
    let highest = times.iter().map(share).fold(0.0, f64::max);
    if highest <= 0.0 {
        return Ok(());
    }
    let span = (last.time_ms - first.time_ms).max(1) as f64;
    let bar = width / (times.len() as f64 + 1.0);
    write!(out, "<h2>Over time: the share of verdicts that differ, at most {:.2} %</h2>", highest * 100.0)?;
    write!(out, "<svg id=\"times\" viewBox=\"0 0 {width} {}\" role=\"img\" aria-label=\"share over time\">", height + LABELS)?;
    write!(out, "<line x1=\"0\" x2=\"{width}\" y1=\"{height}\" y2=\"{height}\"/>")?;
    for at in times {
        let x = (at.time_ms - first.time_ms) as f64 / span * (width - bar);
        let tall = share(at) / highest * height;
        write!(out, "<rect class=\"time\" x=\"{x:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{tall:.1}\">", height - tall, bar * 0.9)?;
        let (time, flips, verdicts) = (stamp(at.time_ms), at.share.flips, at.share.verdicts);
        write!(out, "<title>{time}: {flips} of {verdicts}</title></rect>")?;
    }
    let y = height + 13.0;
    write!(out, "<text x=\"0\" y=\"{y}\">{}</text>", stamp(first.time_ms))?;
    write!(out, "<text x=\"{width}\" y=\"{y}\" text-anchor=\"end\">{}</text></svg>", stamp(last.time_ms))
}

/// Returns a text that comes from events so that it stands on a page as it is.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            letter => safe.push(letter),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use tollgate_recordings::compare::Share;

    use super::*;

    fn summary(tool: &str) -> Summary {
        let side = || SideSummary { name: "a.yaml".to_owned(), policy_versions: vec!["p".to_owned()], actions: vec![("allow", 3)] };
        let share = Share { flips: 1, verdicts: 3 };
        Summary {
            sides: [side(), side()],
            records: 4,
            verdicts: 3,
            flips: 1,
            first_flips: 1,
            threads_with_flips: 1,
            unmatched: 0,
            redacted: 0,
            unreadable: [("value_not_json", 2)].into(),
            refused_calls: 0,
            cut_off_calls: 0,
            cut_off_turns: 0,
            abuse: None,
            changes: Vec::new(),
            tools: vec![Named { name: tool.to_owned(), share }],
            agents: Vec::new(),
            tenants: Vec::new(),
            threads: Vec::new(),
            times: vec![At { time_ms: 0, share }, At { time_ms: 60_000, share }],
        }
    }

    #[test]
    fn names_of_events_are_text_and_never_markup() {
        let page = page(&summary("<script>alert('x')</script>\"&"));
        assert!(!page.contains("<script"), "{page}");
        assert!(page.contains("&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;&quot;&amp;"), "{page}");
    }

    #[test]
    fn the_page_needs_nothing_else() {
        let page = page(&summary("bash"));
        assert!(!page.contains("http://") && !page.contains("https://") && !page.contains("src=") && !page.contains("@import"), "{page}");
        assert_eq!(page.matches("class=\"time\"").count(), 2);
    }
}
