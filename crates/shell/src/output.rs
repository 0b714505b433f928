//! Command substitutions of which the form of the output is known: a number, a revision, or the name of a branch or tag.

use super::argument::Argument;
use super::grammar::{Command, Kind, List, Pipeline, Redirect, Simple, Word};

/// What the output of commands is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Digits, and perhaps `-`, `_` and `.` between them. The commands do not fail.
    Number,
    /// The digits of a revision; nothing if the commands fail.
    Revision,
    /// Any number of lines with the digits of revisions or their like.
    Ids,
    /// Names of branches or tags; nothing if the commands fail. None begins with a dash, and no part of one with a dot.
    Name,
}

/// The most numbers of `seq` that are looked at one by one.
const NUMBERS_MAX: u32 = 200;

/// TABLE: programs that may print nothing but numbers.
pub const COUNTERS: [&str; 6] = ["egrep", "fgrep", "grep", "lsof", "pgrep", "wc"];

/// Returns the words of a simple command of literals, perhaps without its errors.
fn words(command: &Command) -> Option<Vec<&str>> {
    let Command { kind: Kind::Simple(Simple { assignments, words, unbraced }), redirects } = command else { return None };
    let is_silenced = |redirect: &Redirect| matches!(redirect, Redirect::File { target, .. } if target.as_text() == Some("/dev/null"));
    // Errors are the only output that a redirection to this place could leave unseen, but for the output itself, which is nothing then.
    (assignments.is_empty() && unbraced.is_empty() && redirects.iter().all(is_silenced))
        .then(|| words.iter().map(Word::as_text).collect())?
}

/// Returns the command of a list that is one command.
fn alone(list: &List) -> Option<&Command> {
    let [Pipeline { commands, .. }] = list.as_slice() else { return None };
    if let [command] = commands.as_slice() { Some(command) } else { None }
}

/// Returns whether a list prints ids of containers, names of a cluster's resources behind their kinds, or numbers of pull requests and issues, and
/// nothing else, or the first of them.
fn prints_ids(list: &List) -> bool {
    let [Pipeline { commands, .. }] = list.as_slice() else { return false };
    let Some((first, filters)) = commands.split_first() else { return false };
    let is_listing = match words(first).as_deref() {
        Some(["docker" | "podman" | "nerdctl", "ps", options @ ..]) => are_ids(options),
        Some(["docker", "compose", "ps", "-q" | "--quiet", services @ ..]) => services.iter().all(|service| !service.starts_with('-')),
        Some(["kubectl", "get", rest @ ..]) => are_resources(rest),
        Some(["gh", "pr" | "issue", "list", rest @ ..]) => are_numbers_of_gh(rest),
        _ => false,
    };
    let is_first = |command: &Command| matches!(words(command).as_deref(), Some(["head", "-1" | "-n1"] | ["head", "-n", "1"]));
    is_listing && filters.iter().all(is_first)
}

/// Returns the form of the output of commands, if that is known whatever the folder holds.
#[must_use]
pub fn form(list: &List) -> Option<Form> {
    if prints_ids(list) {
        return Some(Form::Ids);
    }
    match words(alone(list)?)?.as_slice() {
        ["nproc"] if is_whole(list) => Some(Form::Number),
        ["date", format] if is_whole(list) => format.strip_prefix('+').filter(|format| is_digits(format)).map(|_| Form::Number),
        ["git", "rev-parse", rest @ ..] => revision(rest),
        ["git", "merge-base", commits @ ..] if commits.iter().all(|commit| !commit.starts_with('-')) => Some(Form::Revision),
        ["git", "log", "-1", "--format=%h" | "--format=%H" | "--pretty=%h" | "--pretty=%H"] => Some(Form::Revision),
        ["git", "branch", "--show-current"] | ["git", "symbolic-ref", "--short", "HEAD"] => Some(Form::Name),
        // One a line.
        ["git", "tag"] | ["git", "tag", "-l" | "--list"] => Some(Form::Name),
        ["git", "tag", "-l" | "--list", pattern] if !pattern.starts_with('-') => Some(Form::Name),
        ["git", "describe", options @ ..] => {
            let is_known = |option: &&str| matches!(*option, "--tags" | "--always" | "--abbrev=0" | "HEAD" | "HEAD^" | "HEAD~1");
            options.iter().all(is_known).then_some(Form::Name)
        }
        _ => None,
    }
}

