//! Two gates side by side: one is fed records, the other what redaction makes of them.

use std::collections::HashMap;

use serde_json::Value;
use tollgate_core::deciding::Outcome;
use tollgate_core::digest::Digest;
use tollgate_core::policy::Policy;
use tollgate_core::record::{Header, Offset, Partition, Record};
use tollgate_core::redact::{NotRedacted, RedactedRecord, Redactor};
use tollgate_core::signal::{EventSignals, Interest, KeyKind, SignalKind};

use crate::support::Gate;

/// The key of the tests.
pub const KEY: &[u8] = b"a key of the tests";

/// The number of digits behind `other:`, with which verdicts repeat what a provider says in unknown words.
const OTHER_DIGITS: usize = 12;

/// The time of the records, in milliseconds since the epoch. What has no time cannot be counted.
const TIME_MS: i64 = 1_767_225_600_000;

/// Returns a gate that counts everything there is to count.
fn counting(policy: impl Fn() -> Policy) -> Gate {
    let mut interest = Interest::default();
    for signal in SignalKind::names().filter_map(SignalKind::from_name) {
        KeyKind::ALL.iter().for_each(|kind| interest.add(signal, *kind));
    }
    let mut gate = Gate::new(policy().with_signals(interest));
    gate.timestamp_ms = Some(TIME_MS);
    gate
}

/// Returns signals without their hashes, apart from which kinds there are.
fn shape(signals: &EventSignals) -> String {
    let facts = signals.facts().iter().map(|fact| {
        let texts = (&fact.tool, &fact.code, fact.category, fact.stage, fact.detector);
        let is_there = (fact.call.is_some(), fact.args_hash.is_some(), fact.provider.is_some());
        format!("{:?} {:?} {texts:?} {is_there:?}", fact.kind, fact.counts_for)
    });
    let points = signals.points((Partition(0), Offset(0))).map(|point| format!("{:?}", point.subject.kind));
    let volumes = signals.volumes().iter().map(|(kind, subject, amount)| format!("{kind:?} {:?} {amount}", subject.kind));
    let rest = (signals.time_ms(), signals.is_untimed(), signals.names_user());
    format!("{:?} {rest:?}", facts.chain(points).chain(volumes).collect::<Vec<_>>())
}

/// A gate before and one after redaction, with what verdicts derive from contents: digests before and after.
pub struct Pair {
    before: Gate,
    after: Gate,
    redactor: Redactor,
    digests: HashMap<String, String>,
    digests_back: HashMap<String, String>,
    /// Subjects and arguments in signals, before and after.
    hashes: HashMap<Digest, Digest>,
    hashes_back: HashMap<Digest, Digest>,
    /// How many hashes of signals were compared.
    pub signals: usize,
    /// How many verdicts were compared.
    pub verdicts: usize,
    /// How many of them stopped or warned of something.
    pub interventions: usize,
    /// How many records were rejected.
    pub rejected: usize,
}

impl Pair {
    pub fn new(policy: impl Fn() -> Policy) -> Self {
        Self::with_reasons(policy, &[])
    }

    pub fn with_reasons(policy: impl Fn() -> Policy, reasons: &[String]) -> Self {
        let (before, after) = (counting(&policy), counting(&policy));
        let redactor = Redactor::with_reasons(KEY, reasons);
        let (digests, digests_back, hashes, hashes_back) = Default::default();
        let (signals, verdicts, interventions, rejected) = Default::default();
        Self { before, after, redactor, digests, digests_back, hashes, hashes_back, signals, verdicts, interventions, rejected }
    }

    /// Starts with gates of another policy. What redaction makes of things has to stay the same.
    pub fn under(&mut self, policy: impl Fn() -> Policy) {
        (self.before, self.after) = (counting(&policy), counting(&policy));
    }

