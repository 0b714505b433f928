//! The rules of `mcp.tool.execute`: tools of MCP servers, by server and tool.
//!
//! Both come from the tool's name, `mcp__<server>__<tool>`. A tool of another name that the configuration maps here has them in its
//! arguments. A missing list does not restrict, an empty one allows nothing.
//!
//! What a tool does with its arguments is not known. Those that look like a path or an address are held to the limits of files and of the
//! web: secrets are not read and private networks not reached through a server either.

#[path = "mcp_called.rs"]
mod called;
#[path = "mcp_arguments.rs"]
mod mcp_arguments;
#[path = "mcp_effects.rs"]
mod mcp_effects;
#[path = "mcp_options.rs"]
mod mcp_options;
#[path = "mcp_paths.rs"]
mod mcp_paths;
pub(super) use mcp_arguments::is_scheme;
pub(super) use mcp_effects::takes_whole;

use std::borrow::Cow;
use std::cell::Cell;

use tollgate_json::Text;

use super::super::beginning::count_parents;
use super::super::capabilities::is_mcp;
use super::super::fields::{is_expression, without};
use super::super::hosts::RESOURCE_TOOLS;
use super::super::names::NameSet;
use super::budget;
use super::secrets::{denial_of, names_secret};
use super::{Denial, Field, Malformed, Report, RuleCall, Rules, Section, check_limit, report};

const SERVER_DENIED: &str = "oap.mcp_server_not_allowed";
const TOOL_DENIED: &str = "oap.mcp_tool_not_allowed";

/// How often an object may be written out within another.
const WRITTEN_MAX: usize = 4;

/// At how many double underscores a name is cut into a server and a tool.
const READINGS_MAX: usize = 16;

#[derive(Debug)]
pub(super) struct McpLimits {
    allowed_servers: Field<NameSet>,
    blocked_servers: Field<NameSet>,
    allowed_tools: Field<NameSet>,
    blocked_tools: Field<NameSet>,
}

impl McpLimits {
    pub(super) fn new(section: &Section<'_>) -> Self {
        let servers = |key| {
            let found =
                section.strings(key).and_then(|entries| part_names(entries, &section.path_of(key), "a server's own name, such as github"));
            found.map(|entries| entries.iter().map(|entry| server(entry)).collect::<Vec<_>>())
        };
        let tools = |key| {
            section.strings(key).and_then(|entries| part_names(entries, &section.path_of(key), "a tool's own name, such as create_issue"))
        };
        let prefixes = section.strings("allowed_tool_prefixes");
        // Prefixes are another way to write what is allowed.
        let allowed_tools = match (tools("allowed_tools"), prefixes) {
            (Field::Malformed(malformed), _) | (_, Field::Malformed(malformed)) => Field::Malformed(malformed),
            (tools, Field::Absent) => tools.map(NameSet::new),
            (tools, Field::Valid(prefixes)) => {
                let tools = if let Field::Valid(tools) = tools { tools } else { Vec::new() };
                Field::Valid(NameSet::new(tools.into_iter().chain(prefixes.iter().map(|prefix| format!("{prefix}*"))).collect()))
            }
        };
        let allowed_servers = servers("allowed_servers");
        let blocked_tools = tools("blocked_tools").and_then(|entries| {
            let known = if let Field::Valid(servers) = &allowed_servers { servers.as_slice() } else { &[] };
            blocked_names(without_servers(entries, known, &section.path_of("blocked_tools"))?, &section.path_of("blocked_tools"))
        });
        Self {
            allowed_servers: allowed_servers.map(NameSet::new),
            blocked_servers: servers("blocked_servers").and_then(|entries| blocked_names(entries, &section.path_of("blocked_servers"))),
            allowed_tools,
            blocked_tools,
        }
    }
}

