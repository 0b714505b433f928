//! The capabilities that tools need.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use super::hosts::{AgentHost, HOSTS, hosts_of, tools_of};
use super::pack::{NO_CAPABILITY, Pack};

/// The key for all tools whose names start with `browser_`.
pub const BROWSER_FAMILY: &str = "browser_*";

/// The key for all tools that MCP servers offer: `mcp__<server>__<tool>`.
pub const MCP_FAMILY: &str = "mcp__*";

/// The capabilities that tools need where the configuration does not say otherwise. Names are exact, apart from the two families.
#[rustfmt::skip]
pub const DEFAULT_TOOL_CAPABILITIES: [(&str, &str); 27] = [
    ("bash",              "system.command.execute"),
    ("shell",             "system.command.execute"),
    ("terminal",          "system.command.execute"),
    ("execute_code",      "system.command.execute"),
    ("process",           "system.command.execute"),
    ("run_command",       "system.command.execute"),
    ("read_file",         "data.file.read"),
    ("ls",                "data.file.read"),
    ("view_image",        "data.file.read"),
    ("present_file",      "data.file.read"),
    ("search_files",      "data.file.read"),
    ("write_file",        "data.file.write"),
    ("str_replace",       "data.file.write"),
    ("patch",             "data.file.write"),
    ("web_fetch",         "web.fetch"),
    ("web_extract",       "web.fetch"),
    ("web_search",        "web.fetch"),
    ("image_search",      "web.fetch"),
    (BROWSER_FAMILY,      "web.browser"),
    (MCP_FAMILY,          "mcp.tool.execute"),
    ("send_message",      "messaging.send"),
    ("task",              "agent.session.create"),
    ("delegate_task",     "agent.session.create"),
    ("ask_clarification", NO_CAPABILITY),
    ("todo",              NO_CAPABILITY),
    ("write_todos",       NO_CAPABILITY),
    ("memory",            NO_CAPABILITY),
];

/// Returns the names of the tools that are known without configuration, those of all hosts among them.
pub fn known_tools() -> impl Iterator<Item = &'static str> {
    DEFAULT_TOOL_CAPABILITIES.into_iter().chain(tools_of(Some(&HOSTS))).map(|(tool, _)| tool)
}

/// TABLE: tools that load or run what their host names, so that no argument tells what they do.
const RUNNERS: [&str; 9] =
    ["Agent", "Skill", "SlashCommand", "Task", "activate_skill", "runSubagent", "spawn_agent", "task", "write_stdin"];

/// Returns what to write in a configuration for a tool that is not mapped.
pub(super) fn how_to_map(tool: &str) -> Cow<'static, str> {
    match hosts_of(tool).collect::<Vec<_>>().as_slice() {
        [host] => format!("this tool is known for {host}: write hosts: [{host}] in the provider's configuration").into(),
        [first, others @ ..] => {
            let others = others.join(", ");
            format!("this tool is known for several hosts: write hosts: [{first}], or {others} there, in the provider's configuration")
                .into()
        }
        [] if RUNNERS.contains(&tool) => {
            "it loads or runs what its host names: write in tool_capabilities a capability that only trusted agents have, and not none"
                .into()
        }
        [] => "write in tool_capabilities which capability it needs, or none".into(),
    }
}

/// The need of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Need {
    /// It needs an active passport only.
    Nothing,
    /// It needs an active passport only, and no argument of it may be the place of a file: another tool of its name may take files.
    NoFile,
    /// It needs a capability that has rules.
    Pack(Pack),
    /// It needs a capability without rules: the passport has it or not.
    Capability(String),
}

impl Need {
    fn read(capability: &str) -> Self {
        match Pack::of(capability) {
            _ if capability == NO_CAPABILITY => Self::Nothing,
            Some(pack) => Self::Pack(pack),
            None => Self::Capability(capability.to_owned()),
        }
    }

    /// Returns the capability that is needed; `None` if none is.
    #[must_use]
    pub fn capability(&self) -> Option<&str> {
        match self {
            Self::Nothing | Self::NoFile => None,
            Self::Pack(pack) => Some(pack.capability()),
            Self::Capability(capability) => Some(capability),
        }
    }

    /// Returns the id of the policy for it.
    #[must_use]
    pub fn policy_id(&self) -> Option<Cow<'static, str>> {
        match self {
            Self::Nothing | Self::NoFile => None,
            Self::Pack(pack) => Some(pack.policy_id().into()),
            Self::Capability(capability) => Some(format!("{capability}.v1").into()),
        }
    }
}

