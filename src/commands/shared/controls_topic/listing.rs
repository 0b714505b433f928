//! The listing of the controls topic: what is in force, and what was refused. A refused record restricts whom its key names.

use std::collections::BTreeMap;

use tollgate_core::decide::controls::{Control, ControlId, ControlRejection, decode};
use tollgate_core::event::record::{Offset, Partition};
use tollgate_worker::control_feed::WorkerReport;

/// The last record of each key. It is fed every record, partition by partition from the beginning.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    controls: BTreeMap<Key, (Offset, LastRecord)>,
    /// What workers and commands have noted, by key.
    notes: BTreeMap<String, Vec<u8>>,
    /// The offset behind the last record of each partition.
    next: BTreeMap<Partition, Offset>,
    /// The end of each partition.
    ends: BTreeMap<Partition, Offset>,
    /// Whether an open transaction hides records.
    is_partial: bool,
}

/// A record's key and its partition. If producers do not agree on a partitioner, a key stands on two partitions and is shown twice: the stricter
/// record counts.
type Key = (Vec<u8>, Partition);

/// The last record of a key on a partition.
#[derive(Debug)]
enum LastRecord {
    /// A control, by its record's value.
    Control(Vec<u8>),
    Refused(ControlRejection),
}

impl Listing {
    /// Takes one record of the topic.
    pub(crate) fn take(&mut self, partition: Partition, offset: Offset, key: Option<&[u8]>, value: Option<&[u8]>) {
        let place = (key.unwrap_or_default().to_vec(), partition);
        self.next.insert(partition, offset.next());
        match (decode(key, value), value) {
            (Ok(Control::Note), _) => self.take_note(partition, offset.0, key, value),
            (Ok(_), Some(value)) => _ = self.controls.insert(place, (offset, LastRecord::Control(value.to_vec()))),
            // A deletion removes whatever the key had, readable or not.
            (_, None) => _ = self.controls.remove(&place),
            (Err(rejection), Some(_)) => _ = self.controls.insert(place, (offset, LastRecord::Refused(rejection))),
        }
    }

    /// Takes a record if it is a note.
    pub(crate) fn take_note(&mut self, partition: Partition, offset: i64, key: Option<&[u8]>, value: Option<&[u8]>) {
        self.next.insert(partition, Offset(offset).next());
        match (ControlId::read(key), value) {
            (Ok(ControlId::Note(key)), Some(value)) => _ = self.notes.insert(key, value.to_vec()),
            (Ok(ControlId::Note(key)), None) => _ = self.notes.remove(&key),
            _ => {}
        }
    }

    /// Returns the offset of a partition behind what was taken.
    pub(crate) fn next(&self, partition: Partition) -> Offset {
        self.next.get(&partition).copied().unwrap_or_default()
    }

    /// Sets where a partition ends.
    pub(crate) fn set_end(&mut self, partition: Partition, end: Offset) {
        self.ends.insert(partition, end);
    }

    /// Returns how many partitions the topic has.
    pub(crate) fn partitions_total(&self) -> usize {
        self.ends.len()
    }

    /// Sets whether an open transaction hides records.
    pub(crate) fn set_partial(&mut self, is_partial: bool) {
        self.is_partial = is_partial;
    }

    /// Returns whether an open transaction hides records: more may be in force than can be seen.
    pub(crate) fn is_partial(&self) -> bool {
        self.is_partial
    }

    /// Returns the note under a key.
    pub(crate) fn note(&self, key: &str) -> Option<&[u8]> {
        self.notes.get(key).map(Vec::as_slice)
    }

    /// Returns the notes whose keys begin so, each with its key.
    pub(crate) fn notes(&self, prefix: &str) -> impl Iterator<Item = (&str, &[u8])> {
        self.notes.iter().filter(move |(key, _)| key.starts_with(prefix)).map(|(key, value)| (key.as_str(), value.as_slice()))
    }

