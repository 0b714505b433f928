//! The roles of the arguments of tools, by their names.
//!
//! The tables hold the names that the tools of common agents and MCP servers use. An argument that is not in them is judged by its value:
//! see [`super::arguments::Arguments::sorted`]. Names are compared without case, `_`, `-` and other punctuation, since decoders of tools
//! do so too: Go takes `Command` for `command`, and the last of them wins.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use rustc_hash::FxHashMap;

use super::argument_role::ArgumentRole;
use super::hosts::{AgentHost, WEB_SEARCHES, arguments_of};
use super::pack::Pack;

use ArgumentRole::{
    Body, Channel, Command, Folder, Headers, Host, Language, Method, Path, Pattern, Recipient, Refused, Route, SessionType, Text, Url,
};

/// Names with one role, separated by blanks. They are written as messages show them.
type Names = (ArgumentRole, &'static str);

/// TABLE: texts that accompany calls of any tool.
const ANY_TOOL: &[Names] = &[(
    Text,
    "description reason reasoning explanation justification purpose summary intent comment note notes label title thought thoughts \
     explanation_text task_progress user_message status_message tool_call_id call_id request_id correlation_id timeout timeout_ms \
     timeout_seconds session_id shell_id terminal_id process_id task_id security_risk risk wait_ms yield_time_ms",
)];

/// TABLE: tools that run commands.
const COMMAND_TOOLS: &[Names] = &[
    (Command, "command"),
    (Folder, "cwd workdir work_dir working_directory working_dir current_directory exec_dir run_dir start_dir directory dir folder path"),
    (Language, "language lang"),
    (
        Refused,
        "args argv arguments env envs environment env_vars variables shell executable interpreter user stdin input code script cmd commands \
         command_line program source data host container image sudo root elevated privileged run_as as_root with_escalated_permissions require_escalated dangerously_disable_sandbox \
         disable_sandbox no_sandbox unsandboxed",
    ),
    (ArgumentRole::RefusedBut("use_default"), "sandbox_permissions"),
];

/// TABLE: tools that read or write files.
const FILE_TOOLS: &[Names] = &[
    (
        Path,
        "file_path path image_path filepath filepaths file_paths paths file files filename filenames file_name file_names directory \
         directories dir dirs folder folders target target_file target_path target_directory new_path old_path destination dest dst \
         destination_path dest_path src source source_path source_file absolute_path relative_path relative_workspace_path abs_path \
         input_file output_file input_path output_path base_path base_dir root root_dir root_path \
         directory_path dir_path folder_path path_to_file notebook_path location resource uri url image image_url link link_path \
         symlink symlink_path rename_to move_to copy_to save_as include_path search_path",
    ),
    (Folder, "cwd workdir work_dir working_directory working_dir current_directory"),
    (Pattern, "pattern glob globs glob_pattern file_pattern file_glob include includes include_pattern include_patterns"),
    (
        Text,
        "exclude excludes exclude_pattern exclude_patterns ignore ignore_patterns ignore_globs content contents text new_str old_str new_string old_string new_text old_text insert_text file_text new_content old_content \
         replacement replace search find query regex regexp needle question prompt content_type mime_type edits view_range lines line_range \
         instruction instructions code_edit new_source cell_id cell_type",
    ),
    (Refused, "patch diff patches patch_text patch_content unified_diff changes diffs hunk hunks"),
];

/// TABLE: tools that fetch URLs, search, or drive a browser.
const WEB_TOOLS: &[Names] = &[
    (
        Url,
        "url urls uri uris href page_url start_url target_url base_url image_url image_urls proxy endpoint link links source_url http_proxy \
         https_proxy proxy_url callback_url redirect_url webhook webhook_url src",
    ),
    (
        Method,
        "method http_method request_method verb http_verb x_http_method x_http_method_override x_method_override method_override methods",
    ),
    (
        Host,
        "host hostname server ip ip_address address authority origin remote remote_host forwarded_host x_forwarded_host connect_to resolve",
    ),
    (
        Body,
        "body data json form form_data payload post_data raw_body raw_data request_body json_body post_body multipart content post put patch \
         delete is_post post_fields fields form_fields xml graphql mutation variables bytes attachment attachments message urlencoded \
         json_data request_data raw raw_text input body_text text_body \
         body_json data_raw data_binary data_urlencode",
    ),
    (Headers, "headers header http_headers request_headers extra_headers"),
    (
        Refused,
        "script scripts code expression javascript js function output_file save_to save_path download_path output_path output file file_path \
         filename files upload uploads cookies_file actions steps socket unix_socket socket_path cert certificate ca ca_cert ca_bundle \
         client_cert key_file user_data_dir profile_dir download download_dir storage_state init_script js_code evaluate eval page_function \
         wait_for_function args argv forwarded content_length transfer_encoding upgrade connection trailer",
    ),
    (
        Text,
        "query queries q question prompt instruction instructions search search_query keywords keyword topic freshness date_range time_range extract_schema goal size color viewport license user_agent cookie cookies \
         accept accept_language",
    ),
];

/// TABLE: texts of tools that drive a browser: the parts of a page, and what is typed into them. What fetches has no such parts.
const BROWSER_TOOLS: &[Names] = &[(Text, "text value selector ref element key keys")];

/// TABLE: names of domains to which a search is limited.
const SEARCHED_DOMAINS: &[Names] = &[(Text, "site allowed_domains blocked_domains include_domains exclude_domains domains")];

/// TABLE: texts of tools of MCP servers: what is said, looked for or asked of an interface, which may look like a path.
const MCP_TOOLS: &[Names] = &[
    (
        Text,
        "content contents text body message messages query queries q search search_query sql jql cql cypher graphql filter pattern regex \
         prompt instruction instructions question name names subject html markdown ref branch base head sha tag owner repo repository state \
         status labels expression selector value values data code script new_str old_str new_string old_string new_text old_text edits \
         xpath json_path locator css key keys prefix suffix delimiter separator logql promql expr formula cron exclude excludes exclude_pattern \
         exclude_patterns ignore ignore_patterns log_group log_group_name log_group_names log_group_name_prefix log_stream_name",
    ),
    (Route, "endpoint route api_path method_path"),
];

/// TABLE: names of things among these texts, which a server may take for a place.
const THINGS: [&str; 13] =
    ["base", "branch", "head", "labels", "name", "names", "owner", "ref", "repo", "repository", "state", "status", "tag"];

/// TABLE: tools that send messages.
const MESSAGE_TOOLS: &[Names] = &[
    (
        Recipient,
        "recipient recipients to target targets cc bcc chat chat_id user user_id username email emails phone phone_number address receiver \
         receivers forward_to copy_to recipient_id recipient_ids receiver_id target_id to_user to_user_id to_email to_number to_address users \
         user_ids chat_ids contact contacts member members handle destination destinations webhook webhook_url hook_url incoming_webhook",
    ),
    (Channel, "channel channel_id channel_ids channels channel_name room room_id rooms group group_id groups conversation conversation_id"),
    (
        Text,
        "message text content subject body html markdown callback_data format type message_type parse_mode priority action caption topic content_type \
         mime_type reply_to_message_id message_id thread_ts color tags",
    ),
    // Each of their parts is judged by its own name.
    (Body, "blocks attachments"),
    // They say by which server a message goes.
    (
        Refused,
        "smtp_host smtp_server smtp_url smtp_port relay server endpoint api_url api_base base_url target_url queue_url topic_arn proxy proxy_url",
    ),
];

/// TABLE: tools that start agents.
const SESSION_TOOLS: &[Names] = &[
    (
        SessionType,
        "session_type subagent_type agent_type agent agent_name subagent subagent_name type kind agent_kind session_kind agent_id agent_role \
         subagent_role role persona profile preset worker assistant",
    ),
    (
        Text,
        "prompt task goal context instruction instructions message name model query tools toolsets isolation effort run_in_background background \
         resume max_turns max_steps max_iterations max_tokens temperature",
    ),
    // They name the program that the agent is.
    (Refused, "acp_command acp_args command args argv program executable binary env environment mcp_servers"),
];

/// A table of names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Table {
    AnyTool,
    Commands,
    Files,
    Web,
    Browser,
    SearchedDomains,
    Mcp,
    Messages,
    Sessions,
}

