//! What the verdicts of a question come to, before a host's own words.

use std::fmt::Display;

use serde_json::Value;

use crate::{Answer, Outcome, Verdict};

/// What an answer has to say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Ruling {
    /// Why the call may not run, or the result not count; without it nothing is refused.
    pub denial: Option<String>,
    /// Whether the agent should stop.
    pub halts: bool,
    /// A statement for the model.
    pub note: Option<String>,
}

impl Ruling {
    /// Returns the ruling of a denial.
    pub(crate) fn denied(reason: impl Display) -> Self {
        Self { denial: Some(reason.to_string()), ..Self::default() }
    }

    /// Returns what an outcome comes to, of which so many verdicts are expected. A verdict too few is a denial.
    pub(crate) fn of(outcome: Outcome<'_>, expected: usize) -> Self {
        let verdicts = match outcome {
            Ok(verdicts) if verdicts.len() == expected => verdicts,
            Ok(verdicts) => {
                return Self::denied(format_args!("Tollgate has {} verdicts where {expected} belong (verdict_missing)", verdicts.len()));
            }
            Err(unanswered) => {
                return Self::denied(format_args!("Tollgate gave no verdict: {} ({})", unanswered.message, unanswered.code));
            }
        };
        let denied = verdicts.iter().find(|verdict| !passes(verdict));
        let warning = || verdicts.iter().find(|verdict| verdict.action == "warn").map(said);
        let guidance = verdicts.iter().find_map(|verdict| verdict.guidance.as_deref());
        Self {
            denial: denied.map(said),
            halts: verdicts.iter().any(|verdict| verdict.should_halt),
            note: guidance.map(|text| text.trim().to_owned()).or_else(warning),
        }
    }

    /// Returns the reason to stop, where the agent should stop.
    pub(crate) fn stop_reason(&self) -> Option<&str> {
        self.halts.then(|| self.denial.as_deref().or(self.note.as_deref()).unwrap_or("Tollgate stopped this turn"))
    }
}

/// Returns whether a verdict lets the call run: by its action and by its flag, so that no verdict is read two ways.
fn passes(verdict: &Verdict) -> bool {
    verdict.allows_execution && matches!(verdict.action.as_str(), "allow" | "warn")
}

/// Returns the sentence of a verdict with its code.
fn said(verdict: &Verdict) -> String {
    if verdict.message.is_empty() { verdict.code.clone() } else { format!("{} ({})", verdict.message, verdict.code) }
}

/// Returns the text, or what fits of it in so many bytes, cut between characters.
pub(crate) fn cut(text: &str, bytes_max: usize) -> String {
    const MARK: &str = "…";
    if text.len() <= bytes_max {
        return text.to_owned();
    }
    let kept = bytes_max.saturating_sub(MARK.len());
    let ends = text.char_indices().map(|(at, _)| at).take_while(|at| *at <= kept);
    format!("{}{MARK}", text.get(..ends.last().unwrap_or(0)).unwrap_or_default())
}

/// Returns the answer with this body. Its status is always 200: most hosts read any other as leave to go on.
pub(crate) fn ok(body: Value) -> Answer {
    Answer { status: 200, body: Some(body) }
}