    /// Returns what the workers say of themselves. A report of records that the topic does not have is about another topic: it came with a copy of
    /// that topic, or the topic was made anew.
    pub(crate) fn reports(&self) -> impl Iterator<Item = WorkerReport> {
        let end = |partition: i32| self.ends.get(&Partition(partition)).map_or(0, |end| end.0);
        let is_of_topic = move |report: &WorkerReport| (0..).zip(&report.read).all(|(partition, read)| *read <= end(partition));
        self.notes("worker/").filter_map(|(_, value)| serde_json::from_slice(value).ok()).filter(is_of_topic)
    }

    /// Returns the controls in force that can be read, each with its place and its value.
    pub(crate) fn in_force(&self) -> impl Iterator<Item = (ControlId, (Partition, Offset), &[u8])> {
        self.controls.iter().filter_map(|((key, partition), (offset, last))| {
            let LastRecord::Control(value) = last else { return None };
            Some((ControlId::read(Some(key)).ok()?, (*partition, *offset), value.as_slice()))
        })
    }

    /// Returns whether a control is in force, by a record that can be read or by one that cannot.
    pub(crate) fn is_in_force(&self, id: &ControlId) -> bool {
        self.last(id).next().is_some()
    }

    /// Returns whether the record of a control cannot be read.
    pub(crate) fn is_refused(&self, id: &ControlId) -> bool {
        self.last(id).any(|last| matches!(last, LastRecord::Refused(_)))
    }

    /// Returns the partitions on which a control stands.
    pub(crate) fn partitions(&self, id: &ControlId) -> impl Iterator<Item = Partition> {
        self.of(id).map(|(partition, _)| partition)
    }

    fn last(&self, id: &ControlId) -> impl Iterator<Item = &LastRecord> {
        self.of(id).map(|(_, last)| last)
    }

    fn of(&self, id: &ControlId) -> impl Iterator<Item = (Partition, &LastRecord)> {
        let key = id.to_string();
        self.controls.iter().filter(move |((found, _), _)| *found == key.as_bytes()).map(|((_, at), (_, last))| (*at, last))
    }

    /// Returns how many controls are in force that can be read, and how many records were refused.
    pub(crate) fn counts(&self) -> (usize, usize) {
        let refused = self.controls.values().filter(|(_, last)| matches!(last, LastRecord::Refused(_))).count();
        (self.controls.len() - refused, refused)
    }

