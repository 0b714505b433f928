//! `tollgate control suspend`, `exempt` and `resume`: one subject, named by its id or by its hash.

use std::process::ExitCode;
use std::time::Instant;

use anyhow::{bail, ensure};
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use serde::Serialize;

use tollgate_config::settings::Settings;
use tollgate_core::decide::controls::{ControlId, Subject, SubjectHasher, decode};
use tollgate_core::decide::ruling::SubjectKind;
use tollgate_json::digest::Digest;

use super::history::{AuditArgs, Change};
use super::write::{follow_up, put, write};
use crate::commands::shared::controls_topic::{Listing, Purpose, WaitArgs, WorkerReports, Written, read_in_time};
use crate::commands::shared::{Hints, fault_of_id, now_ms, read_id, read_until, stamp};

/// Who is meant.
#[derive(Debug, Args)]
pub(crate) struct SubjectArgs {
    /// What it is: user, tenant, agent or thread
    #[arg(long, value_name = "KIND", value_parser = kinds())]
    kind: SubjectKind,
    /// The tenant_id that its events carry; left out: of events without one
    #[arg(long, value_name = "TENANT", conflicts_with = "hash")]
    tenant: Option<String>,
    #[command(flatten)]
    name: Name,
    /// Write it even if the workers do not have this subject key, and so do not find it, or if that cannot be told; and for an id with an
    /// asterisk or a blank at an end
    #[arg(long)]
    force: bool,
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
pub(crate) struct SwitchArgs {
    #[command(flatten)]
    subject: SubjectArgs,
    #[command(flatten)]
    audit: AuditArgs,
    /// From when on it is so no more, by the time of the events: in 90s, 10m, 2h or 1d, or RFC 3339 [default: until it is resumed]
    #[arg(long, value_name = "TIME", value_parser = read_until)]
    until: Option<i64>,
    #[command(flatten)]
    wait: WaitArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ResumeArgs {
    #[command(flatten)]
    subject: SubjectArgs,
    #[command(flatten)]
    audit: AuditArgs,
    #[command(flatten)]
    wait: WaitArgs,
}

/// What an operator sets for a subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Switch {
    Suspended,
    Exempt,
}

/// The value of a subject's record.
#[derive(Debug, Serialize)]
struct SubjectValue<'a> {
    #[serde(rename = "type")]
    control_type: &'static str,
    kind: &'static str,
    hash: Digest,
    #[serde(flatten)]
    change: &'a Change,
}

/// Writes a subject's record.
pub(super) fn switch(switch: Switch, args: &SwitchArgs, settings: &Settings) -> anyhow::Result<ExitCode> {
    let found = args.subject.resolve(settings)?;
    let (kind, hash) = found.first();
    let (value, change) = args.value(switch, kind, hash, now_ms())?;
    let (kafka, id) = (&settings.kafka, ControlId::Subject(kind, hash));
    // A hash needs no key, so that nothing has to be read before it is written.
    let before = args.subject.name.id.is_some().then(|| read_in_time(kafka));
    before.iter().try_for_each(|before| args.subject.check_keys(before, settings, Purpose::Write))?;
    let started = Instant::now();
    let place = put(kafka, &id, Some(&value))?;
    let listing = before.unwrap_or_else(|| read_in_time(kafka));
    let mut places = follow_up(kafka, &listing, &id, place, &change)?;
    // Of the records under several keys the stricter one counts.
    let is_in_force = |id: &ControlId| listing.as_ref().is_ok_and(|listing| listing.is_in_force(id));
    for id in found.earlier.iter().map(|hash| ControlId::Subject(kind, *hash)).filter(is_in_force) {
        places.extend(write(kafka, &listing, &id, None, &change)?);
    }
    let applied = args.wait.await_applied(kafka, (&places, started), listing, switch.written())?;
    if args.wait.is_asked() {
        // What was applied may be about nobody: this is the last that is read.
        args.subject.say_whom();
    }
    Ok(applied)
}

