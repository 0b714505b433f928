//! Amazon Bedrock: Converse and its stream, InvokeModel with Titan and others, and guardrails that are applied alone.

use super::super::test::Found;
use super::super::{CallsAt, Reader, ReasonAt, Stage, Test};
use crate::decide::safety::Category;

const CALL: CallsAt = CallsAt { id: &["toolUseId"], ..CallsAt::BLANK };

pub(super) static READER: Reader = Reader {
    name: "bedrock",
    providers: "Amazon Bedrock Converse, InvokeModel and ApplyGuardrail",
    reasons: &[
        ReasonAt::ending("stopReason", "stopReason", "bedrock_stop_reason"),
        ReasonAt::ending("messageStop.stopReason", "stopReason", "bedrock_stop_reason"),
        ReasonAt::ending("results[].completionReason", "completionReason", "bedrock_stop_reason"),
        // Mistral's models. vLLM writes the user's stop string there.
        ReasonAt {
            path: "choices[].stop_reason",
            field: "stop_reason",
            rule: "bedrock_stop_reason",
            test: Test::EndingWithout("finish_reason"),
        },
        ReasonAt::ending("outputs[].stop_reason", "stop_reason", "bedrock_stop_reason"),
        // The stop reason says `end_turn` beside it.
        ReasonAt {
            path: "amazon-bedrock-guardrailAction",
            field: "amazon-bedrock-guardrailAction",
            rule: "bedrock_guardrail_action",
            test: Test::Words(&[("INTERVENED", Category::Guardrail, Some(Stage::Output))]),
        },
        ReasonAt {
            path: "action",
            field: "action",
            rule: "bedrock_guardrail_action",
            test: Test::Custom("`GUARDRAIL_INTERVENED`, beside `assessments`", |action, beside| {
                let is_guardrail = action.is_text("GUARDRAIL_INTERVENED") && beside.get("assessments").is_some();
                is_guardrail.then(|| Found::text("GUARDRAIL_INTERVENED", Category::Guardrail, None))
            }),
        },
    ],
    calls: &[CallsAt { path: "output.message.content[].toolUse", ..CALL }, CallsAt { path: "contentBlockStart.start.toolUse", ..CALL }],
    texts: &["output.message.content[]", "contentBlockDelta.delta", "results[].outputText", "generation"],
    ..Reader::BLANK
};
