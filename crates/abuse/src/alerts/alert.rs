//! Alerts: what a person is told, as one JSON object with its fields in a fixed order.

use tollgate_core::decide::signal::SubjectKey;
use tollgate_core::event::record::{Offset, Partition};
use tollgate_json::digest::{Digest, Fingerprint};
use tollgate_json::time::rfc_3339;
use tollgate_json::{ObjectWriter, number};

use crate::outcome::{Action, AlertRecord, Status};
use crate::rules::{Correlation, Level, Rule};
use crate::subjects::Witness;

/// What the first firing of an episode came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// A signal of an event.
    Event(Partition, Offset),
    /// The partition's time, in milliseconds since the epoch.
    Clock(i64),
}

/// An alert about a subject, or about a rule or a partition.
#[derive(Debug)]
pub(crate) struct Alert<'a> {
    pub alert_id: Fingerprint,
    /// The rule; `None` for an alert about the partition.
    pub rule: Option<&'a Rule>,
    pub level: Level,
    pub status: Status,
    pub subject: Option<SubjectKey>,
    /// The combination of dimensions, as a JSON object; empty for none.
    pub group: &'a str,
    /// The beginning and the end of the signals that it is about, in milliseconds since the epoch.
    pub window: Option<(i64, i64)>,
    pub count: f64,
    pub threshold: f64,
    pub step: u32,
    pub action: Action,
    pub until_ms: Option<i64>,
    pub evidence: &'a [Witness<'a>],
    pub suppressed: u32,
    pub message: String,
}

impl<'a> Alert<'a> {
    /// Returns an alert about something other than a subject.
    pub(crate) fn about(key: &str, at_ms: i64, level: Level, action: Action, message: String) -> Self {
        Self {
            alert_id: id_about(key, at_ms, action),
            rule: None,
            level,
            status: Status::Firing,
            subject: None,
            group: "",
            window: None,
            count: 0.0,
            threshold: 0.0,
            step: 0,
            action,
            until_ms: None,
            evidence: &[],
            suppressed: 0,
            message,
        }
    }

    /// Returns the record of it.
    pub(crate) fn record(&self, key: String, awaits_control: bool) -> AlertRecord {
        let mut value = Vec::with_capacity(768);
        self.write(&mut value);
        AlertRecord { key, value, awaits_control }
    }

    fn write(&self, out: &mut Vec<u8>) {
        let mut object = ObjectWriter::begin(out);
        object.plain("alert_id", &[&self.alert_id.hex()]);
        match self.rule {
            Some(rule) => {
                object.text("rule", &rule.id);
                object.plain("rule_version", &[b"sha256:", &rule.version.hex()]);
            }
            None => ["rule", "rule_version"].into_iter().for_each(|name| null(&mut object, name)),
        }
        object.plain("level", &[self.level.as_str().as_bytes()]);
        object.plain("status", &[self.status.as_str().as_bytes()]);
        match self.rule {
            Some(Rule { mode, .. }) => object.plain("mode", &[mode.as_str().as_bytes()]),
            None => null(&mut object, "mode"),
        }
        match &self.subject {
            Some(subject) => object.plain("subject", &[subject.kind.as_str().as_bytes(), b"/", &subject.hash.hex()]),
            None => null(&mut object, "subject"),
        }
        object.member("group").extend_from_slice(if self.group.is_empty() { b"{}" } else { self.group.as_bytes() });
        match self.window {
            Some((from_ms, to_ms)) => {
                let mut window = ObjectWriter::begin(object.member("window"));
                time(&mut window, "from", Some(from_ms));
                time(&mut window, "to", Some(to_ms));
                window.end();
            }
            None => null(&mut object, "window"),
        }
        write_number(self.count, object.member("count"));
        write_number(self.threshold, object.member("threshold"));
        object.number("step", self.step);
        object.plain("action", &[self.action.as_str().as_bytes()]);
        time(&mut object, "until", self.until_ms);
        self.write_evidence(object.member("evidence"));
        object.number("suppressed", self.suppressed);
        object.text("message", &self.message);
        object.end();
    }

    fn write_evidence(&self, out: &mut Vec<u8>) {
        out.push(b'[');
        for (at, witness) in self.evidence.iter().enumerate() {
            if at > 0 {
                out.push(b',');
            }
            let mut object = ObjectWriter::begin(out);
            object.text("thread_id", &witness.thread.to_string());
            object.text("event_id", &witness.event.to_string());
            object.plain("signal", &[witness.kind.as_str().as_bytes()]);
            time(&mut object, "timestamp", Some(witness.time_ms));
            object.end();
        }
        out.push(b']');
    }
}

