//! `git`: what an agent does in its own repository.
//!
//! That somebody lists `git` means that they trust what their repository and settings run: hooks, filters, drivers, pagers, helpers.
//! `-C DIR` is as good as `cd DIR`. Who may write to `.git`, or make a folder that looks like a repository, can have `git` run anything:
//! that is for the rules of files.
//!
//! Left out: all that takes an address (`clone`, `remote add`, `submodule update`, an operand of `push` or `fetch` that is no name), a
//! command (`bisect run`, `--exec`, `-x`, `--upload-pack`, `merge -s`) or a file to write (`--output`, `archive -o`, `worktree add`);
//! `--git-dir`, `--work-tree` and settings that are not in the table of [`super::values`]; all that checks a signature, which another program does; and all that opens an editor or asks,
//! because an editor takes commands from a pipe: `-i`, `-e`, `commit` without a message, `rebase --continue`. `add -p` is in the table where
//! the line gives it nothing to read ([`asks`]).

use super::git_options::{diff, log, references, revisions};
use super::options::Options;
use super::reading::{Unlisted, scan};
use super::values::{is_git_setting, is_refspec, is_remote};
use super::{PROGRAM, Program, Style, Subcommand, any, checked, most};
use crate::argument::Argument;
use std::sync::LazyLock;

pub const PROGRAMS: &[Program] = &[Program {
    names: &["git"],
    options: "--version -v -P --no-pager --no-optional-locks --no-replace-objects --no-lazy-fetch --literal-pathspecs --glob-pathspecs \
              --noglob-pathspecs --icase-pathspecs -C=WORD -c=GIT --exec-path --html-path --man-path --info-path -h",
    subcommands: SUBCOMMANDS,
    ..PROGRAM
}];

