//! Kills in both stages, and what the topics hold afterwards. On three brokers, `chaos/abuse.rs` has brokers fail meanwhile.
//!
//! `TOLLGATE_ABUSE_KILLS` says how many workers are killed (the default is for a short run), and `TOLLGATE_CHAOS_SEED` which ones and when.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::json;

use tollgate_config::settings::Settings;
use tollgate_core::settings::defaults;
use tollgate_testkit::{Cluster, Deployment, Outgoing, Random, Record, wait_until};

use crate::controls::switches;

use super::reference::{fold, published, signals_in, signals_of};
use crate::chaos::{Chronicle, Member, WorkerGroup, number};

const PARTITIONS: i32 = 6;
const SIGNAL_PARTITIONS: i32 = 3;
/// How many events come between two kills.
const EVENTS_PER_KILL: usize = 60;
/// The times between two kills.
const PAUSE_MS: std::ops::Range<usize> = 300..1_500;
/// How often events come behind the last kill, at least.
const ROUNDS_MIN: usize = 3;
/// Longer than a bucket of the rule that waits for the clock.
const BUCKET: Duration = Duration::from_millis(1_500);

/// Returns the rules: one that suspends, one by another dimension, one that waits for the clock and whose buckets end every second, and the
/// pack with its volumes.
fn rules() -> serde_json::Value {
    json!({
        "pack": "alert",
        "rules": [
            {
                "id": "often-stopped", "level": "high", "mode": "enforce", "detection": {"signal": "safety_stop"},
                "correlation": {"type": "event_count", "group-by": ["user"], "timespan": "10m", "condition": {"gte": 3}},
                "escalation": {"steps": ["warn", "15m", "2h"], "decay": "24h"}, "suppress": "1m",
            },
            {
                "id": "denied-tools", "level": "medium", "mode": "alert", "detection": {"signal": "denial"},
                "correlation": {"type": "value_count", "group-by": ["user"], "timespan": "10m", "condition": {"gte": 2, "field": "tool"}},
            },
            {
                "id": "share-stopped", "level": "medium", "mode": "alert", "detection": {"signal": "safety_stop"},
                "correlation": {
                    "type": "ratio", "group-by": ["tenant"], "timespan": "1m", "over": {"signal": "response"}, "min": 5,
                    "condition": {"gte": 0.05},
                },
                "suppress": "1s",
            },
        ],
    })
}

/// Returns some events. Users that are stopped make no calls, so that nothing depends on when a suspension comes.
fn events(random: &mut Random, from: usize, count: usize) -> Vec<Outgoing> {
    let event = |number: usize| {
        let (user, partition) = (random.below(12), i32::try_from(random.below(6)).unwrap_or_default());
        let (thread, id) = (format!("thread-{partition}-{user}"), format!("e{number}"));
        let ids = json!({"thread_id": thread, "event_id": id, "user_id": format!("user-{user}"), "tenant_id": format!("tenant-{}", user % 3), "turn_id": id});
        let fields = if user < 6 {
            let reason = ["stop", "content_filter"][random.below(2)];
            let response = json!({"choices": [{"finish_reason": reason, "message": {"content": ""}}], "usage": {"total_tokens": 100}});
            json!({"type": "model_response", "response": response})
        } else {
            let tool = ["bash", "ssh", "ls", "format_disk"][random.below(4)];
            json!({"type": "tool_call", "tool_call_id": id, "tool_name": tool, "tool_input": {"n": number}})
        };
        let mut whole = ids;
        for (key, value) in fields.as_object().cloned().unwrap_or_default() {
            whole[key] = value;
        }
        Outgoing::new(thread, whole.to_string()).partition(partition)
    };
    (from..from + count).map(event).collect()
}

