//! The files among the words of programs of which no row says more: what may be the name of a file counts as one.
//!
//! Left out are programs whose words never are, and single names that others take for targets, packages and scripts.

use std::sync::LazyLock;

use rustc_hash::FxHashMap;

use super::elsewhere::others;
use super::handed::copied;
use super::looking::HIDDEN_ONES;
use super::options::attached;
use super::reading::{Scan, scan_subcommand};
use super::touches::{Touch, in_rows, scan_of, words};
use super::{Program, formatters, is_in, is_known, runs, subcommand_of_git, table};
use crate::argument::{Argument, text_in_front};
use crate::grammar::Access;

/// TABLE: programs that read no file whose name is one of their words: they print it, count with it, start it, or take it for the name of
/// something else.
const NO_FILES: &str = ": [ [[ apk apt apt-cache apt-get apt-mark arch basename bazel bazelisk brew break builtin cal chronic command continue crontab date \
     dirname dnf doas docker docker-compose dpkg dpkg-query echo env exec exit export expr factor false fd fdfind find free gdate gem genv gfind gh git \
     groups gstdbuf gtimeout gxargs helm id ionice journalctl kill kubectl logname lsblk lscpu man microdnf nerdctl nice nohup nproc \
     numfmt pacman podman podman-compose printenv printf ps pwd return rpm rustup seq service set setsid sleep ssh stdbuf sudo systemctl tee \
     test time timeout tmux tr true tty type uname unset wait watch whereis which whoami xargs yes yum";

/// TABLE: programs that are given targets, packages and scripts by their names. A file has a slash or a dot in its name to them.
const TARGETS: &str = "bundle bundler cargo composer ctest dotnet gmake go gradle just make mix mvn ninja ninja-build nox npm pip pip3 pipenv pnpm \
     poetry rake samu terraform tofu tox uv yarn yarnpkg";

/// TABLE: programs of these whose targets are files that they write.
const MAKERS: [&str; 6] = ["gmake", "make", "ninja", "ninja-build", "rake", "samu"];

/// TABLE: programs of these that hand files on to scripts.
const SCRIPTED: [&str; 5] = ["just", "npm", "pnpm", "yarn", "yarnpkg"];

/// TABLE: programs of these that an entry may have take files of the machine to another place, or a container.
const SENDERS: &str = "apt apt-get brew crontab dnf docker docker-compose gem gh helm kubectl microdnf nerdctl podman podman-compose rpm ssh systemctl tmux yum";

/// TABLE: options of senders of which the value, attached or not, is a file that is only read.
const READ_BY_SENDERS: &str = "-F -f -k --body-file --env-file --file --filename --kubeconfig --kustomize --notes-file --template --values";

/// Returns the places of the files that senders are known to read.
pub(super) fn read_by_senders(program: &str, arguments: &[Argument]) -> Vec<usize> {
    let is_option = |text: &str| is_in(READ_BY_SENDERS, text);
    // What makes such a file writes where it is told to.
    let may_write = || arguments.iter().any(|argument| ["config", "dump", "generate"].contains(&argument.text.as_str()));
    let is_read = |(index, argument): (usize, &Argument)| {
        let is_attached = argument.text.split_once('=').is_some_and(|(option, _)| is_option(option));
        (is_attached || is_option(text_in_front(arguments, index))).then_some(index)
    };
    if is_sender(program) && !may_write() { arguments.iter().enumerate().filter_map(is_read).collect() } else { Vec::new() }
}

/// Returns whether a program takes files by its words where its table does not know them.
pub(super) fn is_sender(program: &str) -> bool {
    is_in(SENDERS, program)
}

/// What the words of a program are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Words {
    /// A row says it.
    OfRow,
    /// No files.
    NoFiles,
    /// Targets, or files.
    Targets,
}

static WORDS: LazyLock<FxHashMap<&'static str, Words>> = LazyLock::new(|| {
    let all = |names: &'static str, words| names.split_ascii_whitespace().map(move |name| (name, words));
    all(NO_FILES, Words::NoFiles).chain(all(TARGETS, Words::Targets)).chain(in_rows().map(|name| (name, Words::OfRow))).collect()
});

