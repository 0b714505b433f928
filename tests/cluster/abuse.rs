//! Both stages on three brokers, of which one after the other is killed, and what the topics hold afterwards.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread::scope;
use std::time::Duration;

use anyhow::{Result, anyhow, ensure};
use tollgate_testkit::{Brokers, Cluster, NODES};

use crate::abuse_commands::an_offender_is_suspended_and_pardoned;
use crate::stages::kills_change_nothing;

/// How many workers are killed in a short run.
const KILLS: usize = 9;
/// At which kills of so many a broker is killed, and is started again.
const ROUND: usize = 3;
const HEAL_TIME_MAX: Duration = Duration::from_secs(300);
/// After so long topics are there and a worker is at work.
const BEFORE_FAULT: Duration = Duration::from_secs(6);
const AWAY: Duration = Duration::from_secs(5);

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

/// An offender is suspended on all partitions, shown and pardoned by the commands, while one broker after the other is killed.
pub(crate) fn an_offender_is_dealt_with_while_brokers_fail(brokers: &mut Brokers) -> Result<()> {
    let cluster = Cluster::new(brokers.bootstrap(), &crate::tollgate())?;
    brokers.wait_in_sync(HEAL_TIME_MAX)?;
    let (done, is_done) = channel::<()>();
    let faults = scope(|threads| {
        let faults = threads.spawn(move || {
            for kills in 0.. {
                if is_done.recv_timeout(BEFORE_FAULT) != Err(RecvTimeoutError::Timeout) {
                    return Ok(kills);
                }
                let node = kills % NODES;
                brokers.kill(node)?;
                let _early_or_not = is_done.recv_timeout(AWAY);
                brokers.start_node(node)?;
                brokers.wait_in_sync(HEAL_TIME_MAX)?;
            }
            Ok(0)
        });
        let dealt = an_offender_is_suspended_and_pardoned(&cluster);
        drop(done);
        let kills = faults.join().map_err(|_| anyhow!("the faults panicked"))?;
        dealt.and(kills)
    })?;
    ensure!(faults > 0, "it was over before a broker was killed");
    Ok(())
}
