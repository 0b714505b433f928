//! `tollgate shadow report`: what a policy on trial would have changed, from the topic that `run --shadow` writes.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::process::ExitCode;

use anyhow::ensure;
use clap::{Args, Subcommand};
use rdkafka::Message as _;

use tollgate_config::settings::Settings;
use tollgate_config::topics::TopicRole;
use tollgate_recordings::compare::{Trial, TrialSummary};

use crate::commands::shared::flips::{THREADS, short, write_flips};
use crate::commands::shared::{Finding, OutputArgs, OutputFormat, Screen, TITLE, UsageError, read_since, start_quiet_logging};
use tollgate_operations::Topics;

#[derive(Debug, Subcommand)]
pub(super) enum ShadowCommand {
    /// What a policy on trial would have changed, by change, tool, agent and thread
    Report(ReportArgs),
}

#[derive(Debug, Args)]
pub(super) struct ReportArgs {
    /// Only verdicts since then: a duration such as 10m or 2h, or RFC 3339
    #[arg(long, value_name = "TIME", value_parser = read_since)]
    since: Option<i64>,
    /// Only verdicts before then
    #[arg(long, value_name = "TIME", value_parser = read_since)]
    until: Option<i64>,
    #[command(flatten)]
    output: OutputArgs,
}

pub(super) fn execute(ShadowCommand::Report(args): &ShadowCommand, settings: Settings, screen: Screen) -> anyhow::Result<ExitCode> {
    start_quiet_logging(settings.log.clone(), "error")?;
    if let (Some(since), Some(until)) = (args.since, args.until) {
        ensure!(since < until, UsageError("--until: found a time that does not come behind --since; write a later one".to_owned()));
    }
    let topics = Topics::new(&settings.kafka)?;
    let found = args.read(&topics)?.summary();
    match args.output.format() {
        OutputFormat::Json => writeln!(Finding, "{}", serde_json::to_string(&found)?)?,
        format => write(&mut Finding, &found, (screen, format))?,
    }
    if found.flips == 0 {
        say!(
            "topic {} holds no verdict that would have differed in that time; `tollgate run --shadow FILE` writes them",
            settings.kafka.topics.shadow
        );
    }
    if found.shadow_policy_versions.len() > 1 {
        say!("these are verdicts of {} policies on trial; --since and --until name the time of one", found.shadow_policy_versions.len());
    }
    Ok(ExitCode::SUCCESS)
}

impl ReportArgs {
    /// Reads every partition to where it ends now.
    fn read(&self, topics: &Topics<'_>) -> anyhow::Result<Trial> {
        let topic = topics.find(TopicRole::Shadow)?;
        let mut trial = Trial::default();
        for partition in topic.all()? {
            let (begin, end) = topics.ends(topic, partition)?;
            if begin >= end {
                continue;
            }
            topics.read_from(topic, partition, begin, |message| {
                let time_ms = message.timestamp().to_millis();
                if message.offset() < end.0 && self.means(time_ms) {
                    trial.take(message.key(), message.payload(), time_ms);
                }
                message.offset() + 1 < end.0
            })?;
        }
        Ok(trial)
    }

    fn means(&self, time_ms: Option<i64>) -> bool {
        let is = |bound: Option<i64>, holds: fn(i64, i64) -> bool| bound.is_none_or(|bound| time_ms.is_some_and(|time| holds(time, bound)));
        is(self.since, |time, since| time >= since) && is(self.until, |time, until| time < until)
    }
}

fn write(out: &mut impl Write, found: &TrialSummary, (screen, format): (Screen, OutputFormat)) -> io::Result<()> {
    let TrialSummary { policy_versions, shadow_policy_versions, flips, threads_with_flips, repeated, others, .. } = found;
    let versions = |versions: &BTreeSet<String>| versions.iter().map(|version| short(version)).collect::<Vec<_>>().join(", ");
    writeln!(out, "{}  in force: policy {}", screen.paint(TITLE, "A"), versions(policy_versions))?;
    writeln!(out, "{}  on trial: policy {}", screen.paint(TITLE, "B"), versions(shadow_policy_versions))?;
    writeln!(out, "\n{flips} verdicts would have differed, in {threads_with_flips} threads")?;
    if *repeated > 0 {
        writeln!(out, "{repeated} records came twice and count once")?;
    }
    if *others > 0 {
        writeln!(out, "{others} records of the topic are no such verdicts")?;
    }
    if *flips == 0 {
        return out.flush();
    }
    let names = [("Tools", &found.tools), ("Agents", &found.agents), (THREADS, &found.threads)];
    write_flips(out, &found.changes, 0, &names, (screen, format))?;
    out.flush()
}
