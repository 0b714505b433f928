//! Checks that every event that wants one has its verdict, and that it is the one `tollgate eval` gives.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use tollgate_testkit::{Deployment, MixEvent, Outgoing};

use crate::events::Event;
use crate::load::{number_of, traffic};

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

/// Compares all verdicts with those of `eval` on the same events, a partition at a time and in the order of its offsets.
pub(crate) fn check(deployment: &Deployment, seed: u64, events: &[Event]) -> Result<Checked> {
    let mut checked = Checked::default();
    let mut partitions: BTreeMap<i32, Vec<(i64, Outgoing)>> = BTreeMap::new();
    let (mut mix, mut next) = (traffic(seed), MixEvent::blank());
    for event in events {
        mix.next_into(&mut next);
        checked.copies += u64::from(event.copies);
        if event.acknowledged_us == 0 {
            checked.unacknowledged += 1;
            continue;
        }
        let value = Outgoing { value: Some(next.value.clone()), ..Outgoing::default() };
        partitions.entry(event.partition).or_default().push((event.offset, value));
    }
    for (partition, mut stored) in partitions {
        stored.sort_by_key(|(offset, _)| *offset);
        let distinct = stored.windows(2).all(|pair| pair[0].0 != pair[1].0);
        ensure!(distinct, "partition {partition}: two events have one offset");
        let values: Vec<_> = stored.into_iter().map(|(_, value)| value).collect();
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