impl McpLimits {
    fn check_servers(&self, readings: &[Cow<'_, str>]) -> Result<(), Denial> {
        check(&self.allowed_servers, &self.blocked_servers, readings, SERVER_DENIED, "MCP server")
    }

    fn check_tools(&self, readings: &[Cow<'_, str>]) -> Result<(), Denial> {
        check(&self.allowed_tools, &self.blocked_tools, readings, TOOL_DENIED, "MCP tool")
    }
}

/// Refuses whole names of tools, as agents and verdicts show them: the lists hold servers and tools apart, so that such an entry would match
/// nothing.
fn part_names(entries: Vec<String>, path: &str, expected: &str) -> Result<Vec<String>, Malformed> {
    without(entries, |entry| entry.starts_with("mcp_"), path, ("a name with mcp_ in front, which matches nothing", expected))
}

/// Refuses entries that name a tool behind a server of the passport, as in `github.delete_repo`: the lists hold servers and tools apart.
fn without_servers(entries: Vec<String>, servers: &[String], path: &str) -> Result<Vec<String>, Malformed> {
    let names_server = |entry: &str| entry.split_once(['.', '/']).is_some_and(|(server, _)| servers.iter().any(|known| known == server));
    without(
        entries,
        names_server,
        path,
        ("a server's name in front of a tool's, which matches nothing", "the tool's own name, such as delete_*"),
    )
}

/// Returns the names of a list of what is blocked, at `path`. A rule of another form would block nothing.
fn blocked_names(entries: Vec<String>, path: &str) -> Result<NameSet, Malformed> {
    let is_sign = |char: char| char.is_whitespace() || char.is_control() || "()[]{}$\\\"'`;,<>!".contains(char);
    let is_foreign = |entry: &str| {
        let is_other = path.ends_with("_tools") && entry.contains("__") || entry.contains(':') || !entry.is_ascii();
        is_other || entry.contains(is_sign) || is_expression(entry)
    };
    let entries =
        without(entries, is_foreign, path, ("a rule of another form, which matches nothing", "a name, such as github or delete_*"))?;
    Ok(NameSet::blocking(entries))
}

/// Returns a server's name in the form for comparing: `mcp://github/` and `github` are the same.
fn server(name: &str) -> String {
    name.strip_prefix("mcp://").unwrap_or(name).trim_end_matches('/').to_owned()
}

impl Rules for McpLimits {
    fn faults(&self) -> Vec<Option<&Malformed>> {
        let (servers, tools) = ([&self.allowed_servers, &self.blocked_servers], [&self.allowed_tools, &self.blocked_tools]);
        servers.into_iter().chain(tools).map(Field::malformed).collect()
    }

    fn check(&self, call: &RuleCall<'_>, to: &mut dyn Report) {
        match names(call) {
            Ok(names) => {
                report(to, "servers", self.check_servers(&names.servers));
                near(&self.allowed_servers, &names.servers, "allowed_servers", to);
                report(to, "tools", self.check_tools(&names.tools));
                near(&self.allowed_tools, &names.tools, "allowed_tools", to);
            }
            Err(denial) => report(to, "servers", Err(denial)),
        }
        let lists = [&self.allowed_servers, &self.blocked_servers, &self.allowed_tools, &self.blocked_tools];
        if let Some(root) = call.arguments.0.filter(|_| lists.iter().any(|list| !matches!(list, Field::Absent))) {
            report(to, "tools", called::check(self, "", root, false, 0));
        }
        match call.sorted() {
            Ok(sorted) => match budget::check_places(sorted.places(), call.files.limits.weight()) {
                Ok(()) => {
                    mcp_arguments::check_arguments(call, &sorted, to);
                    mcp_options::check_headers(call, to);
                }
                Err(denial) => report(to, "budget", Err(denial)),
            },
            Err(denial) => report(to, "arguments", Err(denial)),
        }
    }
}

/// TABLE: names of arguments that say what is left out.
const LEFT_OUT: [&str; 6] = ["exclude", "excludes", "exclude_pattern", "exclude_patterns", "ignore", "ignore_patterns"];
/// How many texts under such names are looked at.
const LEFT_OUT_MAX: usize = 64;

/// Checks that no text of a call is the path of a secret, whatever the argument is called: no text that is said begins and ends so.
pub(super) fn check_secrets(call: &RuleCall<'_>) -> Result<(), Denial> {
    let is_secret = |text: &str| {
        let text = text.trim();
        let path = text.get(..5).filter(|scheme| scheme.eq_ignore_ascii_case("file:")).and_then(|_| text.get(5..)).unwrap_or(text);
        let is_path = path.contains('/') && !path.contains("://") && !path.contains(char::is_whitespace);
        is_path && names_secret(path)
    };
    // What a server leaves out is no file that it reads, unless another argument names it too.
    let named = if call.names.is_of_server() { call.arguments.named(&LEFT_OUT) } else { Vec::new() };
    let values = named.into_iter().flat_map(|(_, value)| std::iter::once(value).chain(value.items()));
    let left_out: Vec<Cow<'_, str>> = values.filter_map(|value| value.as_text().and_then(Text::into_str)).take(LEFT_OUT_MAX).collect();
    let times = Cell::new(0);
    let is_read = |text: &str| {
        let is_left_out = is_secret(text) && left_out.iter().any(|other| other == text);
        times.set(times.get() + usize::from(is_left_out));
        is_secret(text) && !is_left_out
    };
    let is_named = call.arguments.has_text(is_read);
    let expected = left_out.iter().filter(|text| is_secret(text)).count();
    if is_named || times.get() > expected { Err(denial_of("")) } else { Ok(()) }
}

/// Returns whether the name of an argument is data itself: a path from the root, a home or the folder above, or an address.
fn is_place_by_name(name: &str) -> bool {
    name.starts_with(['/', '~', '\\']) || name.contains("://") || name.contains('/') && names_secret(name) || count_parents(name) > 0
}

/// The readings of server and tool, the most likely one first. A name with several double underscores can be cut in several ways.
struct Names<'c> {
    servers: Vec<Cow<'c, str>>,
    tools: Vec<Cow<'c, str>>,
}

/// Reads the name of a tool of a server: `mcp__<server>__<tool>`.
fn read_name(name: &str) -> Result<Names<'_>, Denial> {
    let rest = name.strip_prefix("mcp__").unwrap_or_default();
    let cuts = rest.match_indices("__").filter_map(|(at, _)| Some((rest.get(..at)?, rest.get(at + 2..)?)));
    let (servers, tools): (Vec<_>, Vec<_>) =
        cuts.take(READINGS_MAX + 1).map(|(server, tool)| (Cow::Borrowed(server), Cow::Borrowed(tool))).unzip();
    if servers.len() <= READINGS_MAX {
        return Ok(Names { servers, tools });
    }
    Err(Denial::new(
        "oap.too_costly",
        format!("The name of a tool has more than {READINGS_MAX} double underscores, at which it may be cut"),
    ))
}

