//! `tollgate control suspend`, `exempt` and `resume`: one subject, named by its id or by its hash.

use std::io::Read;
use std::process::ExitCode;

use anyhow::{Context as _, bail, ensure};
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use serde::Serialize;
use time::OffsetDateTime;

use tollgate_config::settings::Settings;
use tollgate_core::decide::controls::{Control, ControlId, Subject, SubjectHasher, SubjectState, decode, parse_hash};
use tollgate_core::decide::ruling::SubjectKind;
use tollgate_json::digest::Digest;

use super::super::hints::Hints;
use super::written::{read, write};

/// The longest id that is read from stdin, in bytes.
const ID_BYTES_MAX: u64 = 65_536;

/// Who is meant.
#[derive(Debug, Args)]
pub(in crate::commands) struct SubjectArgs {
    /// What it is: user, tenant, agent or thread
    #[arg(long, value_name = "KIND", value_parser = kinds())]
    kind: SubjectKind,
    /// The tenant_id that its events carry; left out: of events without one
    #[arg(long, value_name = "TENANT", conflicts_with = "hash")]
    tenant: Option<String>,
    #[command(flatten)]
    name: Name,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct Name {
    /// Its id, as its events carry it; `-` reads it from stdin, which keeps it out of the shell's history
    #[arg(long, value_name = "ID")]
    id: Option<String>,
    /// Its hash, where that is what is known
    #[arg(long, value_name = "HEX", value_parser = read_hash)]
    hash: Option<Digest>,
}

#[derive(Debug, Args)]
pub(in crate::commands) struct SwitchArgs {
    #[command(flatten)]
    subject: SubjectArgs,
    /// Why, in up to 256 bytes; the agent of a suspended subject is told
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// From when on it is so no more, by the time of the events, as RFC 3339 writes it [default: until it is resumed]
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
}

#[derive(Debug, Args)]
pub(in crate::commands) struct ResumeArgs {
    #[command(flatten)]
    subject: SubjectArgs,
}

/// What an operator sets for a subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Switch {
    Suspended,
    Exempt,
}

/// The value of a subject's record.
#[derive(Debug, Serialize)]
struct Written<'a> {
    #[serde(rename = "type")]
    control_type: &'static str,
    kind: &'static str,
    hash: Digest,
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    until: Option<&'a str>,
}

pub(super) fn switch(switch: Switch, args: &SwitchArgs, settings: &Settings) -> anyhow::Result<ExitCode> {
    let (kind, hash) = args.subject.resolve(settings)?.first();
    let value = args.value(switch, kind, hash, OffsetDateTime::now_utc())?;
    write(&settings.kafka, &ControlId::Subject(kind, hash), Some(&value))?;
    Ok(ExitCode::SUCCESS)
}

pub(super) fn resume(args: &ResumeArgs, settings: &Settings, hints: &Hints) -> anyhow::Result<ExitCode> {
    let found = args.subject.resolve(settings)?;
    let (kind, first) = found.first();
    let listing = read(&settings.kafka);
    let is_in_force = |id: &ControlId| listing.as_ref().is_ok_and(|listing| listing.is_in_force(id));
    // What stands under an earlier key would go on. Where the topic could not be read, it may be there.
    let ids: Vec<_> = found.hashes().map(|hash| ControlId::Subject(kind, hash)).collect();
    let is_written = |id: &&ControlId| listing.is_err() || **id == ControlId::Subject(kind, first) || is_in_force(id);
    ids.iter().filter(is_written).try_for_each(|id| write(&settings.kafka, id, None))?;
    match &listing {
        Ok(_) if ids.iter().any(is_in_force) => {}
        Ok(_) => say!("this {} was neither suspended nor exempt; `{}` tells who is", kind.as_str(), hints.command("control list")),
        // It is lifted all the same.
        Err(error) => say!("whether it was suspended or exempt cannot be told: {error:#}"),
    }
    if let Some(hash) = found.hashes().find(|hash| is_in_force(&ControlId::Abuse(kind, *hash))) {
        let kind = kind.as_str();
        let pardon = hints.command(&format!("abuse pardon {kind}/{hash}"));
        let exempt = hints.command(&format!("control exempt --kind {kind} --hash {hash}"));
        say!(
            "the abuse stage has suspended this {kind} too, which stays in force; pardon it with: {pardon}; or let no rule suspend it: {exempt}"
        );
    }
    Ok(ExitCode::SUCCESS)
}

