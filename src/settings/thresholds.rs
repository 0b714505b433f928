//! The order of the loop controller's thresholds: one that another one forestalls never acts, and whoever set it should know.

use tollgate_core::loops::LoopSettings;

/// Returns a sentence for each warning that never comes, because calls are blocked or the turn is halted before it is due.
pub(super) fn unreachable(settings: &LoopSettings) -> Vec<String> {
    let Some(settings) = settings.repetition.as_ref().filter(|settings| settings.warnings_enabled && settings.hard_stop_enabled) else {
        return Vec::new();
    };
    let (halt, halt_after) = ("same_tool_failure_halt_after", settings.same_tool_failure_halt_after);
    let (exact, exact_after) = ("exact_failure_warn_after", settings.exact_failure_warn_after);
    // A call is blocked before it runs, so the warning on the last result that is let through still comes. A halt takes the place of the
    // warning on the same result.
    let pairs = [
        (exact, exact_after, "exact_failure_block_after", settings.exact_failure_block_after),
        (exact, exact_after, halt, halt_after.saturating_sub(1)),
        ("same_tool_failure_warn_after", settings.same_tool_failure_warn_after, halt, halt_after.saturating_sub(1)),
        ("no_progress_warn_after", settings.no_progress_warn_after, "no_progress_block_after", settings.no_progress_block_after),
    ];
    let late = pairs.into_iter().filter(|(_, warn_after, _, warn_after_max)| warn_after > warn_after_max);
    let sentence = |(warning, warn_after, stop, max)| {
        format!(
            "tool_loop_guardrails.{warning}: found {warn_after}, and {stop} acts before that; write {max} or less, raise {stop}, or set \
             warnings_enabled: false"
        )
    };
    late.map(sentence).collect()
}
