//! The errors of providers' APIs. Codes are matched exactly, and never inside messages; a message counts only where a provider has nothing
//! else, and only from its beginning.

use super::super::errors::{codes, flagged_input, messages, raw_errors, types};
use super::super::{Reader, ReasonAt, Test};

const fn code(path: &'static str) -> ReasonAt {
    ReasonAt { path, field: path, rule: "api_error_policy", test: Test::Custom("a code of the table of errors", codes) }
}

const fn message(path: &'static str) -> ReasonAt {
    ReasonAt { path, field: path, rule: "api_error_policy", test: Test::Custom("a message of the table of errors", messages) }
}

const fn kind(path: &'static str) -> ReasonAt {
    ReasonAt { path, field: path, rule: "api_error_policy", test: Test::Custom("a type of the table of errors", types) }
}

pub(super) static READER: Reader = Reader {
    name: "api_error",
    providers: "OpenAI, Azure OpenAI, Anthropic, Vertex AI, DeepSeek, GLM, DashScope, xAI, Moonshot, MiniMax, Ark, StepFun, OpenRouter, LiteLLM",
    reasons: &[
        code("error.code"),
        // Clients of OpenAI hand on what is in `error`.
        code("code"),
        kind("error.type"),
        kind("type"),
        // OpenRouter writes the provider's error into the choice.
        code("choices[].error.code"),
        kind("choices[].error.metadata.error_type"),
        message("choices[].error.message"),
        code("error.innererror.code"),
        code("innererror.code"),
        kind("error.metadata.error_type"),
        ReasonAt {
            path: "error.metadata.raw",
            field: "error.metadata.raw",
            rule: "api_error_policy",
            test: Test::Custom("an error as a JSON text", raw_errors),
        },
        ReasonAt {
            path: "error.metadata.flagged_input",
            field: "error.metadata.flagged_input",
            rule: "api_error_policy",
            test: Test::Custom("any text, without `error_type` beside it", flagged_input),
        },
        message("error.message"),
        // What boto3 raises.
        message("Error.Message"),
        message("message"),
        message("error"),
        ReasonAt {
            path: "",
            field: "error",
            rule: "api_error_policy",
            test: Test::Custom("a message of the table of errors, or an error as a JSON text", |text, beside| {
                messages(text, beside).or_else(|| raw_errors(text, beside))
            }),
        },
    ],
    ..Reader::BLANK
};