fn words_of(program: &str) -> Option<Words> {
    WORDS.get(program).copied()
}

/// Returns whether the files of a program are those of its words that may be files, as nothing says more of it.
#[must_use]
pub fn is_worded(program: &str) -> bool {
    (matches!(words_of(program), None | Some(Words::Targets)) || is_sender(program)) && !formatters::is_formatter(program)
}

/// Returns how many of the arguments, from the first, may hold addresses from which a program fetches. Words that the program hands on are for the
/// script that it runs.
#[must_use]
pub fn may_fetch(program: &str, arguments: &[Argument], is_listed: bool) -> usize {
    let fetches = words_of(program) == Some(Words::Targets) || is_sender(program) && !is_listed;
    let own = handed_on(program, arguments).filter(|_| program != "go").unwrap_or(arguments.len());
    if fetches { own } else { 0 }
}

/// Returns whether nothing says what a program does with the files that it is given, so that it may write them too.
pub(super) fn is_unnamed(program: &str) -> bool {
    SCRIPTED.contains(&program) || words_of(program).is_none() && (runs(program).is_some() || !is_known(program)) && is_worded(program)
}

/// Returns the place behind which a program of targets hands its words on to what it runs.
pub(super) fn handed_on(name: &str, arguments: &[Argument]) -> Option<usize> {
    let is_end = |argument: &Argument| argument.text == "--" || matches!(name, "cargo" | "go") && argument.text == "run";
    (words_of(name) == Some(Words::Targets)).then(|| arguments.iter().position(is_end)).flatten()
}

/// The words of a program that may be files. What a program that runs code is given by the line counts only where the line writes it out.
pub(super) fn of_words(name: &str, arguments: &[Argument], is_listed: bool) -> Vec<Touch> {
    let is_target = match words_of(name) {
        Some(Words::OfRow) => return Vec::new(),
        // What an entry allows beyond the table may be given files.
        Some(Words::NoFiles) if !is_sender(name) || is_listed => return Vec::new(),
        // To these a name is that of a folder with a project.
        _ if matches!(name, "dotnet" | "mix") => false,
        _ if matches!(name, "terraform" | "tofu") && arguments.iter().any(|word| matches!(word.text.as_str(), "show" | "validate")) => {
            false
        }
        words => words == Some(Words::Targets) && is_listed,
    };
    let is_package = |index: usize| selects_package(arguments, index);
    let runs = runs(name).is_some();
    let words = words(arguments);
    let rewrites = words_of(name) == Some(Words::Targets) && writes(arguments, &words);
    let access = if rewrites { Access::Write } else { Access::Read };
    let targets = copied(name, arguments).map(|copied| copied.targets).unwrap_or_default();
    // What is made, where something is copied to, and the folder of a project that is built is written.
    let is_written = |index: usize| MAKERS.contains(&name) || name == "dotnet" || targets.contains(&index) || is_package(index);
    // A single name is a target's, unless files are rewritten.
    let is_target = is_target && access == Access::Read;
    // What stands behind is handed on to what is run.
    let end = handed_on(name, arguments).unwrap_or(arguments.len());
    let is_file = |text: &str, at: usize| {
        let is_name = is_target && at < end && words.binary_search(&at).is_ok() && !text.contains(['/', '.']);
        !text.is_empty() && (!runs || is_plain(text) || SCRIPTED.contains(&name)) && !is_name
    };
    let has_subcommand = table(name).is_some_and(|program| !program.subcommands.is_empty());
    let subcommand = words.iter().find(|index| !is_package(**index)).filter(|_| has_subcommand);
    let counts = |index: usize, argument: &Argument| Some(&index) != subcommand && !(runs && argument.computed);
    let mut touched = Vec::new();
    let others = others(name, arguments);
    let is_left = |index: usize| others.binary_search(&index).is_err();
    for (index, argument) in arguments.iter().enumerate().filter(|(index, argument)| counts(*index, argument) && is_left(*index)) {
        let is_named = is_package(index);
        let texts = texts_of(name, &argument.text, words.binary_search(&index).is_ok());
        let files = texts
            .iter()
            .flat_map(|text| pieces(if is_named { folder_of_package(text) } else { text }))
            .filter(|piece| is_file(piece, index) || is_named && !piece.is_empty());
        for piece in files {
            touched.push(Touch::File { index, path: piece.to_owned(), access });
            touched.extend(is_written(index).then(|| Touch::write(index, piece)));
        }
        let is_crowded = texts.iter().any(|text| text.matches(':').count() > COLONS_MAX);
        touched.extend(is_crowded.then(|| Touch::Pattern(HIDDEN_ONES.to_owned())));
    }
    touched.extend(written_by_gh(name, arguments));
    touched
}

