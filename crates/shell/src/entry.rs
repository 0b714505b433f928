//! Reads a command's arguments behind the words of the list's entry that it matches: those are the author's, the rest is the table's.

use super::argument::{Argument, text_at};
use super::tables::{self, Reading, Started, Unlisted, clone_operands};
use super::template::Place;

/// How far an entry of the list, and the program's table, know a command.
#[derive(Debug)]
pub struct Entry<'a> {
    /// How many words of the command are the entry's.
    pub given: usize,
    /// The places of the arguments among these words that the entry does not have: options that the table knows.
    pub between: &'a [usize],
    /// The typed places that the command fills, each with the place of its argument.
    pub filled: &'a [(usize, Place)],
    /// Whether the table has all arguments.
    pub is_listed: bool,
}

/// Reads the arguments of a program behind an entry; `reading` is what its table makes of them. The first `given` words, the program with them, are
/// the words of an entry of the list. Where the table refuses one of these, it is the author's word: it is passed over, and the table reads the
/// rest. Behind a subcommand that the table does not know, the rest must be literal.
///
/// # Errors
/// [`Unlisted`] is the first argument that neither the table nor the entry has.
pub fn read(name: &str, arguments: &[Argument], given: usize, reading: Reading) -> Reading {
    if given > 1 && matches!(name, "tar" | "gtar" | "bsdtar") {
        return behind_operation(arguments, given);
    }
    if name == "git" && arguments.get(tables::git_subcommand(arguments)).is_some_and(|word| word.text == "clone") {
        return behind_clone(arguments, given);
    }
    // `gh repo clone` hands what stands behind two dashes on to `git`, whose options may start a program.
    if name == "gh"
        && let Some(index) = arguments.iter().position(|word| word.text == "--").filter(|index| index + 1 >= given)
    {
        return Err(Unlisted { index, what: tables::OPERAND });
    }
    if name == "git" && given > 1 && is_remote_add(arguments) {
        return behind_remote_add(arguments, given);
    }
    if let Some((tool, rest)) = tool(name, arguments, given) {
        let words = arguments.len() - rest.len();
        let reading = tables::read(tool, rest);
        return read(tool, rest, given - words, reading).map_err(|unlisted| Unlisted { index: unlisted.index + words, ..unlisted });
    }
    let mut unlisted = match reading {
        Err(unlisted) if unlisted.index + 1 < given => unlisted,
        // Who names the subcommand allows what it does without an option.
        Err(unlisted) if unlisted.what == tables::NEEDED && names_subcommand(name, arguments, given) => return Ok(Vec::new()),
        result => return result,
    };
    let mut rest: Vec<(usize, Argument)> = arguments.iter().cloned().enumerate().collect();
    let mut is_value = false;
    loop {
        let (place, argument) = rest.get(unlisted.index).cloned().unwrap_or_default();
        if place + 1 >= given || unlisted.index >= rest.len() {
            return Err(Unlisted { index: place, ..unlisted });
        }
        // Behind an option stands its value, and what is no subcommand is passed over as an option is.
        if unlisted.what == tables::SUBCOMMAND && !is_value {
            // A text may be computed, if it is one word.
            let others = tables::others(name, arguments);
            let is_text = |at: usize, argument: &Argument| others.contains(&at) && !argument.many;
            let is_computed = |(at, argument): (usize, &Argument)| !argument.is_literal() && !is_text(at, argument);
            let computed = arguments.iter().enumerate().position(is_computed);
            return computed.map_or(Ok(Vec::new()), |index| Err(Unlisted { index, what: tables::LITERAL }));
        }
        is_value = argument.text.starts_with('-');
        rest.remove(unlisted.index);
        let words: Vec<Argument> = rest.iter().map(|(_, argument)| argument.clone()).collect();
        match tables::read(name, &words) {
            Ok(started) if !is_value => return Ok(started),
            Ok(started) => return with_value_taken(name, &rest, (unlisted.index, given), started),
            Err(next) => unlisted = next,
        }
    }
}

/// Returns whether the words of an entry have the subcommand of a program, or more than the name of a program without one.
fn names_subcommand(name: &str, arguments: &[Argument], given: usize) -> bool {
    given > if name == "git" { tables::git_subcommand(arguments) + 1 } else { 1 }
}

