//! What the topics should hold: the signals of the same events, decided in this process, and the fold of the signals topic.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use tollgate_abuse::{Abuse, AbuseState};
use tollgate_config::settings::Settings;
use tollgate_core::decide::controls::Controls;
use tollgate_core::decide::deciding::{Deciding, VerdictBuffer};
use tollgate_core::decide::policy::Policy;
use tollgate_core::decide::signal::{Batch, SubjectPartitions, read};
use tollgate_core::engine::processor::{Applied, PartitionProcessor};
use tollgate_core::engine::stage::{Progress, Stage as _};
use tollgate_core::event::record::{Offset, Partition};
use tollgate_testkit::Record;

/// One signal as text, so that all of it is compared: every field of a point, or of an amount.
pub(super) type SignalText = String;

/// The records that a fold publishes.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Published {
    /// Keys and values of alerts.
    pub(super) alerts: BTreeSet<(String, String)>,
    /// Keys and values of controls; a tombstone is an empty value.
    pub(super) controls: BTreeSet<(String, String)>,
    /// The last value of each control.
    pub(super) last: BTreeMap<String, String>,
}

fn record<'r>(topic: &'r str, record: &'r Record) -> tollgate_core::event::record::Record<'r> {
    tollgate_core::event::record::Record {
        topic,
        partition: Partition(record.partition),
        offset: Offset(record.offset),
        timestamp_ms: record.timestamp,
        key: record.key.as_deref(),
        value: record.value.as_deref(),
        headers: &[],
    }
}

/// Returns the signals of events, decided partition by partition under these settings.
pub(super) fn signals_of(settings: &Settings, topic: &str, events: &[Record]) -> Result<BTreeSet<SignalText>> {
    let policy = Policy::under(&settings.policy, Arc::new(Controls::new(settings.subject_keys.iter())));
    let policy = Arc::new(policy.with_signals(settings.abuse.rules.interest()));
    let (mut said, mut out) = (BTreeSet::new(), VerdictBuffer::default());
    let partitions: BTreeSet<i32> = events.iter().map(|event| event.partition).collect();
    for partition in partitions {
        let mut processor = PartitionProcessor::new(Partition(partition), Deciding::new(Arc::clone(&policy)));
        for event in events.iter().filter(|event| event.partition == partition) {
            let applied = processor.apply(&record(topic, event), &mut out)?;
            ensure!(matches!(applied, Applied::Taken(Progress::Done(_))), "nothing is asked elsewhere");
            processor.published(Offset(event.offset), 0)?;
            let (mut batches, mut partitions, mut targets) = ([Batch::default()], SubjectPartitions::new(1), Vec::new());
            out.signals.add_to((Partition(partition), Offset(event.offset)), &mut partitions, &mut batches, &mut targets);
            let mut value = Vec::new();
            batches[0].take(&mut value);
            said.extend(say(&value, |_, _| true)?);
        }
    }
    Ok(said)
}

/// Returns the signals of a signals topic without those that are repeated, by the rule of the abuse stage: what is at or below the last
/// offset of its source on the same partition was there before.
pub(super) fn signals_in(signals: &[Record]) -> Result<BTreeSet<SignalText>> {
    let (mut said, mut applied) = (BTreeSet::new(), BTreeMap::<(i32, i32), i64>::new());
    for record in signals {
        let value = record.value.as_deref().context("a value")?;
        let before = applied.clone();
        let is_new = |source: i32, offset: i64| before.get(&(record.partition, source)).is_none_or(|applied| offset > *applied);
        let new = say(value, is_new)?;
        let parsed = read(Some(value))?;
        let places = parsed.points.iter().map(|point| (point.source.0, point.offset.0));
        let amounts = parsed.volumes.iter().flat_map(|volume| volume.amounts.iter().map(|(offset, _)| (volume.source.0, offset.0)));
        for (source, offset) in places.chain(amounts) {
            let last = applied.entry((record.partition, source)).or_insert(offset);
            *last = offset.max(*last);
        }
        for one in new {
            ensure!(said.insert(one.clone()), "counted twice: {one}");
        }
    }
    Ok(said)
}

/// Returns the signals of a record's value that are new.
fn say(value: &[u8], is_new: impl Fn(i32, i64) -> bool) -> Result<Vec<SignalText>> {
    let value: Value = serde_json::from_slice(value)?;
    let list = |name: &str| value[name].as_array().cloned().unwrap_or_default();
    let number = |value: &Value| value.as_i64().unwrap_or_default();
    let source = |signal: &Value| i32::try_from(number(&signal["partition"])).unwrap_or_default();
    let points = list("signals").into_iter().filter(|point| is_new(source(point), number(&point["offset"])));
    let mut said: Vec<_> = points.map(|point| point.to_string()).collect();
    for volume in list("volumes") {
        for kind in ["call", "response", "tokens"] {
            for amount in volume[kind].as_array().into_iter().flatten().filter(|amount| is_new(source(&volume), number(&amount[0]))) {
                said.push(format!("{kind} {} {} {} {amount}", volume["subject"], volume["partition"], volume["second"]));
            }
        }
    }
    Ok(said)
}

/// Returns what the fold of a signals topic publishes.
pub(super) fn fold(settings: &Settings, topic: &str, signals: &[Record]) -> Published {
    let rules = Arc::new(settings.abuse.rules.clone());
    let mut published = Published::default();
    let partitions: BTreeSet<i32> = signals.iter().map(|record| record.partition).collect();
    for partition in partitions {
        let mut abuse = Abuse::new(Arc::clone(&rules), AbuseState::default());
        for one in signals.iter().filter(|one| one.partition == partition) {
            let Progress::Done(folded) = abuse.apply(&record(topic, one), &mut ()) else { continue };
            for alert in folded.alerts {
                published.alerts.insert((alert.key, String::from_utf8_lossy(&alert.value).into_owned()));
            }
            for control in folded.controls {
                let value = control.value.map(|value| String::from_utf8_lossy(&value).into_owned()).unwrap_or_default();
                published.last.insert(control.key.clone(), value.clone());
                published.controls.insert((control.key, value));
            }
        }
    }
    published
}

/// Returns what topics of alerts and controls hold.
pub(super) fn published(alerts: &[Record], controls: &[Record]) -> Published {
    let pair = |record: &Record| {
        let text = |bytes: &Option<Vec<u8>>| String::from_utf8_lossy(bytes.as_deref().unwrap_or_default()).into_owned();
        (text(&record.key), text(&record.value))
    };
    Published {
        alerts: alerts.iter().map(pair).collect(),
        controls: controls.iter().map(pair).collect(),
        last: controls.iter().map(pair).collect(),
    }
}
