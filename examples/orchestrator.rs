//! An orchestrator's side of Tollgate: ask before every tool call, report every result, do what the verdict says.
//!
//! ```sh
//! cargo run --example orchestrator -- --brokers 127.0.0.1:9092 --via decisions
//! ```
//!
//! [`Gate`] and [`run_step`] are the part to copy. Below them a scripted agent runs one turn and prints a line per step, with the
//! verdict that settled it: the result's if the tool ran, else the call's.
//!
//! ```json
//! {"event_id":"turn-18…/call_1/result","tool_name":"read_file","action":"allow","code":"allow","did":"ran"}
//! ```
//!
//! To expect, where a guardrail denies `bash` (by default none does, and step 2 is another `ran`):
//!
//! ```text
//! event          tool_name  action  code                            did
//! call_1/result  read_file  allow   allow                           ran
//! call_2/call    bash       block   oap.tool_not_allowed            synthetic
//! call_3/result  terminal   allow   allow                           ran
//! call_4/result  terminal   warn    repeated_exact_failure_warning  ran
//! call_5/call    terminal   block   repeated_exact_failure_block    stopped
//! ```
//!
//! The script's sixth call is never made. A step without a verdict in time is `block`, `verdict_timeout`, `timeout`, and the turn
//! ends. Exit 0, or 1 after a timeout.

use std::collections::HashMap;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

use anyhow::Context;
use clap::{Parser, ValueEnum};
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::message::{BorrowedMessage, Header, Headers, Message, OwnedHeaders};
use rdkafka::producer::{BaseRecord, DeliveryResult, Producer, ProducerContext, ThreadedProducer};
use rdkafka::{ClientConfig, ClientContext, Offset, TopicPartitionList};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

const VERDICT_TIMEOUT: &str = "verdict_timeout";

/// What an agent does, as Tollgate reads it.
#[derive(Debug, Clone, Serialize)]
struct Event<'a> {
    #[serde(rename = "type")]
    event_type: &'static str,
    event_id: String,
    thread_id: &'a str,
    /// The turn. A new id starts a new turn, which forgets earlier failures.
    turn_id: &'a str,
    tool_call_id: &'a str,
    tool_name: &'a str,
    tool_input: &'a Value,
    #[serde(flatten)]
    outcome: Option<Outcome<'a>>,
}

/// The fields that only a result has.
#[derive(Debug, Clone, Serialize)]
struct Outcome<'a> {
    result: &'a str,
    failed: bool,
}

/// The fields of a verdict that an orchestrator acts on; a verdict has more.
#[derive(Debug, Deserialize)]
struct Verdict {
    event_id: String,
    action: String,
    code: String,
    message: String,
    allows_execution: bool,
    should_halt: bool,
    synthetic_result: Option<String>,
    #[serde(default)]
    guidance: String,
}

impl Verdict {
    /// Returns the verdict for an event that got none. It blocks the call and stops the turn: the next call would get none either.
    fn missing(event: &Event<'_>, error: &anyhow::Error) -> Self {
        Self {
            event_id: event.event_id.clone(),
            action: "block".to_owned(),
            code: VERDICT_TIMEOUT.to_owned(),
            message: format!("Tool call not executed ({VERDICT_TIMEOUT}): no verdict came ({error:#})."),
            allows_execution: false,
            should_halt: true,
            synthetic_result: None,
            guidance: String::new(),
        }
    }

    /// Returns what the agent gets as the result of a call that may not run. An event that could not be read is blocked with a message only.
    fn instead_of_result(&self) -> &str {
        self.synthetic_result.as_ref().unwrap_or(&self.message)
    }
}

/// The topic on which verdicts are awaited.
#[derive(Debug)]
enum Inbox {
    /// A copy of the verdict is sent to the partition that its event names, so the other verdicts of the fleet need not be read.
    Reply { topic: String, partition: i32, process: String, count: AtomicU64 },
    /// Every verdict of the fleet is read, and ours are found by thread and event id.
    Decisions { topic: String, partitions: i32 },
}

/// Identifies an awaited verdict: by a correlation id and nothing else, or by a thread and an event id.
type RequestId = (Vec<u8>, Vec<u8>);

impl Inbox {
    fn open(args: &Args, consumer: &BaseConsumer) -> anyhow::Result<Self> {
        let topic = if args.via == Via::Reply { &args.reply_topic } else { &args.decisions }.clone();
        let metadata = consumer.fetch_metadata(Some(&topic), args.deadline())?;
        let partitions: usize = metadata.topics().iter().map(|found| found.partitions().len()).sum();
        anyhow::ensure!(partitions > 0, "there is no topic {topic}");
        if args.via == Via::Decisions {
            return Ok(Self::Decisions { topic, partitions: i32::try_from(partitions)? });
        }
        // Orchestrators may share a partition: verdicts for another one are skipped.
        let partition = i32::try_from(std::process::id() as usize % partitions)?;
        let process = format!("{:x}-{:x}", nanos_since_epoch()?, std::process::id());
        Ok(Self::Reply { topic, partition, process, count: AtomicU64::new(0) })
    }

