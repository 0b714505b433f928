//! `git`: aliases, settings, options and addresses by which it executes commands.

use super::finding::Unproven;
use super::run::join;
use super::scope::Scope;
use super::value::{Field, Hole};
use super::walk::{Context, Walk, Way};

/// TABLE: settings that only change what is shown or how. A name that ends in a dot stands for all below it.
const HARMLESS_SETTINGS: &[&str] = &[
    "advice.",
    "branch.",
    "color.",
    "column.",
    "commit.gpgsign",
    "core.abbrev",
    "core.autocrlf",
    "core.bare",
    "core.eol",
    "core.filemode",
    "core.ignorecase",
    "core.longpaths",
    "core.quotepath",
    "diff.algorithm",
    "diff.colormoved",
    "diff.context",
    "diff.mnemonicprefix",
    "diff.noprefix",
    "diff.renames",
    "feature.",
    "fetch.parallel",
    "fetch.prune",
    "gc.auto",
    "http.extraheader",
    "http.lowspeedlimit",
    "http.lowspeedtime",
    "http.postbuffer",
    "http.version",
    "init.defaultbranch",
    "log.",
    "maintenance.",
    "merge.conflictstyle",
    "merge.ff",
    "pack.",
    "protocol.version",
    "pull.ff",
    "pull.rebase",
    "push.autosetupremote",
    "push.default",
    "rebase.autosquash",
    "rebase.autostash",
    "rerere.",
    "safe.directory",
    "status.",
    "submodule.recurse",
    "tag.gpgsign",
    "user.",
];

/// TABLE: settings whose value is executed, by the whole name or by what follows the last dot.
const EXECUTED_SETTINGS: &[&str] = &[
    "core.alternaterefscommand",
    "core.askpass",
    "core.editor",
    "core.fsmonitor",
    "core.gitproxy",
    "core.pager",
    "core.sshcommand",
    "diff.external",
    "gpg.program",
    "interactive.difffilter",
    "sequence.editor",
    "uploadpack.packobjectshook",
    "web.browser",
    // These stand below a name of the user's choice: `filter.x.clean`, `credential.https://host.helper`, `remote.x.uploadpack`.
    ".clean",
    ".cmd",
    ".command",
    ".driver",
    ".helper",
    ".process",
    ".program",
    ".receivepack",
    ".smudge",
    ".textconv",
    ".uploadpack",
];

/// TABLE: settings that name files with more settings or with programs.
const LOADING_SETTINGS: &[&str] = &["core.hookspath", "include.", "includeif.", "init.templatedir"];

/// TABLE: options of subcommands whose value is executed by a shell.
const TEXT_OPTIONS: &[(&str, &[&str])] = &[
    ("rebase", &["-x", "--exec"]),
    ("difftool", &["-x", "--extcmd"]),
    ("grep", &["-O", "--open-files-in-pager"]),
    ("clone", &["-u", "--upload-pack"]),
    ("fetch", &["--upload-pack"]),
    ("fetch-pack", &["--upload-pack", "--exec"]),
    ("pull", &["--upload-pack"]),
    ("ls-remote", &["--upload-pack", "--exec"]),
    ("push", &["--receive-pack", "--exec"]),
    ("send-pack", &["--receive-pack", "--exec"]),
    ("archive", &["--exec"]),
    (
        "filter-branch",
        &[
            "--setup",
            "--env-filter",
            "--tree-filter",
            "--index-filter",
            "--parent-filter",
            "--msg-filter",
            "--commit-filter",
            "--tag-name-filter",
        ],
    ),
];

/// Options before the subcommand that take a value as the next word.
pub const VALUED: [&str; 7] = ["-C", "-c", "--git-dir", "--work-tree", "--namespace", "--super-prefix", "--attr-source"];

/// Walks what git executes.
pub fn run(walk: &mut Walk, arguments: &[Field], scope: &mut Scope, context: &Context) {
    let mut at = 0;
    while let Some(word) = arguments.get(at) {
        if word.as_known().is_none() && word.hides_option() {
            // It can be `-c` and a setting.
            walk.unproven(Unproven::CommandPosition);
        }
        let text = word.text.as_str();
        if !text.starts_with('-') {
            break;
        }
        let value = arguments.get(at + 1);
        match text {
            "-c" => {
                if let Some(value) = value {
                    configuration(walk, value, scope, context);
                }
            }
            _ if text.starts_with("-c") => {
                let value = Field { text: text.get(2..).unwrap_or_default().to_owned(), ..word.clone() };
                configuration(walk, &value, scope, context);
            }
            _ if text.starts_with("--config-env") || text.starts_with("--exec-path=") => walk.unproven(Unproven::Loader),
            _ => {}
        }
        at += if VALUED.contains(&text) { 2 } else { 1 };
    }
    let Some((subcommand, arguments)) = arguments.get(at..).and_then(<[Field]>::split_first) else { return };
    subcommand_run(walk, &subcommand.text, arguments, scope, context);
}