/// Returns a number as commands print it, if they print nothing else, with `1` for each digit.
#[must_use]
pub fn number(list: &List) -> Option<String> {
    form(list).filter(|form| *form == Form::Number)?;
    let format = words(alone(list)?)?.get(1).map_or("", |format| format.trim_start_matches('+'));
    let mut digits = String::new();
    let mut letters = format.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '%' => digits.push_str(match letters.next()? {
                'F' => "1111-11-11",
                'Y' => "1111",
                'j' => "111",
                's' => "1111111111",
                _ => "11",
            }),
            sign => digits.push(sign),
        }
    }
    // How many processors there are is a number without a form.
    Some(if digits.is_empty() { "1".to_owned() } else { digits })
}

/// Returns the words that `seq` prints, if a list is nothing but it with whole numbers.
#[must_use]
pub fn sequence(list: &List) -> Option<Vec<String>> {
    let words = words(alone(list)?).filter(|_| is_whole(list))?;
    let ["seq", numbers @ ..] = words.as_slice() else { return None };
    let number = |text: &&str| text.parse::<u32>().ok().filter(|number| number.to_string() == **text);
    let numbers: Vec<u32> = numbers.iter().map(number).collect::<Option<_>>()?;
    let (first, step, last) = match numbers.as_slice() {
        [last] => (1, 1, *last),
        [first, last] => (*first, 1, *last),
        [first, step, last] => (*first, *step, *last),
        _ => return None,
    };
    let is_short = step > 0 && first <= last && (last - first) / step < NUMBERS_MAX;
    is_short.then(|| (first..=last).step_by(step as usize).map(|number| number.to_string()).collect())
}

/// Returns whether a program, with words that are written out or no options, prints numbers in digits and nothing else: how many there are of
/// something, or ids of processes. It may print none, and blanks in front of them.
#[must_use]
pub fn are_numbers(words: &[Argument]) -> bool {
    let Some((program, arguments)) = words.split_first() else { return false };
    match program.as_known() {
        // With the name of a file it prints that too.
        Some("wc") => matches!(arguments, [count] if count.as_known().is_some_and(|text| matches!(text, "-c" | "-l" | "-m" | "-w"))),
        // Of several files it prints the names too.
        Some("grep" | "egrep" | "fgrep") => match arguments {
            [letters, operands @ ..] => {
                let is_counting = letters
                    .as_known()
                    .and_then(|text| text.strip_prefix('-'))
                    .is_some_and(|letters| letters.contains('c') && letters.bytes().all(|letter| b"cEFisvwx".contains(&letter)));
                is_counting && matches!(operands.len(), 1 | 2) && operands.iter().all(|operand| operand.is_operand() && !operand.many)
            }
            [] => false,
        },
        Some("lsof") => {
            arguments.iter().any(|word| word.text.starts_with("-t")) && arguments.iter().all(|word| word.as_known().is_some_and(is_of_port))
        }
        Some("pgrep") => match arguments {
            [name] => name.is_operand(),
            [option, name] => matches!(option.as_known(), Some("-f" | "-x")) && name.is_operand() && !name.many,
            _ => false,
        },
        _ => false,
    }
}

/// Returns whether a word of `lsof` says no more than that ids of processes are printed, and of which port.
fn is_of_port(word: &str) -> bool {
    let is_address = |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b":.,@".contains(&byte));
    match word.strip_prefix('-') {
        Some("sTCP:LISTEN") => true,
        Some(letters) => match letters.split_once('i') {
            Some((front, address)) => front.bytes().all(|letter| b"tnP".contains(&letter)) && is_address(address),
            None => !letters.is_empty() && letters.bytes().all(|letter| b"tnP".contains(&letter)),
        },
        None => word.contains(':') && is_address(word),
    }
}

/// Returns whether a list has no redirection, by which its output could be nothing.
fn is_whole(list: &List) -> bool {
    list.iter().flat_map(|pipeline| &pipeline.commands).all(|command| command.redirects.is_empty())
}

