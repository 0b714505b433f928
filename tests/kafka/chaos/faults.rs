//! The kinds of faults. One name may combine what happens to brokers with what happens to workers: `rolling+workers-rolled`.

use std::fmt::{self, Display, Formatter};

use anyhow::{Context as _, Result, ensure};

/// What happens to brokers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BrokerFault {
    /// The node that leads most partitions, and is not the active controller, is killed and comes back.
    LeadersKilled,
    /// One node after the other is stopped and started, and everything is in sync in between.
    Rolling,
    /// A node that leads partitions is frozen, for about as long as its session or for longer.
    BrokerFrozen,
    /// The active controller is killed and comes back.
    ControllerKilled,
    /// Connections are held up, delayed, cut and refused by a proxy.
    Connections,
    /// Two of three nodes are killed at once and come back.
    TwoDown,
    /// The disk of a node is full, which ends it; it comes back when there is room.
    DiskFull,
}

/// What happens to workers, and at the same moments to members of the plain group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WorkerFault {
    /// They are killed and started again at once.
    Killed,
    /// They are asked to stop and started again, one after the other.
    Rolled,
    /// They are frozen for longer than their session.
    Frozen,
}

const BROKER_FAULTS: [(&str, BrokerFault); 7] = [
    ("leaders-killed", BrokerFault::LeadersKilled),
    ("rolling", BrokerFault::Rolling),
    ("broker-frozen", BrokerFault::BrokerFrozen),
    ("controller-killed", BrokerFault::ControllerKilled),
    ("connections", BrokerFault::Connections),
    ("two-down", BrokerFault::TwoDown),
    ("disk-full", BrokerFault::DiskFull),
];
const WORKER_FAULTS: [(&str, WorkerFault); 3] =
    [("workers-killed", WorkerFault::Killed), ("workers-rolled", WorkerFault::Rolled), ("workers-frozen", WorkerFault::Frozen)];
const STATIC: &str = "static";
const NONE: &str = "none";

/// What the table has.
const TABLE: &str = "none,leaders-killed,rolling,broker-frozen,controller-killed,connections,two-down,disk-full,\
    workers-killed,workers-rolled,workers-rolled+static,workers-frozen,\
    leaders-killed+workers-killed,rolling+workers-rolled,rolling+workers-rolled+static,rolling+workers-killed,\
    broker-frozen+workers-killed,controller-killed+workers-killed,connections+workers-killed,two-down+workers-killed,\
    leaders-killed+workers-frozen";
/// The short runs that every change is tried with: what happens most often.
const QUICK: &str = "leaders-killed,rolling+workers-rolled+static";
/// The other short runs, so that each kind of fault has a short run. The table has more combinations.
const OTHER: &str = "two-down+workers-killed,connections,disk-full,broker-frozen,controller-killed+workers-killed,workers-frozen";

/// One kind of fault.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) brokers: Option<BrokerFault>,
    pub(super) workers: Option<WorkerFault>,
    /// Whether workers and plain members are static members.
    pub(super) is_static: bool,
}

impl Fault {
    /// Reads names, separated by commas; `all` is the whole table.
    pub(super) fn list(names: &str) -> Result<Vec<Self>> {
        let names = if names == "all" { TABLE } else { names };
        names.split(',').map(str::trim).filter(|name| !name.is_empty()).map(Self::read).collect()
    }

    /// Returns the faults that have a short run, and the module in whose name its case stands.
    pub(super) fn short_runs() -> Result<Vec<(&'static str, Self)>> {
        let quick = Self::list(QUICK)?.into_iter().map(|fault| ("cluster", fault));
        let other = Self::list(OTHER)?.into_iter().map(|fault| ("faults", fault));
        Ok(quick.chain(other).collect())
    }

    /// Returns whether it needs brokers that other faults cannot have: behind proxies, or one on a small disk.
    pub(super) fn has_special_brokers(self) -> bool {
        matches!(self.brokers, Some(BrokerFault::Connections | BrokerFault::DiskFull))
    }

    /// Returns whether a server of HTTP stands on the brokers too.
    pub(super) fn has_front(self) -> bool {
        matches!(self.brokers, Some(BrokerFault::LeadersKilled | BrokerFault::BrokerFrozen)) && self.workers.is_none()
    }

    fn read(name: &str) -> Result<Self> {
        let mut fault = Self::default();
        for part in name.split('+').filter(|part| *part != NONE) {
            let (before, broker) = (fault, find(&BROKER_FAULTS, part));
            fault.brokers = broker.or(fault.brokers);
            fault.workers = find(&WORKER_FAULTS, part).or(fault.workers);
            fault.is_static |= part == STATIC;
            ensure!(before != fault, "{name}: there is no fault {part:?}; known are all, {NONE}, {}", known());
        }
        Ok(fault)
    }
}

fn find<T: Copy>(table: &[(&str, T)], name: &str) -> Option<T> {
    table.iter().find(|(known, _)| *known == name).map(|(_, fault)| *fault)
}

fn name_of<T: PartialEq>(table: &[(&'static str, T)], fault: Option<&T>) -> Option<&'static str> {
    table.iter().find(|(_, known)| Some(known) == fault).map(|(name, _)| *name)
}

fn known() -> String {
    let brokers = BROKER_FAULTS.iter().map(|(name, _)| *name);
    let workers = WORKER_FAULTS.iter().map(|(name, _)| *name);
    format!("{}; and +{STATIC}", brokers.chain(workers).collect::<Vec<_>>().join(", "))
}

impl Display for Fault {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let parts = [
            name_of(&BROKER_FAULTS, self.brokers.as_ref()),
            name_of(&WORKER_FAULTS, self.workers.as_ref()),
            self.is_static.then_some(STATIC),
        ];
        let parts: Vec<_> = parts.into_iter().flatten().collect();
        f.write_str(if parts.is_empty() { NONE } else { "" })?;
        f.write_str(&parts.join("+"))
    }
}

/// The lists and their names must fit.
pub(super) fn names_are_read() -> Result<()> {
    for list in [TABLE, QUICK, OTHER] {
        for name in list.split(',') {
            let fault = Fault::read(name).with_context(|| name.to_owned())?;
            ensure!(fault.to_string() == name, "{name} is read as {fault}");
        }
    }
    ensure!(Fault::read("rolling+nothing").is_err() && Fault::read("rolling+rolling").is_err());
    Ok(())
}
