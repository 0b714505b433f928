//! Signals that come late, from a partition of the events topic that is behind: steps and suspensions are those of the order of time.

use tollgate_abuse::{Ladder, Rule, Step};
use tollgate_core::decide::signal::PointKind;
use tollgate_json::time::rfc_3339;

use super::fixture::*;

fn ladder(steps: &[Step], decay_ms: i64) -> Ladder {
    Ladder { steps: steps.to_vec(), decay_ms }
}

/// Returns a bench whose partition waits for source 1.
fn bench(list: Vec<Rule>) -> Bench {
    let mut bench = Bench::new(rules(list));
    bench.fold(&[clock(0, 0, START), clock(1, 0, START)]);
    bench
}

fn stop_of(source: i32, offset: i64, time_ms: i64) -> Part {
    part(point(PointKind::SafetyStop, user("a"), source, offset, time_ms))
}

/// The control follows, and alerts are not repeated.
#[test]
fn a_signal_before_a_firing_moves_the_end_of_the_suspension() {
    let steps = [Step::Suspend(15 * MINUTE), Step::Suspend(2 * HOUR)];
    let mut bench = bench(vec![Rule { ladder: ladder(&steps, DAY), ..rule("three") }]);
    let alerts: Vec<_> = [10, 20, 40].into_iter().flat_map(|minute| bench.fold(&[stop_of(0, minute, START + minute * MINUTE)])).collect();
    assert_eq!(shown(&alerts, &["step", "until"]), [format!("1 {}", rfc_3339(START + 55 * MINUTE).unwrap())]);
    assert!(bench.fold(&[stop_of(1, 1, START + 30 * MINUTE)]).is_empty());
    assert_eq!(bench.suspended_until("a"), rfc_3339(START + 45 * MINUTE).as_deref());
    // With two more there is a second firing, which is on the signal of minute 40.
    bench.fold(&[stop_of(1, 2, START + 31 * MINUTE)]);
    let alerts = bench.fold(&[stop_of(1, 3, START + 32 * MINUTE)]);
    assert_eq!(shown(&alerts, &["status", "step", "until"]), [format!("escalated 2 {}", rfc_3339(START + 160 * MINUTE).unwrap())]);
    assert_eq!(bench.suspended_until("a"), rfc_3339(START + 160 * MINUTE).as_deref());
}

/// Who is suspended by a signal that comes late counts against the rule like anybody else.
#[test]
fn suspensions_by_late_signals_are_within_the_blast_radius() {
    let mut bench = bench(vec![Rule { ladder: ladder(&[Step::Warn, Step::Suspend(DAY)], HOUR), ..rule("three") }]);
    let of = |id: i64, source: i32, n: i64, minute: i64| {
        part(point(PointKind::SafetyStop, user(&id.to_string()), source, id * 10 + n, START + minute * MINUTE))
    };
    // The second firing is a minute behind the step down, and another stop takes it before that.
    let warned = |id| [0, 0, 0, 50, 55, 61].into_iter().zip(0..).map(move |(minute, n)| of(id, 0, n, minute)).collect::<Vec<_>>();
    (0..30).for_each(|id| drop(bench.fold(&warned(id))));
    assert!(bench.controls.is_empty());
    (0..30).for_each(|id| drop(bench.fold(&[of(id, 1, 0, 59)])));
    assert_eq!((bench.controls.len(), bench.stage.paused().collect::<Vec<_>>()), (20, vec!["three"]));
    assert_eq!(bench.alerts.iter().filter(|alert| alert["action"] == "enforcement_paused").count(), 1);
}