    /// Returns the partitions to read, from their current ends. `Offset::End` would be resolved later, perhaps behind our first verdict.
    fn ends(&self, consumer: &BaseConsumer, timeout: Duration) -> anyhow::Result<TopicPartitionList> {
        let (topic, partitions) = match self {
            Self::Reply { topic, partition, .. } => (topic, *partition..*partition + 1),
            Self::Decisions { topic, partitions } => (topic, 0..*partitions),
        };
        let mut ends = TopicPartitionList::new();
        for partition in partitions {
            let (_, end) = consumer.fetch_watermarks(topic, partition, timeout)?;
            ends.add_partition_offset(topic, partition, Offset::Offset(end))?;
        }
        Ok(ends)
    }

    /// Returns the request id of an event, and the headers that the event needs so that its verdict carries that id.
    fn address(&self, event: &Event<'_>) -> (RequestId, OwnedHeaders) {
        // With the id in a header, even an event that cannot be read is answered.
        let headers = OwnedHeaders::new().insert(Header { key: "event_id", value: Some(&event.event_id) });
        match self {
            Self::Decisions { .. } => ((event.thread_id.into(), event.event_id.as_str().into()), headers),
            Self::Reply { topic, partition, process, count } => {
                let correlation_id = format!("{process}-{}", count.fetch_add(1, Ordering::Relaxed));
                let headers = headers
                    .insert(Header { key: "kafka_replyTopic", value: Some(topic) })
                    .insert(Header { key: "kafka_replyPartition", value: Some(&partition.to_be_bytes()) })
                    .insert(Header { key: "kafka_correlationId", value: Some(&correlation_id) });
                ((correlation_id.into_bytes(), Vec::new()), headers)
            }
        }
    }

    /// Returns the request id of a verdict.
    fn request_id(&self, message: &BorrowedMessage<'_>) -> RequestId {
        let header = |name| {
            let mut headers = message.headers().into_iter().flat_map(Headers::iter);
            headers.find(|header| header.key == name).and_then(|header| header.value).unwrap_or_default().to_vec()
        };
        match self {
            Self::Reply { .. } => (header("kafka_correlationId"), Vec::new()),
            Self::Decisions { .. } => (message.key().unwrap_or_default().to_vec(), header("event_id")),
        }
    }
}

/// The bytes of a verdict, or why the event could not be published.
type Answer = Result<Vec<u8>, KafkaError>;

/// The state that callers share with the thread that reads verdicts.
#[derive(Debug)]
struct Waiters {
    inbox: Inbox,
    /// The callers that wait, by request id. Several can wait for the same verdict, since hosts repeat their hooks.
    waiting: Mutex<HashMap<RequestId, Vec<Sender<Answer>>>>,
    is_closing: AtomicBool,
}

impl Waiters {
    fn add(&self, request_id: RequestId, caller: Sender<Answer>) {
        self.waiting().entry(request_id).or_default().push(caller);
    }

    fn remove(&self, request_id: &RequestId) -> Vec<Sender<Answer>> {
        self.waiting().remove(request_id).unwrap_or_default()
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<RequestId, Vec<Sender<Answer>>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read(&self, consumer: &BaseConsumer) {
        while !self.is_closing.load(Ordering::Relaxed) {
            if let Some(Ok(message)) = consumer.poll(Duration::from_millis(100)) {
                // All callers depend on this thread, so no record may end it, and rdkafka panics at header names that are not UTF-8.
                let _unreadable = catch_unwind(AssertUnwindSafe(|| self.hand_over(&message)));
            }
        }
    }

    fn hand_over(&self, message: &BorrowedMessage<'_>) {
        // If nobody waits for it, it is another orchestrator's, too late, or a second copy.
        for caller in self.remove(&self.inbox.request_id(message)) {
            let _gone = caller.send(Ok(message.payload().unwrap_or_default().to_vec()));
        }
    }
}

/// Passes the error of an event that could not be delivered on to its caller.
#[derive(Debug)]
struct Deliveries;

impl ClientContext for Deliveries {}

impl ProducerContext for Deliveries {
    type DeliveryOpaque = Box<Sender<Answer>>;

