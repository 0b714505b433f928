//! `tollgate abuse pardon`: the abuse stage forgets what a subject has done, and ends the suspension that it brought.
//!
//! The request goes through the signals topic, so that what the stage makes of its log stays a function of the log. The command waits until
//! the stage has read it, and tells by the controls what came of it. Operators' records are never touched.

use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::ensure;
use clap::Args;
use serde_json::json;

use tollgate_config::topics::TopicRole;
use tollgate_core::decide::signal::{Request, SubjectKey};
use tollgate_core::settings::did_you_mean;

use tollgate_config::settings::Settings;

use super::requests::{Place, StageView};
use super::switches::{self, AllSwitches, Switches};
use crate::commands::shared::controls_topic::check_keys_of_workers;
use crate::commands::shared::{Finding, Hints, Interrupt, OutputArgs, OutputFormat, UsageError, now_ms, read_duration};
use crate::commands::shared::{SubjectParser, resolve};
use tollgate_operations::{Outgoing, Topic, Topics, publish_all};

#[derive(Debug, Args)]
pub(crate) struct PardonArgs {
    /// Whom it is about: KIND:ID as the events carry it, KIND:- with the id on stdin, which keeps it out of the shell's history, or KIND/HASH
    #[arg(value_name = "SUBJECT", value_parser = SubjectParser, required_unless_present = "rule")]
    subject: Option<String>,
    /// The tenant_id that its events carry; left out: of events without one
    #[arg(long, value_name = "TENANT")]
    tenant: Option<String>,
    /// In place of SUBJECT: everybody whom this rule has suspended and who is so still
    #[arg(long, value_name = "RULE")]
    rule: Option<String>,
    /// Pardon all whom --rule names, however many they are
    #[arg(long, requires = "rule")]
    yes: bool,
    /// How long to wait for the abuse stage, such as 30s; 0s does not wait
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = read_duration)]
    wait: Duration,
    #[command(flatten)]
    output: OutputArgs,
}

/// How a pardon went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ended {
    /// The stage has ended the suspension.
    Pardoned,
    /// There was no suspension by the stage.
    NotSuspended,
    /// The stage has read the request, and a suspension by it is there all the same.
    StillSuspended,
    /// The request is written, and the stage has not read it yet.
    Requested,
}

/// Whom it is about.
struct Pardoned<'a> {
    /// The names of one subject under all keys, or many subjects.
    keys: Vec<SubjectKey>,
    /// The rule that has suspended them, if they are many.
    rule: Option<&'a str>,
}

pub(super) fn execute(args: &PardonArgs, settings: &Settings, hints: &Hints) -> anyhow::Result<ExitCode> {
    let one = args.one(settings)?;
    let topics = Topics::new(&settings.kafka)?;
    let (signals, before) = (topics.find(TopicRole::Signals)?, switches::read(&topics)?);
    let subjects = match (one, args.rule.as_deref()) {
        (None, Some(rule)) => Pardoned { keys: all_of(rule, &before, settings, now_ms())?, rule: Some(rule) },
        (keys, _) => Pardoned { keys: keys.unwrap_or_default(), rule: None },
    };
    if let Some(rule) = subjects.rule {
        let count = subjects.keys.len();
        if count == 0 {
            say!("rule {rule} suspends nobody now; nobody is pardoned");
            return Ok(ExitCode::SUCCESS);
        }
        ensure!(args.yes, "--rule: {count} subjects are suspended by rule {rule}; add --yes to pardon them all");
        say!("pardoning {count} subjects that rule {rule} has suspended");
    }
    let interrupt = Interrupt::watch()?;
    let topics = topics.stopped_by(&interrupt.stop);
    let stage = StageView::before(settings, &topics, args.wait, &interrupt)?;
    let places = send(settings, signals, &subjects.keys)?;
    let keys: Vec<_> = subjects.keys.iter().map(ToString::to_string).collect();
    let mut obeyed = stage.await_obeyed(&places, &keys);
    let after = match switches::read(&topics) {
        // The requests stand in the log, and their outcome is not known.
        Err(_) if interrupt.stop.is_given() => {
            obeyed.fill(false);
            before.clone()
        }
        after => after?,
    };
    let outcomes = subjects.outcomes(&obeyed, &before, &after);
    if args.output.format() == OutputFormat::Json {
        print(signals, &subjects.keys, &places, &outcomes)?;
    }
    if outcomes.contains(&Ended::Requested) {
        stage.tell_requested(&subjects.what(&outcomes), hints);
    }
    subjects.tell(&outcomes, &after, hints);
    let code = interrupt.exit_code().filter(|_| outcomes.contains(&Ended::Requested));
    let is_failure = |ended: &Ended| *ended == Ended::StillSuspended || *ended == Ended::Requested && !args.wait.is_zero();
    Ok(code.unwrap_or(if outcomes.iter().any(is_failure) { ExitCode::FAILURE } else { ExitCode::SUCCESS }))
}

