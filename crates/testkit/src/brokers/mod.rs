//! Three Kafka nodes that are one cluster, on the loopback interface, in temporary directories, which end with their starter.
//!
//! Every node is broker and controller. Each partition is on all three, a write is acknowledged once two have it, and a node that lags
//! behind never leads. A test can kill, stop, freeze and start nodes, fill the disk of one, and hold up or cut what clients send.

mod disk;
mod node;
mod proxy;
mod requests;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, bail, ensure};
use rdkafka::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::metadata::Metadata;

use crate::ports::free_ports;
use node::{Node, Ports};
use proxy::Proxies;

pub use disk::has_small_disks;
pub use proxy::Traffic;

/// How many nodes a cluster has.
pub const NODES: usize = 3;

const START_TIME_MAX: Duration = Duration::from_secs(300);
const METADATA_TIME_MAX: Duration = Duration::from_secs(20);
/// How long a cluster may take to answer a question: it may be electing a controller or leaders.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(120);
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// What a cluster has besides its three nodes.
#[derive(Clone, Debug, Default)]
pub struct BrokersSettings {
    /// Clients reach every node through a proxy.
    pub proxied: bool,
    /// A node, from 0, whose disk has only so many bytes ([`has_small_disks`] says whether that can be had).
    pub small_disk: Option<(usize, u64)>,
    /// Further lines of each `server.properties`.
    pub properties: String,
    /// The directory in which each node has a log that stays, `node-1.log` and so on; without it the logs are gone with the nodes.
    pub logs: Option<PathBuf>,
}

/// A cluster of three nodes, numbered from 0. Dropping it kills them and removes their data.
#[derive(Debug)]
pub struct Brokers {
    nodes: Vec<Node>,
    proxies: Option<Proxies>,
}

impl Brokers {
    /// Starts a cluster on free ports and waits until every node has joined it. Its jars are in `jars`, or are put there.
    ///
    /// # Errors
    /// Java, Maven or the jars are missing, or a node does not come up: with the end of its log.
    pub fn start(jars: &Path, settings: &BrokersSettings) -> Result<Self> {
        let ports = free_port_groups()?.map(|[proxy, clients, internal, controller]| {
            let advertised = if settings.proxied { proxy } else { clients };
            Ports { advertised, clients, internal, controller }
        });
        let proxied: Vec<_> = ports.iter().map(|ports| (ports.advertised, ports.clients)).collect();
        let proxies = if settings.proxied { Some(Proxies::start(&proxied)?) } else { None };
        let make = |number: usize| {
            let disk = settings.small_disk.filter(|(node, _)| *node == number).map(|(_, bytes)| bytes);
            let mut node = Node::new(number, jars, &ports, disk, settings)?;
            node.start()?;
            Ok(node)
        };
        let nodes = std::thread::scope(|threads| {
            let making: Vec<_> = (0..NODES).map(|number| threads.spawn(move || make(number))).collect();
            making.into_iter().map(|node| node.join().map_err(|_| anyhow!("a node panicked"))?).collect::<Result<Vec<_>>>()
        })?;
        let mut brokers = Self { nodes, proxies };
        brokers.wait_in_sync(START_TIME_MAX)?;
        Ok(brokers)
    }

    /// Returns the addresses for `bootstrap.servers`.
    #[must_use]
    pub fn bootstrap(&self) -> String {
        let addresses: Vec<_> = self.nodes.iter().map(|node| format!("127.0.0.1:{}", node.ports.advertised)).collect();
        addresses.join(",")
    }

    /// Kills a node, as a crash would.
    ///
    /// # Errors
    /// It does not end.
    pub fn kill(&mut self, node: usize) -> Result<()> {
        self.nodes[node].end("KILL")
    }

    /// Stops a node as an operator would: it hands its leaders over, writes what it holds and ends.
    ///
    /// # Errors
    /// It does not end.
    pub fn stop(&mut self, node: usize) -> Result<()> {
        self.nodes[node].end("TERM")
    }

    /// Starts a node that is down; it may take a while until it is in sync.
    ///
    /// # Errors
    /// The system starts no process.
    pub fn start_node(&mut self, node: usize) -> Result<()> {
        self.nodes[node].start()
    }

    /// Returns whether the process of a node is running, frozen or not.
    ///
    /// # Errors
    /// The system does not say.
    pub fn is_running(&mut self, node: usize) -> Result<bool> {
        self.nodes[node].is_running()
    }

    /// Freezes a node: it keeps its connections and answers nothing.
    ///
    /// # Errors
    /// It is down.
    pub fn freeze(&mut self, node: usize) -> Result<()> {
        self.nodes[node].signal("STOP")
    }

    /// Lets a frozen node go on.
    ///
    /// # Errors
    /// It is down.
    pub fn thaw(&mut self, node: usize) -> Result<()> {
        self.nodes[node].signal("CONT")
    }

    /// Fills the disk of the node that has a small one. Kafka ends a node that cannot write.
    ///
    /// # Errors
    /// It has none.
    pub fn fill_disk(&mut self, node: usize) -> Result<()> {
        self.nodes[node].disk()?.fill()
    }

    /// Makes room on that disk again.
    ///
    /// # Errors
    /// It has none.
    pub fn free_disk(&mut self, node: usize) -> Result<()> {
        self.nodes[node].disk()?.free()
    }

