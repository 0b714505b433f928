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

/// Reads the arguments, with the working directory as the path of a tool that needs no path.
pub(super) fn read_arguments<'c>(call: &RuleCall<'c>, is_read: bool) -> Result<(Sorted<'c>, Vec<Cow<'c, str>>), Denial> {
    let sorted = call.sorted()?;
    let paths: Vec<_> = sorted.of(ArgumentRole::Path).cloned().collect();
    let folders = sorted.of(ArgumentRole::Folder).count();
    if folders > 1 {
        return Err(Denial::new("oap.invalid_tool_arguments", SEVERAL_FOLDERS));
    }
    match paths.is_empty() {
        false => Ok((sorted, paths)),
        true if folders == 1 || needs_no_path(call) => Ok((sorted, vec![".".into()])),
        true => {
            let what = if is_read { "File read context must include file_path" } else { "File write context must include file_path" };
            Err(Denial::new("oap.missing_file_path", what))
        }
    }
}
