//! The producer of a replay: records as they were rewritten, each with its place in the source.

use std::time::Duration;

use rdkafka::message::{Header, OwnedHeaders};
use rdkafka::producer::BaseRecord;
use tollgate_core::event::record::Partition;

use tollgate_config::settings::KafkaSettings;
use tollgate_recordings::replay::{Place, Ready};
use tollgate_worker::kafka::Linger;

use crate::{REPORT_TIMEOUT, Sender, Sending, Tagged};

/// How long brokers may be away before a record is given up.
const AWAY_MAX: Duration = Duration::from_secs(120);
/// What a batch takes besides its records, and more.
const BATCH_HEAD_BYTES: u64 = 256;

/// Returns a producer for a topic that takes so many bytes at once, if that is known.
///
/// # Errors
/// librdkafka makes no producer with the user's properties.
pub(super) fn sender(kafka: &KafkaSettings, bytes_max: Option<u64>) -> anyhow::Result<Sender<Place>> {
    let batch_bytes_max = bytes_max.map(|bytes| bytes.saturating_sub(BATCH_HEAD_BYTES));
    let sending = Sending {
        acknowledged_within: AWAY_MAX,
        room_within: AWAY_MAX + REPORT_TIMEOUT,
        client_id: Some("tollgate-replay"),
        linger: Linger::Moment,
        batch_bytes_max,
        may_repeat: false,
    };
    Sender::new(kafka, sending)
}

/// Returns a rewritten record for a partition of a topic; `None` is where its key belongs.
pub(super) fn record<'r>(topic: &'r str, partition: Option<Partition>, place: Place, ready: &'r Ready<'_>) -> Tagged<'r, Place> {
    let mut record = BaseRecord::with_opaque_to(topic, Box::new(place));
    (record.partition, record.timestamp) = (partition.map(|partition| partition.0), ready.timestamp_ms);
    (record.key, record.payload) = (ready.key.as_deref(), ready.value.as_deref());
    if !ready.headers.is_empty() {
        let none = OwnedHeaders::new_with_capacity(ready.headers.len());
        let add = |headers: OwnedHeaders, (name, value): &(&str, Option<_>)| headers.insert(Header { key: name, value: value.as_deref() });
        record.headers = Some(ready.headers.iter().fold(none, add));
    }
    record
}
