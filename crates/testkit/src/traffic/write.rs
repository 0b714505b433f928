//! Writes the steps of a conversation as events in JSON.

use std::fmt::Arguments;
use std::io::Write as _;

use super::conversation::{Call, Outcome, Step, Tool};
use super::text::Text;
use super::{MixSettings, Random};

/// The tools that are called, much like those of coding and research agents.
pub(super) const TOOLS: [&str; 8] =
    ["terminal", "read_file", "search_files", "write_file", "patch", "web_search", "mcp__github__get_issue", "mcp__postgres__query"];
/// The index of the tool that fails in loops.
pub(super) const FAILING_TOOL: usize = 0;
/// The index of the tool that reads the same again and again in loops.
pub(super) const READING_TOOL: usize = 1;
/// The tool that the bench's policy denies.
pub const DENIED_TOOL: &str = "format_disk";

/// The fewest and the most bytes of a response and of a result, as the whole event.
const RESPONSE_BYTES: (usize, usize) = (3_000, 8_000);
const RESULT_BYTES: (usize, usize) = (420, 16_000);
/// The milliseconds between the timestamps of two events.
const EVENT_MS: u64 = 1;
const DAY_MS: u64 = 86_400_000;
const DAYS: u64 = 28;

/// The place of an event in the traffic.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) thread: usize,
    /// The thread whose user, tenant and agent it is of.
    pub(super) person: usize,
    pub(super) thread_id: &'a str,
    pub(super) turn: u32,
    /// The number of the event among all.
    pub(super) number: u64,
}

/// Writes events into a buffer of the caller's.
#[derive(Debug, Clone)]
pub(super) struct Writer {
    text: Text,
    arguments: Vec<u8>,
    /// The most bytes of arguments, and of a response.
    arguments_max: usize,
    response_max: usize,
}

impl Writer {
    pub(super) fn new(settings: &MixSettings, random: &mut Random) -> Self {
        let (arguments_max, response_max) = (settings.arguments_bytes_max, settings.response_bytes_max);
        Self { text: Text::new(random), arguments: Vec::new(), arguments_max, response_max }
    }

    pub(super) fn write(&mut self, place: Place<'_>, step: &Step, settings: &MixSettings, random: &mut Random, out: &mut Vec<u8>) {
        out.clear();
        head(place, step, out);
        match step {
            Step::TurnStart | Step::TurnEnd => {}
            Step::Response { calls, is_cut_off } => self.response(place, calls, *is_cut_off, random, out),
            Step::Call(call) => self.call(place, *call, true, out),
            Step::Result(call, outcome) => {
                // Half of the hosts send the arguments again.
                self.call(place, *call, place.thread % 2 == 1, out);
                self.result(*call, *outcome, settings, out);
            }
        }
        out.push(b'}');
    }