/// Returns the texts of an argument that may be files: the word itself, and what may be attached to an option (`--config=PATH`, `-cPATH`). What
/// stands behind `--` is a word, and may be an option to what is run.
fn texts_of<'a>(name: &str, text: &'a str, is_word: bool) -> Vec<&'a str> {
    match text.strip_prefix("if=").or_else(|| text.strip_prefix("of=")).filter(|_| name == "dd") {
        Some(path) => vec![path],
        None if is_word && text.starts_with('-') => std::iter::once(text).chain(attached(text)).collect(),
        None if is_word => vec![text],
        None if runs(name).is_some() || !is_known(name) || is_sender(name) => attached(text),
        None => Vec::new(),
    }
}

/// Returns whether an argument is the value of an option that selects packages, attached or not.
fn selects_package(arguments: &[Argument], index: usize) -> bool {
    let before = text_in_front(arguments, index);
    let is_attached = |word: &Argument| word.text.starts_with("--filter=") || word.text.starts_with("--workspace=");
    matches!(before, "-e" | "--editable" | "-pl" | "--filter" | "--workspace") || arguments.get(index).is_some_and(is_attached)
}

/// Returns the folder in what selects a package: `./x...`, `...^{x}`, `!./x`, `x[extra]`.
fn folder_of_package(text: &str) -> &str {
    let text = text.trim_start_matches('!');
    let text = text.strip_prefix("...").unwrap_or(text).trim_start_matches(['^', '{']);
    text.split(['}', '[', '^']).next().unwrap_or_default().trim_end_matches("...")
}

/// What `gh` writes without a path for it: the folder that `gh repo clone OWNER/NAME` makes, and what is downloaded into the folder at hand.
fn written_by_gh(name: &str, arguments: &[Argument]) -> Option<Touch> {
    let [first, second, ..] = arguments else { return None };
    let (index, path) = match (name, first.text.as_str(), second.text.as_str()) {
        ("gh", "repo", "clone") => {
            let address = arguments.get(2)?.text.trim_end_matches('/');
            (2, address.rsplit('/').next().unwrap_or_default().trim_end_matches(".git"))
        }
        _ => (downloaded(name, arguments)?, "."),
    };
    Some(Touch::write(index, path))
}

/// Returns the place of the last word where `gh` downloads files of any name into the folder at hand: `gh run download`, `gh release download`.
pub(super) fn downloaded(name: &str, arguments: &[Argument]) -> Option<usize> {
    let [first, second, rest @ ..] = arguments else { return None };
    let is_download = name == "gh" && matches!(first.text.as_str(), "release" | "run") && second.text == "download";
    let names_folder = rest.iter().any(|argument| argument.text.starts_with("-D") || argument.text.starts_with("--dir"));
    (is_download && !names_folder).then(|| arguments.len().saturating_sub(1))
}

/// The most colons of a word behind which a path is looked for. More stand in no list of folders, and could hide one.
const COLONS_MAX: usize = 32;