fn subcommand_run(walk: &mut Walk, subcommand: &str, arguments: &[Field], scope: &mut Scope, context: &Context) {
    let inner = context.by(Way::TextOf("git"));
    let options = TEXT_OPTIONS.iter().find(|(name, _)| *name == subcommand).map_or(&[][..], |(_, options)| *options);
    for (at, word) in arguments.iter().enumerate() {
        let next = arguments.get(at + 1);
        for option in options {
            let Some(rest) = word.text.strip_prefix(option) else { continue };
            let text = match rest.strip_prefix('=') {
                Some(value) => Some(behind(word, word.text.len() - value.len())),
                None if rest.is_empty() => next.cloned(),
                None if !option.starts_with("--") => Some(behind(word, option.len())),
                None => None,
            };
            if let Some(text) = text {
                walk.shell_text(&text, &mut scope.for_child(), &inner);
            }
        }
        if word.text.starts_with("ext::") {
            walk.shell_text(&behind(word, "ext::".len()), &mut scope.for_child(), &inner);
        }
        if word.text.starts_with("--output=") || (word.text == "--output" && next.is_some()) {
            walk.unproven(Unproven::Redirection);
        }
        if subcommand == "clone"
            && matches!(word.text.as_str(), "-c" | "--config")
            && let Some(value) = next
        {
            configuration(walk, value, scope, context);
        }
    }
    match subcommand {
        "config" => config(walk, arguments, scope, context),
        "bisect" => behind_word(walk, "run", arguments, scope, context),
        "submodule" => behind_word(walk, "foreach", arguments, scope, context),
        _ => {}
    }
}

/// Walks the command of `git bisect run command` and `git submodule foreach command`: a text if it is one word.
fn behind_word(walk: &mut Walk, word: &str, arguments: &[Field], scope: &mut Scope, context: &Context) {
    let Some(at) = arguments.iter().position(|argument| argument.text == word) else { return };
    let words: Vec<Field> = arguments.iter().skip(at + 1).skip_while(|word| word.text.starts_with('-')).cloned().collect();
    if !words.is_empty() {
        walk.shell_text(&join(&words), &mut scope.for_child(), &context.by(Way::TextOf("git")));
    }
}

/// Looks into `git config name value`, which makes a setting that lasts.
fn config(walk: &mut Walk, arguments: &[Field], scope: &mut Scope, context: &Context) {
    let mut operands = arguments.iter().filter(|word| !word.text.starts_with('-') && !matches!(word.text.as_str(), "set" | "add"));
    let name = operands.find(|word| word.text.contains('.'));
    if let (Some(name), Some(value)) = (name, operands.next()) {
        setting(walk, &name.text, value, scope, context);
    }
}

/// Looks into a setting `name=value`.
fn configuration(walk: &mut Walk, field: &Field, scope: &mut Scope, context: &Context) {
    let Some((name, _)) = field.text.split_once('=') else {
        walk.unproven(if field.holes.is_empty() { Unproven::Configuration } else { Unproven::ShellText });
        return;
    };
    if field.holes.iter().any(|(at, _)| *at <= name.len()) {
        return walk.unproven(Unproven::ShellText);
    }
    setting(walk, name, &behind(field, name.len() + 1), scope, context);
}

/// Walks what a setting executes.
fn setting(walk: &mut Walk, name: &str, value: &Field, scope: &mut Scope, context: &Context) {
    let name = name.to_ascii_lowercase();
    let is_in = |table: &[&str]| {
        table.iter().any(|entry| {
            *entry == name || (entry.ends_with('.') && name.starts_with(entry)) || (entry.starts_with('.') && name.ends_with(entry))
        })
    };
    if is_in(HARMLESS_SETTINGS) {
        return;
    }
    walk.unproven(Unproven::Configuration);
    let context = context.by(Way::TextOf("git"));
    let mut inner = scope.for_child();
    inner.set_positional();
    if name.starts_with("alias.") {
        let text = match value.text.strip_prefix('!') {
            Some(_) => behind(value, 1),
            // Another subcommand with its options.
            None => join(&[Field::known("git"), value.clone()]),
        };
        let text = join(&[text, Field::known("\"$@\"")]);
        return walk.shell_text(&text, &mut inner, &context);
    }
    if is_in(EXECUTED_SETTINGS) || name.starts_with("pager.") {
        let text = if value.text.starts_with('!') { behind(value, 1) } else { value.clone() };
        // A truth value or a helper's name is no command, but does no harm as one.
        walk.shell_text(&text, &mut inner, &context);
    } else if is_in(LOADING_SETTINGS) || value.holes.iter().any(|(_, hole)| *hole == Hole::Computed) {
        walk.unproven(Unproven::Loader);
    }
}

/// Returns a word without its beginning.
fn behind(word: &Field, from: usize) -> Field {
    let text = word.text.get(from..).unwrap_or_default().to_owned();
    let holes = word.holes.iter().filter(|(at, _)| *at >= from).map(|(at, hole)| (at - from, *hole)).collect();
    Field { text, holes, splits: word.splits }
}
