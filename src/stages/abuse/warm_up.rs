//! The warm-up: a rule that is new to a restored state is shown the signals from before, as far back as it looks, and is in force after that.
//!
//! It takes place in the restore of a partition, on the thread of its checkpoint writer: the partition's signals wait meanwhile, and those of
//! others go on, as verdicts do. The log is read with a reader of its own, from the offset of the time that the rule needs up to where the
//! state is. It is bounded in time; what was not read by then does not count, so that a rule counts too little rather than too much.

use std::sync::Arc;
use std::time::{Duration, Instant};

use prometheus::IntGauge;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaResult;
use rdkafka::message::Message;
use rdkafka::{Offset as KafkaOffset, TopicPartitionList};
use tollgate_core::abuse::{Abuse, AbuseRules, AbuseState, Warming};
use tollgate_core::checkpoint::Restored;
use tollgate_core::record::{Offset, Partition};

use crate::kafka::{PlainContext, StageTopics, make_consumer, reader_config, with_record};
use crate::metrics::Metrics;
use crate::partition::{RestoreError, ends, read_messages};
use crate::settings::KafkaSettings;

/// How long a partition may wait for rules that are new.
const WARM_UP_MAX: Duration = Duration::from_secs(120);
/// How long the brokers may take to say which offset belongs to a time.
const QUESTION_TIMEOUT: Duration = Duration::from_secs(5);

/// Shows new rules what came before. Returns `None` once the state is not wanted any more.
pub(super) fn warm_up(
    kafka: &KafkaSettings,
    topics: &StageTopics,
    (rules, metrics): (&Arc<AbuseRules>, &Metrics),
    (partition, restored): (Partition, Restored<AbuseState>),
    is_wanted: &dyn Fn() -> bool,
) -> Result<Option<Restored<AbuseState>>, RestoreError> {
    if !restored.state.has_new(rules) {
        return Ok(Some(restored));
    }
    let Restored { state, next } = restored;
    let mut abuse = Abuse::new(Arc::clone(rules), state);
    let warming = abuse.warming();
    let (Some(back_ms), Some(clock_ms)) = (warming.iter().map(|warming| warming.back_ms).max(), abuse.reached_ms()) else {
        // Nothing was counted yet that a rule could have missed.
        abuse.warmed();
        return Ok(Some(Restored { state: abuse.into_state(), next }));
    };
    let _shown = WarmingGauges::of(&warming, metrics);
    let (started, names) = (Instant::now(), warming.iter().map(|warming| warming.rule.as_str()).collect::<Vec<_>>().join(", "));
    tracing::info!(%partition, rules = names, "rules that are new are shown what came before");
    let failed = |doing| move |error| RestoreError::Kafka { doing, error };
    let reader =
        make_consumer(&reader_config(kafka, &topics.group_id), PlainContext).map_err(failed("making the reader of the signals"))?;
    let begin =
        offset_of_time(&reader, topics, partition, clock_ms.saturating_sub(back_ms)).map_err(failed("asking for the offset of a time"))?;
    let (low, _) = ends(&reader, &topics.input, partition)?;
    let Some(begin) = begin.map(|begin| begin.max(low)).filter(|begin| *begin < next) else {
        abuse.warmed();
        return Ok(Some(Restored { state: abuse.into_state(), next }));
    };
    let (mut records, mut is_abandoned, mut is_cut_short) = (0_u64, false, false);
    let begin = KafkaOffset::Offset(begin.0);
    read_messages(&reader, &topics.input, partition, begin, |message| {
        if Offset(message.offset()) >= next {
            return false;
        }
        (is_abandoned, is_cut_short) = (!is_wanted(), started.elapsed() > WARM_UP_MAX);
        if is_abandoned || is_cut_short {
            return false;
        }
        with_record(message, |record, _| abuse.warm(record));
        records += 1;
        true
    })?;
    if is_abandoned {
        return Ok(None);
    }
    if is_cut_short {
        tracing::warn!(%partition, records, "the log is too long to show all of it to new rules: what came last does not count for them");
    }
    abuse.warmed();
    tracing::info!(%partition, records, seconds = started.elapsed().as_secs_f64(), "the new rules are in force");
    Ok(Some(Restored { state: abuse.into_state(), next }))
}

/// The gauges of the rules that are warming in a partition, which show it for as long as this lives.
struct WarmingGauges(Vec<IntGauge>);

impl WarmingGauges {
    fn of(warming: &[Warming], metrics: &Metrics) -> Self {
        let gauges: Vec<_> = warming.iter().map(|warming| metrics.abuse_warming_rules.with_label_values(&[&warming.rule])).collect();
        gauges.iter().for_each(IntGauge::inc);
        Self(gauges)
    }
}

impl Drop for WarmingGauges {
    fn drop(&mut self) {
        self.0.iter().for_each(IntGauge::dec);
    }
}

/// Returns the offset of the first record of a time or later; `None` if there is none.
fn offset_of_time(
    reader: &BaseConsumer<PlainContext>,
    topics: &StageTopics,
    partition: Partition,
    time_ms: i64,
) -> KafkaResult<Option<Offset>> {
    let mut list = TopicPartitionList::with_capacity(1);
    list.add_partition_offset(&topics.input, partition.0, KafkaOffset::Offset(time_ms.max(0)))?;
    let answered = reader.offsets_for_times(list, QUESTION_TIMEOUT)?;
    let Some(element) = answered.find_partition(&topics.input, partition.0) else { return Ok(None) };
    element.error()?;
    Ok(match element.offset() {
        KafkaOffset::Offset(offset) => Some(Offset(offset)),
        _ => None,
    })
}
