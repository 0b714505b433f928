//! Tests the harness itself: the broker runs, and what the other tests rely on holds.

use anyhow::Result;
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer as _};
use rdkafka::{Offset, TopicPartitionList};

use tollgate_testkit::{Broker, Cluster, Outgoing, wait_until};

/// Keys go to the partitions that follow from the hashes in the tests of the Java client.
pub(crate) fn a_key_lands_where_java_puts_it(cluster: &Cluster) -> Result<()> {
    const PARTITIONS: i32 = 7;
    let vectors: Vec<serde_json::Value> = serde_json::from_str(include_str!("../../crates/core/tests/fixtures/murmur2.json"))?;
    let hashes: Vec<(&str, i64)> =
        vectors.iter().map(|vector| (vector["key"].as_str().expect("a key"), vector["murmur2"].as_i64().expect("a hash"))).collect();
    assert_eq!(hashes.len(), 6);
    let topic = cluster.topic("murmur2", PARTITIONS, &[])?;
    let records: Vec<_> = hashes.iter().map(|(key, _)| Outgoing::new(*key, "x")).collect();
    let positions = cluster.produce(&topic, &records)?;
    for ((key, hash), position) in hashes.iter().zip(positions) {
        assert_eq!(i64::from(position.partition), (hash & 0x7fff_ffff) % i64::from(PARTITIONS), "{key}");
    }
    Ok(())
}

pub(crate) fn a_record_comes_back_as_it_was_sent(cluster: &Cluster) -> Result<()> {
    let topic = cluster.topic("verbatim", 3, &[])?;
    let sent = Outgoing { timestamp: Some(1_577_836_800_000), ..Outgoing::new("key", [0, 159, 146, 150]) };
    let sent = sent.header("a", "1").header("a", [255]).partition(2);
    let tombstone = Outgoing { value: None, headers: vec![("none".to_owned(), None)], ..sent.clone() };
    cluster.produce(&topic, &[sent.clone(), tombstone.clone()])?;

    let read = cluster.read_all(&topic)?;
    assert_eq!(read.len(), 2);
    for (offset, (read, sent)) in (0..).zip(read.into_iter().zip([sent, tombstone])) {
        assert_eq!((read.partition, read.offset), (2, offset));
        assert_eq!((read.key, read.value, read.headers, read.timestamp), (sent.key, sent.value, sent.headers, sent.timestamp));
    }
    Ok(())
}

pub(crate) fn commits_are_found_again(cluster: &Cluster) -> Result<()> {
    let topic = cluster.topic("commits", 2, &[])?;
    let group = cluster.unique("group");
    assert!(cluster.committed(&group, &topic)?.is_empty());
    cluster.produce(&topic, &[Outgoing::new("key", "value").partition(1)])?;

    let consumer: BaseConsumer = cluster.client().set("group.id", &group).create()?;
    let mut offsets = TopicPartitionList::new();
    offsets.add_partition_offset(&topic, 1, Offset::Offset(1))?;
    // The coordinator of the group has to be found, which is elected at the first commit of all.
    wait_until("it is committed", || Ok(consumer.commit(&offsets, CommitMode::Sync).is_ok()))?;
    assert_eq!(cluster.committed(&group, &topic)?.into_iter().collect::<Vec<_>>(), [(1, 1)]);
    Ok(())
}

pub(crate) fn acknowledged_records_survive_a_kill(cluster: &Cluster, broker: &mut Broker) -> Result<()> {
    let topic = cluster.topic("kill", 1, &[])?;
    cluster.produce(&topic, &[Outgoing::new("key", "before the kill")])?;
    broker.kill()?;
    broker.start_again()?;
    cluster.produce(&topic, &[Outgoing::new("key", "before the stop")])?;
    broker.stop()?;
    broker.start_again()?;
    assert_eq!(broker.bootstrap(), cluster.bootstrap());
    cluster.produce(&topic, &[Outgoing::new("key", "after")])?;

    let records = cluster.read_until(&topic, |records| records.len() == 3)?;
    let values: Vec<_> = records.iter().map(|record| String::from_utf8_lossy(record.value.as_deref().unwrap())).collect();
    assert_eq!(values, ["before the kill", "before the stop", "after"]);
    Ok(())
}
