//! The tools of common hosts of agents: what each needs, and what its arguments are where the tables of `argument_names` say otherwise.
//!
//! The names are those of the hosts' own documentation. A tool that two hosts mean differently, or whose name is a common word, counts only
//! where the configuration names its host.

use super::argument_role::ArgumentRole;
use super::pack::{NO_CAPABILITY, Pack};
use ArgumentRole::{Command, Folder, Patch, Path, Pattern, Refused, Text, Words};

const COMMAND: &str = Pack::Command.capability();
const READ: &str = Pack::FileRead.capability();
const WRITE: &str = Pack::FileWrite.capability();
const FETCH: &str = Pack::WebFetch.capability();
const SESSION: &str = Pack::Session.capability();
const MCP: &str = Pack::Mcp.capability();

/// A host of agents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AgentHost {
    /// Its name in configuration.
    pub name: &'static str,
    /// Its tools, with blanks between them, by the capability that they need.
    tools: &'static [(&'static str, &'static str)],
    /// Those of its tools whose names are common words.
    common: &'static [&'static str],
    /// What arguments of its tools are: tool, argument, role.
    arguments: &'static [(&'static str, &'static str, ArgumentRole)],
}

/// Arguments of tools that several hosts name as Claude Code does.
const BASH_IN_BACKGROUND: (&str, &str, ArgumentRole) = ("Bash", "run_in_background", Text);
const DOMAINS_OF_SEARCH: [(&str, &str, ArgumentRole); 2] = [("WebSearch", "allowed_domains", Text), ("WebSearch", "blocked_domains", Text)];

/// A host writes the text of a patch under one of these names.
const APPLY_PATCH: (&str, &str, ArgumentRole) = ("apply_patch", "command", Patch);
const APPLY_PATCH_INPUT: (&str, &str, ArgumentRole) = ("apply_patch", "input", Patch);
const APPLY_PATCH_TEXT: (&str, &str, ArgumentRole) = ("apply_patch", "patch", Patch);

