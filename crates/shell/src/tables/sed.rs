//! `sed`, and its language.
//!
//! Left out of the options: `-i` (writes the files that it is given: an author who wants it lists `sed -i`), `-f` (a script that is not
//! seen), `-l` (takes a value in some versions only), `-a`. Left out of the language: `e`, `s///e` (execute), `w`, `W`, `s///w` (write),
//! `r`, `R` (read what the script chooses), `F`, `v`, `z`, and whatever two versions may end at different places: most delimiters in brackets,
//! texts that go on in the next line, labels of other characters than letters, digits and underscores.

use std::sync::LazyLock;

use super::options::Options;
use super::reading::{COMPUTED, MISSING, OPERAND, scan};
use super::touches::{Touch, add_beside};
use super::{Started, Style, Unlisted};
use crate::argument::Argument;
use crate::grammar::Access;

/// TABLE: the options.
const TABLE: &str = "-n -E -r -s -u -z -e=SED --quiet --silent --regexp-extended --separate --unbuffered --null-data --zero-terminated --posix \
     --debug --sandbox --expression=SED";

static OPTIONS: LazyLock<Options> = LazyLock::new(|| Options::new(TABLE));

/// The options, with those by which a list may have it write its files.
static ALL_OPTIONS: LazyLock<Options> = LazyLock::new(|| {
    let mut options = Options::new(TABLE);
    options.extend(["-i[=TEXT]", "--in-place[=TEXT]"]);
    options
});

/// Returns all options, and how they are told from operands.
pub fn all_options() -> (&'static Options, Style) {
    (&ALL_OPTIONS, Style::First)
}

/// Returns whether `sed` may write the files that it reads.
pub(super) fn writes_in_place(arguments: &[Argument]) -> bool {
    let is_option = |text: &str| text.starts_with("--i") || !text.starts_with("--") && text.starts_with('-') && text.contains('i');
    arguments.iter().any(|argument| is_option(&argument.text))
}

/// Returns the place of the option by which `sed` writes its files, behind options that only say how it reads them, and the ending of the files
/// that it keeps: `-E -i`, `-ni`, `-i.bak`, `--in-place`.
#[must_use]
pub fn in_place(arguments: &[Argument]) -> Option<(usize, &str)> {
    const READING: [char; 6] = ['n', 'E', 'r', 's', 'u', 'z'];
    let is_reading = |argument: &Argument| {
        let letters = argument.as_known().and_then(|text| text.strip_prefix('-')).unwrap_or_default();
        !letters.is_empty() && letters.trim_start_matches(READING).is_empty()
    };
    let at = arguments.iter().take_while(|argument| is_reading(argument)).count();
    let option = arguments.get(at)?.as_known()?;
    let kept = match option.strip_prefix("--in-place") {
        Some("") => "",
        Some(value) => value.strip_prefix('=')?,
        None => option.strip_prefix('-')?.trim_start_matches(READING).strip_prefix('i')?,
    };
    // Other signs put the name of the file, or a folder, into the new name.
    kept.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._~-".contains(&byte)).then_some((at, kept))
}

/// Adds the files that `sed` keeps: each with an ending behind its name.
pub(super) fn add_kept(arguments: &[Argument], touched: &mut Vec<Touch>) {
    let kept = in_place(arguments).map_or("", |(_, kept)| kept);
    add_beside(touched, |index, path, access| {
        (access == Access::Write && !kept.is_empty()).then(|| Touch::write(index, format!("{path}{kept}")))
    });
}

pub(super) fn sed(arguments: &[Argument]) -> Result<Vec<Started>, Unlisted> {
    // BSD's takes no options behind the script, GNU's does.
    let scan = scan(arguments, &OPTIONS, Style::First)?;
    scan.no_late_option(arguments)?;
    if scan.has(&["e", "expression"]) {
        return Ok(Vec::new());
    }
    let index = scan.operands.first().copied().unwrap_or(arguments.len());
    let script = arguments.get(index).ok_or(Unlisted { index, what: MISSING })?;
    let script = script.as_known().ok_or(Unlisted { index, what: COMPUTED })?;
    check(script).map(|()| Vec::new()).map_err(|what| Unlisted { index, what })
}

