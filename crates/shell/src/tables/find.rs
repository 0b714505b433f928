//! `find`: tests and actions that only look and print, and commands that it starts.
//!
//! `-delete` is an `rm` of what is found. Left out: `-execdir` (runs in other folders), `-ok`, `-okdir` (ask), `-fprint`, `-fprint0`,
//! `-fprintf`, `-fls` (write), `-files0-from`, `-f` (starting points that are not seen), `-D`, `-O`. A `+` that does not end a command to
//! every version, and words of a command that may turn out to be its end.

use super::reading::{COMPUTED, MISSING, OPERAND, OPTION};
use super::{Started, Unlisted, is_in};
use crate::argument::{Argument, Certainty, text_at, text_in_front};
use crate::expand::is_glued;

/// TABLE: options in front of the starting points.
const LEADING: [&str; 4] = ["-E", "-H", "-L", "-P"];

/// TABLE: operators, tests and actions of one word.
const ALONE: &str =
    "! ( ) , -a -and -d -daystart -depth -empty -executable -false -follow -ignore_readdir_race -ls -mount -noleaf -not -nogroup
    -noignore_readdir_race -nouser -nowarn -o -or -print -print0 -prune -quit -readable -true -warn -writable -xdev";

/// TABLE: tests and actions with one argument.
const VALUED: &str =
    "-amin -anewer -atime -cmin -cnewer -context -ctime -fstype -gid -group -ilname -iname -inum -ipath -iregex -iwholename
    -links -lname -maxdepth -mindepth -mmin -mtime -name -newer -newermt -newerat -newerct -newermm -path -perm -printf -regex -regextype
    -samefile -size -type -uid -used -user -wholename -xtype";

/// TABLE: actions without which the names that are found are printed.
pub(super) const ACTIONS: &str = "-delete -exec -execdir -fls -fprint -fprint0 -fprintf -ls -ok -okdir -print -print0 -printf";

pub(super) fn find(arguments: &[Argument]) -> Result<Vec<Started>, Unlisted> {
    let mut started = Vec::new();
    let mut at = arguments.iter().take_while(|argument| argument.as_known().is_some_and(|text| LEADING.contains(&text))).count();
    // A starting point is no option and no operator, whatever the version.
    let is_start = |argument: &&Argument| argument.is_operand() && !argument.text.starts_with(['(', ')', '!', ',', '-']);
    at += arguments.iter().skip(at).take_while(is_start).count();
    while let Some(argument) = arguments.get(at) {
        let word = argument.as_known().ok_or(Unlisted { index: at, what: COMPUTED })?;
        if is_in(ALONE, word) {
            at += 1;
        } else if is_in(VALUED, word) {
            let value = arguments.get(at + 1).ok_or(Unlisted { index: at + 1, what: MISSING })?;
            if value.many {
                return Err(Unlisted { index: at + 1, what: COMPUTED });
            }
            at += 2;
        } else if word == "-delete" {
            let found = Argument { text: "*".to_owned(), certainty: Certainty::Operand, many: true, found: true, ..argument.clone() };
            started.push(Started::Command(vec![Argument { at: argument.at, ..Argument::known("rm") }, found]));
            at += 1;
        } else if word == "-exec" {
            let (command, behind) = command(arguments, at + 1)?;
            started.push(Started::Command(command));
            at = behind;
        } else {
            return Err(Unlisted { index: at, what: OPTION });
        }
    }
    Ok(started)
}

/// Returns the places of the operators, tests and actions of an expression: values of tests and words of commands are none, whatever they look
/// like.
pub(super) fn primaries(arguments: &[Argument]) -> Vec<usize> {
    let text = |at: usize| text_at(arguments, at);
    let begins = |at: &usize| text(*at).starts_with(['-', '(', ')', '!', ',']) && !LEADING.contains(&text(*at));
    let mut at = (0..arguments.len()).find(begins).unwrap_or(arguments.len());
    let mut found = Vec::new();
    while at < arguments.len() {
        found.push(at);
        let is_end = |end: &usize| text(*end) == ";" || text(*end) == "+" && text(end.saturating_sub(1)) == "{}";
        at = match text(at) {
            "-exec" | "-execdir" | "-ok" | "-okdir" => (at + 1..arguments.len()).find(is_end).unwrap_or(arguments.len()) + 1,
            word if is_in(VALUED, word) => at + 2,
            _ => at + 1,
        };
    }
    found
}

/// Reads the command from there on: what it becomes, and where its end is.
fn command(arguments: &[Argument], from: usize) -> Result<(Vec<Argument>, usize), Unlisted> {
    let mut words = Vec::new();
    for (index, argument) in arguments.iter().enumerate().skip(from) {
        let is_file = index > from && text_in_front(arguments, index) == "{}";
        match argument.as_known() {
            Some(";") if words.is_empty() => return Err(Unlisted { index, what: MISSING }),
            Some(";") => return Ok((words, index + 1)),
            Some("+") if is_file => {
                if let Some(last) = words.last_mut() {
                    last.many = true;
                }
                return Ok((words, index + 1));
            }
            Some("+") => return Err(Unlisted { index, what: OPERAND }),
            // It may be the end, or several words of which one is.
            None if argument.many || !is_open(argument) => return Err(Unlisted { index, what: COMPUTED }),
            _ => {}
        }
        // The names of files begin with the starting point.
        words.push(filled(argument, "{}", Certainty::Operand));
    }
    Err(Unlisted { index: arguments.len(), what: MISSING })
}

/// Returns whether a word that is not known is surely no `;` and no `+`.
fn is_open(argument: &Argument) -> bool {
    argument.certainty == Certainty::Value || argument.certainty == Certainty::Operand && !argument.text.starts_with([';', '+', '*'])
}

/// Returns a word in which another program replaces a placeholder by what is known so much of.
pub fn filled(argument: &Argument, placeholder: &str, filling: Certainty) -> Argument {
    let Some((beginning, _)) = argument.text.split_once(placeholder) else { return argument.clone() };
    let certainty = match argument.certainty {
        Certainty::Nothing => Certainty::Nothing,
        _ if beginning.is_empty() => filling,
        Certainty::Operand => Certainty::Operand,
        Certainty::Known | Certainty::Value if beginning.starts_with("--") && beginning.contains('=') => Certainty::Value,
        Certainty::Known if !beginning.starts_with('-') => Certainty::Operand,
        Certainty::Known | Certainty::Value => Certainty::Nothing,
    };
    let text = argument.text.replace(placeholder, "*");
    let computed = argument.computed || is_glued(&text);
    Argument { text, certainty, found: true, computed, ..argument.clone() }
}
