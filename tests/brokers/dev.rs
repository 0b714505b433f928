//! `tollgate dev` on an embedded broker, as the broker and the gate of other processes, with its clients.

use std::process::Command;

use rdkafka::ClientConfig;
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};
use serde_json::Value;

use super::process::Process;
use crate::serve::client::Client;
use crate::support::{temporary, tollgate};
use tollgate_testkit::TIME_MAX;

/// A running `tollgate dev`. It ends with this value.
pub struct Dev {
    pub process: Process,
    /// The address of the embedded broker.
    pub brokers: String,
    pub producer: BaseProducer,
    /// The HTTP server in front of the gate.
    pub client: Client,
    /// The admin endpoint.
    pub admin: Client,
}

impl Dev {
    /// Starts it on free ports and waits until it is ready.
    pub fn start() -> Self {
        Self::run(tollgate().args(["dev", "--port", "0"]))
    }

    /// Starts it with a configuration.
    pub fn configured(config: &str) -> Self {
        let file = temporary(config);
        Self::run(tollgate().args(["dev", "--port", "0", "--config"]).arg(file.path()))
    }

    /// Starts it by a command that names the broker's port.
    pub fn run(command: &mut Command) -> Self {
        let process = Process::start(command.args(["--http", "127.0.0.1:0"]).env("TOLLGATE__ADMIN__LISTEN", "127.0.0.1:0"));
        process.line(&["Ctrl-C ends it."]);
        let greeting = process.said();
        let client = |words: &str| Client { address: after(&greeting, words).to_owned() };
        let brokers = after(&greeting, "an embedded broker on ").to_owned();
        let mut config = ClientConfig::new();
        config.set("bootstrap.servers", &brokers).set("partitioner", "murmur2_random").set("linger.ms", "0");
        let (client, admin) = (client("ask     curl -s http://"), client("metrics curl -s http://"));
        Self { process, brokers, producer: config.create().unwrap(), client, admin }
    }

    /// Publishes an event, and waits until the broker has it.
    pub fn send(&self, thread: &str, event: &str) {
        self.producer.send(BaseRecord::to("agent.events").key(thread).payload(event)).map_err(|(error, _)| error).unwrap();
        self.producer.flush(TIME_MAX).unwrap();
    }

    /// Publishes events, each with its thread as the key.
    pub fn publish(&self, events: &[Value]) {
        events.iter().for_each(|event| self.send(event["thread_id"].as_str().unwrap(), &event.to_string()));
    }

    /// Returns the sum of all series of a metric.
    pub fn metric(&self, name: &str) -> f64 {
        tollgate_testkit::metric_of(&self.admin.get("/metrics").body, name)
    }
}

/// Returns the address behind some words of a text.
pub fn after<'t>(text: &'t str, words: &str) -> &'t str {
    let rest = text.split_once(words).unwrap_or_else(|| panic!("no {words:?}: {text}")).1;
    rest.split([',', '/', ' ', '"', '\n']).next().unwrap()
}
