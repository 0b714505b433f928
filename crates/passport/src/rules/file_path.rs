//! Paths and patterns of paths, as tools are given them: only what can be understood in one way.

use super::super::links;
use super::super::look_alike::{is_ambiguous, plain_spelling};
use super::super::path::NormalPath;
use super::super::shell_glob::ShellGlob;
use super::{Denial, budget, secrets};

/// The longest path, in bytes, which is the limit of Linux.
pub(super) const PATH_BYTES_MAX: usize = 4096;

/// Signs between the paths of a list.
pub(super) const SEVERAL: [char; 3] = [',', ';', '|'];

/// How many of these signs a path may have: what stands behind each is looked at.
const PARTS_MAX: usize = 64;

/// Beginnings of lines by which a patch names files.
#[rustfmt::skip]
const PATCHED: [&str; 8] = [
    "*** Begin Patch", "*** Update File:", "*** Add File:", "*** Delete File:", "*** Move to:", "diff --git ", "***Begin Patch",
    "Index: ",
];

/// Returns whether a text is a patch, which names files itself.
pub(super) fn is_patch(text: &str) -> bool {
    let has = |beginning: &str| text.lines().any(|line| line.trim_start().starts_with(beginning));
    PATCHED.iter().any(|beginning| has(beginning)) || has("--- ") && has("+++ ")
}

/// Reads a pattern of paths below the folder that the call names. One that starts elsewhere or leaves the folder is judged as no path could
/// be, and refused. The expansions are those of its braces. A tool that shows `only_names` may find the name of a secret, as `ls` does, but may not
/// be asked for it.
pub(super) fn check_pattern(pattern: &str, expansions: &[String], only_names: bool) -> Result<(), Denial> {
    let leaves = |expansion: &String| {
        let climbs = |component: &str| component == "??" || component == "?." || ShellGlob::new(component).meets("..");
        expansion.trim_start().starts_with(['/', '~', '\\']) || is_ambiguous(expansion) || expansion.split(['/', '\\']).any(climbs)
    };
    if has_group(pattern) || pattern.len() > PATH_BYTES_MAX || pattern.chars().any(char::is_control) || expansions.iter().any(leaves) {
        let message = "Pattern of paths leaves the folder that the call names, or has more than `*`, `**`, `?`, `[]` and `{}`";
        return Err(Denial::new("oap.path_not_allowed", message));
    }
    let spellings: Vec<String> = expansions.iter().filter_map(|expansion| plain_spelling(expansion)).collect();
    let texts = || expansions.iter().chain(&spellings);
    let secret = texts().find_map(|text| secrets::secret_of_word(text));
    match secret.is_some() || !only_names && texts().any(|text| secrets::secret_pattern(text)) {
        true => Err(secrets::denial("Pattern of paths", secret)),
        false => Ok(()),
    }
}

/// Returns whether a text has a group that some shells and tools take for a pattern.
fn has_group(text: &str) -> bool {
    ["@(", "*(", "+(", "?(", "!("].iter().any(|group| text.contains(group))
}

/// Refuses a path with such a group.
pub(super) fn check_group(path: &str) -> Result<(), Denial> {
    const MESSAGE: &str = "File path has a group that is a pattern to some tools; write the path, or a pattern with `*`, `?` and `[]`";
    if has_group(path) { Err(Denial::new("oap.invalid_tool_arguments", MESSAGE)) } else { Ok(()) }
}

/// Reads a path that can be understood in one way only.
pub(super) fn read_path(text: &str) -> Result<NormalPath, Denial> {
    let invalid = |message| Err(Denial::new("oap.invalid_tool_arguments", message));
    if text.trim().is_empty() {
        return Err(Denial::new("oap.missing_file_path", "File path is empty"));
    }
    if text.len() > PATH_BYTES_MAX {
        return invalid("File path is too long");
    }
    budget::check_depth(text)?;
    if text.chars().any(|character| character.is_control() || character == '\\') {
        return invalid("File path holds a control character or a backslash");
    }
    let shown = text.trim_start_matches(|char: char| char.is_whitespace() || char == '\u{feff}');
    if shown.len() < text.len() && shown.starts_with(['/', '~']) || text.matches(SEVERAL).nth(PARTS_MAX).is_some() {
        return invalid("File path has blanks in front, or may be several paths");
    }
    if text.contains("://") {
        return invalid("File path is a URL");
    }
    if text.starts_with('-') {
        return invalid("File path begins as an option does; write ./ in front");
    }
    // A blank in front of a root or a home, or a bar, may begin another path to a tool that takes several.
    if [" /", " ~", "|/", "|~", "$(", "`"].iter().any(|sign| text.contains(sign)) {
        return invalid("File path may be several paths, or hold a command");
    }
    check_group(text)?;
    if is_ambiguous(text) {
        return invalid("File path may be another place to some systems: a URL, a drive, a short name, or one with percent signs");
    }
    if links::is_other_name(text) || links::is_stream(text) {
        const WHAT: &str =
            "File path is another name of a place: write the place itself, not through `/proc/PROCESS`, `/dev/fd` or `~user`";
        return Err(Denial::new("oap.path_not_allowed", WHAT));
    }
    Ok(NormalPath::new(text))
}
