//! Which fields each signal has, and which values those can have.

use tollgate_core::decide::safety::Category;
use tollgate_core::decide::signal::{Dimension, PointKind};
use tollgate_core::settings::nearest;

/// The fields that every point has, as far as its event names them.
const SUBJECTS: [Dimension; 4] = [Dimension::User, Dimension::Tenant, Dimension::Agent, Dimension::Thread];

/// What a safety stop was about. All detectors that there are look at what the model wrote.
const STAGES: [&str; 1] = ["output"];

/// Returns the fields that a kind of point has, as far as its event names them.
#[must_use]
pub fn fields_of(kind: PointKind) -> Vec<Dimension> {
    let own: &[Dimension] = match kind {
        PointKind::SafetyStop => &[Dimension::Category, Dimension::Stage, Dimension::Provider, Dimension::Detector],
        PointKind::Denial | PointKind::SuppressedCall | PointKind::SuspendedCall => {
            &[Dimension::Tool, Dimension::Code, Dimension::ArgsHash]
        }
        PointKind::LoopStop => &[Dimension::Tool, Dimension::Code],
        PointKind::ToolFailure => &[Dimension::Tool],
        PointKind::ThreadStart => &[],
    };
    SUBJECTS.iter().chain(own).copied().collect()
}

/// Returns the only values that a field can have; `None` for a field that can have others.
pub(super) fn values_of(dimension: Dimension) -> Option<Vec<&'static str>> {
    match dimension {
        Dimension::Category => Some(Category::ALL.iter().map(|category| category.as_str()).collect()),
        Dimension::Stage => Some(STAGES.to_vec()),
        _ => None,
    }
}

/// Returns names as a list for people.
pub(super) fn listed<'n>(names: impl IntoIterator<Item = &'n str>) -> String {
    let names: Vec<_> = names.into_iter().map(|name| format!("`{name}`")).collect();
    names.join(", ")
}

/// Returns what to write in place of a name that is unknown: the nearest known one, or one of all.
pub(super) fn instead(name: &str, known: &[&str]) -> String {
    match nearest(name, known.iter().copied()) {
        Some(nearest) => format!("write `{nearest}`"),
        None => format!("write one of {}", listed(known.iter().copied())),
    }
}
