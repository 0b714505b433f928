//! What a tool of an MCP server does with its files, as far as its name tells.

use std::borrow::Cow;
use std::collections::HashMap;

use tollgate_json::{DEPTH_MAX, Parser, Shape, Text, Value};

use super::super::super::argument_names::fold;
use super::super::super::argument_tables::PROGRAMS;
use super::super::super::arguments::Arguments;
use super::super::super::name_kind::{NameKind, words_of};
use super::super::RuleCall;
use super::WRITTEN_MAX;
use super::mcp_arguments::within;

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
const OUTPUT: &str = "copy dest destination download dst dump local o out outfile output response save store tee write";

/// TABLE: words of names of arguments that say so of a path alone: under them stand versions, times and formats too.
const TOWARDS: &str = "as target to";

/// TABLE: words by which a query writes, beside those of names of tools.
const STATEMENTS: &str = "attach backup dump* export* fopen into once out outfile output* unload vacuum write*";

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
    /// Whether the tool fetches what an argument names into the path that another argument names.
    pub(super) fetches: bool,
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
    let has = |table: &str| words.iter().any(|word| is_one_of(table, word));
    let begins = |table: &[&str]| words.first().is_some_and(|first| table.contains(&first.as_str()));
    let is_reader = READERS.contains(&words.join("_").as_str());
    let reads = is_reader || begins(&READING);
    let takes_whole = are_whole(&words);
    // What a folder holds is put among what lies in the other one.
    let merges = has("dir directory folder tree");
    let comes = takes_whole && !words.iter().any(|word| is_one_of(ENDING, word)) && !merges;
    let named = if comes { call.arguments.named(&DESTINATIONS) } else { Vec::new() };
    let destinations = counted(named.into_iter().map(|(_, value)| value).take(DESTINATIONS.len()));
    let elsewhere = counted(elsewhere(call, &words).into_iter().take(ELSEWHERE_MAX));
    let names_fetched = any_member(call.arguments, 0, &|key, _| fold(key).is_some_and(|name| FETCHED.contains(&name.as_str())));
    let is_file =
        |key: &str| names_fetched && fold(key).is_some_and(|name| ["file", "filename", "filepath"].iter().any(|end| name.ends_with(end)));
    let is_query =
        |key: &str, value: Value<'_>| !(begins(&["find", "search"]) && key.starts_with("quer")) && is_writing_program(key, value);
    let may_write =
        |key: &str, value: Value<'_>| is_output(key, value, is_reader) || is_file(key) || has_option(value) || is_query(key, value);
    let writes = !reads || has(WRITING) || any_member(call.arguments, 0, &may_write);
    let fetches = names_fetched && begins(&["fetch", "get"]);
    Effects { writes, fetches, takes_whole, destinations, elsewhere }
}

/// Returns whether a member at any depth is what a function says, also of an object that is written out in a text.
fn any_member(arguments: Arguments<'_>, depth: usize, is_it: &dyn Fn(&str, Value<'_>) -> bool) -> bool {
    let is_written = |key: &str, text: &String| {
        let (shown, mut parser) = (within(text), Parser::new());
        let inner = if shown.starts_with(['{', '[', '"']) { parser.parse(shown.as_bytes(), DEPTH_MAX).ok() } else { None };
        inner.is_some_and(|inner| is_it(key, inner) || any_member(Arguments(Some(inner)), depth + 1, is_it))
    };
    arguments.has_member(|key, value| is_it(key, value) || depth < WRITTEN_MAX && texts_of(value).iter().any(|text| is_written(key, text)))
}

/// Returns whether an argument says where a tool writes. `is_known` says that the tool takes versions under such names.
fn is_output(key: &str, value: Value<'_>, is_known: bool) -> bool {
    let words = words_of(key);
    let has = |table: &str| words.iter().any(|word| is_one_of(table, word));
    let is_text = matches!(value.shape(), Shape::String | Shape::Array | Shape::Object);
    let holds = |signs: &[&[u8]]| is_text && signs.iter().any(|sign| value.source().windows(sign.len()).any(|part| part == *sign));
    has(OUTPUT) && (NameKind::under(key).is_place() || holds(&[b"/", b"\\", b"."]))
        || !is_known && has(TOWARDS) && holds(&[b"/", b"\\", b"\"."])
}

/// Returns whether a value is a program, or a query with a word that writes.
fn is_writing_program(key: &str, value: Value<'_>) -> bool {
    let name = fold(key).unwrap_or_default();
    let is_statement = ["statement", "statements"].contains(&name.as_str());
    if !is_statement && !PROGRAMS.contains(&name.as_str()) {
        return false;
    }
    let is_word = |word: &str| is_one_of(WRITING, word) || is_one_of(STATEMENTS, word);
    let writes = |text: &String| text.to_ascii_lowercase().split(|char: char| !char.is_ascii_alphanumeric()).any(is_word);
    ["code", "script"].contains(&name.as_str()) || value.is_object() || texts_of(value).iter().any(writes)
}

/// Returns whether a text or a list has an option or a redirection that a path is attached to or follows: either may say where a tool writes.
fn has_option(value: Value<'_>) -> bool {
    let texts = texts_of(value);
    let mut words = texts.iter().flat_map(|text| text.split_whitespace()).peekable();
    while let Some(word) = words.next() {
        let redirected = word.trim_start_matches(|char: char| char == '&' || char.is_ascii_digit()).starts_with('>');
        let is_sign = redirected || word.starts_with('-') && !matches!(word, "-" | "--");
        let is_path = |next: &&str| next.starts_with('.') || next.contains(['/', '\\']);
        if is_sign && (word.contains('/') || words.peek().is_some_and(is_path)) {
            return true;
        }
    }
    false
}

/// Returns the texts of a value, which may be a list.
pub(super) fn texts_of(value: Value<'_>) -> Vec<String> {
    let own = value.as_text().and_then(Text::into_str).map(Cow::into_owned);
    own.into_iter().chain(value.items().flat_map(texts_of)).collect()
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
pub(super) fn is_one_of(table: &str, word: &str) -> bool {
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
