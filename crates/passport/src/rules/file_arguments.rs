//! The arguments of tools for files: which files a call names.

use std::borrow::Cow;

use super::super::argument_names::fold;
use super::super::argument_role::ArgumentRole;
use super::super::arguments::Sorted;
use super::{Denial, RuleCall, SEVERAL_FOLDERS};

/// Tools that use the working directory if they are given none.
const DIRECTORY_TOOLS: &str = "ls LS search_files Grep Glob grep glob grep_search grep_files file_search codebase_search list_dir list_directory \
     search_file_content glob_file_search read_lints get_errors";

/// Tools that show the names that they find, and nothing of the files.
const NAME_TOOLS: [&str; 4] = ["Glob", "file_search", "glob", "glob_file_search"];

/// Returns whether a tool uses the working directory if it is given none.
fn needs_no_path(call: &RuleCall<'_>) -> bool {
    DIRECTORY_TOOLS.split_ascii_whitespace().any(|tool| tool == call.tool_name)
}

/// Returns whether a call shows names of files, and nothing of the files.
pub(super) fn shows_names(call: &RuleCall<'_>) -> bool {
    NAME_TOOLS.contains(&call.tool_name)
}

/// Returns the pattern of a search that looks for names of files and not for a text: `target` says so.
pub(super) fn names_looked_for<'c>(call: &RuleCall<'c>) -> Option<Cow<'c, str>> {
    let target = call.arguments.text("target").ok().flatten()?;
    let is_names = needs_no_path(call) && fold(&target).is_none_or(|target| target != "content");
    call.arguments.text("pattern").ok().flatten().filter(|_| is_names)
}

/// The message for a path that is in no allowed list.
pub(super) const NOT_LISTED: &str = "File path is not in allowed list";

/// Where a call has a path.
#[derive(Debug, Clone, Copy)]
pub(super) enum Origin<'c> {
    /// In the argument of this name in the table.
    Argument(&'c str),
    /// In an argument that no table has.
    Unknown,
    /// Nowhere: a search without a path works in the working folder.
    Omitted,
}

impl Origin<'_> {
    /// Returns the denial of a path that is not in the list, with what to send instead of a relative path.
    pub(super) fn not_listed(self, text: &str) -> Denial {
        const SEND: &str = "the call does not tell its working folder; send the folder as `cwd`, or a path from the root";
        let place = match self {
            Origin::Argument(name) => format!("argument '{name}'"),
            Origin::Unknown => "an argument that the tool is not known to have".to_owned(),
            Origin::Omitted => "the working folder, since the call names no path".to_owned(),
        };
        let message = match self {
            _ if text.starts_with(['/', '~']) => place,
            Origin::Omitted => format!("the call names no path, and {SEND}"),
            _ => format!("{place} is relative, and {SEND}"),
        };
        Denial::new("oap.path_not_allowed", format!("{NOT_LISTED}: {message}"))
    }
}

/// The tool that shows names, and sees a pattern from the root as a path. Others see it from their folder, or do so in some hosts.
const ROOTED_TOOL: &str = "Glob";

/// Returns the expansions of a pattern from the root, each as its literal folder and the rest of the pattern below it, which may be empty. `None`
/// for another pattern, for several patterns in a text, and for another tool.
pub(super) fn rooted(call: &RuleCall<'_>, pattern: &str) -> Option<Vec<(String, String)>> {
    let expansions = Some(bash_commands::braces(pattern)).filter(|_| call.tool_name == ROOTED_TOOL)?;
    let split = |expansion: &String| {
        let at = expansion.find(['*', '?', '[', ']', '{', '}']).map_or(expansion.len(), |wild| front(expansion, wild));
        let (head, rest) = expansion.split_at_checked(at)?;
        (expansion.starts_with('/') && !expansion.contains([',', ' '])).then(|| (head.to_owned(), rest.to_owned()))
    };
    expansions.iter().map(split).collect()
}

/// Returns where the component that holds a place of a text begins.
fn front(text: &str, place: usize) -> usize {
    text.get(..place).and_then(|front| front.rfind('/')).map_or(0, |slash| slash + 1)
}

/// A path of a call, and where the call has it.
type Path<'c> = (Origin<'c>, Cow<'c, str>);

/// Reads the arguments, with the working directory as the path of a tool that needs no path.
pub(super) fn read_arguments<'c>(call: &RuleCall<'c>, is_read: bool) -> Result<(Sorted<'c>, Vec<Path<'c>>), Denial> {
    let sorted = call.sorted()?;
    let paths: Vec<_> = sorted.named(ArgumentRole::Path).map(|(name, path)| (Origin::Argument(name), path.clone())).collect();
    let folders = sorted.of(ArgumentRole::Folder).count();
    if folders > 1 {
        return Err(Denial::new("oap.invalid_tool_arguments", SEVERAL_FOLDERS));
    }
    // A call whose patterns begin at the root names its folders there.
    let is_other = |pattern: &Cow<'_, str>| rooted(call, pattern).is_none();
    let names_folders = sorted.of(ArgumentRole::Pattern).next().is_some() && !sorted.of(ArgumentRole::Pattern).any(is_other);
    match paths.is_empty() && !names_folders {
        false => Ok((sorted, paths)),
        true if folders == 1 || needs_no_path(call) => Ok((sorted, vec![(Origin::Omitted, ".".into())])),
        true => {
            let what = if is_read { "File read context must include file_path" } else { "File write context must include file_path" };
            Err(Denial::new("oap.missing_file_path", what))
        }
    }
}
