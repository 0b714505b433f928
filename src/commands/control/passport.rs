//! `tollgate control passport`: sets and removes the passports of agents.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context as _, anyhow, bail, ensure};
use clap::Subcommand;

use tollgate_config::settings::KafkaSettings;
use tollgate_core::decide::controls::{CONTROL_BYTES_MAX, ControlId, decode};
use tollgate_core::decide::ids::{NO_ID, is_no_id};
use tollgate_passport::{Passport, check_schema};

use super::history::{AuditArgs, Change, Signed};
use super::write::{follow_up, put, write};
use crate::commands::shared::Hints;
use crate::commands::shared::controls_topic::{WaitArgs, Written, read_in_time};
use crate::commands::shared::passport::{denies_every_call, fault_lines};

#[derive(Debug, Subcommand)]
pub(crate) enum PassportCommand {
    /// Set an agent's passport
    Set {
        /// The agent_id that its events carry
        #[arg(value_parser = read_agent)]
        agent: String,
        /// The passport as JSON; `-` is stdin
        file: PathBuf,
        /// Set it even if every call under it is denied, or the agent's id looks like a pattern
        #[arg(long)]
        force: bool,
        #[command(flatten)]
        audit: AuditArgs,
        #[command(flatten)]
        wait: WaitArgs,
    },
    /// Remove an agent's passport
    Remove {
        /// The agent_id that its events carry
        #[arg(value_parser = read_agent)]
        agent: String,
        #[command(flatten)]
        audit: AuditArgs,
        #[command(flatten)]
        wait: WaitArgs,
    },
}

/// Returns whether a passport says itself that its agent is stopped. The way to stop an agent asks for no second word.
fn is_meant_to_deny(passport: &[u8]) -> bool {
    let passport: serde_json::Value = serde_json::from_slice(passport).unwrap_or_default();
    let status = passport.get("status").and_then(serde_json::Value::as_str).unwrap_or_default();
    ["suspended", "revoked"].contains(&status) || passport.get("revoked").and_then(serde_json::Value::as_bool) == Some(true)
}

pub(super) fn execute(command: &PassportCommand, kafka: &KafkaSettings, hints: &Hints) -> anyhow::Result<ExitCode> {
    match command {
        PassportCommand::Set { agent, file, force, audit, wait } => {
            ensure!(*force || !is_no_id(agent), "AGENT: {NO_ID}, or --force if an id is spelled so");
            let text = read_file(file)?;
            let passport = Passport::read(&text).map_err(|fault| anyhow!("{}: no passport: {fault}", file.display()))?;
            check_schema(&text)?.iter().for_each(|fault| say!("{}", fault_lines(fault)));
            if let Some(why) = denies_every_call(&passport)? {
                if !force && !is_meant_to_deny(&text) {
                    bail!(
                        "{}: every call of {agent} would be denied: {why}; mend it, or write --force to set it all the same",
                        file.display()
                    );
                }
                say!("tollgate: every call of {agent} will be denied: {why}");
            }
            let digest = format!("sha256:{}", passport.digest);
            let change = Change { digest: Some(digest.clone()), ..audit.change("set") };
            let id = ControlId::Passport(agent.clone());
            let (value, started) = (value(agent, &text, &change.signed)?, Instant::now());
            let (place, listing) = (put(kafka, &id, Some(&value))?, read_in_time(kafka));
            let places = follow_up(kafka, &listing, &id, place, &change)?;
            say!("its digest is {digest}");
            wait.await_applied(kafka, (&places, started), listing, Written::Passport)
        }
        PassportCommand::Remove { agent, audit, wait } => {
            let (id, listing) = (ControlId::Passport(agent.clone()), read_in_time(kafka));
            match &listing {
                Ok(listing) if listing.is_in_force(&id) || listing.is_partial() => {}
                Ok(_) => {
                    let list = hints.command("control list");
                    say!("nothing was written: there is no passport of {agent}; `{list}` tells whose there are");
                    return Ok(ExitCode::FAILURE);
                }
                // The passport is removed all the same.
                Err(error) => say!("whether there was one cannot be told: {error:#}"),
            }
            let started = Instant::now();
            let places = write(kafka, &listing, &id, None, &audit.change("removed"))?;
            wait.await_applied(kafka, (&places, started), listing, Written::Permission)
        }
    }
}

/// Returns the record's value. The passport stands in it byte for byte as in the file, so that its digest is the file's.
fn value(agent: &str, text: &[u8], signed: &Signed) -> anyhow::Result<Vec<u8>> {
    let (agent_id, signed) = (serde_json::to_string(agent)?, serde_json::to_string(signed)?);
    // Of an object with fields, what follows its brace goes on with ours.
    let signed = signed.strip_prefix('{').unwrap_or("}");
    let value = [br#"{"type":"passport","agent_id":"#, agent_id.as_bytes(), br#","passport":"#, text, b",", signed.as_bytes()].concat();
    let key = ControlId::Passport(agent.to_owned()).to_string();
    match decode(Some(key.as_bytes()), Some(&value)) {
        Ok(_) => Ok(value),
        Err(rejection) => bail!("{rejection}"),
    }
}

fn read_file(file: &Path) -> anyhow::Result<Vec<u8>> {
    let input: Box<dyn Read> = if file.as_os_str() == "-" {
        Box::new(std::io::stdin().lock())
    } else {
        Box::new(std::fs::File::open(file).with_context(|| format!("{}: cannot be read", file.display()))?)
    };
    let mut text = Vec::new();
    // One byte more than the limit is read, so that a passport that is too large is refused for its size.
    input.take(CONTROL_BYTES_MAX as u64 + 1).read_to_end(&mut text).with_context(|| format!("{}: cannot be read", file.display()))?;
    Ok(text.trim_ascii().to_vec())
}

fn read_agent(text: &str) -> Result<String, String> {
    match ControlId::read(Some(format!("passport/{text}").as_bytes())) {
        Ok(_) => Ok(text.to_owned()),
        Err(rejection) => Err(format!("it has {} bytes; {}", text.len(), rejection.fix)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tollgate_core::decide::controls::Control;

    fn signed() -> Signed {
        AuditArgs { by: Some("alice".to_owned()), reason: None }.change("set").signed
    }

    #[test]
    fn a_passport_keeps_its_text() {
        let text = b"{ \"status\": \"active\", \"limit\": 1.10 }";
        let value = value("team \"a\"/coder", text, &signed()).unwrap();
        let written = String::from_utf8_lossy(&value);
        assert!(written.contains(r#""passport":{ "status": "active", "limit": 1.10 },"by":"alice","at":"#), "{written}");
        let read = decode(Some(b"passport/team \"a\"/coder"), Some(&value)).unwrap();
        let expected = Passport::read(text).unwrap();
        assert_eq!(read, Control::Passport("team \"a\"/coder".to_owned(), Some(Ok(std::sync::Arc::new(expected)))));
    }

    #[test]
    fn what_is_no_passport_is_not_written() {
        for bad in ["[]", "null", "{", ""] {
            assert!(value("coder", bad.as_bytes(), &signed()).is_err(), "{bad}");
        }
        let large = format!("{{\"x\":\"{}\"}}", "x".repeat(CONTROL_BYTES_MAX));
        assert!(value("coder", large.as_bytes(), &signed()).unwrap_err().to_string().contains("at most 1 MiB"));
        assert!(read_agent("").is_err() && read_agent(&"x".repeat(513)).is_err() && read_agent("a/b").is_ok());
    }
}
