//! What the name of an argument says to a tool.
//!
//! [`super::argument_tables`] holds the names that the tools of common agents and MCP servers use. An argument that is not in them is judged by its value:
//! see [`super::arguments::Arguments::sorted`]. Names are compared without case, `_`, `-` and other punctuation, since decoders of tools
//! do so too: Go takes `Command` for `command`, and the last of them wins.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::sync::LazyLock;

use rustc_hash::FxHashMap;
use tollgate_json::Value;

use super::argument_role::ArgumentRole;
use super::argument_tables::{
    ANY_TOOL, BROWSER_TOOLS, COMMAND_TOOLS, FILE_TOOLS, MCP_TOOLS, MESSAGE_TOOLS, Names, PROGRAMS, SEARCHED_DOMAINS, SESSION_TOOLS, THINGS,
    WEB_TOOLS,
};
use super::beginning::{behind_drive, climbs, is_file_address};
use super::capabilities::DEFAULT_TOOL_CAPABILITIES;
use super::denial::Denial;
use super::hosts::{AgentHost, WEB_SEARCHES, arguments_of};
use super::pack::Pack;

use ArgumentRole::{Folder, Host, Path, Recipient, Text, Url};

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
        let known: Vec<(&str, &str, ArgumentRole)> = arguments_of(hosts).collect();
        for (tool, name, role) in known.into_iter().chain(arguments) {
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
    pub(super) fn may_be_path(&self, name: &str, text: &str) -> bool {
        let text = text.trim();
        let has_blank = text.contains(char::is_whitespace);
        let is_deep = || text.get(1..).is_some_and(|rest| rest.contains(['/', '\\']));
        let is_home = text == "~" || text.starts_with('~') && text.contains(['/', '\\']);
        let is_drive = behind_drive(text).is_some_and(|rest| rest.starts_with(['/', '\\']));
        let is_rooted = is_home || is_drive || text.starts_with(['/', '\\']);
        let is_thing = THINGS.contains(&name)
            && (climbs(text) || is_rooted && (!has_blank || is_deep()) || !has_blank && (text.starts_with('.') || text.contains("://")));
        // Some readers take the file behind the sign for data.
        let is_data = name == "data" && text.strip_prefix('@').is_some_and(|path| path.contains('/'));
        let is_file = is_data || is_file_address(text);
        self.pack == Pack::Mcp && (is_file && !has_blank || is_thing)
    }

    /// Returns whether a text that a tool of an MCP server is given is a key or its beginning, which may be the path of a file to the server.
    pub(super) fn may_be_key(&self, name: &str, text: &str) -> bool {
        self.pack == Pack::Mcp && ["key", "keys", "prefix"].contains(&name) && text.starts_with('/')
    }

    /// Returns whether a name is that of a thing to a tool of an MCP server.
    pub(super) fn is_thing(&self, name: &str) -> bool {
        self.pack == Pack::Mcp && THINGS.contains(&name)
    }

    /// Returns whether a text that a tool of an MCP server is given under the name of a thing may lead to a host, as `git@HOST:PATH` does.
    pub(super) fn may_be_remote(&self, name: &str, text: &str) -> bool {
        self.is_thing(name) && text.contains('@') && !text.trim().contains(char::is_whitespace)
    }

    /// Returns whether a text that a tool of an MCP server is given is a query or a program.
    pub(super) fn may_be_program(&self, name: &str) -> bool {
        self.pack == Pack::Mcp && PROGRAMS.contains(&name)
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

/// Checks that the folded name of an argument is in ASCII, and that no other argument of its object has it with another value.
pub(super) fn check_name<'v>(
    own: Option<&str>,
    value: Value<'v>,
    names: &ArgumentNames<'v>,
    seen: &mut HashMap<String, &'v [u8]>,
) -> Result<(), Denial> {
    let Some(folded) = own else {
        const MESSAGE: &str = "An argument's name has characters beyond ASCII, of which some look like letters; write the tool's own name";
        return if names.is_of_server() { Ok(()) } else { Err(Denial::new("oap.invalid_tool_arguments", MESSAGE)) };
    };
    // Equal values leave nothing to choose.
    if !folded.is_empty() && seen.insert(folded.to_owned(), value.source()).is_some_and(|other| other != value.source()) {
        const MESSAGE: &str = "Two arguments have one name but for case, `_` and `-`; tools differ in which of them they take";
        return Err(Denial::new("oap.invalid_tool_arguments", MESSAGE));
    }
    Ok(())
}

/// Returns whether a folded name is that of a place: of a path, a URL or a host to tools for files or the web.
pub(super) fn is_place(folded: &str) -> bool {
    known(folded).iter().any(|(table, role, _)| matches!((table, role), (Table::Files | Table::Web, Path | Folder | Url | Host)))
}

/// Returns whether passports take an argument of a host's tool for its working folder although the tool has no such argument. The host looks at no
/// such argument, and the tool works in the host's folder.
#[must_use]
pub fn ignores_folder(host: AgentHost, tool: &str, argument: &str) -> bool {
    let Some(folded) = fold(argument) else { return false };
    let mut tools = host.tools().chain(DEFAULT_TOOL_CAPABILITIES);
    let pack = tools.find(|(name, _)| *name == tool).and_then(|(_, capability)| Pack::of(capability));
    let is_own = |(of, name, role): (&str, &str, ArgumentRole)| of == tool && role == Folder && fold(name).as_ref() == Some(&folded);
    let is_folder = |pack| known(&folded).iter().any(|(of, role, _)| *of == table(pack) && *role == Folder);
    pack.is_some_and(is_folder) && !arguments_of(Some(&[host])).any(is_own)
}

/// Returns whether a folded name is that of a path to tools for files.
pub(super) fn is_path_name(folded: &str) -> bool {
    known(folded).iter().any(|(of, role, _)| *of == Table::Files && *role == Path)
}

/// Returns whether a folded name is that of a host.
pub(super) fn is_host(folded: &str) -> bool {
    known(folded).iter().any(|(_, role, _)| *role == Host)
}

/// Returns whether a folded name is that of the method of a request.
pub(super) fn is_method(folded: &str) -> bool {
    known(folded).iter().any(|(_, role, _)| *role == ArgumentRole::Method)
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

/// Returns whether an argument, named as its table or a configuration does (`tool.name`), has another name.
pub(super) fn is_called(shown: &str, name: &str) -> bool {
    shown.rsplit('.').next().is_some_and(|last| are_alike(last, name))
}

/// Returns the name of an argument as messages show it: the name of its table, or `filePath` for `file_path` where the call writes it so. A
/// message repeats no other spelling of a call.
pub(super) fn shown<'v>(key: &Cow<'v, str>, name: &'v str) -> &'v str {
    let mut is_first = false;
    let camel = name.bytes().filter_map(|byte| {
        let letter = if is_first { byte.to_ascii_uppercase() } else { byte };
        is_first = byte == b'_';
        (!is_first).then_some(letter)
    });
    match key {
        Cow::Borrowed(key) if camel.eq(key.bytes()) => key,
        _ => name,
    }
}

/// Returns the letters and digits of a name, in lower case.
fn letters(name: &str) -> impl Iterator<Item = u8> {
    name.bytes().filter(u8::is_ascii_alphanumeric).map(|byte| byte.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;
    use ArgumentRole::Pattern;

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
