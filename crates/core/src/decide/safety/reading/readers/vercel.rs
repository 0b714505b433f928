//! Results and stream parts of the Vercel AI SDK.

use super::super::{CallsAt, Reader, ReasonAt, Test};

const fn call(path: &'static str, types: &'static [(&'static str, Option<&'static str>)]) -> CallsAt {
    CallsAt { path, types, id: &["toolCallId", "id"], name: &["toolName"], ..CallsAt::BLANK }
}

pub(super) static READER: Reader = Reader {
    name: "vercel_ai_sdk",
    providers: "Vercel AI SDK",
    reasons: &[
        ReasonAt { path: "finishReason", field: "finishReason", rule: "vercel_ai_sdk", test: Test::Ending },
        ReasonAt { path: "finishReason.unified", field: "finishReason.unified", rule: "vercel_ai_sdk", test: Test::Ending },
        ReasonAt { path: "finishReason.raw", field: "finishReason.raw", rule: "vercel_ai_sdk", test: Test::Ending },
        ReasonAt { path: "rawFinishReason", field: "rawFinishReason", rule: "vercel_ai_sdk", test: Test::Ending },
    ],
    calls: &[call("toolCalls[]", &[]), call("", &[("tool-input-start", None), ("tool-input-available", None), ("tool-call", None)])],
    texts: &["text"],
    ..Reader::BLANK
};
