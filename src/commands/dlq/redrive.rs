//! `tollgate dlq redrive`: sends dead letters back to the topic that they came from, and only with `--execute`.
//!
//! A record goes back byte for byte: key, value and its own headers, on the partition of its key, without the headers about the refusal and
//! with one that counts how often it was sent back. A record that is refused again is therefore known, and not sent again by itself. One that
//! was taken leaves no mark: a second run begins behind the places that the first one printed.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufWriter, Write};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{anyhow, bail};
use clap::Args;
use rdkafka::message::{BorrowedMessage, Message};
use rdkafka::producer::BaseRecord;
use serde_json::json;
use tollgate_config::topics::TopicRole;
use tollgate_core::event::record::partition_of;

use tollgate_config::settings::KafkaSettings;
use tollgate_worker::Stop;
use tollgate_worker::kafka::{Linger, Right};

use super::filter::{FilterArgs, Span};
use super::letter::{Letter, redriven_headers};
use crate::commands::shared::{Column, Finding, Interrupt, OutputArgs, OutputFormat, Screen, Table, number, stdout_error, text};
use tollgate_operations::{Outcome, Sender, Sending, Topic, Topics};

/// How long the brokers may take to acknowledge a record.
const SEND_TIMEOUT: Duration = Duration::from_secs(30);

/// Letters may be many, so they are gathered for a moment.
const SENDING: Sending = Sending {
    acknowledged_within: SEND_TIMEOUT,
    // Shorter than a reader may fall silent.
    room_within: Duration::from_secs(10),
    client_id: None,
    linger: Linger::Moment,
    batch_bytes_max: None,
    may_repeat: false,
};

/// The partition and the offset of a dead letter.
type LetterPlace = (i32, i64);

#[derive(Debug, Args)]
pub(crate) struct RedriveArgs {
    #[command(flatten)]
    filter: FilterArgs,
    /// Send to this topic, wherever the records came from [default: the events topic, and only what came from there]
    #[arg(long, value_name = "TOPIC")]
    to: Option<String>,
    /// Send records too that were sent back before and refused again
    #[arg(long)]
    again: bool,
    /// Send at most N records
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
    /// Send at most N records a second, so that others do not wait behind them
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    rate: Option<u32>,
    /// Send the records
    #[arg(long)]
    execute: bool,
    #[command(flatten)]
    output: OutputArgs,
}

/// What is done with a letter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Disposition {
    Send,
    /// Its value is not there: it was too large for the topic of dead letters.
    NoValue,
    /// A header of the record has a name that is not UTF-8, which no client of ours can write.
    Headers,
    /// It came from another topic.
    OtherTopic,
    /// It was sent back before.
    Before,
}

/// How many letters of a reason are sent, and how many are not.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, serde::Serialize)]
struct Counts {
    letters: u64,
    sent: u64,
    no_value: u64,
    redriven_before: u64,
    other_topic: u64,
    unreadable_headers: u64,
}

/// How far it has come.
struct Progress<'a> {
    args: &'a RedriveArgs,
    kafka: &'a KafkaSettings,
    target: Topic<'a>,
    sender: Option<Sender<LetterPlace>>,
    counts: BTreeMap<String, Counts>,
    /// Where to go on, by partition of the dead letters.
    next: BTreeMap<i32, i64>,
    in_flight: BTreeSet<LetterPlace>,
    sent: u64,
    acknowledged: u64,
    /// Letters of other topics, by topic.
    others: BTreeMap<String, u64>,
    failure: Option<anyhow::Error>,
    due: Instant,
}

pub(super) fn execute(args: &RedriveArgs, kafka: &KafkaSettings, screen: Screen) -> anyhow::Result<ExitCode> {
    let target = args.to.as_deref().unwrap_or(&kafka.topics.events);
    if let Some(ours) = kafka.topics.each().find(|topic| topic.name == target && topic.name != kafka.topics.events) {
        bail!("--to {target}: that is {}, and events would be read as something else there; name another topic", ours.spec.path());
    }
    let topics = Topics::new(kafka)?;
    let letters = topics.find(TopicRole::Dlq)?;
    let target = topics.named(target, if args.to.is_some() { "--to" } else { "kafka.topics.events" })?;
    // Where partitions end is asked before anything is sent: what is refused again is not read again.
    let spans = args.filter.spans(&topics, letters)?;
    let interrupt = Interrupt::watch()?;
    let topics = topics.stopped_by(&interrupt.stop);
    let mut progress = Progress::new(args, kafka, target)?;
    for span in spans {
        progress.read(&topics, letters, span, &interrupt.stop);
    }
    progress.finish();
    progress.report(args.output.format(), screen, &interrupt)
}

