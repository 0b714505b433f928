//! A log of one partition, and what becomes of it where nothing goes wrong: a processor folds it that is never interrupted.

use std::fmt::Debug;

use tollgate_core::engine::checkpoint::{KeyedState, Restored};
use tollgate_core::engine::processor::{Applied, PartitionProcessor};
use tollgate_core::engine::stage::{Progress, Resumed, Stage};
use tollgate_core::event::decode::{Rejection, RejectionCode};
use tollgate_core::event::record::{Departures, Offset, OwnedRecord, Partition, Record, StreamClock};

pub const PARTITION: Partition = Partition(0);

/// One record of the log.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Logged {
    pub offset: Offset,
    pub timestamp_ms: Option<i64>,
    pub key: Option<&'static str>,
    pub value: Option<String>,
    /// Whether its reader cannot take it apart.
    pub is_unreadable: bool,
}

impl Logged {
    pub fn record(&self) -> Record<'_> {
        let (key, value) = (self.key.map(str::as_bytes), self.value.as_deref().map(str::as_bytes));
        let Self { offset, timestamp_ms, .. } = *self;
        Record { topic: "agent.events", partition: PARTITION, offset, timestamp_ms, key, value, headers: &[] }
    }

    /// Returns the bytes that it takes while it waits, about.
    pub fn bytes(&self) -> usize {
        OwnedRecord::of(&self.record()).bytes()
    }

    /// Applies the record. Its outcome holds nothing that a record before it left in `out`.
    pub fn apply<S: Modelled>(&self, processor: &mut PartitionProcessor<S>, out: &mut S::Output) -> Outcome<S> {
        *out = S::Output::default();
        let applied = if self.is_unreadable {
            processor.reject(&self.record(), Rejection::new(RejectionCode::HeaderInvalid, "headers", "a header", "none"), out)
        } else {
            processor.apply(&self.record(), out)
        };
        (applied.expect("the records come in order"), out.clone())
    }
}

/// The outcome of a record with what is published of it: the same for every processor that applies the record.
pub type Outcome<S> = (Applied<<S as Stage>::Outcome, <S as Stage>::Request>, <S as Stage>::Output);

/// Returns how many publications an outcome waits for.
pub fn due<S: Modelled>((applied, _): &Outcome<S>) -> u32 {
    match applied {
        Applied::Taken(Progress::Done(outcome)) => S::due(outcome),
        Applied::Taken(Progress::Asks(_) | Progress::Waits) | Applied::Redelivered => 0,
    }
}

/// Returns an outcome of which nothing is published.
pub fn silent<S: Modelled>(applied: Applied<S::Outcome, S::Request>) -> Outcome<S> {
    (applied, S::Output::default())
}

/// A stage that the model can run.
pub trait Modelled:
    Stage<
        Outcome: Debug + PartialEq,
        Request: Debug + Clone + PartialEq,
        Output: Debug + Clone + PartialEq,
        State: KeyedState<Entry: Debug + Clone + PartialEq>,
    >
{
    /// What the stage works under.
    type Settings;

    /// Returns a stage with the state of a checkpoint, or one that knows nothing.
    fn under(settings: &Self::Settings, state: Option<Self::State>) -> Self;

    fn limits(settings: &Self::Settings) -> <Self::State as KeyedState>::Limits;

    /// Returns the key under which a record waits; `None` for a record that is no event of the stage.
    fn key(settings: &Self::Settings, logged: &Logged) -> Option<String>;

    /// Returns the response to a request: always the same to the same request.
    fn answer_to(request: &Self::Request) -> Self::Response;

    /// Returns how many publications an outcome waits for.
    fn due(outcome: &Self::Outcome) -> u32;

    fn entries(state: &Self::State) -> Vec<(String, <Self::State as KeyedState>::Entry)>;

    /// Checks what holds of the outcomes of this stage alone.
    fn check(_: &Truth<Self>, _: &Self::Settings) {}
}

/// The whole state of a partition. The entries stand in the order of touch.
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot<E> {
    pub next: Offset,
    clock: StreamClock,
    entries: Vec<(String, E)>,
}

pub type SnapshotOf<S> = Snapshot<<<S as Stage>::State as KeyedState>::Entry>;

fn snapshot<S: Modelled>(next: Offset, state: &S::State) -> SnapshotOf<S> {
    let mut entries = S::entries(state);
    entries.sort_by_key(|(_, entry)| S::State::applied(entry));
    Snapshot { next, clock: state.clock(), entries }
}

pub fn of_processor<S: Modelled>(processor: &PartitionProcessor<S>) -> SnapshotOf<S> {
    snapshot::<S>(processor.next(), processor.stage().state())
}

pub fn of_restored<S: Modelled>(restored: &Restored<S::State>) -> SnapshotOf<S> {
    snapshot::<S>(restored.next, &restored.state)
}

impl<E> Snapshot<E> {
    /// Leaves some entries out.
    pub fn without(mut self, is_left_out: impl Fn(&str) -> bool) -> Self {
        self.entries.retain(|(key, _)| !is_left_out(key));
        self
    }
}

/// The log, and its outcomes where nothing goes wrong.
pub struct Truth<S: Modelled> {
    pub log: Vec<Logged>,
    /// The outcomes by record.
    pub outcomes: Vec<Outcome<S>>,
    /// The requests about each record, in order.
    pub requests: Vec<Vec<S::Request>>,
    /// Each record's key, if it has one.
    pub keys: Vec<Option<String>>,
    /// The state before each record, and behind the last one.
    snapshots: Vec<SnapshotOf<S>>,
    pub departures: Departures,
}

impl<S: Modelled> Truth<S> {
    /// Folds a log with one processor from its beginning to its end, which gets every answer at once.
    pub fn of(settings: &S::Settings, log: Vec<Logged>) -> Self {
        let (mut processor, mut out) = (PartitionProcessor::new(PARTITION, S::under(settings, None)), S::Output::default());
        let mut snapshots = vec![of_processor(&processor)];
        let (mut outcomes, mut requests) = (Vec::new(), Vec::new());
        for logged in &log {
            let mut asked = Vec::new();
            let mut outcome = logged.apply(&mut processor, &mut out);
            while let Applied::Taken(Progress::Asks(request)) = outcome.0 {
                processor.answer(logged.offset, S::answer_to(&request));
                asked.push(request);
                out = S::Output::default();
                let progress = match processor.resume(&mut out).expect("what is answered goes on") {
                    Resumed::Asks(_, request) => Progress::Asks(request),
                    Resumed::Done { outcome, .. } => Progress::Done(outcome),
                };
                outcome = (Applied::Taken(progress), out.clone());
            }
            outcomes.push(outcome);
            requests.push(asked);
            snapshots.push(of_processor(&processor));
        }
        let keys = log.iter().map(|logged| S::key(settings, logged)).collect();
        let truth = Self { log, outcomes, requests, keys, snapshots, departures: processor.stage().state().departures() };
        S::check(&truth, settings);
        truth
    }

    /// Returns the first record at an offset or behind it: a committed offset may stand in a gap.
    pub fn index_of(&self, offset: Offset) -> usize {
        self.log.partition_point(|logged| logged.offset < offset)
    }

    /// Returns the state as of an offset.
    pub fn snapshot(&self, next: Offset) -> &SnapshotOf<S> {
        &self.snapshots[self.index_of(next)]
    }

    pub fn last_snapshot(&self) -> &SnapshotOf<S> {
        self.snapshots.last().unwrap()
    }
}
