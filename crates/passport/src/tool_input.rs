//! The arguments of a tool call, in the forms in which events hold them.

use tollgate_json::{Text, Value};

/// Tool arguments as they came.
#[derive(Debug, Clone)]
pub enum ToolInput<'d> {
    /// The arguments are left out, or null.
    Absent {
        /// Whether the field was there as an explicit null.
        null: bool,
    },
    /// `tool_input`, or `arguments` that were sent as a value: any JSON value.
    Value(Value<'d>),
    /// `arguments`: a JSON text inside a string.
    Encoded(Text<'d>),
}