const TABLES: [(Table, &[Names]); 9] = [
    (Table::AnyTool, ANY_TOOL),
    (Table::Commands, COMMAND_TOOLS),
    (Table::Files, FILE_TOOLS),
    (Table::Web, WEB_TOOLS),
    (Table::Browser, BROWSER_TOOLS),
    (Table::SearchedDomains, SEARCHED_DOMAINS),
    (Table::Mcp, MCP_TOOLS),
    (Table::Messages, MESSAGE_TOOLS),
    (Table::Sessions, SESSION_TOOLS),
];

/// A name of a table, with its role.
type Known = (Table, ArgumentRole, &'static str);

/// The names of all tables by their folded forms: every argument of every call is looked up.
static KNOWN: LazyLock<FxHashMap<String, Vec<Known>>> = LazyLock::new(|| {
    let mut known = FxHashMap::<String, Vec<Known>>::default();
    for (table, rows) in TABLES {
        for (role, names) in rows {
            for name in names.split_ascii_whitespace() {
                known.entry(fold(name).unwrap_or_default()).or_default().push((table, *role, name));
            }
        }
    }
    known
});

/// Returns the names of all tables that have a folded form.
fn known(folded: &str) -> &'static [Known] {
    KNOWN.get(folded).map(Vec::as_slice).unwrap_or_default()
}

