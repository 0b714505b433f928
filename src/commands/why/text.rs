//! The answer of `tollgate why` for people.

use std::io::Write;

use serde_json::Value;
use tollgate_json::time::parse_timestamp;

use crate::commands::shared::{Column, DIM, OutputFormat, Screen, TITLE, Table, clock, shown, style_of, text};
use tollgate_operations::why::{Answer, ControlThenAndNow, Explained, Other, TurnStep};

const TURN: &[Column] = &[text(""), text("time UTC"), text("event"), text("tool"), text("code"), text("id"), text("call").wide()];

/// Writes an answer.
pub(super) fn write(out: &mut impl Write, answer: &Answer, screen: Screen, format: OutputFormat) -> std::io::Result<()> {
    head(out, answer, screen)?;
    for reason in &answer.reasons {
        write_reason(out, reason)?;
    }
    section(out, screen, "what came before in this turn")?;
    turn_table(answer).write(out, screen, format)?;
    if !answer.is_whole_turn {
        writeln!(out, "the beginning of the turn was not found; --since looks further back")?;
    }
    section(out, screen, "policy and controls")?;
    let whose = if answer.is_own_policy { "the policy of this configuration" } else { "another policy than this configuration" };
    writeln!(out, "{} ({whose})", shown(member(&answer.verdict, "policy_version")))?;
    answer.controls.iter().try_for_each(|control| write_control(out, control))?;
    if answer.controls.is_empty() {
        writeln!(out, "no control of its user, tenant, agent or thread is known")?;
    }
    writeln!(out, "{}", shown(&answer.again.message))?;
    section(out, screen, "what to do")?;
    answer.next.iter().try_for_each(|step| writeln!(out, "- {}", shown(step)))?;
    if !answer.others.is_empty() {
        section(out, screen, "others that fit")?;
        answer.others.iter().try_for_each(|other| write_other(out, other))?;
    }
    Ok(())
}

fn member<'v>(value: &'v Value, name: &str) -> &'v str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn section(out: &mut impl Write, screen: Screen, title: &str) -> std::io::Result<()> {
    writeln!(out, "\n{}", screen.paint(TITLE, title))
}

/// Writes what was asked for: the call, whose it is and when, and the verdict.
fn head(out: &mut impl Write, answer: &Answer, screen: Screen) -> std::io::Result<()> {
    let verdict = &answer.verdict;
    let field = |name: &str| shown(member(verdict, name)).into_owned();
    let action = field("action");
    writeln!(out, "{}  {}", screen.paint(style_of(&action), &action), screen.paint(TITLE, &field("code")))?;
    let names = [
        ("event", "event_id"),
        ("type", "type"),
        ("tool", "tool_name"),
        ("call", "tool_call_id"),
        ("thread", "thread_id"),
        ("turn", "turn_id"),
        ("agent", "agent_id"),
        ("tenant", "tenant_id"),
        ("happened", "timestamp"),
    ];
    for (title, name) in names {
        let text = field(name);
        if !text.is_empty() {
            writeln!(out, "{} {text}", screen.paint(DIM, &format!("{title:<9}")))?;
        }
    }
    if let Some(published) = &answer.published {
        writeln!(out, "{} {published}", screen.paint(DIM, "published"))?;
    }
    if let Some(safety) = verdict.get("safety") {
        let [detector, category, name, value] =
            ["detector", "category", "reason_field", "reason_value"].map(|name| shown(member(safety, name)));
        writeln!(out, "{} {category}, found by {detector} ({name}={value})", screen.paint(DIM, "cut off  "))?;
    }
    if answer.reasons.is_empty() {
        writeln!(out, "\nno part of the gate had anything to say")?;
    }
    Ok(())
}

fn write_reason(out: &mut impl Write, reason: &Explained) -> std::io::Result<()> {
    writeln!(out, "\n{} ({}): {}", shown(&reason.code), shown(&reason.source), shown(&reason.message))?;
    let lines = [
        ("policy", &reason.policy_id),
        ("passport", &reason.passport_digest),
        ("hit", &reason.hit),
        ("allowed", &reason.allowed),
        ("near", &reason.nearest),
    ];
    for (title, text) in lines.into_iter().filter_map(|(title, text)| Some((title, text.as_deref()?))) {
        writeln!(out, "  {title}: {}", shown(text))?;
    }
    writeln!(out, "  explained in {}", reason.page)
}

/// Returns the table of the turn's events. A call that is the same as the one that was asked about is marked.
fn turn_table(answer: &Answer) -> Table {
    let mut table = Table::new(TURN);
    let cell = |text: &Option<String>| shown(text.as_deref().unwrap_or("-")).into_owned();
    for TurnStep { time, event_id, event_type, tool_name, tool_call_id, code, is_same_call, .. } in &answer.turn {
        let time = time.as_deref().and_then(parse_timestamp).map_or_else(|| "-".to_owned(), clock);
        let mark = if *is_same_call { "=" } else { "" };
        let event = event_type.unwrap_or("unreadable");
        table.row(vec![
            mark.to_owned(),
            time,
            event.to_owned(),
            cell(tool_name),
            cell(code),
            shown(event_id).into_owned(),
            cell(tool_call_id),
        ]);
    }
    table
}

fn write_control(out: &mut impl Write, control: &ControlThenAndNow) -> std::io::Result<()> {
    let state = |value: &Option<Value>, nothing: &str| match value {
        None => nothing.to_owned(),
        Some(value) => {
            let members = ["state", "until", "rule", "reason", "by", "at"];
            let members: Vec<_> = members.into_iter().map(|name| member(value, name)).filter(|text| !text.is_empty()).collect();
            if members.is_empty() { "set".to_owned() } else { members.join(", ") }
        }
    };
    writeln!(out, "{}", shown(&control.key))?;
    writeln!(out, "  then: {}", shown(&state(&control.then, "no change before it is known")))?;
    writeln!(out, "  now:  {}", shown(&state(&control.now, "not in force")))
}

fn write_other(out: &mut impl Write, other: &Other) -> std::io::Result<()> {
    let published = other.published.as_deref().unwrap_or("-");
    writeln!(out, "{published}  {}  {}  {}", shown(&other.thread_id), shown(&other.event_id), shown(&other.code))
}
