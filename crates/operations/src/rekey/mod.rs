//! Moves the state of threads to the partitions of their new hash, after the events topic was given more.
//!
//! ```text
//! mark every partition ─▶ fence ─▶ scan ─▶ note anchors and sum ─▶ move, batch by batch ─▶ scan again ─▶ unmark
//! ```
//!
//! A marked partition is taken by no worker. A batch is one transaction: a thread is written to its new partition and removed from its old
//! one, both or neither. So it can be killed at any time, and goes on when it is run again. What does not fit together ends it before
//! anything was moved, and the marks are taken back.
//!
//! | module | what it does |
//! |---|---|
//! | `offline` | is anybody in the group, and is every event of before the change decided |
//! | `placement` | reads the state of all partitions: what is where, and where it belongs |
//! | `writer` | fences workers, and writes transactions |
//! | `moves` | the moves themselves |

mod moves;
mod offline;
mod placement;
mod writer;

use std::time::Instant;

use anyhow::{anyhow, bail, ensure};
use clap::ValueEnum;
use rdkafka::consumer::BaseConsumer;

use tollgate_config::settings::Settings;
use tollgate_config::topics::TopicRole;
use tollgate_config::topics::check_partitions;
use tollgate_core::engine::checkpoint::{Keying, OwnRecords, Rekey, RekeyMark, StateRecord, StateSum};
use tollgate_core::event::record::Partition;
use tollgate_worker::kafka::{PlainContext, Right, StageTopics, asker_config, make_consumer, reader_config};
use tollgate_worker::partition::{RestoreError, read_own_records};

use crate::Topics;
use writer::{Change, Writer};

pub use placement::{PartitionPlacement, Placement, Tally};

/// The options of a rekey.
#[derive(Debug, Clone)]
pub struct Options {
    /// Whether to move the state; else it is only planned.
    pub execute: bool,
    /// How many partitions the state is keyed for, if the state does not say so.
    pub from: Option<u32>,
    /// What to do with misplaced threads.
    pub misplaced: Option<Misplaced>,
    /// Whether to keep the later of two copies of a thread, and to drop the other.
    pub keep_newest: bool,
    /// Whether to move the state though events of before the change are not decided.
    pub accept_lag: bool,
    /// How many threads a transaction moves at most.
    pub batch: u32,
}

/// The result of a rekey.
#[derive(Debug)]
pub enum Rekeyed {
    /// The state of this topic is keyed for this number of partitions, as many as there are.
    Fits(String, usize),
    /// What would be moved, and what is in the way.
    Planned(Placement, Vec<String>),
    /// What was moved.
    Moved(Moved),
}

/// A move that has ended.
#[derive(Debug)]
pub struct Moved {
    /// Where the threads were, and where they belong.
    pub placement: Placement,
    /// How many threads were moved.
    pub moved: u64,
    /// How long that took.
    pub seconds: f64,
    /// How many threads there are.
    pub threads: u64,
}

/// What to do with misplaced threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Misplaced {
    /// Leave them on their partition
    Keep,
    /// Move them to the partition that their id hashes to now
    Move,
}

/// What every step works with.
struct Job<'j> {
    options: &'j Options,
    settings: &'j Settings,
    topics: StageTopics,
    /// Every partition that there is.
    partitions: Vec<Partition>,
    reader: BaseConsumer<PlainContext>,
    asker: BaseConsumer<PlainContext>,
}

/// Moves the state of threads to the partitions of their new hash, or plans it.
///
/// # Errors
/// Something is in the way, or does not fit together, or the brokers do not answer.
pub fn rekey(settings: &Settings, options: &Options) -> anyhow::Result<Rekeyed> {
    let kafka = &settings.kafka;
    let topics = Topics::new(kafka)?;
    let partitions = equal_partitions(&topics, settings)?;
    let group = &kafka.group_id;
    let job = Job {
        options,
        settings,
        topics: StageTopics::of(kafka),
        partitions,
        reader: make_consumer(&reader_config(kafka, group), PlainContext::default())?,
        asker: make_consumer(&asker_config(kafka, group), PlainContext::default())?,
    };
    let own = job.own_records()?;
    match job.rekey(&own)? {
        None => Ok(Rekeyed::Fits(job.topics.state.clone(), job.partitions.len())),
        Some(rekey) if options.execute => job.run(rekey, &own).map(Rekeyed::Moved),
        Some(rekey) => job.plan(rekey, own),
    }
}

