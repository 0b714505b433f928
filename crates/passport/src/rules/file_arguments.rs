//! The arguments of tools for files: which files a call names.

use std::borrow::Cow;

use super::super::argument_names::{fold, is_called};
use super::super::argument_role::ArgumentRole;
use super::super::arguments::Sorted;
use super::{Denial, RuleCall, SEVERAL_FOLDERS};

/// TABLE: tools that use the working directory if they are given none, and the arguments that name another. A tool looks at no other argument, such as
/// `paths` of a tool that has `path`.
const DIRECTORY_TOOLS: [(&str, &str); 7] = [
    ("ls LS search_files Grep Glob grep grep_files semantic_search", "path"),
    ("glob grep_search list_directory search_file_content", "path dir_path"),
    ("list_dir", "path dir_path target_directory relative_workspace_path"),
    ("file_search", "dir_path"),
    ("glob_file_search", "target_directory"),
    ("codebase_search", "target_directories"),
    ("read_lints ReadLints get_errors", "paths file_paths"),
];

/// Tools that show the names that they find, and nothing of the files.
const NAME_TOOLS: [&str; 4] = ["Glob", "file_search", "glob", "glob_file_search"];

/// Returns the arguments that name a folder for a tool that uses the working directory if it is given none; `None` for any other tool.
fn folder_arguments(call: &RuleCall<'_>) -> Option<&'static str> {
    DIRECTORY_TOOLS.into_iter().find(|(tools, _)| tools.split(' ').any(|tool| tool == call.tool_name)).map(|(_, names)| names)
}

/// Returns whether a call shows names of files, and nothing of the files.
pub(super) fn shows_names(call: &RuleCall<'_>) -> bool {
    NAME_TOOLS.contains(&call.tool_name)
}

/// Returns the pattern of a search that looks for names of files and not for a text: `target` says so.
pub(super) fn names_looked_for<'c>(call: &RuleCall<'c>) -> Option<Cow<'c, str>> {
    let target = call.arguments.text("target").ok().flatten()?;
    let is_names = folder_arguments(call).is_some() && fold(&target).is_none_or(|target| target != "content");
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
            Origin::Omitted => "the working folder, since the call names no folder as the tool does".to_owned(),
        };
        let message = match self {
            _ if text.starts_with(['/', '~']) => place,
            Origin::Omitted => format!("the call names no folder as the tool does, and {SEND}"),
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
    let mut paths: Vec<_> = sorted.named(ArgumentRole::Path).map(|(name, path)| (Origin::Argument(name), path.clone())).collect();
    let folders = sorted.of(ArgumentRole::Folder).count();
    if folders > 1 {
        return Err(Denial::new("oap.invalid_tool_arguments", SEVERAL_FOLDERS));
    }
    // A call whose patterns begin at the root names its folders there.
    let is_other = |pattern: &Cow<'_, str>| rooted(call, pattern).is_none();
    let names_folders = sorted.of(ArgumentRole::Pattern).next().is_some() && !sorted.of(ArgumentRole::Pattern).any(is_other);
    let own = folder_arguments(call);
    let is_own = |name: &str| own.is_none_or(|own| own.split(' ').any(|own| is_called(name, own)));
    let names_own = sorted.named(ArgumentRole::Path).any(|(name, path)| is_own(name) && !path.trim().is_empty());
    if names_own || names_folders {
        return Ok((sorted, paths));
    }
    if own.is_none() && folders == 0 {
        let what = if is_read { "File read context must include file_path" } else { "File write context must include file_path" };
        return Err(Denial::new("oap.missing_file_path", what));
    }
    paths.push((Origin::Omitted, ".".into()));
    Ok((sorted, paths))
}
