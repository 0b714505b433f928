//! `tollgate topics apply`: compares the topics with the table, and with `--execute` creates and changes what differs.
//!
//! | file | what |
//! |---|---|
//! | `find` | asks the brokers what there is, for as long as they may take to come up |
//! | `carry_out` | has the brokers check a plan, or carry it out |
//! | `report` | what is printed |
//!
//! What a plan is stands in [`tollgate_config::topics`].

mod carry_out;
mod find;
mod report;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{anyhow, bail};
use clap::{Args, Subcommand};

use tollgate_config::settings::{KafkaSettings, Settings};
use tollgate_config::topics::{Cleanup, Refusal, Surroundings, TOPICS, TopicPlan, TopicWishes, plan};
use tollgate_worker::kafka::check_administration;

use crate::commands::shared::{OutputArgs, Screen, read_duration, start_quiet_logging};
use carry_out::{Mode, Trouble, carry_out};
use find::{ClusterTopics, Finder};
use report::Report;

/// How long a look at the topics may take at the end.
const LOOK_TIME_MAX: Duration = Duration::from_secs(5);
/// How long the brokers may take to show a change that they have taken.
const SETTLE_TIME_MAX: Duration = Duration::from_secs(15);
/// How long to wait before the brokers are asked again.
const PAUSE: Duration = Duration::from_millis(250);
/// Exit code of `--check` where something differs.
const DIFFERS: u8 = 3;

#[derive(Debug, Subcommand)]
pub(super) enum TopicsCommand {
    /// Compare every topic with what Tollgate needs; with --execute, create and change what differs. Nothing is ever deleted
    Apply(ApplyArgs),
}

#[derive(Debug, Args)]
pub(super) struct ApplyArgs {
    /// Partitions of the events topic, and of those that follow it [default: 12 if none of them is there]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    partitions: Option<u32>,
    /// Replicas of each partition [default for new topics: 3, or one for each broker if there are fewer]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    replication_factor: Option<u32>,
    /// Replicas that must have a record before it counts as written [default: 2 where there are 3 replicas or more]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    min_insync_replicas: Option<u32>,
    /// How long a topic holds its records, such as events=7d or dlq=forever; may be given for several topics [default: as it is]
    #[arg(long, value_name = "TOPIC=TIME", value_parser = read_retention)]
    retention: Vec<(&'static str, i64)>,
    /// Create the topics too that no worker needs yet
    #[arg(long)]
    optional: bool,
    /// Create and change what differs
    #[arg(long)]
    execute: bool,
    /// Exit with 3 if something differs
    #[arg(long, conflicts_with = "execute")]
    check: bool,
    /// How long to wait for brokers that are not up yet, such as 60s or 5m
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = read_duration)]
    wait: Duration,
    #[command(flatten)]
    output: OutputArgs,
}

/// Reads a topic's key and how long the topic holds records, in milliseconds.
fn read_retention(text: &str) -> Result<(&'static str, i64), String> {
    let (key, time) = text.split_once('=').ok_or("it has no =; write for example events=7d")?;
    let holds = TOPICS.iter().filter(|spec| matches!(spec.cleanup, Cleanup::Delete { .. })).map(|spec| spec.key).collect::<Vec<_>>();
    let Some(key) = holds.iter().find(|holds| **holds == key) else {
        return Err(format!("there is no such topic, or it is never deleted from; write one of {}", holds.join(", ")));
    };
    if time == "forever" {
        return Ok((key, -1));
    }
    let time = read_duration(time).map_err(|fault| format!("{fault}, or forever"))?;
    let milliseconds = i64::try_from(time.as_millis()).ok().filter(|milliseconds| *milliseconds > 0);
    Ok((key, milliseconds.ok_or("it is no time at all; write 1s or more, or forever")?))
}

pub(super) fn execute(command: &TopicsCommand, settings: Settings, screen: Screen) -> anyhow::Result<ExitCode> {
    start_quiet_logging(settings.log.clone(), "off")?;
    let TopicsCommand::Apply(args) = command;
    apply(args, &settings, screen)
}