/// Every host, by name.
pub const HOSTS: [AgentHost; 8] = [
    AgentHost {
        name: "claude-code",
        tools: &[
            (COMMAND, "Bash"),
            (READ, "Read Glob Grep LS LSP"),
            (WRITE, "Write Edit MultiEdit NotebookEdit"),
            (FETCH, "WebFetch WebSearch"),
            (SESSION, "Task Agent"),
            (MCP, RESOURCE_TOOLS),
            (
                NO_CAPABILITY,
                "TodoWrite TaskCreate TaskUpdate TaskList TaskGet TaskOutput TaskStop BashOutput KillShell ToolSearch \
                 AskUserQuestion EnterPlanMode ExitPlanMode",
            ),
        ],
        common: &[],
        arguments: &[BASH_IN_BACKGROUND, DOMAINS_OF_SEARCH[0], DOMAINS_OF_SEARCH[1]],
    },
    AgentHost {
        name: "codex",
        tools: &[
            // Its hooks name the shell `Bash`.
            (COMMAND, "Bash exec_command shell_command"),
            (READ, "list_dir grep_files"),
            (WRITE, "apply_patch"),
            (NO_CAPABILITY, "update_plan request_user_input"),
        ],
        common: &[],
        arguments: &[
            APPLY_PATCH,
            APPLY_PATCH_INPUT,
            APPLY_PATCH_TEXT,
            BASH_IN_BACKGROUND,
            ("exec_command", "cmd", Command),
            ("exec_command", "workdir", Folder),
            ("shell_command", "workdir", Folder),
            ("shell", "command", Words),
            ("shell", "workdir", Folder),
            ("grep_files", "pattern", Text),
        ],
    },
    AgentHost {
        name: "gemini-cli",
        tools: &[
            (COMMAND, "run_shell_command"),
            (READ, "list_directory read_many_files search_file_content grep_search glob"),
            (WRITE, "replace"),
            (FETCH, "google_web_search"),
            (NO_CAPABILITY, "save_memory ask_user enter_plan_mode exit_plan_mode"),
        ],
        common: &["glob", "replace"],
        arguments: &[
            ("run_shell_command", "dir_path", Folder),
            ("run_shell_command", "directory", Folder),
            ("read_many_files", "include", Path),
        ],
    },
    AgentHost {
        name: "cursor",
        tools: &[
            (COMMAND, "run_terminal_cmd Shell"),
            (READ, "list_dir grep_search file_search glob_file_search codebase_search read_lints Read Grep Glob LS ReadLints"),
            (WRITE, "edit_file search_replace delete_file Write StrReplace Delete EditNotebook"),
            (FETCH, "WebFetch WebSearch"),
            (SESSION, "Task"),
            (NO_CAPABILITY, "todo_write fetch_rules TodoWrite"),
        ],
        common: &[],
        arguments: &[
            ("Shell", "cwd", Folder),
            ("Shell", "working_directory", Folder),
            ("codebase_search", "target_directories", Path),
            ("EditNotebook", "cell_language", Text),
            ("EditNotebook", "target_notebook", Path),
            ("file_search", "query", Pattern),
            DOMAINS_OF_SEARCH[0],
            DOMAINS_OF_SEARCH[1],
        ],
    },
    AgentHost {
        name: "copilot",
        tools: &[
            // Events in PascalCase name the tool as Claude Code does.
            (COMMAND, "Bash powershell"),
            (READ, "view grep glob Read Grep Glob LS"),
            (WRITE, "create edit apply_patch Write Edit MultiEdit"),
            (FETCH, "WebFetch WebSearch"),
            (SESSION, "Task"),
            (NO_CAPABILITY, "report_intent update_todo read_bash stop_bash TodoWrite"),
        ],
        common: &["bash", "view", "grep", "glob", "create", "edit"],
        arguments: &[
            BASH_IN_BACKGROUND,
            DOMAINS_OF_SEARCH[0],
            DOMAINS_OF_SEARCH[1],
            ("bash", "mode", Text),
            // What the shells of POSIX take for one word may be two commands to PowerShell, which has other quotes.
            ("powershell", "command", Refused),
            APPLY_PATCH,
            APPLY_PATCH_INPUT,
            APPLY_PATCH_TEXT,
        ],
    },
    AgentHost {
        name: "vscode",
        tools: &[
            (COMMAND, "run_in_terminal"),
            (READ, "list_dir grep_search file_search semantic_search get_errors"),
            (
                WRITE,
                "editFiles create_file create_directory replace_string_in_file multi_replace_string_in_file insert_edit_into_file \
                 edit_notebook_file apply_patch",
            ),
            (FETCH, "fetch_webpage"),
            (NO_CAPABILITY, "manage_todo_list get_terminal_output"),
        ],
        common: &[],
        arguments: &[
            ("edit_notebook_file", "editType", Text),
            ("edit_notebook_file", "language", Text),
            ("edit_notebook_file", "newCode", Text),
            ("insert_edit_into_file", "code", Text),
            ("run_in_terminal", "goal", Text),
            ("run_in_terminal", "mode", Text),
            ("file_search", "query", Pattern),
            APPLY_PATCH,
            APPLY_PATCH_INPUT,
            APPLY_PATCH_TEXT,
        ],
    },
    AgentHost {
        name: "langchain",
        tools: &[
            (COMMAND, "execute"),
            (READ, "list_directory glob grep"),
            (WRITE, "edit_file copy_file move_file file_delete"),
            (FETCH, "requests_get"),
        ],
        common: &["execute", "glob", "grep"],
        arguments: &[],
    },
    AgentHost {
        name: "openhands",
        tools: &[
            (COMMAND, "execute_bash"),
            // Its `command` says what it does with a file. To look at a file needs the right to write it, too.
            (WRITE, "str_replace_editor str_replace_based_edit_tool file_editor"),
            (NO_CAPABILITY, "task_tracker think finish"),
        ],
        common: &["think", "finish"],
        arguments: &[
            ("execute_bash", "is_input", Text),
            ("str_replace_editor", "command", Text),
            ("str_replace_based_edit_tool", "command", Text),
            ("file_editor", "command", Text),
            ("task_tracker", "command", Text),
        ],
    },
];

/// Tools of hosts that list or read resources of MCP servers. They name the server, and no tool of it.
pub(super) const RESOURCE_TOOLS: &str = "ListMcpResourcesTool ReadMcpResourceTool";

/// Tools of hosts that search the web.
pub(super) const WEB_SEARCHES: [&str; 2] = ["WebSearch", "google_web_search"];

impl AgentHost {
    /// Returns the host of a name.
    #[must_use]
    pub fn of(name: &str) -> Option<Self> {
        HOSTS.into_iter().find(|host| host.name == name)
    }

