//! Measures the costliest legal events of the largest size against ordinary ones of that size, and prints the ratio.
//!
//! Every event has as many bytes as `limits.event_bytes_max` allows by default. An ordinary one is a file: as the text that a tool has
//! returned, or as the text that a tool is to write. The reference is the cheaper of the two. An extreme one is of a shape that makes
//! reading, hashing, detecting or examining dear. Each round times the reference and the extreme event in turn, so that a machine that gets
//! slower gets slower for both. What refuses an event, if anything does, stands in the last column.

mod list;
mod shapes;

use std::time::Instant;

use serde_json::json;
use tollgate_core::decide::deciding::{Deciding, Outcome, VerdictBuffer};
use tollgate_core::engine::processor::{Applied, PartitionProcessor};
use tollgate_core::engine::stage::Progress;
use tollgate_core::event::record::{Offset, Partition};
use tollgate_fixtures::gate::record;
use tollgate_fixtures::measure::{Table, in_turns, median, median_ratio, rounded};

use list::{EXTREMES, ORDINARY};
use shapes::{BYTES, Extreme};

const ROUNDS: usize = 7;
/// How many times an ordinary event's cost an extreme one may cost.
const RATIO_MAX: f64 = 100.0;

pub fn measure(mut table: Table, word: Option<&str>) {
    let reference = ORDINARY.iter().map(|make| make()).min_by(|left, right| time(left).0.total_cmp(&time(right).0)).unwrap();
    let mut worst = 0.0_f64;
    for make in ORDINARY.iter().chain(EXTREMES) {
        let extreme = make();
        if word.is_some_and(|word| !extreme.name.contains(word)) {
            continue;
        }
        assert!(extreme.event.len() <= BYTES && extreme.event.len() > BYTES * 9 / 10, "{}: {}", extreme.name, extreme.event.len());
        let [references, costs] = in_turns(ROUNDS, [&|| time(&reference).0, &|| time(&extreme).0]);
        let ratio = median_ratio(&costs, &references);
        worst = worst.max(ratio);
        table.row([
            ("name", json!(extreme.name)),
            ("ms", json!(rounded(median(costs) / 1e6, 1))),
            ("over_ordinary", json!(rounded(ratio, 1))),
            ("outcome", json!(time(&extreme).1)),
        ]);
    }
    table.end_with_target(&format!("{RATIO_MAX} times the ordinary event `{}`", reference.name), worst <= RATIO_MAX);
}

/// Returns the nanoseconds of one event on a processor that has seen none, and what became of it.
fn time(extreme: &Extreme) -> (f64, String) {
    let stage = Deciding::new((extreme.policy)());
    let mut processor = PartitionProcessor::new(Partition(0), stage);
    let mut out = VerdictBuffer::default();
    let record = record(Partition(0), Offset(0), extreme.event.as_bytes());
    let started = Instant::now();
    let applied = processor.apply(&record, &mut out);
    let ns = started.elapsed().as_nanos() as f64;
    let said = match applied {
        Ok(Applied::Taken(Progress::Done(Outcome::Verdict { decided, .. }))) => decided.code.into_owned(),
        Ok(Applied::Taken(Progress::Done(Outcome::DeadLetter(rejection)))) => format!("refused: {}", rejection.code.as_str()),
        Ok(Applied::Taken(Progress::Asks(_))) => "asks".to_owned(),
        other => panic!("{}: {other:?}", extreme.name),
    };
    (ns, said)
}