/// Returns the paths that a word may hold: a file of arguments behind `@`, folders with colons between them, a file with what is meant of it
/// (`x.py::test`), or values of settings (`type=bind,src=x`). What begins at the root behind a colon is on another machine or in a container.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let is_address = text.contains("://");
    let colons = if is_address { 0 } else { COLONS_MAX };
    let is_mount = text.split(',').any(|setting| ["type=", "source=", "src="].iter().any(|name| setting.starts_with(name)));
    // Some programs read such a list as CSV, with quotes around its parts.
    let settings = text
        .split(',')
        .map(|setting| setting.trim_matches('"'))
        .filter(move |setting| !is_address && setting.contains('='))
        .filter(move |setting| !is_mount || !is_inside(setting));
    let values = settings.filter_map(|setting| setting.rsplit_once('=')).map(|(_, value)| value);
    let places = text.splitn(colons + 1, ':').enumerate().filter(|(at, piece)| *at == 0 || !piece.starts_with('/')).map(|(_, piece)| piece);
    let listed = text.split(',').filter(move |piece| !is_address && text.contains(',') && !piece.contains('='));
    places
        .filter(move |piece| is_address || !piece.contains('='))
        .chain(values)
        .chain(listed)
        .chain(text.split('#').next().filter(|front| front.len() < text.len()))
        .map(|piece| piece.trim_matches('"').trim_start_matches(['@', '<']))
}

/// Returns whether a setting of a mount names a place in a container, or no place.
fn is_inside(setting: &str) -> bool {
    let name = setting.split('=').next().unwrap_or_default().trim_start_matches('-');
    matches!(name, "dst" | "destination" | "target" | "workdir" | "type" | "name" | "format" | "label")
}

/// Returns whether a subcommand rewrites the files that it is given.
fn writes(arguments: &[Argument], words: &[usize]) -> bool {
    let subcommand = words.first().and_then(|index| arguments.get(*index));
    subcommand.is_some_and(|subcommand| matches!(subcommand.text.as_str(), "fmt" | "format"))
}

/// Returns whether a text may be a path, and is no code.
fn is_plain(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-+/~*?@,=#[]".contains(&byte) || byte >= 0x80)
}

/// The files and folders that are values of options, as a program's table says. `cmake` writes into them.
pub(super) fn of_values(program: &str, arguments: &[Argument]) -> Vec<Touch> {
    if table(program).is_none_or(|table| !table.has_files()) {
        return Vec::new();
    }
    let access = if program == "cmake" { Access::Write } else { Access::Read };
    let files = scanned(program, arguments).map(|scan| scan.files).unwrap_or_default();
    files.into_iter().map(|(index, path)| Touch::File { index, path, access }).collect()
}

fn scanned(program: &str, arguments: &[Argument]) -> Option<Scan> {
    scan_of(program, arguments).or_else(|| scan_subcommand(program, arguments))
}

/// Returns the places of the values that name where a program works, as its table says: it may write there.
#[must_use]
pub fn entered(program: &str, arguments: &[Argument]) -> Vec<usize> {
    let has_files = table(program).is_some_and(Program::has_files);
    has_files.then(|| scanned(program, arguments)).flatten().map(|scan| scan.entered).unwrap_or_default()
}

/// Returns whether a program works in the folder at hand, and may write there: it builds, and no option names another folder, or it brings files
/// there that have been committed or stashed.
#[must_use]
pub fn works_here(program: &str, arguments: &[Argument]) -> bool {
    const BRINGS: &str = "am apply bisect checkout cherry-pick merge pull rebase revert stash submodule switch";
    matches!(program, "hg" | "svn")
        || program == "git" && is_in(BRINGS, subcommand_of_git(arguments))
        || table(program).is_some_and(Program::has_folder) && entered(program, arguments).is_empty()
}

/// Returns whether a program's table does not know what it does with the file at this place, which an entry of the list allows all the same.
#[must_use]
pub fn is_unnamed_at(program: &str, arguments: &[Argument], index: usize, is_listed: bool) -> bool {
    !is_listed && is_known(program) && !read_by_senders(program, arguments).contains(&index)
}
