//! How a consumer answers its group while it closes.
//!
//! librdkafka leaves assignments and revocations to the application, as events that it has to answer. While a consumer closes, librdkafka
//! takes the first answer for all: it gives up all partitions and ends its part of the group. Anything that is asked after that gets no
//! answer, and whoever asks waits for ever. If two events wait (an assignment that has just come, and the revocation for which closing is
//! the reason), answering one after the other does just that. So all of them are taken first, and one answer is given.
//!
//! A consumer that waits for an answer of its coordinator does not close before that. Where the coordinator takes its credentials no more,
//! the answer never comes. So a consumer closes on a thread of its own, and is left to it after a while.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::Builder;
use std::time::{Duration, Instant};

use rdkafka::TopicPartitionList;
use rdkafka::consumer::{BaseConsumer, Consumer as _, ConsumerContext, Rebalance, RebalanceProtocol};
use rdkafka::error::KafkaError;
use rdkafka::groups::GroupInfo;
use rdkafka::types::RDKafkaRespErr;

/// How long librdkafka gets to give all partitions up and to leave the group, before the brokers are asked whether it has left.
const LEAVE_WAIT: Duration = Duration::from_millis(100);
/// How long the brokers may take to list the members of a group.
const LIST_TIMEOUT: Duration = Duration::from_millis(500);
/// How long a member that leaves is waited for. A rebalance takes less, unless a member of it is dead.
const GONE_MAX: Duration = Duration::from_secs(3);
/// The same while the brokers do not answer.
const SILENCE_MAX: Duration = Duration::from_secs(1);
/// How many characters a UUID has.
const UUID_CHARS: usize = 36;
/// How long a consumer is waited for while it closes. The brokers need milliseconds, and seconds where the coordinator has just moved.
const CLOSE_MAX: Duration = Duration::from_secs(5);
/// How long to wait for another event, all of which are there.
const EVENT_WAIT: Duration = Duration::from_millis(10);

/// What a consumer's context knows of its closing. Only the thread uses it that polls or closes the consumer.
#[derive(Debug, Default)]
pub(crate) struct Closing {
    /// Whether the consumer leaves the group before it closes.
    is_leaving: AtomicBool,
    has_begun: AtomicBool,
    /// Whether nobody waits any more until it has closed.
    is_left_behind: Arc<AtomicBool>,
    /// Whether an event is being dealt with, which answers for those that come meanwhile.
    has_answerer: AtomicBool,
    events: AtomicUsize,
}

impl Closing {
    /// Returns whether the consumer takes too long to close, so that another has its place by now. What it holds says nothing any more.
    pub(crate) fn is_left_behind(&self) -> bool {
        self.is_left_behind.load(Ordering::Relaxed)
    }
}

/// A context that knows whether its consumer closes.
pub(crate) trait Closes: ConsumerContext {
    fn closing(&self) -> &Closing;
}

/// A consumer in a group. When it is dropped, it says that it closes, and is waited for until it has closed, for [`CLOSE_MAX`] at most.
pub(crate) struct GroupConsumer<C: Closes + 'static> {
    pub(crate) consumer: Arc<BaseConsumer<C>>,
    /// The id under which it leaves the group, although a consumer with an instance id would stay: nobody comes back under that id.
    leaving: Option<StaticMember>,
    /// It is dropped after the consumer: from then on, its thread has the only handle.
    closer: Option<Closer>,
}

impl<C: Closes + 'static> GroupConsumer<C> {
    /// Returns a consumer in its group, with the member in whose name it leaves the group.
    pub(crate) fn new(consumer: Arc<BaseConsumer<C>>, leaving: Option<StaticMember>) -> Self {
        Self { consumer, leaving, closer: None }
    }
}

/// A member of a group with an instance id.
#[derive(Debug)]
pub(crate) struct StaticMember {
    group_id: String,
    instance_id: String,
}

impl StaticMember {
    /// Returns the member of a group with this instance id.
    pub(crate) fn new(group_id: &str, instance_id: String) -> Self {
        Self { group_id: group_id.to_owned(), instance_id }
    }

    /// Returns whether the brokers list the member; `None` if one of them does not answer. Groups of KIP-848 have no such members.
    fn is_listed<C: ConsumerContext>(&self, consumer: &BaseConsumer<C>) -> Option<bool> {
        let listed = consumer.fetch_group_list(Some(&self.group_id), LIST_TIMEOUT).ok()?;
        // The brokers make the ids of such members of the instance id and a UUID.
        let is_own =
            |id: &str| id.strip_prefix(&self.instance_id).is_some_and(|rest| rest.starts_with('-') && rest.len() == UUID_CHARS + 1);
        Some(listed.groups().iter().flat_map(GroupInfo::members).any(|member| is_own(member.id())))
    }