fn apply(args: &ApplyArgs, settings: &Settings, screen: Screen) -> anyhow::Result<ExitCode> {
    let (kafka, wishes) = (&settings.kafka, args.wishes());
    check_administration(kafka).map_err(|reason| anyhow!("{reason}"))?;
    let deadline = Instant::now() + args.wait;
    let finder = Finder::new(kafka, (args.optional, settings.abuse.is_on()), args.wait)?;
    let mut report = Report::new(args.execute);
    // Until then a change may take to show.
    let mut settled_by: Option<Instant> = None;
    let mut last_trouble = None;
    loop {
        // Once something was asked for, its outcome is looked up even if the time is up.
        let look_until = settled_by.map_or(deadline, |settled_by| settled_by.max(Instant::now() + LOOK_TIME_MAX));
        let found = finder.find(look_until.max(deadline))?;
        let around = Surroundings { brokers: found.brokers, thread_bytes_max: settings.policy.limits.thread_bytes_max };
        let plans = plans(&found, &wishes, around);
        if Instant::now() < deadline && plans.iter().flat_map(|plan| &plan.refusals).any(Refusal::may_pass) {
            say_once(&mut last_trouble, &too_few_brokers(&plans));
            std::thread::sleep(PAUSE);
            continue;
        }
        let is_refused = plans.iter().any(|plan| !plan.refusals.is_empty());
        if !args.execute {
            return foretell(args, &finder, &found, &plans, report, screen);
        }
        report.take(&plans);
        let is_done = !is_refused && plans.iter().all(TopicPlan::fits) && found.leaderless.is_empty();
        if is_refused || is_done {
            report.print(args.output, screen)?;
            report.summary(&plans);
            return Ok(if is_refused { ExitCode::FAILURE } else { ExitCode::SUCCESS });
        }
        if settled_by.is_some_and(|settled_by| Instant::now() >= settled_by) {
            report.print(args.output, screen)?;
            bail!("{}", unsettled(kafka, &plans, &found, last_trouble.as_deref()));
        }
        let troubles = carry_out(&finder, &found, &plans, Mode::Execute)?;
        report.asked(&plans, &troubles);
        if settled_by.is_none() || (!troubles.is_empty() && Instant::now() < deadline) {
            settled_by = Some(Instant::now() + SETTLE_TIME_MAX);
        }
        let mut failures = Vec::new();
        for trouble in troubles {
            match trouble {
                Trouble::Exists { .. } => {}
                Trouble::Passing { what, .. } => say_once(&mut last_trouble, &what),
                Trouble::Final { what, .. } => failures.push(what),
            }
        }
        if !failures.is_empty() {
            // What else was done shows only now.
            if let Ok(found) = finder.find(Instant::now() + SETTLE_TIME_MAX) {
                report.take(&plan(&found.topics, &wishes, around));
            }
            report.print(args.output, screen)?;
            bail!("{}", failures.join("\n"));
        }
        std::thread::sleep(PAUSE);
    }
}

/// Returns the plan of each topic, with a note on a partition that has no leader.
fn plans<'n>(found: &ClusterTopics<'n>, wishes: &TopicWishes, around: Surroundings) -> Vec<TopicPlan<'n>> {
    let mut plans = plan(&found.topics, wishes, around);
    plans.iter_mut().for_each(|plan| plan.notes.extend(found.leaderless.get(plan.topic.name).cloned()));
    plans
}

/// Prints a plan that is not carried out, once the brokers have checked what they can of it.
fn foretell(
    args: &ApplyArgs,
    finder: &Finder<'_>,
    found: &ClusterTopics<'_>,
    plans: &[TopicPlan<'_>],
    mut report: Report,
    screen: Screen,
) -> anyhow::Result<ExitCode> {
    report.take(plans);
    report.print(args.output, screen)?;
    let is_refused = plans.iter().any(|plan| !plan.refusals.is_empty());
    let troubles = if is_refused { Vec::new() } else { carry_out(finder, found, plans, Mode::Check)? };
    for trouble in &troubles {
        match trouble {
            Trouble::Exists { topic } => say!("tollgate: topic {topic} was created meanwhile; look again"),
            Trouble::Passing { what, .. } | Trouble::Final { what, .. } => say!("tollgate: {what}"),
        }
    }
    report.summary(plans);
    if is_refused || !troubles.is_empty() {
        return Ok(ExitCode::FAILURE);
    }
    let differs = args.check && !plans.iter().all(TopicPlan::fits);
    Ok(if differs { ExitCode::from(DIFFERS) } else { ExitCode::SUCCESS })
}

fn too_few_brokers(plans: &[TopicPlan<'_>]) -> String {
    let refusal = plans.iter().flat_map(|plan| &plan.refusals).find(|refusal| refusal.may_pass());
    refusal.map(|refusal| format!("{refusal}; waiting for the others")).unwrap_or_default()
}

fn say_once(last: &mut Option<String>, what: &str) {
    if last.as_deref() != Some(what) {
        say!("tollgate: {what}");
        *last = Some(what.to_owned());
    }
}

/// Returns what has not come about in time, and why.
fn unsettled(kafka: &KafkaSettings, plans: &[TopicPlan<'_>], found: &ClusterTopics<'_>, trouble: Option<&str>) -> String {
    let wanting = plans.iter().filter(|plan| !plan.changes.is_empty());
    let mut lines: Vec<String> = wanting.map(|plan| carry_out::not_taken(kafka, plan)).collect();
    lines.extend(found.leaderless.values().cloned());
    lines.extend(trouble.map(|trouble| format!("the last trouble was: {trouble}")));
    lines.join("\n")
}

impl ApplyArgs {
    fn wishes(&self) -> TopicWishes {
        TopicWishes {
            partitions: self.partitions,
            replication_factor: self.replication_factor,
            min_insync_replicas: self.min_insync_replicas,
            retention_ms: self.retention.iter().copied().collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retention_is_a_topic_and_a_time() {
        assert_eq!(read_retention("events=7d"), Ok(("events", 604_800_000)));
        assert_eq!(read_retention("dlq=forever"), Ok(("dlq", -1)));
        for (text, says) in [
            ("7d", "write for example events=7d"),
            ("state=7d", "write one of events, decisions, dlq, alerts"),
            ("agent.events=7d", "write one of events, "),
            ("events=7", "such as 90s, 10m, 2h or 1d, or forever"),
            ("events=0s", "no time at all"),
        ] {
            let fault = read_retention(text).unwrap_err();
            assert!(fault.contains(says), "{text}: {fault}");
        }
    }
}
