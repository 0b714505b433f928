//! The scan of a body: what stopped it, how else it ended, and whether its calls are whole. It costs one walk, and reads no call and no text
//! that it does not have to.

use std::borrow::Cow;

use serde::de::IgnoredAny;
use smallvec::SmallVec;
use tollgate_json::{DEPTH_MAX, Parser, Shape, Value};

use super::ending::{Ending, bare};
use super::paths::{MESSAGES, Paths, Place, RESPONSES, Visit};
use super::test::{Found, ReasonText, text_of};
use super::{CallsAt, CallsKind, Reader, ReasonAt, Stage};
use crate::decide::safety::ReasonSet;
use crate::event::decode::ModelBody;

/// A place that says that a safety system stopped the response.
#[derive(Debug, Clone)]
pub struct Signal<'d> {
    /// The shape of the body.
    pub reader: &'static Reader,
    /// The rule that spoke.
    pub reason: &'static ReasonAt,
    /// What it found.
    pub found: Found,
    /// The object that the value is in.
    pub beside: Value<'d>,
    rank: usize,
}

/// What a body says of its end.
#[derive(Debug, Default)]
pub struct Scan<'d> {
    /// The stops, the one that counts first.
    pub signals: Vec<Signal<'d>>,
    /// Whether a reader knows the body's shape, and a place of it says how the response stands.
    pub is_recognized: bool,
    /// Whether there is a call.
    pub has_calls: bool,
    /// Whether the response was cut off for another reason than safety, or a call's arguments cannot be read.
    pub is_cut: bool,
    /// Whether a word that is no stop says that the response is over: in a stream a known word, since pieces may have words of their own.
    pub is_over: bool,
    /// Whether a word says that the response ended as it should.
    pub is_complete: bool,
    /// Whether a word says that the response is not over yet.
    is_running: bool,
    /// Whether there is a call or a text, empty or not.
    has_output: bool,
    /// Whether a place that says how the response stands is in the body, be it null, or the body has no output.
    has_end: bool,
    /// Of the last event of a stream: whether a known word says that the response is over, and whether there is a call.
    last_event: (bool, bool),
    /// The words for the end that are no stops.
    endings: SmallVec<[Cow<'d, str>; 1]>,
}

impl<'d> Scan<'d> {
    /// Scans a body.
    #[must_use]
    pub fn of(body: &ModelBody<'d>) -> Self {
        let mut scan = Self::default();
        let (paths, value) = paths_of(body);
        paths.walk(value, &mut scan);
        scan.signals.sort_by_key(|signal| signal.rank);
        // A response that is not over, or that names no known reason for its end, may have broken off.
        let is_open = scan.is_running || !scan.endings.is_empty() || value.shape() == Shape::Array;
        scan.is_cut |= scan.has_calls && is_open && !scan.is_over && !scan.is_stopped();
        scan.is_over |= value.shape() != Shape::Array && !scan.endings.is_empty() && !scan.is_running;
        // An error in the middle of a response is about what the model wrote.
        if scan.has_output {
            scan.signals.iter_mut().for_each(|signal| _ = signal.found.stage.get_or_insert(Stage::Output));
        }
        // Fields of SDKs and of hosts have names of known shapes, with the end of the response in a place of their own.
        scan.is_recognized &= scan.has_end || scan.is_stopped() || matches!(body, ModelBody::Message(_));
        // An API error has no calls, and a text is all that some providers say.
        scan.is_recognized |= matches!(body, ModelBody::Error(_));
        scan
    }

    /// Returns whether another body says the same of its end.
    #[must_use]
    pub fn says_as(&self, other: &Scan<'_>) -> bool {
        let stops = |scan: &Scan<'_>| -> Vec<_> { scan.signals.iter().map(|signal| (signal.rank, signal.found.clone())).collect() };
        let rest = |scan: &Scan<'_>| (scan.is_recognized, scan.has_calls, scan.is_cut, scan.is_over, scan.is_complete);
        stops(self) == stops(other) && rest(self) == rest(other)
    }

    /// Returns whether a safety system stopped the response, and not single calls of it alone.
    fn is_stopped(&self) -> bool {
        self.signals.iter().any(|signal| signal.found.flagged.is_none())
    }

    /// Returns whether the response ended in one of these words alone.
    #[must_use]
    pub fn ended_in(&self, words: &ReasonSet) -> bool {
        !self.is_stopped() && !self.endings.is_empty() && self.endings.iter().all(|word| words.find(bare(word)).is_some())
    }
}

/// Returns the paths along which a body is read, and the body.
pub(super) fn paths_of<'d>(body: &ModelBody<'d>) -> (&'static Paths, Value<'d>) {
    match *body {
        ModelBody::Message(message) => (&MESSAGES, message),
        // A text alone is what the model wrote, and says nothing of its end. Only an error may be a text.
        ModelBody::Response(value) if value.as_text().is_some() => (&MESSAGES, value),
        ModelBody::Response(value) | ModelBody::Error(value) => (&RESPONSES, value),
    }
}

