//! `tollgate control history`: who has switched what, when and why.
//!
//! Compaction removes all but the last record of a control. So each change is noted too, under a key of its own that keeps the last changes of
//! that control. The note is written behind the control, which never waits for it.

use std::os::unix::fs::MetadataExt as _;
use std::process::ExitCode;

use clap::Args;
use serde::{Deserialize, Serialize};

use tollgate_config::settings::Settings;
use tollgate_core::decide::controls::{ControlId, HISTORY};
use tollgate_json::time::parse_timestamp;
use tollgate_worker::control_feed::host_name;

use super::table::history_table;
use crate::commands::shared::controls_topic::{Listing, check_lookup, read};
use crate::commands::shared::{OutputArgs, OutputFormat, Screen, SubjectParser, now_ms, resolve, stamp};
use tollgate_operations::Place;

/// How many changes of a control are kept.
const CHANGES_MAX: usize = 20;
/// The most bytes of a name or reason.
const TEXT_BYTES_MAX: usize = 256;

/// Who makes a change, and why.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct AuditArgs {
    /// Who makes this change, for `control list` and `control history` [default: the user and host of this process]
    #[arg(long, value_name = "NAME", value_parser = short)]
    pub(super) by: Option<String>,
    /// Why, in up to 256 bytes; the agent of a suspended subject is told
    #[arg(long, value_name = "TEXT", value_parser = short)]
    pub(super) reason: Option<String>,
}

/// Who has written a record, when, and with which program. Of a record of another program nothing may be known.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Signed {
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool: Option<String>,
}

/// A change of a control.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Change {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) state: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) until: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) digest: Option<String>,
    #[serde(flatten)]
    pub(super) signed: Signed,
}

/// A change with the place of its record.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct PlacedChange {
    partition: i32,
    offset: i64,
    #[serde(flatten)]
    change: Change,
}

/// The value of the note of a control's changes.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(tag = "type", rename = "history")]
struct Note {
    changes: Vec<PlacedChange>,
}

/// A change as it is shown.
#[derive(Debug, Serialize)]
struct ListedChange {
    key: String,
    #[serde(flatten)]
    noted: PlacedChange,
}

impl AuditArgs {
    /// Returns the change to this state, made now.
    pub(super) fn change(&self, state: &'static str) -> Change {
        let user = || ["USER", "LOGNAME"].iter().find_map(|name| std::env::var(name).ok()).unwrap_or_else(user_number);
        let by = self.by.clone().unwrap_or_else(|| format!("{}@{}", user(), host_name()));
        let tool = concat!("tollgate ", env!("CARGO_PKG_VERSION")).to_owned();
        let signed = Signed { by: Some(by), at: Some(stamp(now_ms())), tool: Some(tool) };
        Change { state: Some(state.to_owned()), reason: self.reason.clone(), until: None, digest: None, signed }
    }
}

/// Returns the number of the process's user, for jobs and containers, whose environment names no user.
fn user_number() -> String {
    std::fs::metadata("/proc/self").map_or_else(|_| "unknown".to_owned(), |process| format!("uid-{}", process.uid()))
}

fn short(text: &str) -> Result<String, String> {
    if text.len() > TEXT_BYTES_MAX {
        return Err(format!("it has {} bytes; write at most {TEXT_BYTES_MAX}", text.len()));
    }
    Ok(text.to_owned())
}

/// Returns the key and the value of the note of a control's changes, of which one more stands at a place.
pub(super) fn noted(listing: &Listing, id: &ControlId, (partition, offset): Place, change: &Change) -> anyhow::Result<(String, Vec<u8>)> {
    let key = format!("{HISTORY}{id}");
    let mut changes = listing.note(&key).map(changes).unwrap_or_default();
    changes.push(PlacedChange { partition: partition.0, offset: offset.0, change: change.clone() });
    let changes = changes.split_off(changes.len().saturating_sub(CHANGES_MAX));
    Ok((key, serde_json::to_vec(&Note { changes })?))
}

fn changes(note: &[u8]) -> Vec<PlacedChange> {
    serde_json::from_slice::<Note>(note).unwrap_or_default().changes
}

