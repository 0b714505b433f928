//! `tollgate loops explain`: the steps of one thread, and what the loop controllers in force count.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::ensure;
use clap::Args;
use tollgate_config::settings::Settings;
use tollgate_core::decide::loops::LoopSettings;
use tollgate_core::decide::policy::{Policy, PolicySettings};
use tollgate_recordings::loops::{Explained, Explainer};

use super::{NAMED_MAX, named, read_conversations, read_events, with_event};
use crate::commands::shared::{Column, OutputArgs, Screen, Table, number, shown, text};

#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// The runs, as `report` takes them
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The thread
    #[arg(long, value_name = "ID")]
    thread: String,
    /// The preset to explain by [default: the configuration in force]
    #[arg(long, value_name = "NAME")]
    preset: Option<String>,
    #[command(flatten)]
    output: OutputArgs,
}

const COLUMNS: &[Column] =
    &[number("call"), text("tool"), text("on the call"), number("count"), text("result"), text("on the result"), number("count")];

/// Says which other threads a file has.
fn others_of(threads: &BTreeSet<String>) -> String {
    let names = named(threads.iter().map(String::as_str));
    match threads.len() {
        0 => "no other thread".to_owned(),
        count if count > NAMED_MAX => format!("threads such as {names}"),
        _ => format!("the threads {names}"),
    }
}

/// Names the preset of a configuration.
fn in_force(loops: &LoopSettings) -> String {
    let by = if loops.preset.is_default() { ", as where none is named: give --config or --preset for another" } else { "" };
    format!("the configuration in force, preset {}{by}", loops.preset.name())
}

pub(super) fn execute(args: &ExplainArgs, settings: &Settings, screen: Screen) -> anyhow::Result<ExitCode> {
    let preset =
        args.preset.as_deref().map(|name| PolicySettings::from_value(&serde_json::json!({"tool_loop_guardrails": {"preset": name}})));
    let loops = preset.transpose()?.map_or_else(|| settings.policy.tool_loop_guardrails.clone(), |preset| preset.tool_loop_guardrails);
    say!("tollgate: explained by {}", args.preset.as_deref().map_or_else(|| in_force(&loops), |name| format!("the preset {name}")));
    // The other parts of the gate have no say here.
    let alone = PolicySettings { tool_loop_guardrails: loops, ..PolicySettings::from_yaml("safety_finish_reason: {enabled: false}")? };
    let mut explainer = Explainer::new(Policy::new(&alone))?;
    let mut others = BTreeSet::new();
    if args.file.is_dir() {
        for (name, conversation) in read_conversations(&args.file)? {
            others.insert(name.clone());
            for event in conversation.events.iter().filter(|_| name == args.thread) {
                with_event(event, settings, |event| explainer.note(event))?;
            }
        }
    } else {
        read_events(&args.file, settings, |event| {
            if event.thread_id == args.thread {
                explainer.note(event);
            } else if others.len() <= NAMED_MAX && !others.contains(&*event.thread_id) {
                others.insert(event.thread_id.clone().into_owned());
            }
        })?;
    }
    let steps = explainer.finish();
    ensure!(!steps.is_empty(), "--thread: found no call of this thread in {}, which has {}", args.file.display(), others_of(&others));
    args.output.print(screen, steps.iter(), |_| {
        let mut table = Table::new(COLUMNS);
        steps.iter().for_each(|step| table.row(cells(step)));
        table
    })?;
    Ok(ExitCode::SUCCESS)
}

fn cells(step: &Explained) -> Vec<String> {
    let count = |count: u32| if count == 0 { String::new() } else { count.to_string() };
    vec![
        step.call.to_string(),
        shown(&step.tool).into_owned(),
        step.on_call.clone(),
        count(step.call_count),
        step.result.clone(),
        step.on_result.clone(),
        count(step.result_count),
    ]
}
