//! Running a case: its signals come to the abuse stage as the log would bring them, and time goes on between them and behind them.

use std::sync::Arc;

use serde_json::{Value, json};
use tollgate_abuse::{Abuse, AbuseState, Folded};
use tollgate_core::decide::controls::SubjectHasher;
use tollgate_core::decide::signal::{Batch, Clock, KeyKind, Point, PointKind, SignalKind, SubjectKey, dimension_text};
use tollgate_core::engine::stage::{Progress, Stage as _};
use tollgate_core::event::record::{Offset, Partition, Record};
use tollgate_core::settings::{duration_text, put};
use tollgate_json::digest::Digest;
use tollgate_json::time::parse_timestamp;

use super::names::{Ids, Names};
use super::signals::Signals;
use super::suite::{Case, Tested};

/// How far time goes on at once where nothing happens, in milliseconds.
const TICK_MS: i64 = 10_000;
/// The partition of the events topic, and that of the signals topic.
const PARTITION: Partition = Partition(0);

/// What a case came to.
#[derive(Debug, Default)]
pub(super) struct CaseResult {
    /// The alerts, each with its time and its subject's name, and times as lengths behind the beginning.
    pub(super) alerts: Vec<Value>,
    /// The controls, in the same form.
    pub(super) controls: Vec<Value>,
    /// The rules that fired, as indices, once for each firing.
    pub(super) fired: Vec<usize>,
}

/// Runs a case on a state that knows nothing.
pub(super) fn run(case: &Case, tested: &Tested) -> CaseResult {
    let mut case_run = CaseRun {
        case,
        stage: Abuse::new(Arc::clone(&tested.rules), AbuseState::default()),
        hasher: &tested.hasher,
        names: Names::default(),
        next: 0,
        records: 0,
        got: CaseResult::default(),
    };
    let mut moments: Vec<_> =
        case.signals.iter().flat_map(|signals| (0..signals.count).map(move |number| (signals.at(number), signals))).collect();
    // What happens at the same time happens in the order of the file.
    moments.sort_by_key(|((at_ms, ..), _)| *at_ms);
    case_run.tick(0);
    let mut now_ms = 0;
    for ((at_ms, ids, code), signals) in moments {
        case_run.pass(&mut now_ms, at_ms);
        case_run.happen(at_ms, &ids, code.as_deref(), signals);
    }
    case_run.pass(&mut now_ms, case.end_ms);
    case_run.tick(case.end_ms);
    case_run.got
}

/// A case while it runs.
struct CaseRun<'c> {
    case: &'c Case,
    stage: Abuse,
    hasher: &'c SubjectHasher,
    names: Names,
    /// The offset of the next event.
    next: i64,
    /// How many records of the signals topic there were.
    records: i64,
    got: CaseResult,
}

impl CaseRun<'_> {
    /// Lets time go on to just before a moment.
    fn pass(&mut self, now_ms: &mut i64, at_ms: i64) {
        while *now_ms + TICK_MS < at_ms {
            *now_ms += TICK_MS;
            self.tick(*now_ms);
        }
        *now_ms = (*now_ms).max(at_ms);
    }

    fn tick(&mut self, at_ms: i64) {
        self.fold(at_ms, Batch::default());
    }

    fn happen(&mut self, at_ms: i64, ids: &Ids, code: Option<&str>, signals: &Signals) {
        let (mut batch, offset) = (Batch::default(), Offset(self.next));
        self.next += 1;
        let kinds: &[KeyKind] = &KeyKind::ALL;
        for kind in kinds.iter().copied().filter(|kind| *kind != KeyKind::Call || signals.kind == SignalKind::Point(PointKind::Denial)) {
            let Some(subject) = ids.subject(kind, self.hasher) else { continue };
            let subject = self.names.add(subject);
            match signals.kind {
                SignalKind::Volume(volume) => {
                    batch.volume(volume, subject, (PARTITION, offset), self.case.start_ms + at_ms, signals.amount);
                }
                SignalKind::Point(point) => batch.point(&self.point(point, subject, (at_ms, offset), ids, code, signals)),
            }
        }
        self.fold(at_ms, batch);
    }

    fn point<'p>(
        &self,
        kind: PointKind,
        subject: SubjectKey,
        (at_ms, offset): (i64, Offset),
        ids: &'p Ids,
        code: Option<&'p str>,
        signals: &'p Signals,
    ) -> Point<'p> {
        let hash = |kind| ids.hash(kind, self.hasher);
        Point {
            kind,
            subject,
            source: PARTITION,
            offset,
            time_ms: self.case.start_ms + at_ms,
            thread_id: ids.thread.as_deref().unwrap_or_default().into(),
            event_id: format!("event-{}", offset.0 + 1).into(),
            user: hash(KeyKind::User),
            tenant: hash(KeyKind::Tenant),
            agent: hash(KeyKind::Agent),
            thread: hash(KeyKind::Thread),
            args_hash: ids.args.as_deref().map(|args| Digest::of(args.as_bytes())),
            tool: ids.tool.as_deref().map(dimension_text),
            code: code.map(dimension_text),
            category: signals.category.as_deref().map(dimension_text),
            stage: signals.stage.as_deref().map(dimension_text),
            provider: signals.provider.as_deref().map(dimension_text),
            detector: signals.detector.as_deref().map(dimension_text),
        }
    }

    /// Folds what happened, and the time at which it did.
    fn fold(&mut self, at_ms: i64, mut batch: Batch) {
        let time_ms = self.case.start_ms + at_ms;
        let has_begun = self.records == 0;
        batch.clock(Clock { source: PARTITION, next: Offset(self.next), time_ms, has_begun });
        let mut value = Vec::new();
        batch.take(&mut value);
        let record = Record {
            topic: "",
            partition: PARTITION,
            offset: Offset(self.records),
            timestamp_ms: Some(time_ms),
            key: None,
            value: Some(&value),
            headers: &[],
        };
        self.records += 1;
        if let Progress::Done(folded) = self.stage.apply(&record, &mut ()) {
            self.note(at_ms, &folded);
        }
    }

    fn note(&mut self, at_ms: i64, folded: &Folded) {
        for counts in &folded.counts.rules {
            let firings = usize::try_from(counts.firings).unwrap_or(usize::MAX);
            self.got.fired.extend(std::iter::repeat_n(counts.rule, firings));
        }
        for alert in &folded.alerts {
            let value = serde_json::from_slice(&alert.value).unwrap_or(Value::Null);
            let value = self.shown(at_ms, value);
            self.got.alerts.push(value);
        }
        for control in &folded.controls {
            let value = control.value.as_deref().and_then(|value| serde_json::from_slice(value).ok());
            let mut value = value.unwrap_or_else(|| json!({"until": "none"}));
            let subject = control.key.strip_prefix("subject/").and_then(|key| key.strip_suffix("/abuse")).unwrap_or(&control.key);
            put(&mut value, "subject", json!(subject));
            let value = self.shown(at_ms, value);
            self.got.controls.push(value);
        }
    }

    /// Returns an alert or a control with lengths behind the beginning in place of times, and names in place of hashes.
    fn shown(&self, at_ms: i64, mut value: Value) -> Value {
        put(&mut value, "at", json!(duration_text(at_ms)));
        if let Some(until_ms) = value.get("until").and_then(Value::as_str).and_then(parse_timestamp) {
            put(&mut value, "until", json!(duration_text(until_ms - self.case.start_ms)));
        }
        if let Some(key) = value.get("subject").and_then(Value::as_str).map(str::to_owned) {
            put(&mut value, "subject", json!(self.names.of(&key)));
        }
        value
    }
}