/// Reads the arguments once more where the word behind an option that was passed over is the entry's too: it may be the option's value, and the
/// word behind it what the program runs (`gawk -i inplace PROGRAM`). Both readings have to be in the table. `at` is where the option stood.
fn with_value_taken(name: &str, rest: &[(usize, Argument)], (at, given): (usize, usize), mut started: Vec<Started>) -> Reading {
    let is_its_value = rest.get(at).is_some_and(|(place, word)| place + 1 < given && !word.text.starts_with('-'));
    if !is_its_value {
        return Ok(started);
    }
    let others: Vec<&(usize, Argument)> = rest.iter().enumerate().filter(|(index, _)| *index != at).map(|(_, word)| word).collect();
    let words: Vec<Argument> = others.iter().map(|(_, argument)| argument.clone()).collect();
    let place = |index: usize| others.get(index).map_or(given, |(place, _)| *place);
    let read = tables::read(name, &words).map_err(|unlisted| Unlisted { index: place(unlisted.index), ..unlisted })?;
    started.extend(read.into_iter().filter(|other| !started.contains(other)).collect::<Vec<_>>());
    Ok(started)
}

/// Returns the tool that an entry names behind a program that starts it (`python -m pytest`, `npx eslint`), and its arguments. Of the modules of
/// Python only those are tools of the same name that have a table.
fn tool<'a>(name: &str, arguments: &'a [Argument], given: usize) -> Option<(&'a str, &'a [Argument])> {
    let (tool, rest) = match arguments {
        [option, module, rest @ ..] if given > 2 && name.starts_with("python") && option.as_known() == Some("-m") => {
            (module.as_known().filter(|module| tables::is_python_tool(module))?, rest)
        }
        [package, rest @ ..] if given > 1 && matches!(name, "npx" | "bunx") => (package.as_known()?, rest),
        _ => return None,
    };
    let is_plain = tool.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte)) && !tool.starts_with('-');
    is_plain.then_some((tool, rest))
}

/// Reads what stands behind a `git clone` that an entry names: options that run and load nothing, one address that is no helper program's
/// (`ext::`) and no path, and perhaps a folder.
fn behind_clone(arguments: &[Argument], given: usize) -> Reading {
    let subcommand = tables::git_subcommand(arguments);
    let from = subcommand + 1;
    let unlisted = |index: usize| Unlisted { index, what: tables::OPERAND };
    // What stands in front of the subcommand is in the table, or the author's.
    if given < from + 1 {
        return Err(unlisted(subcommand));
    }
    let is_given = arguments.get(from..given - 1).is_some_and(|words| words.iter().any(Argument::is_operand));
    let from = from.max(given - 1);
    let rest = arguments.get(from..).unwrap_or_default();
    let operands = clone_operands(rest).map_err(|unlisted| Unlisted { index: unlisted.index + from, ..unlisted })?;
    let known: Option<Vec<&str>> = operands.iter().map(|at| rest.get(*at).and_then(Argument::as_known)).collect();
    match (known.as_deref(), is_given) {
        (Some([] | [_]), true) => Ok(Vec::new()),
        (Some([address] | [address, _]), false) if is_cloned(address) => Ok(Vec::new()),
        _ => Err(unlisted(operands.first().copied().unwrap_or_default() + from)),
    }
}

fn is_remote_add(arguments: &[Argument]) -> bool {
    let subcommand = tables::git_subcommand(arguments);
    let words = arguments.get(subcommand..subcommand + 2);
    words.is_some_and(|words| words.iter().map(|word| word.text.as_str()).eq(["remote", "add"]))
}

/// Reads what stands behind a `git remote add` that an entry names: a name and an address, as [`behind_clone`] takes it, and no option: `-f`
/// fetches.
fn behind_remote_add(arguments: &[Argument], given: usize) -> Reading {
    let from = tables::git_subcommand(arguments) + 2;
    let unlisted = |index: usize| Unlisted { index, what: tables::OPERAND };
    // The entry names the subcommand itself, and perhaps the name behind it.
    if given < from + 1 {
        return Err(unlisted(from - 1));
    }
    let operands: Option<Vec<&str>> = arguments.iter().skip(from).map(|word| word.as_known().filter(|_| word.is_operand())).collect();
    let is_name = |name: &str| {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
        name.starts_with(|first: char| first.is_ascii_alphanumeric()) && name.bytes().all(is_plain)
    };
    match operands.as_deref() {
        Some([name, address]) if is_name(name) && is_cloned(address) => Ok(Vec::new()),
        _ => Err(unlisted(from)),
    }
}