pub(super) fn resume(args: &ResumeArgs, settings: &Settings, hints: &Hints) -> anyhow::Result<ExitCode> {
    let found = args.subject.resolve(settings)?;
    let (kind, listing) = (found.kind, read_in_time(&settings.kafka));
    // Whoever is resumed without being known may be suspended still, under another key or by the abuse stage.
    args.subject.check_keys(&listing, settings, Purpose::LookUp)?;
    let is_in_force = |id: &ControlId| listing.as_ref().is_ok_and(|listing| listing.is_in_force(id));
    // What could not be read may be in force, under an earlier key too.
    let is_known = listing.as_ref().is_ok_and(|listing| !listing.is_partial());
    let ids = found.hashes().map(|hash| ControlId::Subject(kind, hash)).filter(|id| !is_known || is_in_force(id));
    // The abuse stage writes records that can be read. Another one under its key is nobody's, and would suspend without end.
    let is_refused = |id: &ControlId| listing.as_ref().is_ok_and(|listing| listing.is_refused(id));
    let unreadable = found.hashes().map(|hash| ControlId::Abuse(kind, hash)).filter(is_refused);
    let lifted: Vec<_> = ids.chain(unreadable).collect();
    let (change, started) = (args.audit.change("resumed"), Instant::now());
    let written = lifted.iter().map(|id| write(&settings.kafka, &listing, id, None, &change)).collect::<anyhow::Result<Vec<_>>>()?;
    let places = written.concat();
    if lifted.is_empty() {
        let list = hints.command("control list");
        say!("nothing was lifted, and nothing was written: this {} is neither suspended nor exempt; `{list}` tells who is", kind.as_str());
    } else if !lifted.iter().any(is_in_force) {
        let why = listing.as_ref().err().map(|error| format!(": {error:#}")).unwrap_or_default();
        say!("it is written; whether anybody was suspended or exempt cannot be told{why}");
    }
    let is_by_stage = |id: &ControlId| is_in_force(id) && !is_refused(id);
    if let Some(hash) = found.hashes().find(|hash| is_by_stage(&ControlId::Abuse(kind, *hash))) {
        let kind = kind.as_str();
        let pardon = hints.command(&format!("abuse pardon {kind}/{hash}"));
        let exempt = hints.command(&format!("control exempt --kind {kind} --hash {hash}"));
        say!(
            "the abuse stage has suspended this {kind} too, which stays in force; pardon it with: {pardon}; or let no rule suspend it: {exempt}"
        );
    }
    if lifted.is_empty() {
        Ok(ExitCode::FAILURE)
    } else {
        args.wait.await_applied(&settings.kafka, (&places, started), listing, Written::Permission)
    }
}

impl Switch {
    fn written(self) -> Written {
        match self {
            Self::Suspended => Written::Restriction,
            Self::Exempt => Written::Permission,
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::Suspended => "suspended",
            Self::Exempt => "exempt",
        }
    }
}

impl SwitchArgs {
    /// Returns the record's value, checked as workers check it, and the change that it is.
    fn value(&self, switch: Switch, kind: SubjectKind, hash: Digest, now_ms: i64) -> anyhow::Result<(Vec<u8>, Change)> {
        ensure!(
            self.until.is_none_or(|until_ms| until_ms > now_ms),
            "--until: that moment has passed, so nobody would be {}; write a later one",
            switch.as_str()
        );
        let change = Change { until: self.until.map(stamp), ..self.audit.change(switch.as_str()) };
        let value = serde_json::to_vec(&SubjectValue { control_type: "subject", kind: kind.as_str(), hash, change: &change })?;
        let key = ControlId::Subject(kind, hash).to_string();
        match decode(Some(key.as_bytes()), Some(&value)) {
            Err(rejection) => bail!("--{rejection}"),
            Ok(_) => Ok((value, change)),
        }
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
            say!("tollgate: privacy.subject_key is not set: whoever can guess this id can tell its hash");
        }
        let subject = Subject { kind: self.kind, tenant: self.tenant.as_deref().unwrap_or_default(), id: &id };
        if let Some(fault) = fault_of_id(&subject, "--id").filter(|_| !self.force) {
            bail!("{fault}, or --force if an id is spelled so");
        }
        self.say_whom();
        let earlier = settings.subject_keys.iter().skip(1).map(|key| SubjectHasher::new(Some(key)).hash(&subject)).collect();
        Ok(Resolved { kind: self.kind, first: hasher.hash(&subject), earlier })
    }

    /// Says whom an id covers.
    fn say_whom(&self) {
        let kind = self.kind.as_str();
        match self.tenant.as_deref().filter(|tenant| !tenant.is_empty()) {
            _ if self.name.id.is_none() || self.kind == SubjectKind::Tenant => {}
            Some(tenant) => say!("tollgate: this is the {kind} of events that carry the tenant_id {tenant}, and of no others"),
            None => say!(
                "tollgate: without --tenant this is the {kind} of events that carry no tenant_id; events that carry one are not concerned"
            ),
        }
    }

    /// Refuses an id that was hashed under other keys than the workers have, as far as the purpose needs them, unless the command is forced. A
    /// hash needs no key.
    ///
    /// # Errors
    /// The keys differ, or the topic could not be read, so that this cannot be told.
    fn check_keys(&self, listing: &anyhow::Result<Listing>, settings: &Settings, purpose: Purpose) -> anyhow::Result<()> {
        let unknown = if self.name.hash.is_some() { "what is in force" } else { "whether the workers have this subject key" };
        let listing = match listing {
            Ok(_) if self.name.hash.is_some() => return Ok(()),
            Ok(listing) => listing,
            Err(error) if self.force => {
                say!("tollgate: {unknown} cannot be told: {error:#}");
                return Ok(());
            }
            Err(error) => bail!("nothing was written: {unknown} cannot be told: {error:#}; write --force to write it all the same"),
        };
        match WorkerReports::of(listing.reports()).check_keys(&settings.kafka.group_id, settings.subject_keys.iter(), purpose) {
            Err(error) if self.force => say!("tollgate: {error:#}: it goes on, as --force says"),
            Err(error) => bail!("{error:#}, or write --force"),
            Ok(()) => {}
        }
        Ok(())
    }
}

