//! Reading what a provider sent, in the provider's own shape: why the response ended, which tools it calls, and whether it has text.
//!
//! ```text
//! body ─▶ paths (all readers' paths as one tree) ─▶ scan: stops and endings ─▶ content: calls and text, after a stop
//! ```
//!
//! Each shape is a file in `readers`: a table of paths, with what their values mean. All tables are merged into one tree, and a body is
//! walked along it once, so that more readers do not cost more time. Nothing but these paths is read: a tool's input or a message's text
//! that holds a `stop_reason` of its own is no signal.

mod calls;
mod document;
mod ending;
mod errors;
mod explain;
pub(crate) mod outline;
mod paths;
mod readers;
mod sanitise;
mod scan;
mod test;

pub(super) use calls::nonempty_text;
pub use calls::{CalledTool, ResponseContent};
pub use document::page;
pub use ending::Ending;
pub(super) use ending::is_stop_word;
pub use errors::table as errors_table;
pub use explain::{Explanation, ReadReason};
pub use readers::READERS;
pub use sanitise::{sanitise_message, sanitise_response};
pub use scan::{Scan, Signal};
pub(super) use test::refined;
pub use test::{ReasonValue, Stage, Test};

/// One shape of bodies: where such a body says why it ended, where its calls are, and where its text is. Paths are members joined by dots;
/// `[]` stands for every item of an array. Members with dots of their own are written in quotes: `"gen_ai.response.finish_reasons"[]`.
#[derive(Debug)]
pub struct Reader {
    /// The shape's name, as `signals explain` and metrics write it.
    pub name: &'static str,
    /// Who sends such bodies, for the page of providers.
    pub providers: &'static str,
    /// Whether it is a LangChain message (`message` of an event) and no body of a provider (`response`, `error`).
    pub is_message: bool,
    /// The paths behind which the same kind of body stands again, in a wrapper.
    pub wrappers: &'static [&'static str],
    /// The places that say why the response ended. Of several that speak the first in this order counts.
    pub reasons: &'static [ReasonAt],
    /// The places where tool calls are.
    pub calls: &'static [CallsAt],
    /// The places where text for the user is: a text, or an array of texts and blocks.
    pub texts: &'static [&'static str],
}

impl Reader {
    const BLANK: Self = Self { name: "", providers: "", is_message: false, wrappers: &[], reasons: &[], calls: &[], texts: &[] };
}

/// A place that says why a response ended.
#[derive(Debug)]
pub struct ReasonAt {
    /// The path of the value.
    pub path: &'static str,
    /// The field as verdicts name it: the path without the wrappers and arrays around it.
    pub field: &'static str,
    /// The name of the rule, which verdicts show as the detector.
    pub rule: &'static str,
    /// What the value has to be.
    pub test: Test,
}

impl ReasonAt {
    /// A place with a word for how the response stands.
    const fn ending(path: &'static str, field: &'static str, rule: &'static str) -> Self {
        Self { path, field, rule, test: Test::Ending(&[]) }
    }
}

/// A place where tool calls are.
#[derive(Debug)]
pub struct CallsAt {
    /// The path of one call.
    pub path: &'static str,
    /// The member of a call that holds its type.
    pub type_member: &'static str,
    /// The types that count, with the tool's name where the type stands for it; empty if every value counts.
    pub types: &'static [(&'static str, Option<&'static str>)],
    /// The paths of the id within a call; the first that is there counts.
    pub id: &'static [&'static str],
    /// The paths of the tool's name within a call.
    pub name: &'static [&'static str],
    /// The members that lead to the arguments within a call, where they are a JSON text of their own; else none.
    pub arguments: &'static [&'static str],
    /// What else is known of the place.
    pub kind: CallsKind,
}

/// What is known of a place where tool calls are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallsKind {
    /// Each item is a call.
    Whole,
    /// The items are pieces of calls, of which only the first has an id and a name.
    Pieces,
    /// A call here may repeat a call of the places before, with the same name and without an id.
    Mirror,
}

impl CallsAt {
    const BLANK: Self =
        Self { path: "", type_member: "type", types: &[], id: &["id"], name: &["name"], arguments: &[], kind: CallsKind::Whole };

    /// Calls as OpenAI writes them: functions and custom tools.
    const fn openai(path: &'static str) -> Self {
        let name = &["function.name", "custom.name", "name"];
        Self { path, name, arguments: &["function", "arguments"], ..Self::BLANK }
    }

    /// Pieces of such calls, in the chunks of a stream.
    const fn openai_pieces(path: &'static str) -> Self {
        Self { arguments: &[], kind: CallsKind::Pieces, ..Self::openai(path) }
    }

    /// The older `function_call`, which has no id.
    const fn function_call(path: &'static str) -> Self {
        Self { path, id: &[], arguments: &["arguments"], kind: CallsKind::Mirror, ..Self::BLANK }
    }

    /// Blocks of a message's content that the host runs. The provider itself runs `server_tool_use` and `mcp_tool_use`.
    const fn blocks(path: &'static str) -> Self {
        let types = &[
            ("tool_use", None),
            ("tool_call", None),
            ("invalid_tool_call", None),
            ("function_call", None),
            ("custom_tool_call", None),
            ("tool-call", None),
        ];
        // The items of the Responses API have an `id` of their own beside the call's.
        Self { path, types, id: &["call_id", "toolCallId", "id"], name: &["name", "toolName"], ..Self::BLANK }
    }
}
