//! Does the faults: those of brokers on one thread, those of workers on another, until the time is over.

use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use tollgate_testkit::{Brokers, NODES, Random, Traffic};

use super::clock::Chronicle;
use super::faults::{BrokerFault, WorkerFault};
use super::worker_group::WorkerGroup;

/// How long a node may take until it is in sync again.
const SYNC_TIME_MAX: Duration = Duration::from_secs(300);
const DISK_TIME_MAX: Duration = Duration::from_secs(180);
/// The node whose disk is small.
pub(super) const SMALL_DISK_NODE: usize = 2;
/// The size of that disk: enough for a run, with what compaction needs.
pub(super) const SMALL_DISK_BYTES: u64 = 2_000_000_000;
/// How long a node is frozen, in seconds: its session is nine. librdkafka may wait for ever for a node that was frozen for about as long
/// (confluentinc/librdkafka#5430).
const FREEZE_SECONDS: std::ops::RangeInclusive<usize> = 9..=16;

fn seconds(count: usize) -> Duration {
    Duration::from_secs(count as u64)
}

/// The state of the brokers' faults.
pub(super) struct OnBrokers<'i> {
    pub(super) brokers: &'i mut Brokers,
    pub(super) chronicle: &'i Chronicle,
    pub(super) random: Random,
    /// The topic whose leaders are looked for.
    pub(super) topic: &'i str,
}

