//! Why a verdict is what it is, as the topics tell: the verdict, the events of its turn that led there, and the controls.
//!
//! ```text
//! decisions ─▶ find the verdict ─▶ its thread's events and verdicts ─▶ decided again ─▶ answer
//! controls ──▶ what was in force of its subjects, then and now ─────────────────────────┘
//! ```
//!
//! Arguments, results and ids of users are read and never shown.

mod again;
mod controls;
mod find;
mod near;
mod pages;
mod turn;

use serde::Serialize;
use serde_json::Value;

use tollgate_config::settings::Settings;
use tollgate_core::decide::policy::Policy;
use tollgate_core::event::decode::decode;
use tollgate_json::Parser;

use crate::Topics;
use crate::units::stamp;

use controls::ControlRecords;

pub use again::Again;
pub use controls::ControlThenAndNow;
pub use find::{FoundVerdict, Search, Target};
pub use pages::Explained;
pub use turn::TurnStep;

/// Why a verdict is what it is. It serialises as the JSON that commands print.
#[derive(Debug, Serialize)]
pub struct Answer {
    /// The verdict, as it was published first.
    pub verdict: Value,
    /// When that was, as RFC 3339; `None` if its record has no time.
    pub published: Option<String>,
    /// Every reason, the decisive one first.
    pub reasons: Vec<Explained>,
    /// The events of the thread's turn up to the one that the verdict is on.
    pub turn: Vec<TurnStep>,
    /// Whether `turn` begins where the turn does: with its boundary, behind the end of another turn, or behind a long pause. If not, its
    /// beginning was not found.
    pub is_whole_turn: bool,
    /// Whether the configuration of this command is the policy that the verdict was given under.
    pub is_own_policy: bool,
    /// The controls of its subjects.
    pub controls: Vec<ControlThenAndNow>,
    /// What the same events give under the configuration of this command.
    pub again: Again,
    /// What to do next, as sentences.
    pub next: Vec<String>,
    /// Other verdicts that fit what was asked for, the nearest first.
    pub others: Vec<Other>,
}

/// Another verdict that fits what was asked for.
#[derive(Debug, Serialize)]
pub struct Other {
    /// When it was published.
    pub published: Option<String>,
    /// Its event.
    pub event_id: String,
    /// Its thread.
    pub thread_id: String,
    /// What it says.
    pub code: String,
}

/// Returns why a verdict is what it is, as [`Search::find`] found it with others. Its thread's events are looked for up to `lookback_ms` before it.
///
/// # Errors
/// A topic is not there or cannot be read.
pub fn explain(
    settings: &Settings,
    topics: &Topics<'_>,
    (found, others): (FoundVerdict, Vec<FoundVerdict>),
    lookback_ms: i64,
) -> anyhow::Result<Answer> {
    let pause_ms = i64::from(settings.policy.limits.turn_idle_seconds_max) * 1_000;
    let history = turn::History::read(topics, &found, lookback_ms, pause_ms)?;
    let is_own_policy = found.text("policy_version") == Policy::new(&settings.policy).version();
    let records = ControlRecords::read(topics)?;
    let mut parser = Parser::new();
    let controls = history.record(found.text("event_id")).and_then(|record| {
        record.with_borrowed(|record| Some(records.of_event(settings, &decode(record, &mut parser, usize::MAX).ok()?, found.time_ms())))
    });
    let controls = controls.unwrap_or_default();
    let again = again::decide(settings, &records, &history, &found)?;
    let policy = is_own_policy.then(|| serde_json::json!(settings.policy));
    let mut reasons = pages::explained(&found.verdict, policy.as_ref());
    near::explain(&mut reasons, settings, &records, history.record(found.text("event_id")));
    let next = pages::next_steps(&found, &controls, is_own_policy);
    Ok(Answer {
        published: found.published_ms.map(stamp),
        reasons,
        is_whole_turn: history.is_whole(),
        turn: history.turn(&found),
        is_own_policy,
        controls,
        again,
        next,
        others: others.into_iter().map(FoundVerdict::into_other).collect(),
        verdict: found.verdict,
    })
}
