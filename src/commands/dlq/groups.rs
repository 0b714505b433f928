//! Counts of dead letters by reason, source, stage or time.

use std::collections::BTreeMap;

use clap::ValueEnum;
use serde::Serialize;

use super::letter::Letter;
use crate::commands::shared::{Column, Table, ago, bytes, now_ms, number, stamp, text};

/// What letters are counted by.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum By {
    /// Why they were refused
    #[default]
    Reason,
    /// The topic and the partition that they came from
    Partition,
    /// What refused them
    Stage,
    /// The hour in which they were published, in UTC
    Hour,
    /// The day on which they were published, in UTC
    Day,
}

/// The letters of one group.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(super) struct Group {
    pub(super) letters: u64,
    pub(super) bytes: u64,
    /// Letters without the record's value, which was too large.
    pub(super) without_value: u64,
    /// Letters of records that were sent back before and refused again.
    pub(super) redriven: u64,
    pub(super) first_ms: Option<i64>,
    pub(super) last_ms: Option<i64>,
}

/// Every group, by its name.
#[derive(Debug)]
pub(super) struct Groups {
    by: By,
    pub(super) groups: BTreeMap<String, Group>,
}

impl By {
    /// Returns the title of the groups' names.
    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Reason => "reason",
            Self::Partition => "partition",
            Self::Stage => "stage",
            Self::Hour => "hour",
            Self::Day => "day",
        }
    }

    /// Returns the columns of a table of groups.
    fn columns(self) -> &'static [Column] {
        match self {
            Self::Reason => const { &columns("reason") },
            Self::Partition => const { &columns("came from") },
            Self::Stage => const { &columns("stage") },
            Self::Hour => const { &columns("hour (UTC)") },
            Self::Day => const { &columns("day (UTC)") },
        }
    }

    fn group_of(self, letter: &Letter) -> String {
        // RFC 3339 begins with the day and the hour.
        let time = |length| letter.timestamp_ms.map_or_else(|| "-".to_owned(), |time| stamp(time).chars().take(length).collect());
        match self {
            Self::Reason => letter.reason.clone(),
            Self::Partition => {
                format!("{}/{}", letter.topic, letter.source_partition.map_or_else(|| "-".to_owned(), |number| number.to_string()))
            }
            Self::Stage => letter.stage.clone(),
            Self::Hour => time("2026-01-01T00".len()),
            Self::Day => time("2026-01-01".len()),
        }
    }
}

const fn columns(title: &'static str) -> [Column; 7] {
    [text(title), number("letters"), number("size"), number("no value"), number("redriven"), text("first"), text("last")]
}

impl Groups {
    pub(super) fn new(by: By) -> Self {
        Self { by, groups: BTreeMap::new() }
    }

    pub(super) fn add(&mut self, letter: &Letter) {
        let Group { letters, bytes, without_value, redriven, first_ms, last_ms } = self.groups.entry(self.by.group_of(letter)).or_default();
        *letters += 1;
        *bytes += (letter.key_bytes.unwrap_or(0) + letter.value_bytes.unwrap_or(0)) as u64;
        *without_value += u64::from(letter.value_omitted);
        *redriven += u64::from(letter.redriven > 0);
        let time = letter.timestamp_ms;
        *first_ms = time.map_or(*first_ms, |time| Some(first_ms.map_or(time, |first| first.min(time))));
        *last_ms = time.max(*last_ms);
    }

    /// Returns how many letters there are in all groups.
    pub(super) fn total(&self) -> u64 {
        self.groups.values().map(|group| group.letters).sum()
    }

    /// Returns the groups in the order in which they are shown: the largest first, times in their own order.
    pub(super) fn sorted(&self) -> Vec<(&str, &Group)> {
        let mut sorted: Vec<_> = self.groups.iter().map(|(name, group)| (name.as_str(), group)).collect();
        if !matches!(self.by, By::Hour | By::Day) {
            sorted.sort_by_key(|(_, group)| std::cmp::Reverse(group.letters));
        }
        sorted
    }

    pub(super) fn table(&self) -> Table {
        let now = now_ms();
        let time = |time_ms: Option<i64>| time_ms.map_or_else(|| "-".to_owned(), |time_ms| ago(time_ms, now));
        let mut table = Table::new(self.by.columns());
        for (name, group) in self.sorted() {
            table.row(vec![
                if name.is_empty() { "-".to_owned() } else { name.to_owned() },
                group.letters.to_string(),
                bytes(group.bytes),
                group.without_value.to_string(),
                group.redriven.to_string(),
                time(group.first_ms),
                time(group.last_ms),
            ]);
        }
        table
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::commands::dlq) fn letter(reason: &str, partition: i32, timestamp_ms: i64) -> Letter {
        Letter {
            partition: 0,
            offset: 7,
            timestamp_ms: Some(timestamp_ms),
            reason: reason.to_owned(),
            stage: "decode".to_owned(),
            message: String::new(),
            topic: "agent.events".to_owned(),
            source_partition: Some(partition),
            source_offset: Some(1),
            key_bytes: Some(2),
            value_bytes: Some(100),
            value_omitted: false,
            redriven: 0,
            has_readable_headers: true,
        }
    }

    #[test]
    fn letters_are_counted_by_what_is_asked_for() {
        let letters = [
            letter("value_not_json", 1, 1_795_343_809_768),
            letter("value_null", 0, 1_795_343_800_000),
            Letter { redriven: 2, value_omitted: true, value_bytes: None, ..letter("value_not_json", 1, 1_795_430_209_768) },
        ];
        let by = |by| {
            let mut groups = Groups::new(by);
            letters.iter().for_each(|letter| groups.add(letter));
            assert_eq!(groups.total(), 3);
            groups.sorted().iter().map(|(name, group)| ((*name).to_owned(), group.letters)).collect::<Vec<_>>()
        };
        let pairs = |pairs: &[(&str, u64)]| pairs.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect::<Vec<_>>();
        assert_eq!(by(By::Reason), pairs(&[("value_not_json", 2), ("value_null", 1)]));
        assert_eq!(by(By::Partition), pairs(&[("agent.events/1", 2), ("agent.events/0", 1)]));
        assert_eq!(by(By::Stage), pairs(&[("decode", 3)]));
        assert_eq!(by(By::Hour), pairs(&[("2026-11-22T10", 2), ("2026-11-23T10", 1)]));
        assert_eq!(by(By::Day), pairs(&[("2026-11-22", 2), ("2026-11-23", 1)]));
        let mut groups = Groups::new(By::Reason);
        letters.iter().for_each(|letter| groups.add(letter));
        let expected = Group {
            letters: 2,
            bytes: 104,
            without_value: 1,
            redriven: 1,
            first_ms: Some(1_795_343_809_768),
            last_ms: Some(1_795_430_209_768),
        };
        assert_eq!(groups.groups["value_not_json"], expected);
    }
}