    fn call(&mut self, place: Place<'_>, call: Call, with_arguments: bool, out: &mut Vec<u8>) {
        append(out, format_args!(r#","tool_call_id":"{}","tool_name":"{}""#, CallId(place, call), name(call)));
        if with_arguments {
            self.read_arguments(call);
            out.extend_from_slice(br#","tool_input":"#);
            out.extend_from_slice(&self.arguments);
        }
    }

    /// Writes the arguments of a call, always the same for the same call: an object of a path, some options and text.
    fn read_arguments(&mut self, call: Call) {
        let mut random = Random::new(call.seed);
        let Self { text, arguments, arguments_max, .. } = self;
        arguments.clear();
        let (module, line) = (random.below(40), random.below(2_000));
        append(arguments, format_args!(r#"{{"path":"src/module_{module}/component_{:08x}.py","start_line":{line},"#, call.seed >> 32));
        append(arguments, format_args!(r#""options":{{"recursive":true,"encoding":"utf-8","limit":{}}},"content":""#, line + 40));
        text.plain(&mut random, call.bytes.min(*arguments_max).saturating_sub(arguments.len()), arguments);
        arguments.extend_from_slice(br#""}"#);
    }

    fn result(&mut self, call: Call, outcome: Outcome, settings: &MixSettings, out: &mut Vec<u8>) {
        // Equal for every repeat of a call.
        let mut random = Random::new(call.seed.wrapping_add(1));
        let bytes = random.size(RESULT_BYTES.0, RESULT_BYTES.1).min(settings.result_bytes_max).saturating_sub(out.len() + 60);
        out.extend_from_slice(br#","result":""#);
        let is_terminal = name(call) == TOOLS.first().copied().unwrap_or_default();
        match (is_terminal, outcome == Outcome::Failure) {
            (true, failed) => {
                append(out, format_args!(r#"{{\"exit_code\": {}, \"output\": \""#, u8::from(failed)));
                self.text.plain(&mut random, bytes, out);
                out.extend_from_slice(br#"\"}"#);
            }
            (false, true) => {
                out.extend_from_slice(b"Error: ");
                self.text.escaped(&mut random, bytes.min(400), out);
            }
            (false, false) => self.text.escaped(&mut random, bytes, out),
        }
        out.push(b'"');
    }

    /// Writes a response in the spelling of the thread's provider: OpenAI's, Anthropic's or Gemini's.
    fn response(&mut self, place: Place<'_>, calls: &[Call], is_cut_off: bool, random: &mut Random, out: &mut Vec<u8>) {
        let arguments: usize = calls.iter().map(|call| call.bytes.min(self.arguments_max) + 200).sum();
        let said =
            random.size(RESPONSE_BYTES.0, RESPONSE_BYTES.1).min(self.response_max).saturating_sub(out.len() + arguments + 350).max(80);
        match place.thread % 3 {
            0 => self.openai(place, calls, is_cut_off, said, random, out),
            1 => self.anthropic(place, calls, is_cut_off, said, random, out),
            _ => self.gemini(calls, is_cut_off, said, random, out),
        }
    }

    fn openai(&mut self, place: Place<'_>, calls: &[Call], is_cut_off: bool, said: usize, random: &mut Random, out: &mut Vec<u8>) {
        let reason = match (is_cut_off, calls.is_empty()) {
            (true, _) => "content_filter",
            (false, true) => "stop",
            (false, false) => "tool_calls",
        };
        append(out, format_args!(r#","provider":"openai","response":{{"id":"chatcmpl-{:024x}","object":"chat.completion","#, place.number));
        append(out, format_args!(r#""choices":[{{"index":0,"finish_reason":"{reason}","message":{{"role":"assistant","content":""#));
        self.text.escaped(random, said, out);
        out.extend_from_slice(br#"","tool_calls":["#);
        for (at, call) in calls.iter().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            append(out, format_args!(r#"{comma}{{"id":"{}","type":"function","#, CallId(place, *call)));
            append(out, format_args!(r#""function":{{"name":"{}","arguments":""#, name(*call)));
            self.read_arguments(*call);
            // A JSON text inside of a string; nothing in it but quotes needs an escape.
            for part in self.arguments.split_inclusive(|byte| *byte == b'"') {
                let (text, quote) = part.strip_suffix(b"\"").map_or((part, &b""[..]), |text| (text, &b"\\\""[..]));
                out.extend_from_slice(text);
                out.extend_from_slice(quote);
            }
            out.extend_from_slice(br#""}}"#);
        }
        append(out, format_args!(r#"]}}}}],"usage":{{"prompt_tokens":{},"completion_tokens":{}}}}}"#, said * 4, said / 4));
    }

    fn anthropic(&mut self, place: Place<'_>, calls: &[Call], is_cut_off: bool, said: usize, random: &mut Random, out: &mut Vec<u8>) {
        let reason = match (is_cut_off, calls.is_empty()) {
            (true, _) => "refusal",
            (false, true) => "end_turn",
            (false, false) => "tool_use",
        };
        append(
            out,
            format_args!(r#","provider":"anthropic","response":{{"id":"msg_{:024x}","type":"message","role":"assistant","#, place.number),
        );
        out.extend_from_slice(br#""content":[{"type":"text","text":""#);
        self.text.escaped(random, said, out);
        out.extend_from_slice(br#""}"#);
        for call in calls {
            append(out, format_args!(r#",{{"type":"tool_use","id":"{}","name":"{}","input":"#, CallId(place, *call), name(*call)));
            self.read_arguments(*call);
            out.extend_from_slice(&self.arguments);
            out.push(b'}');
        }
        append(out, format_args!(r#"],"stop_reason":"{reason}","usage":{{"input_tokens":{},"output_tokens":{}}}}}"#, said * 4, said / 4));
    }

    fn gemini(&mut self, calls: &[Call], is_cut_off: bool, said: usize, random: &mut Random, out: &mut Vec<u8>) {
        let reason = if is_cut_off { "SAFETY" } else { "STOP" };
        out.extend_from_slice(br#","provider":"gemini","response":{"candidates":[{"content":{"role":"model","parts":[{"text":""#);
        self.text.escaped(random, said, out);
        out.extend_from_slice(br#""}"#);
        for call in calls {
            append(out, format_args!(r#",{{"functionCall":{{"name":"{}","args":"#, name(*call)));
            self.read_arguments(*call);
            out.extend_from_slice(&self.arguments);
            out.extend_from_slice(b"}}");
        }
        append(out, format_args!(r#"]}},"finishReason":"{reason}"}}],"usageMetadata":{{"totalTokenCount":{}}}}}"#, said * 4));
    }
}

/// Writes the fields that every event has.
fn head(place: Place<'_>, step: &Step, out: &mut Vec<u8>) {
    let Place { thread, person, thread_id, turn, number } = place;
    let event_type = step.event_type().as_str();
    append(
        out,
        format_args!(r#"{{"type":"{event_type}","thread_id":"{thread_id}","event_id":"event-{number:012}","turn_id":"turn-{turn}","#),
    );
    append(
        out,
        format_args!(r#""agent_id":"coder-{}","user_id":"user-{}","tenant_id":"tenant-{}","#, person % 50, person % 1_000, person % 20),
    );
    let ms = number * EVENT_MS;
    let (day, second, ms) = ((ms / DAY_MS).min(DAYS - 1) + 1, ms % DAY_MS / 1_000, ms % 1_000);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    append(
        out,
        format_args!(r#""run_id":"run-{thread}-{turn}","timestamp":"2026-01-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z""#),
    );
}

fn name(call: Call) -> &'static str {
    match call.tool {
        Tool::Denied => DENIED_TOOL,
        Tool::Usual(at) => TOOLS.get(at).copied().unwrap_or_default(),
    }
}

struct CallId<'a>(Place<'a>, Call);

impl std::fmt::Display for CallId<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "call_{:06}_{:08}", self.0.thread, self.1.number)
    }
}

fn append(out: &mut Vec<u8>, text: Arguments<'_>) {
    // Writing to memory does not fail.
    let _infallible = out.write_fmt(text);
}
