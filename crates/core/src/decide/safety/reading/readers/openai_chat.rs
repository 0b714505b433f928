//! Chat completions of OpenAI, and of the many who speak its dialect: bodies, and the chunks of their streams.

use super::super::test::{Found, text_of, whole};
use super::super::{CallsAt, Ending, Reader, ReasonAt, ReasonValue, Test};
use crate::decide::safety::Category;
use crate::decide::safety::reading::Stage;
use tollgate_json::Value;

pub(super) static READER: Reader = Reader {
    name: "openai_chat",
    providers: "OpenAI Chat, Azure OpenAI, DeepSeek, GLM, Mistral, xAI, Moonshot, MiniMax, Baidu v2, Ark, StepFun, OpenRouter, LiteLLM, \
                Databricks, Groq, Together, vLLM, Gemini's endpoint for OpenAI's clients",
    // A batch's result holds the body.
    wrappers: &["response.body"],
    reasons: &[
        ReasonAt::ending("choices[].finish_reason", "finish_reason", "openai_compatible_content_filter"),
        // A gateway may translate a reason that it does not know to `stop`.
        native("choices[].native_finish_reason", "native_finish_reason"),
        native("choices[].provider_specific_fields.native_finish_reason", "provider_specific_fields.native_finish_reason"),
        refusal("choices[].message.refusal"),
        refusal("choices[].delta.refusal"),
        // LiteLLM.
        refusal("choices[].message.provider_specific_fields.refusal"),
        refusal("choices[].delta.provider_specific_fields.refusal"),
        part("choices[].message.content[]"),
        part("choices[].delta.content[]"),
        // Baidu: 1 is a warning.
        ReasonAt {
            path: "choices[].flag",
            field: "flag",
            rule: "openai_compatible_content_filter",
            test: Test::Custom("2, 3 or 4", baidu_flag),
        },
    ],
    calls: &[
        CallsAt::openai("choices[].message.tool_calls[]"),
        CallsAt::openai_pieces("choices[].delta.tool_calls[]"),
        CallsAt::function_call("choices[].message.function_call"),
        CallsAt::function_call("choices[].delta.function_call"),
        CallsAt::blocks("choices[].message.content[]"),
    ],
    texts: &["choices[].message.content", "choices[].delta.content", "choices[].text"],
    ..Reader::BLANK
};

/// The provider's own word behind a gateway, which is not asked whether the calls are whole: the gateway's word says that.
const fn native(path: &'static str, field: &'static str) -> ReasonAt {
    ReasonAt { path, field, rule: "openai_compatible_content_filter", test: Test::Custom("*word*", native_stop) }
}

fn native_stop(word: Value<'_>, _: Value<'_>) -> Option<Found> {
    let Ending::Stop { category, shown } = Ending::of(&text_of(word)?) else { return None };
    Some(Found::text(shown, category, Some(Stage::Output)))
}

/// The refusal of structured outputs quotes the model, so a word is shown for it.
pub(super) const fn refusal(path: &'static str) -> ReasonAt {
    ReasonAt { path, field: "refusal", rule: "openai_refusal", test: Test::Text("refusal", Category::Refusal) }
}

/// A part of a message that is a refusal.
pub(super) const fn part(path: &'static str) -> ReasonAt {
    ReasonAt { path, field: "type", rule: "openai_refusal", test: Test::Custom("a part of type `refusal`", refusal_part) }
}

fn refusal_part(part: Value<'_>, _: Value<'_>) -> Option<Found> {
    part.get("type")?.is_text("refusal").then(|| Found::text("refusal", Category::Refusal, Some(Stage::Output)))
}

fn baidu_flag(flag: Value<'_>, _: Value<'_>) -> Option<Found> {
    let number = whole(flag).filter(|number| (2..=4).contains(number))?;
    Some(Found::of(ReasonValue::Number(number), Category::Safety, Some(Stage::Output)))
}