impl Switch {
    fn as_str(self) -> &'static str {
        match self {
            Self::Suspended => "suspended",
            Self::Exempt => "exempt",
        }
    }
}

impl SwitchArgs {
    /// Returns the record's value, checked as workers check it.
    fn value(&self, switch: Switch, kind: SubjectKind, hash: Digest, now: OffsetDateTime) -> anyhow::Result<Vec<u8>> {
        let (reason, until) = (self.reason.as_deref(), self.until.as_deref());
        let written = Written { control_type: "subject", kind: kind.as_str(), hash, state: switch.as_str(), reason, until };
        let value = serde_json::to_vec(&written)?;
        let key = ControlId::Subject(kind, hash).to_string();
        let until_ms = match decode(Some(key.as_bytes()), Some(&value)) {
            Err(rejection) => bail!("--{rejection}"),
            Ok(Control::Subject(_, _, Some(SubjectState::Suspended(holds) | SubjectState::Exempt(holds)))) => holds.until_ms,
            Ok(_) => None,
        };
        let now_ms = i128::from(now.unix_timestamp()) * 1_000;
        ensure!(
            until_ms.is_none_or(|until_ms| i128::from(until_ms) > now_ms),
            "--until: that moment has passed, so nobody would be {}; write a later one",
            switch.as_str()
        );
        Ok(value)
    }
}

/// A subject under each of the configured keys.
struct Resolved {
    kind: SubjectKind,
    first: Digest,
    /// Its hashes under the keys that were the first one once.
    earlier: Vec<Digest>,
}

impl Resolved {
    /// Returns the kind, and the hash that is written.
    fn first(&self) -> (SubjectKind, Digest) {
        (self.kind, self.first)
    }

    fn hashes(&self) -> impl Iterator<Item = Digest> {
        std::iter::once(self.first).chain(self.earlier.iter().copied())
    }
}

impl SubjectArgs {
    /// Returns the subject's kind and hashes: the given hash, or those of its id under the configured keys.
    fn resolve(&self, settings: &Settings) -> anyhow::Result<Resolved> {
        if let Some(hash) = self.name.hash {
            return Ok(Resolved { kind: self.kind, first: hash, earlier: Vec::new() });
        }
        let is_tenant = self.kind == SubjectKind::Tenant;
        ensure!(!is_tenant || self.tenant.is_none(), "--tenant: a tenant has none itself; write --kind tenant --id TENANT");
        let id = match self.name.id.as_deref() {
            Some("-") => read_id(std::io::stdin().lock(), "--id -")?,
            id => id.unwrap_or_default().to_owned(),
        };
        ensure!(!id.is_empty(), "--id: it is empty; write the id that the events carry");
        let hasher = SubjectHasher::new(settings.subject_keys.first());
        if !hasher.is_keyed() {
            say!(
                "tollgate: privacy.subject_key is not set: whoever can guess this id can tell its hash, and workers that have a key do not match it"
            );
        }
        let tenant = self.tenant.as_deref().unwrap_or_default();
        if tenant.is_empty() && !is_tenant {
            say!("tollgate: without --tenant this is the {} of events that carry no tenant_id", self.kind.as_str());
        }
        let subject = Subject { kind: self.kind, tenant, id: &id };
        let earlier = settings.subject_keys.iter().skip(1).map(|key| SubjectHasher::new(Some(key)).hash(&subject)).collect();
        Ok(Resolved { kind: self.kind, first: hasher.hash(&subject), earlier })
    }
}

