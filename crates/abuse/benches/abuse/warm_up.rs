//! Measures how long a partition stands still when it takes a warm-up in, beside the restore of the same subjects.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use tollgate_abuse::{Abuse, AbuseRules, AbuseState, Rule};
use tollgate_core::engine::checkpoint::KeyedState;
use tollgate_core::engine::stage::Stage;
use tollgate_core::event::record::{Offset, StreamClock};

use super::signals::{Traffic, rules};
use super::{BATCH, Kind, Made, SIGNALS_EACH, processor_time};

/// As many rules are there from the beginning, and as many of the same kind are new.
const RULES: usize = 10;

/// As many subjects a worker takes in with each record.
const PER_RECORD: NonZeroUsize = NonZeroUsize::new(2_000).expect("it is not zero");

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
    stage.offer(warm_up, PER_RECORD);
    let mut taken_in = Vec::new();
    while stage.warming().next().is_some() {
        let (offset, last) = made();
        taken_in.push(timed(|| last.fold(&mut stage, offset, Kind::Decode)));
        stage.checkpoint_written(Offset(offset + 1));
    }
    let (records, longest) = (taken_in.len(), taken_in.iter().max().copied().unwrap_or_default());
    let taken_in: Duration = taken_in.into_iter().sum();
    let state = written(&mut stage);
    let restored = timed(|| drop(Abuse::new(all, state)));
    let (taken_in, restored) = (taken_in.as_secs_f64(), restored.as_secs_f64());
    println!(
        "a warm-up of {} subjects is taken in with {records} records, the longest of which takes {:.1} ms, in {taken_in:.2} s in all, {:.2} of \
         the {restored:.2} s that making a stage of them takes",
        stage.subjects(),
        longest.as_secs_f64() * 1e3,
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