    /// Feeds a record, and checks that its verdict is the same after redaction.
    pub fn record(&mut self, key: Option<&[u8]>, value: Option<&[u8]>, headers: &[Header<'_>]) -> Result<RedactedRecord, NotRedacted> {
        let (partition, offset) = (Partition(0), Offset(0));
        let record = Record { topic: "agent.events", partition, offset, timestamp_ms: Some(TIME_MS), key, value, headers };
        let redacted = self.redactor.redact(&record)?;
        assert_eq!(redacted.key.as_deref(), key);
        assert_eq!(redacted.value.as_ref().map(Vec::len), value.map(<[u8]>::len));
        let after_headers: Vec<_> = redacted.headers.iter().map(|(name, value)| Header { name, value: value.as_deref() }).collect();
        let (outcome, before) = self.before.record(key, value, headers);
        let (outcome_after, after) = self.after.record(redacted.key.as_deref(), redacted.value.as_deref(), &after_headers);
        self.same_signals(&String::from_utf8_lossy(value.unwrap_or_default()));
        let what = String::from_utf8_lossy(value.unwrap_or_default());
        assert_eq!(outcome, outcome_after, "{what}");
        self.rejected += usize::from(matches!(outcome, Outcome::DeadLetter(_)));
        self.same_verdict(&before, &after, &what);
        Ok(redacted)
    }

    /// Feeds an event that can be redacted.
    pub fn event(&mut self, event: &Value) -> Value {
        let redacted = self.record(None, Some(event.to_string().as_bytes()), &[]).unwrap();
        serde_json::from_slice(&redacted.value.unwrap()).unwrap()
    }

    /// Checks that there is the same to count. Hashes differ, and equal ones stay equal.
    fn same_signals(&mut self, what: &str) {
        let [before, after] = [self.before.signals(), self.after.signals()];
        assert_eq!(shape(before), shape(after), "{what}");
        let place = (Partition(0), Offset(0));
        let hashes = |signals: &EventSignals| {
            let of_points = signals.points(place).flat_map(|point| [Some(point.subject.hash), point.args_hash]).flatten();
            of_points.chain(signals.volumes().iter().map(|(_, subject, _)| subject.hash)).collect::<Vec<_>>()
        };
        for (before, after) in hashes(before).into_iter().zip(hashes(after)) {
            assert_eq!(*self.hashes.entry(before).or_insert(after), after, "{what}");
            assert_eq!(*self.hashes_back.entry(after).or_insert(before), before, "{what}");
            self.signals += 1;
        }
    }

    fn same_verdict(&mut self, before: &[u8], after: &[u8], what: &str) {
        assert_eq!(before.is_empty(), after.is_empty(), "{what}");
        if before.is_empty() {
            return;
        }
        self.verdicts += 1;
        let [mut before, mut after] = [before, after].map(|verdict| String::from_utf8(verdict.to_vec()).unwrap());
        let [read, read_after]: [Value; 2] = [&before, &after].map(|verdict| serde_json::from_str(verdict).unwrap());
        self.interventions += usize::from(read["code"] != "allow");
        let hash = |verdict: &Value| verdict["signature"]["args_hash"].as_str().map(str::to_owned);
        if let (Some(hash), Some(hash_after)) = (hash(&read), hash(&read_after)) {
            before = before.replace(&hash, &hash_after);
            self.same_digest(hash, hash_after, what);
        }
        for at in before.match_indices("other:").map(|(at, word)| at + word.len()).collect::<Vec<_>>() {
            let digits = at..at + OTHER_DIGITS;
            let [other, other_after] = [&before, &after].map(|verdict| verdict.get(digits.clone()).unwrap().to_owned());
            self.same_digest(other, other_after, what);
            before.replace_range(digits.clone(), &"0".repeat(OTHER_DIGITS));
            after.replace_range(digits, &"0".repeat(OTHER_DIGITS));
        }
        assert_eq!(before, after, "{what}");
    }

    /// Checks that equal digests stay equal, and different ones different.
    fn same_digest(&mut self, before: String, after: String, what: &str) {
        let there = self.digests.entry(before.clone()).or_insert_with(|| after.clone());
        assert_eq!(*there, after, "equal contents are not equal any more: {what}");
        let back = self.digests_back.entry(after).or_insert_with(|| before.clone());
        assert_eq!(*back, before, "different contents have become equal: {what}");
    }
}
