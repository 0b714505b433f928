//! What becomes of publications when a broker that has just come to lead a partition refuses one and takes the next. The embedded broker
//! can be told to: like such a broker it takes any batch as a producer's first.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rdkafka::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::RDKafkaErrorCode;
use rdkafka::message::{Message, OwnedHeaders};
use rdkafka::mocking::MockCluster;
use rdkafka::producer::DefaultProducerContext;
use rdkafka::topic_partition_list::{Offset as Position, TopicPartitionList};
use rdkafka::types::{RDKafkaApiKey, RDKafkaRespErr};
use tollgate_core::event::record::{Offset, Partition};

use crate::metrics::Metrics;

use super::{Delivery, DeliveryOutcome, Outbox, OutboxTopics, ProducerKind, Producers, Publication, Role, Settled};

const TOPIC: &str = "t";
/// The partition that the tests are about.
const PARTITION: Partition = Partition(0);
/// Another one, for what comes first: it connects the producer and has it get its id.
const OTHER: Partition = Partition(1);
/// Long enough that a second request leaves before the first is answered.
const ROUND_TRIP: Duration = Duration::from_millis(600);
const PAUSE: Duration = Duration::from_millis(50);
const TIME_MAX: Duration = Duration::from_secs(120);
/// How often it is tried to have two requests under way at once.
const ROUNDS: usize = 20;

struct Broker(MockCluster<'static, DefaultProducerContext>);

impl Broker {
    fn start() -> Self {
        let cluster = MockCluster::new(1).unwrap();
        cluster.create_topic(TOPIC, 2, 1).unwrap();
        Self(cluster)
    }

    fn producers(&self) -> Producers {
        let mut kafka = tollgate_config::load(None, []).unwrap().kafka;
        kafka.brokers = self.0.bootstrap_servers();
        Producers::new(&kafka, 1_000_000).unwrap()
    }

    /// Has it refuse the next batch, as a broker does that does not know yet that it leads the partition.
    fn refuse_one(&self) {
        self.0.broker_round_trip_time(1, ROUND_TRIP).unwrap();
        self.0.request_errors(RDKafkaApiKey::Produce, &[RDKafkaRespErr::RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION]);
    }

    /// Returns the values on the partition.
    fn values(&self, count: usize) -> Vec<String> {
        self.0.broker_round_trip_time(1, Duration::ZERO).unwrap();
        let consumer: BaseConsumer =
            ClientConfig::new().set("bootstrap.servers", self.0.bootstrap_servers()).set("group.id", "g").create().unwrap();
        let mut place = TopicPartitionList::new();
        place.add_partition_offset(TOPIC, PARTITION.0, Position::Beginning).unwrap();
        consumer.assign(&place).unwrap();
        let (mut values, deadline) = (Vec::new(), Instant::now() + TIME_MAX);
        while values.len() < count && Instant::now() < deadline {
            let Some(record) = consumer.poll(PAUSE) else { continue };
            values.push(String::from_utf8(record.unwrap().payload().unwrap().to_vec()).unwrap());
        }
        // And none behind them.
        assert!(consumer.poll(ROUND_TRIP).is_none());
        values
    }
}

fn delivery(partition: Partition, offset: i64, role: Role) -> Delivery {
    Delivery { partition, generation: 1, offset: Offset(offset), role, event_time_ms: None, reductions: 0, shared: None }
}

fn publication(value: &str, delivery: Delivery) -> Publication<'_> {
    let (partition, value) = (Some(delivery.partition.0), Some(value.as_bytes()));
    Publication { topic: TOPIC, partition, key: Some(b"k"), value, headers: OwnedHeaders::new(), delivery }
}

fn outcomes(producers: &Producers, count: usize) -> Vec<(Delivery, DeliveryOutcome)> {
    let (mut outcomes, mut reports, deadline) = (Vec::new(), Vec::new(), Instant::now() + TIME_MAX);
    while outcomes.len() < count && Instant::now() < deadline {
        producers.poll(PAUSE, &mut reports);
        outcomes.append(&mut reports);
    }
    assert_eq!(outcomes.len(), count);
    outcomes
}