/// What `git rev-parse` prints of the commit that is checked out. Of other words it prints what it does not know as it is.
fn revision(words: &[&str]) -> Option<Form> {
    let (options, commits): (Vec<&str>, Vec<&str>) = words.iter().partition(|word| word.starts_with('-'));
    let [commit] = commits.as_slice() else { return None };
    let behind = commit.strip_prefix("HEAD")?;
    if options == ["--abbrev-ref"] && behind.is_empty() {
        return Some(Form::Name);
    }
    let is_commit = behind.bytes().all(|byte| matches!(byte, b'^' | b'~' | b'0'..=b'9'));
    (is_commit && options.iter().all(|option| matches!(*option, "--short" | "--verify" | "-q"))).then_some(Form::Revision)
}

/// TABLE: kinds of a cluster's resources that are no secrets, as `kubectl` takes them.
const KINDS: &str = "cronjob cronjobs daemonset daemonsets deploy deployment deployments ds job jobs no node nodes ns po pod pods rs service services \
     statefulset statefulsets sts svc";

/// Returns whether words have `kubectl get` print names behind a kind, as in `pod/api-0`, and nothing else.
fn are_resources(words: &[&str]) -> bool {
    let mut words = words.iter();
    let (mut are_names, mut is_kind) = (false, false);
    while let Some(word) = words.next() {
        match *word {
            "-o" | "--output" => are_names = words.next() == Some(&"name"),
            "-oname" | "-o=name" | "--output=name" => are_names = true,
            "-A" | "--all-namespaces" | "--no-headers" => {}
            "-n" | "--namespace" | "-l" | "--selector" | "--field-selector" | "--sort-by" if words.next().is_some() => {}
            word if is_kind || !KINDS.split(' ').any(|kind| kind == word) => return false,
            _ => is_kind = true,
        }
    }
    are_names && is_kind
}

/// Returns whether options have `gh pr list` print numbers and nothing else.
fn are_numbers_of_gh(words: &[&str]) -> bool {
    let (pairs, rest) = words.as_chunks::<2>();
    let has = |pair: &[&str]| pairs.iter().any(|known| known == pair);
    let is_known = |pair: &[&str; 2]| match pair {
        ["--json", "number"] | ["-q" | "--jq", ".[].number"] => true,
        [option, _] => matches!(*option, "-s" | "--state" | "-L" | "--limit" | "-l" | "--label" | "-A" | "--author" | "-S" | "--search"),
    };
    let is_chosen = has(&["-q", ".[].number"]) || has(&["--jq", ".[].number"]);
    rest.is_empty() && pairs.iter().all(is_known) && has(&["--json", "number"]) && is_chosen
}

/// Returns whether options have `docker ps` print the ids of containers and nothing else.
fn are_ids(options: &[&str]) -> bool {
    let (mut is_quiet, mut rest) = (false, options.iter());
    while let Some(option) = rest.next() {
        is_quiet |= matches!(*option, "-q" | "--quiet" | "-aq" | "-qa" | "-qf" | "-aqf" | "-qaf");
        match *option {
            "-f" | "-qf" | "-aqf" | "-qaf" | "--filter" if rest.next().is_none() => return false,
            "-f" | "-qf" | "-aqf" | "-qaf" | "--filter" | "-q" | "--quiet" | "-aq" | "-qa" | "-a" | "--all" | "-l" | "--latest" => {}
            option if option.starts_with("--filter=") => {}
            _ => return false,
        }
    }
    is_quiet
}

