//! What happens to what lies below the files that programs are given: folders that are copied, moved, linked to, taken away or changed as a whole.

use super::archives::{extracted_to, renews, unzipped_to};
use super::git_files::{changes_all, git_operands, is_given, is_pattern};
use super::handed::{Copied, copied, is_taker, sent};
use super::touches::{operands, targets};
use super::words::{downloaded, entered, handed_on, is_unnamed};
use super::{git_subcommand, is_known};
use crate::argument::{Argument, Certainty, text_at};
use crate::files::Below;

/// Returns for each argument what happens to what lies below the file that it names. Where nothing does, the list may be empty.
#[must_use]
pub fn trees(program: &str, arguments: &[Argument]) -> Vec<Below> {
    let all = |below| vec![below; arguments.len()];
    if let Some(copied) = copied(program, arguments) {
        return of_copier(arguments, &copied);
    }
    match program {
        "mv" | "ln" => moved(arguments, &operands(program, arguments), &targets(arguments)),
        "cp" if has(arguments, &['r', 'R', 'a'], "recursive archive") => {
            moved(arguments, &operands(program, arguments), &targets(arguments))
        }
        _ if is_taker(program) => all(Below::Sent),
        "rm" if has(arguments, &['r', 'R'], "recursive") || may_recurse(arguments) => all(Below::Changes),
        "chmod" | "chown" | "chgrp" | "chattr" if has(arguments, &['R'], "recursive") => all(Below::Changes),
        "zip" if has(arguments, &['r', 'R'], "recurse-paths") || renews(arguments) => all(Below::Moves),
        "git" => of_git(arguments),
        "unzip" => {
            let folder = unzipped_to(arguments).map(|(at, _)| at);
            (0..arguments.len()).map(|at| if Some(at) == folder { Below::Fills } else { Below::Stays }).collect()
        }
        "tar" | "gtar" | "bsdtar" => {
            let folder = extracted_to(arguments);
            // What goes into an archive can be taken out at another place.
            let others = if folder.is_some() { Below::Stays } else { Below::Moves };
            (0..arguments.len()).map(|at| if Some(at) == folder { Below::Fills } else { others }).collect()
        }
        _ if is_unnamed(program) => all(Below::Unnamed),
        _ => {
            let entered = entered(program, arguments);
            let end = handed_on(program, arguments).unwrap_or(arguments.len());
            let below = |at: usize| if entered.contains(&at) || at > end { Below::Unnamed } else { Below::Stays };
            if entered.is_empty() && end == arguments.len() { Vec::new() } else { (0..arguments.len()).map(below).collect() }
        }
    }
}

/// As [`trees`], of arguments that an entry of the list allows although the program's table does not know them: nobody knows what it does with its
/// files, but for those that programs which send files elsewhere are known to read.
#[must_use]
pub fn trees_of_entry(program: &str, arguments: &[Argument], is_listed: bool) -> Vec<Below> {
    let below = trees(program, arguments);
    if !below.is_empty() || program == "git" || program.ends_with("tar") || is_listed || !is_known(program) {
        return below;
    }
    let mut below = sent(program, arguments).unwrap_or_else(|| vec![Below::Unnamed; arguments.len()]);
    if let Some(place) = downloaded(program, arguments).and_then(|at| below.get_mut(at)) {
        *place = Below::Fills;
    }
    below
}

/// Where something comes from elsewhere, nobody knows the names that come.
fn of_copier(arguments: &[Argument], copied: &Copied) -> Vec<Below> {
    let mut below = moved(arguments, &copied.words, &[]);
    for target in copied.targets.iter().filter(|_| copied.fetches) {
        below.get_mut(*target).into_iter().for_each(|place| *place = Below::Fills);
    }
    below
}

/// Returns whether an option of one of these letters stands there, or one of these words, in full or shortened.
pub(super) fn has(arguments: &[Argument], letters: &[char], words: &str) -> bool {
    arguments.iter().map(|argument| argument.text.as_str()).any(|text| match text.strip_prefix("--") {
        Some(long) => !long.is_empty() && words.split(' ').any(|word| word.starts_with(long)),
        None => text.starts_with('-') && text.contains(letters),
    })
}