/// TABLE: subcommands of which much is known: those that show, those that change the repository, those that use its remotes.
const SUBCOMMANDS: &[Subcommand] = &[
    // What is there.
    any(
        "status",
        "-s --short -b --branch --show-stash --porcelain[=WORD] --long -v --verbose -z --null -u[=WORD] --untracked-files[=WORD] \
         --ignored[=WORD] --ignore-submodules[=WORD] --column[=WORD] --no-column --no-renames --renames -M[=N] --find-renames[=N] \
         --ahead-behind --no-ahead-behind",
    ),
    any("log show whatchanged", log!()),
    any("reflog reflog.show", log!()),
    checked("reflog.delete reflog.drop reflog.expire reflog.write", refused, ""),
    any(
        "diff",
        concat!(diff!(), "--cached --staged --merge-base --no-index -0 -1 -2 -3 --base --ours --theirs --cc -c --combined-all-paths "),
    ),
    any(
        "diff-tree diff-index diff-files",
        concat!(diff!(), "--cached --no-commit-id -r -t -m -c --cc --always --root -q --merge-base --pretty[=FORMAT] --format[=FORMAT] "),
    ),
    any("range-diff", concat!(diff!(), "--creation-factor=WORD --no-dual-color --left-only --right-only ")),
    any(
        "rev-list",
        concat!(
            revisions!(),
            "--count --objects --objects-edge --timestamp --quiet --no-object-names --use-bitmap-index --header \
                     --disk-usage[=WORD] --no-commit-header --abbrev[=N] --no-abbrev "
        ),
    ),
    any(
        "shortlog",
        "-n --numbered -s --summary -e --email -w[=WORD] --group=FORMAT -c --since=WORD --until=WORD --all --no-merges \
                 --merges --author=WORD --format[=FORMAT]",
    ),
    any(
        "blame annotate",
        "-L=WORD -l -t -s -e --show-email -f --show-name -n --show-number -p --porcelain --line-porcelain -c --incremental -b --root \
         --show-stats --score-debug -w -M[=N] -C[=N] --date=WORD --since=WORD --abbrev[=N] --reverse --first-parent --color-lines \
         --color-by-age --progress --no-progress --ignore-rev=WORD --ignore-revs-file=WORD --contents=WORD --minimal",
    ),
    any(
        "grep",
        "-NUM -e=TEXT -f=WORD -i --ignore-case -I -v --invert-match -w --word-regexp -n --line-number --no-line-number \
         --column -l --files-with-matches --name-only -L --files-without-match -c --count -h -H --full-name -E --extended-regexp -G \
         --basic-regexp -F --fixed-strings -P --perl-regexp -a --text --no-textconv -r --recursive --no-recursive --max-depth=WORD -o \
         --only-matching -z --null --color[=WORD] --no-color --break --heading -p --show-function -A=WORD --after-context=WORD -B=WORD \
         --before-context=WORD -C=WORD --context=WORD -W --function-context -m=WORD --max-count=WORD --and --or --not --all-match -q \
         --quiet --cached --untracked --no-index --no-exclude-standard --exclude-standard --threads=WORD",
    ),
    any(
        "rev-parse",
        "-q --quiet --verify --short[=N] --abbrev-ref[=WORD] --symbolic --symbolic-full-name --show-toplevel --show-prefix --show-cdup \
         --git-dir --absolute-git-dir --git-common-dir --git-path=WORD --is-inside-work-tree --is-inside-git-dir \
         --is-bare-repository --is-shallow-repository --show-superproject-working-tree --show-object-format[=WORD] --show-ref-format \
         --path-format[=WORD] --all --branches[=WORD] --tags[=WORD] --remotes[=WORD] --sq --not --revs-only --no-revs --flags \
         --no-flags --shared-index-path",
    ),
    any(
        "ls-files",
        "-c --cached -d --deleted -m --modified -o --others -i --ignored -s --stage --directory --no-empty-directory -u --unmerged -k \
         --killed -z -x=WORD --exclude=WORD -X=STRATEGY --exclude-from=WORD --exclude-per-directory=WORD --exclude-standard --error-unmatch \
         --with-tree=WORD -t -v -f --full-name --recurse-submodules --abbrev[=N] --debug --eol --deduplicate --sparse --format=WORD",
    ),
    any("ls-tree", "-d -r -t -l --long -z --name-only --name-status --object-only --full-name --full-tree --abbrev[=N] --format=WORD"),
    any(
        "describe",
        "--dirty[=WORD] --broken[=WORD] --all --tags --contains --abbrev[=N] --candidates=WORD --exact-match --debug --long \
         --match=WORD --exclude=WORD --always --first-parent",
    ),
    any("name-rev", "--tags --refs=WORD --exclude=WORD --all --name-only --no-undefined --always"),
    any("merge-base", "-a --all --octopus --independent --is-ancestor --fork-point"),
    any("cat-file", "-t -s -e -p --allow-unknown-type --batch[=WORD] --batch-check[=WORD] --batch-all-objects --unordered --buffer"),
    any("show-ref", "-q --quiet -d --dereference --head --heads --branches --tags --verify --exists -s[=N] --hash[=N] --abbrev[=N]"),
    any(
        "for-each-ref",
        concat!(references!(), "--count=WORD --shell --perl --python --tcl --omit-empty --include-root-refs --exclude=WORD "),
    ),
    any(
        "show-branch",
        "-r --remotes -a --all --current --topo-order --date-order --sparse --more[=N] --list --no-name --sha1-name \
                 --color[=WORD] --no-color",
    ),
    any("cherry", "-v --verbose --abbrev[=N]"),
    any("check-ignore", "-q --quiet -v --verbose --stdin -z -n --non-matching --no-index"),
    any("check-attr", "-a --all --cached --stdin -z"),
    any("count-objects", "-v --verbose -H --human-readable"),
    any(
        "fsck",
        "--full --no-full --strict --verbose --progress --no-progress --unreachable --dangling --no-dangling --root \
                 --tags --connectivity-only --name-objects",
    ),
    any("verify-pack", "-v --verbose -s --stat-only"),
    most("symbolic-ref", 1, "-q --quiet --short"),
    most("version", 0, "--build-options"),
    most("help", 0, "-a --all -g --guides"),
    most("var", 1, "-l"),
    any("worktree.list", "--porcelain -v --verbose -z"),
    any("stash.list", "--oneline -p --stat --date=WORD --format[=FORMAT] --pretty[=FORMAT] -n=WORD -NUM"),
    most("stash.show", 1, "-p --patch --stat --name-only --name-status --numstat -u --include-untracked --only-untracked --no-color"),
    most("submodule.status", 99, "--cached --recursive -q --quiet"),
    any("notes.list notes.show", ""),
    most("bisect.log", 0, ""),
    // Settings that are harmless, and reading the others.
    checked(
        "config",
        config,
        "--global --local --system --worktree --get --get-all --get-regexp --get-urlmatch -l --list --show-origin --show-scope \
         --name-only --null -z --bool --int --path --bool-or-int --type=WORD --includes --no-includes --default=WORD",
    ),
    // What changes the repository and its files.
    any(
        "add stage",
        "-n --dry-run -v --verbose -f --force -u --update --renormalize -N --intent-to-add -A --all --no-all --ignore-removal \
         --no-ignore-removal --refresh --ignore-errors --ignore-missing --sparse --chmod=WORD --pathspec-from-file=WORD \
         --pathspec-file-nul -p --patch",
    ),
    any("apply", "? !--check !--stat !--numstat !--summary -p=WORD -R --reverse -3 --3way --cached --index -v --verbose -q --quiet"),
    any(
        "commit",
        "? !-m=TEXT !--message=TEXT !-F=WORD !--file=WORD !-C=WORD !--reuse-message=WORD !--no-edit !--dry-run !--short !--porcelain \
         --fixup=WORD -q --quiet -v --verbose --author=WORD --date=WORD --reset-author -s --signoff --no-signoff --trailer=WORD \
         --cleanup=WORD --status --no-status --no-gpg-sign -a --all --include --only -o -n --no-verify --verify --branch \
         --ahead-behind --long -z --null --amend --no-post-rewrite -u[=WORD] --untracked-files[=WORD] --allow-empty \
         --allow-empty-message --pathspec-from-file=WORD --pathspec-file-nul",
    ),
    any(
        "checkout",
        "-b=WORD -B=WORD -l --guess --no-guess --overlay --no-overlay -q --quiet --progress --no-progress -m --merge --conflict=WORD -d \
         --detach -t --track[=WORD] --no-track -f --force --orphan=WORD --overwrite-ignore --no-overwrite-ignore \
         --ignore-other-worktrees -2 --ours -3 --theirs --ignore-skip-worktree-bits --pathspec-from-file=WORD --pathspec-file-nul",
    ),
    any(
        "switch",
        "-c=WORD --create=WORD -C=WORD --force-create=WORD --guess --no-guess --discard-changes -q --quiet --progress --no-progress -m \
         --merge --conflict=WORD -d --detach -t --track[=WORD] --no-track -f --force --orphan=WORD --ignore-other-worktrees",
    ),
    any(
        "restore",
        "-s=WORD --source=WORD -S --staged -W --worktree --ignore-unmerged --overlay --no-overlay -q --quiet --progress --no-progress -m \
         --merge --conflict=WORD -2 --ours -3 --theirs --pathspec-from-file=WORD --pathspec-file-nul",
    ),
    any(
        "reset",
        "-q --quiet --no-refresh --refresh --mixed --soft --hard --merge --keep -N --intent-to-add \
                 --pathspec-from-file=WORD --pathspec-file-nul",
    ),
    any("rm", "-n --dry-run -q --quiet --cached -f --force -r --ignore-unmatch --sparse --pathspec-from-file=WORD --pathspec-file-nul"),
    any("mv", "-v --verbose -n --dry-run -f --force -k --sparse"),
    any("clean", "-q --quiet -n --dry-run -f --force -d -e=WORD --exclude=WORD -x -X"),
    any(
        "branch",
        concat!(
            references!(),
            "-v --verbose -q --quiet -t --track[=WORD] --no-track -u=WORD --set-upstream-to=WORD --unset-upstream -r --remotes -a --all \
             --abbrev[=N] --no-abbrev -d --delete -D -m --move -M --omit-empty -c --copy -C -l --list --show-current --create-reflog -f \
             --force "
        ),
    ),
    any(
        "tag",
        concat!(
            references!(),
            "-l --list -n[=N] -d --delete ?-a ?--annotate !-m=TEXT !--message=TEXT !-F=WORD !--file=WORD --cleanup=WORD -f \
             --force --create-reflog --no-sign "
        ),
    ),
    any(
        "merge",
        "-n --stat --no-stat --summary --log[=N] --no-log --squash --no-squash --commit --no-commit --no-edit --cleanup=WORD --ff --no-ff \
         --ff-only --no-verify-signatures -X=STRATEGY --strategy-option=STRATEGY -m=TEXT --message=TEXT -F=WORD --file=WORD \
         -v --verbose -q --quiet --abort --quit --allow-unrelated-histories --progress --no-progress --no-gpg-sign --autostash \
         --no-autostash --signoff --no-signoff --no-verify",
    ),
    any(
        "rebase",
        "--onto=WORD --keep-base --no-verify -q --quiet -v --verbose -n --no-stat --stat --signoff --committer-date-is-author-date \
         --reset-author-date --ignore-date --ignore-whitespace -f --force-rebase --no-ff --skip --abort --quit --show-current-patch \
         --apply -m --merge --rerere-autoupdate --no-rerere-autoupdate --empty=WORD --no-autosquash --update-refs --no-update-refs \
         --no-gpg-sign --autostash --no-autostash --rebase-merges[=WORD] --no-rebase-merges --fork-point --no-fork-point -X=STRATEGY \
         --strategy-option=STRATEGY --root --keep-empty --no-keep-empty",
    ),
    any(
        "cherry-pick revert",
        "--quit --abort --skip -n --no-commit --no-edit -s --signoff -m=WORD --mainline=WORD --rerere-autoupdate -X=STRATEGY \
         --strategy-option=STRATEGY --no-gpg-sign -x --ff --allow-empty --allow-empty-message --keep-redundant-commits",
    ),
    // Otherwise it writes files to the working folder, whose names are made of what commits say.
    any(
        "format-patch",
        concat!(
            diff!(),
            revisions!(),
            "? !--stdout -k --keep-subject -s --signoff --cover-letter --no-cover-letter -N --no-numbered -n --numbered --start-number=WORD \
             -v=WORD --reroll-count=WORD --subject-prefix=WORD --no-binary --zero-commit --no-thread --no-attach --base=WORD"
        ),
    ),
    any("archive", "-l --list --format=WORD --prefix=WORD -v --verbose -NUM --worktree-attributes --mtime=WORD"),
    most("init", 0, "-q --quiet -b=WORD --initial-branch=WORD"),
    any("gc", "-q --quiet --auto --aggressive --prune[=WORD] --no-prune --force"),
    any("prune", "-n --dry-run -v --verbose --progress"),
    any(
        "update-index",
        "-q --refresh --really-refresh --add --remove --chmod=WORD --assume-unchanged --no-assume-unchanged \
                 --skip-worktree --no-skip-worktree",
    ),
    any("hash-object", "-t=WORD --stdin --no-filters"),
    any("worktree.prune", "-n --dry-run -v --verbose --expire=WORD"),
    any("bisect.start bisect.good bisect.bad bisect.old bisect.new bisect.skip bisect.reset", ""),
    any(
        "stash.push",
        "-k --keep-index --no-keep-index -S --staged -q --quiet -u --include-untracked -a --all -m=TEXT --message=TEXT \
                 --pathspec-from-file=WORD --pathspec-file-nul",
    ),
    most("stash", 0, "-k --keep-index --no-keep-index -S --staged -q --quiet -u --include-untracked -a --all"),
    most("stash.save", 1, "-k --keep-index --no-keep-index -q --quiet -u --include-untracked -a --all"),
    most("stash.pop stash.apply", 1, "--index -q --quiet"),
    most("stash.drop", 1, "-q --quiet"),
    most("stash.clear", 0, ""),
    most("stash.branch", 2, ""),
    // The remotes, by name.
    most("remote", 0, "-v --verbose"),
    checked("remote.show remote.prune", remotes, "-n --dry-run"),
    checked("remote.get-url", remotes, "--push --all"),
    checked("remote.remove remote.rm remote.rename", remotes, ""),
    checked("remote.update", remotes, "-p --prune"),
    checked("remote.set-head", remote, "-a --auto -d --delete"),
    checked(
        "fetch",
        remote,
        "-v --verbose -q --quiet --all --no-all --set-upstream -a --append --atomic -f --force -t --tags -n --no-tags \
        -j=WORD --jobs=WORD -p \
         --prune --no-prune -P --prune-tags --no-recurse-submodules --dry-run --porcelain --no-write-fetch-head -k --keep \
         --progress --no-progress --depth=WORD --shallow-since=WORD --shallow-exclude=WORD --deepen=WORD --unshallow --update-shallow \
         -4 --ipv4 -6 --ipv6 --no-auto-gc --no-auto-maintenance",
    ),
    checked(
        "pull",
        remote,
        "-v --verbose -q --quiet --progress --no-progress --no-recurse-submodules --rebase --no-rebase -n --stat --no-stat --log[=N] \
         --no-log --squash --commit --no-commit --no-edit --ff --no-ff --ff-only --no-verify --no-verify-signatures --autostash \
         --no-autostash -X=STRATEGY --strategy-option=STRATEGY --no-gpg-sign --allow-unrelated-histories --all -a --append -f --force -t --tags \
         --no-tags -p --prune -j[=N] --jobs[=N] --dry-run -k --keep --depth=WORD --shallow-since=WORD --deepen=WORD --unshallow -4 \
         --ipv4 -6 --ipv6 --set-upstream",
    ),
    checked(
        "push",
        remote,
        "-v --verbose -q --quiet --all --branches --mirror -d --delete --tags -n --dry-run --porcelain -f --force \
         --force-with-lease[=WORD] --no-force-with-lease --force-if-includes --no-recurse-submodules --thin --no-thin -u --set-upstream \
         --progress --no-progress --prune --no-verify --follow-tags --no-follow-tags --no-signed --atomic -4 --ipv4 -6 --ipv6",
    ),
    checked("ls-remote", remote, "--heads -h --branches --tags -t --refs -q --quiet --exit-code --get-url --sort=FORMAT --symref"),
];

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
    behind.first().is_some_and(|subcommand| matches!(subcommand.text.as_str(), "add" | "stage")) && behind.iter().any(is_patch)
}