impl OnBrokers<'_> {
    /// Does one fault after the other until the time is over, at least one, and lets the cluster recover from each.
    pub(super) fn run(&mut self, fault: BrokerFault, until: Instant) -> Result<()> {
        loop {
            match fault {
                BrokerFault::LeadersKilled => self.leaders_killed()?,
                BrokerFault::Rolling => self.rolling()?,
                BrokerFault::BrokerFrozen => self.frozen()?,
                BrokerFault::ControllerKilled => self.controller_killed()?,
                BrokerFault::Connections => self.connections()?,
                BrokerFault::TwoDown => self.two_down()?,
                BrokerFault::DiskFull => self.disk_full()?,
            }
            self.brokers.wait_in_sync(SYNC_TIME_MAX)?;
            self.chronicle.note("all brokers are in sync")?;
            self.brokers.elect_preferred_leaders()?;
            if Instant::now() + seconds(3) >= until {
                return Ok(());
            }
            sleep(seconds(3));
        }
    }

    fn kill(&mut self, node: usize, why: &str) -> Result<()> {
        self.chronicle.note(format_args!("kill broker {} ({why})", node + 1))?;
        self.brokers.kill(node)
    }

    fn start(&mut self, node: usize) -> Result<()> {
        self.chronicle.note(format_args!("start broker {}", node + 1))?;
        self.brokers.start_node(node)
    }

    fn below(&mut self, limit: usize) -> usize {
        self.random.below(limit)
    }

    /// Returns the node that leads most partitions and is not the active controller.
    fn leader(&mut self) -> Result<usize> {
        let (controller, leaders) = (self.brokers.active_controller()?, self.brokers.leaders(self.topic)?);
        let led = |node: &usize| leaders.values().filter(|leader| *leader == node).count();
        (0..NODES).filter(|node| *node != controller).max_by_key(led).context("a node that is no controller")
    }

    fn leaders_killed(&mut self) -> Result<()> {
        let node = self.leader()?;
        self.kill(node, "it leads partitions")?;
        sleep(seconds(4 + self.random.below(8)));
        self.start(node)
    }

    fn controller_killed(&mut self) -> Result<()> {
        let node = self.brokers.active_controller()?;
        self.kill(node, "it is the active controller")?;
        sleep(seconds(4 + self.random.below(8)));
        self.start(node)
    }

    fn rolling(&mut self) -> Result<()> {
        for node in 0..NODES {
            self.chronicle.note(format_args!("stop broker {}", node + 1))?;
            self.brokers.stop(node)?;
            self.start(node)?;
            self.brokers.wait_in_sync(SYNC_TIME_MAX)?;
            sleep(seconds(1));
        }
        Ok(())
    }

    fn frozen(&mut self) -> Result<()> {
        let node = self.leader()?;
        self.chronicle.note(format_args!("freeze broker {}", node + 1))?;
        self.brokers.freeze(node)?;
        sleep(seconds(FREEZE_SECONDS.start() + self.random.below(FREEZE_SECONDS.count())));
        self.chronicle.note(format_args!("thaw broker {}", node + 1))?;
        self.brokers.thaw(node)
    }

    fn two_down(&mut self) -> Result<()> {
        let up = self.below(NODES);
        for node in (0..NODES).filter(|node| *node != up) {
            self.kill(node, "two at once")?;
        }
        sleep(seconds(10));
        for node in (0..NODES).filter(|node| *node != up) {
            self.start(node)?;
        }
        Ok(())
    }

    fn disk_full(&mut self) -> Result<()> {
        self.chronicle.note(format_args!("the disk of broker {} is full", SMALL_DISK_NODE + 1))?;
        self.brokers.fill_disk(SMALL_DISK_NODE)?;
        let deadline = Instant::now() + DISK_TIME_MAX;
        while self.brokers.is_running(SMALL_DISK_NODE)? {
            ensure!(Instant::now() < deadline, "a full disk does not end the broker; see {:?}", self.brokers.log_path(SMALL_DISK_NODE));
            sleep(Duration::from_millis(100));
        }
        self.chronicle.note(format_args!("broker {} has ended", SMALL_DISK_NODE + 1))?;
        sleep(seconds(3 + self.random.below(8)));
        self.brokers.free_disk(SMALL_DISK_NODE)?;
        self.start(SMALL_DISK_NODE)
    }

    fn connections(&mut self) -> Result<()> {
        let node = self.below(NODES);
        let (what, traffic, time) = match self.below(5) {
            0 => ("hold up", Traffic::Stalled, 8 + self.below(8)),
            1 => ("hold up for a moment", Traffic::Stalled, 1 + self.below(3)),
            2 => ("delay", Traffic::Delayed(Duration::from_millis(200)), 5),
            3 => ("refuse and cut", Traffic::Refused, 3 + self.below(8)),
            _ => ("cut", Traffic::Passing, 1),
        };
        self.chronicle.note(format_args!("{what}: connections to broker {}, {time} s", node + 1))?;
        self.brokers.set_traffic(node, traffic)?;
        if matches!(traffic, Traffic::Refused | Traffic::Passing) {
            self.brokers.cut(node)?;
        }
        sleep(seconds(time));
        self.chronicle.note(format_args!("connections to broker {} pass", node + 1))?;
        self.brokers.set_traffic(node, Traffic::Passing)?;
        sleep(seconds(self.random.below(3)));
        Ok(())
    }
}

/// Does the faults of workers until the time is over, at least one. The worker that was started first comes first.
pub(super) fn on_workers(fault: WorkerFault, fleet: &mut WorkerGroup<'_>, random: &mut Random, until: Instant) -> Result<()> {
    loop {
        let pause = match fault {
            WorkerFault::Killed => {
                fleet.kill(0, Duration::from_millis(random.below(2_000) as u64))?;
                // Another one is killed while the group still misses this one, or after that.
                seconds(4 + random.below(12))
            }
            WorkerFault::Rolled => {
                fleet.leave(0, true, false)?;
                fleet.settle()?;
                fleet.wait_ready();
                seconds(1 + random.below(3))
            }
            WorkerFault::Frozen => {
                let time = seconds(12 + random.below(4));
                fleet.freeze(0, time)?;
                fleet.rest(time)?;
                seconds(4 + random.below(4))
            }
        };
        if Instant::now() + pause >= until {
            return Ok(());
        }
        fleet.rest(pause)?;
    }
}
