//! `tollgate control passport`: sets and removes the passports of agents.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, anyhow, bail};
use clap::Subcommand;

use tollgate_config::settings::KafkaSettings;
use tollgate_core::decide::controls::{CONTROL_BYTES_MAX, ControlId, decode};
use tollgate_passport::Passport;

use super::super::hints::Hints;
use super::written::{is_in_force, write};

#[derive(Debug, Subcommand)]
pub(in crate::commands) enum PassportCommand {
    /// Set an agent's passport
    Set {
        /// The agent_id that its events carry
        #[arg(value_parser = read_agent)]
        agent: String,
        /// The passport as JSON; `-` is stdin
        file: PathBuf,
    },
    /// Remove an agent's passport
    Remove {
        /// The agent_id that its events carry
        #[arg(value_parser = read_agent)]
        agent: String,
    },
}

pub(super) fn execute(command: &PassportCommand, kafka: &KafkaSettings, hints: &Hints) -> anyhow::Result<ExitCode> {
    match command {
        PassportCommand::Set { agent, file } => {
            let text = read_file(file)?;
            let passport = Passport::read(&text).map_err(|fault| anyhow!("{}: no passport: {fault}", file.display()))?;
            write(kafka, &ControlId::Passport(agent.clone()), Some(&value(agent, &text)?))?;
            say!("its digest is sha256:{}", passport.digest);
        }
        PassportCommand::Remove { agent } => {
            let id = ControlId::Passport(agent.clone());
            let was_in_force = is_in_force(kafka, &id);
            write(kafka, &id, None)?;
            match was_in_force {
                Ok(true) => {}
                Ok(false) => say!("there was no passport of {agent}; `{}` tells whose there are", hints.command("control list")),
                // The passport is removed all the same.
                Err(error) => say!("whether there was one cannot be told: {error:#}"),
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the record's value. The passport stands in it byte for byte as in the file, so that its digest is the file's.
fn value(agent: &str, text: &[u8]) -> anyhow::Result<Vec<u8>> {
    let agent_id = serde_json::to_string(agent)?;
    let value = [br#"{"type":"passport","agent_id":"#, agent_id.as_bytes(), br#","passport":"#, text, b"}"].concat();
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

    #[test]
    fn a_passport_keeps_its_text() {
        let text = b"{ \"status\": \"active\", \"limit\": 1.10 }";
        let value = value("team \"a\"/coder", text).unwrap();
        assert!(value.ends_with(b"\"passport\":{ \"status\": \"active\", \"limit\": 1.10 }}"));
        let read = decode(Some(b"passport/team \"a\"/coder"), Some(&value)).unwrap();
        let expected = Passport::read(text).unwrap();
        assert_eq!(read, Control::Passport("team \"a\"/coder".to_owned(), Some(std::sync::Arc::new(expected))));
    }

    #[test]
    fn what_is_no_passport_is_not_written() {
        for bad in ["[]", "null", "{", ""] {
            assert!(value("coder", bad.as_bytes()).is_err(), "{bad}");
        }
        let large = format!("{{\"x\":\"{}\"}}", "x".repeat(CONTROL_BYTES_MAX));
        assert!(value("coder", large.as_bytes()).unwrap_err().to_string().contains("at most 1 MiB"));
        assert!(read_agent("").is_err() && read_agent(&"x".repeat(513)).is_err() && read_agent("a/b").is_ok());
    }
}
