//! The repetition controller: it finds exact failures, failures of one tool, and read-only calls that bring nothing new.
//!
//! Its decisions are those of the Hermes controller (`ToolCallGuardrailController`), including the order of checks and the counts. The two
//! switches and the nested form of the thresholds come from later versions of Hermes, the flat form from its first one.

use std::collections::BTreeSet;
use std::num::NonZeroU32;

use serde::{Serialize, Serializer};

use crate::decide::ruling::LoopCode;
use crate::decide::tools::{ToolPatterns, read_tools};
use crate::engine::wire::layout;
use crate::lists::push_tightly;
use crate::settings::Section;
use tollgate_json::digest::Fingerprint;

use super::{CallContext, ControllerMemory, LoopController, LoopDecision, Observation, Signature};

/// The controller's settings: thresholds and tool lists. Their serialised form is part of the policy's digest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RepetitionSettings {
    /// The number of failures of the same call, with the same arguments, from which on the agent is warned.
    pub exact_failure_warn_after: u32,
    /// The number of failures of the same call from which on it is blocked.
    pub exact_failure_block_after: u32,
    /// The number of failures of one tool from which on the agent is warned.
    pub same_tool_failure_warn_after: u32,
    /// The number of failures of one tool from which on the turn is halted.
    pub same_tool_failure_halt_after: u32,
    /// The number of equal results of a read-only call from which on the agent is warned.
    pub no_progress_warn_after: u32,
    /// The number of equal results of a read-only call from which on it is blocked.
    pub no_progress_block_after: u32,
    /// Tools that only read. Equal results are counted for these alone.
    pub idempotent_tools: BTreeSet<String>,
    /// Tools that change something. A tool in both lists counts as one of these.
    pub mutating_tools: BTreeSet<String>,
    /// Whether warnings are given.
    pub warnings_enabled: bool,
    /// Whether calls are blocked and turns halted.
    pub hard_stop_enabled: bool,
}

/// A controller that compares calls and results with those before them in the same turn.
#[derive(Debug)]
pub struct Repetition {
    settings: RepetitionSettings,
    idempotent: ToolPatterns,
    mutating: ToolPatterns,
}

impl LoopController for Repetition {
    const NAME: &'static str = "repetition";
    const SLOT_VERSION: u32 = 1;

    type Settings = RepetitionSettings;
    type Memory = RepetitionMemory;

    fn read(section: &Section<'_>) -> Option<RepetitionSettings> {
        // A preset without the controller has none of its thresholds.
        section.has_default("exact_failure_block_after").then(|| read_settings(section))
    }

    fn new(settings: RepetitionSettings) -> Self {
        let patterns = |tools: &BTreeSet<String>| ToolPatterns::new(tools.iter().cloned());
        let (idempotent, mutating) = (patterns(&settings.idempotent_tools), patterns(&settings.mutating_tools));
        Self { settings, idempotent, mutating }
    }

    fn before_call(&self, memory: &mut RepetitionMemory, call: &Signature<'_>, context: &CallContext<'_>) -> LoopDecision {
        if !self.settings.hard_stop_enabled || context.only_warns {
            return LoopDecision::allow(0);
        }
        let entry = memory.signature(call);
        let failures = entry.map_or(0, |entry| entry.failures);
        if failures >= self.settings.exact_failure_block_after {
            return LoopDecision::found(LoopCode::RepeatedExactFailureBlock, failures);
        }
        match entry.and_then(|entry| entry.progress) {
            Some((_, repeats)) if repeats.get() >= self.settings.no_progress_block_after && self.is_idempotent(call.tool_name) => {
                LoopDecision::found(LoopCode::IdempotentNoProgressBlock, repeats.get())
            }
            _ => LoopDecision::allow(0),
        }
    }

    fn after_call(
        &self,
        memory: &mut RepetitionMemory,
        call: &Signature<'_>,
        context: &CallContext<'_>,
        result: &Observation<'_>,
    ) -> LoopDecision {
        if result.has_failed() { self.after_failure(memory, call, context) } else { self.after_success(memory, call, result) }
    }
}

impl Repetition {
    fn is_idempotent(&self, tool_name: &str) -> bool {
        !self.mutating.matches(tool_name) && self.idempotent.matches(tool_name)
    }