impl PardonArgs {
    /// Returns the names of the subject, if it is one that is meant.
    fn one(&self, settings: &Settings) -> anyhow::Result<Option<Vec<SubjectKey>>> {
        let wrong = |text: &str| Err(UsageError(text.to_owned()).into());
        match (&self.subject, &self.rule) {
            (Some(_), Some(_)) => wrong(
                "--rule: found together with SUBJECT; --rule pardons everybody whom the rule has suspended, so write either --rule or SUBJECT",
            ),
            (None, _) if self.tenant.is_some() => {
                wrong("--tenant: found with --rule, which pardons subjects of every tenant; leave it out")
            }
            (None, _) => Ok(None),
            (Some(subject), None) => {
                let subject = resolve(subject, self.tenant.as_deref(), settings)?;
                if subject.is_hashed {
                    check_keys_of_workers(settings)?;
                }
                Ok(Some(subject.keys))
            }
        }
    }
}

/// Returns everybody whom a rule has suspended until a later time. Who is exempt is among them: the suspension comes into force when the
/// exemption ends.
///
/// # Errors
/// There is nobody, and the configuration does not have the rule.
fn all_of(rule: &str, all: &AllSwitches, settings: &Settings, now_ms: i64) -> anyhow::Result<Vec<SubjectKey>> {
    let is_of = |(_, said): &&(SubjectKey, Switches)| said.machines_beyond(now_ms).is_some_and(|suspended| suspended.rule == rule);
    let keys: Vec<_> = all.0.values().filter(is_of).map(|(key, _)| *key).collect();
    let rules = || settings.abuse.rules.rules.iter().map(|rule| rule.id.as_str());
    if keys.is_empty() && !rules().any(|id| id == rule) {
        let nearest = did_you_mean(rule, rules());
        let text = format!("--rule: the configuration has no rule of this id, and nobody is suspended by one{nearest}");
        return Err(UsageError(text).into());
    }
    Ok(keys)
}

/// Publishes the requests, each on the partition that the subject's signals are on, and returns their places.
fn send(settings: &Settings, signals: Topic<'_>, keys: &[SubjectKey]) -> anyhow::Result<Vec<Place>> {
    let written: Vec<_> = keys.iter().map(|key| (key.to_string(), Request::Pardon(*key).to_value())).collect();
    let outgoing = keys.iter().zip(&written).map(|(key, (name, value))| Outgoing {
        topic: signals.name,
        partition: Some(key.partition(signals.partitions)),
        key: Some(name),
        value: Some(value),
        what: "the pardon",
    });
    publish_all(&settings.kafka, &outgoing.collect::<Vec<_>>())
}

/// Writes a line of JSON for each request.
fn print(signals: Topic<'_>, keys: &[SubjectKey], places: &[Place], outcomes: &[Ended]) -> anyhow::Result<()> {
    let mut out = std::io::BufWriter::new(Finding);
    for ((key, (partition, offset)), ended) in keys.iter().zip(places).zip(outcomes) {
        let line = json!({"topic": signals.name, "partition": partition.0, "offset": offset.0, "subject": key.to_string(),
            "outcome": ended.as_str()});
        writeln!(out, "{line}")?;
    }
    Ok(out.flush()?)
}