impl<'a> Progress<'a> {
    fn new(args: &'a RedriveArgs, kafka: &'a KafkaSettings, target: Topic<'a>) -> anyhow::Result<Self> {
        Ok(Self {
            args,
            kafka,
            target,
            sender: if args.execute { Some(Sender::new(kafka, SENDING)?) } else { None },
            counts: BTreeMap::new(),
            next: BTreeMap::new(),
            in_flight: BTreeSet::new(),
            sent: 0,
            acknowledged: 0,
            others: BTreeMap::new(),
            failure: None,
            due: Instant::now(),
        })
    }

    fn is_over(&self, stop: &Stop) -> bool {
        stop.is_given() || self.failure.is_some() || self.args.limit.is_some_and(|limit| self.sent >= limit)
    }

    /// Reads a span and sends the letters that are meant. It notes where to go on, also where the reading fails: behind the last letter.
    fn read(&mut self, topics: &Topics<'_>, letters: Topic<'_>, span: Span, stop: &Stop) {
        let (args, mut next, mut is_over) = (self.args, span.begin.0, self.is_over(stop));
        if !is_over {
            let read = args.filter.read(topics, letters, span, |message, letter| {
                next = message.offset();
                is_over = self.is_over(stop);
                if !is_over {
                    self.take(message, &letter);
                    next += 1;
                }
                !is_over
            });
            match read {
                Ok(_) if !is_over => next = span.end.0,
                // A reader that is to stop gives up at the first trouble.
                Err(error) if !stop.is_given() => self.failure = self.failure.take().or(Some(error)),
                _ => {}
            }
        }
        self.next.insert(span.partition.0, next);
    }

    fn take(&mut self, message: &BorrowedMessage<'_>, letter: &Letter) {
        let disposition = disposition(letter, self.kafka, self.args);
        let counts = self.counts.entry(letter.reason.clone()).or_default();
        counts.letters += 1;
        match disposition {
            Disposition::Send => counts.sent += 1,
            Disposition::NoValue => counts.no_value += 1,
            Disposition::Headers => counts.unreadable_headers += 1,
            Disposition::OtherTopic => counts.other_topic += 1,
            Disposition::Before => counts.redriven_before += 1,
        }
        if disposition == Disposition::OtherTopic {
            *self.others.entry(letter.topic.clone()).or_default() += 1;
        }
        if disposition == Disposition::Send {
            self.sent += 1;
            self.send(message, letter);
        }
    }

    fn send(&mut self, message: &BorrowedMessage<'_>, letter: &Letter) {
        let Some(sender) = &self.sender else { return };
        if let Some(rate) = self.args.rate {
            std::thread::sleep(self.due.saturating_duration_since(Instant::now()));
            self.due = self.due.max(Instant::now()) + Duration::from_secs(1) / rate;
        }
        // A record without a key goes where it was, if that partition is still there.
        let was_on = letter.source_partition.filter(|number| u32::try_from(*number).is_ok_and(|number| number < self.target.partitions));
        let partition = message.key().map_or(was_on, |key| Some(partition_of(key, self.target.partitions).0));
        let headers = redriven_headers(message, letter.redriven + 1);
        self.in_flight.insert((letter.partition, letter.offset));
        let place = Box::new((letter.partition, letter.offset));
        let mut record = BaseRecord::with_opaque_to(self.target.name, place).headers(headers);
        (record.partition, record.key, record.payload) = (partition, message.key(), message.payload());
        if let Err(error) = sender.send(record, || false) {
            self.failure = Some(anyhow!("letter {} was not sent back: {error}", letter.place()));
        }
        let outcomes = sender.take();
        self.note(outcomes);
    }

    /// Notes what has become of records.
    fn note(&mut self, outcomes: Vec<Outcome<LetterPlace>>) {
        for (place @ (partition, offset), outcome) in outcomes {
            match outcome {
                Ok((to_partition, to_offset)) => {
                    self.in_flight.remove(&place);
                    self.acknowledged += 1;
                    if self.args.output.format() == OutputFormat::Json {
                        let line = json!({"kind": "redriven", "letter": format!("{partition}@{offset}"), "topic": self.target.name,
                            "partition": to_partition.0, "offset": to_offset.0});
                        if let Err(error) = writeln!(std::io::stdout(), "{line}") {
                            self.failure.get_or_insert(stdout_error(error).into());
                        }
                    }
                }
                Err(error) => {
                    let (kafka, target) = (self.kafka, self.target.name);
                    let right = Right::refused_by(error.rdkafka_error_code(), &kafka.group_id, || Right::write(target));
                    let why = right.map_or_else(|| error.to_string(), |right| right.refusal(kafka));
                    self.failure.get_or_insert_with(|| anyhow!("letter {partition}@{offset} was not sent back to {target}: {why}"));
                }
            }
        }
    }

