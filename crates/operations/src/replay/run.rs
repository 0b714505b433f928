//! A replay that runs: takes records from the source, waits until each is due, and hands it over.

use std::io::{IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use tollgate_core::event::record::{OwnedRecord, Record};

use tollgate_recordings::LineFault;
use tollgate_recordings::replay::{Item, Pace, Place, Ready, Schedule, Source, Times, Tracker};
use tollgate_worker::host_time::now_ms;

use crate::Sender;
use crate::units::{count, seconds};

use super::verdict_watch::VerdictWatch;
use super::{Replay, sender};

/// From the start to when the first record is due, where records are due at a time.
const LEAD: Duration = Duration::from_millis(100);
/// A wait shorter than this is not worth a sleep: what is due within it is sent together.
const NAP: Duration = Duration::from_micros(300);
const NAP_MAX: Duration = Duration::from_millis(20);
/// Sends between two looks at acknowledgements.
const LOOK_EVERY: u64 = 64;
const SAVE_INTERVAL: Duration = Duration::from_secs(2);
const SHOW_INTERVAL: Duration = Duration::from_millis(500);

/// Counts of a replay.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Counts {
    pub(super) records: u64,
    pub(super) sent: u64,
    pub(super) acknowledged: u64,
    pub(super) refused: u64,
    pub(super) faults: u64,
    pub(super) bytes: u64,
}

impl Counts {
    /// Returns how many of the records that were sent have been acknowledged or refused.
    pub(super) fn settled(&self) -> u64 {
        self.acknowledged + self.refused
    }
}

/// A replay that runs.
pub(super) struct Run<'r> {
    pub(super) replay: Replay<'r>,
    pub(super) sender: Sender<Place>,
    pub(super) schedule: Schedule,
    pub(super) verdicts: Option<VerdictWatch>,
    pub(super) counts: Counts,
    pub(super) lateness: Times,
    pub(super) tracker: Tracker,
    pub(super) clock: Clock,
}

/// The moments that a replay goes by.
#[derive(Debug)]
pub(super) struct Clock {
    start: Instant,
    saved: Instant,
    shown: Instant,
    is_live: bool,
    /// Whether records are due at times.
    pub(super) is_timed: bool,
    /// How far times are moved in this round.
    pub(super) shift_ms: Option<i64>,
    /// The latest time of a record that was moved.
    latest_ms: Option<i64>,
    /// How long after it was due the last record was handed over.
    behind: Duration,
}

impl Clock {
    /// Returns a clock that begins now. `shift_ms` is how far an earlier part of the same replay moved times.
    pub(super) fn begin(pace: Pace, shift_ms: Option<i64>) -> Self {
        let now = Instant::now();
        let is_live = std::io::stderr().is_terminal();
        let is_timed = !matches!(pace, Pace::Max);
        let lead = if is_timed { LEAD } else { Duration::ZERO };
        Self { start: now + lead, saved: now, shown: now, is_live, is_timed, shift_ms, latest_ms: None, behind: Duration::ZERO }
    }

    /// Returns how long ago the first record was due, or the replay began where none is due at a time.
    pub(super) fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }
}