/// librdkafka calls both acknowledged, which is what makes the other tests worth something.
#[test]
fn an_acknowledgement_that_only_a_later_record_got_is_none() {
    for _ in 0..ROUNDS {
        let broker = Broker::start();
        let producers = broker.producers();
        producers.send(ProducerKind::LowLatency, publication("first", delivery(OTHER, 0, Role::Verdict)));
        outcomes(&producers, 1);
        broker.refuse_one();
        for (offset, value) in [(0, "a"), (1, "b")] {
            producers.send(ProducerKind::LowLatency, publication(value, delivery(PARTITION, offset, Role::Verdict)));
            std::thread::sleep(PAUSE);
        }
        let mut outcomes = outcomes(&producers, 2);
        outcomes.sort_by_key(|(delivery, _)| delivery.offset);
        let [(_, lost), (_, taken)] = outcomes.as_slice() else { panic!("{outcomes:?}") };
        assert!(matches!(taken, DeliveryOutcome::Acknowledged), "{taken:?}");
        // On a busy machine both may leave with one request, or the second only after the first was answered.
        if matches!(lost, DeliveryOutcome::Acknowledged) && broker.values(2) == ["a", "b"] {
            continue;
        }
        assert!(matches!(lost, DeliveryOutcome::Failed { code: RDKafkaErrorCode::OutOfOrderSequenceNumber, .. }), "{lost:?}");
        assert_eq!(broker.values(1), ["b"]);
        return;
    }
    panic!("two requests were never under way at once");
}

#[test]
fn signals_and_controls_that_a_broker_refuses_go_ahead_of_later_ones() {
    let broker = Broker::start();
    let producers = broker.producers();
    producers.send(ProducerKind::of(Role::Signals), publication("first", delivery(OTHER, 0, Role::Signals)));
    outcomes(&producers, 1);
    broker.refuse_one();
    for (offset, (value, role)) in (0..).zip([("a", Role::Signals), ("b", Role::Control), ("c", Role::Alert), ("d", Role::DeadLetter)]) {
        producers.send(ProducerKind::of(role), publication(value, delivery(PARTITION, offset, role)));
        std::thread::sleep(PAUSE);
    }
    let outcomes = outcomes(&producers, 4);
    assert!(outcomes.iter().all(|(_, outcome)| matches!(outcome, DeliveryOutcome::Acknowledged)), "{outcomes:?}");
    assert_eq!(broker.values(4), ["a", "b", "c", "d"]);
}

#[test]
fn a_verdict_that_a_broker_refuses_goes_ahead_of_later_ones() {
    let broker = Broker::start();
    let topics = OutboxTopics { output: TOPIC.to_owned(), dead_letters: String::new(), others: Vec::new() };
    let mut outbox = Outbox::new(broker.producers(), topics, Arc::new(|_, _| None), Metrics::new().unwrap());
    let push = |outbox: &mut Outbox, partition: Partition, offset: i64, value: &str| {
        outbox.push(b"k", value.as_bytes(), OwnedHeaders::new(), delivery(partition, offset, Role::Verdict));
        outbox.flush();
    };
    let settle = |outbox: &mut Outbox, count: usize| {
        let (mut finished, mut settled, deadline) = (Vec::new(), Settled::default(), Instant::now() + TIME_MAX);
        while finished.len() < count && Instant::now() < deadline {
            outbox.settle(PAUSE, &mut settled);
            assert_eq!(settled.refusal, None);
            finished.extend(settled.finished.iter().map(|delivery| delivery.offset));
            outbox.flush();
        }
        finished
    };
    push(&mut outbox, OTHER, 0, "first");
    settle(&mut outbox, 1);
    broker.refuse_one();
    for (offset, value) in (0..).zip(["a", "b", "c", "d", "e", "f", "g"]) {
        push(&mut outbox, PARTITION, offset, value);
        std::thread::sleep(PAUSE);
    }
    assert_eq!(settle(&mut outbox, 7), (0..7).map(Offset).collect::<Vec<_>>());
    assert_eq!(broker.values(7), ["a", "b", "c", "d", "e", "f", "g"]);
}
