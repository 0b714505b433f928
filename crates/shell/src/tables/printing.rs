//! Commands that print secrets by their nature: the environment, tokens that a tool keeps, and settings that hold passwords.
//!
//! No path gives them away, so that no rule of files holds them. What is known to leave secrets out passes: `docker inspect` of a state,
//! `kubectl get secrets` without a format, `git config user.name`, `printenv PATH`.
//!
//! What the line computes, or a glob finds, may be any word that begins so.
//!
//! Not seen are logs, plain files, the history of a repository, and addresses of remotes, which hold secrets only where somebody put them.

use std::borrow::Cow;

use super::elsewhere::FLAGS_OF_CONTAINERS;
use super::printers::{COMMANDS, OPTIONS};
use super::{Operands, is_in, table};
use crate::argument::{Argument, Certainty};

/// TABLE: variables of the environment that hold no secret.
const HARMLESS_VARIABLES: &str = "CI COLUMNS EDITOR GOPATH GOROOT HOME HOSTNAME JAVA_HOME LANG LC_ALL LINES LOGNAME MAKEFLAGS NODE_ENV \
     OLDPWD PAGER PATH PWD PYTHONPATH SHELL SHLVL TERM TMPDIR TZ USER VIRTUAL_ENV";

/// TABLE: sections of the settings of `git` in which nothing secret stands. Addresses of remotes are read by `git remote -v` all the same.
const GIT_SECTIONS: &str = "advice alias apply blame branch checkout clone color column commit core diff extensions feature fetch fsck gc \
     gpg grep help i18n index init interactive lfs log merge notes pack pager pull push rebase remote rerere safe stash status submodule tag \
     user versionsort worktree";

/// Returns whether a command prints secrets by its nature.
#[must_use]
pub fn prints_secrets(program: &str, arguments: &[Argument]) -> bool {
    let texts: Vec<Cow<'_, str>> = arguments.iter().map(text).collect();
    let texts: Vec<&str> = texts.iter().map(|text| &**text).collect();
    prints(program, &texts)
}

/// What stands in a text for what is not known of it. No word of a line has it.
const UNKNOWN: char = '\0';

/// Returns the text of an argument up to what is not known of it.
fn text(argument: &Argument) -> Cow<'_, str> {
    let known = argument.text.split(['*', '?', '[']).next().unwrap_or_default();
    match argument.certainty {
        Certainty::Known => Cow::Borrowed(&argument.text),
        _ => Cow::Owned(format!("{known}{UNKNOWN}")),
    }
}

/// Returns whether a word is another, or may turn out to be, by how it begins.
fn may_be(word: &str, other: &str) -> bool {
    word.split_once(UNKNOWN).map_or(word == other, |(known, _)| !known.is_empty() && other.starts_with(known))
}

fn prints(program: &str, texts: &[&str]) -> bool {
    let unversioned = program.trim_end_matches(|char: char| char.is_ascii_digit() || matches!(char, '.' | '-'));
    if let Some((module, rest)) = module(texts).filter(|_| unversioned == "python") {
        return prints(module, rest);
    }
    let words: Vec<&str> = texts.iter().copied().filter(|text| !text.starts_with('-')).collect();
    let has_words = |wanted: &str| has_words(texts, wanted);
    let is_named = |names: &str| is_in(names, program) || is_in(names, unversioned);
    let listed = COMMANDS.iter().any(|(names, rows)| is_named(names) && rows.split(" | ").any(has_words));
    // The value of an option of one letter may be attached.
    let is_short = |text: &str, option: &str| option.len() == 2 && text.starts_with(option) && !text.starts_with("--");
    let is_option =
        |text: &&str, options: &[&str]| options.iter().any(|option| text.split('=').next() == Some(*option) || is_short(text, option));
    let optional = OPTIONS.iter().any(|(names, word, options)| {
        is_named(names) && (word.is_empty() || words.contains(word)) && texts.iter().any(|text| is_option(text, options))
    });
    listed || optional || prints_settings(program, texts, &words)
}

/// Returns whether these words stand one behind another, where options may stand between them. A word behind an option may be its value.
fn has_words(texts: &[&str], wanted: &str) -> bool {
    let wanted: Vec<&str> = wanted.split(' ').collect();
    // How many of the words may stand behind one another so far, as a set of bits.
    let (mut reached, mut is_value) = (1_u32, false);
    for text in texts {
        if text.starts_with('-') {
            is_value = !text.contains('=');
            continue;
        }
        let behind = wanted.iter().enumerate().filter(|(at, word)| reached & (1 << at) != 0 && may_be(text, word));
        let behind = behind.fold(1, |behind, (at, _)| behind | 1 << (at + 1));
        reached = if is_value { reached | behind } else { behind };
        is_value = false;
        if reached >> wanted.len() != 0 {
            return true;
        }
    }
    false
}