    /// Serves a consumer that has unsubscribed until the group has its member no more. In a rebalance, librdkafka leaves the group once the
    /// rebalance is over; a consumer that closes before that stays in the group, and keeps its partitions.
    pub(crate) fn wait_until_gone<C: ConsumerContext>(&self, consumer: &BaseConsumer<C>) {
        let began = Instant::now();
        loop {
            let looked = Instant::now();
            while looked.elapsed() < LEAVE_WAIT {
                let _event = consumer.poll(EVENT_WAIT);
            }
            let wait = match self.is_listed(consumer) {
                Some(false) => return,
                Some(true) => GONE_MAX,
                None => SILENCE_MAX,
            };
            if began.elapsed() >= wait {
                return tracing::warn!(
                    group = self.group_id,
                    "the group may still have a member that left; then its partitions wait until its peers or the brokers take it for dead"
                );
            }
        }
    }
}

/// The thread that closes a consumer once this value is dropped, which waits for it.
struct Closer {
    start: Sender<()>,
    closed: Receiver<()>,
    is_left_behind: Arc<AtomicBool>,
}

impl Closer {
    /// Returns `None` where the system gives no more threads: the consumer closes where it is dropped then, however long that takes.
    fn new<C: Closes + 'static>(consumer: &Arc<BaseConsumer<C>>) -> Option<Self> {
        let ((start, started), (done, closed)) = (channel(), channel());
        let is_left_behind = Arc::clone(&consumer.context().closing().is_left_behind);
        let (consumer, span) = (Arc::clone(consumer), tracing::Span::current());
        let close = move || {
            let _span = span.enter();
            _ = started.recv();
            drop(consumer);
            _ = done.send(());
        };
        Builder::new().name("closing".to_owned()).spawn(close).ok()?;
        Some(Self { start, closed, is_left_behind })
    }
}

impl Drop for Closer {
    fn drop(&mut self) {
        _ = self.start.send(());
        if self.closed.recv_timeout(CLOSE_MAX) == Err(RecvTimeoutError::Timeout) {
            self.is_left_behind.store(true, Ordering::Relaxed);
            let seconds = CLOSE_MAX.as_secs();
            tracing::warn!(seconds, "a consumer waits for the group's coordinator and does not close; it is left behind");
        }
    }
}

impl<C: Closes + 'static> Drop for GroupConsumer<C> {
    fn drop(&mut self) {
        let closing = self.consumer.context().closing();
        // The callbacks of a thread that panics can finish nothing. They know it by the thread that they run on.
        if let Some(leaving) = self.leaving.as_ref().filter(|_| !std::thread::panicking()) {
            closing.is_leaving.store(true, Ordering::Relaxed);
            // A consumer with an instance id stays in the group when it closes, and leaves it when it unsubscribes.
            self.consumer.unsubscribe();
            leaving.wait_until_gone(&self.consumer);
        }
        closing.has_begun.store(true, Ordering::Relaxed);
        if !std::thread::panicking() {
            self.closer = Closer::new(&self.consumer);
        }
    }
}

/// Deals with an event of the group. It has the context do its part before and behind the answer, as rdkafka's own method does.
pub(crate) fn rebalance<C: Closes>(context: &C, consumer: &BaseConsumer<C>, code: RDKafkaRespErr, list: &TopicPartitionList) {
    let event = match code {
        RDKafkaRespErr::RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS => Rebalance::Assign(list),
        RDKafkaRespErr::RD_KAFKA_RESP_ERR__REVOKE_PARTITIONS => Rebalance::Revoke(list),
        _ => Rebalance::Error(KafkaError::Rebalance(code.into())),
    };
    if context.closing().has_begun.load(Ordering::Relaxed) {
        return answer_all(context, consumer, &event);
    }
    if context.closing().is_leaving.load(Ordering::Relaxed) {
        if !matches!(event, Rebalance::Assign(_)) {
            context.pre_rebalance(consumer, &event);
        }
        return answer_leaving(consumer, code);
    }
    context.pre_rebalance(consumer, &event);
    log_failure(answer(consumer, &event));
    context.post_rebalance(consumer, &event);
}

fn answer<C: ConsumerContext>(consumer: &BaseConsumer<C>, event: &Rebalance<'_>) -> Result<(), KafkaError> {
    match (event, consumer.rebalance_protocol()) {
        (Rebalance::Assign(list), RebalanceProtocol::Cooperative) => consumer.incremental_assign(list),
        (Rebalance::Assign(list), _) => consumer.assign(list),
        (Rebalance::Revoke(list), RebalanceProtocol::Cooperative) => consumer.incremental_unassign(list),
        (Rebalance::Revoke(_) | Rebalance::Error(_), _) => consumer.unassign(),
    }
}

/// Answers an event of a consumer that leaves: it takes no partition, and gives up those that it has.
pub(crate) fn answer_leaving<C: ConsumerContext>(consumer: &BaseConsumer<C>, code: RDKafkaRespErr) {
    log_failure(if code == RDKafkaRespErr::RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS {
        answer(consumer, &Rebalance::Assign(&TopicPartitionList::new()))
    } else {
        consumer.assignment().and_then(|held| answer(consumer, &Rebalance::Revoke(&held)))
    });
}

