//! The rule pack, with its rules for subjects that can be suspended set to enforce.

use tollgate_abuse::{Baseline, Correlation, Detection, GroupBy, Ladder, Mode, Ratio, Rule, Step};
use tollgate_core::decide::signal::{Dimension, KeyKind, PointKind, SignalKind, VolumeKind};

use super::fixture::*;

pub fn pack() -> Vec<Rule> {
    let stops = point_kind(PointKind::SafetyStop);
    let denials = point_kind(PointKind::Denial);
    let steps = [15 * MINUTE, 2 * HOUR, DAY, 7 * DAY].map(Step::Suspend);
    let ladder = Ladder { steps: [vec![Step::Warn], steps.to_vec()].concat(), decay_ms: DAY };
    let of = |id: &str, signal, kind, correlation, timespan_ms| Rule {
        detection: Detection { signal, fields: Vec::new() },
        correlation,
        group_by: GroupBy { kind, dimensions: Vec::new() },
        timespan_ms,
        suppress_ms: timespan_ms,
        ladder: ladder.clone(),
        ..rule(id)
    };
    let alerting = |rule: Rule| Rule { mode: Mode::Alert, ladder: Ladder { steps: Vec::new(), decay_ms: DAY }, ..rule };
    let count = |gte| Correlation::EventCount { gte };
    let distinct = |field, gte| Correlation::ValueCount { field, gte };
    let share = Ratio { over: SignalKind::Volume(VolumeKind::Response), gte: 0.05, min: 200, for_ms: 0 };
    let usual = Baseline { factor: 8.0, floor: 2_000, history_ms: 7 * DAY, warmup_ms: DAY, for_ms: 10 * MINUTE };
    let calls = SignalKind::Volume(VolumeKind::Call);
    vec![
        of("safety-stop-user", stops, KeyKind::User, count(5), HOUR),
        of("safety-stop-user-day", stops, KeyKind::User, count(15), DAY),
        alerting(of("safety-stop-rotation", stops, KeyKind::Tenant, distinct(Dimension::User, 20), HOUR)),
        alerting(of("safety-stop-share", stops, KeyKind::Tenant, Correlation::Ratio(share), 6 * HOUR)),
        of("denied-tool-probing", denials, KeyKind::User, distinct(Dimension::Tool, 4), 15 * MINUTE),
        alerting(of("same-denied-call", denials, KeyKind::Call, distinct(Dimension::User, 5), 10 * MINUTE)),
        alerting(of("loop-stop-agent", point_kind(PointKind::LoopStop), KeyKind::Agent, distinct(Dimension::Thread, 10), 30 * MINUTE)),
        alerting(of("runaway-calls-tenant", calls, KeyKind::Tenant, Correlation::Baseline(usual), HOUR)),
    ]
}
