//! Tencent Hunyuan, whose members begin with capitals.

use super::super::{CallsAt, CallsKind, Reader, ReasonAt, Stage, Test};
use crate::decide::safety::Category;

pub(super) static READER: Reader = Reader {
    name: "tencent",
    providers: "Tencent Hunyuan",
    wrappers: &["Response"],
    reasons: &[
        ReasonAt::ending("Choices[].FinishReason", "FinishReason", "openai_compatible_content_filter"),
        ReasonAt {
            path: "Choices[].ModerationLevel",
            field: "ModerationLevel",
            rule: "tencent_moderation",
            test: Test::Words(&[("1", Category::Safety, Some(Stage::Input))]),
        },
        ReasonAt {
            path: "Error.Code",
            field: "Error.Code",
            rule: "api_error_policy",
            test: Test::Words(&[
                ("OperationDenied.TextIllegalDetected", Category::Safety, Some(Stage::Input)),
                ("OperationDenied.ImageIllegalDetected", Category::Safety, Some(Stage::Input)),
            ]),
        },
    ],
    calls: &[
        CallsAt {
            path: "Choices[].Message.ToolCalls[]",
            id: &["Id"],
            name: &["Function.Name"],
            arguments: &["Function", "Arguments"],
            ..CallsAt::BLANK
        },
        CallsAt { path: "Choices[].Delta.ToolCalls[]", id: &["Id"], name: &["Function.Name"], kind: CallsKind::Pieces, ..CallsAt::BLANK },
    ],
    texts: &["Choices[].Message.Content", "Choices[].Delta.Content"],
    ..Reader::BLANK
};
