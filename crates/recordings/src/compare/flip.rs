//! What the two sides say of a record, and the record itself.

use std::borrow::Cow;

use serde::{Serialize, Serializer};
use tollgate_core::decide::deciding::Outcome;
use tollgate_core::decide::evaluate::verdict::INVALID_EVENT;
use tollgate_core::decide::loops::classify;
use tollgate_core::decide::ruling::{Action, DecidedBy, LoopCode};
use tollgate_core::event::decode::{Body, Event, PartialEvent};
use tollgate_core::event::record::Record;

/// What one side says of an event. Two verdicts differ if their action or their code does.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Side {
    /// The action of the verdict.
    #[serde(serialize_with = "action")]
    pub action: Action,
    /// The code of the verdict.
    pub code: Cow<'static, str>,
    /// The part of the gate that decided.
    #[serde(serialize_with = "decided_by")]
    pub decided_by: DecidedBy,
}

fn action<S: Serializer>(action: &Action, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(action.as_str())
}

fn decided_by<S: Serializer>(decided_by: &DecidedBy, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(decided_by.as_str())
}

impl Side {
    /// Returns whether the turn should stop: a verdict halts it, or blocks a call and asks the host to stop, as `should_halt` says.
    pub(super) fn stops_turn(&self) -> bool {
        self.action == Action::Halt || LoopCode::is_halt(&self.code)
    }

    /// Returns what an outcome says; `None` if there is no verdict.
    pub(super) fn of(outcome: Outcome) -> Option<Self> {
        if !outcome.is_published() {
            return None;
        }
        match outcome {
            Outcome::Verdict { decided, .. } => Some(Self { action: decided.action, code: decided.code, decided_by: decided.decided_by }),
            Outcome::DeadLetter(_) => Some(Self { action: Action::Block, code: INVALID_EVENT.into(), decided_by: DecidedBy::Envelope }),
            Outcome::Boundary(_) => None,
        }
    }

    /// Returns whether a caller acts otherwise on the other verdict, or is told another reason.
    pub(super) fn differs(&self, other: &Self) -> bool {
        (self.action, &self.code) != (other.action, &other.code)
    }
}

/// What is told of a record and its event. It is reused from record to record.
#[derive(Debug, Default, Clone, Serialize)]
pub(super) struct Facts {
    pub(super) topic: String,
    pub(super) partition: i32,
    pub(super) offset: i64,
    /// The event's time, or else the record's, in milliseconds since 1970.
    #[serde(rename = "timestamp")]
    pub(super) time_ms: Option<i64>,
    pub(super) thread_id: String,
    pub(super) event_id: String,
    #[serde(rename = "type")]
    pub(super) event_type: &'static str,
    pub(super) tool_name: Option<String>,
    pub(super) agent_id: Option<String>,
    pub(super) tenant_id: Option<String>,
    /// The message of each side, where they differ. A message is the policy's, and has nothing of the event's contents.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) from_message: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) to_message: String,
    /// Whether a tool has run and did not fail.
    #[serde(skip)]
    pub(super) succeeded: bool,
    /// The turn, if the host names turns.
    #[serde(skip)]
    pub(super) turn_id: Option<String>,
}

impl Facts {
    /// Notes where a record stands. Nothing is known of its event then.
    pub(super) fn place(&mut self, record: &Record<'_>) {
        self.topic.clear();
        self.topic.push_str(record.topic);
        (self.partition, self.offset, self.time_ms) = (record.partition.0, record.offset.0, record.timestamp_ms);
        [&mut self.thread_id, &mut self.event_id, &mut self.from_message, &mut self.to_message].into_iter().for_each(String::clear);
        (self.event_type, self.succeeded) = ("", false);
        for text in [&mut self.tool_name, &mut self.agent_id, &mut self.tenant_id, &mut self.turn_id] {
            *text = None;
        }
    }

    /// Notes an event. Whether its tool succeeded is looked at only if somebody `asks`, because that reads the whole result.
    pub(super) fn event(&mut self, event: &Event<'_>, asks: impl FnOnce(&str) -> bool) {
        self.thread_id.push_str(&event.thread_id);
        self.event_id.push_str(&event.event_id);
        self.event_type = event.event_type().as_str();
        self.time_ms = event.time_ms.or(self.time_ms);
        let owned = |text: &Option<Cow<'_, str>>| text.as_deref().map(str::to_owned);
        self.agent_id = owned(&event.attribution.agent_id);
        self.tenant_id = owned(&event.attribution.tenant_id);
        self.turn_id = owned(&event.turn_id);
        match &event.body {
            Body::ToolCall(call) => self.tool_name = Some(call.tool_name.clone().into_owned()),
            Body::ToolResult(result) => {
                self.tool_name = Some(result.tool_name.clone().into_owned());
                let failed = || result.failed.unwrap_or_else(|| classify(&result.tool_name, result.result.as_ref()).is_some());
                self.succeeded = asks(&self.thread_id) && !failed();
            }
            Body::TurnStart | Body::TurnEnd | Body::ThreadReset | Body::ModelResponse(_) => {}
        }
    }

    /// Notes what is known of an event that cannot be read.
    pub(super) fn unreadable(&mut self, event: &PartialEvent, coordinates: String) {
        self.thread_id.push_str(event.thread_id.as_deref().unwrap_or_default());
        self.event_id = event.event_id.clone().unwrap_or(coordinates);
        self.event_type = event.event_type.map_or("", |event_type| event_type.as_str());
        self.tool_name.clone_from(&event.tool_name);
    }
}

/// A verdict that differs, as a line of JSON says it.
#[derive(Debug, Serialize)]
pub(super) struct Flip<'f> {
    #[serde(flatten)]
    pub(super) facts: &'f Facts,
    pub(super) from: &'f Side,
    pub(super) to: &'f Side,
    /// Whether it is the first difference of its turn.
    pub(super) is_first: bool,
}
