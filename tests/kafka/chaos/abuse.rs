//! Both stages on three brokers, of which one after the other is killed, and what the topics hold afterwards.

use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::thread::scope;
use std::time::Duration;

use anyhow::{Result, anyhow, ensure};
use tollgate_testkit::harness::Place;
use tollgate_testkit::{Brokers, NODES};

use crate::abuse::kills_change_nothing;
use crate::abuse_commands::an_offender_is_dealt_with;

/// How many workers are killed in a short run.
const KILLS: u64 = 9;
/// At which kills of so many a broker is killed, and is started again.
const ROUND: u64 = 3;
const HEAL_TIME_MAX: Duration = Duration::from_secs(300);
/// How long a broker is away, and how long all are there until the next one is killed.
const AWAY: Duration = Duration::from_secs(5);
const BETWEEN: Duration = Duration::from_secs(5);

/// Each signal is counted once, and alerts and controls are those of the fold of the signals topic, byte for byte.
pub(super) fn faults_change_no_signal_alert_or_control(place: &Place, brokers: &mut Brokers) -> Result<()> {
    let cluster = place.cluster(brokers.bootstrap())?;
    brokers.wait_in_sync(HEAL_TIME_MAX)?;
    let mut down = None;
    kills_change_nothing(&cluster, KILLS, |kill| {
        if let Some(node) = down.filter(|_| kill % ROUND != 1) {
            down = None;
            brokers.start_node(node)?;
            return brokers.wait_in_sync(HEAL_TIME_MAX);
        }
        if kill % ROUND == 0 && down.is_none() {
            let node = (kill / ROUND) as usize % NODES;
            brokers.kill(node)?;
            down = Some(node);
        }
        Ok(())
    })?;
    brokers.heal(HEAL_TIME_MAX)
}

/// An offender is suspended on all partitions, shown and pardoned by the commands, while one broker after the other is killed.
pub(super) fn an_offender_is_dealt_with_while_brokers_fail(place: &Place, brokers: &mut Brokers) -> Result<()> {
    let cluster = place.cluster(brokers.bootstrap())?;
    brokers.wait_in_sync(HEAL_TIME_MAX)?;
    let (begin, begins) = channel::<()>();
    let kills = scope(|threads| {
        let faults = threads.spawn(move || {
            if begins.recv().is_ok() {
                return kill_in_turn(brokers, &begins);
            }
            Ok(0)
        });
        let dealt = an_offender_is_dealt_with(&cluster, || _ = begin.send(()));
        drop(begin);
        let kills = faults.join().map_err(|_| anyhow!("the faults panicked"))?;
        dealt.and(kills)
    })?;
    ensure!(kills > 0, "it was over before a broker was killed");
    Ok(())
}

/// Kills one broker after the other until the sender is gone, and heals. Returns how many were killed.
fn kill_in_turn(brokers: &mut Brokers, end: &Receiver<()>) -> Result<usize> {
    let mut kills = 0;
    while end.try_recv() == Err(TryRecvError::Empty) {
        let node = kills % NODES;
        brokers.kill(node)?;
        kills += 1;
        let _early_or_not = end.recv_timeout(AWAY);
        brokers.start_node(node)?;
        brokers.wait_in_sync(HEAL_TIME_MAX)?;
        let _early_or_not = end.recv_timeout(BETWEEN);
    }
    Ok(kills)
}