    fn delivery(&self, result: &DeliveryResult<'_>, caller: Self::DeliveryOpaque) {
        if let Err((error, _)) = result {
            // A caller that has gone has reached its deadline.
            let _gone = caller.send(Err(error.clone()));
        }
    }
}

/// Publishes events and awaits verdicts. A process needs one: threads may share it, but a forked child needs its own.
struct Gate {
    producer: ThreadedProducer<Deliveries>,
    events: String,
    deadline: Duration,
    waiters: Arc<Waiters>,
    reader: Option<JoinHandle<()>>,
}

impl Gate {
    /// Opens a gate. It fails if brokers or topics are missing: better at start than at the first tool call.
    fn open(args: &Args) -> anyhow::Result<Self> {
        let producer = producer_config(args).create_with_context(Deliveries)?;
        let consumer: BaseConsumer = consumer_config(args).create()?;
        let inbox = Inbox::open(args, &consumer)?;
        consumer.assign(&inbox.ends(&consumer, args.deadline())?)?;
        let waiters = Arc::new(Waiters { inbox, waiting: Mutex::default(), is_closing: AtomicBool::new(false) });
        let reading = Arc::clone(&waiters);
        let reader = std::thread::Builder::new().name("tollgate-verdicts".to_owned()).spawn(move || reading.read(&consumer))?;
        Ok(Self { producer, events: args.events.clone(), deadline: args.deadline(), waiters, reader: Some(reader) })
    }

    /// Returns the verdict on an event. Whatever goes wrong, it is a block.
    fn ask(&self, event: &Event<'_>) -> Verdict {
        let (request_id, headers) = self.waiters.inbox.address(event);
        let (caller, answer) = channel();
        // This must come before the event is published, or the verdict could come first.
        self.waiters.add(request_id.clone(), caller.clone());
        let verdict = self.publish(event, headers, caller).and_then(|()| {
            let answer = answer.recv_timeout(self.deadline).context("the deadline has passed")?;
            Ok(serde_json::from_slice(&answer?)?)
        });
        self.waiters.remove(&request_id);
        verdict.unwrap_or_else(|error| Verdict::missing(event, &error))
    }

