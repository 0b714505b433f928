//! The wires of agent hosts: what a host asks over HTTP or on stdin is read as events of the gate, and the gate's verdicts are written as the
//! answer that this host understands.
//!
//! A wire is pure. It knows no thread, no deadline and no Kafka: the server publishes the events of a [`Question`], waits, and hands the
//! [`Outcome`] to the question's own answer.

mod body;
mod claude_code;
mod codex;
mod copilot;
mod cursor;
mod event;
pub mod ext_mcp;
mod gemini_cli;
mod hook;
mod litellm;
pub mod mcp;
mod nested;
mod opa;
mod ruling;
mod vscode;
mod wire;

pub use wire::{Answer, Event, Outcome, Question, Request, Unanswered, Verdict, Wire};

/// OPA's Data API, for `/v1/data/…`: the request's path is what stands behind `/v1/data/`.
pub static OPA: &dyn Wire = &opa::DATA_API;

/// LiteLLM's generic guardrail API, for `/beta/litellm_basic_guardrail_api`.
pub static LITELLM: &dyn Wire = &litellm::GUARDRAIL;

/// Returns the wires of hooks, in order of their names. Each is served at `/v1/hooks/<name>`, and a request's path is what stands behind that.
#[must_use]
pub fn wires() -> &'static [&'static dyn Wire] {
    static WIRES: [&dyn Wire; 6] =
        [&claude_code::CLAUDE_CODE, &codex::CODEX, &copilot::COPILOT, &cursor::CURSOR, &gemini_cli::GEMINI_CLI, &vscode::VSCODE];
    &WIRES
}

/// Returns the answer to a host that no wire is for: a denial in the words of every host at once. `reason` says what to mend.
#[must_use]
pub fn deny_unknown_host(reason: &str) -> Answer {
    let unknown = hook::Occasion { event: "", kind: hook::Kind::Unknown };
    ruling::ok(nested::refuse_widely(&unknown, reason))
}

/// Returns the wire of hooks with this name.
#[must_use]
pub fn wire(name: &str) -> Option<&'static dyn Wire> {
    wires().iter().copied().find(|wire| wire.name() == name)
}
