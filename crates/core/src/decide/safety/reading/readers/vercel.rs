//! Results and stream parts of the Vercel AI SDK.

use super::super::{CallsAt, Reader, ReasonAt};

const fn call(path: &'static str, types: &'static [(&'static str, Option<&'static str>)]) -> CallsAt {
    CallsAt { path, types, id: &["toolCallId", "id"], name: &["toolName"], ..CallsAt::BLANK }
}

pub(super) static READER: Reader = Reader {
    name: "vercel_ai_sdk",
    providers: "Vercel AI SDK",
    reasons: &[
        ReasonAt::ending("finishReason", "finishReason", "vercel_ai_sdk"),
        ReasonAt::ending("finishReason.unified", "finishReason.unified", "vercel_ai_sdk"),
        ReasonAt::ending("finishReason.raw", "finishReason.raw", "vercel_ai_sdk"),
        ReasonAt::ending("rawFinishReason", "rawFinishReason", "vercel_ai_sdk"),
    ],
    calls: &[call("toolCalls[]", &[]), call("", &[("tool-input-start", None), ("tool-input-available", None), ("tool-call", None)])],
    texts: &["text"],
    ..Reader::BLANK
};