impl Run<'_> {
    /// Sends what a source holds, as the round of this number. Returns `false` if the replay is to stop.
    ///
    /// # Errors
    /// The source cannot be read any more, or the brokers do not take records.
    pub(super) fn send_round(&mut self, source: &mut dyn Source, round: u64) -> anyhow::Result<bool> {
        if round > 0 {
            self.schedule.begin_round();
            self.clock.shift_ms = None;
        }
        while !self.replay.stop.is_given() {
            match source.next()? {
                Item::End => return Ok(true),
                Item::Nothing => self.look()?,
                Item::Fault(place, fault) => {
                    self.counts.faults += 1;
                    self.clear_line();
                    report_fault(&source.fault(place, &fault));
                }
                Item::Record(place, record) => {
                    if let Some(fault) = self.record(place, &record, round)? {
                        self.counts.faults += 1;
                        self.clear_line();
                        report_fault(&source.fault(place, &fault));
                    }
                }
            }
        }
        Ok(false)
    }

    /// Sends a record and its copies, or returns why it cannot be sent.
    fn record(&mut self, place: Place, record: &OwnedRecord, round: u64) -> anyhow::Result<Option<LineFault>> {
        record.with_borrowed(|record| {
            self.shift(record);
            for copy in 0..self.replay.progress.multiply {
                let number = round * self.replay.progress.multiply + copy;
                let ready = match self.replay.rewriter.ready(record, number, self.clock.shift_ms.filter(|_| self.replay.is_shifted)) {
                    Ok(ready) => ready,
                    // A later copy fails where its number has more digits than were allowed for.
                    Err(fault) => return Ok(Some(fault)),
                };
                if copy == 0 {
                    if let Some(time_ms) = record.timestamp_ms.filter(|_| self.counts.records == 0) {
                        self.replay.target_settings.say_if_old(
                            &self.replay.progress.target,
                            time_ms.saturating_add(self.clock.shift_ms.unwrap_or_default()),
                            now_ms(),
                        );
                    }
                    self.counts.records += 1;
                    self.tracker.send(place, self.replay.progress.multiply);
                }
                let due = self.schedule.next_send(record.timestamp_ms, copy > 0).map(|due| self.clock.start.checked_add(due));
                let due = due.map(|due| due.context("a record is due later than a clock can tell; use --speed or --rate")).transpose()?;
                if !self.wait_until(due)? {
                    return Ok(None);
                }
                self.send(place, record, &ready, due)?;
            }
            Ok(None)
        })
    }

    /// Sets how far times are moved, with the first record of a round: to now, and behind the round before.
    fn shift(&mut self, record: &Record<'_>) {
        let Some(time_ms) = record.timestamp_ms.filter(|_| self.replay.is_shifted) else { return };
        let latest_ms = self.clock.latest_ms;
        let begin = || now_ms().max(latest_ms.map_or(i64::MIN, |latest| latest.saturating_add(1))).saturating_sub(time_ms);
        let shift_ms = *self.clock.shift_ms.get_or_insert_with(begin);
        self.clock.latest_ms = self.clock.latest_ms.max(Some(time_ms.saturating_add(shift_ms)));
        self.replay.progress.shift_ms = Some(shift_ms);
    }

    /// Waits until a record is due. Returns `false` if the sign to stop came first.
    fn wait_until(&mut self, due: Option<Instant>) -> anyhow::Result<bool> {
        if self.counts.sent.is_multiple_of(LOOK_EVERY) {
            self.look()?;
        }
        loop {
            if self.replay.stop.is_given() {
                return Ok(false);
            }
            let left = due.map_or(Duration::ZERO, |due| due.saturating_duration_since(Instant::now()));
            if left.is_zero() {
                return Ok(true);
            }
            self.look()?;
            std::thread::sleep(left.clamp(NAP, NAP_MAX).min(left.max(NAP)));
        }
    }

    fn send(&mut self, place: Place, record: &Record<'_>, ready: &Ready<'_>, due: Option<Instant>) -> anyhow::Result<()> {
        let partition = self.replay.target.partition(record.partition, ready.key.as_deref());
        let now = Instant::now();
        if let (Some(id), Some(verdicts)) = (ready.verdict_id, &self.verdicts) {
            verdicts.awaiting().expect(id, due.unwrap_or(now));
        }
        let stop = self.replay.stop.clone();
        match self.sender.send(sender::record(&self.replay.progress.target, partition, place, ready), || stop.is_given()) {
            Ok(true) => {}
            Ok(false) => return Ok(()),
            Err(error) => {
                self.counts.sent += 1;
                return self.refuse(place, &error);
            }
        }
        if let Some(due) = due {
            let handed = Instant::now();
            self.clock.behind = handed.saturating_duration_since(due);
            self.lateness.note(due, handed);
        }
        self.counts.sent += 1;
        self.counts.bytes += ready.value.as_ref().map_or(0, |value| value.len() as u64);
        Ok(())
    }

    /// Looks at what became of records, keeps the progress and shows it.
    pub(super) fn look(&mut self) -> anyhow::Result<()> {
        for (place, outcome) in self.sender.take() {
            match outcome {
                Ok(_) => {
                    self.counts.acknowledged += 1;
                    self.tracker.settle(place);
                }
                Err(error) => self.refuse(place, &error)?,
            }
        }
        if self.verdicts.as_ref().is_some_and(VerdictWatch::has_ended) {
            return Err(anyhow!("the decisions can no longer be read"));
        }
        if self.replay.progress_file.is_some() && self.clock.saved.elapsed() >= SAVE_INTERVAL {
            self.save()?;
        }
        if self.clock.is_live && self.clock.shown.elapsed() >= SHOW_INTERVAL {
            self.show();
        }
        Ok(())
    }

    /// Notes that a record was refused. A record that is too large is left out, and any other reason ends the replay.
    fn refuse(&mut self, place: Place, error: &KafkaError) -> anyhow::Result<()> {
        match error.rdkafka_error_code() {
            Some(RDKafkaErrorCode::MessageSizeTooLarge) => {
                self.counts.refused += 1;
                self.tracker.settle(place);
                self.clear_line();
                let Place { partition, at } = place;
                say!(
                    "tollgate: the record at {partition}/{at} of the source is larger than the target takes; it is left out (max.message.bytes of the topic)"
                );
                Ok(())
            }
            // Where one record of a batch has such a time, brokers say of the others that they are invalid.
            Some(RDKafkaErrorCode::InvalidTimestamp | RDKafkaErrorCode::InvalidRecord) => Err(anyhow!(
                "the target refuses records, most often for their times (message.timestamp.before.max.ms, message.timestamp.after.max.ms): move them to now with --shift-time; a compacted topic refuses those without a key"
            )),
            Some(RDKafkaErrorCode::MessageTimedOut) => Err(anyhow!("the brokers did not acknowledge records in time; they are away")),
            _ => Err(anyhow!("a record cannot be sent: {error}")),
        }
    }

    /// Writes the progress file, if there is one.
    pub(super) fn save(&mut self) -> anyhow::Result<()> {
        self.clock.saved = Instant::now();
        let Some(file) = &mut self.replay.progress_file else { return Ok(()) };
        self.replay.progress.acknowledged.extend(&self.tracker.acknowledged);
        file.write(&self.replay.progress)
    }

    fn show(&mut self) {
        self.clock.shown = Instant::now();
        let elapsed = self.clock.start.elapsed().as_secs_f64().max(0.001);
        let (rate, behind) = (count(self.counts.sent as f64 / elapsed), seconds(self.clock.behind.as_secs_f64()));
        let verdicts = self.verdicts.as_ref().map(|verdicts| {
            let awaiting = verdicts.awaiting();
            let times = awaiting.latency.percentiles();
            let [p50, p99] = [times.p50, times.p99].map(|ms| seconds(ms / 1_000.0));
            format!(", {} verdicts, p50 {p50}, p99 {p99}", awaiting.answered)
        });
        let line = format!("{} sent, {rate}/s, behind schedule {behind}{}", self.counts.sent, verdicts.unwrap_or_default());
        // Nobody may be there to read it.
        let _shown = write!(std::io::stderr(), "\r\u{1b}[K{line}");
    }

    /// Clears the live line, so that something else can be said.
    pub(super) fn clear_line(&self) {
        if self.clock.is_live {
            let _shown = write!(std::io::stderr(), "\r\u{1b}[K");
        }
    }
}

/// Reports what cannot be sent on stderr, as JSON.
pub fn report_fault(report: &serde_json::Value) {
    say!("{report}");
}
