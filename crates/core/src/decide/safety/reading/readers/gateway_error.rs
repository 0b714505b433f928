//! The guardrails of gateways, which answer with an error of their own: Databricks and Cloudflare.

use super::super::errors::databricks;
use super::super::{Reader, ReasonAt, Stage, Test};
use crate::decide::safety::Category;

pub(super) static READER: Reader = Reader {
    name: "gateway_error",
    providers: "Databricks, Cloudflare AI Gateway, FMS guardrails",
    reasons: &[
        ReasonAt {
            path: "message",
            field: "message.finishReason",
            rule: "gateway_guardrail",
            test: Test::Custom(
                "`finishReason` of the JSON text is `input_guardrail_triggered` or `output_guardrail_triggered`",
                databricks,
            ),
        },
        ReasonAt {
            path: "error[].code",
            field: "error.code",
            rule: "gateway_guardrail",
            test: Test::Numbers(&[(2016, Category::Guardrail, Some(Stage::Input)), (2017, Category::Guardrail, Some(Stage::Output))]),
        },
        ReasonAt {
            path: "warnings[].type",
            field: "warnings.type",
            rule: "gateway_guardrail",
            test: Test::Words(&[
                ("UNSUITABLE_INPUT", Category::Guardrail, Some(Stage::Input)),
                ("UNSUITABLE_OUTPUT", Category::Guardrail, Some(Stage::Output)),
            ]),
        },
    ],
    ..Reader::BLANK
};