/// Returns the names that tools of a pack are known by.
fn table(pack: Pack) -> Table {
    match pack {
        Pack::Command => Table::Commands,
        Pack::FileRead | Pack::FileWrite => Table::Files,
        Pack::WebFetch | Pack::WebBrowser => Table::Web,
        Pack::Messaging => Table::Messages,
        Pack::Session => Table::Sessions,
        Pack::Mcp => Table::Mcp,
    }
}

/// Tools that look for a text in files: their `pattern` is a regular expression. What they call `target` says where to look.
const TEXT_SEARCHES: [&str; 6] = ["grep", "searchfiles", "searchfilecontent", "searchcontent", "ripgrep", "grepsearch"];

/// Returns whether a tool searches the web.
pub(super) fn is_web_search(tool: &str) -> bool {
    ["web_search", "image_search"].contains(&tool) || WEB_SEARCHES.contains(&tool)
}

/// The arguments of a tool that hosts and a configuration add, by their folded names: the role, and the name as a configuration writes it.
type Added = BTreeMap<String, (ArgumentRole, String)>;

/// The names of arguments that hosts and a configuration add, by tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolArguments(BTreeMap<String, Added>);

impl Default for ToolArguments {
    fn default() -> Self {
        Self::new(None, [])
    }
}

impl ToolArguments {
    /// Returns the roles that the tools of hosts have, and those that a configuration gives to arguments, each with its tool and its name.
    #[must_use]
    pub fn new<'t>(hosts: Option<&[AgentHost]>, arguments: impl IntoIterator<Item = (&'t str, &'t str, ArgumentRole)>) -> Self {
        let mut tools = BTreeMap::<String, Added>::new();
        let known = arguments_of(hosts).map(|known| -> (&'t str, &'t str, ArgumentRole) { known });
        for (tool, name, role) in known.chain(arguments) {
            if let Some(folded) = fold(name) {
                tools.entry(tool.to_owned()).or_default().insert(folded, (role, format!("{tool}.{name}")));
            }
        }
        Self(tools)
    }
}