    /// Returns everything as lines of JSON, in the order of keys.
    pub(crate) fn lines(&self) -> impl Iterator<Item = String> {
        self.controls.iter().map(|((key, partition), (offset, last))| {
            let (key, place) = (key_as_json(key), format!(r#""partition":{partition},"offset":{offset}"#));
            let rejection = match last {
                LastRecord::Control(value) => {
                    return format!(r#"{{"key":{key},"state":"in_force",{place},"value":{}}}"#, compact(value));
                }
                LastRecord::Refused(rejection) => rejection,
            };
            let quoted = |text: &str| serde_json::Value::from(text).to_string();
            let (code, field) = (quoted(rejection.code.as_str()), quoted(rejection.field));
            let (effect, found, fix) = (effect(&key, rejection), quoted(&rejection.found), quoted(rejection.fix));
            format!(
                r#"{{"key":{key},"state":"refused","effect":"{effect}",{place},"code":{code},"field":{field},"found":{found},"fix":{fix}}}"#
            )
        })
    }
}

/// Returns what a refused record brings about.
fn effect(key: &str, rejection: &ControlRejection) -> &'static str {
    match rejection.code.is_of_key() {
        true => "none",
        false if key.starts_with("\"passport/") => "agent_denied",
        false => "subject_suspended",
    }
}

/// Returns a key as JSON, and null for a key that is not a control's: it may hold anything, even an id in clear text.
fn key_as_json(key: &[u8]) -> String {
    ControlId::read(Some(key)).map_or_else(|_| "null".to_owned(), |id| serde_json::Value::from(id.to_string()).to_string())
}

/// Returns JSON text without the white space between its tokens. Everything else stays as it is: numbers keep their digits.
pub(crate) fn compact(text: &[u8]) -> String {
    let (mut is_string, mut is_escaped) = (false, false);
    let is_kept = |byte: &u8| {
        let kept = is_string || !byte.is_ascii_whitespace();
        if *byte == b'"' && !is_escaped {
            is_string = !is_string;
        }
        is_escaped = is_string && *byte == b'\\' && !is_escaped;
        kept
    };
    String::from_utf8_lossy(&text.iter().copied().filter(is_kept).collect::<Vec<u8>>()).into_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use tollgate_json::digest::Digest;

    fn suspended(hash: &str) -> String {
        json!({"type": "subject", "kind": "user", "hash": hash, "state": "suspended"}).to_string()
    }

    #[test]
    fn the_last_record_of_a_key_counts() {
        let hash = Digest::of(b"x").to_string();
        let key = format!("subject/user/{hash}");
        let passport = |status: &str| json!({"type": "passport", "agent_id": "coder", "passport": {"status": status}}).to_string();
        let records = [
            (key.as_str(), Some(suspended(&hash))),
            ("passport/coder", Some(passport("active"))),
            ("passport/coder", Some(passport("suspended"))),
            ("passport/gone", Some(passport("active"))),
            ("passport/gone", None),
            (key.as_str(), Some("{".to_owned())),
            ("alice@acme.example", Some("{}".to_owned())),
            ("bob@acme.example", Some("{}".to_owned())),
            ("bob@acme.example", None),
            ("passport/mistyped", Some("[]".to_owned())),
        ];
        let mut listing = Listing::default();
        for (offset, (key, value)) in (0..).zip(&records) {
            listing.take(Partition(0), Offset(offset), Some(key.as_bytes()), value.as_ref().map(String::as_bytes));
        }
        let lines: Vec<Value> = listing.lines().map(|line| serde_json::from_str(&line).unwrap()).collect();
        let fields = |name: &str| lines.iter().map(|line| line[name].clone()).collect::<Vec<_>>();
        assert_eq!(fields("key"), [json!(null), json!("passport/coder"), json!("passport/mistyped"), json!(key)]);
        assert_eq!(fields("state"), [json!("refused"), json!("in_force"), json!("refused"), json!("refused")]);
        assert_eq!(fields("effect"), [json!("none"), json!(null), json!("agent_denied"), json!("subject_suspended")]);
        assert_eq!(fields("offset"), [json!(6), json!(2), json!(9), json!(5)]);
        assert_eq!((&lines[1]["value"]["passport"]["status"], &lines[3]["code"]), (&json!("suspended"), &json!("value_not_json")));
        assert_eq!(listing.counts(), (1, 3));
        let mistyped = ControlId::Passport("mistyped".to_owned());
        assert!(listing.is_in_force(&mistyped) && listing.is_refused(&mistyped), "it denies, and can be removed");
        assert!(listing.is_in_force(&ControlId::Passport("coder".to_owned())));
        assert!(!listing.is_in_force(&ControlId::Passport("gone".to_owned())));
        // Once a good record follows, nothing is refused any more.
        listing.take(Partition(0), Offset(10), Some(key.as_bytes()), Some(suspended(&hash).as_bytes()));
        assert_eq!(listing.counts(), (2, 2));
    }

    #[test]
    fn a_report_of_records_that_the_topic_does_not_have_counts_not() {
        let mut listing = Listing::default();
        let report =
            |worker: &str, read: &[i64]| WorkerReport { worker: worker.to_owned(), read: read.to_vec(), ..WorkerReport::default() };
        for (offset, report) in (0..).zip([report("own", &[3, 0]), report("restored", &[4, 0]), report("other", &[0, 0, 1])]) {
            listing.take(Partition(0), Offset(offset), Some(report.key().as_bytes()), Some(&serde_json::to_vec(&report).unwrap()));
        }
        listing.set_end(Partition(0), Offset(3));
        listing.set_end(Partition(1), Offset(0));
        assert_eq!(listing.reports().map(|report| report.worker).collect::<Vec<_>>(), ["own"]);
        assert_eq!(listing.partitions_total(), 2);
    }

    #[test]
    fn compact_text_keeps_strings_and_numbers() {
        let text = "{ \"a b\" :\n [1.10,\t\"x \\\" y\\\\\" , \" é\" ] }\r\n";
        assert_eq!(compact(text.as_bytes()), "{\"a b\":[1.10,\"x \\\" y\\\\\",\" é\"]}");
    }
}
