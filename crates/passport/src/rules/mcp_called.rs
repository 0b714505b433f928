//! Tools that a call names in its arguments: a server that hands calls on may call them.

use tollgate_json::{DEPTH_MAX, Parser, Shape, Text, Value};

use super::super::super::argument_names::are_alike;
use super::super::super::name_kind::words_of;
use super::{Denial, Field, McpLimits, NameSet, TOOL_DENIED, WRITTEN_MAX, check_limit, read_name, server};

/// TABLE: names of arguments under which a tool is named.
const TOOL_NAMES: [&str; 6] = ["function", "function_name", "recipient_name", "tool", "tool_id", "tool_name"];

/// TABLE: names of arguments under which the server of a tool is named.
const SERVER_NAMES: [&str; 3] = ["mcp_server", "server", "server_name"];

/// The longest name of a tool, in bytes.
const NAME_BYTES_MAX: usize = 256;

/// Checks that no text at any depth of a value is the name of a tool that is denied. `key` is the name of the value, and `has_arguments` says
/// whether an object or a list stands beside it.
pub(super) fn check(limits: &McpLimits, key: &str, value: Value<'_>, has_arguments: bool, depth: usize) -> Result<(), Denial> {
    if let Some(text) = value.as_text().and_then(Text::into_str) {
        let mut parser = Parser::new();
        let inner = if is_written(&text) && depth < WRITTEN_MAX { parser.parse(text.trim().as_bytes(), DEPTH_MAX).ok() } else { None };
        return match inner {
            Some(inner) => check(limits, key, inner, has_arguments, depth + 1),
            None => check_name(limits, key, text.trim(), has_arguments),
        };
    }
    value.items().try_for_each(|item| check(limits, key, item, has_arguments, depth))?;
    let holds = |value: Value<'_>| match value.shape() {
        Shape::Object | Shape::Array => true,
        _ => value.as_text().and_then(Text::into_str).is_some_and(|text| is_written(&text)),
    };
    let has_name = value.members().any(|(key, _)| key.as_text().and_then(Text::into_str).is_some_and(|key| is_tool(&key)));
    let has_arguments = is_tool(key) || value.members().any(|(_, inner)| holds(inner));
    value.members().try_for_each(|(key, inner)| {
        let key = key.as_text().and_then(Text::into_str).unwrap_or_default();
        // Its arguments may stand under the tool's name.
        if holds(inner) {
            check_name(limits, "", &key, false)?;
        }
        if let Some(name) = inner.as_text().and_then(Text::into_str)
            && has_name
            && SERVER_NAMES.iter().any(|known| are_alike(known, &key))
        {
            limits.check_servers(&[server(&name).into()]).map_err(|_| denied())?;
        }
        check(limits, &key, inner, has_arguments, depth)
    })
}

fn denied() -> Denial {
    Denial::new(TOOL_DENIED, "An argument names a tool or a server that is not allowed, and a server may call it")
}

/// Returns whether a name is one under which a tool is named.
fn is_tool(key: &str) -> bool {
    TOOL_NAMES.iter().any(|known| are_alike(known, key))
}

/// Returns whether a text may be an object, a list or a text that is written out.
fn is_written(text: &str) -> bool {
    text.trim_start().starts_with(['{', '[', '"'])
}

/// Checks a text under a name. Under the name of a tool it is a tool's name, and so is a `name` beside what may be the tool's arguments.
/// Elsewhere a whole name of several words counts, as an entry of what is blocked writes it: a pattern would find words of other things.
fn check_name(limits: &McpLimits, key: &str, text: &str, has_arguments: bool) -> Result<(), Denial> {
    let is_tool = is_tool(key);
    if text.is_empty() || text.len() > NAME_BYTES_MAX || !is_tool && text.contains(char::is_whitespace) {
        return Ok(());
    }
    if text.starts_with("mcp__") {
        let names = read_name(text)?;
        return limits.check_servers(&names.servers).and_then(|()| limits.check_tools(&names.tools)).map_err(|_| denied());
    }
    let parts = || std::iter::once(text).chain(text.split(['/', ':', '.']).flat_map(|part| part.split("__")));
    let is_blocked = |blocked: &NameSet, part: &str| match is_tool || has_arguments && are_alike(key, "name") {
        true => blocked.blocks(part),
        false => blocked.names(part) && words_of(part).len() > 1,
    };
    check_limit(&limits.blocked_tools, |blocked| if parts().any(|part| is_blocked(blocked, part)) { Err(denied()) } else { Ok(()) })?;
    let Field::Valid(allowed) = &limits.allowed_tools else { return Ok(()) };
    let is_listed = allowed.contains(text) || parts().last().is_some_and(|last| allowed.contains(last));
    if is_tool && !is_listed { Err(denied()) } else { Ok(()) }
}