    fn publish(&self, event: &Event<'_>, headers: OwnedHeaders, caller: Sender<Answer>) -> anyhow::Result<()> {
        let value = serde_json::to_vec(event)?;
        let record = BaseRecord::with_opaque_to(&self.events, Box::new(caller)).key(event.thread_id).payload(&value).headers(headers);
        self.producer.send(record).map_err(|(error, _)| error.into())
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.waiters.is_closing.store(true, Ordering::Relaxed);
        if let Some(reader) = self.reader.take() {
            let _panicked = reader.join();
        }
        // Nobody waits for an event that is not delivered by now.
        let _undelivered = self.producer.flush(self.deadline);
    }
}

fn producer_config(args: &Args) -> ClientConfig {
    let mut config = ClientConfig::new();
    config
        .set("bootstrap.servers", &args.brokers)
        // Java's partitioner: with librdkafka's own, two clients would send one thread to two partitions.
        .set("partitioner", "murmur2_random")
        // No event twice or out of order; it also bounds the requests in flight, which keeps latency low under load.
        .set("enable.idempotence", "true")
        .set("acks", "all")
        // A caller is waiting: send at once, and give up when nobody waits any longer.
        .set("linger.ms", "0")
        .set("message.timeout.ms", args.deadline_ms.to_string());
    config
}

fn consumer_config(args: &Args) -> ClientConfig {
    let mut config = ClientConfig::new();
    config
        .set("bootstrap.servers", &args.brokers)
        // Required by the client; assign() joins no group.
        .set("group.id", "unused")
        .set("enable.auto.commit", "false")
        // A broker answers as soon as there is one byte; only tollgate dev's embedded broker waits for the whole time.
        .set("fetch.min.bytes", "1")
        .set("fetch.wait.max.ms", "100")
        .set("fetch.queue.backoff.ms", "5")
        // A broker that creates topics, as tollgate dev's does, may create the reply topic.
        .set("allow.auto.create.topics", "true");
    config
}

/// A call as the model asks for it.
struct ToolCall {
    id: &'static str,
    tool_name: &'static str,
    tool_input: Value,
}

/// The outcome of a call.
struct Step {
    verdict: Verdict,
    did: &'static str,
    agent_sees: String,
}

/// Runs a tool if it may run, and returns what to show the agent as its result.
fn run_step(gate: &Gate, thread_id: &str, turn_id: &str, call: &ToolCall) -> Step {
    let event = Event {
        event_type: "tool_call",
        // An id that a retry would choose again: the same event gets the same verdict and counts once.
        event_id: format!("{turn_id}/{}/call", call.id),
        thread_id,
        turn_id,
        tool_call_id: call.id,
        tool_name: call.tool_name,
        tool_input: &call.tool_input,
        outcome: None,
    };
    let verdict = gate.ask(&event);
    if !verdict.allows_execution {
        return Step { did: did(&verdict, "synthetic"), agent_sees: verdict.instead_of_result().to_owned(), verdict };
    }
    let (result, failed) = match run_tool(call) {
        Ok(result) => (result, false),
        Err(error) => (format!("Error: {error}"), true),
    };
    let verdict = gate.ask(&Event {
        event_type: "tool_result",
        event_id: format!("{turn_id}/{}/result", call.id),
        outcome: Some(Outcome { result: &result, failed }),
        ..event
    });
    Step { did: did(&verdict, "ran"), agent_sees: result + &verdict.guidance, verdict }
}

fn did(verdict: &Verdict, otherwise: &'static str) -> &'static str {
    match verdict {
        Verdict { code, .. } if code == VERDICT_TIMEOUT => "timeout",
        Verdict { should_halt: true, .. } => "stopped",
        _ => otherwise,
    }
}

fn run_tool(call: &ToolCall) -> Result<String, String> {
    let input = |name: &str| call.tool_input.get(name).and_then(Value::as_str).unwrap_or_default();
    match call.tool_name {
        "read_file" => Ok(format!("{}: all is well", input("path"))),
        "bash" => Ok(format!("pretended to run {}", input("command"))),
        "terminal" => Err(format!("{}: connection refused", input("command"))),
        unknown => Err(format!("no tool {unknown}")),
    }
}

fn script() -> [ToolCall; 6] {
    let call = |id, tool_name, tool_input| ToolCall { id, tool_name, tool_input };
    [
        call("call_1", "read_file", json!({"path": "README.md"})),
        call("call_2", "bash", json!({"command": "rm -rf build"})),
        // An agent in a loop: it is warned the second time, stopped the third, and never makes its last call.
        call("call_3", "terminal", json!({"command": "deploy"})),
        call("call_4", "terminal", json!({"command": "deploy"})),
        call("call_5", "terminal", json!({"command": "deploy"})),
        call("call_6", "read_file", json!({"path": "deploy.log"})),
    ]
}

/// One line of output.
#[derive(Debug, Serialize)]
struct Line<'a> {
    event_id: &'a str,
    tool_name: &'a str,
    action: &'a str,
    code: &'a str,
    did: &'a str,
}

/// Runs the script until it ends or a verdict ends it, and returns whether every verdict came.
fn run_turn(gate: &Gate, thread_id: &str, out: &mut impl Write) -> anyhow::Result<bool> {
    let turn_id = format!("turn-{:x}", nanos_since_epoch()?);
    for call in script() {
        let Step { verdict, did, agent_sees } = run_step(gate, thread_id, &turn_id, &call);
        let Verdict { event_id, action, code, .. } = &verdict;
        writeln!(out, "{}", serde_json::to_string(&Line { event_id, tool_name: call.tool_name, action, code, did })?)?;
        eprintln!("    the agent sees: {agent_sees}");
        if verdict.should_halt {
            return Ok(did != "timeout");
        }
    }
    Ok(true)
}

fn nanos_since_epoch() -> anyhow::Result<u128> {
    Ok(SystemTime::UNIX_EPOCH.elapsed()?.as_nanos())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Via {
    Reply,
    Decisions,
}

/// A scripted agent whose tool calls pass Tollgate
#[derive(Debug, Parser)]
struct Args {
    /// Bootstrap addresses
    #[arg(long, default_value = "127.0.0.1:9092")]
    brokers: String,
    /// Topic to publish events to
    #[arg(long, default_value = "agent.events")]
    events: String,
    /// Topic that holds all verdicts
    #[arg(long, default_value = "agent.decisions")]
    decisions: String,
    /// Topic to be answered on, as Tollgate allows
    #[arg(long, default_value = "agent.replies")]
    reply_topic: String,
    /// Where to await verdicts
    #[arg(long, value_enum, default_value = "decisions")]
    via: Via,
    /// The agent's thread
    #[arg(long, default_value = "demo")]
    thread: String,
    /// How long to await a verdict
    #[arg(long, default_value_t = 5_000)]
    deadline_ms: u32,
}

impl Args {
    fn deadline(&self) -> Duration {
        Duration::from_millis(self.deadline_ms.into())
    }
}

fn main() -> ExitCode {
    let args = Args::parse();
    let opened = Gate::open(&args).with_context(|| format!("no gate at {}", args.brokers));
    match opened.and_then(|gate| run_turn(&gate, &args.thread, &mut std::io::stdout())) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}
