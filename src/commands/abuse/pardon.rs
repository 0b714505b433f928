//! `tollgate abuse pardon`: the abuse stage forgets what a subject has done, and ends the suspension that it brought.
//!
//! The request goes through the signals topic, so that what the stage makes of its log stays a function of the log. The command waits until
//! the stage has taken its own control back. Operators' records are never touched.

use std::io::Write;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use serde_json::json;

use tollgate_core::signal::{Request, SubjectKey};

use crate::settings::{KafkaSettings, Settings};

use super::super::interrupt::Interrupt;
use super::super::output::{now_ms, read_duration};
use super::super::produce::{Outgoing, publish};
use super::super::topics::Topics;
use super::subject::{Resolved, SubjectArgs};
use super::switches::{self, AllSwitches};

/// How often the controls are looked at while the abuse stage is awaited.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);

#[derive(Debug, Args)]
pub(in crate::commands) struct PardonArgs {
    #[command(flatten)]
    subject: SubjectArgs,
    /// How long to wait for the abuse stage, such as 30s; 0s does not wait
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = read_duration)]
    wait: Duration,
}

/// How a pardon went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ended {
    /// The stage has ended the suspension.
    Pardoned,
    /// There was no suspension by the stage.
    NotSuspended,
    /// The request is written, and the stage has not acted on it yet.
    Requested,
}

pub(super) fn execute(args: &PardonArgs, settings: &Settings) -> anyhow::Result<ExitCode> {
    let interrupt = Interrupt::watch()?;
    let (kafka, subject) = (&settings.kafka, args.subject.resolve(settings)?);
    let topics = Topics::new(kafka)?;
    let (signals, before) = (topics.signals()?, switches::read(&topics)?);
    let mut places = Vec::new();
    for key in &subject.keys {
        places.push((*key, send(kafka, signals.name, *key, signals.partitions)?));
    }
    let was_suspended = is_suspended(&before, &subject);
    let deadline = Instant::now() + args.wait;
    let mut after = before;
    while was_suspended && is_suspended(&after, &subject) && Instant::now() < deadline && !interrupt.stop.is_given() {
        std::thread::sleep(LOOK_INTERVAL);
        after = switches::read(&topics)?;
    }
    let ended = match (was_suspended, is_suspended(&after, &subject)) {
        (false, false) => Ended::NotSuspended,
        (true, false) => Ended::Pardoned,
        (_, true) => Ended::Requested,
    };
    let mut out = std::io::stdout().lock();
    for (key, (partition, offset)) in places {
        let line =
            json!({"topic": signals.name, "partition": partition, "offset": offset, "subject": key.to_string(), "outcome": ended.as_str()});
        writeln!(out, "{line}")?;
    }
    out.flush()?;
    tell(ended, args.wait, settings, &subject);
    tell_of_operators(&after, &subject);
    let code = interrupt.exit_code().filter(|_| ended == Ended::Requested);
    Ok(code.unwrap_or(if ended == Ended::Requested && !args.wait.is_zero() { ExitCode::FAILURE } else { ExitCode::SUCCESS }))
}

/// Publishes the request on the partition that the subject's signals are on, and returns its place.
fn send(kafka: &KafkaSettings, topic: &str, key: SubjectKey, partitions: u32) -> anyhow::Result<(i32, i64)> {
    let (name, value) = (key.to_string(), Request::Pardon(key).to_value());
    let partition = Some(key.partition(partitions));
    let outgoing = Outgoing { topic, partition, key: &name, value: Some(&value), what: "the pardon" };
    let (partition, offset) = publish(kafka, &outgoing)?;
    Ok((partition.0, offset.0))
}

/// Returns whether the abuse stage has a control of the subject, be it over or not: it is the stage that takes it back.
fn is_suspended(all: &AllSwitches, subject: &Resolved) -> bool {
    subject.keys.iter().any(|key| all.get(*key).machines.is_some())
}

/// Says how it went, and what can be done if the stage does not answer.
fn tell(ended: Ended, wait: Duration, settings: &Settings, subject: &Resolved) {
    let name = subject.name();
    match ended {
        Ended::Pardoned => say!("pardoned: the suspension of {name} is ended, and what it has done is forgotten"),
        Ended::NotSuspended => say!("{name} was not suspended by a rule; what it has done is forgotten all the same"),
        Ended::Requested => say!(
            "tollgate: the abuse stage has not taken its control of {name} back within {} s: the pardon stands in {}, and is obeyed once the stage \
             reads it. Does a worker run it (`tollgate run`, or `tollgate run --stage abuse`)? How far it lags: tollgate_abuse_clock_lag_seconds. \
             To lift the suspension at once: tollgate control exempt --kind KIND --hash HASH",
            wait.as_secs(),
            settings.kafka.topics.signals
        ),
    }
}

/// Says that an operator's record still suspends the subject: a pardon does not touch it.
fn tell_of_operators(all: &AllSwitches, subject: &Resolved) {
    for key in subject.keys.iter().filter(|key| all.get(**key).is_suspended_by_operators(now_ms())) {
        say!(
            "tollgate: an operator suspends {key} still, and a pardon leaves that as it is; lift it with: tollgate control resume --kind {} --hash {}",
            key.kind.as_str(),
            key.hash
        );
    }
}

impl Ended {
    fn as_str(self) -> &'static str {
        match self {
            Self::Pardoned => "pardoned",
            Self::NotSuspended => "not_suspended",
            Self::Requested => "requested",
        }
    }
}
