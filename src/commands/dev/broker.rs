//! The embedded broker: librdkafka's mock cluster, on a thread of its own.

use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

use anyhow::Context;
use rdkafka::mocking::MockCluster;

/// A running broker. It ends when this is dropped.
#[derive(Debug)]
pub(super) struct EmbeddedBroker {
    bootstrap: String,
    /// Dropped first, which makes the thread end.
    keep_alive: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl EmbeddedBroker {
    /// Starts a broker with these topics.
    pub(super) fn start(topics: Vec<String>, partitions: u32) -> anyhow::Result<Self> {
        let partitions = i32::try_from(partitions)?;
        let (started, wait_started) = channel();
        let (keep_alive, wait_end) = channel::<()>();
        // The cluster's handle must stay on the thread that made it.
        let thread = std::thread::Builder::new().name("embedded-broker".to_owned()).spawn(move || {
            let cluster = MockCluster::new(1).and_then(|cluster| {
                topics.iter().try_for_each(|name| cluster.create_topic(name, partitions, 1))?;
                Ok(cluster)
            });
            let bootstrap = cluster.as_ref().map(MockCluster::bootstrap_servers).map_err(Clone::clone);
            // If the receiver has gone, nobody needs the broker.
            if started.send(bootstrap).is_ok() {
                let _ended = wait_end.recv();
            }
        })?;
        let bootstrap = wait_started.recv().context("the embedded broker did not start")?.context("the embedded broker did not start")?;
        Ok(Self { bootstrap, keep_alive: Some(keep_alive), thread: Some(thread) })
    }

    /// Returns the broker's address.
    pub(super) fn bootstrap(&self) -> &str {
        &self.bootstrap
    }
}

impl Drop for EmbeddedBroker {
    fn drop(&mut self) {
        drop(self.keep_alive.take());
        if let Some(thread) = self.thread.take() {
            let _panicked = thread.join();
        }
    }
}
