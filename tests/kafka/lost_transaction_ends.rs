//! Tests what a takeover does where the mark that ends a transaction of the state is not there. The chaos test loses real ones: a broker that is
//! started again after a crash writes none to partitions that have no leader yet.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Result, ensure};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer as _};
use serde_json::json;

use crate::state::verdicts_are_those_of_eval;
use crate::traffic::conversations;
use tollgate_testkit::{Cluster, Deployment, Outgoing, Record, eventually, wait_until};

const STEP_TIME_MAX: Duration = Duration::from_secs(240);

/// The offset of a checkpoint is committed, and the checkpoint itself counts as aborted, as if an abort had come where the commit was lost. The
/// next owner finds it in the log, and knows the threads that are in it.
pub(crate) fn a_checkpoint_whose_commit_was_lost_is_written_again(cluster: &Cluster) -> Result<()> {
    let mut deployment = Deployment::new(cluster, 1)?;
    // There is one checkpoint: at the end.
    deployment.configure("/worker/checkpoint_interval_ms", json!(3_600_000));
    let events = conversations(60, 71);
    let (before, after) = events.split_at(events.len() / 2);
    cluster.produce(&deployment.events, before)?;
    let worker = deployment.start()?;
    verdicts_are_those_of_eval(cluster, &deployment, before)?;
    assert!(worker.stop()?.success());
    let checkpoint = eventually(|| {
        let checkpoint = cluster.read_all(&deployment.state)?;
        let has_threads = checkpoint.iter().any(|record| record.key.as_deref().is_some_and(|key| key.starts_with(b"thread/")));
        ensure!(has_threads, "the checkpoint is not written");
        Ok(checkpoint)
    })?;

    // Behind it lies an attempt that was cut off. It is not taken for a checkpoint.
    let state = cluster.topic("state", 1, &[("cleanup.policy", "compact")])?;
    for records in [&checkpoint, &checkpoint[..1].to_vec()] {
        let producer = begin(cluster, "lost", &state, records)?;
        producer.abort_transaction(STEP_TIME_MAX)?;
    }
    assert_eq!(cluster.read_all(&state)?, []);
    deployment.configure("/kafka/topics/state", json!(state));
    let worker = deployment.start()?;
    worker.await_line(&["the brokers have lost the commit of a checkpoint; it is written again"])?;
    let contents = |records: Vec<Record>| records.into_iter().map(|record| (record.key, record.value)).collect::<BTreeMap<_, _>>();
    let wanted = contents(checkpoint);
    wait_until("the same records are there", || Ok(contents(cluster.read_all(&state)?) == wanted))?;
    cluster.produce(&deployment.events, after)?;
    let repeated = verdicts_are_those_of_eval(cluster, &deployment, &events)?;
    assert_eq!(repeated, 0, "nothing was decided again");
    Ok(())
}

/// A transaction that is none of the worker's is open in the state. What lies behind it cannot be read, so the partition waits.
pub(crate) fn a_transaction_of_somebody_else_is_named_and_waited_for(cluster: &Cluster) -> Result<()> {
    let deployment = Deployment::new(cluster, 1)?;
    let removal = Record { partition: 0, offset: 0, timestamp: None, key: Some(b"thread/t".to_vec()), value: None, headers: vec![] };
    let producer = begin(cluster, "foreign", &deployment.state, &[removal])?;
    let worker = deployment.spawn("")?;
    wait_until("it says so", || Ok(worker.metric("tollgate_restore_failures_total{reason=\"mismatch\"}").unwrap_or_default() >= 1.0))?;
    worker.await_line(&["the state from offset 0 to ", "kafka-transactions.sh"])?;
    producer.abort_transaction(STEP_TIME_MAX)?;
    worker.wait_ready()?;
    let event = json!({"type": "tool_call", "thread_id": "t", "tool_call_id": "c", "tool_name": "ls", "tool_input": {}});
    let event = Outgoing::new("t", event.to_string());
    cluster.produce(&deployment.events, std::slice::from_ref(&event))?;
    verdicts_are_those_of_eval(cluster, &deployment, &[event])?;
    Ok(())
}

/// Writes records to partition 0 of a topic, in a transaction that stays open.
fn begin(cluster: &Cluster, name: &str, topic: &str, records: &[Record]) -> Result<BaseProducer> {
    let mut config = cluster.client();
    // The brokers must not end it before the case does.
    config.set("transactional.id", cluster.unique(name)).set("transaction.timeout.ms", "900000");
    let producer: BaseProducer = config.create()?;
    producer.init_transactions(STEP_TIME_MAX)?;
    producer.begin_transaction()?;
    for Record { key, value, .. } in records {
        let mut record: BaseRecord<'_, [u8], [u8]> = BaseRecord::to(topic).partition(0).key(key.as_deref().unwrap_or_default());
        record.payload = value.as_deref();
        producer.send(record).map_err(|(error, _)| error)?;
    }
    producer.flush(STEP_TIME_MAX)?;
    Ok(producer)
}
