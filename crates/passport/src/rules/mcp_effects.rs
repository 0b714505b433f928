//! What a tool of an MCP server does with its files, as far as its name tells.

use std::borrow::Cow;
use std::collections::HashMap;

use tollgate_json::{Text, Value};

use super::super::super::argument_names::fold;
use super::super::super::name_kind::{NameKind, words_of};
use super::super::RuleCall;

/// TABLE: first words of names of tools that change nothing, unless another word says otherwise.
const READING: [&str; 15] =
    ["get", "list", "read", "search", "find", "view", "show", "describe", "fetch", "query", "head", "tail", "stat", "count", "tree"];

/// TABLE: names of tools that change nothing, of which the first word does not say so.
const READERS: [&str; 5] = ["directory_tree", "git_status", "git_diff", "git_log", "git_show"];

/// TABLE: words of names of tools that change something.
const WRITING: &str = "add append apply archive compress copy cp create delete edit insert merge mkdir modify move mv overwrite patch push put remove \
     rename replace rm rmdir save set store touch trash truncate unlink update upload upsert write zip";

/// TABLE: words of names of tools that take a folder with all that lies in it, of which nothing comes to another place. A star stands for any end.
const ENDING: &str = "archiv* backup chmod chown clean clear* compress* decompress* delete* deploy destroy* empt* erase* extract* mirror pack publish \
     purge* remove* rm rmdir share sync tar trash* unlink* unpack* untar* unzip* upload* wipe zip";

/// TABLE: those that bring it to another place.
const COMING: &str = "copy* cp duplicate export* hardlink* link move* mv relocat* rename* symlink transfer*";

/// TABLE: those of these words that are nouns too.
const NOUNS: [&str; 6] = ["clean", "deploy", "link", "publish", "share", "symlink"];

/// TABLE: words of names of arguments that say where a tool writes what it reads.
const OUTPUT: [&str; 9] = ["dest", "destination", "download", "local", "out", "output", "response", "save", "write"];

/// TABLE: names of arguments that say what is fetched from elsewhere.
const FETCHED: [&str; 6] = ["blob", "bucket", "container", "uri", "url", "urls"];

/// TABLE: names of arguments that say where something comes to, of which nothing is taken.
const DESTINATIONS: [&str; 10] =
    ["destination", "dest", "dst", "destination_path", "dest_path", "new_path", "to", "move_to", "rename_to", "output_path"];

/// TABLE: servers of which an argument names a place elsewhere: names of servers without case, punctuation, `mcp` and `server`, a word of the
/// tool's name or none, the argument, and others that have to stand beside it. The names of servers are the operator's.
const ELSEWHERE: [(&str, &str, &str, &[&str]); 2] =
    [("forgejo gitea github", "", "path", &["owner", "repo"]), ("k8s kube kubernetes openshift", "exec", "command", &[])];

/// How many texts that name places elsewhere are looked at.
const ELSEWHERE_MAX: usize = 64;

/// What a tool does with its files.
pub(super) struct Effects<'c> {
    pub(super) writes: bool,
    /// Whether what lies below a folder goes with it.
    pub(super) takes_whole: bool,
    /// The texts that say where something comes to.
    pub(super) destinations: HashMap<Cow<'c, str>, usize>,
    /// The texts that name places which are not of this machine.
    pub(super) elsewhere: HashMap<Cow<'c, str>, usize>,
}

