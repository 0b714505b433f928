//! `tollgate dlq list`: counts dead letters, and lists the newest of them.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufWriter, Write};
use std::process::ExitCode;

use clap::Args;
use serde::Serialize;

use tollgate_config::settings::KafkaSettings;
use tollgate_config::topics::TopicRole;

use super::filter::{FilterArgs, Passed};
use super::groups::{By, Group, Groups};
use super::letter::Letter;
use crate::commands::shared::{Column, OutputArgs, OutputFormat, Screen, Table, ago, bytes, now_ms, number, text};
use tollgate_operations::Topics;

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    filter: FilterArgs,
    /// What letters are counted by
    #[arg(long, value_enum, value_name = "WHAT", default_value_t = By::Reason)]
    by: By,
    /// How many single letters to list, the newest first
    #[arg(long, value_name = "N", default_value_t = 20)]
    limit: usize,
    #[command(flatten)]
    output: OutputArgs,
}

/// A line of JSON.
#[derive(Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Line<'l> {
    Group {
        by: &'static str,
        group: &'l str,
        #[serde(flatten)]
        counts: &'l Group,
    },
    Letter(&'l Letter),
}

const COLUMNS: &[Column] = &[
    text("letter"),
    text("published"),
    text("reason"),
    text("came from"),
    number("offset"),
    number("key"),
    number("value"),
    number("redriven"),
    text("what is wrong").wide(),
];

/// The newest letters of all that are added.
struct Newest {
    limit: usize,
    /// By time, with the place in the vector: times are not unique.
    letters: BTreeSet<(Option<i64>, i32, i64)>,
    by_place: BTreeMap<(i32, i64), Letter>,
}

impl Newest {
    fn add(&mut self, letter: Letter) {
        if self.limit == 0 {
            return;
        }
        let place = (letter.partition, letter.offset);
        self.letters.insert((letter.timestamp_ms, place.0, place.1));
        self.by_place.insert(place, letter);
        if self.letters.len() > self.limit
            && let Some((_, partition, offset)) = self.letters.pop_first()
        {
            self.by_place.remove(&(partition, offset));
        }
    }

    fn newest_first(&self) -> impl Iterator<Item = &Letter> {
        self.letters.iter().rev().filter_map(|(_, partition, offset)| self.by_place.get(&(*partition, *offset)))
    }
}

pub(super) fn execute(args: &ListArgs, kafka: &KafkaSettings, screen: Screen) -> anyhow::Result<ExitCode> {
    let topics = Topics::new(kafka)?;
    let topic = topics.find(TopicRole::Dlq)?;
    let (mut groups, mut all) = (Groups::new(args.by), Passed::default());
    let mut newest = Newest { limit: args.limit, letters: BTreeSet::new(), by_place: BTreeMap::new() };
    for span in args.filter.spans(&topics, topic)? {
        let passed = args.filter.read(&topics, topic, span, |_, letter| {
            groups.add(&letter);
            newest.add(letter);
            true
        })?;
        all = Passed { others: all.others + passed.others, strangers: all.strangers + passed.strangers };
    }
    let mut out = BufWriter::new(std::io::stdout().lock());
    match args.output.format() {
        OutputFormat::Json => {
            for (group, counts) in groups.sorted() {
                writeln!(out, "{}", serde_json::to_string(&Line::Group { by: args.by.title(), group, counts })?)?;
            }
            for letter in newest.newest_first() {
                writeln!(out, "{}", serde_json::to_string(&Line::Letter(letter))?)?;
            }
            out.flush()?;
        }
        format => {
            groups.table().write(&mut out, screen, format)?;
            if args.limit > 0 && groups.total() > 0 {
                writeln!(out)?;
                table(newest.newest_first()).write(&mut out, screen, format)?;
            }
        }
    }
    let Passed { others, strangers } = all;
    let left_out = if others > 0 { format!(", left out: {others}") } else { String::new() };
    let strange = if strangers > 0 { format!(", records that are no dead letters: {strangers}") } else { String::new() };
    let listed = newest.letters.len();
    say!("dead letters in {}: {}, listed: {listed}{left_out}{strange}", topic.name, groups.total());
    Ok(ExitCode::SUCCESS)
}

fn table<'l>(letters: impl Iterator<Item = &'l Letter>) -> Table {
    let now = now_ms();
    let size = |size: Option<usize>| size.map_or_else(|| "-".to_owned(), |size| bytes(size as u64));
    let mut table = Table::new(COLUMNS);
    for letter in letters {
        let number = |number: Option<i64>| number.map_or_else(|| "-".to_owned(), |number| number.to_string());
        table.row(vec![
            letter.place(),
            letter.timestamp_ms.map_or_else(|| "-".to_owned(), |time_ms| ago(time_ms, now)),
            letter.reason.clone(),
            format!("{}/{}", letter.topic, number(letter.source_partition.map(i64::from))),
            number(letter.source_offset),
            size(letter.key_bytes),
            if letter.value_omitted { "too large".to_owned() } else { size(letter.value_bytes) },
            if letter.redriven > 0 { letter.redriven.to_string() } else { String::new() },
            letter.message.clone(),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::super::groups::tests::letter;
    use super::*;

    #[test]
    fn the_newest_letters_are_listed() {
        let of = |limit, times: &[i64]| {
            let mut newest = Newest { limit, letters: BTreeSet::new(), by_place: BTreeMap::new() };
            for (offset, time) in (0..).zip(times) {
                newest.add(Letter { offset, ..letter("r", 0, *time) });
            }
            newest.newest_first().map(|letter| (letter.timestamp_ms.unwrap(), letter.offset)).collect::<Vec<_>>()
        };
        assert_eq!(of(2, &[5, 9, 7, 9]), [(9, 3), (9, 1)]);
        assert_eq!(of(9, &[5, 9]), [(9, 1), (5, 0)]);
        assert_eq!(of(0, &[5, 9]), []);
    }
}
