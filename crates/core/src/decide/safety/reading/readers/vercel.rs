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
        // A result of `generateText` as JSON: what else it has are getters.
        ReasonAt::ending("steps[].finishReason", "finishReason", "vercel_ai_sdk"),
        ReasonAt::ending("steps[].rawFinishReason", "rawFinishReason", "vercel_ai_sdk"),
    ],
    calls: &[
        call("toolCalls[]", &[]),
        CallsAt::blocks("steps[].content[]"),
        call("", &[("tool-input-start", None), ("tool-input-available", None), ("tool-call", None)]),
    ],
    texts: &["text", "steps[].content[]"],
    ..Reader::BLANK
};
