//! `tollgate abuse resume`: a rule that stopped enforcing, because it would have suspended too many at once, enforces again.

use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use serde_json::json;

use tollgate_abuse::{AbuseRules, Mode};
use tollgate_config::topics::TopicRole;
use tollgate_core::decide::signal::Request;
use tollgate_core::settings::did_you_mean;

use tollgate_config::settings::Settings;

use super::requests::StageView;
use crate::commands::shared::{Finding, Hints, Interrupt, OutputArgs, OutputFormat, UsageError, read_duration};
use tollgate_operations::{Outgoing, Topics, publish_all};

#[derive(Debug, Args)]
pub(crate) struct ResumeArgs {
    /// The id of the rule
    #[arg(value_name = "RULE")]
    rule: String,
    /// How long to wait for the abuse stage, such as 30s; 0s does not wait
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = read_duration)]
    wait: Duration,
    #[command(flatten)]
    output: OutputArgs,
}

pub(super) fn execute(args: &ResumeArgs, settings: &Settings, hints: &Hints) -> anyhow::Result<ExitCode> {
    let rule = known_rule(&args.rule, &settings.abuse.rules)?;
    let topics = Topics::new(&settings.kafka)?;
    let signals = topics.find(TopicRole::Signals)?;
    let value = Request::Resume(rule.to_owned()).to_value();
    // A rule is paused in each partition for itself. A key belongs on one partition, so that the requests have none.
    let outgoing: Vec<_> = signals
        .all()?
        .into_iter()
        .map(|partition| Outgoing { topic: signals.name, partition: Some(partition), key: None, value: Some(&value), what: "the request" })
        .collect();
    let interrupt = Interrupt::watch()?;
    let topics = topics.stopped_by(&interrupt.stop);
    let stage = StageView::before(settings, &topics, args.wait, &interrupt)?;
    let places = publish_all(&settings.kafka, &outgoing)?;
    // A partition in which it was not paused raises no alert. One that does has read the request as soon as the others.
    let obeyed = stage.await_obeyed(&places, &vec![format!("rule/{rule}"); places.len()]);
    if args.output.format() == OutputFormat::Json {
        let mut out = Finding;
        for ((partition, offset), is_obeyed) in places.iter().zip(&obeyed) {
            let outcome = if *is_obeyed { "resumed" } else { "requested" };
            let line = json!({"topic": signals.name, "partition": partition.0, "offset": offset.0, "rule": rule, "outcome": outcome});
            writeln!(out, "{line}")?;
        }
        out.flush()?;
    }
    let (waiting, all) = (obeyed.iter().filter(|is_obeyed| !**is_obeyed).count(), places.len());
    if waiting == 0 {
        say!("rule {rule} may enforce again, in all {all} partitions; it suspends nobody for what came before");
        return Ok(ExitCode::SUCCESS);
    }
    let what = format!("that rule {rule} may enforce again, in {waiting} of {all} partitions,");
    stage.tell_requested(&what, hints);
    let code = if args.wait.is_zero() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    Ok(interrupt.exit_code().unwrap_or(code))
}

/// Returns the rule's id, if the configuration has the rule and it enforces.
fn known_rule<'r>(id: &str, rules: &'r AbuseRules) -> anyhow::Result<&'r str> {
    let Some(rule) = rules.rules.iter().find(|rule| rule.id == id) else {
        let nearest = did_you_mean(id, rules.rules.iter().map(|rule| rule.id.as_str()));
        return Err(UsageError(format!("RULE: the configuration has no rule of this id{nearest}")).into());
    };
    if rule.mode != Mode::Enforce {
        say!("tollgate: rule {} has mode {} here, so that it suspends nobody; write mode: enforce first", rule.id, rule.mode.as_str());
    }
    Ok(&rule.id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tollgate_config::load;

    #[test]
    fn a_rule_is_one_of_the_configuration() {
        let rules = load(None, []).unwrap().abuse.rules;
        assert_eq!(known_rule("safety-stop-user", &rules).unwrap(), "safety-stop-user");
        let error = known_rule("safety-stop-usr", &rules).unwrap_err();
        assert!(error.is::<UsageError>() && error.to_string().ends_with("did you mean safety-stop-user?"), "{error}");
    }
}
