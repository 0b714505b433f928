//! `tollgate dev` as the broker of other commands, and a client of it.

use std::time::Duration;

use rdkafka::ClientConfig;
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};
use serde_json::{Value, json};

use crate::brokers::process::Process;
use crate::support::tollgate;
use tollgate_testkit::TIME_MAX;

/// A running `tollgate dev` on an embedded broker. It ends with this value.
pub struct Dev {
    process: Process,
    pub brokers: String,
    pub admin: String,
}

impl Dev {
    /// Starts it with these arguments and waits until it is ready.
    pub fn start(arguments: &[&str]) -> Self {
        let mut command = tollgate();
        command.arg("dev").args(arguments).env("TOLLGATE__ADMIN__LISTEN", "127.0.0.1:0");
        let process = Process::start(&mut command);
        process.line(&["Ctrl-C ends it."]);
        let greeting = process.said();
        let behind = |text: &str| greeting.split_once(text).map(|(_, rest)| rest.to_owned()).unwrap();
        let brokers = behind("an embedded broker on ").split(',').next().unwrap().to_owned();
        let admin = behind("metrics curl -s ").split("/metrics").next().unwrap().to_owned();
        Self { process, brokers, admin }
    }

    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// Publishes events, each with its thread as the key.
    pub fn publish(&self, events: &[Value]) {
        let mut config = ClientConfig::new();
        let producer: BaseProducer =
            config.set("bootstrap.servers", &self.brokers).set("partitioner", "murmur2_random").set("linger.ms", "0").create().unwrap();
        for event in events {
            let (thread, value) = (event["thread_id"].as_str().unwrap(), event.to_string());
            producer.send(BaseRecord::to("agent.events").key(thread).payload(&value)).unwrap();
        }
        producer.flush(TIME_MAX).unwrap();
    }
}

/// A call of a tool.
pub fn call(thread: &str, id: &str, tool: &str) -> Value {
    json!({"type": "tool_call", "thread_id": thread, "event_id": format!("{id}/call"), "turn_id": "turn", "tool_call_id": id, "tool_name": tool,
           "tool_input": {"path": "notes.md"}})
}

/// The result of a call.
pub fn failure(thread: &str, id: &str, tool: &str) -> Value {
    let mut event = call(thread, id, tool);
    event["type"] = json!("tool_result");
    event["event_id"] = json!(format!("{id}/result"));
    event["result"] = json!("no such file");
    event["failed"] = json!(true);
    event
}

/// A call that fails twice with the same arguments and is blocked when it comes again.
pub fn stuck(thread: &str) -> Vec<Value> {
    let tool = "read_file";
    let calls = (1..=3).flat_map(|number| {
        let id = format!("c{number}");
        [call(thread, &id, tool), failure(thread, &id, tool)]
    });
    calls.take(5).collect()
}

/// Returns the CPU time that a process has used.
pub fn cpu_time(process: u32) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    // The name stands in parentheses and may hold spaces. The 14th and 15th fields are times, in hundredths of a second.
    let behind_name = stat.rsplit_once(')').unwrap().1;
    let ticks: u64 = behind_name.split_whitespace().skip(11).take(2).map(|field| field.parse::<u64>().unwrap()).sum();
    Duration::from_millis(ticks * 10)
}
