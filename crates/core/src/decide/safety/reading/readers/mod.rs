//! The readers, one file each. To add a provider whose shape is new, add a file and its cases; a provider that speaks a known shape needs no
//! more than its name in `providers`.

mod anthropic;
mod api_error;
mod bedrock;
mod cohere;
mod dashscope;
mod gateway_error;
mod gemini;
mod guardrail;
mod hugging_face;
mod langchain;
mod minimax;
mod ollama;
mod openai_chat;
mod openai_responses;
mod otel;
mod plain;
mod pydantic_ai;
mod spark;
mod tencent;
mod vercel;
mod xai_sdk;

use super::Reader;
pub(super) use guardrail::TOOL_SAFEGUARD;

/// All readers. Where several rules speak, the first in this order counts: a reason of the response itself, then an error, then what was
/// said of single calls.
pub const READERS: &[&Reader] = &[
    &openai_chat::READER,
    &openai_responses::READER,
    &anthropic::READER,
    &gemini::READER,
    &bedrock::READER,
    &cohere::READER,
    &plain::READER,
    &dashscope::READER,
    &minimax::READER,
    &tencent::READER,
    &spark::READER,
    &ollama::READER,
    &hugging_face::READER,
    &xai_sdk::READER,
    &vercel::READER,
    &pydantic_ai::READER,
    &otel::READER,
    &api_error::READER,
    &gateway_error::READER,
    &guardrail::READER,
    &langchain::READER,
];