/// Reads a kind. The names are a closed set, which the help, errors and completions show.
fn kinds() -> impl TypedValueParser<Value = SubjectKind> {
    PossibleValuesParser::new(SubjectKind::ALL.map(SubjectKind::as_str))
        .try_map(|name| SubjectKind::from_name(&name).ok_or("write user, tenant, agent or thread"))
}

fn read_hash(text: &str) -> Result<Digest, String> {
    Digest::parse(text).ok_or_else(|| "write 64 lower-case hex digits; tables show the first of them, and -o wide all".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;
    use tollgate_core::decide::controls::{Control, HoldsUntil, SubjectState};

    fn args(reason: Option<&str>, until: Option<i64>) -> SwitchArgs {
        let subject = SubjectArgs { kind: SubjectKind::User, tenant: None, name: Name { id: None, hash: None }, force: false };
        let audit = AuditArgs { by: Some("alice".to_owned()), reason: reason.map(str::to_owned) };
        SwitchArgs { subject, audit, until, wait: WaitArgs::default() }
    }

    #[test]
    fn what_is_written_is_a_control_that_workers_take_and_says_who_wrote_it() {
        let (now, hash) = (1_767_225_600_000, Digest::of(b"x"));
        let value = |switch, args: &SwitchArgs| args.value(switch, SubjectKind::User, hash, now).map(|(value, _)| value);
        let key = ControlId::Subject(SubjectKind::User, hash).to_string();
        let written = |switch| value(switch, &args(Some("\"chargeback\" é"), Some(now + 1_000))).unwrap();
        let holds = HoldsUntil { reason: Some("\"chargeback\" é".to_owned()), until_ms: Some(now + 1_000) };
        for (switch, state) in
            [(Switch::Suspended, SubjectState::Suspended(holds.clone())), (Switch::Exempt, SubjectState::Exempt(holds.clone()))]
        {
            let expected = Control::Subject(SubjectKind::User, hash, Some(state));
            assert_eq!(decode(Some(key.as_bytes()), Some(&written(switch))), Ok(expected));
            assert!(value(switch, &args(None, None)).is_ok());
        }
        let said: Value = serde_json::from_slice(&written(Switch::Suspended)).unwrap();
        assert_eq!((&said["by"], &said["until"]), (&Value::from("alice"), &Value::from("2026-01-01T00:00:01.000Z")));
        assert!(said["tool"].as_str().unwrap().starts_with("tollgate ") && said["at"].is_string());
        for (bad, says) in [
            (args(Some(&"x".repeat(257)), None), "--reason: found a string of 257 bytes"),
            (args(None, Some(now)), "--until: that moment has passed"),
        ] {
            let error = value(Switch::Exempt, &bad).unwrap_err().to_string();
            assert!(error.starts_with(says), "{error}");
        }
    }
}
