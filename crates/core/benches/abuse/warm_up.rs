//! Measures how long a partition stands still when it takes a warm-up in, beside the restore of the same subjects.

use std::sync::Arc;
use std::time::Duration;

use tollgate_core::abuse::{Abuse, AbuseRules, AbuseState, Rule};
use tollgate_core::checkpoint::KeyedState;
use tollgate_core::record::StreamClock;
use tollgate_core::stage::Stage;

use super::signals::{Traffic, rules};
use super::{BATCH, Kind, Made, SIGNALS_EACH, processor_time};

/// As many rules are there from the beginning, and as many of the same kind are new.
const RULES: usize = 10;

/// Has rules warm up for so many subjects, of which the others know all.
pub(super) fn measure(subjects: usize) {
    let known = rules(RULES);
    let new = known.iter().cloned().map(|rule| Rule { id: format!("new-{}", rule.id), ..rule });
    let all = known.iter().cloned().chain(new).collect();
    let [known, all] = [known, all].map(|rules| Arc::new(AbuseRules { rules, lateness_ms: 300_000, subjects_max: 2 * subjects }));
    let mut traffic = Traffic::new(subjects, 0);
    let mut next = 0;
    let mut made = || {
        next += 1;
        (next, Made::new(traffic.next(BATCH), traffic.offset(), Kind::Decode))
    };
    let mut before = Abuse::new(known, AbuseState::default());
    let (offset, first) = made();
    first.fold(&mut before, offset, Kind::Decode);
    let mut stage = Abuse::new(Arc::clone(&all), written(&mut before));
    let mut warm_up = stage.warm_up().expect("there are new rules");
    for _ in 0..SIGNALS_EACH * subjects / BATCH {
        let (offset, made) = made();
        made.with_record(offset, |record| warm_up.fold(record));
        made.fold(&mut stage, offset, Kind::Decode);
    }
    stage.offer(warm_up);
    let (offset, last) = made();
    let taken_in = timed(|| last.fold(&mut stage, offset, Kind::Decode));
    assert!(stage.warm_up().is_none(), "it is taken in");
    let state = written(&mut stage);
    let restored = timed(|| drop(Abuse::new(all, state)));
    let (taken_in, restored) = (taken_in.as_secs_f64(), restored.as_secs_f64());
    println!(
        "a warm-up of {} subjects is taken in within {taken_in:.2} s, {:.2} of the {restored:.2} s that making a stage of them takes",
        stage.subjects(),
        taken_in / restored
    );
}

/// Returns the state of a stage as a checkpoint has it.
fn written(stage: &mut Abuse) -> AbuseState {
    let mut entries = Vec::new();
    stage.state_mut().take_changes(|key, entry| {
        let mut value = Vec::new();
        AbuseState::encode(entry.expect("nobody is gone"), &mut value);
        entries.push((key.into(), AbuseState::decode(&value).expect("as it was written")));
    });
    AbuseState::restored((), StreamClock::default(), entries)
}

fn timed(work: impl FnOnce()) -> Duration {
    let started = processor_time();
    work();
    processor_time() - started
}