/// Reads what a tool does out of its name. It only reads if no word of its name says that it writes.
pub(super) fn effects<'c>(call: &RuleCall<'c>) -> Effects<'c> {
    let tool = call.tool_name.rsplit("__").next().unwrap_or_default();
    let words = words_of(tool);
    let has = |table: &str| words.iter().any(|word| table.split_ascii_whitespace().any(|known| known == word));
    let reads = words.first().is_some_and(|first| READING.contains(&first.as_str())) || READERS.contains(&words.join("_").as_str());
    let takes_whole = are_whole(&words);
    // What a folder holds is put among what lies in the other one.
    let merges = has("dir directory folder tree");
    let comes = takes_whole && !words.iter().any(|word| is_one_of(ENDING, word)) && !merges;
    let named = if comes { call.arguments.named(&DESTINATIONS) } else { Vec::new() };
    let destinations = counted(named.into_iter().map(|(_, value)| value).take(DESTINATIONS.len()));
    let elsewhere = counted(elsewhere(call, &words).into_iter().take(ELSEWHERE_MAX));
    let is_output = |key: &str| NameKind::under(key).is_place() && words_of(key).iter().any(|word| OUTPUT.contains(&word.as_str()));
    // What is fetched from elsewhere goes into the file that is named beside, and an option may name one too.
    let fetches = || call.arguments.has_name(|key| fold(key).is_some_and(|name| FETCHED.contains(&name.as_str())));
    let is_named_file = |key: &str| fold(key).is_some_and(|name| ["file", "filename", "filepath"].iter().any(|end| name.ends_with(end)));
    let comes_to_file = || fetches() && call.arguments.has_name(is_named_file);
    let is_option = |text: &str| text.starts_with('-') && text.contains('/') && !text.contains(char::is_whitespace);
    let has_option = || call.arguments.has_text(|text| is_option(text.trim()));
    let writes = !reads || has(WRITING) || call.arguments.has_name(is_output) || comes_to_file() || has_option();
    Effects { writes, takes_whole, destinations, elsewhere }
}

/// Returns whether a tool takes what lies below a folder with it, as its name tells.
pub(in super::super) fn takes_whole(tool: &str) -> bool {
    are_whole(&words_of(tool))
}

fn are_whole(words: &[String]) -> bool {
    // A tool that reads may name what it reads so: `list_deploy_keys`.
    let reads = words.first().is_some_and(|first| READING.contains(&first.as_str()));
    let is_whole = |word: &String| !(reads && NOUNS.contains(&word.as_str())) && (is_one_of(ENDING, word) || is_one_of(COMING, word));
    words.iter().any(is_whole)
}

/// Returns whether a word stands in a table, in which a star stands for any end.
fn is_one_of(table: &str, word: &str) -> bool {
    table.split_ascii_whitespace().any(|known| known.strip_suffix('*').map_or(known == word, |begin| word.starts_with(begin)))
}

/// Returns the texts among values, with how often each is there.
fn counted<'c>(values: impl Iterator<Item = Value<'c>>) -> HashMap<Cow<'c, str>, usize> {
    let mut counted = HashMap::new();
    for text in values.filter_map(|value| value.as_text().and_then(Text::into_str)) {
        *counted.entry(text).or_insert(0) += 1;
    }
    counted
}

/// Returns the values that name places which are not of this machine, as the names of the server, of the tool and of the arguments beside tell.
fn elsewhere<'c>(call: &RuleCall<'c>, words: &[String]) -> Vec<Value<'c>> {
    let server = call.tool_name.strip_prefix("mcp__").and_then(|rest| rest.split("__").next()).and_then(fold).unwrap_or_default();
    let server = server.trim_end_matches("server").trim_end_matches("mcp");
    let is_its = |(servers, word, _, beside): &(&str, &str, &str, &[&str])| {
        let is_beside = |name: &&str| matches!(call.arguments.text(name), Ok(Some(_)));
        servers.split(' ').any(|known| known == server)
            && (word.is_empty() || words.iter().any(|own| own == word))
            && beside.iter().all(is_beside)
    };
    let names = ELSEWHERE.iter().filter(|row| is_its(row)).map(|(_, _, name, _)| *name);
    let values = names.flat_map(|name| call.arguments.named(&[name])).map(|(_, value)| value);
    values.flat_map(|value| std::iter::once(value).chain(value.items())).collect()
}
