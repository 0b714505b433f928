//! The Responses API of OpenAI and of those who speak it (Azure, xAI, Ark), with its events, messages of assistants, and Realtime.

use tollgate_json::Value;

use super::super::test::{Found, ReasonValue};
use super::super::{CallsAt, Reader, ReasonAt, Stage, Test};
use super::openai_chat::part;
use crate::decide::safety::Category;

/// The types of items that the host runs, with the tool's name where the item has no name. The provider runs the others.
const CALLS: &[(&str, Option<&str>)] = &[
    ("function_call", None),
    ("custom_tool_call", None),
    ("shell_call", Some("shell")),
    ("local_shell_call", Some("local_shell")),
    ("apply_patch_call", Some("apply_patch")),
    ("computer_call", Some("computer")),
];

const fn calls(path: &'static str) -> CallsAt {
    CallsAt { path, types: CALLS, id: &["call_id", "id"], name: &["name"], ..CallsAt::BLANK }
}

pub(super) static READER: Reader = Reader {
    name: "openai_responses",
    providers: "OpenAI Responses, Azure OpenAI, xAI, Ark, OpenAI Assistants and Realtime",
    // Events hold the response.
    wrappers: &["response"],
    reasons: &[
        ReasonAt::ending("incomplete_details.reason", "incomplete_details.reason", "openai_responses_incomplete"),
        ReasonAt::ending("status_details.reason", "status_details.reason", "openai_responses_incomplete"),
        ReasonAt {
            path: "content_filters[]",
            field: "content_filters.blocked",
            rule: "openai_responses_incomplete",
            test: Test::Custom("`blocked` is true", azure_filter),
        },
        part("output[].content[]"),
        part("item.content[]"),
        part("part"),
        ReasonAt {
            path: "type",
            field: "type",
            rule: "openai_refusal",
            test: Test::Words(&[
                ("response.refusal.done", Category::Refusal, Some(Stage::Output)),
                ("response.refusal.delta", Category::Refusal, Some(Stage::Output)),
            ]),
        },
        ReasonAt::ending("status", "status", "openai_responses_incomplete"),
    ],
    calls: &[calls("output[]"), calls("item")],
    texts: &["output[].content[]", "item.content[]", "output_text"],
    ..Reader::BLANK
};

fn azure_filter(filter: Value<'_>, _: Value<'_>) -> Option<Found> {
    filter.get("blocked").filter(|flag| flag.as_bool() == Some(true))?;
    let stage = match filter.get("source_type") {
        Some(source) if source.is_text("prompt") => Some(Stage::Input),
        Some(source) if source.is_text("completion") => Some(Stage::Output),
        _ => None,
    };
    Some(Found::of(ReasonValue::Flag(true), Category::Safety, stage))
}