    /// Says what the proxy of a node does with connections from now on.
    ///
    /// # Errors
    /// The cluster has no proxies.
    pub fn set_traffic(&self, node: usize, traffic: Traffic) -> Result<()> {
        self.proxies.as_ref().context("a cluster without proxies")?.set(node, traffic);
        Ok(())
    }

    /// Ends all connections of clients to a node. They may connect again.
    ///
    /// # Errors
    /// The cluster has no proxies.
    pub fn cut(&self, node: usize) -> Result<()> {
        self.proxies.as_ref().context("a cluster without proxies")?.cut(node);
        Ok(())
    }

    /// Returns the node that is the active controller, as any node that is up knows it.
    ///
    /// # Errors
    /// None is known.
    pub fn active_controller(&mut self) -> Result<usize> {
        let id = self.ask_any(requests::active_controller)?;
        usize::try_from(id - 1).ok().filter(|node| *node < NODES).with_context(|| format!("{id} is no node"))
    }

    /// Makes the first replica of every partition its leader again, which spreads them over the nodes.
    ///
    /// # Errors
    /// No node does it.
    pub fn elect_preferred_leaders(&mut self) -> Result<()> {
        self.ask_any(requests::elect_preferred_leaders)
    }

    fn ask_any<T>(&mut self, ask: impl Fn(u16) -> Result<T>) -> Result<T> {
        let deadline = Instant::now() + ANSWER_TIME_MAX;
        loop {
            let mut last = anyhow!("no node is up");
            for node in &mut self.nodes {
                if node.is_running()? {
                    match ask(node.ports.clients) {
                        Ok(answer) => return Ok(answer),
                        Err(error) => last = error,
                    }
                }
            }
            ensure!(Instant::now() < deadline, last);
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    /// Returns the nodes that lead the partitions of a topic; partitions without a leader are left out.
    ///
    /// # Errors
    /// The cluster does not answer.
    pub fn leaders(&self, topic: &str) -> Result<BTreeMap<i32, usize>> {
        let deadline = Instant::now() + ANSWER_TIME_MAX;
        let metadata = loop {
            match self.metadata() {
                Err(_) if Instant::now() < deadline => std::thread::sleep(POLL_INTERVAL),
                answered => break answered?,
            }
        };
        let partitions = metadata.topics().iter().filter(|found| found.name() == topic).flat_map(|topic| topic.partitions());
        Ok(partitions.filter_map(|partition| Some((partition.id(), usize::try_from(partition.leader() - 1).ok()?))).collect())
    }

    /// Waits until all nodes are there, every partition has a leader, and every replica is in sync.
    ///
    /// # Errors
    /// It takes longer, or a node has ended: with the end of its log.
    pub fn wait_in_sync(&mut self, time_max: Duration) -> Result<()> {
        let deadline = Instant::now() + time_max;
        // The others believe in a node that was killed until its session is over. One that listens again has registered anew.
        while !(self.nodes.iter().all(Node::listens) && self.metadata().is_ok_and(|metadata| is_in_sync(&metadata))) {
            for (number, node) in self.nodes.iter_mut().enumerate() {
                ensure!(node.is_running()?, "node {number} has ended; its log:\n{}", node.log_tail());
            }
            if Instant::now() >= deadline {
                bail!("the nodes are not in sync; the log of the first:\n{}", self.nodes[0].log_tail());
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        Ok(())
    }

    /// Starts and thaws every node, makes room, lets every connection pass, and waits until all is as it was in the beginning.
    ///
    /// # Errors
    /// Those of [`Brokers::wait_in_sync`].
    pub fn heal(&mut self, time_max: Duration) -> Result<()> {
        for (number, node) in self.nodes.iter_mut().enumerate() {
            if let Some(proxies) = &self.proxies {
                proxies.set(number, Traffic::Passing);
            }
            if let Ok(disk) = node.disk() {
                disk.free()?;
            }
            match node.is_running()? {
                true => node.signal("CONT")?,
                false => node.start()?,
            }
        }
        self.wait_in_sync(time_max)?;
        self.elect_preferred_leaders()
    }

    /// Returns where a node logs to.
    #[must_use]
    pub fn log_path(&self, node: usize) -> PathBuf {
        self.nodes[node].log_path()
    }

    /// Asks past the proxies.
    fn metadata(&self) -> Result<Metadata> {
        let addresses: Vec<_> = self.nodes.iter().map(|node| format!("127.0.0.1:{}", node.ports.clients)).collect();
        let client: BaseConsumer = ClientConfig::new().set("bootstrap.servers", addresses.join(",")).create()?;
        Ok(client.fetch_metadata(None, METADATA_TIME_MAX)?)
    }
}

impl Drop for Brokers {
    fn drop(&mut self) {
        if let Some(proxies) = self.proxies.take() {
            proxies.end();
        }
    }
}

/// Returns the ports of each node, at random places, because clusters of other processes may be starting too.
fn free_port_groups() -> Result<[[u16; 4]; NODES]> {
    let [a, b, c, d, e, f, g, h, i, j, k, l] = free_ports()?;
    Ok([[a, b, c, d], [e, f, g, h], [i, j, k, l]])
}

fn is_in_sync(metadata: &Metadata) -> bool {
    let mut partitions = metadata.topics().iter().flat_map(|topic| topic.partitions());
    metadata.brokers().len() == NODES
        && partitions.all(|partition| partition.leader() > 0 && partition.isr().len() == partition.replicas().len())
}
