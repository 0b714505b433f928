//! Checks that every event that wants one has its verdict, and that it is the one `tollgate eval` gives.

use std::collections::{BTreeMap, HashMap};

use anyhow::{Context as _, Result, ensure};
use tollgate_testkit::{Cluster, Deployment, Outgoing};

use super::events::Event;
use super::load::number_of;

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
/// read again: a producer that sends a batch twice is not always told the right offset, and may have stored it twice.
pub(crate) fn check(cluster: &Cluster, deployment: &Deployment, events: &[Event]) -> Result<Checked> {
    let mut checked = Checked {
        unacknowledged: events.iter().filter(|event| event.acknowledged_us == 0).count(),
        copies: events.iter().map(|event| u64::from(event.copies)).sum(),
        ..Checked::default()
    };
    let mut partitions: BTreeMap<i32, Vec<Outgoing>> = BTreeMap::new();
    for record in cluster.read_all(&deployment.events)? {
        partitions.entry(record.partition).or_default().push(Outgoing { value: record.value, ..Outgoing::default() });
    }
    let mut wanted: HashMap<usize, Vec<String>> = HashMap::new();
    for (partition, values) in partitions {
        let mut lines = deployment.eval(&values)?.into_iter();
        for value in values {
            let number = value.value.as_deref().and_then(number_of).context("a record of the events topic without a number")?;
            let verdicts = wanted.entry(number).or_default();
            if events.get(number).context("an event that was never sent")?.is_awaited {
                verdicts.push(lines.next().with_context(|| format!("partition {partition}: eval gives too few verdicts"))?);
            }
        }
        ensure!(lines.next().is_none(), "partition {partition}: eval gives too many verdicts");
    }
    for (number, event) in events.iter().enumerate().filter(|(_, event)| event.acknowledged_us > 0) {
        let wanted = wanted.get(&number).with_context(|| format!("event {number} was acknowledged and is not stored"))?;
        if event.is_awaited {
            compare(number, event, wanted, &mut checked);
        }
    }
    Ok(checked)
}

/// Compares what was seen of an event with its verdicts; there are several if it is stored several times.
fn compare(number: usize, event: &Event, wanted: &[String], checked: &mut Checked) {
    let place = format!("event {number}, partition {}, offset {}, {}", event.partition, event.offset, event.thread);
    if event.seen_us == 0 {
        checked.missing += 1;
        return example(checked, || format!("missing: {place}"));
    }
    for found in [Some(&event.verdict), event.unlike.as_ref()].into_iter().flatten() {
        if !wanted.iter().any(|wanted| wanted.as_bytes() == found.as_slice()) {
            checked.different += 1;
            example(checked, || {
                format!("different: {place}\nwanted {}\nfound  {}", wanted.join("\n   or  "), String::from_utf8_lossy(found))
            });
        }
    }
}

fn example(checked: &mut Checked, words: impl FnOnce() -> String) {
    if checked.examples.len() < EXAMPLES {
        checked.examples.push(words());
    }
}