/// Takes this event and all behind it, and gives one answer.
fn answer_all<C: Closes>(context: &C, consumer: &BaseConsumer<C>, event: &Rebalance<'_>) {
    let closing = context.closing();
    closing.events.fetch_add(1, Ordering::Relaxed);
    // Partitions that come now are never taken.
    if !matches!(event, Rebalance::Assign(_)) {
        context.pre_rebalance(consumer, event);
    }
    if closing.has_answerer.swap(true, Ordering::Relaxed) {
        return;
    }
    // librdkafka serves what it is asked in order: once it has answered this, it knows that the consumer closes, and all events are there.
    // It does answer, because it waits for ours.
    let _served = consumer.rebalance_protocol();
    loop {
        let before = closing.events.load(Ordering::Relaxed);
        // With no time left, a poll ends behind any event, such as one of statistics.
        let record = consumer.poll(EVENT_WAIT);
        if record.is_none() && closing.events.load(Ordering::Relaxed) == before {
            break;
        }
    }
    log_failure(consumer.unassign());
    closing.has_answerer.store(false, Ordering::Relaxed);
}

fn log_failure(answered: Result<(), KafkaError>) {
    if let Err(error) = answered {
        tracing::warn!(%error, "the group's assignment could not be answered");
    }
}

#[cfg(test)]
mod tests {
    use rdkafka::consumer::CommitMode;
    use rdkafka::mocking::MockCluster;
    use rdkafka::{ClientConfig, ClientContext, Offset};
    use std::sync::mpsc;

    use super::*;

    const TIME_MAX: Duration = Duration::from_secs(120);
    /// The embedded broker lets the first members of a group join after three seconds.
    const JOINED_AFTER: Duration = Duration::from_secs(5);

    struct Context {
        closing: Closing,
        delay: Duration,
    }

    impl ClientContext for Context {}

    impl ConsumerContext for Context {
        fn rebalance(&self, consumer: &BaseConsumer<Self>, code: RDKafkaRespErr, list: &mut TopicPartitionList) {
            rebalance(self, consumer, code, list);
        }

        /// A member gives its partitions up here. Meanwhile librdkafka ends: it matters when just it does.
        fn pre_rebalance(&self, _: &BaseConsumer<Self>, event: &Rebalance<'_>) {
            let start = Instant::now();
            while matches!(event, Rebalance::Revoke(_)) && start.elapsed() < self.delay {
                std::hint::spin_loop();
            }
        }
    }

    impl Closes for Context {
        fn closing(&self) -> &Closing {
            &self.closing
        }
    }

    fn join(brokers: &str, group: &str, delay: Duration) -> GroupConsumer<Context> {
        let consumer: BaseConsumer<Context> = ClientConfig::new()
            .set("bootstrap.servers", brokers)
            .set("group.id", group)
            .set("heartbeat.interval.ms", "100")
            .set("partition.assignment.strategy", "cooperative-sticky")
            .create_with_context(Context { closing: Closing::default(), delay })
            .unwrap();
        consumer.subscribe(&["t"]).unwrap();
        GroupConsumer::new(Arc::new(consumer), None)
    }

    /// Drops a consumer, and returns whether it has closed in time.
    fn closes(consumer: GroupConsumer<Context>) -> bool {
        let (sender, closed) = mpsc::channel();
        std::thread::spawn(move || {
            drop(consumer);
            _ = sender.send(());
        });
        closed.recv_timeout(TIME_MAX).is_ok()
    }

    /// The revocation comes right behind the assignment. With rdkafka's own method, some of them wait for ever.
    #[test]
    fn a_consumer_closes_while_its_first_assignment_waits() {
        let cluster = MockCluster::new(1).unwrap();
        cluster.create_topic("t", 2, 1).unwrap();
        let delays = (0..60_u32).map(|number| Duration::from_micros(10) * number);
        let consumers: Vec<_> = delays.map(|delay| join(&cluster.bootstrap_servers(), &format!("{delay:?}"), delay)).collect();
        std::thread::sleep(JOINED_AFTER);
        let hung: Vec<_> = consumers
            .into_iter()
            .map(|consumer| (consumer.consumer.context().delay, closes(consumer)))
            .filter(|(_, is_closed)| !is_closed)
            .collect();
        assert!(hung.is_empty(), "{hung:?}");
    }

    /// A commit waits for its answer, and so does the consumer.
    #[test]
    fn a_consumer_whose_coordinator_does_not_answer_is_left_behind() {
        let cluster = MockCluster::new(1).unwrap();
        cluster.create_topic("t", 1, 1).unwrap();
        let joined = join(&cluster.bootstrap_servers(), "silent", Duration::ZERO);
        let consumer = &joined.consumer;
        while consumer.assignment().unwrap().count() == 0 {
            _ = consumer.poll(EVENT_WAIT);
        }
        let is_left_behind = Arc::clone(&consumer.context().closing.is_left_behind);
        cluster.broker_round_trip_time(1, 2 * TIME_MAX).unwrap();
        let mut next = TopicPartitionList::new();
        next.add_partition_offset("t", 0, Offset::Offset(0)).unwrap();
        consumer.commit(&next, CommitMode::Async).unwrap();
        assert!(closes(joined) && is_left_behind.load(Ordering::Relaxed));
    }
}
