//! A watch on the number of partitions of the events topic while a worker runs.
//!
//! The group learns of new partitions only with the next refresh of its metadata, up to five minutes later. The watch says it within
//! seconds. The new partitions themselves are never taken: their state may still be on another partition.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::BaseConsumer;

use crate::health::Health;
use crate::kafka::{PlainContext, consumer_config, make_consumer, partitions_of};
use crate::settings::KafkaSettings;
use crate::stop::Stop;
use crate::threads::MustRun;

use super::preflight::{METADATA_TIMEOUT, PreflightError};

/// How often the brokers are asked.
const INTERVAL: Duration = Duration::from_secs(1);
/// The part of the health report that says that the topic has grown.
const PARTITIONS: &str = "partitions";

/// What the watch has found.
#[derive(Debug, Clone, Default)]
pub struct GrowthWatch(Arc<AtomicBool>);

impl GrowthWatch {
    /// Returns whether the worker was stopped, because it could not have gone on with the partitions that it had.
    #[must_use]
    pub fn has_stopped_the_worker(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// What a worker does when its topic has got more partitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Growth {
    /// There are as many as before.
    None,
    /// The threads of each partition stay on it or move to a new one: the worker goes on with those that it had.
    ToNewPartitions,
    /// Threads move between the partitions of before, where nothing would be known of them: the worker stops.
    AmongOldPartitions,
}

impl Growth {
    fn of(keyed_for: u32, known: u32, found: u32) -> Self {
        if found <= known {
            Self::None
        } else if keyed_for > 0 && found.is_multiple_of(keyed_for) {
            Self::ToNewPartitions
        } else {
            Self::AmongOldPartitions
        }
    }
}

/// Starts the watch. `keyed_for` is the number of partitions that the worker works on, and `known` the number that the topic has had.
///
/// # Errors
/// Returns [`PreflightError::Client`], or what the system says if it gives no more threads.
pub fn watch_growth(
    kafka: &Arc<KafkaSettings>,
    keyed_for: u32,
    known: u32,
    health: &Arc<Health>,
    stop: &Stop,
) -> anyhow::Result<GrowthWatch> {
    let mut config = consumer_config(kafka, &kafka.group_id, None);
    // The members say it if the brokers are away.
    config.set("statistics.interval.ms", "0").set_log_level(RDKafkaLogLevel::Emerg);
    let client: BaseConsumer<PlainContext> = make_consumer(&config, PlainContext).map_err(PreflightError::Client)?;
    let watch = GrowthWatch::default();
    let (guard, has_stopped) = (MustRun::new("partitions", health.threads(), stop), watch.clone());
    let (kafka, health, stop) = (Arc::clone(kafka), Arc::clone(health), stop.clone());
    guard.spawn(move || {
        let topic = &kafka.topics.events;
        while !stop.wait(INTERVAL) {
            // Errors are news too, and would gather.
            while client.poll(Duration::ZERO).is_some() {}
            let Ok(found) = partitions_of(&client, topic, METADATA_TIMEOUT) else { continue };
            let found = u32::try_from(found).unwrap_or(u32::MAX);
            let growth = Growth::of(keyed_for, known, found);
            if growth != Growth::None {
                let said = said(topic, known, found, growth);
                if health.set_problem(PARTITIONS, Some(said.clone())) {
                    tracing::error!("{said}");
                }
            }
            if growth == Growth::AmongOldPartitions {
                has_stopped.0.store(true, Ordering::Relaxed);
                stop.give();
            }
        }
    })?;
    Ok(watch)
}

fn said(topic: &str, known: u32, found: u32, growth: Growth) -> String {
    let meanwhile = match growth {
        Growth::AmongOldPartitions => "threads hash to other partitions of these now, so the worker stops",
        Growth::ToNewPartitions | Growth::None => "the new ones are not decided, and the others go on",
    };
    format!(
        "topic {topic} has {found} partitions and had {known}: {meanwhile}. Once the old partitions are at lag 0, stop all workers of the \
         group, run `tollgate state rekey`, and start them again"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_multiple_moves_threads_to_new_partitions_only() {
        assert_eq!(Growth::of(12, 12, 12), Growth::None);
        assert_eq!(Growth::of(12, 12, 24), Growth::ToNewPartitions);
        assert_eq!(Growth::of(12, 12, 18), Growth::AmongOldPartitions);
        assert_eq!(Growth::of(12, 24, 24), Growth::None, "a worker that drains knows of them");
        assert_eq!(Growth::of(12, 24, 25), Growth::AmongOldPartitions);
        assert_eq!(Growth::of(12, 12, 0), Growth::None, "a topic that is gone is named by others");
    }
}
