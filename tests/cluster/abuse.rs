//! Both stages on three brokers, of which one after the other is killed, and what the topics hold afterwards.

use std::time::Duration;

use anyhow::Result;
use tollgate_testkit::{Brokers, Cluster, NODES};

use crate::stages::kills_change_nothing;

/// How many workers are killed in a short run.
const KILLS: usize = 9;
/// At which kills of so many a broker is killed, and is started again.
const ROUND: usize = 3;
const HEAL_TIME_MAX: Duration = Duration::from_secs(300);

/// Each signal is counted once, and alerts and controls are those of the fold of the signals topic, byte for byte.
pub(crate) fn faults_change_no_signal_alert_or_control(brokers: &mut Brokers) -> Result<()> {
    let cluster = Cluster::new(brokers.bootstrap(), &crate::tollgate())?;
    brokers.wait_in_sync(HEAL_TIME_MAX)?;
    let mut down = None;
    kills_change_nothing(&cluster, KILLS, |kill| {
        if let Some(node) = down.filter(|_| kill % ROUND != 1) {
            down = None;
            brokers.start_node(node)?;
            return brokers.wait_in_sync(HEAL_TIME_MAX);
        }
        if kill % ROUND == 0 && down.is_none() {
            let node = kill / ROUND % NODES;
            brokers.kill(node)?;
            down = Some(node);
        }
        Ok(())
    })?;
    brokers.heal(HEAL_TIME_MAX)
}