/// Says whether a script only prints and changes lines.
///
/// # Errors
/// Returns what the script has that is not known to be harmless.
pub fn check(script: &str) -> Result<(), &'static str> {
    // In some encodings a byte behind one that is no ASCII belongs to the same character, if it is one of these.
    let mut before = ' ';
    for c in script.chars() {
        if !before.is_ascii() && matches!(c, '\\' | '|' | '@' | '_' | '~' | '[' | ']' | '{' | '}') {
            return Err(OPERAND);
        }
        before = c;
    }
    Script { rest: script, is_labelled: false }.commands().ok_or(OPERAND)
}

/// A script that is read from its beginning. Each function returns none for what is not known to be harmless.
struct Script<'a> {
    rest: &'a str,
    /// Whether a label stands in this line: to some versions it goes on to the end of the line.
    is_labelled: bool,
}

impl Script<'_> {
    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let mut chars = self.rest.chars();
        let found = chars.next();
        self.rest = chars.as_str();
        found
    }

    fn skip(&mut self, is_skipped: impl Fn(char) -> bool) {
        self.rest = self.rest.trim_start_matches(is_skipped);
    }

    fn blanks(&mut self) {
        self.skip(|c| c == ' ' || c == '\t');
    }

    fn commands(mut self) -> Option<()> {
        loop {
            self.skip(|c| matches!(c, ' ' | '\t' | ';' | '{'));
            match self.peek() {
                None => return Some(()),
                Some('\n') => {
                    self.next();
                    self.is_labelled = false;
                }
                Some('}') => {
                    self.next();
                    self.end()?;
                }
                Some('#') => self.skip(|c| c != '\n'),
                Some(_) => {
                    self.addresses()?;
                    self.command()?;
                }
            }
        }
    }

    /// Reads what may stand behind a command.
    fn end(&mut self) -> Option<()> {
        self.blanks();
        matches!(self.peek(), None | Some('\n' | ';' | '}' | '#')).then_some(())
    }

    fn addresses(&mut self) -> Option<()> {
        if self.address()? {
            self.blanks();
            if self.peek() == Some(',') {
                self.next();
                self.blanks();
                if matches!(self.peek(), Some('+' | '~')) {
                    self.next();
                }
                self.address()?.then_some(())?;
                self.blanks();
            }
        }
        self.skip(|c| matches!(c, '!' | ' ' | '\t'));
        Some(())
    }

    /// Reads an address, if one stands here.
    fn address(&mut self) -> Option<bool> {
        match self.peek() {
            Some('$') => drop(self.next()),
            Some('0'..='9') => self.skip(|c| c.is_ascii_digit() || c == '~'),
            Some('/') => {
                self.next();
                self.pattern('/')?;
                self.skip(|c| matches!(c, 'I' | 'M'));
            }
            Some('\\') => {
                self.next();
                let delimiter = self.delimiter()?;
                self.pattern(delimiter)?;
                self.skip(|c| matches!(c, 'I' | 'M'));
            }
            _ => return Some(false),
        }
        Some(true)
    }

    fn delimiter(&mut self) -> Option<char> {
        self.next().filter(|delimiter| "/|,#@:!%_~+=".contains(*delimiter))
    }

    /// Reads a pattern and its delimiter.
    fn pattern(&mut self, delimiter: char) -> Option<()> {
        let end = plain_end(self.rest, delimiter)?;
        let agree = [false, true].iter().all(|has_classes| bracket_end(self.rest, delimiter, *has_classes) == Some(end));
        if !agree {
            return None;
        }
        self.rest = self.rest.get(end + delimiter.len_utf8()..)?;
        Some(())
    }

    /// Reads the pattern of `s`, and its delimiter. A delimiter may stand in brackets where a version to which it ends the pattern finds
    /// a delimiter in the place of flags: that version refuses the whole script.
    fn substituted(&mut self, delimiter: char) -> Option<()> {
        let first = plain_end(self.rest, delimiter)?;
        let end = bracket_end(self.rest, delimiter, false)?;
        if first != end {
            let length = delimiter.len_utf8();
            let replacement = self.rest.get(first + length..)?;
            let flags = replacement.get(plain_end(replacement, delimiter)? + length..)?;
            if !flags.starts_with(delimiter) || bracket_end(self.rest, delimiter, true) != Some(end) {
                return None;
            }
            self.rest = self.rest.get(end + length..)?;
            return Some(());
        }
        self.pattern(delimiter)
    }

    /// Reads a text in which brackets mean nothing, and its delimiter.
    fn replacement(&mut self, delimiter: char) -> Option<()> {
        let end = plain_end(self.rest, delimiter)?;
        self.rest = self.rest.get(end + delimiter.len_utf8()..)?;
        Some(())
    }

    fn command(&mut self) -> Option<()> {
        match self.next()? {
            '{' => Some(()),
            '=' | 'd' | 'D' | 'g' | 'G' | 'h' | 'H' | 'n' | 'N' | 'p' | 'P' | 'x' => self.end(),
            'l' | 'q' | 'Q' => {
                self.blanks();
                self.skip(|c| c.is_ascii_digit());
                self.end()
            }
            's' => {
                let delimiter = self.delimiter()?;
                self.substituted(delimiter)?;
                self.replacement(delimiter)?;
                self.skip(|c| matches!(c, 'g' | 'p' | 'i' | 'I' | 'm' | 'M' | '0'..='9'));
                self.end()
            }
            'y' => {
                let delimiter = self.delimiter()?;
                self.pattern(delimiter)?;
                self.replacement(delimiter)?;
                self.end()
            }
            'b' | 't' | 'T' | ':' => {
                self.blanks();
                self.skip(|c| c.is_ascii_alphanumeric() || c == '_');
                self.is_labelled = true;
                self.end()
            }
            'a' | 'c' | 'i' => self.text(),
            _ => None,
        }
    }

    /// Reads the text of `a`, `c` and `i`, to the end of the line: the same, or the next where the command ends in a backslash.
    fn text(&mut self) -> Option<()> {
        self.blanks();
        if let Some(rest) = self.rest.strip_prefix('\\') {
            let rest = rest.trim_start_matches([' ', '\t']);
            match rest.strip_prefix('\n') {
                Some(_) if self.is_labelled => return None,
                Some(next) => self.rest = next,
                None => self.rest = rest,
            }
        }
        let (line, _) = self.rest.split_once('\n').unwrap_or((self.rest, ""));
        // An empty text may begin in the next line.
        if line.is_empty() || line.ends_with('\\') {
            return None;
        }
        self.rest = self.rest.get(line.len()..)?;
        Some(())
    }
}

