//! Reading `escalation`: the steps that a subject goes up, and how it comes down.

use tollgate_core::decide::signal::{KeyKind, PointKind, SignalKind};
use tollgate_core::settings::{Section, duration_text, parse_duration};

use super::{Detection, GroupBy, Ladder, Mode, Step};

const KEY: &str = "escalation";
/// The word of a step that is an alert.
pub(super) const WARN: &str = "warn";

/// The most steps.
pub(super) const STEPS_MAX: usize = 16;
/// The shortest suspension, and the shortest time without offence.
const LEAST_MS: i64 = 1_000;
/// The longest suspension, and the longest time without offence: beyond it somebody should decide.
const MOST_MS: i64 = 366 * 86_400_000;
/// How long a subject has to be without offence for each step down, where nothing is written.
const DECAY_MS: i64 = 86_400_000;

/// Reads the ladder of a rule.
pub(super) fn read_ladder(rule: &Section<'_>, mode: Mode, detection: &Detection, group_by: &GroupBy) -> Ladder {
    let section = rule.section(KEY);
    let steps = read_steps(&section);
    let decay_ms = section.duration("decay", LEAST_MS, MOST_MS).unwrap_or(DECAY_MS);
    let suspends = steps.iter().any(|step| matches!(step, Step::Suspend(_)));
    if suspends && group_by.kind == KeyKind::Call {
        section.fault(
            "steps",
            "a suspension of a `call`, which cannot be suspended",
            "write [warn], or another kind of subject in `group-by`",
        );
    }
    if suspends && detection.signal == SignalKind::Point(PointKind::SuspendedCall) {
        section.fault(
            "steps",
            "a suspension for calls that a suspension has blocked, which would prolong itself",
            "write [warn], or another `signal`",
        );
    }
    if !suspends && mode == Mode::Enforce {
        let fix = "write `escalation: {steps: [warn, 15m]}`, or `mode: alert`";
        rule.fault("mode", "`enforce` without a step that suspends", fix);
    }
    Ladder { steps, decay_ms }
}

fn read_steps(section: &Section<'_>) -> Vec<Step> {
    const KEY: &str = "steps";
    let written = section.strings(KEY).unwrap_or_default();
    if written.len() > STEPS_MAX {
        section.fault(KEY, "too many steps", format!("write {STEPS_MAX} at most"));
    }
    let mut steps = Vec::new();
    let mut last_ms = 0;
    for text in &written {
        if text == WARN {
            if last_ms > 0 {
                section.fault(KEY, "`warn` behind a suspension", "write steps that go up: [warn, 15m, 2h]");
            }
            steps.push(Step::Warn);
            continue;
        }
        let Some(suspension_ms) = parse_duration(text) else {
            section.fault(KEY, "a step that is neither `warn` nor a duration", "write steps such as [warn, 15m, 2h, 1d, 7d]");
            continue;
        };
        if !(LEAST_MS..=MOST_MS).contains(&suspension_ms) {
            let fix = format!("write durations from {} to {}", duration_text(LEAST_MS), duration_text(MOST_MS));
            section.fault(KEY, "a step that is too short or too long", fix);
        }
        if suspension_ms < last_ms {
            section.fault(KEY, "a suspension that is shorter than the one before it", "write steps that go up: [warn, 15m, 2h]");
        }
        last_ms = suspension_ms;
        steps.push(Step::Suspend(suspension_ms));
    }
    steps
}
