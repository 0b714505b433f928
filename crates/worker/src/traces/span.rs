//! A span, and what of a verdict it holds.

use serde::Deserialize;
use tollgate_core::event::record::{Offset, Partition};

use super::context::TraceContext;

/// How many characters of a text of the verdict a span holds at most. Senders choose some of them.
const TEXT_CHARACTERS_MAX: usize = 256;

/// What happens to a record, as an event of its span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// The record came to the member.
    Consume,
    /// A question was sent to a policy server.
    Ask,
    /// The policy server's answer, or the error in its place, came back.
    Answer,
    /// The verdict was given.
    Decide,
    /// The verdict was handed to the producer.
    Publish,
}

impl Step {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Consume => "consume",
            Self::Ask => "ask",
            Self::Answer => "answer",
            Self::Decide => "decide",
            Self::Publish => "publish",
        }
    }
}

/// One record's way, from the member that took it to the acknowledgement of its verdict. Times are in nanoseconds since the epoch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) trace_id: u128,
    pub(super) span_id: u64,
    /// The span that the event was sent in.
    pub(super) parent: Option<TraceContext>,
    pub(super) trace_state: Option<Box<str>>,
    pub(super) partition: Partition,
    pub(super) offset: Offset,
    pub(super) started_ns: u64,
    pub(super) ended_ns: u64,
    pub(super) steps: Vec<(Step, u64)>,
    pub(super) verdict: Verdict,
}

/// What a span holds of its verdict, by the names of the verdict's own fields. A span holds nothing of an event that its verdict does not
/// hold, and of that no free text and no thread.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub(super) struct Verdict {
    verdict_id: Option<String>,
    event_id: Option<String>,
    #[serde(rename = "type")]
    event_type: Option<String>,
    action: Option<String>,
    code: Option<String>,
    decided_by: Option<String>,
    tool_name: Option<String>,
    /// The code of the rejection, if the record could not be read.
    #[serde(skip)]
    pub(super) rejection: Option<&'static str>,
}

impl Verdict {
    /// Reads a verdict's JSON. What is not there is left out. `rejection` is the code of a record that could not be read.
    pub(super) fn read(json: &[u8], rejection: Option<&'static str>) -> Self {
        let mut read: Self = serde_json::from_slice(json).unwrap_or_default();
        read.rejection = rejection;
        let texts = [
            &mut read.verdict_id,
            &mut read.event_id,
            &mut read.event_type,
            &mut read.action,
            &mut read.code,
            &mut read.decided_by,
            &mut read.tool_name,
        ];
        texts.into_iter().flatten().for_each(cut);
        read
    }

    /// Returns the attributes that there are: names and values.
    pub(super) fn attributes(&self) -> impl Iterator<Item = (&'static str, &str)> {
        [
            ("tollgate.verdict_id", self.verdict_id.as_deref()),
            ("tollgate.event_id", self.event_id.as_deref()),
            ("tollgate.event_type", self.event_type.as_deref()),
            ("tollgate.action", self.action.as_deref()),
            ("tollgate.code", self.code.as_deref()),
            ("tollgate.decided_by", self.decided_by.as_deref()),
            ("gen_ai.tool.name", self.tool_name.as_deref()),
            ("error.type", self.rejection),
        ]
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)))
    }
}

/// Cuts a text that is too long for an attribute.
fn cut(text: &mut String) {
    if let Some((at, _)) = text.char_indices().nth(TEXT_CHARACTERS_MAX) {
        text.truncate(at);
        text.push('…');
    }
}

/// Returns a span for tests.
#[cfg(test)]
pub(super) fn test_span(offset: i64) -> Span {
    Span {
        trace_id: 1,
        span_id: 2,
        parent: None,
        trace_state: None,
        partition: Partition(3),
        offset: Offset(offset),
        started_ns: 1_000,
        ended_ns: 5_000,
        steps: vec![(Step::Consume, 1_000)],
        verdict: Verdict::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_holds_ids_and_codes_and_no_free_text() {
        let json = br#"{"verdict_id":"v","event_id":"e","thread_id":"MARKER","type":"tool_call","action":"block","code":null,"message":"MARKER","decided_by":"loop","tool_name":"ls","tool_call_id":"MARKER","reasons":[{"message":"MARKER"}]}"#;
        let verdict = Verdict::read(json, None);
        let attributes: Vec<_> = verdict.attributes().collect();
        assert_eq!(
            attributes,
            [
                ("tollgate.verdict_id", "v"),
                ("tollgate.event_id", "e"),
                ("tollgate.event_type", "tool_call"),
                ("tollgate.action", "block"),
                ("tollgate.decided_by", "loop"),
                ("gen_ai.tool.name", "ls"),
            ]
        );
        assert!(!format!("{verdict:?}").contains("MARKER"));
    }

    #[test]
    fn what_is_no_verdict_says_nothing() {
        for json in [&b""[..], b"{}", b"[1]", b"{\"action\":1}"] {
            assert_eq!(Verdict::read(json, None).attributes().count(), 0);
        }
    }

    #[test]
    fn long_texts_are_cut() {
        for (length, expected) in [(TEXT_CHARACTERS_MAX, "é".repeat(TEXT_CHARACTERS_MAX)), (300, "é".repeat(TEXT_CHARACTERS_MAX) + "…")]
        {
            let json = format!("{{\"event_id\":\"{}\"}}", "é".repeat(length));
            let verdict = Verdict::read(json.as_bytes(), None);
            assert_eq!(verdict.event_id.as_deref(), Some(expected.as_str()));
        }
    }

    #[test]
    fn steps_have_the_names_of_the_documents() {
        let names = [Step::Consume, Step::Ask, Step::Answer, Step::Decide, Step::Publish].map(Step::as_str);
        assert_eq!(names, ["consume", "ask", "answer", "decide", "publish"]);
    }
}
