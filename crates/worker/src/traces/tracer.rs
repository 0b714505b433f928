//! The spans of one member's records that are on their way: from the record that came to the acknowledgement of its verdict.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustc_hash::FxHashMap;
use tollgate_core::event::record::{Offset, Partition, Record};

use super::Traces;
use super::context::{TraceContext, trace_state};
use super::queue::Dropped;
use super::span::{Span, Step, Verdict};

/// The most spans of a member that wait for an answer or an acknowledgement. One more is dropped.
const OPEN_MAX: usize = 32_768;
/// How long a span may wait. Its partition may have been given up meanwhile, and then nobody ends it.
const OPEN_TIME_MAX: Duration = Duration::from_secs(600);
/// How many events most spans have: consume, ask, answer, decide and publish.
const STEPS: usize = 5;

/// A member's spans. Everything here is a handful of comparisons for a record that is not sampled.
#[derive(Debug)]
pub struct Tracer {
    traces: Traces,
    ids: fastrand::Rng,
    /// The record that is being taken, if it is sampled.
    current: Option<Box<Open>>,
    /// The records that wait for an answer or an acknowledgement.
    open: FxHashMap<(Partition, Offset), Box<Open>>,
}

/// A span that has not ended.
#[derive(Debug)]
struct Open {
    span: Span,
    started: Instant,
    /// How many acknowledgements are awaited.
    unacknowledged: u32,
}