/// The names of the arguments of one tool.
#[derive(Debug, Clone, Copy)]
pub(super) struct ArgumentNames<'c> {
    pack: Pack,
    tool: &'c str,
    added: Option<&'c Added>,
}

impl<'c> ArgumentNames<'c> {
    /// Returns the names for a tool of a pack.
    pub(super) fn new(pack: Pack, tool: &'c str, added: &'c ToolArguments) -> Self {
        Self { pack, tool, added: added.0.get(tool) }
    }

    /// Returns whether the tool is one of an MCP server.
    pub(super) fn is_of_server(&self) -> bool {
        self.pack == Pack::Mcp
    }

    /// Returns whether the tool fetches from the web.
    pub(super) fn is_of_web(&self) -> bool {
        self.pack == Pack::WebFetch
    }

    /// Returns whether a text that a tool of an MCP server is given may be a path by its beginning: under the name of a thing, or as an address
    /// of a file. Under the name of a thing it may be an address as well. With a blank in it a text of one component is a line, such as `/deploy now`.
    pub(super) fn may_be_path(&self, name: &str, said: &str) -> bool {
        let said = said.trim();
        let has_blank = said.contains(char::is_whitespace);
        let climbs = said.split(['/', '\\']).any(|component| component == "..");
        let is_deep = || said.get(1..).is_some_and(|rest| rest.contains(['/', '\\']));
        let is_home = said == "~" || said.starts_with('~') && said.contains(['/', '\\']);
        let is_rooted = is_home || said.starts_with(['/', '\\']) || matches!(said.get(1..3), Some(":\\" | ":/"));
        let is_thing = THINGS.contains(&name)
            && (climbs || is_rooted && (!has_blank || is_deep()) || !has_blank && (said.starts_with('.') || said.contains("://")));
        let is_file = said.get(..5).is_some_and(|scheme| scheme.eq_ignore_ascii_case("file:"));
        self.pack == Pack::Mcp && (is_file && !has_blank || is_thing)
    }

    /// Returns whether a text that a tool of an MCP server is given is a key or its beginning, which may be the path of a file to the server.
    pub(super) fn may_be_key(&self, name: &str, said: &str) -> bool {
        self.pack == Pack::Mcp && ["key", "keys", "prefix"].contains(&name) && said.starts_with('/')
    }

    /// Returns whether a text that a tool of an MCP server is given under the name of a thing may lead to a host, as `git@HOST:PATH` does.
    pub(super) fn may_be_remote(&self, name: &str, said: &str) -> bool {
        self.pack == Pack::Mcp && THINGS.contains(&name) && said.contains('@') && !said.trim().contains(char::is_whitespace)
    }

    /// Returns whether the tool fetches what a text names: a common host has a tool of this name that reads its addresses out of the prompt.
    pub(super) fn fetches(&self, name: &str) -> bool {
        self.pack == Pack::WebFetch && self.tool == "web_fetch" && name == "prompt"
    }

    /// Returns the role of an argument with a folded name, and its name as messages show it. `None` for a name that no table has.
    pub(super) fn role(&self, folded: &str) -> Option<(ArgumentRole, &'c str)> {
        if let Some((role, name)) = self.added.and_then(|added| added.get(folded)) {
            return Some((*role, name));
        }
        let is_search = || fold(self.tool).is_some_and(|tool| TEXT_SEARCHES.contains(&tool.as_str()));
        match folded {
            "pattern" if self.pack == Pack::FileRead && is_search() => return Some((Text, "pattern")),
            // It says where to look, in a word.
            "target" if self.pack == Pack::FileRead && is_search() => return None,
            _ => {}
        }
        // What is called gets the message.
        if self.pack == Pack::Messaging && (folded.contains("hook") || folded.contains("callbackur")) {
            return Some((Recipient, "webhook"));
        }
        let is_web_search = self.pack == Pack::WebFetch && is_web_search(self.tool);
        let others = match self.pack {
            Pack::WebBrowser => Some(Table::Browser),
            _ if is_web_search => Some(Table::SearchedDomains),
            _ => None,
        };
        let (tables, names) = ([Some(table(self.pack)), Some(Table::AnyTool), others], known(folded));
        let (_, role, name) = tables.into_iter().flatten().find_map(|table| names.iter().find(|(of, ..)| *of == table))?;
        Some((*role, name))
    }
}