/// Returns every partition, if the topics have equal numbers of them.
fn equal_partitions(topics: &Topics<'_>, settings: &Settings) -> anyhow::Result<Vec<Partition>> {
    let kafka = &settings.kafka;
    let (events, decisions, state) = (topics.find(TopicRole::Events)?, topics.find(TopicRole::Decisions)?, topics.find(TopicRole::State)?);
    ensure!(
        state.partitions <= events.partitions,
        "topic {} has {} partitions and {} has {}: partitions cannot be taken away. Recreate the topic that has too many; \
         see docs/partitions.md#more-partitions",
        state.name,
        state.partitions,
        events.name,
        events.partitions
    );
    ensure!(
        state.partitions == events.partitions,
        "topic {name} has {found} partitions and {events} has {wanted}: give it as many first, for example: kafka-topics.sh \
         --bootstrap-server {brokers} --alter --topic {name} --partitions {wanted}",
        name = state.name,
        found = state.partitions,
        events = events.name,
        wanted = events.partitions,
        brokers = kafka.shown_brokers()
    );
    let three: Vec<_> = kafka.topics.each().filter(|topic| [events.name, decisions.name, state.name].contains(&topic.name)).collect();
    let counts: Vec<_> =
        three.iter().map(|topic| if topic.name == decisions.name { decisions.partitions } else { events.partitions } as usize).collect();
    check_partitions(&three, &counts)?;
    state.all()
}