/// Returns whether a glob may find a file that is called as an option of `rm` for folders: `-rf`, `--recursive`. A name that a program has found is
/// held by where it was found.
fn may_recurse(arguments: &[Argument]) -> bool {
    let is_of_option = |char: char| "*?[]-dfiIrRvPWecuso".contains(char);
    let mut words = arguments.iter().take_while(|argument| argument.text != "--");
    words.any(|word| word.certainty == Certainty::Nothing && !word.found && word.text.chars().all(is_of_option))
}

/// What is moved, copied or linked to goes to the last operand. If that is no folder yet, what lay below the one source lies below it then.
/// `targets` are the folders to which options say that it goes.
fn moved(arguments: &[Argument], operands: &[usize], targets: &[(usize, String)]) -> Vec<Below> {
    let is_far = |index: &usize| arguments.get(*index).is_some_and(|word| word.text.starts_with(['/', '~']) || word.text.contains(".."));
    let is_wide = operands.iter().any(is_far) || targets.iter().any(|(_, path)| path.starts_with(['/', '~']) || path.contains(".."));
    let mut below = vec![if is_wide { Below::Comes } else { Below::Moves }; arguments.len()];
    let target = targets.first().map(|(index, _)| *index).filter(|_| targets.len() == 1);
    let is_there = |text: &str| matches!(text.trim_end_matches('/'), "" | "." | ".." | "~");
    let is_folder =
        |index: &usize| !targets.is_empty() || operands.len() > 2 || arguments.get(*index).is_some_and(|word| is_there(&word.text));
    let is_known = |index: &usize| arguments.get(*index).is_some_and(|word| word.as_known().is_some());
    if let Some(last) = target.as_ref().or(operands.last())
        && let Some(place) = below.get_mut(*last)
    {
        // A link to a single operand is made in the folder at hand.
        match is_folder(last) && is_known(last) {
            true => *place = Below::Stays,
            false if is_wide && operands.len() > 1 => *place = Below::Lands,
            false => {}
        }
    }
    below
}

/// What `git` changes in the working folder. What it does between commits is no work of the line: branches are made of what has been committed.
fn of_git(arguments: &[Argument]) -> Vec<Below> {
    let at = git_subcommand(arguments);
    let behind = arguments.get(at + 1..).unwrap_or_default();
    let subcommand = text_at(arguments, at);
    let operands = git_operands(arguments);
    let end = arguments.iter().position(|argument| argument.text == "--");
    let text = |index: usize| text_at(arguments, index);
    // A name with an extension is rather that of one file.
    let is_file = |text: &str| text.rsplit('/').next().is_some_and(|name| name.trim_start_matches('.').contains('.')) && !is_pattern(text);
    let is_path = |text: &str| text.ends_with('/') || text.starts_with([':', '.']) || is_pattern(text);
    // The first operand of `git checkout` may be a branch.
    let is_branch = |index: usize| end.is_none_or(|end| index < end) && operands.first() == Some(&index) && !is_path(text(index));
    let takes_others = || has(behind, &['a', 'u'], "include-untracked") || has(behind, &[], "all");
    let (changed, is_changed): (Below, &dyn Fn(usize) -> bool) = match subcommand {
        "mv" => {
            let mut below = moved(arguments, &operands, &targets(arguments));
            // The folder of `-C` stays where it is.
            below.iter_mut().take(at).for_each(|below| *below = Below::Stays);
            return below;
        }
        // Twice it takes repositories away too.
        "clean" if behind.iter().map(|argument| forces(&argument.text)).sum::<usize>() > 1 => {
            return vec![Below::Changes; arguments.len()];
        }
        // A pattern finds names at any depth, and names in a list may be any.
        "rm" if !is_given(arguments, &["cached"]) && (has(behind, &['r'], "") || changes_all(arguments)) => {
            (Below::Tracked, &|index| index >= at && !is_file(text(index)))
        }
        "restore" if is_given(arguments, &["S", "staged"]) && !has(behind, &['W'], "worktree") => return Vec::new(),
        "clean" => (Below::Tracked, &|index| index >= at && !is_file(text(index))),
        "stash" if takes_others() => (Below::Tracked, &|index| index >= at && !is_file(text(index))),
        "restore" | "stash" => (Below::Committed, &|index| index >= at && !is_file(text(index))),
        "checkout" => (Below::Committed, &|index| index >= at && !is_file(text(index)) && !is_branch(index)),
        "reset" | "switch" => (Below::Committed, &|index| index == at),
        _ => return Vec::new(),
    };
    // A branch or a file may be a folder all the same, and then what is known to lie below it is changed.
    let others = |index: usize| if operands.contains(&index) { Below::Moves } else { Below::Stays };
    (0..arguments.len()).map(|index| if is_changed(index) { changed } else { others(index) }).collect()
}

