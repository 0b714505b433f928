//! `tool_loop_guardrails`: flat, as the seed writes it, or nested, as later versions of Hermes do.

use std::collections::BTreeSet;

use crate::loops::RepetitionSettings;

use crate::settings::Section;

const NESTED_THRESHOLDS: [&str; 2] = ["warn_after", "hard_stop_after"];
const SWITCHES: [&str; 2] = ["warnings_enabled", "hard_stop_enabled"];
const FLAT_KEYS: [&str; 6] = [
    "exact_failure_warn_after",
    "exact_failure_block_after",
    "same_tool_failure_warn_after",
    "same_tool_failure_halt_after",
    "no_progress_warn_after",
    "no_progress_block_after",
];

pub(super) fn read(section: &Section<'_>) -> RepetitionSettings {
    let first_written =
        |keys: &[&'static str]| keys.iter().copied().filter(|key| section.is_written(key)).collect::<Vec<_>>().first().copied();
    let (nested, flat, switch) = (first_written(&NESTED_THRESHOLDS), first_written(&FLAT_KEYS), first_written(&SWITCHES));
    if let (Some(nested), Some(flat)) = (nested, flat) {
        section.fault(flat, format!("both this and `{nested}`"), "write the flat thresholds or the nested form, not both");
    }
    let lists = |key: &'static str| section.strings(key).unwrap_or_default().into_iter().collect::<BTreeSet<_>>();
    let settings = RepetitionSettings {
        exact_failure_warn_after: section.u32("exact_failure_warn_after"),
        exact_failure_block_after: section.u32("exact_failure_block_after"),
        same_tool_failure_warn_after: section.u32("same_tool_failure_warn_after"),
        same_tool_failure_halt_after: section.u32("same_tool_failure_halt_after"),
        no_progress_warn_after: section.u32("no_progress_warn_after"),
        no_progress_block_after: section.u32("no_progress_block_after"),
        idempotent_tools: lists("idempotent_tools"),
        mutating_tools: lists("mutating_tools"),
        warnings_enabled: switch_of(section, "warnings_enabled", true),
        hard_stop_enabled: switch_of(section, "hard_stop_enabled", true),
    };
    // A switch without flat thresholds beside it is Hermes' form, and brings Hermes' defaults.
    if nested.is_some() || (switch.is_some() && flat.is_none()) { read_nested(section, settings) } else { settings }
}

/// The nested form, with the defaults that it has in Hermes: warnings only, unless hard stops are switched on.
fn read_nested(section: &Section<'_>, flat: RepetitionSettings) -> RepetitionSettings {
    let (warn, stop) = (section.section("warn_after"), section.section("hard_stop_after"));
    let count =
        |thresholds: &Section<'_>, key: &'static str, default| if thresholds.is_written(key) { thresholds.u32(key) } else { default };
    RepetitionSettings {
        exact_failure_warn_after: count(&warn, "exact_failure", 2),
        exact_failure_block_after: count(&stop, "exact_failure", 5),
        same_tool_failure_warn_after: count(&warn, "same_tool_failure", 3),
        same_tool_failure_halt_after: count(&stop, "same_tool_failure", 8),
        no_progress_warn_after: count(&warn, "idempotent_no_progress", 2),
        no_progress_block_after: count(&stop, "idempotent_no_progress", 5),
        warnings_enabled: switch_of(section, "warnings_enabled", true),
        hard_stop_enabled: switch_of(section, "hard_stop_enabled", false),
        ..flat
    }
}

fn switch_of(section: &Section<'_>, key: &'static str, default: bool) -> bool {
    if section.is_written(key) { section.bool(key) } else { default }
}
