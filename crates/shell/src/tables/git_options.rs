//! Options that several subcommands of `git` have.
//!
//! `git log` and its relatives read their arguments twice, so a value in the next argument must not look like an option (`WORD`). An
//! option that takes its value only behind `=` is written `[=WORD]`: the next argument is read for itself then, as `git` does.
//! Left out are `--output`, which writes, and `--ext-diff` and `--textconv`, which run.

/// How differences are shown.
macro_rules! diff {
    () => {
        "-p -u --patch -s --no-patch -U[=N] --unified[=N] -W --function-context --raw --patch-with-raw --patch-with-stat --numstat \
         --shortstat -X[=WORD] --dirstat[=WORD] --cumulative --dirstat-by-file[=WORD] --check --summary --name-only --name-status \
         --stat[=WORD] --stat-width=WORD --stat-name-width=WORD --stat-graph-width=WORD --stat-count=WORD --compact-summary --binary \
         --full-index --no-color --color[=WORD] --ws-error-highlight=WORD -z --abbrev[=N] --no-abbrev --src-prefix=WORD \
         --dst-prefix=WORD --line-prefix=WORD --no-prefix --default-prefix --inter-hunk-context=WORD --output-indicator-new=WORD \
         --output-indicator-old=WORD --output-indicator-context=WORD -B[=N] --break-rewrites[=N] -M[=N] --find-renames[=N] -D \
         --irreversible-delete -C[=N] --find-copies[=N] --find-copies-harder --no-renames --rename-empty --no-rename-empty --follow \
         --no-follow -l=WORD --minimal -w --ignore-all-space -b --ignore-space-change --ignore-space-at-eol --ignore-cr-at-eol \
         --ignore-blank-lines -I=WORD --ignore-matching-lines=WORD --indent-heuristic --no-indent-heuristic --patience --histogram \
         --diff-algorithm=WORD --anchored=WORD --word-diff[=WORD] --word-diff-regex=WORD --color-words[=WORD] --color-moved[=WORD] \
         --no-color-moved --color-moved-ws=WORD --relative[=WORD] --no-relative -a --text -R --exit-code --quiet --no-ext-diff \
         --no-textconv --ignore-submodules[=WORD] --submodule[=WORD] -S=WORD -G=WORD --pickaxe-all --pickaxe-regex --rotate-to=WORD \
         --skip-to=WORD --find-object=WORD --diff-filter=WORD --ita-invisible-in-index "
    };
}

/// Which commits are walked, and in which order.
macro_rules! revisions {
    () => {
        "-NUM -n=WORD --max-count=WORD --skip=WORD --since=WORD --after=WORD --until=WORD --before=WORD --since-as-filter=WORD \
         --author=WORD --committer=WORD --grep=WORD --grep-reflog=WORD --all-match --invert-grep -i --regexp-ignore-case \
         --basic-regexp -E --extended-regexp -F --fixed-strings -P --perl-regexp --merges --no-merges --min-parents[=N] --max-parents[=N] \
         --no-min-parents --no-max-parents --first-parent --exclude-first-parent-only --not --all --branches[=WORD] --tags[=WORD] \
         --remotes[=WORD] --glob=WORD --exclude=WORD --reflog --alternate-refs --single-worktree --ignore-missing --bisect \
         --cherry-mark --cherry-pick --left-only --right-only --left-right --cherry -g --walk-reflogs --merge --boundary --sparse \
         --simplify-by-decoration --show-pulls --full-history --dense --simplify-merges --ancestry-path[=WORD] --date-order \
         --author-date-order --topo-order --reverse --no-walk[=WORD] --do-walk --full-diff --graph --no-graph --parents --children \
         --root --relative-date --date=WORD --pretty[=FORMAT] --format[=FORMAT] --oneline --abbrev-commit --no-abbrev-commit \
         --encoding=WORD --expand-tabs[=N] --no-expand-tabs --notes[=WORD] --no-notes --show-notes[=WORD] --no-show-signature \
         --show-linear-break[=WORD] --log-size "
    };
}

/// What `git log` and `git show` have.
macro_rules! log {
    () => {
        concat!(
            "-q --quiet --source --use-mailmap --mailmap --no-use-mailmap --no-mailmap --clear-decorations --decorate[=WORD] \
             --no-decorate --decorate-refs=WORD --decorate-refs-exclude=WORD -L=WORD -c --cc -m --diff-merges=WORD --no-diff-merges \
             --remerge-diff -t -r --combined-all-paths --dd ",
            diff!(),
            revisions!()
        )
    };
}

/// How references are listed.
macro_rules! references {
    () => {
        "--sort=FORMAT --format=FORMAT --contains=WORD --no-contains=WORD --merged=WORD --no-merged=WORD --points-at=WORD \
         --ignore-case --color[=WORD] --no-color --column[=WORD] --no-column "
    };
}

pub(super) use {diff, log, references, revisions};
