//! `git`: what an agent does in its own repository.
//!
//! That somebody lists `git` means that they trust what their repository and settings run: hooks, filters, drivers, pagers, helpers.
//! `-C DIR` is as good as `cd DIR`. Who may write to `.git`, or make a folder that looks like a repository, can have `git` run anything:
//! that is for the rules of files.
//!
//! Left out: all that takes an address (`clone`, `remote add`, `submodule update`, an operand of `push` or `fetch` that is no name), a
//! command (`bisect run`, `--exec`, `-x`, `--upload-pack`, `merge -s`) or a file to write (`--output`, `archive -o`, `worktree add`);
//! `--git-dir`, `--work-tree` and settings that are not in the table of [`super::values`]; all that checks a signature, which another
//! program does; and all that opens an editor or asks, because an editor takes commands from a pipe: `-i`, `-e`, `commit` without a
//! message. `add -p` and `rebase --continue` are in the table where the line gives them nothing to read ([`asks`]).

use super::Style;
use super::options::Options;
use super::reading::{NEEDED, Unlisted, read, scan};
use super::values::is_git_setting;
use crate::argument::{Argument, text_at};
use std::sync::LazyLock;

/// TABLE: options of a `git clone` that a list names. Left out is what runs (`-u`, `-c`), loads (`--template`, `--reference`) or writes elsewhere.
static CLONE: LazyLock<Options> = LazyLock::new(|| {
    Options::new(
        "-q --quiet -v --verbose --progress -n --no-checkout --bare --mirror -b=WORD --branch=WORD --depth=WORD --shallow-since=WORD \
         --single-branch --no-single-branch --no-tags --recurse-submodules --recursive --shallow-submodules --filter=WORD --sparse -j=WORD \
         --jobs=WORD --no-hardlinks",
    )
});

/// Says of a command that asks what to do, and reads the answers from what the line gives it.
pub const ASKS: &str = "an option that asks, and the line answers";

/// Returns whether `git` asks what to do: the answers may start an editor.
#[must_use]
pub fn asks(arguments: &[Argument]) -> bool {
    let behind = arguments.get(super::git_subcommand(arguments)..).unwrap_or_default();
    let is_patch = |argument: &Argument| {
        let text = argument.text.as_str();
        text == "--patch" || text.starts_with('-') && !text.starts_with("--") && text.contains('p')
    };
    match text_at(behind, 0) {
        "add" | "stage" => behind.iter().any(is_patch),
        "cherry-pick" | "merge" | "rebase" | "revert" => behind.iter().any(|argument| argument.text == "--continue"),
        // Without a message they open an editor, if a list names them so.
        "commit" | "tag" => read("git", arguments).is_err_and(|unlisted| unlisted.what == NEEDED),
        _ => false,
    }
}

/// Returns the places of the operands behind `git clone`.
///
/// # Errors
/// [`Unlisted`] is the first argument that is not known to be harmless.
pub fn clone_operands(arguments: &[Argument]) -> Result<Vec<usize>, Unlisted> {
    scan(arguments, &CLONE, Style::Gnu).map(|scan| scan.operands)
}

/// Accepts reading settings, and making harmless ones: `config NAME`, `config get NAME`, `config NAME VALUE`, `config set NAME VALUE`.
/// `config edit` opens an editor.
pub(super) fn config(operands: &[&Argument]) -> Option<usize> {
    let text = |at: usize| operands.get(at).and_then(|operand| operand.as_known());
    let set = usize::from(text(0) == Some("set"));
    let sets = |at: usize| {
        let is_one = operands.get(at + 1).is_some_and(|value| !value.many);
        is_one && text(at).is_some_and(|name| is_git_setting(name, text(at + 1)))
    };
    let is_fine = match (operands.len(), text(0)) {
        (0, _) | (1, Some("list")) | (2, Some("get")) => true,
        (1, Some(name)) => name.contains('.'),
        (count, _) => count == set + 2 && sets(set),
    };
    (!is_fine).then_some(operands.len().saturating_sub(1))
}