    fn after_failure(&self, memory: &mut RepetitionMemory, call: &Signature<'_>, context: &CallContext<'_>) -> LoopDecision {
        let (settings, may_stop) = (&self.settings, self.settings.hard_stop_enabled && !context.only_warns);
        let (exact, stop_is_due) = memory.update_signature(call, |entry| {
            entry.failures = entry.failures.saturating_add(1);
            entry.progress = None;
            entry.is_stopped = may_stop && entry.failures >= settings.exact_failure_block_after;
            (entry.failures, entry.is_stopped)
        });
        let same_tool = memory.add_tool_failure(call);
        self.judge_failures(exact, same_tool, may_stop).with_stop_due(stop_is_due)
    }

    fn judge_failures(&self, exact: u32, same_tool: u32, may_stop: bool) -> LoopDecision {
        let settings = &self.settings;
        if may_stop && same_tool >= settings.same_tool_failure_halt_after {
            return LoopDecision::found(LoopCode::SameToolFailureHalt, same_tool);
        }
        if settings.warnings_enabled && exact >= settings.exact_failure_warn_after {
            return LoopDecision::found(LoopCode::RepeatedExactFailureWarning, exact);
        }
        if settings.warnings_enabled && same_tool >= settings.same_tool_failure_warn_after {
            return LoopDecision::found(LoopCode::SameToolFailureWarning, same_tool);
        }
        LoopDecision::allow(exact)
    }

    fn after_success(&self, memory: &mut RepetitionMemory, call: &Signature<'_>, result: &Observation<'_>) -> LoopDecision {
        memory.clear_tool_failures(call);
        if !self.is_idempotent(call.tool_name) {
            memory.update_signature(call, |entry| (entry.failures, entry.progress, entry.is_stopped) = (0, None, false));
            return LoopDecision::allow(0);
        }
        let digest = result.digest().fingerprint();
        let (repeats, stop_is_due) = memory.update_signature(call, |entry| {
            entry.failures = 0;
            let repeats = match entry.progress {
                Some((last, repeats)) if last == digest => repeats.saturating_add(1),
                _ => NonZeroU32::MIN,
            };
            entry.progress = Some((digest, repeats));
            entry.is_stopped = self.settings.hard_stop_enabled && repeats.get() >= self.settings.no_progress_block_after;
            (repeats.get(), entry.is_stopped)
        });
        let is_warned = self.settings.warnings_enabled && repeats >= self.settings.no_progress_warn_after;
        let code = is_warned.then_some(LoopCode::IdempotentNoProgressWarning);
        LoopDecision { finding: code, count: repeats, stop_is_due }
    }
}

/// The failures of one tool in this turn, whatever its arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ToolCount {
    /// The tool.
    pub tool: Fingerprint,
    /// How often it has failed since its last success.
    pub failures: u32,
}

/// The counts of one signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SignatureCount {
    /// The tool.
    pub tool: Fingerprint,
    /// The first half of the digest of its arguments.
    pub args: Fingerprint,
    /// How often exactly this call has failed since its last success.
    pub failures: u32,
    /// The last result of a read-only call, and how often it came.
    pub progress: Option<(Fingerprint, NonZeroU32)>,
    /// Whether the next such call is to be stopped. Such entries are dropped last when there are too many.
    pub is_stopped: bool,
}

/// The controller's memory of a turn: digests and counters. Entries are few, small and in order of first use, so plain vectors suffice.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct RepetitionMemory {
    /// Failures by tool.
    pub tools: Vec<ToolCount>,
    /// Counts by signature.
    pub signatures: Vec<SignatureCount>,
}

layout! {
    RepetitionMemory { tools, signatures }
    ToolCount { tool, failures }
    SignatureCount { tool, args, failures, progress, is_stopped }
}

impl RepetitionMemory {
    /// Returns the entry of a signature, if there is one.
    fn signature(&self, call: &Signature<'_>) -> Option<&SignatureCount> {
        let args = call.args.fingerprint();
        self.signatures.iter().find(|entry| entry.args == args && entry.tool == call.tool)
    }

    /// Counts one more failure of a tool and returns the new count.
    fn add_tool_failure(&mut self, call: &Signature<'_>) -> u32 {
        let at = self.tools.iter().position(|entry| entry.tool == call.tool).unwrap_or_else(|| {
            push_tightly(&mut self.tools, ToolCount { tool: call.tool, failures: 0 });
            self.tools.len() - 1
        });
        self.tools.get_mut(at).map_or(0, |entry| {
            entry.failures = entry.failures.saturating_add(1);
            entry.failures
        })
    }