/// Returns the module that Python runs, and its arguments. Its name may be attached to `-m`, and other letters may stand in front.
fn module<'t, 's>(texts: &'s [&'t str]) -> Option<(&'t str, &'s [&'t str])> {
    let (at, letters) = texts.iter().enumerate().find_map(|(at, text)| Some((at, text.strip_prefix('-')?.split_once('m')?)))?;
    let is_option = texts.iter().take(at).all(|text| text.starts_with('-')) && letters.0.bytes().all(|byte| byte.is_ascii_alphabetic());
    let rest = texts.get(at + 1..).filter(|_| is_option)?;
    if letters.1.is_empty() { rest.split_first().map(|(module, rest)| (*module, rest)) } else { Some((letters.1, rest)) }
}

/// Returns whether a program that says more than a table can shows the environment or settings. `words` are the texts without options.
fn prints_settings(program: &str, texts: &[&str], words: &[&str]) -> bool {
    match program {
        "env" | "genv" => prints_environment(texts),
        "printenv" => words.is_empty() || words.iter().any(|name| !is_in(HARMLESS_VARIABLES, name)),
        "export" | "declare" | "typeset" | "readonly" => words.is_empty(),
        "set" => texts.is_empty(),
        "ps" => shows_environments(texts),
        "jq" | "gojq" | "jaq" if filter(texts).contains(UNKNOWN) => true,
        "awk" | "gawk" | "mawk" | "nawk" | "original-awk" => texts.iter().any(|text| text.contains("ENVIRON")),
        "jq" | "gojq" | "jaq" => reads_environment(filter(texts)),
        "gh" => filters_of_gh(texts).any(|filter| filter.contains(UNKNOWN) || reads_environment(filter)),
        "yq" => words.iter().any(|text| text.contains("strenv") || text.contains("envsubst") || reads_environment(text)),
        _ if (words.contains(&"exec") || starts_others(program)) && words.iter().any(|word| shows_environment(word)) => true,
        "docker" | "podman" | "nerdctl" => inspects(texts, words) || shows_project(texts) || hands_variables(texts),
        "docker-compose" | "podman-compose" => shows_project(&[&["compose"], texts].concat()) || hands_variables(texts),
        "kubectl" | "oc" => gets_secrets(texts, words),
        "git" => shows_settings(texts),
        "npm" => has_words(texts, "config get") && words.iter().any(|name| name.contains(UNKNOWN) || is_secret_name(name)),
        "systemctl" => words.contains(&"show") && !is_property_named(texts),
        // A value that is named is printed, although the whole list leaves it out.
        "terraform" | "tofu" => words.split_first().is_some_and(|(first, rest)| *first == "output" && !rest.is_empty()),
        _ => false,
    }
}

/// Returns whether a word of what another program starts may be a program or a script that shows the environment. In a script each word may be the
/// program of a command: `exec env`, `printenv TOKEN | sort`.
fn shows_environment(word: &str) -> bool {
    const SHOWING: &str = "declare env export printenv readonly set typeset";
    let name = |word: &'_ str| word.rsplit('/').next().unwrap_or_default().trim_matches(['"', '\'']).to_owned();
    let shows = |part: &str| {
        // Digits belong to a redirection.
        let words: Vec<&str> = part.split_whitespace().filter(|word| !word.bytes().all(|byte| byte.is_ascii_digit())).collect();
        let mut commands = (0..words.len()).filter_map(|at| words.get(at..)?.split_first());
        commands.any(|(program, rest)| is_in(SHOWING, &name(program)) && prints(&name(program), rest))
    };
    let own = word.rsplit('/').next().unwrap_or(word);
    may_be(own, "env") || may_be(own, "printenv") || word.split([';', '|', '&', '\n', '<', '>', '(', ')', '{', '}', '`']).any(shows)
}

/// Returns whether a program starts what it is given, in a way that no table reads.
fn starts_others(program: &str) -> bool {
    table(program).is_some_and(|row| matches!(row.operands, Operands::Version) && row.runs.is_some_and(|what| what.contains("program")))
}

/// `env` without a command prints what it would hand on.
fn prints_environment(texts: &[&str]) -> bool {
    let mut rest = texts.iter();
    while let Some(text) = rest.next() {
        match *text {
            "-u" | "--unset" | "-C" | "--chdir" => drop(rest.next()),
            "--help" | "--version" => return false,
            text if text.starts_with('-') || text.contains('=') => {}
            _ => return false,
        }
    }
    true
}

/// `ps e` shows the environment of each process. Letters without a dash are options, unless an option in front takes them for its value.
fn shows_environments(texts: &[&str]) -> bool {
    const VALUED: &str =
        "--cols --columns --format --group --Group --lines --pid --ppid --quick-pid --rows --sid --sort --tty --user --User --width";
    let mut rest = texts.iter();
    while let Some(text) = rest.next() {
        if is_in(VALUED, text) {
            rest.next();
        }
        let (letters, shows, valued) = match text.strip_prefix('-') {
            Some(letters) => (letters, 'E', "opuUgGtCsqO"),
            None => (*text, 'e', "oOpktU"),
        };
        if text.starts_with("--") {
            continue;
        }
        let value = letters.find(|letter| valued.contains(letter));
        let is_open = letters.find(UNKNOWN).is_some_and(|at| value.is_none_or(|value| at < value));
        // What stands behind is the value of a letter, or the id of a process.
        let mut front = letters.chars().take_while(|letter| letter.is_ascii_alphabetic() && !valued.contains(*letter));
        if is_open || front.any(|letter| letter == shows) {
            return true;
        }
        if value.is_some_and(|at| at + 1 == letters.len()) {
            rest.next();
        }
    }
    false
}

/// Returns the filter of `jq`: the first word that is no option and no value of one.
fn filter<'t>(texts: &[&'t str]) -> &'t str {
    let mut rest = texts.iter();
    while let Some(text) = rest.next() {
        match *text {
            "--arg" | "--argjson" | "--slurpfile" | "--rawfile" | "--argfile" => drop(rest.nth(1)),
            "--indent" | "-L" => drop(rest.next()),
            "--" => return rest.next().copied().unwrap_or_default(),
            text if text.starts_with('-') => {}
            text => return text,
        }
    }
    ""
}

