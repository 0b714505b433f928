//! The moves of threads, in batches: each is one transaction, in which a thread appears on one partition and disappears from another one.

use std::collections::HashSet;

use anyhow::anyhow;

use tollgate_core::decide::thread::ThreadStore;
use tollgate_core::engine::checkpoint::{KeyedState, Portable, StateRecord};
use tollgate_core::event::record::Partition;

use super::Job;
use super::placement::{Placement, destination, threads};
use super::writer::{Change, Writer};

/// How many bytes a transaction writes at most, one thread more or less.
const BYTES_MAX: usize = 8 << 20;

/// Moves every thread to where it belongs, and returns how many.
///
/// # Errors
/// The state cannot be read or written. What was written then stays, and the next run goes on behind it.
pub(super) fn run(job: &Job<'_>, placement: &Placement, writer: &Writer<'_>) -> anyhow::Result<u64> {
    let dropped: HashSet<(Partition, &str)> = placement.conflicts.iter().map(|conflict| (conflict.dropped, &*conflict.thread_id)).collect();
    // A thread that moves is two records.
    let records_max = job.options.batch as usize * 2;
    let (mut batch, mut bytes, mut moved) = (Vec::new(), 0, 0);
    for (at, placed) in job.partitions.iter().copied().zip(&placement.partitions) {
        let has_dropped = placement.conflicts.iter().any(|conflict| conflict.dropped == at);
        if placed.leaving.threads == 0 && !has_dropped {
            continue;
        }
        let source = placement.anchor_of(at)?;
        for (key, taken) in threads(job, at)? {
            let target = destination(job, placement.rekey, &key, at);
            let is_dropped = dropped.contains(&(at, &*key));
            // What is dropped where it belongs is written over by what is kept.
            if target == at {
                continue;
            }
            batch.push(Change { partition: at, record: StateRecord::entry::<ThreadStore>(&key, None) });
            if !is_dropped {
                let portable =
                    Portable::read(&taken.value, &source).map_err(|error| anyhow!("partition {at}, a thread's record: {error}"))?;
                let value = portable.write(&placement.anchor_of(target)?);
                bytes += value.len() + key.len();
                batch.push(Change {
                    partition: target,
                    record: StateRecord { key: format!("{}/{key}", ThreadStore::KIND), value: Some(value) },
                });
                moved += 1;
            }
            if batch.len() >= records_max || bytes >= BYTES_MAX {
                writer.commit(&std::mem::take(&mut batch))?;
                bytes = 0;
            }
        }
    }
    if !batch.is_empty() {
        writer.commit(&batch)?;
    }
    Ok(moved)
}
