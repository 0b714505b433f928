//! Writes a control record, and a note of the change that it is.

use std::io::{ErrorKind, Write as _};

use anyhow::anyhow;

use tollgate_config::settings::KafkaSettings;
use tollgate_config::topics::TopicRole;
use tollgate_core::decide::controls::ControlId;

use super::history::{Change, noted};
use crate::commands::shared::controls_topic::{Listing, compact};
use tollgate_operations::{Outgoing, Place, Topics, publish};

/// Writes a record, removes the same control from other partitions, and notes the change. `listing` is what the topic held before. Returns the
/// places of what was written.
pub(super) fn write(
    kafka: &KafkaSettings,
    listing: &anyhow::Result<Listing>,
    id: &ControlId,
    value: Option<&[u8]>,
    change: &Change,
) -> anyhow::Result<Vec<Place>> {
    let place = put(kafka, id, value)?;
    follow_up(kafka, listing, id, place, change)
}

/// Removes the same control from other partitions, and notes the change. Returns the places of the record and of what was removed.
pub(super) fn follow_up(
    kafka: &KafkaSettings,
    listing: &anyhow::Result<Listing>,
    id: &ControlId,
    place: Place,
    change: &Change,
) -> anyhow::Result<Vec<Place>> {
    note(kafka, listing, id, place, change);
    let mut places = vec![place];
    let (key, others) = (id.to_string(), listing.iter().flat_map(|listing| listing.partitions(id)).filter(|other| *other != place.0));
    for partition in others {
        let removed = Outgoing { partition: Some(partition), ..outgoing(kafka, &key, None, "the removal of the same control") };
        places.push(publish(kafka, &removed)?);
        say!(
            "tollgate: partition {partition} of {} had this control too, which another program wrote there, and the stricter one counts: it was removed there",
            kafka.topics.controls
        );
    }
    Ok(places)
}

/// Writes a record, waits until the brokers have acknowledged it, and prints it on stdout with its place. The rest of the command does not depend
/// on the line: the record counts whether anybody reads of it or not.
pub(super) fn put(kafka: &KafkaSettings, id: &ControlId, value: Option<&[u8]>) -> anyhow::Result<Place> {
    // A missing topic is reported at once, and not after a timeout.
    Topics::new(kafka)?.find(TopicRole::Controls)?;
    let key = id.to_string();
    let place = publish(kafka, &outgoing(kafka, &key, value, "the control"))?;
    let (topic, key) = (serde_json::to_string(&kafka.topics.controls)?, serde_json::to_string(&key)?);
    let value = value.map_or_else(|| "null".to_owned(), compact);
    let line = format!(r#"{{"topic":{topic},"partition":{},"offset":{},"key":{key},"value":{value}}}"#, place.0, place.1);
    let printed = writeln!(std::io::stdout(), "{line}");
    // A reader that has gone wants no line.
    if let Some(error) = printed.err().filter(|error| error.kind() != ErrorKind::BrokenPipe) {
        say!("tollgate: the control is written and counts; its line cannot be printed: {error}");
    }
    Ok(place)
}

/// Notes the change that a written record is. If the change cannot be noted, it is written all the same.
fn note(kafka: &KafkaSettings, listing: &anyhow::Result<Listing>, id: &ControlId, place: Place, change: &Change) {
    if listing.as_ref().is_ok_and(Listing::is_partial) {
        say!("tollgate: what restricts counts at once all the same; what permits counts when the transaction has ended");
    }
    let note = || -> anyhow::Result<()> {
        // The changes that a note has are not overwritten unread.
        let listing = listing.as_ref().map_err(|error| anyhow!("{error:#}"))?;
        let (key, value) = noted(listing, id, place, change)?;
        publish(kafka, &outgoing(kafka, &key, Some(&value), "its history")).map(drop)
    };
    if let Err(error) = note() {
        say!("tollgate: it is written, and `control history` will not tell of it: {error:#}");
    }
}

fn outgoing<'a>(kafka: &'a KafkaSettings, key: &'a str, value: Option<&'a [u8]>, what: &'a str) -> Outgoing<'a> {
    Outgoing { topic: &kafka.topics.controls, partition: None, key: Some(key), value, what }
}