/// Returns where a text ends at a delimiter that no backslash stands in front of. It may not go on in the next line.
fn plain_end(text: &str, delimiter: char) -> Option<usize> {
    let mut is_escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            '\n' => return None,
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            _ if c == delimiter => return Some(at),
            _ => {}
        }
    }
    None
}

/// Returns the same for versions to which a delimiter in brackets ends nothing; there a backslash is a character as any other. To some
/// of them `[:alpha:]` within brackets does not end them.
fn bracket_end(text: &str, delimiter: char, has_classes: bool) -> Option<usize> {
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        match c {
            '\n' => return None,
            '\\' => drop(chars.next()),
            '[' => {
                chars.next_if(|(_, c)| *c == '^');
                chars.next_if(|(_, c)| *c == ']');
                loop {
                    match chars.next()?.1 {
                        ']' => break,
                        // Some versions take the bracket behind it for a character.
                        '\\' if chars.peek().is_some_and(|(_, c)| *c == ']') => return None,
                        '[' if has_classes => {
                            let Some((_, kind)) = chars.next_if(|(_, c)| matches!(c, ':' | '.' | '=')) else { continue };
                            loop {
                                if chars.next()?.1 == kind && chars.next_if(|(_, c)| *c == ']').is_some() {
                                    break;
                                }
                            }
                        }
                        _ => {}
                    }
                }
            }
            _ if c == delimiter => return Some(at),
            _ => {}
        }
    }
    None
}
