//! The rules of `mcp.tool.execute`: tools of MCP servers, by server and tool.
//!
//! Both come from the tool's name, `mcp__<server>__<tool>`. A tool of another name that the configuration maps here has them in its
//! arguments. A missing list does not restrict, an empty one allows nothing.

use std::borrow::Cow;

use super::super::fields::without;
use super::super::names::NameSet;
use super::{Denial, Field, Malformed, Report, RuleCall, Rules, Section, check_limit, report};

const SERVER_DENIED: &str = "oap.mcp_server_not_allowed";
const TOOL_DENIED: &str = "oap.mcp_tool_not_allowed";

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
            found.and_then(|entries| Ok(NameSet::new(entries.iter().map(|entry| server(entry)).collect())))
        };
        let tools = |key| {
            section.strings(key).and_then(|entries| part_names(entries, &section.path_of(key), "a tool's own name, such as create_issue"))
        };
        let prefixes = section.strings("allowed_tool_prefixes");
        // Prefixes are another way to write what is allowed.
        let allowed_tools = match (tools("allowed_tools"), prefixes) {
            (Field::Malformed(malformed), _) | (_, Field::Malformed(malformed)) => Field::Malformed(malformed),
            (tools, Field::Absent) => tools.and_then(NameSet::read),
            (tools, Field::Valid(prefixes)) => {
                let tools = if let Field::Valid(tools) = tools { tools } else { Vec::new() };
                Field::Valid(NameSet::new(tools.into_iter().chain(prefixes.iter().map(|prefix| format!("{prefix}*"))).collect()))
            }
        };
        Self {
            allowed_servers: servers("allowed_servers"),
            blocked_servers: servers("blocked_servers"),
            allowed_tools,
            blocked_tools: tools("blocked_tools").and_then(NameSet::read),
        }
    }
}

/// Refuses whole names of tools, as agents and verdicts show them: the lists hold servers and tools apart, so that such an entry would match
/// nothing.
fn part_names(entries: Vec<String>, path: &str, expected: &str) -> Result<Vec<String>, Malformed> {
    without(entries, |entry| entry.starts_with("mcp__"), path, ("a name with mcp__ in front, which matches nothing", expected))
}

/// Returns a server's name in the form for comparing: `mcp://github/` and `github` are the same.
fn server(name: &str) -> String {
    name.strip_prefix("mcp://").unwrap_or(name).trim_end_matches('/').to_owned()
}

impl Rules for McpLimits {
    fn faults(&self) -> Vec<&Malformed> {
        [self.allowed_servers.malformed(), self.blocked_servers.malformed(), self.allowed_tools.malformed(), self.blocked_tools.malformed()]
            .into_iter()
            .flatten()
            .collect()
    }

    fn check(&self, call: &RuleCall<'_>, to: &mut dyn Report) {
        match names(call) {
            Ok(names) => {
                report(to, "servers", check(&self.allowed_servers, &self.blocked_servers, &names.servers, SERVER_DENIED, "MCP server"));
                report(to, "tools", check(&self.allowed_tools, &self.blocked_tools, &names.tools, TOOL_DENIED, "MCP tool"));
            }
            Err(denial) => report(to, "servers", Err(denial)),
        }
    }
}

/// The readings of server and tool, the most likely one first. A name with several double underscores can be cut in several ways.
struct Names<'c> {
    servers: Vec<Cow<'c, str>>,
    tools: Vec<Cow<'c, str>>,
}

fn names<'c>(call: &RuleCall<'c>) -> Result<Names<'c>, Denial> {
    if call.mcp.is_some() {
        let rest = call.tool_name.strip_prefix("mcp__").unwrap_or_default();
        let cuts = rest.match_indices("__").filter_map(|(at, _)| Some((rest.get(..at)?, rest.get(at + 2..)?)));
        let (servers, tools) = cuts.map(|(server, tool)| (Cow::Borrowed(server), Cow::Borrowed(tool))).unzip();
        return Ok(Names { servers, tools });
    }
    let missing = || Denial::new("oap.missing_required_context", "MCP context must include server and tool");
    let given = call.arguments.text("server")?.ok_or_else(missing)?;
    let tool = call.arguments.text("tool")?.ok_or_else(missing)?;
    Ok(Names { servers: vec![server(&given).into()], tools: vec![tool] })
}

/// Checks the readings of a name: the first one has to be allowed, and none may be blocked.
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
    check_limit(blocked, |blocked| match readings.iter().any(|name| blocked.contains(name)) {
        true => Err(Denial::new(code, format!("{what} is blocked"))),
        false => Ok(()),
    })
}
