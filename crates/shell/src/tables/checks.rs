//! What single operands are known to be harmless: checks that `programs.txt` names.

use super::values::{is_below, is_plain};
use crate::argument::{Argument, Certainty};

/// TABLE: the ends of names that package managers take for files.
const ARCHIVES: &[&str] =
    &[".whl", ".zip", ".gz", ".bz2", ".xz", ".tgz", ".tbz", ".txz", ".tlz", ".lz", ".lzma", ".tar", ".egg", ".rpm", ".deb", ".rb"];

/// Accepts whatever it is.
pub fn anything(_operand: &Argument) -> bool {
    true
}

/// Accepts nothing.
pub fn nothing(_operand: &Argument) -> bool {
    false
}

/// Accepts what is written out.
pub fn known(operand: &Argument) -> bool {
    operand.as_known().is_some()
}

/// Accepts what is written out and has only characters that mean nothing to a shell or a template: names of targets, tasks and scripts, and what
/// they are given.
pub fn plain(operand: &Argument) -> bool {
    operand.as_known().is_some_and(|text| is_plain(text) && !text.starts_with(['-', '@', '+']))
}

/// TABLE: variables of makefiles that say how much, how loud or which version. What is run gets them in its environment.
const MAKE_VARIABLES: [&str; 16] = [
    "BENCH", "CI", "COUNT", "COVER", "DEBUG", "JOBS", "N", "PARALLEL", "PORT", "RACE", "RELEASE", "SEED", "TIMEOUT", "V", "VERBOSE",
    "VERSION",
];

/// As [`plain`], and a variable of a makefile with digits and dots for its value, as in `VERBOSE=1`. Any other name may be that of a folder in which
/// programs are looked for.
pub fn target(operand: &Argument) -> bool {
    let is_number = |value: &str| !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let setting = operand.as_known().and_then(|text| text.split_once('='));
    plain(operand) || setting.is_some_and(|(name, value)| MAKE_VARIABLES.contains(&name) && is_number(value))
}

/// Accepts the name of a workspace, perhaps with a scope (`@acme/web`), and a script of its package with words for it, as [`forwarded`] takes them.
pub fn workspace(operands: &[&Argument]) -> Option<usize> {
    let script = match operands {
        [_, run, ..] if run.as_known() == Some("run") => 2,
        _ => 1,
    };
    let is_script = |operand: &Argument| match script {
        1 => operand.as_known().is_some_and(|text| ["build", "lint", "start", "test"].contains(&text)),
        _ => plain(operand),
    };
    if operands.len() <= script {
        return Some(operands.len());
    }
    let accepts = |(place, operand): (usize, &&Argument)| match place {
        0 => operand.as_known().is_some_and(|name| is_plain(name) && !name.starts_with(['-', '+'])),
        _ if place < script => true,
        _ if place == script => is_script(operand),
        _ => forwarded(operand),
    };
    operands.iter().enumerate().position(|found| !accepts(found))
}

/// As [`plain`], and options for what is run: they are its own.
pub fn plain_option(operand: &Argument) -> bool {
    let is_pair = |text: &str| text.split_once('=').map_or(is_plain(text), |(name, value)| is_plain(name) && is_plain(value));
    operand.as_known().is_some_and(is_pair)
}

/// As [`plain_option`], with blanks and the signs of patterns: `npm` puts such words into quotes for its shell, and some versions take double
/// quotes, in which a `$` stands for itself at the end only.
pub fn quoted_option(operand: &Argument) -> bool {
    operand.as_known().is_some_and(|text| {
        let (name, value) = text.split_once('=').unwrap_or(("-", text));
        let is_quoted = value
            .strip_suffix('$')
            .unwrap_or(value)
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"._/-+@%:, *?^|()'".contains(&byte));
        is_plain(name) && is_quoted && !value.is_empty()
    })
}

/// As [`plain_option`], where the words of a script need no `--` in front. `yarn` itself looks for its file of settings among them, and old versions
/// of `pnpm` for their settings: these may name what is run. What stands in front of a `--` some read as their own.
pub fn forwarded(operand: &Argument) -> bool {
    let is_setting = ["--use-yarnrc", "--config", "--script-shell"].iter().any(|option| operand.text.starts_with(option));
    plain_option(operand) && operand.text != "--" && !is_setting
}

/// Accepts what is written out, or found by a glob below a folder that is: no option and no file of arguments (`@file`).
pub fn file(operand: &Argument) -> bool {
    operand.is_literal() && !operand.text.starts_with(['-', '@', '+'])
}

/// As [`file`], but no address.
pub fn local(operand: &Argument) -> bool {
    file(operand) && !operand.text.contains(':')
}

/// Accepts packages and files of a Go module: none has a version (`name@v1`).
pub fn module(operand: &Argument) -> bool {
    file(operand) && !operand.text.contains('@')
}

/// Accepts a package of a Go module by its path.
pub fn own_program(operand: &Argument) -> bool {
    operand.as_known().is_some_and(|text| !text.contains('@') && (text.starts_with('.') || text.ends_with(".go")))
}