/// Returns the places of the operands behind `git clone`.
///
/// # Errors
/// [`Unlisted`] is the first argument that is not known to be harmless.
pub fn clone_operands(arguments: &[Argument]) -> Result<Vec<usize>, Unlisted> {
    scan(arguments, &CLONE, Style::Gnu).map(|scan| scan.operands)
}

/// Accepts the name of a remote, then references.
fn remote(operands: &[&Argument]) -> Result<(), &'static str> {
    let Some((first, references)) = operands.split_first() else { return Ok(()) };
    if !is_remote(first) {
        return Err("a repository that is not named as a remote");
    }
    if references.iter().all(|reference| is_refspec(reference)) { Ok(()) } else { Err("a reference that is not plain") }
}

/// Accepts nothing.
fn refused(_operands: &[&Argument]) -> Result<(), &'static str> {
    Err("a subcommand that is not known to be harmless")
}

/// Accepts names of remotes.
fn remotes(operands: &[&Argument]) -> Result<(), &'static str> {
    if operands.iter().all(|name| is_remote(name)) { Ok(()) } else { Err("a repository that is not named as a remote") }
}

/// Accepts reading settings, and making harmless ones: `config NAME`, `config get NAME`, `config NAME VALUE`, `config set NAME VALUE`.
fn config(operands: &[&Argument]) -> Result<(), &'static str> {
    let refused = Err("a setting that is not known to be harmless");
    let Some((first, rest)) = operands.split_first() else { return Ok(()) };
    let Some(first) = first.as_known() else { return refused };
    let (name, value) = match (first, rest) {
        ("get", [_]) | ("list", []) => return Ok(()),
        // `config edit` opens an editor.
        (name, []) if name.contains('.') => return Ok(()),
        ("set", [name, value]) => (name.as_known(), value),
        (name, [value]) => (Some(name), value),
        _ => return refused,
    };
    if !value.many && name.is_some_and(|name| is_git_setting(name, value.as_known())) { Ok(()) } else { refused }
}