/// The needs of tools: the default table, overridden by the configuration's entries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CapabilityMap {
    exact: HashMap<String, Need>,
    browser: Option<Need>,
    mcp: Option<Need>,
}

impl Default for CapabilityMap {
    fn default() -> Self {
        Self::new(None, &BTreeMap::new())
    }
}

impl CapabilityMap {
    /// Returns the default table and the tools of these hosts, with these entries over them. An entry of `None` removes one. Without hosts
    /// those tools of all hosts count whose names mean one thing.
    #[must_use]
    pub fn new(hosts: Option<&[AgentHost]>, overrides: &BTreeMap<String, Option<String>>) -> Self {
        let known = DEFAULT_TOOL_CAPABILITIES.into_iter().chain(tools_of(hosts));
        let need = |capability| if capability == NO_CAPABILITY { Need::NoFile } else { Need::read(capability) };
        let mut entries: HashMap<String, Need> = known.map(|(tool, capability)| (tool.to_owned(), need(capability))).collect();
        for (tool, capability) in overrides {
            match capability {
                Some(capability) => drop(entries.insert(tool.clone(), Need::read(capability))),
                None => drop(entries.remove(tool)),
            }
        }
        let (browser, mcp) = (entries.remove(BROWSER_FAMILY), entries.remove(MCP_FAMILY));
        Self { exact: entries, browser, mcp }
    }

    /// Returns the need of a tool; `None` if it is not mapped, which denies.
    #[must_use]
    pub fn need(&self, tool_name: &str) -> Option<&Need> {
        let is_browser = || tool_name.strip_prefix("browser_").is_some_and(|action| !action.is_empty());
        let browser = || self.browser.as_ref().filter(|_| is_browser());
        let mcp = || self.mcp.as_ref().filter(|_| is_mcp(tool_name));
        self.exact.get(tool_name).or_else(browser).or_else(mcp)
    }
}

/// Returns whether a name is that of a tool of an MCP server: `mcp__<server>__<tool>`.
pub(super) fn is_mcp(tool_name: &str) -> bool {
    let parts = tool_name.strip_prefix("mcp__").and_then(|rest| rest.split_once("__"));
    parts.is_some_and(|(server, tool)| !server.is_empty() && !tool.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_exact() {
        let map = CapabilityMap::default();
        for (tool, expected) in [
            ("bash", Some("system.command.execute")),
            ("browser_click", Some("web.browser")),
            ("mcp__github__create_issue", Some("mcp.tool.execute")),
            ("mcp__a__b__c", Some("mcp.tool.execute")),
            ("Bash", Some("system.command.execute")),
            ("BASH", None),
            ("bash ", None),
            ("bashful_docs_reader", None),
            ("process_payment", None),
            ("readme_delete", None),
            ("browser_", None),
            ("browser_*", None),
            ("mcp__github", None),
            ("mcp____x", None),
            ("mcp__x__", None),
            ("mcp__*", None),
            ("", None),
        ] {
            let expected = expected.or((tool == "browser_*").then_some("web.browser"));
            assert_eq!(map.need(tool).and_then(Need::capability), expected, "{tool}");
        }
        assert_eq!(map.need("todo"), Some(&Need::NoFile));
    }

    #[test]
    fn entries_replace_single_ones_and_null_takes_them_away() {
        let entry = |tool: &str, capability: Option<&str>| (tool.to_owned(), capability.map(str::to_owned));
        let map = CapabilityMap::new(
            None,
            &BTreeMap::from([
                entry("bash", None),
                entry("my_shell", Some("system.command.execute")),
                entry("memory", Some("data.memory")),
                entry("clock", Some("none")),
                entry("mcp__*", None),
                entry("mcp__files__read", Some("data.file.read")),
            ]),
        );
        assert_eq!(map.need("bash"), None);
        assert_eq!(map.need("my_shell"), Some(&Need::Pack(Pack::Command)));
        assert_eq!(map.need("memory"), Some(&Need::Capability("data.memory".to_owned())));
        assert_eq!(map.need("clock"), Some(&Need::Nothing));
        assert_eq!(map.need("mcp__github__x"), None);
        assert_eq!(map.need("mcp__files__read"), Some(&Need::Pack(Pack::FileRead)));
        assert_eq!(map.need("read_file"), Some(&Need::Pack(Pack::FileRead)));
    }

    #[test]
    fn the_default_table_names_no_tool_twice() {
        let tools: std::collections::HashSet<_> = DEFAULT_TOOL_CAPABILITIES.iter().map(|(tool, _)| tool).collect();
        assert_eq!(tools.len(), DEFAULT_TOOL_CAPABILITIES.len());
    }
}
