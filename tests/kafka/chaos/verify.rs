//! Verifies the topics in the end: they must hold what a fold of every partition gives.
//!
//! It takes a partition at a time. The events are folded in this process and by `tollgate eval`, and the verdicts, dead letters and state
//! of the partition are compared with the results. Every event and its verdicts carry the same sequence, which distinguishes repeats.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use anyhow::{Context as _, Result};
use tollgate_core::decide::deciding::{Deciding, Outcome, VerdictBuffer};
use tollgate_core::decide::policy::Policy;
use tollgate_core::decide::thread::ThreadStore;
use tollgate_core::engine::checkpoint::Restore;
use tollgate_core::engine::processor::{Applied, PartitionProcessor};
use tollgate_core::engine::stage::Progress;
use tollgate_core::event::record::{Header, Offset, Partition, Record as Decodable};

use tollgate_testkit::{Cluster, Deployment, Outgoing, Record, header};

use super::load::{Event, number_of};
use super::report::{Findings, Totals};
use super::run::PARTITIONS;
use super::traffic::{SEQUENCE, UNREADABLE};

type Processor = PartitionProcessor<Deciding>;

const UNACKNOWLEDGED: &str = "events that were not acknowledged";
const LOST: &str = "acknowledged events that are not there";
const MISSING: &str = "events without their verdict";
const WRONG: &str = "verdicts other than the fold's";
const UNLIKE: &str = "copies of a verdict that differ";
const STRAY: &str = "verdicts on nothing";
const DISORDER: &str = "verdicts out of their thread's order";
const READABLE: &str = "unreadable events that were read";
const DEAD_MISSING: &str = "rejected events without their dead letter";
const DEAD_WRONG: &str = "dead letters other than their event";
const DEAD_STRAY: &str = "dead letters of nothing";
const EVAL: &str = "partitions where eval and the fold differ";
const STATE_NONE: &str = "partitions whose state cannot be restored";
const STATE_NEXT: &str = "partitions whose state is not as of their end";
const STATE_CLOCK: &str = "partitions whose state has another time";
const STATE_THREADS: &str = "threads whose state is not the fold's";
const ALL: [&str; 16] = [
    UNACKNOWLEDGED,
    LOST,
    MISSING,
    WRONG,
    UNLIKE,
    STRAY,
    DISORDER,
    READABLE,
    DEAD_MISSING,
    DEAD_WRONG,
    DEAD_STRAY,
    EVAL,
    STATE_NONE,
    STATE_NEXT,
    STATE_CLOCK,
    STATE_THREADS,
];

/// What the fold gives for an event.
#[derive(Default)]
struct Expected {
    thread: String,
    event_id: String,
    /// Empty if there is none.
    verdict: Vec<u8>,
    /// The rejection's code.
    rejected: Option<&'static str>,
}

/// Dead letters by the partition and offset of their event.
type DeadLetters = BTreeMap<(String, String), Vec<Record>>;

struct Verifier<'v> {
    deployment: &'v Deployment,
    policy: Arc<Policy>,
    findings: &'v mut Findings,
    totals: Totals,
}

/// Compares all topics of the deployment; no worker may be running. `sent` is what became of the events as their producer knows it.
pub(super) fn verify(cluster: &Cluster, deployment: &Deployment, sent: &[Event], findings: &mut Findings) -> Result<Totals> {
    findings.look_for(&ALL);
    let mut verifier = Verifier { deployment, policy: Arc::new(deployment.policy()?), findings, totals: Totals::default() };
    let mut dead_letters = DeadLetters::new();
    for letter in cluster.read_all(&deployment.dlq)? {
        let stands = (header(&letter, "__connect.errors.partition"), header(&letter, "__connect.errors.offset"));
        dead_letters.entry(stands).or_default().push(letter);
    }
    let events = by_partition(cluster, &deployment.events)?;
    verifier.sent(sent, &events);
    let (decisions, state) = (by_partition(cluster, &deployment.decisions)?, by_partition(cluster, &deployment.state)?);
    for (partition, ((events, decisions), state)) in (0..).zip(events.iter().zip(&decisions).zip(&state)) {
        verifier.partition(partition, events, decisions, state, &mut dead_letters).with_context(|| format!("partition {partition}"))?;
    }
    for ((partition, offset), letters) in dead_letters {
        verifier.findings.add(DEAD_STRAY, || format!("{partition}/{offset}: {} copies", letters.len()));
    }
    Ok(verifier.totals)
}

/// Reads a topic, into its partitions.
fn by_partition(cluster: &Cluster, topic: &str) -> Result<Vec<Vec<Record>>> {
    let mut partitions = vec![Vec::new(); PARTITIONS as usize];
    for record in cluster.read_all(topic)? {
        partitions[record.partition as usize].push(record);
    }
    Ok(partitions)
}

