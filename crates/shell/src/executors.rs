//! Programs that execute their arguments in ways of their own: `find`, `xargs`, `parallel` and options of some others.

use super::finding::Unproven;
use super::run::join;
use super::scope::Scope;
use super::value::{Field, Hole};
use super::walk::{Context, Reached, Stdin, Walk, Way};

/// A row: a program, and the function that walks what it executes.
type Row = (&'static str, fn(&mut Walk, &[Field], &mut Scope, &Context));

/// TABLE: programs that execute their arguments. Options with a text are in [`super::wrappers::TEXT_OPTIONS`], `git` is in its own file.
const EXECUTORS: &[Row] = &[
    ("find", find),
    ("gfind", find),
    ("fd", fd),
    ("fdfind", fd),
    ("xargs", xargs),
    ("gxargs", xargs),
    ("parallel", parallel),
    ("sem", parallel),
    ("ssh", ssh),
    ("scp", ssh),
    ("sftp", ssh),
    ("tar", tar),
    ("gtar", tar),
    ("tee", tee),
    ("dd", dd),
];

/// Walks what the program executes.
pub fn run(walk: &mut Walk, program: &str, arguments: &[Field], scope: &mut Scope, context: &Context) {
    if let Some((_, execute)) = EXECUTORS.iter().find(|(name, _)| *name == program) {
        execute(walk, arguments, scope, context);
    }
}

/// Returns the words with a hole in the place of what the program puts in: a computed one in the program's name, where it decides what
/// runs.
fn filled(words: &[Field], placeholder: &str, hole: Hole) -> Vec<Field> {
    let fill = |(at, word): (usize, &Field)| {
        if placeholder.is_empty() || !word.text.contains(placeholder) {
            return word.clone();
        }
        let hole = if at == 0 { Hole::Computed } else { hole };
        let mut field = Field { splits: word.splits, ..Field::default() };
        for (index, piece) in word.text.split(placeholder).enumerate() {
            if index > 0 {
                field.holes.push((field.text.len(), hole));
            }
            field.text.push_str(piece);
        }
        // Earlier holes become one at the beginning, of the kind of which least is known.
        if let Some((_, worst)) = word.holes.iter().max_by_key(|(_, hole)| *hole) {
            field.holes.insert(0, (0, *worst));
        }
        field
    };
    words.iter().enumerate().map(fill).collect()
}

/// Walks what `find … -exec command {} ;` and `find … -delete` do.
fn find(walk: &mut Walk, arguments: &[Field], scope: &mut Scope, context: &Context) {
    let mut rest = arguments;
    while let Some((word, behind)) = rest.split_first() {
        rest = behind;
        match word.text.as_str() {
            "-exec" | "-execdir" | "-ok" | "-okdir" => {
                let end = ends(behind);
                let words = filled(behind.get(..end).unwrap_or_default(), "{}", Hole::Glob);
                walk.run(words, scope, &context.by(Way::Behind("find")));
                rest = behind.get(end..).unwrap_or_default();
            }
            "-delete" => meaning(walk, &["rm", "-r", "-f"], context),
            "-fprint" | "-fprint0" | "-fprintf" | "-fls" => walk.unproven(Unproven::Redirection),
            _ if word.as_known().is_none() && word.hides_option() => walk.unproven(Unproven::CommandPosition),
            _ => {}
        }
    }
}

/// Returns where the command behind `-exec` ends: at `;`, or at a `+` behind `{}`.
fn ends(words: &[Field]) -> usize {
    let is_end = |at: &usize| match words.get(*at).map(|word| word.text.as_str()) {
        Some(";") => true,
        Some("+") => at.checked_sub(1).and_then(|before| words.get(before)).is_some_and(|word| word.text == "{}"),
        _ => false,
    };
    (0..words.len()).find(is_end).unwrap_or(words.len())
}

/// Notes the command that an option amounts to, to be compared with blocked patterns.
fn meaning(walk: &mut Walk, words: &[&str], context: &Context) {
    let words = words.iter().map(|word| Field::known(*word)).collect();
    let ways = context.by(Way::Meaning).ways;
    walk.reached.push(Reached { words, ways, assumed: true });
}

/// Walks the command of `fd … -x command`.
fn fd(walk: &mut Walk, arguments: &[Field], scope: &mut Scope, context: &Context) {
    let is_exec = |word: &Field| matches!(word.text.as_str(), "-x" | "--exec" | "-X" | "--exec-batch");
    let Some(at) = arguments.iter().position(is_exec) else { return };
    let behind = arguments.get(at + 1..).unwrap_or_default();
    let end = behind.iter().position(|word| word.text == ";").unwrap_or(behind.len());
    let mut words = filled(behind.get(..end).unwrap_or_default(), "{}", Hole::Glob);
    if !words.is_empty() {
        words.push(Field::unknown(Hole::Glob));
        walk.run(words, scope, &context.by(Way::Behind("fd")));
    }
}

/// Walks `xargs [options] command`: the command gets words from what is read.
fn xargs(walk: &mut Walk, arguments: &[Field], scope: &mut Scope, context: &Context) {
    const LONG_VALUED: [&str; 6] = ["--arg-file", "--delimiter", "--max-args", "--max-chars", "--max-procs", "--process-slot-var"];
    const LONG_PLAIN: [&str; 8] =
        ["--null", "--no-run-if-empty", "--verbose", "--interactive", "--exit", "--open-tty", "--replace", "--max-lines"];
    let mut placeholder = String::new();
    let mut at = 0;
    while let Some(word) = arguments.get(at) {
        let Some(letters) = word.text.strip_prefix('-') else { break };
        at += 1;
        match word.text.split_once('=') {
            _ if letters == "-" => break,
            _ if !letters.starts_with('-') => at += xargs_letters(letters, arguments.get(at), &mut placeholder),
            Some(("--replace", with)) => placeholder = with.to_owned(),
            Some(_) => {}
            None if word.text == "--replace" => placeholder = "{}".to_owned(),
            None if LONG_VALUED.contains(&word.text.as_str()) => at += 1,
            None if LONG_PLAIN.contains(&word.text.as_str()) => {}
            None => walk.unproven(Unproven::StarterOption),
        }
    }
    let mut words = filled(arguments.get(at..).unwrap_or_default(), &placeholder, Hole::Computed);
    if words.is_empty() {
        return;
    }
    if placeholder.is_empty() {
        words.push(Field::unknown(Hole::Computed));
    }
    // The command itself reads nothing.
    walk.run(words, scope, &context.by(Way::Behind("xargs")).reading(Stdin::Inherited));
}

/// Reads short options of `xargs`: returns how many words behind them are values, and sets the placeholder if one is given.
fn xargs_letters(letters: &str, next: Option<&Field>, placeholder: &mut String) -> usize {
    for (index, letter) in letters.char_indices() {
        let attached = letters.get(index + letter.len_utf8()..).unwrap_or_default();
        let is_alone = attached.is_empty();
        match letter {
            'I' | 'J' => {
                *placeholder = if is_alone { next.map_or("", |word| word.text.as_str()) } else { attached }.to_owned();
                return usize::from(is_alone);
            }
            'a' | 'd' | 'E' | 'L' | 'n' | 'P' | 'R' | 's' | 'S' => return usize::from(is_alone),
            // The values of these options can only be attached.
            'i' => {
                *placeholder = if is_alone { "{}" } else { attached }.to_owned();
                return 0;
            }
            'e' | 'l' => return 0,
            _ => {}
        }
    }
    0
}

/// Walks `parallel [options] command ::: arguments`: the words are a text for a shell; without any the arguments are.
fn parallel(walk: &mut Walk, arguments: &[Field], scope: &mut Scope, context: &Context) {
    const VALUED: [&str; 24] = [
        "-j",
        "-P",
        "-N",
        "-n",
        "-a",
        "-S",
        "-I",
        "-L",
        "-l",
        "-d",
        "-C",
        "-s",
        "--jobs",
        "--arg-file",
        "--sshlogin",
        "--results",
        "--joblog",
        "--timeout",
        "--delay",
        "--colsep",
        "--tagstring",
        "--workdir",
        "--wd",
        "--retries",
    ];
    let is_separator = |word: &Field| word.text.starts_with(":::");
    let end = arguments.iter().position(is_separator).unwrap_or(arguments.len());
    let (command, sources) = arguments.split_at_checked(end).unwrap_or_default();
    let mut at = 0;
    while let Some(word) = command.get(at).filter(|word| word.text.starts_with('-')) {
        at += if VALUED.contains(&word.text.as_str()) { 2 } else { 1 };
    }
    let command = command.get(at..).unwrap_or_default();
    let context = context.by(Way::TextOf("parallel"));
    let mut inner = scope.for_child();
    inner.set_positional();
    match command.first() {
        None if sources.is_empty() => walk.unproven(Unproven::DataIntoShell),
        None => {
            for text in sources.iter().filter(|word| !is_separator(word)) {
                walk.shell_text(text, &mut inner, &context);
            }
        }
        Some(program) if program.text.contains('{') => walk.unproven(Unproven::CommandPosition),
        Some(_) => {
            let mut text = join(command);
            text.text.push_str(" \"$@\"");
            walk.shell_text(&text, &mut inner, &context);
        }
    }
}

/// Walks the text of `-o ProxyCommand=text`.
fn ssh(walk: &mut Walk, arguments: &[Field], scope: &mut Scope, context: &Context) {
    for (at, word) in arguments.iter().enumerate() {
        let value = match word.text.strip_prefix("-o") {
            Some("") => arguments.get(at + 1).map(|word| word.text.as_str()),
            other => other,
        };
        let Some((key, text)) = value.and_then(|value| value.split_once(['=', ' '])) else { continue };
        match key.trim().to_ascii_lowercase().as_str() {
            "proxycommand" | "localcommand" | "knownhostscommand" | "remotecommand" => {
                walk.shell_text(&Field::known(text), &mut scope.for_child(), &context.by(Way::TextOf("ssh")));
            }
            "pkcs11provider" | "securitykeyprovider" => walk.unproven(Unproven::Loader),
            _ => {}
        }
    }
}

/// Walks the text of `--checkpoint-action=exec=text`.
fn tar(walk: &mut Walk, arguments: &[Field], scope: &mut Scope, context: &Context) {
    for word in arguments {
        let action = word.text.strip_prefix("--checkpoint-action=").unwrap_or(&word.text);
        if let Some(text) = action.strip_prefix("exec=") {
            let text = Field { text: text.to_owned(), holes: word.holes.clone(), splits: word.splits };
            walk.shell_text(&text, &mut scope.for_child(), &context.by(Way::TextOf("tar")));
        }
    }
}

/// Notes the files of `tee file`, which writes as a redirection does.
fn tee(walk: &mut Walk, arguments: &[Field], _: &mut Scope, _: &Context) {
    if arguments.iter().any(|word| !word.text.starts_with('-') && word.text != "/dev/null") {
        walk.unproven(Unproven::Redirection);
    }
}

/// Notes the file of `dd of=file`, which writes as a redirection does.
fn dd(walk: &mut Walk, arguments: &[Field], _: &mut Scope, _: &Context) {
    if arguments.iter().any(|word| word.text.starts_with("of=") && word.text != "of=/dev/null") {
        walk.unproven(Unproven::Redirection);
    }
}