    /// Returns its tools, each with the capability that it needs.
    pub fn tools(self) -> impl Iterator<Item = (&'static str, &'static str)> {
        self.tools.iter().flat_map(|(capability, tools)| tools.split(' ').map(|tool| (tool, *capability)))
    }

    fn capability(self, tool: &str) -> Option<&'static str> {
        self.tools().find(|(name, _)| *name == tool).map(|(_, capability)| capability)
    }

    /// Returns whether a tool counts without the host's name in the configuration: its name is no common word, and no other host needs
    /// something else for it or has another argument of it.
    fn is_alone_with(self, tool: &str) -> bool {
        let arguments = |host: Self| host.arguments.iter().filter(|(of, ..)| *of == tool).collect::<Vec<_>>();
        let mut others = HOSTS.into_iter().filter_map(|host| Some((host, host.capability(tool)?)));
        !self.common.contains(&tool)
            && others.all(|(host, capability)| Some(capability) == self.capability(tool) && arguments(host) == arguments(self))
    }
}

/// The tools of the named hosts, or without names those of all hosts that are no common words and mean one thing: each with what it needs.
pub(super) fn tools_of(hosts: Option<&[AgentHost]>) -> impl Iterator<Item = (&'static str, &'static str)> {
    chosen(hosts).flat_map(move |host| host.tools().filter(move |(tool, _)| counts(hosts, host, tool)))
}

/// What arguments of these tools are: tool, argument, role.
pub(super) fn arguments_of(hosts: Option<&[AgentHost]>) -> impl Iterator<Item = (&'static str, &'static str, ArgumentRole)> {
    chosen(hosts).flat_map(move |host| host.arguments.iter().copied().filter(move |(tool, ..)| counts(hosts, host, tool)))
}

/// Returns the names of the hosts that have a tool.
pub(super) fn hosts_of(tool: &str) -> impl Iterator<Item = &'static str> {
    HOSTS.into_iter().filter(move |host| host.capability(tool).is_some()).map(|host| host.name)
}

fn chosen(hosts: Option<&[AgentHost]>) -> impl Iterator<Item = AgentHost> {
    hosts.unwrap_or(&HOSTS).iter().copied()
}

fn counts(hosts: Option<&[AgentHost]>, host: AgentHost, tool: &str) -> bool {
    hosts.is_some() || host.is_alone_with(tool)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DEFAULT_TOOL_CAPABILITIES;

    #[test]
    fn names_are_clear() {
        let own: Vec<_> = HOSTS.into_iter().flat_map(|host| host.tools().map(move |(tool, _)| (host.name, tool))).collect();
        for (host, tool) in &own {
            assert!(DEFAULT_TOOL_CAPABILITIES.iter().all(|(known, _)| known != tool), "{host}: {tool} is in the table of all tools");
            assert_eq!(own.iter().filter(|other| *other == &(*host, *tool)).count(), 1, "{host}: {tool} stands twice");
        }
        for host in HOSTS {
            assert!(host.tools().all(|(_, capability)| capability == NO_CAPABILITY || Pack::of(capability).is_some()), "{}", host.name);
            let is_common = |tool: &str| DEFAULT_TOOL_CAPABILITIES.iter().any(|(known, _)| *known == tool);
            let known = |tool: &str| host.capability(tool).is_some() || is_common(tool);
            assert!(host.common.iter().all(|tool| known(tool)) && host.arguments.iter().all(|(tool, ..)| known(tool)), "{}", host.name);
        }
    }

    #[test]
    fn common_words_and_names_of_two_meanings_need_their_host() {
        let all: Vec<_> = tools_of(None).map(|(tool, _)| tool).collect();
        for tool in "Bash run_shell_command execute_bash list_directory edit_file Shell run_in_terminal apply_patch powershell"
            .split_ascii_whitespace()
        {
            assert!(all.contains(&tool), "{tool}");
        }
        for tool in ["glob", "grep", "execute", "replace", "think", "view", "create", "edit"] {
            assert!(!all.contains(&tool), "{tool}");
        }
        let gemini: Vec<_> = tools_of(Some(&[AgentHost::of("gemini-cli").unwrap()])).collect();
        assert!(gemini.contains(&("replace", WRITE)) && !gemini.iter().any(|(tool, _)| *tool == "Bash"));
    }
}