impl Job<'_> {
    fn count(&self) -> u32 {
        u32::try_from(self.partitions.len()).unwrap_or(u32::MAX)
    }

    fn own_records(&self) -> anyhow::Result<Vec<OwnRecords>> {
        let own = read_own_records(&self.reader, &self.topics.state, &self.partitions).map_err(|error| self.unreadable(&error))?;
        let wanted = self.topics.owner();
        for (partition, state) in self.partitions.iter().zip(&own).filter_map(|(partition, own)| Some((partition, own.state.as_ref()?))) {
            ensure!(
                state.owner == wanted,
                "partition {partition} of {} is the state of {} (group/topic of events), and this configuration's would be {wanted}",
                self.topics.state,
                state.owner
            );
        }
        Ok(own)
    }

    fn unreadable(&self, error: &RestoreError) -> anyhow::Error {
        if error.reason() == "forbidden" {
            return anyhow!("{}", Right::read(&self.topics.state).refusal(&self.settings.kafka));
        }
        anyhow!("topic {}: {error}", self.topics.state)
    }

    /// Returns the change that the state has to follow, or `None` if it is keyed for the partitions that there are.
    fn rekey(&self, own: &[OwnRecords]) -> anyhow::Result<Option<Rekey>> {
        let (topic, to) = (&self.topics.state, self.count());
        let from = match (Keying::of(own), self.options.from) {
            (Keying::Moving(rekey), _) => {
                ensure!(
                    rekey.to == to,
                    "the state is being moved from {} to {} partitions, and there are {to} now: it cannot be moved on before that has ended. Restore {topic} \
                     as it was, or recreate it and delete the group's committed offsets, to decide all retained events again",
                    rekey.from,
                    rekey.to
                );
                return Ok(Some(rekey));
            }
            (Keying::Mixed(one, other), _) => {
                bail!("some partitions of {topic} are keyed for {one} partitions, and some for {other}: it is not what tollgate left there")
            }
            (Keying::Other(found), Some(given)) if found != given => {
                bail!("--from {given}: the state says that it is keyed for {found} partitions; leave the option out")
            }
            (Keying::Other(found), _) => found,
            (Keying::Unknown, Some(given)) => given,
            (Keying::Fits, Some(given)) if given < to && own.iter().flat_map(|own| &own.state).all(|state| state.partitions.is_none()) => {
                given
            }
            (Keying::Fits, _) => return Ok(None),
            (Keying::Unknown, None) => return self.check_fitting(own).map(|()| None),
        };
        ensure!(
            from <= to,
            "the state is keyed for {from} partitions, and there are {to}: partitions cannot be taken away. See docs/partitions.md#more-partitions"
        );
        let is_unmarked = |own: &OwnRecords| own.state.as_ref().is_some_and(|state| state.partitions.is_none());
        let last = own.iter().rposition(is_unmarked).map_or(0, |last| last + 1);
        ensure!(last <= from as usize, "--from {from}: partition {} has state too", last.saturating_sub(1));
        Ok((from < to).then_some(Rekey { from, to }))
    }

    /// Checks that the threads are where they hash to, where no record says for how many partitions the state is keyed.
    fn check_fitting(&self, own: &[OwnRecords]) -> anyhow::Result<()> {
        let fitting = placement::fitting(self, own)?;
        let tip = match fitting.first() {
            _ if fitting.contains(&self.count()) => return Ok(()),
            Some(count) => format!("{count} explains where all threads are"),
            None => "no number explains where all threads are".to_owned(),
        };
        bail!(
            "the state in {} does not say for how many partitions it is keyed, because an older tollgate wrote it: say it with --from N ({tip})",
            self.topics.state
        )
    }

    /// Returns what would be moved.
    fn plan(&self, rekey: Rekey, own: Vec<OwnRecords>) -> anyhow::Result<Rekeyed> {
        let members = offline::members(self)?;
        let lags = offline::lags(self, rekey, &own)?;
        let placement = placement::read(self, rekey, own)?;
        let in_the_way = offline::refusal(&members).into_iter().chain(offline::lag_refusal(self, rekey, &lags));
        let obstacles = in_the_way.chain(self.refusals(&placement)).collect();
        Ok(Rekeyed::Planned(placement, obstacles))
    }

    /// Returns why the threads cannot be moved as they are.
    fn refusals(&self, placement: &Placement) -> Vec<String> {
        let mut refusals = Vec::new();
        let misplaced = placement.misplaced();
        if misplaced > 0 && self.options.misplaced.is_none() {
            refusals.push(format!(
                "threads on partitions that their id never hashed to: {misplaced} (such as {}). Their producer uses another partitioner: \
                 --misplaced keep leaves them there, --misplaced move moves them to where their id hashes to now",
                placement.misplaced_samples.join(", ")
            ));
        }
        if !placement.conflicts.is_empty() && !self.options.keep_newest {
            let samples: Vec<_> = placement.conflicts.iter().take(3).map(|conflict| conflict.to_string()).collect();
            refusals.push(format!(
                "threads that two partitions know and that would meet on one: {} (such as {}). --keep-newest keeps what has the later event, \
                 and drops the other",
                placement.conflicts.len(),
                samples.join("; ")
            ));
        }
        refusals
    }

    /// Moves the state.
    fn run(&self, rekey: Rekey, own: &[OwnRecords]) -> anyhow::Result<Moved> {
        if let Some(refusal) = offline::refusal(&offline::members(self)?) {
            bail!("{refusal}");
        }
        if own.iter().all(|own| own.mark.is_none()) {
            self.check_lag(rekey, own)?;
        }
        let mut writer = Writer::new(self)?;
        // Another move may have begun, or ended, before this writer shut it out.
        let own = self.own_records()?;
        ensure!(self.rekey(&own)? == Some(rekey), "another move has ended just now; run it again to see");
        match self.begin(rekey, &own, &mut writer) {
            Ok(placement) => self.move_all(placement, &mut writer),
            Err(error) => {
                self.unmark(&mut writer);
                Err(error)
            }
        }
    }

    /// Takes the marks back after a failure if nothing was moved yet, so that the workers can go on as before. The topic tells it, and not
    /// what was read when this run began: another run may have moved threads since.
    fn unmark(&self, writer: &mut Writer<'_>) {
        let unmarked = self.own_records().and_then(|own| match sum_before(&own) {
            Some(_) => Ok(()),
            None => writer.commit(&self.marks(None)).and_then(|()| writer.settle()),
        });
        if let Err(reason) = unmarked {
            say!("the partitions are still marked as being moved, and no worker takes them: {reason:#}");
        }
    }

    /// Marks and fences every partition, and prepares the move or goes on with the one that was interrupted.
    fn begin(&self, rekey: Rekey, own: &[OwnRecords], writer: &mut Writer<'_>) -> anyhow::Result<Placement> {
        if own.iter().any(|own| own.mark.is_none()) {
            writer.commit(&self.marks(Some(&RekeyMark { from: rekey.from, to: rekey.to, sum: sum_before(own) })))?;
        }
        say!("fencing {} partitions", self.partitions.len());
        writer::fence(self)?;
        writer.settle()?;
        self.prepare(rekey, writer)
    }

    fn check_lag(&self, rekey: Rekey, own: &[OwnRecords]) -> anyhow::Result<()> {
        let lags = offline::lags(self, rekey, own)?;
        offline::lag_refusal(self, rekey, &lags).map_or(Ok(()), |refusal| Err(anyhow!("{refusal}")))
    }

    /// Scans the state that no worker changes any more, and notes what it is measured against.
    fn prepare(&self, rekey: Rekey, writer: &Writer<'_>) -> anyhow::Result<Placement> {
        let own = self.own_records()?;
        // The last transaction of an earlier run may have been on its way until now.
        ensure!(
            own.iter().all(|own| own.mark.is_some()),
            "the marks are not to be seen: another move has ended just now, or the brokers have lost the end of a transaction; run it again to \
             see, and if it stays so, start a worker with `tollgate run --drain-partitions`, which mends that"
        );
        let before = sum_before(&own);
        // What was written to old partitions since the move began was written after the change, by producers that do not know of it.
        if before.is_none() {
            self.check_lag(rekey, &own)?;
        }
        let mut placement = placement::read(self, rekey, own)?;
        if let Some(refusal) = self.refusals(&placement).into_iter().next() {
            bail!("{refusal}");
        }
        let Some(expected) = before else {
            placement.anchor(self, rekey)?;
            let mark = RekeyMark { from: rekey.from, to: rekey.to, sum: Some(placement.sum) };
            let mut changes = self.states(&placement, rekey.from)?;
            changes.extend(self.marks(Some(&mark)));
            writer.commit(&changes)?;
            return Ok(placement);
        };
        ensure!(
            expected == placement.sum,
            "the threads are not those of when the move began ({} then, {} now): something other than tollgate has written to {}",
            expected.entries,
            placement.sum.entries,
            self.topics.state
        );
        say!("going on with the move that was interrupted");
        Ok(placement)
    }

    fn move_all(&self, placement: Placement, writer: &mut Writer<'_>) -> anyhow::Result<Moved> {
        let started = Instant::now();
        let moved = moves::run(self, &placement, writer)?;
        writer.settle()?;
        let seconds = started.elapsed().as_secs_f64();
        let after = placement::read(self, placement.rekey, self.own_records()?)?;
        ensure!(
            after.sum == placement.sum && after.to_move() == 0 && after.conflicts.is_empty(),
            "the threads behind the move are not those before it ({} before, {} behind, {} not moved): the partitions stay marked, and no worker \
             takes them. Run it again; if that does not help, restore {} from a copy",
            placement.sum.entries,
            after.sum.entries,
            after.to_move(),
            self.topics.state
        );
        let mut changes = self.states(&after, placement.rekey.to)?;
        changes.extend(self.marks(None));
        writer.commit(&changes)?;
        writer.settle()?;
        Ok(Moved { placement, moved, seconds, threads: after.sum.entries })
    }

    /// Returns the changes that mark every partition, or take the marks back.
    fn marks(&self, mark: Option<&RekeyMark>) -> Vec<Change> {
        self.partitions.iter().map(|partition| Change { partition: *partition, record: StateRecord::rekey(mark) }).collect()
    }

    /// Returns the changes that write the own record of every partition, keyed for so many.
    fn states(&self, placement: &Placement, partitions: u32) -> anyhow::Result<Vec<Change>> {
        let record = |(partition, own): (&Partition, &OwnRecords)| {
            let mut state = own.state.clone().ok_or_else(|| anyhow!("partition {partition} of {} has no own record", self.topics.state))?;
            state.partitions = Some(partitions);
            Ok(Change { partition: *partition, record: StateRecord::partition(&state) })
        };
        self.partitions.iter().zip(&placement.own).map(record).collect()
    }
}

/// Returns the sum of the threads before the first one was moved, if that was noted.
fn sum_before(own: &[OwnRecords]) -> Option<StateSum> {
    own.iter().find_map(|own| own.mark?.sum)
}
