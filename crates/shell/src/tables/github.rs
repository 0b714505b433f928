//! `gh`: what shows pull requests, issues, runs and releases of a repository.
//!
//! Left out: `api` (any request), what opens a browser (`--web`), what chooses another host (`-R HOST/OWNER/REPO`, an address as an operand),
//! and all that writes, merges, downloads or checks something out. Other subcommands may be extensions or aliases, which run what somebody
//! has installed: a list has to name them.

use super::checks::{Checked, accept};
use super::{Operands, PROGRAM, Program, Subcommand};
use crate::argument::Argument;

pub const PROGRAMS: &[Program] = &[Program { names: &["gh"], options: "--version", subcommands: GH, ..PROGRAM }];

/// Options that choose the repository and the form of what is shown.
macro_rules! shown {
    () => {
        "-R=REPOSITORY --repo=REPOSITORY --json=WORD -q=WORD --jq=WORD -t=WORD --template=WORD "
    };
}

/// Options that choose from a list.
macro_rules! listed {
    () => {
        "-L=WORD --limit=WORD -s=WORD --state=WORD -A=WORD --author=WORD -a=WORD --assignee=WORD -l=WORD --label=WORD -S=WORD \
         --search=WORD -m=WORD --milestone=WORD --mention=WORD --app=WORD "
    };
}

/// TABLE: what `gh` shows.
const GH: &[Subcommand] = &[
    named("pr.view issue.view", concat!(shown!(), "-c --comments")),
    named("pr.list issue.list", concat!(shown!(), listed!(), "-B=WORD --base=WORD -H=WORD --head=WORD -d --draft")),
    named("pr.status issue.status", concat!(shown!(), "-c --conflict-status")),
    named("pr.diff", concat!(shown!(), "--color=WORD --name-only --patch")),
    named("pr.checks", concat!(shown!(), "--required --watch -i=WORD --interval=WORD --fail-fast")),
    named(
        "run.list workflow.list",
        concat!(
            shown!(),
            "-L=WORD --limit=WORD -b=WORD --branch=WORD -w=WORD --workflow=WORD -s=WORD --status=WORD -u=WORD --user=WORD -e=WORD \
             --event=WORD -c=WORD --commit=WORD --created=WORD -a --all"
        ),
    ),
    named("run.view", concat!(shown!(), "-a=WORD --attempt=WORD --exit-status -j=WORD --job=WORD --log --log-failed -v --verbose")),
    named("run.watch", "-R=REPOSITORY --repo=REPOSITORY --exit-status -i=WORD --interval=WORD --compact"),
    named("release.list", concat!(shown!(), "-L=WORD --limit=WORD --exclude-drafts --exclude-pre-releases -O=WORD --order=WORD")),
    named("release.view", shown!()),
    named("label.list", concat!(shown!(), "-L=WORD --limit=WORD -S=WORD --search=WORD --order=WORD --sort=WORD")),
];

const fn named(names: &'static str, options: &'static str) -> Subcommand {
    Subcommand { names, options, operands: Operands::Checked(plain_names) }
}

/// Accepts numbers, branches and tags, and no address of another host.
fn plain_names(operands: &[&Argument]) -> Checked {
    let is_name = |operand: &&&Argument| operand.as_known().is_some_and(|text| !text.starts_with('-') && !text.contains([':', '@', '\\']));
    accept(operands.iter().all(|operand| is_name(&operand)), "an operand that is no plain number or name")
}