/// Returns the id of an alert about something other than a subject.
pub(crate) fn id_about(key: &str, at_ms: i64, action: Action) -> Fingerprint {
    Digest::of_parts(&[key.as_bytes(), action.as_str().as_bytes(), &at_ms.to_be_bytes()]).fingerprint()
}

/// Returns the id of an episode's alerts.
pub(crate) fn alert_id(rule: &Rule, subject: &SubjectKey, group: &str, origin: Origin) -> Fingerprint {
    let subject = subject.to_string();
    let (about, source, at) = match origin {
        Origin::Event(source, offset) => ("event", source.0, offset.0),
        Origin::Clock(time_ms) => ("clock", 0, time_ms),
    };
    let (source, at) = (source.to_be_bytes(), at.to_be_bytes());
    Digest::of_parts(&[rule.id.as_bytes(), subject.as_bytes(), group.as_bytes(), about.as_bytes(), &source, &at]).fingerprint()
}

/// Returns what a firing is about, in words.
pub(crate) fn describe(rule: &Rule) -> String {
    let (signal, kind) = (rule.detection.signal.as_str(), rule.group_by.kind.as_str());
    let timespan = span(rule.timespan_ms);
    match &rule.correlation {
        Correlation::EventCount { gte } => format!("at least {gte} {signal} within {timespan} by one {kind}"),
        Correlation::ValueCount { field, gte } => {
            format!("{signal} with at least {gte} different values of {} within {timespan} by one {kind}", field.as_str())
        }
        Correlation::ValueSum { gte } => format!("{signal} of at least {gte} within {timespan} by one {kind}"),
        Correlation::Ratio(ratio) => {
            format!("{signal} at least {} of {} over {timespan} by one {kind}", ratio.gte, ratio.over.as_str())
        }
        Correlation::Baseline(baseline) => {
            format!("{signal} of {timespan} at least {} times what is usual for the {kind}", baseline.factor)
        }
    }
}

/// Returns a length of time as rules write it, such as `15m`.
pub(crate) fn span(ms: i64) -> String {
    let units = [(86_400_000, "d"), (3_600_000, "h"), (60_000, "m"), (1_000, "s")];
    match units.into_iter().find(|(unit_ms, _)| ms > 0 && ms % unit_ms == 0) {
        Some((unit_ms, unit)) => format!("{}{unit}", ms / unit_ms),
        None => format!("{ms}ms"),
    }
}

fn null(object: &mut ObjectWriter<'_>, name: &'static str) {
    object.member(name).extend_from_slice(b"null");
}

/// Writes a time as RFC 3339 says; null for none and for one that has no such form.
pub(crate) fn time(object: &mut ObjectWriter<'_>, name: &'static str, time_ms: Option<i64>) {
    match time_ms.and_then(rfc_3339) {
        Some(text) => object.plain(name, &[text.as_bytes()]),
        None => null(object, name),
    }
}

/// Writes whole numbers as such.
fn write_number(value: f64, out: &mut Vec<u8>) {
    const EXACT: f64 = (1_u64 << 53) as f64;
    if value.fract() == 0.0 && (0.0..EXACT).contains(&value) {
        out.extend_from_slice(itoa::Buffer::new().format(value as u64).as_bytes());
    } else {
        number::write_float(value, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_alert_about_a_partition_has_the_same_fields() {
        let alert = Alert::about("source/3", 1_000, Level::High, Action::SourceSilent, "nothing".to_owned());
        let record = alert.record("source/3".to_owned(), false);
        let expected = concat!(
            r#""rule":null,"rule_version":null,"level":"high","status":"firing","mode":null,"subject":null,"group":{},"window":null,"#,
            r#""count":0,"threshold":0,"step":0,"action":"source_silent","until":null,"evidence":[],"suppressed":0,"message":"nothing"}"#
        );
        let text = String::from_utf8(record.value).unwrap();
        assert_eq!(text.split_once(',').unwrap().1, expected);
        assert!(text.starts_with(r#"{"alert_id":""#) && text.len() == r#"{"alert_id":"","#.len() + 32 + expected.len());
    }

    #[test]
    fn numbers_and_spans_are_as_people_write_them() {
        let written = |value| {
            let mut out = Vec::new();
            write_number(value, &mut out);
            String::from_utf8(out).unwrap()
        };
        assert_eq!([5.0, 0.0625, 0.0].map(written), ["5", "0.0625", "0"]);
        assert_eq!([900_000, 86_400_000, 1, 1_500].map(span), ["15m", "1d", "1ms", "1500ms"]);
    }
}