/// Whatever is killed and when: each signal is counted once and is that of its event, and alerts and controls are those of the fold of the
/// signals topic, byte for byte. `meanwhile` is called before each kill with its number, and behind the last one.
pub(crate) fn kills_change_nothing(cluster: &Cluster, kills: u64, mut meanwhile: impl FnMut(u64) -> Result<()>) -> Result<()> {
    let (kills, seed) = (number("TOLLGATE_ABUSE_KILLS", kills)?, number("TOLLGATE_CHAOS_SEED", 17)?);
    let chronicle = Chronicle::new(cluster.directory())?;
    let guardrails = json!({"enabled": true, "provider": {"use": "allowlist", "config": {"denied_tools": ["bash", "ssh", "format_disk"]}}});
    let mut deployment = Deployment::new(cluster, PARTITIONS)?;
    deployment.miss_members_soon();
    let topics = deployment.watch_for_abuse(cluster, SIGNAL_PARTITIONS)?;
    deployment.configure("/worker", json!({"members": 1, "checkpoint_interval_ms": 300}));
    deployment.configure("/guardrails", guardrails.clone());
    deployment.configure("/abuse", rules());
    let settings = Settings::read(&json!({"guardrails": guardrails, "abuse": rules()}), &defaults()?)?;

    let mut random = Random::new(seed);
    let mut fleet = WorkerGroup::start(
        &deployment,
        &chronicle,
        &["decide", "abuse", "decide", "abuse"].map(|stage| Member { stage, ..Member::default() }),
    )?;
    let mut sent = 0;
    for kill in 0..kills {
        meanwhile(kill)?;
        cluster.produce(&deployment.events, &events(&mut random, sent, EVENTS_PER_KILL))?;
        sent += EVENTS_PER_KILL;
        std::thread::sleep(Duration::from_millis((PAUSE_MS.start + random.below(PAUSE_MS.len())) as u64));
        fleet.kill(random.below(fleet.count()), Duration::ZERO)?;
        fleet.settle()?;
    }
    meanwhile(kills)?;
    // Time passes for those that took over last, so that they have to do what was due for the ones that died. On a slow machine the clocks
    // of all partitions take more rounds to pass the end of a bucket.
    let mut round = 0;
    wait_until("something fires that waits for the clock", || {
        round += 1;
        cluster.produce(&deployment.events, &events(&mut random, sent, EVENTS_PER_KILL))?;
        sent += EVENTS_PER_KILL;
        fleet.wait_ready();
        std::thread::sleep(BUCKET);
        Ok(round >= ROUNDS_MIN && published(&cluster.read_all(&topics.alerts)?, &[]).alerts.iter().any(is_by_clock))
    })?;
    cluster.await_committed(&deployment.group, &deployment.events, sent)?;
    // No signals come any more, and no clocks.
    fleet.stop("decide")?;
    let ends = ends(&cluster.read_all(&topics.signals)?);
    let group = format!("{}-abuse", deployment.group);
    wait_until("all signals are counted", || Ok(cluster.committed(&group, &topics.signals)? == ends))?;
    fleet.stop("abuse")?;
    fleet.has_done_well()?;

    let (events, signals) = (cluster.read_all(&deployment.events)?, cluster.read_all(&topics.signals)?);
    ensure!(events.len() == sent, "{} of {sent} events are there", events.len());
    let (wanted, found) = (signals_of(&settings, &deployment.events, &events)?, signals_in(&signals)?);
    let (missing, excess): (Vec<_>, Vec<_>) = (wanted.difference(&found).collect(), found.difference(&wanted).collect());
    ensure!(missing.is_empty() && excess.is_empty(), "seed {seed}: {} signals, missing {missing:#?}, too many {excess:#?}", wanted.len());
    let wanted = fold(&settings, &topics.signals, &signals);
    let found = published(&cluster.read_all(&topics.alerts)?, &switches(cluster, &deployment)?);
    ensure!(
        wanted.alerts == found.alerts,
        "seed {seed}: alerts differ: missing {:#?}, too many {:#?}",
        wanted.alerts.difference(&found.alerts).collect::<Vec<_>>(),
        found.alerts.difference(&wanted.alerts).collect::<Vec<_>>()
    );
    ensure!(wanted.last == found.last, "seed {seed}: controls differ: {:#?}\n{:#?}", wanted.last, found.last);
    // Compaction may have taken earlier values of a control, so that those are compared one way.
    ensure!(found.controls.is_subset(&wanted.controls), "seed {seed}: a control that the fold does not know");
    ensure!(!wanted.last.is_empty(), "nobody was caught, so that nothing was compared");
    let by_clock = wanted.alerts.iter().filter(|alert| is_by_clock(alert)).count();
    eprintln!(
        "seed {seed}: {kills} kills, {sent} events, {} signals, {} records of them, {} alerts ({by_clock} by the clock), {} controls",
        signals_in(&signals)?.len(),
        signals.len(),
        wanted.alerts.len(),
        wanted.controls.len()
    );
    Ok(())
}

/// Returns whether an alert, a key and a value, is of the rule that waits for the clock.
fn is_by_clock((_, alert): &(String, String)) -> bool {
    alert.contains("share-stopped")
}

/// Returns where the partitions of a topic end.
fn ends(records: &[Record]) -> BTreeMap<i32, i64> {
    let mut ends = BTreeMap::new();
    for record in records {
        let end = ends.entry(record.partition).or_default();
        *end = record.offset.max(*end - 1) + 1;
    }
    ends
}
