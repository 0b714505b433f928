//! The pack: the rules that come with the program.

use serde_json::Value;

use tollgate_core::decide::controls::SubjectHasher;
use tollgate_core::settings::{Collector, Faults, Section, parse};

use super::digest::version_of;
use super::read_rule::{ReadRule, Reading};
use super::settings::{Pack, read_rules};
use super::{Mode, Rule, Step};

/// The pack's rules, in the form in which all rules are written.
pub const PACK: &str = include_str!("../../../../config/abuse-pack.yaml");

/// Returns the pack's rules.
///
/// # Errors
/// [`Faults`] if the embedded file is broken, which a test rules out.
fn read() -> Result<Vec<ReadRule>, Faults> {
    let value = parse(PACK).map_err(|error| Faults::of("the pack", &error))?;
    let (none, faults) = (Value::Null, Collector::default());
    // The pack names no ids and has no exceptions.
    let reading = Reading { hasher: &SubjectHasher::new(None), now_ms: i64::MIN };
    let rules = read_rules(&Section::root(&value, &none, &faults), reading);
    faults.into_result(rules)
}

/// Returns the rules of the pack that are in force.
pub(super) fn pack(pack: Pack) -> Vec<Rule> {
    if pack == Pack::Off {
        return Vec::new();
    }
    let in_force = |read: ReadRule| {
        let mut rule = read.rule;
        let suspends = rule.ladder.steps.iter().any(|step| matches!(step, Step::Suspend(_)));
        rule.mode = if pack == Pack::Enforce && suspends { Mode::Enforce } else { Mode::Alert };
        rule.version = version_of(&rule);
        rule
    };
    read().unwrap_or_default().into_iter().map(in_force).collect()
}