impl<'d> Visit<'d> for Scan<'d> {
    fn known_shape(&mut self) {
        self.is_recognized = true;
    }

    fn known_end(&mut self) {
        self.has_end = true;
    }

    fn event_over(&mut self) {
        // A call behind the end of a response is of the next response, which says its own end.
        let (says_end, has_calls) = std::mem::take(&mut self.last_event);
        self.is_over = says_end || self.is_over && !has_calls;
    }

    fn reason(&mut self, place: &Place<ReasonAt>, value: Value<'d>, beside: Value<'d>) {
        match place.at.test.read(value, beside) {
            ReasonText::Stop(found) => {
                self.signals.push(Signal { reader: place.reader, reason: place.at, found, beside, rank: place.rank });
            }
            ReasonText::Stands(_, Ending::Running) => self.is_running = true,
            ReasonText::Stands(word, ending) if !word.is_empty() => {
                self.is_cut |= ending == Ending::Cut;
                self.is_complete |= ending == Ending::Complete;
                self.last_event.0 |= ending != Ending::Unknown;
                self.endings.push(word);
            }
            ReasonText::Stands(..) | ReasonText::Nothing => {}
        }
    }

    fn call(&mut self, place: &Place<CallsAt>, value: Value<'d>) {
        if place.at.counts(value) {
            (self.has_calls, self.has_output, self.last_event.1) = (true, true, true);
            let arguments = place.at.arguments;
            let encoded = || arguments.iter().try_fold(value, |value, member| value.get(member)).and_then(|value| value.as_text());
            let is_whole = arguments.is_empty() || place.at.kind == CallsKind::Pieces;
            // An item of the Responses API says of itself whether it is whole.
            let status = value.get("status").and_then(text_of);
            self.is_cut |= status.is_some_and(|status| Ending::of(&status) == Ending::Cut);
            self.is_cut |= !is_whole && encoded().is_some_and(|text| !reads_as_json(text.as_bytes()));
        }
    }

    fn text(&mut self, _: &'static Reader, _: Value<'d>) {
        self.has_output = true;
    }
}

impl CallsAt {
    /// Returns whether a value at this place is a call that the host runs.
    pub(super) fn counts(&self, value: Value<'_>) -> bool {
        let is_of_type = || value.get(self.type_member).is_some_and(|kind| self.types.iter().any(|(known, _)| kind.is_text(known)));
        value.is_object() && (self.types.is_empty() || is_of_type())
    }
}

/// Returns whether arguments are JSON. A blank text is what providers send for a call without parameters.
fn reads_as_json(text: &[u8]) -> bool {
    // The check without a tree is the cheaper one. The parser knows what else Python reads, and nests deeper.
    let is_plain = || serde_json::from_slice::<IgnoredAny>(text).is_ok();
    text.trim_ascii().is_empty() || is_plain() || Parser::new().parse(text, DEPTH_MAX).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scan(body: &str, check: impl FnOnce(Scan<'_>)) {
        check(Scan::of(&ModelBody::Response(Parser::new().parse(body.as_bytes(), DEPTH_MAX).unwrap())));
    }

    #[test]
    fn a_stream_that_breaks_off_is_cut_where_it_calls_a_tool() {
        let call = r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]},"finish_reason":null}]}"#;
        let block = r#"{"type":"content_block_start","content_block":{"type":"tool_use","id":"a","name":"f"}}"#;
        let last = r#"{"choices":[{"delta":{},"finish_reason":"tool_calls"}]}"#;
        let text = r#"{"choices":[{"delta":{"content":"x"},"finish_reason":null}]}"#;
        for (body, is_cut) in [
            (format!("[{call}]"), true),
            (format!("[{block},{{\"type\":\"message_delta\",\"delta\":{{\"stop_reason\":null}}}}]"), true),
            (format!("[{call},{last}]"), false),
            (format!("[{block},{{\"type\":\"message_delta\",\"delta\":{{\"stop_reason\":\"tool_use\"}}}}]"), false),
            (format!("[{text}]"), false),
            (call.to_owned(), false),
        ] {
            scan(&body, |scan| assert_eq!((scan.is_cut, scan.is_recognized), (is_cut, true), "{body}"));
        }
    }

    #[test]
    fn a_member_of_another_form_does_not_make_a_body_known() {
        let reasons = r#"{"key":"gen_ai.response.finish_reasons","value":{"arrayValue":{"values":[{"stringValue":"content_filter"}]}}}"#;
        for (body, is_known) in [
            (format!(r#"{{"name":"chat m","attributes":[{reasons}]}}"#), false),
            (r#"{"name":"chat m","attributes":{"gen_ai.response.finish_reasons":["stop"]}}"#.to_owned(), true),
            (r#"{"choices":"none"}"#.to_owned(), false),
            (r#"{"choices":[]}"#.to_owned(), true),
            (r#"{"choices":[{"message":{}}]}"#.to_owned(), false),
            (r#"{"steps":[{"content":[]}],"totalUsage":{}}"#.to_owned(), false),
            (r#"{"generations":[[{"generation_info":{}}]]}"#.to_owned(), false),
            (r#"{"type":"ai","tool_calls":[{"id":"a"}],"metadata":{"finish_reason":"content_filter"}}"#.to_owned(), false),
            (r#"{"stop_reason":7}"#.to_owned(), true),
        ] {
            scan(&body, |scan| assert_eq!(scan.is_recognized, is_known, "{body}"));
        }
    }
}