/// Reads an id: all of the input without its line end. `option` is what asked for it, for errors.
pub(in crate::commands) fn read_id(input: impl Read, option: &str) -> anyhow::Result<String> {
    let mut id = String::new();
    input.take(ID_BYTES_MAX + 1).read_to_string(&mut id).with_context(|| format!("{option}: stdin cannot be read"))?;
    ensure!(id.len() as u64 <= ID_BYTES_MAX, "{option}: stdin has more than {ID_BYTES_MAX} bytes; write one id");
    let line = id.strip_suffix('\n').unwrap_or(&id);
    let line = line.strip_suffix('\r').unwrap_or(line);
    ensure!(!line.contains('\n'), "{option}: stdin has more than one line; write one id");
    Ok(line.to_owned())
}

/// Reads a kind. The names are a closed set, which the help, errors and completions show.
fn kinds() -> impl TypedValueParser<Value = SubjectKind> {
    PossibleValuesParser::new(SubjectKind::ALL.map(SubjectKind::as_str))
        .try_map(|name| SubjectKind::from_name(&name).ok_or("write user, tenant, agent or thread"))
}

fn read_hash(text: &str) -> Result<Digest, String> {
    parse_hash(text).ok_or_else(|| "write 64 lower-case hex digits; tables show the first of them, and -o wide all".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tollgate_core::decide::controls::HoldsUntil;

    fn args(reason: Option<&str>, until: Option<&str>) -> SwitchArgs {
        let subject = SubjectArgs { kind: SubjectKind::User, tenant: None, name: Name { id: None, hash: None } };
        SwitchArgs { subject, reason: reason.map(str::to_owned), until: until.map(str::to_owned) }
    }

    #[test]
    fn what_is_written_is_a_control_that_workers_take() {
        let now = OffsetDateTime::from_unix_timestamp(1_767_225_600).unwrap();
        let hash = Digest::of(b"x");
        let value = |switch, args: &SwitchArgs| args.value(switch, SubjectKind::User, hash, now);
        let key = ControlId::Subject(SubjectKind::User, hash).to_string();
        let written = |switch| value(switch, &args(Some("\"chargeback\" é"), Some("2026-01-01T00:00:01Z"))).unwrap();
        let holds = HoldsUntil { reason: Some("\"chargeback\" é".to_owned()), until_ms: Some(1_767_225_601_000) };
        for (switch, state) in
            [(Switch::Suspended, SubjectState::Suspended(holds.clone())), (Switch::Exempt, SubjectState::Exempt(holds.clone()))]
        {
            let expected = Control::Subject(SubjectKind::User, hash, Some(state));
            assert_eq!(decode(Some(key.as_bytes()), Some(&written(switch))), Ok(expected));
            assert!(value(switch, &args(None, None)).is_ok());
        }
        for (bad, says) in [
            (args(Some(&"x".repeat(257)), None), "--reason: found a string of 257 bytes"),
            (args(None, Some("tomorrow")), "--until: found a string of 8 bytes"),
            (args(None, Some("2026-01-01T00:00:00Z")), "--until: that moment has passed"),
        ] {
            let error = value(Switch::Exempt, &bad).unwrap_err().to_string();
            assert!(error.starts_with(says), "{error}");
        }
    }

    #[test]
    fn an_id_from_stdin_is_one_line() {
        for (input, id) in [("bob", "bob"), ("bob\n", "bob"), ("bob\r\n", "bob"), (" bob \n", " bob "), ("", "")] {
            assert_eq!(read_id(input.as_bytes(), "--id -").unwrap(), id);
        }
        assert!(read_id("bob\nalice\n".as_bytes(), "--id -").unwrap_err().to_string().contains("more than one line"));
        assert!(read_id(&[0xff][..], "--id -").is_err());
        assert!(read_id(std::io::repeat(b'x'), "--id -").unwrap_err().to_string().contains("more than 65536 bytes"));
    }
}