    fn finish(&mut self) {
        let Some(sender) = &self.sender else { return };
        let outcomes = sender.finish();
        self.note(outcomes);
        if let Some((partition, offset)) = self.in_flight.first()
            && self.failure.is_none()
        {
            self.failure = Some(anyhow!("the brokers did not acknowledge letter {partition}@{offset}: it may have been sent back"));
        }
        // What was not acknowledged is sent again by whoever goes on from here.
        for (partition, offset) in &self.in_flight {
            self.next.entry(*partition).and_modify(|next| *next = (*next).min(*offset));
        }
    }

    /// Prints what was done, and says where to go on, whether or not somebody reads stdout.
    ///
    /// # Errors
    /// What ended it before its time.
    fn report(mut self, format: OutputFormat, screen: Screen, interrupt: &Interrupt) -> anyhow::Result<ExitCode> {
        let printed = self.print(format, screen);
        self.explain();
        let from: String = self.next.iter().map(|(partition, offset)| format!(" --from {partition}@{offset}")).collect();
        let (target, sent) = (self.target.name, self.sent);
        if self.sender.is_none() {
            say!("to send back to {target}: {sent}; nothing was sent, --execute does it");
        } else {
            say!("sent back to {target}: {}; to go on behind them:{from}", self.acknowledged);
        }
        self.failure.take().map_or(Ok(()), Err)?;
        printed?;
        Ok(interrupt.ended_early().unwrap_or(ExitCode::SUCCESS))
    }

    fn print(&self, format: OutputFormat, screen: Screen) -> anyhow::Result<()> {
        let mut out = BufWriter::new(Finding);
        if format != OutputFormat::Json {
            return Ok(self.table().write(&mut out, screen, format)?);
        }
        for (reason, counts) in &self.counts {
            let mut line = json!({"kind": "reason", "reason": reason});
            if let (Some(line), Ok(serde_json::Value::Object(counts))) = (line.as_object_mut(), serde_json::to_value(counts)) {
                line.extend(counts);
            }
            writeln!(out, "{line}")?;
        }
        for (partition, offset) in &self.next {
            let from = format!("{partition}@{offset}");
            writeln!(out, "{}", json!({"kind": "next", "partition": partition, "offset": offset, "from": from}))?;
        }
        Ok(out.flush()?)
    }

    /// Says why letters are not sent, each reason once.
    fn explain(&self) {
        let sum = |count: fn(&Counts) -> u64| self.counts.values().map(count).sum::<u64>();
        let no_value = sum(|counts| counts.no_value);
        if no_value > 0 {
            say!(
                "tollgate: {no_value} cannot be sent back: their values were too large for the topic of dead letters. The records stand at \
                 the places that tollgate dlq list names, for as long as their own topic holds them"
            );
        }
        let unreadable = sum(|counts| counts.unreadable_headers);
        if unreadable > 0 {
            say!("tollgate: {unreadable} cannot be sent back: a header of theirs has a name that is not UTF-8, and would be refused again");
        }
        let before = sum(|counts| counts.redriven_before);
        if before > 0 {
            say!("tollgate: {before} were sent back before and refused again; --again sends them once more");
        }
        for (topic, count) in &self.others {
            let events = &self.kafka.topics.events;
            say!("tollgate: {count} are refused: they came from {topic} and not from {events}; --to TOPIC says where to send them");
        }
    }

    fn table(&self) -> Table {
        const TO_DO: &[Column] = &columns("to send");
        const DONE: &[Column] = &columns("sent");
        let mut table = Table::new(if self.sender.is_some() { DONE } else { TO_DO });
        for (reason, counts) in &self.counts {
            let Counts { letters, sent, no_value, redriven_before, other_topic, unreadable_headers } = counts;
            let numbers = [letters, sent, no_value, redriven_before, other_topic, unreadable_headers].map(ToString::to_string);
            let reason = if reason.is_empty() { "-".to_owned() } else { reason.clone() };
            table.row(std::iter::once(reason).chain(numbers).collect());
        }
        table
    }
}

const fn columns(sent: &'static str) -> [Column; 7] {
    [text("reason"), number("letters"), number(sent), number("no value"), number("sent before"), number("other topic"), number("headers")]
}

/// Returns what is to be done with a letter.
fn disposition(letter: &Letter, kafka: &KafkaSettings, args: &RedriveArgs) -> Disposition {
    if letter.value_omitted {
        Disposition::NoValue
    } else if !letter.has_readable_headers {
        Disposition::Headers
    } else if args.to.is_none() && letter.topic != kafka.topics.events {
        Disposition::OtherTopic
    } else if letter.redriven > 0 && !args.again {
        Disposition::Before
    } else {
        Disposition::Send
    }
}