/// Returns whether a format of `date` prints digits only, and begins with them.
fn is_digits(format: &str) -> bool {
    let mut letters = format.chars();
    let mut is_begun = false;
    while let Some(letter) = letters.next() {
        match letter {
            '%' if letters.next().is_some_and(|field| "YmdHMSsjFy".contains(field)) => is_begun = true,
            '-' | '_' | '.' if is_begun => {}
            _ => return false,
        }
    }
    is_begun
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grammar::parse;

    fn form_of(line: &str) -> Option<Form> {
        form(&parse(line, 0).unwrap())
    }

    #[test]
    fn forms_are_known_of_few_commands() {
        for (line, expected) in [
            ("nproc", Form::Number),
            ("date +%Y%m%d-%H%M%S", Form::Number),
            ("date +%F", Form::Number),
            ("git rev-parse --short HEAD", Form::Revision),
            ("git rev-parse HEAD~3 2>/dev/null", Form::Revision),
            ("git merge-base main HEAD", Form::Revision),
            ("docker ps -aq", Form::Ids),
            ("docker ps -qf name=api | head -1", Form::Ids),
            ("docker ps -q --filter name=api", Form::Ids),
            ("docker compose ps -q api", Form::Ids),
            ("kubectl get pods -n x -l app=api -o name | head -1", Form::Ids),
            ("gh pr list --json number -q '.[].number'", Form::Ids),
            ("git branch --show-current", Form::Name),
            ("git rev-parse --abbrev-ref HEAD", Form::Name),
            ("git describe --tags --abbrev=0", Form::Name),
        ] {
            assert_eq!(form_of(line), Some(expected), "{line}");
        }
        for line in [
            "nproc > /dev/null",
            "date +id_rsa",
            "docker ps",
            "docker ps -q --format=x",
            "docker ps --filter -q",
            "docker ps -q --filter",
            "docker ps -q | head -c 1",
            "docker compose ps -q --format=x",
            "kubectl get pods",
            "kubectl get pods -o name -o yaml",
            "kubectl get -f x -o name",
            "kubectl get secrets -o name",
            "kubectl get pods,secrets -o name",
            "kubectl get all -o name",
            "kubectl get pods -n -o name",
            "kubectl get pods -o name | sed s/a/b/",
            "gh pr list --json number",
            "gh pr list --json number,title -q '.[].number'",
            "gh pr list --json number -q '.[].title'",
            "gh pr list --json number -q '.[].number' --template x",
            "gh pr list --json number -q '.[].number' -q '.[]'",
            "gh pr list -L -q --json number",
            "date +-%s",
            "date",
            "git rev-parse x",
            "git rev-parse HEAD /etc/passwd",
            "git rev-parse --git-dir HEAD",
            "git rev-parse --abbrev-ref HEAD~1",
            "git describe --match=x",
            "git merge-base --all a b",
            "nproc; ls",
            "nproc | cat",
            "(nproc)",
            "git log -1 --format=%s",
            "git rev-parse HEAD < x",
        ] {
            assert_eq!(form_of(line), None, "{line}");
        }
    }

    #[test]
    fn each_digit_of_a_number_is_known_to_stand_there() {
        let number = |line: &str| number(&parse(line, 0).unwrap());
        for (line, digits) in [("date +%Y_%m", "1111_11"), ("date +%F", "1111-11-11"), ("date +%j.%s", "111.1111111111"), ("nproc", "1")] {
            assert_eq!(number(line).as_deref(), Some(digits), "{line}");
        }
        assert_eq!(number("git rev-parse HEAD"), None);
    }

    #[test]
    fn counts_and_ids_of_processes_are_numbers() {
        let are = |line: &str| are_numbers(&line.split(' ').map(Argument::known).collect::<Vec<_>>());
        for line in
            ["wc -l", "grep -c x", "grep -ic x f", "lsof -ti:3000", "lsof -t -i :3000", "lsof -nP -tiTCP:80 -sTCP:LISTEN", "pgrep -f node"]
        {
            assert!(are(line), "{line}");
        }
        for line in [
            "wc -l f",
            "wc",
            "wc -lw",
            "grep x f",
            "grep -c x f g",
            "grep -cr x f",
            "grep -cH x f",
            "grep -c x -H",
            "grep -co",
            "lsof -i:3000",
            "lsof -t +D x",
            "lsof -ti:3000 -F",
            "lsof -t f",
            "pgrep -l x",
            "pgrep -fl x",
            "pgrep x y",
            "cat f",
        ] {
            assert!(!are(line), "{line}");
        }
    }

    #[test]
    fn numbers_of_a_sequence_are_told() {
        let numbers = |line: &str| sequence(&parse(line, 0).unwrap()).map(|words| words.join(" "));
        assert_eq!(numbers("seq 3").as_deref(), Some("1 2 3"));
        assert_eq!(numbers("seq 2 4").as_deref(), Some("2 3 4"));
        assert_eq!(numbers("seq 0 5 10").as_deref(), Some("0 5 10"));
        for line in ["seq 3 1", "seq -3", "seq 01 3", "seq 1000", "seq -s x 3", "seq 3 > f", "seq 1 0 3", "seq 1.5", "seq", "nproc"] {
            assert_eq!(numbers(line), None, "{line}");
        }
    }
}
