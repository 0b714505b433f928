//! `tollgate abuse resume`: a rule that stopped enforcing, because it would have suspended too many at once, enforces again.

use std::io::Write;
use std::process::ExitCode;

use clap::Args;
use serde_json::json;

use tollgate_core::abuse::{AbuseRules, Mode};
use tollgate_core::settings::nearest;
use tollgate_core::signal::Request;

use crate::settings::Settings;

use super::super::UsageError;
use super::super::produce::{Outgoing, publish};
use super::super::topics::Topics;

#[derive(Debug, Args)]
pub(in crate::commands) struct ResumeArgs {
    /// The id of the rule
    #[arg(value_name = "RULE")]
    rule: String,
}

pub(super) fn execute(args: &ResumeArgs, settings: &Settings) -> anyhow::Result<ExitCode> {
    let rule = known_rule(&args.rule, &settings.abuse.rules)?;
    let kafka = &settings.kafka;
    let signals = Topics::new(kafka)?.signals()?;
    let (key, value) = (format!("rule/{rule}"), Request::Resume(rule.to_owned()).to_value());
    let mut out = std::io::stdout().lock();
    // A rule is paused in each partition for itself.
    for partition in signals.all()? {
        let outgoing = Outgoing { topic: signals.name, partition: Some(partition), key: &key, value: Some(&value), what: "the request" };
        let (partition, offset) = publish(kafka, &outgoing)?;
        let line = json!({"topic": signals.name, "partition": partition.0, "offset": offset.0, "rule": rule});
        writeln!(out, "{line}")?;
    }
    out.flush()?;
    say!(
        "rule {rule} may enforce again, in all {} partitions, once the abuse stage has read this; it suspends nobody for what came before",
        signals.partitions
    );
    Ok(ExitCode::SUCCESS)
}

/// Returns the rule's id, if the configuration has the rule and it enforces.
fn known_rule<'r>(id: &str, rules: &'r AbuseRules) -> anyhow::Result<&'r str> {
    let Some(rule) = rules.rules.iter().find(|rule| rule.id == id) else {
        let nearest =
            nearest(id, rules.rules.iter().map(|rule| rule.id.as_str())).map(|id| format!("; did you mean {id}?")).unwrap_or_default();
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
    use crate::config::load;

    #[test]
    fn a_rule_is_one_of_the_configuration() {
        let rules = load(None, []).unwrap().abuse.rules;
        assert_eq!(known_rule("safety-stop-user", &rules).unwrap(), "safety-stop-user");
        let error = known_rule("safety-stop-usr", &rules).unwrap_err();
        assert!(error.is::<UsageError>() && error.to_string().ends_with("did you mean safety-stop-user?"), "{error}");
    }
}