/// Returns the filters that `gh` hands to `jq`. The letter of the option may stand behind others: `-cq FILTER`.
fn filters_of_gh<'t>(texts: &[&'t str]) -> impl Iterator<Item = &'t str> {
    let bundle = |text: &'t str| text.strip_prefix('-').filter(|letters| !letters.starts_with('-'));
    texts.iter().enumerate().filter_map(move |(at, text)| {
        let attached = text.strip_prefix("--jq=").or_else(|| bundle(text)?.split_once('q').map(|(_, filter)| filter));
        let attached = attached.or((*text == "--jq").then_some(""))?;
        if attached.is_empty() { texts.get(at + 1).copied() } else { Some(attached) }
    })
}

/// Returns whether a filter of `jq` reads the environment: `$ENV`, or `env` that is neither a field, a key nor a text.
fn reads_environment(filter: &str) -> bool {
    let is_part = |char: char| char.is_ascii_alphanumeric() || char == '_';
    let is_use = |(at, word): (usize, &str)| {
        let (before, behind) = (filter.get(..at).unwrap_or_default(), filter.get(at + word.len()..).unwrap_or_default());
        let is_other = before.ends_with(|last: char| is_part(last) || ".$@".contains(last)) || behind.starts_with(is_part);
        let is_key = behind.trim_start().starts_with(':') || before.ends_with('"') && behind.starts_with('"');
        !is_other && !is_key
    };
    filter.contains("$ENV") || ["env", "ENV"].iter().any(|word| filter.match_indices(word).any(is_use))
}

/// `docker inspect` shows the environment of a container or an image, unless its format leaves that out.
fn inspects(texts: &[&str], words: &[&str]) -> bool {
    // Networks and their like have none.
    let others = ["network", "volume", "node", "manifest", "buildx", "plugin"];
    let at = words.iter().position(|word| *word == "inspect");
    let is_inspected =
        at.is_some_and(|at| !at.checked_sub(1).and_then(|before| words.get(before)).is_some_and(|kind| others.contains(kind)));
    // Behind `--` a format is the name of something to inspect.
    let mut formats = texts.iter().enumerate().filter_map(|(at, text)| match text.split_once('=') {
        Some(("--format" | "-f", format)) => Some(format),
        _ if matches!(*text, "--format" | "-f") => texts.get(at + 1).copied(),
        _ => text.strip_prefix("-f").filter(|format| !format.is_empty()),
    });
    let is_left_out = formats.next().is_some_and(leaves_environment_out) && formats.all(leaves_environment_out);
    is_inspected && (!is_left_out || texts.contains(&"--"))
}

