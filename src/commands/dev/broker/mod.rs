//! The embedded broker: librdkafka's mock cluster, on a thread of its own, behind a forwarder that clients connect to.

mod forwarder;
mod produce;
mod protocol;

use std::net::{Ipv4Addr, SocketAddr, TcpListener as StdListener};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

use anyhow::Context;
use rdkafka::mocking::MockCluster;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use tollgate_worker::Stop;
use tollgate_worker::threads::MustRun;

/// The port of brokers, which clients try first.
const PORT: u16 = 9092;

/// A running broker. It ends when this is dropped.
#[derive(Debug)]
pub(super) struct EmbeddedBroker {
    bootstrap: String,
    /// Whether it listens elsewhere because the port of brokers is taken.
    is_elsewhere: bool,
    /// Given before it ends, for its clients could not go on.
    stop: Stop,
    /// Dropped first, which makes the thread end.
    keep_alive: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl EmbeddedBroker {
    /// Starts a broker with these topics, each of so many partitions, on a thread under the guard. Without a port it takes 9092, or another
    /// one if that is taken. The cluster's id begins with `cluster_id`.
    pub(super) fn start(
        (topics, cluster_id): (Vec<(String, i32)>, String),
        port: Option<u16>,
        guard: MustRun,
        stop: Stop,
    ) -> anyhow::Result<Self> {
        let listener = bind(port)?;
        let address = listener.local_addr()?;
        let (bootstrap, is_elsewhere) = (address.to_string(), port.is_none() && address.port() != PORT);
        let (started, wait_started) = channel();
        let (keep_alive, wait_end) = oneshot::channel::<()>();
        // The cluster's handle must stay on the thread that made it.
        let thread = guard.spawn(move || {
            let served = serve(listener, (&topics, &cluster_id), &started, wait_end);
            if let Err(error) = served {
                // If the receiver has gone, the broker had been running.
                if let Err(unsent) = started.send(Err(error)) {
                    tracing::error!(error = ?unsent.0, "the embedded broker failed");
                }
            }
        })?;
        wait_started.recv().context("the embedded broker did not start")?.context("the embedded broker did not start")?;
        Ok(Self { bootstrap, is_elsewhere, stop, keep_alive: Some(keep_alive), thread: Some(thread) })
    }

    /// Returns the broker's address.
    pub(super) fn bootstrap(&self) -> &str {
        &self.bootstrap
    }

    /// Returns whether the broker listens elsewhere because the port of brokers is taken.
    pub(super) fn is_elsewhere(&self) -> bool {
        self.is_elsewhere
    }
}

/// Runs the cluster and the forwarder until the other end of `wait_end` is dropped.
fn serve(
    listener: StdListener,
    (topics, cluster_id): (&[(String, i32)], &str),
    started: &Sender<anyhow::Result<()>>,
    wait_end: oneshot::Receiver<()>,
) -> anyhow::Result<()> {
    let cluster = MockCluster::new(1)?;
    topics.iter().try_for_each(|(name, partitions)| cluster.create_topic(name, *partitions, 1))?;
    let address: SocketAddr = cluster.bootstrap_servers().parse().context("the address of the mock cluster")?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = TcpListener::from_std(listener)?;
        // If the receiver has gone, nobody needs the broker.
        if started.send(Ok(())).is_err() {
            return Ok(());
        }
        fail::fail_point!("embedded-broker");
        tokio::select! {
            forwarded = forwarder::forward(listener, address, cluster_id) => Ok(forwarded?),
            _ended = wait_end => Ok(()),
        }
    })
}

/// Returns a listener on the port; without one on 9092, or on any port if that is taken.
fn bind(port: Option<u16>) -> anyhow::Result<StdListener> {
    let on = |port| StdListener::bind((Ipv4Addr::LOCALHOST, port));
    let listener = match port {
        Some(port) => {
            on(port).with_context(|| format!("--port {port}: the embedded broker cannot listen there; name another port, or 0 for any"))?
        }
        None => on(PORT).or_else(|_| on(0)).context("the embedded broker cannot listen on 127.0.0.1")?,
    };
    listener.set_nonblocking(true)?;
    Ok(listener)
}

impl Drop for EmbeddedBroker {
    fn drop(&mut self) {
        self.stop.end();
        drop(self.keep_alive.take());
        if let Some(thread) = self.thread.take() {
            let _panicked = thread.join();
        }
    }
}