impl Pardoned<'_> {
    /// Returns how it went for each key. The keys of one subject went one way.
    fn outcomes(&self, obeyed: &[bool], before: &AllSwitches, after: &AllSwitches) -> Vec<Ended> {
        let is_suspended = |all: &AllSwitches, key: &SubjectKey| all.get(*key).has_machines();
        if self.rule.is_none() {
            let any = |all| self.keys.iter().any(|key| is_suspended(all, key));
            return vec![Ended::of(obeyed.iter().all(|is_obeyed| *is_obeyed), any(before), any(after)); self.keys.len()];
        }
        let each = self.keys.iter().zip(obeyed);
        each.map(|(key, is_obeyed)| Ended::of(*is_obeyed, is_suspended(before, key), is_suspended(after, key))).collect()
    }

    /// Returns the name of one subject, or how many they are.
    fn name(&self) -> String {
        match (self.rule, self.keys.first()) {
            (None, Some(key)) => key.to_string(),
            (_, _) => format!("{} subjects", self.keys.len()),
        }
    }

    /// Returns what stands in the log and is not obeyed yet.
    fn what(&self, outcomes: &[Ended]) -> String {
        match self.rule {
            None => format!("the pardon of {}", self.name()),
            Some(_) => format!("the pardon of {} of {}", count(outcomes, Ended::Requested), self.name()),
        }
    }

    /// Says how it went, and what else can be done.
    fn tell(&self, outcomes: &[Ended], after: &AllSwitches, hints: &Hints) {
        let name = self.name();
        let by = |kind: &str, key: &SubjectKey| hints.command(&format!("control {kind} --kind {} --hash {}", key.kind.as_str(), key.hash));
        match self.rule {
            Some(rule) => {
                let [pardoned, still] = [Ended::Pardoned, Ended::StillSuspended].map(|ended| count(outcomes, ended));
                if pardoned > 0 {
                    say!("pardoned: {pardoned} of {name} that rule {rule} has suspended; what they have done is forgotten");
                }
                if still > 0 {
                    let list = hints.command("abuse blocklist");
                    say!(
                        "tollgate: the abuse stage has read the pardons, and {still} are suspended by a rule all the same; look at: {list}"
                    );
                }
            }
            None => match (outcomes.first(), self.keys.iter().find(|key| after.get(**key).has_machines())) {
                (Some(Ended::Pardoned), _) => say!("pardoned: the suspension of {name} is ended, and what it has done is forgotten"),
                (Some(Ended::NotSuspended), _) => say!("{name} was not suspended by a rule; what it has done is forgotten all the same"),
                (Some(Ended::StillSuspended), Some(key)) => say!(
                    "tollgate: the abuse stage has read the pardon, and its record suspends {name} all the same, because it offended again or the \
                     record cannot be read; lift it with: {}",
                    by("exempt", key)
                ),
                (Some(Ended::Requested), Some(key)) => say!("to lift the suspension at once: {}", by("exempt", key)),
                _ => {}
            },
        }
        // An operator's record is not touched by a pardon.
        let is_said = |key: &&SubjectKey| after.get(**key).is_suspended_by_operators(now_ms());
        let by_operators: Vec<_> = self.keys.iter().filter(is_said).collect();
        match (self.rule, by_operators.len()) {
            (_, 0) => {}
            (Some(_), count) => say!(
                "tollgate: an operator suspends {count} of them still, and a pardon leaves that as it is; who it is: {}",
                hints.command("abuse blocklist --all")
            ),
            (None, _) => by_operators.into_iter().for_each(|key| {
                let resume = by("resume", key);
                say!("tollgate: an operator suspends {key} still, and a pardon leaves that as it is; lift it with: {resume}");
            }),
        }
    }
}

/// Returns how many went this way.
fn count(outcomes: &[Ended], wanted: Ended) -> usize {
    outcomes.iter().filter(|ended| **ended == wanted).count()
}

impl Ended {
    /// Returns how it went, by whether the stage has read the request, and whether it suspended the subject before and does so now.
    fn of(is_obeyed: bool, was_suspended: bool, is_suspended: bool) -> Self {
        match (is_obeyed, was_suspended, is_suspended) {
            (false, ..) => Self::Requested,
            (true, _, true) => Self::StillSuspended,
            (true, true, false) => Self::Pardoned,
            (true, false, false) => Self::NotSuspended,
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::Pardoned => "pardoned",
            Self::NotSuspended => "not_suspended",
            Self::StillSuspended => "still_suspended",
            Self::Requested => "requested",
        }
    }
}

