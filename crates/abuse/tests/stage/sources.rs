//! Sources: how far each is, what was applied of it, and what becomes of one that is silent or begins again.

use tollgate_core::decide::signal::{Batch, Clock, Point, PointKind, SignalRejection};
use tollgate_core::event::record::{Offset, Partition};

use super::fixture::*;

/// A source that lags loses nothing: the others wait for it.
#[test]
fn nothing_of_a_source_that_lags_is_late() {
    let mut bench = Bench::new(rules(vec![rule("three")]));
    bench.fold(&[clock(0, 1, START), clock(1, 1, START)]);
    bench.fold(&[clock(0, 100, START + 10 * HOUR)]);
    assert_eq!(bench.stage.clock_ms(), Some(START));
    let alerts: Vec<_> = (0..3).flat_map(|n| bench.fold(&[part(point(PointKind::SafetyStop, user("a"), 1, n, START + MINUTE))])).collect();
    assert_eq!((alerts.len(), bench.last.counts.late), (1, 0));
}

/// Nor does one that nothing was heard of yet: whatever the others bring, its signals still count together.
#[test]
fn nothing_of_a_source_that_is_not_heard_of_yet_is_late() {
    let mut bench = Bench::new(rules(vec![rule("three")]));
    let (mut batch, mut value) = (Batch::default(), Vec::new());
    for source in [0, 1] {
        batch.clock(Clock { source: Partition(source), next: Offset(0), time_ms: START + 10 * HOUR, has_begun: false });
    }
    batch.sources(3);
    batch.take(&mut value);
    bench.fold(&[]);
    bench.fold_at(LOG, &value);
    assert_eq!((bench.stage.clock_ms(), bench.stage.reached_ms()), (None, Some(START + 10 * HOUR)));
    let stop = |bench: &mut Bench, source, offset, time_ms| {
        let point = Point { source: Partition(source), ..point(PointKind::SafetyStop, user("eve"), source, offset, time_ms) };
        bench.fold(&[part(point)])
    };
    let mut alerts = Vec::new();
    for n in 0..3 {
        alerts.extend(stop(&mut bench, 2, n, START + MINUTE * n));
        // Hours apart from each other and from those.
        alerts.extend(stop(&mut bench, 0, n, START + 2 * HOUR * (n + 2)));
    }
    assert_eq!((shown(&alerts, &["rule", "count"]), bench.last.counts.late), (vec!["three 3".to_owned()], 0));
    bench.fold(&[clock(2, 9, START)]);
    assert_eq!(bench.stage.clock_ms(), Some(START));
}

#[test]
fn a_silent_source_is_left_out_and_told_of_and_back_when_it_is_heard() {
    let mut bench = Bench::new(rules(vec![rule("three")]));
    bench.fold_at(START, &value_of(&[clock(0, 1, START), clock(1, 1, START)]));
    let later = START + 10 * MINUTE;
    assert!(bench.fold_at(later - 1, &value_of(&[clock(0, 1, later)])).is_empty());
    let alerts = bench.fold_at(later, &value_of(&[clock(0, 1, later)]));
    assert_eq!(shown(&alerts, &["action", "rule"]), ["source_silent null"]);
    assert_eq!((&*bench.last.alerts[0].key, bench.last.counts.sources_silent, bench.stage.clock_ms()), ("source/1", 1, Some(later)));
    bench.fold_at(later, &value_of(&[clock(1, 2, START + MINUTE)]));
    assert_eq!(bench.stage.clock_ms(), Some(START + MINUTE), "it is waited for again");
    assert_eq!(bench.last.counts.clock_lag_ms, Some(9 * MINUTE));
}

/// A topic that was made anew has the offsets of the old one. Without a word they would be taken for repeats.
#[test]
fn a_source_whose_offsets_begin_again_is_told_of_and_counted() {
    let mut bench = Bench::new(rules(vec![rule("three")]));
    bench.offend("a", 100, START);
    let began = Clock { source: Partition(0), next: Offset(0), time_ms: START, has_begun: true };
    let alerts = bench.fold(&[Part::Clock(began), part(stop("b", 0, START)), part(stop("b", 1, START))]);
    assert_eq!((shown(&alerts, &["action"]), bench.last.counts.applied), (vec!["source_reset".to_owned()], 2));
    assert_eq!(bench.stop("b", 2, START).len(), 1);
    let alerts = bench.fold(&[Part::Clock(Clock { next: Offset(50), ..began })]);
    assert!(alerts.is_empty(), "it goes on");
}

#[test]
fn what_cannot_be_read_changes_nothing_and_is_counted() {
    let mut bench = Bench::new(rules(vec![rule("three")]));
    bench.fold_at(START, b"{}");
    assert!(matches!(bench.last.counts.rejected, Some(SignalRejection::Foreign(_))));
    bench.fold_at(START, br#"{"version":2}"#);
    assert_eq!(bench.last.counts.rejected, Some(SignalRejection::Newer { found: 2 }));
    assert_eq!(bench.stage.subjects(), 0);
}