    /// Forgets the failures of a tool.
    fn clear_tool_failures(&mut self, call: &Signature<'_>) {
        self.tools.retain(|entry| entry.tool != call.tool);
    }

    /// Changes the entry of a signature and makes it the latest. The entry is created if there is none, and dropped if nothing is left in
    /// it.
    fn update_signature<T>(&mut self, call: &Signature<'_>, change: impl FnOnce(&mut SignatureCount) -> T) -> T {
        let args = call.args.fingerprint();
        let at = self.signatures.iter().rposition(|entry| entry.args == args && entry.tool == call.tool);
        let blank = SignatureCount { tool: call.tool, args, failures: 0, progress: None, is_stopped: false };
        let mut entry = at.map_or(blank, |at| self.signatures.remove(at));
        let changed = change(&mut entry);
        if entry.failures > 0 || entry.progress.is_some() {
            push_tightly(&mut self.signatures, entry);
        }
        changed
    }
}

impl ControllerMemory for RepetitionMemory {
    const BLANK: Self = Self { tools: Vec::new(), signatures: Vec::new() };

    /// Drops entries a quarter at a time, those that were touched longest ago first. Entries that a stop depends on are dropped only when
    /// no others are left.
    fn trim(&mut self, bytes_max: usize) {
        let (signatures_max, tools_max) = (bytes_max / 4 * 3 / size_of::<SignatureCount>(), bytes_max / 4 / size_of::<ToolCount>());
        if self.signatures.capacity() > signatures_max {
            if self.signatures.len() > signatures_max {
                let (mut excess, stopped) =
                    (self.signatures.len().div_ceil(4), self.signatures.iter().filter(|entry| entry.is_stopped).count());
                let may_drop_stopped = stopped + excess > self.signatures.len();
                self.signatures.retain(|entry| {
                    let is_dropped = excess > 0 && (may_drop_stopped || !entry.is_stopped);
                    excess -= usize::from(is_dropped);
                    !is_dropped
                });
            }
            self.signatures.shrink_to(signatures_max);
        }
        if self.tools.capacity() > tools_max {
            if self.tools.len() > tools_max {
                self.tools.drain(..self.tools.len().div_ceil(4));
            }
            self.tools.shrink_to(tools_max);
        }
    }

    fn heap_bytes(&self) -> usize {
        self.tools.capacity() * size_of::<ToolCount>() + self.signatures.capacity() * size_of::<SignatureCount>()
    }
}

impl Serialize for SignatureCount {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Shown {
            tool: Fingerprint,
            args_hash: Fingerprint,
            failures: u32,
            last_result: Option<Fingerprint>,
            repeats: u32,
            is_stopped: bool,
        }
        let Self { tool, args, failures, progress, is_stopped } = *self;
        let (last_result, repeats) = progress.unzip();
        Shown { tool, args_hash: args, failures, last_result, repeats: repeats.map_or(0, NonZeroU32::get), is_stopped }
            .serialize(serializer)
    }
}

const NESTED_THRESHOLDS: [&str; 2] = ["warn_after", "hard_stop_after"];
const SWITCHES: [&str; 2] = ["warnings_enabled", "hard_stop_enabled"];
/// The flat thresholds in pairs: of a warning, and of the stop that follows it.
const FLAT_KEYS: [[&str; 2]; 3] = [
    ["exact_failure_warn_after", "exact_failure_block_after"],
    ["same_tool_failure_warn_after", "same_tool_failure_halt_after"],
    ["no_progress_warn_after", "no_progress_block_after"],
];

/// The keys of each section of the nested form, in the same order.
const NESTED_KEYS: [&str; 3] = ["exact_failure", "same_tool_failure", "idempotent_no_progress"];