/// Accepts a project's file or folder. To `dotnet`, what begins with a slash is an option for the build.
pub fn project(operand: &Argument) -> bool {
    plain(operand) && !operand.text.starts_with('/')
}

/// Accepts a word that is no path and no option.
pub fn word(operand: &Argument) -> bool {
    let is_plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._:+-".contains(&byte));
    operand.as_known().is_some_and(|text| is_plain(text) && !text.starts_with('-'))
}

/// Accepts numbers, which a program may have printed, branches and tags, and no address of another host.
pub fn name(operand: &Argument) -> bool {
    let is_name = |text: &str| !text.starts_with('-') && !text.contains([':', '@', '\\']);
    operand.as_known().is_some_and(is_name) || operand.certainty == Certainty::Operand && !operand.many && operand.text == "1"
}

/// Accepts a name of a package with versions, from the index that is configured: no address, path or archive.
pub fn package(operand: &Argument) -> bool {
    operand.as_known().is_some_and(is_package)
}

/// Accepts a package, or the project itself: `.`, `.[extra]`, a folder below.
pub fn project_or_package(operand: &Argument) -> bool {
    let is_project = |text: &str| {
        let (folder, extras) = text.split_once('[').unwrap_or((text, "]"));
        let is_extra = |byte: u8| byte.is_ascii_alphanumeric() || b",_-".contains(&byte);
        folder.starts_with('.') && is_below(folder) && extras.strip_suffix(']').is_some_and(|extras| extras.bytes().all(is_extra))
    };
    match operand.as_known() {
        Some(text) => is_project(text) || is_package(text),
        // Without quotes the extras are a glob, which finds them or a folder beside the project.
        None => operand.text.starts_with(".[") && is_project(&operand.text),
    }
}

/// Accepts the name of a file that is written, which is held to the rules of files as a redirection's is.
pub fn written(operand: &Argument) -> bool {
    operand.as_known().is_some_and(|text| !text.starts_with('-'))
}

/// Accepts files of programs that replace `@file` by the arguments in it.
pub fn no_argument_file(operand: &Argument) -> bool {
    operand.is_operand() && !operand.text.starts_with(['@', '*', '?', '['])
}

/// Accepts a format of `date`: without a plus it is a time that is set.
pub fn date(operand: &Argument) -> bool {
    operand.is_operand() && operand.text.starts_with('+')
}

/// Accepts a folder that is written out, or begins so.
pub fn place(operand: &Argument) -> bool {
    !operand.many && operand.is_literal()
}

/// Returns whether an operand is one of the words, perhaps with a value behind `=`; or any word that is no option, where `NAME` is one.
pub fn is_of(words: &str, operand: &Argument) -> bool {
    let is_word = |text: &str| words.split(' ').any(|word| word == text);
    let is_one = |text: &str| is_word(text.split('=').next().unwrap_or(text)) || is_word("NAME") && !text.starts_with('-');
    operand.as_known().is_some_and(is_one)
}

/// Returns the first argument for the compiler that sets no level of a lint.
pub fn lints(operands: &[&Argument]) -> Option<usize> {
    const LEVELS: &[&str] = &["-D", "-W", "-A", "-F", "--deny", "--warn", "--allow", "--forbid"];
    let is_lint = |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-:".contains(&byte)) && !text.starts_with('-');
    let text = |at: usize| operands.get(at).and_then(|operand| operand.as_known()).unwrap_or_default();
    let mut at = 0;
    while at < operands.len() {
        let (attached, next) = (text(at).get(2..).unwrap_or_default(), text(at + 1));
        let lint = if LEVELS.contains(&text(at)) { next } else { attached };
        if !LEVELS.iter().any(|level| text(at) == *level || level.len() == 2 && text(at).starts_with(level))
            || lint.is_empty()
            || !is_lint(lint)
        {
            return Some(at);
        }
        at += if LEVELS.contains(&text(at)) { 2 } else { 1 };
    }
    None
}

/// Returns whether a text is a package's name, with extras or versions: `name`, `name[extra]>=1.2`, `@scope/name@^2`.
fn is_package(text: &str) -> bool {
    let is_word = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
    let name = match text.strip_prefix('@').and_then(|scoped| scoped.split_once('/')) {
        Some((scope, name)) if is_word(scope) => name,
        Some(_) => return false,
        None => text,
    };
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"._-[],<>=!~^*@+".contains(&byte);
    // Extras may stand behind the name of an archive, and a version that begins with a dot is a folder.
    let lower = name.to_ascii_lowercase();
    let begin = lower.split('[').next().unwrap_or(&lower);
    name.starts_with(|first: char| first.is_ascii_alphanumeric())
        && name.bytes().all(is_part)
        && !name.contains("@.")
        && ![lower.as_str(), begin].iter().any(|name| ARCHIVES.iter().any(|end| name.ends_with(end)))
}