#[cfg(test)]
mod tests {
    use tollgate_core::decide::controls::{AbuseSuspension, ControlRejectionCode, HoldsUntil, SubjectState};
    use tollgate_core::decide::signal::KeyKind;
    use tollgate_json::digest::Digest;

    use super::*;
    use tollgate_config::load;

    fn suspended(subjects: &[(&str, &str, i64)]) -> AllSwitches {
        let mut all = AllSwitches::default();
        for (id, rule, until_ms) in subjects {
            let machines = Some(AbuseSuspension { until_ms: *until_ms, rule: (*rule).to_owned(), step: None, alert_id: None });
            all.0.insert(key(id).to_string(), (key(id), Switches { machines, ..Switches::default() }));
        }
        all
    }

    fn key(id: &str) -> SubjectKey {
        SubjectKey { kind: KeyKind::User, hash: Digest::of(id.as_bytes()) }
    }

    #[test]
    fn nothing_is_claimed_before_the_stage_has_read_the_request() {
        let all = [false, true].map(|was| [false, true].map(|is| [false, true].map(|obeyed| Ended::of(obeyed, was, is))));
        assert_eq!(all[0], [[Ended::Requested, Ended::NotSuspended], [Ended::Requested, Ended::StillSuspended]]);
        assert_eq!(all[1], [[Ended::Requested, Ended::Pardoned], [Ended::Requested, Ended::StillSuspended]]);
    }

    #[test]
    fn each_subject_of_a_rule_has_an_outcome_and_the_names_of_one_have_the_same() {
        let (before, after) = (suspended(&[("a", "r", 9), ("b", "r", 9)]), suspended(&[("b", "r", 9)]));
        let keys = vec![key("a"), key("b")];
        let of_rule = Pardoned { keys: keys.clone(), rule: Some("r") };
        assert_eq!(of_rule.outcomes(&[true, true], &before, &after), [Ended::Pardoned, Ended::StillSuspended]);
        assert_eq!(of_rule.outcomes(&[true, false], &before, &after), [Ended::Pardoned, Ended::Requested]);
        let one = Pardoned { keys, rule: None };
        assert_eq!(one.outcomes(&[true, false], &before, &after), [Ended::Requested; 2]);
        assert_eq!(one.outcomes(&[true, true], &before, &AllSwitches::default()), [Ended::Pardoned; 2]);
    }

    #[test]
    fn a_record_that_cannot_be_read_is_lifted_too() {
        let unreadable = Some(ControlRejectionCode::ValueNotJson);
        let before = AllSwitches([(key("a").to_string(), (key("a"), Switches { unreadable, ..Switches::default() }))].into());
        let one = Pardoned { keys: vec![key("a")], rule: None };
        assert_eq!(one.outcomes(&[true], &before, &AllSwitches::default()), [Ended::Pardoned]);
        assert_eq!(one.outcomes(&[true], &before, &before), [Ended::StillSuspended]);
    }

    #[test]
    fn a_rule_stands_for_whom_it_suspends_now() {
        let settings = load(None, []).unwrap();
        let all = suspended(&[("a", "gone", 100), ("b", "gone", 50), ("c", "safety-stop-user", 100)]);
        assert_eq!(all_of("gone", &all, &settings, 50).unwrap(), [key("a")]);
        assert_eq!(all_of("safety-stop-user", &all, &settings, 100).unwrap(), []);
        let mut exempt = suspended(&[("d", "gone", 100)]);
        let operators = Some(SubjectState::Exempt(HoldsUntil { until_ms: None, reason: None }));
        exempt.0.values_mut().for_each(|(_, said)| said.operators.clone_from(&operators));
        assert_eq!(all_of("gone", &exempt, &settings, 50).unwrap(), [key("d")]);
        let error = all_of("safety-stop-usr", &all, &settings, 0).unwrap_err();
        assert!(error.is::<UsageError>() && error.to_string().ends_with("did you mean safety-stop-user?"), "{error}");
    }
}