impl Verifier<'_> {
    /// Checks that every event is acknowledged and there. A producer that sends a batch again may have stored it twice.
    fn sent(&mut self, sent: &[Event], events: &[Vec<Record>]) {
        let mut stored = vec![0_usize; sent.len()];
        for number in events.iter().flatten().filter_map(number_of) {
            stored[number] += 1;
        }
        for (number, (event, copies)) in sent.iter().zip(&stored).enumerate() {
            match (event.acknowledged_us > 0, copies) {
                (false, _) => self.findings.add(UNACKNOWLEDGED, || format!("event {number}: {event:?}")),
                (true, 0) => self.findings.add(LOST, || format!("event {number}: {event:?}")),
                (true, copies) => self.totals.stored_again += copies - 1,
            }
        }
    }

    fn partition(
        &mut self,
        partition: i32,
        events: &[Record],
        decisions: &[Record],
        state: &[Record],
        dead_letters: &mut DeadLetters,
    ) -> Result<()> {
        self.totals.events += events.len();
        let mut processor = Processor::new(Partition(partition), Deciding::new(Arc::clone(&self.policy)));
        let expected: Vec<Expected> = events.iter().map(|event| self.fold(&mut processor, event)).collect();
        let departures = processor.stage().threads().departures();
        self.totals.departures.expired += departures.expired;
        self.totals.departures.evicted += departures.evicted;
        self.totals.departures.refused += departures.refused;
        self.dead_letters(events, &expected, dead_letters);
        self.eval(partition, events)?;
        self.verdicts(events, &expected, decisions);
        self.state(partition, &processor, state);
        Ok(())
    }

    /// Folds one event.
    fn fold(&mut self, processor: &mut Processor, event: &Record) -> Expected {
        let headers: Vec<_> = event.headers.iter().map(|(name, value)| Header { name, value: value.as_deref() }).collect();
        let record = Decodable {
            topic: &self.deployment.events,
            partition: processor.partition(),
            offset: Offset(event.offset),
            timestamp_ms: event.timestamp,
            key: event.key.as_deref(),
            value: event.value.as_deref(),
            headers: &headers,
        };
        let mut out = VerdictBuffer::default();
        let applied = processor.apply(&record, &mut out);
        let mut expected = Expected { thread: out.thread_id, event_id: out.event_id, ..Expected::default() };
        match applied {
            Ok(Applied::Taken(Progress::Done(Outcome::Verdict { decided, .. }))) => {
                expected.verdict = out.json;
                *self.totals.verdicts.entry(decided.action.as_str()).or_default() += 1;
            }
            Ok(Applied::Taken(Progress::Done(Outcome::DeadLetter(rejection)))) => {
                expected.rejected = Some(rejection.code.as_str());
                // A record whose thread cannot be read gets no verdict.
                if !expected.thread.is_empty() {
                    expected.verdict = out.json;
                    *self.totals.verdicts.entry("invalid").or_default() += 1;
                }
            }
            // Nobody is asked in this policy, and no record comes twice here.
            _ => {}
        }
        if header(event, SEQUENCE).starts_with(UNREADABLE) && expected.rejected.is_none() {
            self.findings.add(READABLE, || stands(event));
        }
        expected
    }

    /// Checks that every rejected event has a dead letter that is its copy.
    fn dead_letters(&mut self, events: &[Record], expected: &[Expected], dead_letters: &mut DeadLetters) {
        for (event, expected) in events.iter().zip(expected) {
            let Some(code) = expected.rejected else { continue };
            let Some(letters) = dead_letters.remove(&(event.partition.to_string(), event.offset.to_string())) else {
                self.findings.add(DEAD_MISSING, || format!("{}: {code}", stands(event)));
                continue;
            };
            self.totals.dead_letters += 1;
            self.totals.duplicate_dead_letters += letters.len() as u64 - 1;
            for letter in letters {
                let is_copy = (&letter.key, &letter.value) == (&event.key, &event.value) && letter.headers.starts_with(&event.headers);
                let topic = header(&letter, "__connect.errors.topic");
                if !is_copy || header(&letter, "__connect.errors.class.name") != code || topic != self.deployment.events {
                    self.findings.add(DEAD_WRONG, || format!("{}: {code}, found {:?}", stands(event), letter.headers));
                }
            }
        }
    }

    /// Checks that `tollgate eval` gives the bytes of a fold of the values alone: without its key, a record that cannot be read belongs to no
    /// thread.
    fn eval(&mut self, partition: i32, events: &[Record]) -> Result<()> {
        let mut processor = Processor::new(Partition(partition), Deciding::new(Arc::clone(&self.policy)));
        let verdict = |event: &Record| {
            let record = Decodable {
                topic: &self.deployment.events,
                partition: processor.partition(),
                offset: Offset(event.offset),
                timestamp_ms: event.timestamp,
                key: None,
                value: event.value.as_deref(),
                headers: &[],
            };
            let mut out = VerdictBuffer::default();
            let applied = processor.apply(&record, &mut out);
            let is_published = matches!(applied, Ok(Applied::Taken(Progress::Done(outcome))) if outcome.is_published());
            is_published.then_some(out.json)
        };
        let wanted: Vec<_> = events.iter().filter_map(verdict).collect();
        let values: Vec<_> = events.iter().map(|event| Outgoing { value: event.value.clone(), ..Outgoing::default() }).collect();
        let lines = self.deployment.eval(&values)?;
        let differs = wanted.iter().zip(&lines).position(|(wanted, line)| wanted.as_slice() != line.as_bytes());
        if differs.is_some() || wanted.len() != lines.len() {
            self.findings.add(EVAL, || format!("partition {partition}: {} and {} lines, from {differs:?}", wanted.len(), lines.len()));
        }
        Ok(())
    }

    /// Checks that every event that wants one has a verdict, which is the fold's; its copies are equal and its first ones in order. An event
    /// that is stored several times has several verdicts.
    fn verdicts(&mut self, events: &[Record], expected: &[Expected], verdicts: &[Record]) {
        let mut places: HashMap<String, Vec<usize>> = HashMap::new();
        for (at, event) in events.iter().enumerate().filter(|(at, _)| !expected[*at].verdict.is_empty()) {
            places.entry(header(event, SEQUENCE)).or_default().push(at);
        }
        let mut firsts: Vec<Option<&Record>> = vec![None; events.len()];
        let mut reached: HashMap<&str, usize> = HashMap::new();
        for verdict in verdicts {
            let Some(places) = places.get(&header(verdict, SEQUENCE)) else {
                self.findings.add(STRAY, || format!("{}: {}", stands(verdict), text(verdict.value.as_deref())));
                continue;
            };
            let (at, event, wanted) = (places[0], &events[places[0]], &expected[places[0]]);
            let is_addressed = verdict.key.as_deref() == Some(wanted.thread.as_bytes()) && header(verdict, "event_id") == wanted.event_id;
            let is_wanted = |at: &usize| verdict.value.as_deref() == Some(&expected[*at].verdict);
            if !is_addressed || !places.iter().any(is_wanted) {
                self.findings.add(WRONG, || {
                    let (wanted, found) = (text(Some(&wanted.verdict)), text(verdict.value.as_deref()));
                    format!("event {}, verdict {}\nwanted {wanted}\nfound  {found}", stands(event), stands(verdict))
                });
            }
            match firsts[at] {
                Some(first) => {
                    self.totals.duplicates += 1;
                    let is_equal = (&first.key, &first.value, &first.headers) == (&verdict.key, &verdict.value, &verdict.headers);
                    if places.len() == 1 && !is_equal {
                        self.findings
                            .add(UNLIKE, || format!("event {}, verdicts {} and {}", stands(event), stands(first), stands(verdict)));
                    }
                }
                None => {
                    firsts[at] = Some(verdict);
                    if reached.insert(&wanted.thread, at).is_some_and(|last| last > at) {
                        self.findings.add(DISORDER, || format!("event {}, verdict {}", stands(event), stands(verdict)));
                    }
                }
            }
        }
        let missing = places.values().map(|places| places[0]).filter(|at| firsts[*at].is_none());
        missing.for_each(|at| self.findings.add(MISSING, || stands(&events[at])));
    }

    /// Checks that the state topic holds what the fold has come to.
    fn state(&mut self, partition: i32, processor: &Processor, records: &[Record]) {
        self.totals.state_records += records.len() as u64;
        let mut restore = Restore::<ThreadStore>::default();
        for record in records {
            restore.take(Offset(record.offset), record.key.as_deref(), record.value.as_deref());
        }
        let restored = match restore.finish(&format!("{}/{}", self.deployment.group, self.deployment.events), self.policy.store_limits()) {
            Ok(Some(restored)) => restored,
            // A partition without events has no state.
            Ok(None) if processor.next() == Offset(0) => return,
            other => return self.findings.add(STATE_NONE, || format!("partition {partition}: {:?}", other.map(|_| "nothing is there"))),
        };
        if restored.next != processor.next() {
            self.findings.add(STATE_NEXT, || format!("partition {partition}: wanted {}, found {}", processor.next(), restored.next));
        }
        if restored.state.clock() != processor.stage().threads().clock() {
            let (wanted, found) = (processor.stage().threads().clock(), restored.state.clock());
            self.findings.add(STATE_CLOCK, || format!("partition {partition}: wanted {wanted:?}, found {found:?}"));
        }
        let shown = |threads: &ThreadStore| threads.iter().map(|(id, stored)| (id.to_string(), stored.clone())).collect::<BTreeMap<_, _>>();
        let (wanted, found) = (shown(processor.stage().threads()), shown(&restored.state));
        self.totals.threads += found.len() as u64;
        for (id, thread) in &wanted {
            if found.get(id) != Some(thread) {
                self.findings.add(STATE_THREADS, || format!("partition {partition}, {id}:\nwanted {thread:?}\nfound  {:?}", found.get(id)));
            }
        }
        for (id, thread) in found.iter().filter(|(id, _)| !wanted.contains_key(*id)) {
            self.findings.add(STATE_THREADS, || format!("partition {partition}, {id}:\nwanted nothing\nfound  {thread:?}"));
        }
    }
}

fn stands(record: &Record) -> String {
    format!("{}/{} at {:?}", record.partition, record.offset, record.timestamp)
}

fn text(value: Option<&[u8]>) -> String {
    String::from_utf8_lossy(value.unwrap_or_default()).into_owned()
}