/// Returns every known change, the oldest first. Of a record in force that nobody has noted, the record tells.
fn all_changes(listing: &Listing) -> Vec<ListedChange> {
    let mut all: Vec<ListedChange> = Vec::new();
    for (key, note) in listing.notes(HISTORY) {
        let key = key.strip_prefix(HISTORY).unwrap_or_default();
        all.extend(changes(note).into_iter().map(|noted| ListedChange { key: key.to_owned(), noted }));
    }
    for (id, (partition, offset), value) in listing.in_force().filter(|(id, ..)| !matches!(id, ControlId::Abuse(..))) {
        let key = id.to_string();
        if !all.iter().any(|shown| shown.key == key && (shown.noted.partition, shown.noted.offset) == (partition.0, offset.0)) {
            let mut change: Change = serde_json::from_slice(value).unwrap_or_default();
            change.state.get_or_insert_with(|| "set".to_owned());
            all.push(ListedChange { key, noted: PlacedChange { partition: partition.0, offset: offset.0, change } });
        }
    }
    let at = |shown: &ListedChange| shown.noted.change.signed.at.as_deref().and_then(parse_timestamp);
    all.sort_by_key(|shown| (at(shown), shown.noted.partition, shown.noted.offset));
    all
}

#[derive(Debug, Args)]
pub(crate) struct HistoryArgs {
    /// Whom it is about: KIND:ID as the events carry it, KIND:- with the id on stdin, or KIND/HASH [default: every control]
    #[arg(value_name = "SUBJECT", value_parser = SubjectParser)]
    subject: Option<String>,
    /// The tenant_id that its events carry; left out: of events without one
    #[arg(long, value_name = "TENANT", requires = "subject")]
    tenant: Option<String>,
    #[command(flatten)]
    output: OutputArgs,
}

pub(super) fn execute(args: &HistoryArgs, settings: &Settings, screen: Screen) -> anyhow::Result<ExitCode> {
    let keys = match &args.subject {
        None => None,
        Some(subject) => Some(resolve(subject, args.tenant.as_deref(), settings)?.keys),
    };
    let listing = read(&settings.kafka)?;
    if args.subject.as_ref().is_some_and(|subject| subject.contains(':')) {
        check_lookup(&listing, settings)?;
    }
    let keys = keys.map(|keys| keys.iter().map(|key| format!("subject/{key}")).collect::<Vec<_>>());
    let is_wanted = |shown: &ListedChange| keys.as_ref().is_none_or(|keys| keys.contains(&shown.key));
    let shown = all_changes(&listing).into_iter().filter(is_wanted);
    let changes = shown.map(serde_json::to_value).collect::<Result<Vec<_>, _>>()?;
    args.output.print(screen, &changes, |format| history_table(&changes, format == OutputFormat::Wide))?;
    say!("changes: {}; the last {CHANGES_MAX} of each control are kept, if they were made with tollgate control", changes.len());
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tollgate_core::event::record::{Offset, Partition};

    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn a_process_without_a_name_has_a_number() {
        let number = user_number();
        assert!(number.strip_prefix("uid-").is_some_and(|digits| digits.parse::<u32>().is_ok()), "{number}");
    }

    #[test]
    fn the_last_changes_are_kept_and_a_record_that_nobody_noted_tells_of_itself() {
        let (mut listing, id) = (Listing::default(), ControlId::Passport("coder".to_owned()));
        let audit = AuditArgs { by: Some("alice".to_owned()), reason: Some("chargeback".to_owned()) };
        let value = |by: &str| json!({"type": "passport", "agent_id": "coder", "passport": {}, "by": by}).to_string();
        for offset in (0..60).step_by(2) {
            listing.take(Partition(0), Offset(offset), Some(b"passport/coder"), Some(value("alice").as_bytes()));
            let (key, note) = noted(&listing, &id, (Partition(0), Offset(offset)), &audit.change("set")).unwrap();
            listing.take(Partition(0), Offset(offset + 1), Some(key.as_bytes()), Some(&note));
        }
        let all = all_changes(&listing);
        assert_eq!(all.iter().map(|shown| shown.noted.offset).collect::<Vec<_>>(), (20..60).step_by(2).collect::<Vec<_>>());
        let last = serde_json::to_value(all.last().unwrap()).unwrap();
        assert_eq!((&last["key"], &last["by"], &last["reason"]), (&json!("passport/coder"), &json!("alice"), &json!("chargeback")));
        assert!(last["tool"].as_str().unwrap().starts_with("tollgate ") && parse_timestamp(last["at"].as_str().unwrap()).is_some());
        // Another program has written a record, and an old one says nothing of itself.
        listing.take(Partition(0), Offset(60), Some(b"passport/coder"), Some(value("bob").as_bytes()));
        listing.take(Partition(0), Offset(61), Some(b"passport/old"), Some(br#"{"type":"passport","agent_id":"old","passport":{}}"#));
        let found = all_changes(&listing);
        let found: Vec<_> = found.iter().filter(|shown| shown.noted.change.signed.at.is_none()).collect();
        let of = |at: usize| (found[at].key.as_str(), found[at].noted.change.signed.by.as_deref(), found[at].noted.change.state.as_deref());
        assert_eq!((found.len(), of(0), of(1)), (2, ("passport/coder", Some("bob"), Some("set")), ("passport/old", None, Some("set"))));
    }
}
