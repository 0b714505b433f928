//! `tollgate state list`: lists the largest or the oldest threads, as a table or as JSONL, one partition after the other.

use std::num::NonZeroUsize;
use std::process::ExitCode;

use clap::Args;

use tollgate_config::settings::KafkaSettings;
use tollgate_config::topics::TopicRole;
use tollgate_core::event::record::Partition;

use super::scan::{Line, Order, Scan, Scanned, Selection};
use super::warn_of_other_owner;
use crate::commands::shared::{Column, OutputArgs, Screen, Table, ago, bytes, now_ms, number, text};
use tollgate_operations::Topics;

/// How many threads are listed by default.
const COUNT: usize = 20;

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// The N threads with the largest records, largest first [default: 20]
    #[arg(long, value_name = "N", conflicts_with = "oldest")]
    largest: Option<NonZeroUsize>,
    /// The N threads that were touched longest ago, oldest first: by touched_ms, the event time that their partition had reached when
    /// their last event was applied
    #[arg(long, value_name = "N")]
    oldest: Option<NonZeroUsize>,
    /// Look at this partition only; may be given several times
    #[arg(long = "partition", value_name = "N", value_parser = clap::value_parser!(u32).range(..=i64::from(i32::MAX)))]
    partitions: Vec<u32>,
    #[command(flatten)]
    output: OutputArgs,
}

/// The sums over all partitions.
#[derive(Debug, Default)]
struct Totals {
    partitions: usize,
    threads: usize,
    bytes: usize,
    stops: usize,
    unreadable: usize,
}

pub(super) fn execute(args: &ListArgs, kafka: &KafkaSettings, screen: Screen) -> anyhow::Result<ExitCode> {
    let topics = Topics::new(kafka)?;
    let topic = topics.find(TopicRole::State)?;
    let mut partitions = if args.partitions.is_empty() {
        topic.all()?
    } else {
        args.partitions.iter().map(|number| topic.partition(*number)).collect::<anyhow::Result<Vec<Partition>>>()?
    };
    partitions.sort_unstable();
    partitions.dedup();
    let (order, count) = args.order();
    let (mut selection, mut totals) = (Selection::new(order, count), Totals::default());
    let mut owners = Vec::new();
    for partition in partitions {
        let mut scan = Scan::new(partition);
        topics.read(topic, partition, |offset, key, value| scan.take(offset, key, value))?;
        let scanned = scan.finish();
        totals.add(&scanned);
        for (offset, error) in &scanned.unreadable {
            say!("tollgate: partition {partition} of {}, record at offset {offset}: {error}", topic.name);
        }
        if let Some(owner) = scanned.owner.filter(|owner| !owners.contains(owner)) {
            warn_of_other_owner(kafka, &owner);
            owners.push(owner);
        }
        selection.add(scanned.lines);
    }
    args.output.print(screen, selection.lines(), |_| table(selection.lines()))?;
    say!("{}", totals.text());
    Ok(if totals.unreadable > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

const COLUMNS: &[Column] = &[
    text("thread"),
    number("partition"),
    number("size"),
    number("calls"),
    text("stop"),
    text("last event"),
    text("touched").wide(),
    number("applied").wide(),
];

/// Returns the lines as a table.
fn table<'l>(lines: impl IntoIterator<Item = &'l Line>) -> Table {
    let now = now_ms();
    let time = |time_ms: Option<i64>| time_ms.map_or_else(|| "-".to_owned(), |time_ms| ago(time_ms, now));
    let mut table = Table::new(COLUMNS);
    for line in lines {
        table.row(vec![
            line.thread_id.to_string(),
            line.partition.to_string(),
            bytes(line.bytes as u64),
            line.calls.to_string(),
            if line.holds_a_stop { "yes" } else { "" }.to_owned(),
            time(line.last_event_ms),
            time(line.touched_ms),
            line.applied.to_string(),
        ]);
    }
    table
}

impl ListArgs {
    fn order(&self) -> (Order, usize) {
        match (self.oldest, self.largest) {
            (Some(count), _) => (Order::Oldest, count.get()),
            (None, count) => (Order::Largest, count.map_or(COUNT, NonZeroUsize::get)),
        }
    }
}

impl Totals {
    fn add(&mut self, scanned: &Scanned) {
        self.partitions += 1;
        self.threads += scanned.lines.len();
        self.bytes += scanned.lines.iter().map(|line| line.bytes).sum::<usize>();
        self.stops += scanned.lines.iter().filter(|line| line.holds_a_stop).count();
        self.unreadable += scanned.unreadable.len();
    }

    fn text(&self) -> String {
        let Self { partitions, threads, bytes, stops, unreadable } = self;
        let unreadable = if *unreadable > 0 { format!(", unreadable records: {unreadable}") } else { String::new() };
        format!("partitions: {partitions}, threads: {threads}, bytes: {bytes}, threads that hold a stop: {stops}{unreadable}")
    }
}