/// Returns whether an operand of `git clone` is the address of another machine, in letters that mean nothing else.
fn is_cloned(address: &str) -> bool {
    let (is_remote, host) = match address.split_once("://") {
        Some((scheme, rest)) => (["https", "http", "ssh", "git"].contains(&scheme), rest),
        None => (address.split_once(':').is_some_and(|(host, _)| !host.contains('/')), address),
    };
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-~/:@+".contains(&byte);
    let host = host.split(['/', ':']).next().unwrap_or_default();
    let begins = |part: &str| part.starts_with(|char: char| char.is_ascii_alphanumeric());
    is_remote && !address.contains("::") && address.bytes().all(is_plain) && host.split('@').all(begins)
}

/// Reads what stands behind the operation of `tar` that an entry names, such as `tar xf`: names of archives and members, no options.
fn behind_operation(arguments: &[Argument], given: usize) -> Reading {
    let is_name = |argument: &Argument| argument.is_operand() && argument.is_literal() && !argument.text.contains(':');
    match arguments.iter().skip(given - 1).position(|argument| !is_name(argument)) {
        Some(index) => Err(Unlisted { index: index + given - 1, what: tables::OPERAND }),
        None => Ok(Vec::new()),
    }
}

/// Reads what stands in typed places of an entry: what a program starts whose name, or text, fills a place (`timeout {number} {word}` says nothing
/// of what runs). What an entry names itself is its author's. `places` are where such arguments stand in the line, and `filled` are those of
/// places alone.
///
/// # Errors
/// [`Unlisted`] is an argument that the table refuses where it takes a plain word: the program reads a script or an expression in it, as `sed`
/// does, which no rule of files holds.
pub fn in_places(name: &str, arguments: &[Argument], filled: &[(usize, Place)], places: &[usize]) -> Reading {
    if places.is_empty() {
        return Ok(Vec::new());
    }
    // The script stands behind it, as behind an entry for `sed -i` alone, unless the entry has a path there: BSD's takes that for its value.
    let is_path = |index: usize| filled.iter().any(|(at, place)| *at == index && *place == Place::Path);
    let in_place = usize::from(name == "sed" && text_at(arguments, 0) == "-i" && !is_path(1));
    let read_alone = arguments.get(in_place..).unwrap_or_default();
    let refused = |(index, place): &(usize, Place)| interpreted(name, read_alone, index.checked_sub(in_place)?, *place);
    if let Some(unlisted) = filled.iter().find_map(refused) {
        return Err(Unlisted { index: unlisted.index + in_place, ..unlisted });
    }
    let is_filled = |started: &Started| match started {
        Started::Command(words) => words.iter().any(|word| places.contains(&word.at)),
        Started::Text(text) => places.contains(&text.at),
    };
    // Options of the entry may not be in the table.
    let started = read(name, arguments, arguments.len() + 1, tables::read(name, arguments)).unwrap_or_default();
    Ok(started.into_iter().filter(is_filled).collect())
}

/// Returns whether the table of a program has an argument at this place, whatever stands in front of it.
pub fn knows(name: &str, arguments: &[Argument], index: usize) -> bool {
    refused_at(name, arguments, index).is_none()
}

fn refused_at(name: &str, arguments: &[Argument], index: usize) -> Option<Unlisted> {
    read(name, arguments, index + 1, tables::read(name, arguments)).err().filter(|unlisted| unlisted.index == index)
}

/// Returns the refusal of an argument in a place in which the table takes a plain word.
fn interpreted(name: &str, arguments: &[Argument], index: usize, place: Place) -> Option<Unlisted> {
    let refused = refused_at(name, arguments, index)?;
    // Any word is no script either, where the table reads a script.
    let is_script = place == Place::Any && tables::searches(name) && !text_at(arguments, index).starts_with('-');
    let place = if is_script { Place::Word } else { place };
    let takes = |plain: &&str| {
        let mut arguments = arguments.to_vec();
        arguments.get_mut(index).into_iter().for_each(|argument| *argument = Argument::known(*plain));
        knows(name, &arguments, index)
    };
    place.plain_words().iter().any(takes).then_some(refused)
}
