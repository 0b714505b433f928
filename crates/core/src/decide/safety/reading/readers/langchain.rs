//! LangChain's AIMessage: flat, as `{type, data}`, as a serialised constructor, or as the last message of a state.

use super::super::{CallsAt, CallsKind, Reader, ReasonAt, Stage, Test};
use super::gemini::blocked;
use super::guardrail::safeguard;
use super::openai_chat::{part, refusal};
use crate::decide::safety::Category;

const fn lifted(path: &'static str) -> CallsAt {
    CallsAt { path, ..CallsAt::BLANK }
}

pub(super) static READER: Reader = Reader {
    name: "langchain",
    providers: "LangChain",
    is_message: true,
    wrappers: &["kwargs", "data", "messages[-1]", "generations[][].message"],
    reasons: &[
        ReasonAt::ending("response_metadata.finish_reason", "finish_reason", "openai_compatible_content_filter"),
        ReasonAt::ending("response_metadata.stop_reason", "stop_reason", "anthropic_refusal"),
        ReasonAt::ending("response_metadata.stopReason", "stopReason", "bedrock_stop_reason"),
        // LangChain.js, of a stream of Bedrock.
        ReasonAt::ending("response_metadata.messageStop.stopReason", "stopReason", "bedrock_stop_reason"),
        ReasonAt::ending("response_metadata.done_reason", "done_reason", "openai_compatible_content_filter"),
        ReasonAt::ending("response_metadata.status", "status", "openai_responses_incomplete"),
        ReasonAt::ending("response_metadata.incomplete_details.reason", "incomplete_details.reason", "openai_responses_incomplete"),
        ReasonAt {
            path: "response_metadata.prompt_feedback.block_reason",
            field: "prompt_feedback.block_reason",
            rule: "gemini_prompt_feedback",
            test: Test::Custom("any reason but the unspecified, as a word or a number", blocked),
        },
        ReasonAt::ending("response_metadata.finishReason", "finishReason", "gemini_safety"),
        ReasonAt::ending("response_metadata.native_finish_reason", "native_finish_reason", "openai_compatible_content_filter"),
        ReasonAt {
            path: "response_metadata.amazon-bedrock-guardrailAction",
            field: "amazon-bedrock-guardrailAction",
            rule: "bedrock_guardrail_action",
            test: Test::Words(&[("INTERVENED", Category::Guardrail, Some(Stage::Output))]),
        },
        // Vertex: the prompt or the answer was blocked, whatever else is said.
        ReasonAt {
            path: "response_metadata.is_blocked",
            field: "is_blocked",
            rule: "gemini_safety",
            test: Test::Flag(Category::Safety, Some(Stage::Output)),
        },
        ReasonAt::ending("additional_kwargs.finish_reason", "finish_reason", "openai_compatible_content_filter"),
        // LangChain.js, for Gemini.
        ReasonAt::ending("additional_kwargs.finishReason", "finishReason", "gemini_safety"),
        ReasonAt::ending("additional_kwargs.stop_reason", "stop_reason", "anthropic_refusal"),
        ReasonAt::ending("additional_kwargs.stopReason", "stopReason", "bedrock_stop_reason"),
        ReasonAt::ending("generations[][].generation_info.finish_reason", "finish_reason", "openai_compatible_content_filter"),
        refusal("additional_kwargs.refusal"),
        refusal("additional_kwargs.provider_specific_fields.refusal"),
        part("content[]"),
        part("content[].value"),
        safeguard("response_metadata.safeguard_results[]"),
    ],
    calls: &[
        lifted("tool_calls[]"),
        lifted("invalid_tool_calls[]"),
        CallsAt { kind: CallsKind::Pieces, ..lifted("tool_call_chunks[]") },
        // The provider's own calls, which the lifted ones repeat. A call with another id was not lifted.
        CallsAt { arguments: &[], ..CallsAt::openai("additional_kwargs.tool_calls[]") },
        CallsAt { arguments: &[], ..CallsAt::function_call("additional_kwargs.function_call") },
        CallsAt::blocks("content[]"),
    ],
    texts: &["content"],
};