/// `docker run -e NAME` and `docker build --build-arg NAME` hand on the value that a variable has here, and `--secret` does without a file, or with
/// the name of a variable beside the file.
fn hands_variables(texts: &[&str]) -> bool {
    let Some(at) = texts.iter().position(|text| matches!(*text, "build" | "create" | "exec" | "run")) else { return false };
    let builds = texts.get(at) == Some(&"build");
    let is_variable = |value: &str| !value.is_empty() && !value.contains('=') && !is_in(HARMLESS_VARIABLES, value);
    let mut rest = texts.iter().skip(at + 1).copied().peekable();
    // Words behind an image are for the container.
    while let Some(text) = rest.next_if(|text| builds || text.starts_with('-') && *text != "--") {
        let (option, attached) = match text.strip_prefix("--") {
            Some(long) => long.split_once('=').map_or((long, ""), |(option, value)| (option, value)),
            // Letters that take no value may stand in front.
            None => text.trim_start_matches(['-', 'i', 't', 'd', 'q', 'P', 'T']).split_at_checked(1).unwrap_or_default(),
        };
        let takes_next = attached.is_empty() && text.starts_with('-') && !option.is_empty() && !is_in(FLAGS_OF_CONTAINERS, text);
        let next = rest.next_if(|next| takes_next && !next.starts_with('-')).unwrap_or_default();
        let value = if takes_next { next } else { attached.trim_start_matches('=') };
        let hands = match option {
            "e" | "env" | "build-arg" => is_variable(value),
            "env-host" => true,
            "secret" => {
                let value = value.to_ascii_lowercase();
                let mut settings = value.split(',').map(|setting| setting.trim_matches('"'));
                let is_variable = settings.clone().any(|setting| setting.starts_with("env=") || setting == "type=env");
                builds && (is_variable || !settings.any(|setting| setting.starts_with("src=") || setting.starts_with("source=")))
            }
            _ => false,
        };
        if hands {
            return true;
        }
    }
    false
}

/// Returns whether a template names fields, and none that holds an environment.
fn leaves_environment_out(template: &str) -> bool {
    const HOLDERS: [&str; 7] = ["Env", "ContainerConfig", "Spec", "PreviousSpec", "ContainerSpec", "TaskTemplate", "Data"];
    const OF_CONFIG: [&str; 9] = ["Image", "Labels", "Cmd", "Entrypoint", "WorkingDir", "User", "ExposedPorts", "Healthcheck", "Hostname"];
    // A text in an action may hold the end of one.
    let actions = template.split("{{").skip(1);
    let words = actions.flat_map(|action| action.split(|char: char| char.is_whitespace() || "(),|{}\"`:=".contains(char)));
    template.contains("{{")
        && !template.contains(UNKNOWN)
        && words.filter(|word| word.starts_with(['.', '$', '-']) && *word != "-").all(|word| {
            let fields: Vec<&str> = word.trim_start_matches('-').split('.').skip(1).filter(|field| !field.is_empty()).collect();
            let is_variable = word.starts_with('$') && word.len() > 1 && fields.is_empty();
            let is_config = |at: usize| fields.get(at + 1).is_some_and(|field| OF_CONFIG.contains(field));
            let is_shown = |(at, field): (usize, &&str)| !HOLDERS.contains(field) && (*field != "Config" || is_config(at));
            is_variable || !fields.is_empty() && fields.iter().enumerate().all(is_shown)
        })
}

/// `docker compose config` fills in what `.env` says, unless it is asked for names alone.
fn shows_project(texts: &[&str]) -> bool {
    const NAMES: [&str; 7] = ["-q", "--quiet", "--services", "--volumes", "--images", "--profiles", "--hash"];
    let is_asked_for_names = texts.iter().any(|text| NAMES.contains(&text.split('=').next().unwrap_or_default()));
    ["compose config", "compose convert"].iter().any(|words| has_words(texts, words)) && !is_asked_for_names
}