fn names<'c>(call: &RuleCall<'c>) -> Result<Names<'c>, Denial> {
    if is_mcp(call.tool_name) {
        return read_name(call.tool_name);
    }
    let given = call.arguments.text("server")?;
    if RESOURCE_TOOLS.split(' ').any(|tool| tool == call.tool_name) {
        let servers = given.iter().map(|given| server(given).into()).collect();
        return Ok(Names { servers, tools: vec![call.tool_name.into()] });
    }
    let missing = || Denial::new("oap.missing_required_context", "MCP context must include server and tool");
    let given = given.ok_or_else(missing)?;
    let tool = call.arguments.text("tool")?.ok_or_else(missing)?;
    Ok(Names { servers: vec![server(&given).into()], tools: vec![tool] })
}

/// Tells which entry of a list a name comes nearest to that is not on the list.
fn near(allowed: &Field<NameSet>, readings: &[Cow<'_, str>], list: &str, to: &mut dyn Report) {
    let (Field::Valid(allowed), Some(name)) = (allowed, readings.first()) else { return };
    if !allowed.contains(name) {
        to.near(&|| Some(format!("the nearest entry of {list} is '{}'", allowed.nearest(name)?)));
    }
}

/// Checks the readings of a name: the first reading has to be allowed, and no reading may be blocked.
fn check(
    allowed: &Field<NameSet>,
    blocked: &Field<NameSet>,
    readings: &[Cow<'_, str>],
    code: &'static str,
    what: &str,
) -> Result<(), Denial> {
    check_limit(allowed, |allowed| match readings.first() {
        Some(name) if allowed.contains(name) => Ok(()),
        _ => Err(Denial::new(code, format!("{what} is not in allowed list"))),
    })?;
    // Gateways take names apart.
    let is_blocked = |blocked: &NameSet, name: &str| blocked.blocks(name) || name.split(['/', ':', '.']).any(|part| blocked.blocks(part));
    // A call that names no server is about all servers.
    let is_denied = |blocked: &NameSet| readings.is_empty() || readings.iter().any(|name| is_blocked(blocked, name));
    check_limit(blocked, |blocked| if is_denied(blocked) { Err(Denial::new(code, format!("{what} is blocked"))) } else { Ok(()) })
}