/// Returns how often an argument of `git clean` forces it.
fn forces(text: &str) -> usize {
    match text.strip_prefix('-') {
        Some(letters) if !letters.starts_with('-') => letters.matches('f').count(),
        _ => usize::from(text == "--force"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn below(line: &str) -> Vec<Below> {
        let words: Vec<Argument> = line.split(' ').map(Argument::known).collect();
        trees(&words[0].text, &words[1..])
    }

    #[test]
    fn folders_that_are_there_take_what_goes_into_them_by_its_name() {
        use Below::{Changes, Comes, Committed, Fills, Lands, Moves, Stays, Tracked};
        for (line, expected) in [
            ("mv a b", vec![Moves, Moves]),
            ("mv a .", vec![Moves, Stays]),
            ("mv a b c", vec![Moves, Moves, Stays]),
            ("mv -t ../c a", vec![Comes, Stays, Comes]),
            ("mv -t c a", vec![Moves, Stays, Moves]),
            ("mv /a b", vec![Comes, Lands]),
            ("ln -s /a", vec![Comes, Comes]),
            ("cp a b", vec![]),
            ("cp -r a b", vec![Moves, Moves, Moves]),
            ("cp -r a ./", vec![Moves, Moves, Stays]),
            ("zip -r x.zip a", vec![Moves, Moves, Moves]),
            ("tar cf x.tar a", vec![Moves, Moves, Moves]),
            ("tar -xf x.tar -C a", vec![Stays, Stays, Stays, Fills]),
            ("tar xf x.tar", vec![Fills, Stays]),
            ("tar -C a -xf x.tar", vec![Stays, Fills, Stays, Stays]),
            ("unzip -qo x.zip -d a", vec![Stays, Stays, Stays, Fills]),
            ("unzip x.zip", vec![Fills]),
            ("unzip -l x.zip", vec![Stays, Stays]),
            ("rm -r a", vec![Changes, Changes]),
            ("rm a", vec![]),
            ("rsync -at a b", vec![Moves, Moves, Moves]),
            ("rsync -a h:/a b", vec![Moves, Moves, Fills]),
            ("scp -r a h:b", vec![Moves, Moves, Moves]),
            ("git -C a mv b c", vec![Stays, Stays, Moves, Moves, Moves]),
            ("git clean -fd", vec![Tracked, Tracked]),
            ("git clean -ffd", vec![Changes, Changes]),
            ("git stash push -u", vec![Tracked, Tracked, Tracked]),
            ("git stash", vec![Committed]),
            ("git checkout main", vec![Committed, Moves]),
            ("git checkout -- a.py", vec![Committed, Committed, Moves]),
            ("git restore src a.py", vec![Committed, Committed, Moves]),
            ("git restore --staged .", vec![]),
            ("git switch -f main", vec![Committed, Stays, Moves]),
            ("git checkout src/", vec![Committed, Committed]),
            ("git checkout main -- src", vec![Committed, Moves, Committed, Committed]),
            ("git checkout -- src", vec![Committed, Committed, Committed]),
            ("git rm -r --cached a", vec![]),
            ("git log a", vec![]),
        ] {
            assert_eq!(below(line), expected, "{line}");
        }
    }
}