fn read_settings(section: &Section<'_>) -> RepetitionSettings {
    let first_written =
        |keys: &[&'static str]| keys.iter().copied().filter(|key| section.is_written(key)).collect::<Vec<_>>().first().copied();
    let (nested, flat, switch) = (first_written(&NESTED_THRESHOLDS), first_written(FLAT_KEYS.as_flattened()), first_written(&SWITCHES));
    if let (Some(nested), Some(flat)) = (nested, flat) {
        section.fault(flat, format!("both this and `{nested}`"), "write the flat thresholds or the nested form, not both");
    }
    let lists = |key: &'static str| read_tools(section, key).unwrap_or_default().into_iter().collect::<BTreeSet<_>>();
    let settings = RepetitionSettings {
        exact_failure_warn_after: section.u32("exact_failure_warn_after"),
        exact_failure_block_after: section.u32("exact_failure_block_after"),
        same_tool_failure_warn_after: section.u32("same_tool_failure_warn_after"),
        same_tool_failure_halt_after: section.u32("same_tool_failure_halt_after"),
        no_progress_warn_after: section.u32("no_progress_warn_after"),
        no_progress_block_after: section.u32("no_progress_block_after"),
        idempotent_tools: lists("idempotent_tools"),
        mutating_tools: lists("mutating_tools"),
        warnings_enabled: section.bool_or("warnings_enabled", true),
        hard_stop_enabled: section.bool_or("hard_stop_enabled", true),
    };
    // A switch without flat thresholds beside it is Hermes' form, so Hermes' defaults apply.
    if nested.is_some() || (switch.is_some() && flat.is_none()) {
        return read_nested(section, settings);
    }
    check_order(&settings, &FLAT_KEYS.map(|[warn, stop]| Pair { warn: (section, warn), stop: (section, stop) }));
    settings
}

/// Reads the nested form, with the defaults that it has in Hermes: warnings only, unless hard stops are switched on.
fn read_nested(section: &Section<'_>, flat: RepetitionSettings) -> RepetitionSettings {
    let (warn, stop) = (section.section("warn_after"), section.section("hard_stop_after"));
    if section.is_written("hard_stop_after") && !section.is_written("hard_stop_enabled") {
        let found = "numbers of stops that never come, because `hard_stop_enabled` is false where it is left out";
        section.fault("hard_stop_after", found, "write `hard_stop_enabled: true` beside it, or false if only warnings are meant");
    }
    let settings = RepetitionSettings {
        exact_failure_warn_after: warn.u32_or("exact_failure", 2),
        exact_failure_block_after: stop.u32_or("exact_failure", 5),
        same_tool_failure_warn_after: warn.u32_or("same_tool_failure", 3),
        same_tool_failure_halt_after: stop.u32_or("same_tool_failure", 8),
        no_progress_warn_after: warn.u32_or("idempotent_no_progress", 2),
        no_progress_block_after: stop.u32_or("idempotent_no_progress", 5),
        warnings_enabled: section.bool_or("warnings_enabled", true),
        hard_stop_enabled: section.bool_or("hard_stop_enabled", false),
        ..flat
    };
    check_order(&settings, &NESTED_KEYS.map(|key| Pair { warn: (&warn, key), stop: (&stop, key) }));
    settings
}

/// The keys of a warning's threshold and of its stop's, each with its section.
struct Pair<'s, 'v> {
    warn: (&'s Section<'v>, &'static str),
    stop: (&'s Section<'v>, &'static str),
}

/// Refuses a warning that was asked for and can never be given, because the stop comes before it. A block comes with the next call, so that
/// both may have the same number; a halt comes in place of the warning.
fn check_order(settings: &RepetitionSettings, pairs: &[Pair<'_, '_>; 3]) {
    if !settings.warnings_enabled || !settings.hard_stop_enabled {
        return;
    }
    let is_late = [
        settings.exact_failure_warn_after > settings.exact_failure_block_after,
        settings.same_tool_failure_warn_after >= settings.same_tool_failure_halt_after,
        settings.no_progress_warn_after > settings.no_progress_block_after,
    ];
    for (index, (pair, is_late)) in pairs.iter().zip(is_late).enumerate() {
        let ((warn, warn_key), (stop, stop_key)) = (pair.warn, pair.stop);
        // A default that cannot be reached takes nothing from anybody.
        if is_late && warn.is_written(warn_key) {
            let (stop, is_halt) = (stop.path_of(stop_key), index == 1);
            let found = format!("a number that is never reached, because `{stop}` comes first");
            let fix = format!("write {} than that, or leave it out", if is_halt { "a smaller number" } else { "no larger number" });
            warn.fault(warn_key, found, fix);
        }
    }
}
