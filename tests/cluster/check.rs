//! Checks that every event that wants one has its verdict, and that it is the one `tollgate eval` gives.

use std::collections::{BTreeMap, HashSet};

use anyhow::{Context as _, Result, ensure};
use tollgate_testkit::{Cluster, Deployment, Outgoing};

use crate::events::Event;
use crate::load::number_of;

/// How many examples of a finding are shown.
const EXAMPLES: usize = 3;

/// What was found.
#[derive(Debug, Default)]
pub(crate) struct Checked {
    /// Events that the producer was never told of, after all brokers were back.
    pub(crate) unacknowledged: usize,
    /// Events without a verdict.
    pub(crate) missing: usize,
    /// Verdicts, copies among them, that are not those of `eval`.
    pub(crate) different: usize,
    /// Copies beyond the first.
    pub(crate) copies: u64,
    /// Some of each, in words.
    pub(crate) examples: Vec<String>,
}

/// Compares all verdicts with those of `eval` on the same events, a partition at a time and in the order of the events topic. The topic is
/// read again: a producer that sends a batch twice is not always told the right offset.
pub(crate) fn check(cluster: &Cluster, deployment: &Deployment, events: &[Event]) -> Result<Checked> {
    let mut checked = Checked {
        unacknowledged: events.iter().filter(|event| event.acknowledged_us == 0).count(),
        copies: events.iter().map(|event| u64::from(event.copies)).sum(),
        ..Checked::default()
    };
    let mut partitions: BTreeMap<i32, Vec<Outgoing>> = BTreeMap::new();
    let mut stored = HashSet::new();
    for record in cluster.read_all(&deployment.events)? {
        let number = record.value.as_deref().and_then(number_of).context("a record of the events topic without a number")?;
        ensure!(stored.insert(number), "event {number} is stored twice");
        partitions.entry(record.partition).or_default().push(Outgoing { value: record.value, ..Outgoing::default() });
    }
    for number in (0..events.len()).filter(|number| events[*number].acknowledged_us > 0) {
        ensure!(stored.contains(&number), "event {number} was acknowledged and is not stored");
    }
    for (partition, values) in partitions {
        compare(deployment, partition, &values, events, &mut checked)?;
    }
    Ok(checked)
}

fn compare(deployment: &Deployment, partition: i32, values: &[Outgoing], events: &[Event], checked: &mut Checked) -> Result<()> {
    let mut lines = deployment.eval(values)?.into_iter();
    for value in values {
        let number = number_of(value.value.as_deref().unwrap_or_default()).context("an event without a number")?;
        let event = &events[number];
        if !event.is_awaited {
            continue;
        }
        let wanted = lines.next().with_context(|| format!("partition {partition}: eval gives too few verdicts"))?;
        let place = format!("event {number}, partition {partition}, offset {}, {}", event.offset, event.thread);
        if event.seen_us == 0 {
            checked.missing += 1;
            example(checked, || format!("missing: {place}"));
            continue;
        }
        for found in [Some(&event.verdict), event.unlike.as_ref()].into_iter().flatten() {
            if found.as_slice() != wanted.as_bytes() {
                checked.different += 1;
                example(checked, || format!("different: {place}\nwanted {wanted}\nfound  {}", String::from_utf8_lossy(found)));
            }
        }
    }
    ensure!(lines.next().is_none(), "partition {partition}: eval gives too many verdicts");
    Ok(())
}

fn example(checked: &mut Checked, words: impl FnOnce() -> String) {
    if checked.examples.len() < EXAMPLES {
        checked.examples.push(words());
    }
}