impl Open {
    fn now_ns(&self) -> u64 {
        self.span.started_ns.saturating_add(u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    fn step(&mut self, step: Step) {
        let now_ns = self.now_ns();
        self.span.steps.push((step, now_ns));
    }
}

impl Tracer {
    pub(super) fn new(traces: Traces) -> Self {
        Self { traces, ids: fastrand::Rng::new(), current: None, open: FxHashMap::default() }
    }

    /// Notes that a record is taken, if it is sampled.
    pub fn taken(&mut self, record: &Record<'_>) {
        let parent = TraceContext::of(record);
        let trace_id = parent.map_or_else(|| self.ids.u128(1..), |parent| parent.trace_id);
        self.current = self.traces.sampler.takes(parent, trace_id).then(|| Box::new(self.begin(record, parent, trace_id)));
    }

    fn begin(&mut self, record: &Record<'_>, parent: Option<TraceContext>, trace_id: u128) -> Open {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let started_ns = u64::try_from(since_epoch.as_nanos()).unwrap_or(u64::MAX);
        let mut steps = Vec::with_capacity(STEPS);
        steps.push((Step::Consume, started_ns));
        let span = Span {
            trace_id,
            span_id: self.ids.u64(1..),
            parent,
            // Without its context a state means nothing.
            trace_state: parent.and_then(|_| trace_state(record)),
            partition: record.partition,
            offset: record.offset,
            started_ns,
            ended_ns: started_ns,
            steps,
            verdict: Verdict::default(),
        };
        Open { span, started: Instant::now(), unacknowledged: 0 }
    }

    /// Notes that the record that was taken last waits behind another one of its thread.
    pub fn waits(&mut self) {
        if let Some(open) = self.current.take() {
            self.keep(open);
        }
    }

    /// Notes that a policy server was asked about a record.
    pub fn asked(&mut self, partition: Partition, offset: Offset) {
        if let Some(mut open) = self.take(partition, offset) {
            open.step(Step::Ask);
            self.keep(open);
        }
    }

    /// Notes that the answer about a record has come.
    pub fn answered(&mut self, partition: Partition, offset: Offset) {
        if let Some(open) = self.open.get_mut(&(partition, offset)) {
            open.step(Step::Answer);
        }
    }

    /// Notes that a record is decided.
    pub fn decided(&mut self, record: &Record<'_>) {
        if let Some(mut open) = self.take(record.partition, record.offset) {
            open.step(Step::Decide);
            self.current = Some(open);
        }
    }

    /// Notes that the record that was decided last gets no verdict: it has no span.
    pub fn without_verdict(&mut self) {
        self.current = None;
    }

    /// Notes what was published for the record that was decided last: the verdict as JSON, the code if it could not be read, and how many
    /// acknowledgements are awaited.
    pub fn published(&mut self, verdict: &[u8], rejection: Option<&'static str>, unacknowledged: u32) {
        let Some(mut open) = self.current.take() else { return };
        open.step(Step::Publish);
        open.span.verdict = Verdict::read(verdict, rejection);
        open.unacknowledged = unacknowledged;
        if unacknowledged == 0 { self.end(*open) } else { self.keep(open) }
    }

    /// Notes an acknowledgement. The last one ends the span.
    pub fn acknowledged(&mut self, partition: Partition, offset: Offset) {
        let Some(open) = self.open.get_mut(&(partition, offset)) else { return };
        open.unacknowledged = open.unacknowledged.saturating_sub(1);
        if open.unacknowledged == 0
            && let Some(open) = self.open.remove(&(partition, offset))
        {
            self.end(*open);
        }
    }

    /// Drops spans that wait for too long. Call it about once a second.
    pub fn expire(&mut self) {
        let before = self.open.len();
        self.open.retain(|_, open| open.started.elapsed() < OPEN_TIME_MAX);
        self.traces.queue.count(Dropped::Unfinished, before - self.open.len());
    }

    /// Takes the span of a record: of the one that is being taken, or of one that waits.
    fn take(&mut self, partition: Partition, offset: Offset) -> Option<Box<Open>> {
        let is_its = |open: &mut Box<Open>| (open.span.partition, open.span.offset) == (partition, offset);
        self.current.take_if(is_its).or_else(|| if self.open.is_empty() { None } else { self.open.remove(&(partition, offset)) })
    }

    fn keep(&mut self, open: Box<Open>) {
        let is_full = self.open.len() >= OPEN_MAX;
        // The same record may come again after its partition was given up, and the first span then never ends.
        let replaced = !is_full && self.open.insert((open.span.partition, open.span.offset), open).is_some();
        self.traces.queue.count(Dropped::Unfinished, usize::from(is_full || replaced));
    }

    fn end(&self, mut open: Open) {
        open.span.ended_ns = open.now_ns();
        self.traces.queue.push(open.span);
    }
}

/// A member that starts over takes its records again.
impl Drop for Tracer {
    fn drop(&mut self) {
        self.traces.queue.count(Dropped::Unfinished, self.open.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::Metrics;
    use tollgate_config::settings::TraceSettings;
    use tollgate_core::event::record::Header;

    const PARENT: Header<'static> = Header { name: "traceparent", value: Some(b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01") };
    const VERDICT: &[u8] = br#"{"action":"allow"}"#;

    fn record<'a>(offset: i64, headers: &'a [Header<'a>]) -> Record<'a> {
        Record { topic: "t", partition: Partition(0), offset: Offset(offset), timestamp_ms: None, key: None, value: None, headers }
    }

    fn tracer(one_in: u32) -> (Tracer, Metrics) {
        let metrics = Metrics::new().unwrap();
        let settings = TraceSettings { sample_one_in: one_in, ..TraceSettings::off() };
        (Traces::new(&settings, &metrics).tracer(), metrics)
    }

    fn steps(span: &Span) -> Vec<&'static str> {
        assert!(span.steps.is_sorted_by_key(|(_, at_ns)| *at_ns) && span.steps.last().is_some_and(|(_, at_ns)| *at_ns <= span.ended_ns));
        span.steps.iter().map(|(step, _)| step.as_str()).collect()
    }

    #[test]
    fn a_span_ends_with_the_last_acknowledgement() {
        let (mut tracer, _) = tracer(u32::MAX);
        let headers = [PARENT, Header { name: "tracestate", value: Some(b"v=1") }];
        let record = record(5, &headers);
        tracer.taken(&record);
        tracer.decided(&record);
        tracer.published(VERDICT, None, 2);
        tracer.acknowledged(Partition(0), Offset(5));
        assert_eq!(tracer.traces.queue.len(), 0, "a reply and a verdict were published");
        tracer.acknowledged(Partition(0), Offset(4));
        tracer.acknowledged(Partition(0), Offset(5));
        let spans = tracer.traces.queue.take(9);
        let [span] = spans.as_slice() else { panic!("{spans:?}") };
        assert_eq!(steps(span), ["consume", "decide", "publish"]);
        assert_eq!((span.trace_id, span.parent.unwrap().span_id), (0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736, 0x00f0_67aa_0ba9_02b7));
        assert_eq!((span.offset, span.trace_state.as_deref()), (Offset(5), Some("v=1")));
        assert_eq!(span.verdict.attributes().collect::<Vec<_>>(), [("tollgate.action", "allow")]);
        assert!(tracer.open.is_empty());
    }

    #[test]
    fn records_that_ask_and_wait_keep_their_spans_apart() {
        let (mut tracer, _) = tracer(1);
        let (asks, waits, other) = (record(1, &[]), record(2, &[]), record(3, &[]));
        tracer.taken(&asks);
        tracer.asked(Partition(0), Offset(1));
        tracer.taken(&waits);
        tracer.waits();
        tracer.taken(&other);
        tracer.decided(&other);
        tracer.published(VERDICT, None, 1);
        tracer.answered(Partition(0), Offset(1));
        for record in [&asks, &waits] {
            tracer.decided(record);
            tracer.published(VERDICT, None, 1);
        }
        for offset in [3, 2, 1] {
            tracer.acknowledged(Partition(0), Offset(offset));
        }
        let spans = tracer.traces.queue.take(9);
        let found: Vec<_> = spans.iter().map(|span| (span.offset.0, steps(span))).collect();
        let plain = vec!["consume", "decide", "publish"];
        assert_eq!(found, [(3, plain.clone()), (2, plain), (1, vec!["consume", "ask", "answer", "decide", "publish"])]);
        let ids: std::collections::BTreeSet<_> = spans.iter().map(|span| (span.trace_id, span.span_id)).collect();
        assert_eq!(ids.len(), 3);
    }

    #[test]
    fn what_gets_no_verdict_gets_no_span() {
        let (mut tracer, metrics) = tracer(1);
        // A redelivered record is taken, and nothing follows.
        tracer.taken(&record(1, &[]));
        tracer.taken(&record(2, &[]));
        tracer.decided(&record(2, &[]));
        tracer.without_verdict();
        tracer.acknowledged(Partition(0), Offset(2));
        assert_eq!((tracer.open.len(), tracer.traces.queue.len()), (0, 0));
        drop(tracer);
        assert_eq!(metrics.traces_dropped.with_label_values(&["unfinished"]).get(), 0);
    }

    #[test]
    fn what_is_not_sampled_leaves_nothing() {
        let (mut tracer, _) = tracer(1);
        let headers = [Header { name: "traceparent", value: Some(b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00") }];
        let record = record(1, &headers);
        tracer.taken(&record);
        tracer.asked(Partition(0), Offset(1));
        tracer.decided(&record);
        tracer.published(VERDICT, None, 1);
        tracer.acknowledged(Partition(0), Offset(1));
        assert_eq!((tracer.open.len(), tracer.traces.queue.len()), (0, 0));
    }

    #[test]
    fn spans_that_never_end_are_bounded_and_counted() {
        let (mut tracer, metrics) = tracer(1);
        let most = i64::try_from(OPEN_MAX).unwrap();
        for offset in 0..most + 2 {
            tracer.taken(&record(offset, &[]));
            tracer.waits();
        }
        let unfinished = || metrics.traces_dropped.with_label_values(&["unfinished"]).get();
        assert_eq!((tracer.open.len(), unfinished()), (OPEN_MAX, 2));
        tracer.expire();
        assert_eq!(unfinished(), 2, "none is old");
        drop(tracer);
        assert_eq!(unfinished(), 2 + OPEN_MAX as u64);
    }
}