/// Returns whether a folded name is that of a place: of a path, a URL or a host to tools for files or the web.
pub(super) fn is_place(folded: &str) -> bool {
    known(folded).iter().any(|(table, role, _)| matches!((table, role), (Table::Files | Table::Web, Path | Folder | Url | Host)))
}

/// Returns whether a folded name is that of a host.
pub(super) fn is_host(folded: &str) -> bool {
    known(folded).iter().any(|(_, role, _)| *role == Host)
}

/// Returns a name without case, `_`, `-` and other punctuation; `None` for a name with characters beyond ASCII, among which are look-alikes
/// of every letter.
pub(super) fn fold(name: &str) -> Option<String> {
    name.is_ascii().then(|| letters(name).map(char::from).collect())
}

/// Returns whether two names are folded to the same.
pub(super) fn are_alike(left: &str, right: &str) -> bool {
    left.is_ascii() && right.is_ascii() && letters(left).eq(letters(right))
}

/// Returns the letters and digits of a name, in lower case.
fn letters(name: &str) -> impl Iterator<Item = u8> {
    name.bytes().filter(u8::is_ascii_alphanumeric).map(|byte| byte.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn role(pack: Pack, tool: &str, name: &str) -> Option<ArgumentRole> {
        let added = ToolArguments::default();
        ArgumentNames::new(pack, tool, &added).role(&fold(name)?).map(|(role, _)| role)
    }

    #[test]
    fn names_are_compared_without_case_and_punctuation() {
        for name in ["file_path", "filePath", "FilePath", "FILE-PATH", "file.path", "file path", "$filePath[]"] {
            assert_eq!(role(Pack::FileRead, "read_file", name), Some(Path), "{name}");
        }
        assert_eq!(role(Pack::FileRead, "read_file", "p\u{430}th"), None, "a Cyrillic letter");
        assert_eq!(role(Pack::FileRead, "read_file", "anything"), None);
    }

    #[test]
    fn a_pattern_is_of_files_or_of_a_text_by_the_tool() {
        assert_eq!(role(Pack::FileRead, "glob", "pattern"), Some(Pattern));
        assert_eq!(role(Pack::FileRead, "search_files", "pattern"), Some(Text));
        assert_eq!(role(Pack::FileRead, "Grep", "pattern"), Some(Text));
        assert_eq!(role(Pack::FileRead, "Grep", "glob"), Some(Pattern));
    }

    #[test]
    fn configuration_adds_names_to_a_tool() {
        let added = ToolArguments::new(None, [("my_read", "Where", Path)]);
        let names = |tool| ArgumentNames::new(Pack::FileRead, tool, &added).role("where").map(|(role, _)| role);
        assert_eq!([names("my_read"), names("read_file")], [Some(Path), None]);
    }

    #[test]
    fn no_table_has_a_name_twice_or_with_two_roles() {
        for pack in Pack::ALL {
            for names in KNOWN.values() {
                let own: Vec<_> = names.iter().filter(|(of, ..)| [table(pack), Table::AnyTool].contains(of)).collect();
                let differ = |at: usize, name: &Known| own.iter().skip(at + 1).all(|other| other.2 != name.2 && other.1 == name.1);
                assert!(own.iter().enumerate().all(|(at, name)| differ(at, name)), "{pack:?}: {own:?}");
            }
        }
    }
}