/// `kubectl get secret` in a format that shows data. What a file names may be a secret.
fn gets_secrets(texts: &[&str], words: &[&str]) -> bool {
    let is_secret = |word: &&str| word.split([',', '/', '=']).any(|kind| kind.to_ascii_lowercase().starts_with("secret"));
    let is_file = |text: &&str| text.starts_with("-f") || text.starts_with("-k") || text.starts_with("--filename");
    let is_plain = |format: &str| matches!(format, "name" | "wide");
    let is_shown = texts.iter().enumerate().any(|(at, text)| {
        let next = || texts.get(at + 1).copied().unwrap_or_default();
        match text.strip_prefix("--") {
            Some(long) => match long.split_once('=') {
                Some(("output", format)) => !is_plain(format),
                Some((name, _)) => name == "template" || name == "raw",
                None => long == "template" || long == "raw" || long == "output" && !is_plain(next()),
            },
            None => text
                .strip_prefix('-')
                .and_then(|letters| letters.split_once('o'))
                .is_some_and(|(_, format)| !is_plain(if format.is_empty() { next() } else { format.trim_start_matches('=') })),
        }
    });
    // What stands behind a kind is a name.
    let is_kind = |kind: &str| !kind.contains(['/', ',', UNKNOWN]);
    let mut behind = texts.iter().enumerate().filter(|(_, text)| **text == "get").map(|(at, _)| texts.get(at + 1..).unwrap_or_default());
    let is_named = behind.all(|texts| first_kind(texts).is_some_and(is_kind));
    let is_open = !is_named && words.iter().any(|word| word.contains(UNKNOWN));
    words.contains(&"get") && is_shown && (is_open || texts.iter().any(is_secret) || texts.iter().any(is_file))
}

/// Returns the first word behind `kubectl get` that is no option and no value of one, as far as the options are known.
fn first_kind<'t>(texts: &[&'t str]) -> Option<&'t str> {
    const VALUED: [&str; 8] = ["-n", "--namespace", "--context", "-l", "--selector", "-o", "--output", "--field-selector"];
    let mut rest = texts.iter();
    while let Some(text) = rest.next() {
        match *text {
            text if VALUED.contains(&text) => drop(rest.next()),
            "-A" | "--all-namespaces" | "-w" | "--watch" | "--no-headers" | "--ignore-not-found" => {}
            text if text.starts_with("-o") || text.starts_with("--") && text.contains('=') => {}
            text => return (!text.starts_with('-')).then_some(text),
        }
    }
    None
}

/// `git config` that lists settings, or reads one of a section in which secrets stand, and `git var -l`.
fn shows_settings(texts: &[&str]) -> bool {
    let mut rest = texts;
    while let [option, behind @ ..] = rest {
        rest = match *option {
            "-C" | "-c" => behind.get(1..).unwrap_or_default(),
            option if option.starts_with('-') => behind,
            _ => break,
        };
    }
    let Some((subcommand, arguments)) = rest.split_first() else { return false };
    const LISTS: [&str; 8] = ["-l", "--list", "--get-regexp", "--get-urlmatch", "--regexp", "--url", "list", "edit"];
    let is_list = |text: &&str| LISTS.contains(&text.split('=').next().unwrap_or_default());
    let is_open = |name: &str| {
        name.split_once('.').map(|(section, _)| section).is_some_and(|section| is_in(GIT_SECTIONS, &section.to_ascii_lowercase()))
    };
    let is_value =
        |at: usize| at.checked_sub(1).and_then(|at| arguments.get(at)).is_some_and(|word| matches!(*word, "--default" | "--type"));
    let words = arguments.iter().enumerate().filter(|(at, text)| !text.starts_with('-') && !is_value(*at));
    let setting = words.map(|(_, text)| text).find(|text| text.contains(['.', UNKNOWN]));
    match *subcommand {
        "config" => arguments.iter().any(is_list) || setting.is_some_and(|name| !is_open(name)),
        "var" => arguments.iter().any(is_list),
        _ => false,
    }
}

/// Returns whether the name of a setting is that of a secret.
fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.starts_with(['_', '/']) || ["auth", "token", "password", "secret", "key", "cert"].iter().any(|part| name.contains(part))
}

/// Returns whether properties of a service are named, and its environment is not among them.
fn is_property_named(texts: &[&str]) -> bool {
    let is_option = |text: &str| text.starts_with("-p") || text.starts_with("--property");
    let is_named = texts.iter().any(|text| is_option(text));
    let is_open = |(at, text): (usize, &&str)| {
        let is_value = at.checked_sub(1).and_then(|at| texts.get(at)).is_some_and(|before| matches!(*before, "-p" | "--property"));
        text.contains(UNKNOWN) && (is_value || is_option(text))
    };
    is_named
        && !texts.iter().enumerate().any(is_open)
        && !texts.iter().any(|text| text.contains("Environment") || text.contains("ExecStart"))
}

#[cfg(test)]
#[path = "printing_tests.rs"]
mod tests;
