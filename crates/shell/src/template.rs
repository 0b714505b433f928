//! Entries with typed places, such as `gh pr view {number} [--json {word}]`.
//!
//! A place is a word that is exactly one of the names below, in braces and without quotes. An entry that has a place is a template, and a
//! command matches it from its first word to its last; what stands in brackets may be left out. `{end}` as the last word makes a template of
//! any entry: nothing may follow. Any other entry has no places: its braces and brackets are the characters that they are.

use std::fmt;

use rustc_hash::FxHashSet;

use super::argument::{Argument, Certainty};

/// What stands in a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// `{number}`: digits.
    Number,
    /// `{word}`: letters, digits, `_`, `-` and `.`, the first of them a letter, a digit or `_`.
    Word,
    /// `{path}`: a path, which is held to the rules of files.
    Path,
    /// `{url}`: an address, which is held to the rules of the web.
    Url,
    /// `{any}`: any single literal word. It may be an option.
    Any,
}

impl Place {
    /// Returns words that mean nothing to most programs that interpret what stands in such a place. `{any}` has none: its author takes the risk.
    pub fn plain_words(self) -> &'static [&'static str] {
        match self {
            Self::Path | Self::Word => &["x", ".", "1"],
            Self::Number => &["1"],
            Self::Url => &["https://host.example/"],
            Self::Any => &[],
        }
    }
}

const PLACES: [(&str, Place); 5] =
    [("{number}", Place::Number), ("{word}", Place::Word), ("{path}", Place::Path), ("{url}", Place::Url), ("{any}", Place::Any)];

/// Returns whether a text has a typed place of an entry in it, such as `{path}`.
#[must_use]
pub fn has_place(text: &str) -> bool {
    PLACES.iter().any(|(place, _)| text.contains(place))
}

/// Says as the last word of an entry that nothing may follow.
const END: &str = "{end}";

/// A part of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Literal(String),
    Place(Place),
    /// The next so many parts may be left out, all together.
    Optional(usize),
}

/// An entry with typed places.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    program: String,
    parts: Vec<Part>,
    /// The entry as its author wrote it, with single blanks.
    text: String,
}

impl fmt::Display for Template {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

/// Why an entry with places is no template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TemplateFault {
    /// A bracket is not closed, not opened, or inside another.
    Bracket,
    /// It has a quote or a backslash, and words are told apart by blanks alone.
    Quote,
    /// It begins with a place.
    Program,
    /// Something follows `{end}`, or `{end}` stands in brackets.
    End,
}

impl TemplateFault {
    /// Returns what is wrong, as the end of a sentence that begins with the entry.
    #[must_use]
    pub fn says(self) -> &'static str {
        match self {
            Self::Bracket => "has a bracket that is not closed, not opened, or inside another: it matches nothing",
            Self::Quote => "has a quote or a backslash beside a place: it matches nothing; write words without blanks, or {any}",
            Self::Program => "begins with a place: it matches nothing; write the program",
            Self::End => "has {end} before its last word: it matches nothing; write {end} once, as the last word",
        }
    }
}

impl Template {
    /// Reads an entry; `None` if it has no place.
    pub fn read(entry: &str) -> Option<Result<Self, TemplateFault>> {
        let is_place = |word: &str| word == END || PLACES.iter().any(|(name, _)| word == *name);
        let words: Vec<&str> = entry.split_ascii_whitespace().collect();
        words.iter().any(|word| is_place(word.trim_matches(['[', ']']))).then(|| Self::parse(&words))
    }

    /// Reads the words of an entry, which may have no place.
    ///
    /// # Errors
    /// [`TemplateFault`] says why it cannot be read.
    pub fn parse(words: &[&str]) -> Result<Self, TemplateFault> {
        let text = words.join(" ");
        let words = words.strip_suffix(&[END]).unwrap_or(words);
        if words.iter().any(|word| word.trim_matches(['[', ']']) == END) {
            return Err(TemplateFault::End);
        }
        if words.iter().any(|word| word.contains(['\'', '"', '\\'])) {
            return Err(TemplateFault::Quote);
        }
        // `group` is the place of the part that opens the words that may be left out.
        let (mut parts, mut group) = (Vec::new(), None::<usize>);
        for word in words {
            let opened = word.strip_prefix('[');
            let inner = opened.unwrap_or(word);
            let closed = inner.strip_suffix(']');
            let inner = closed.unwrap_or(inner);
            let is_inside = group.is_some();
            if opened.is_some() {
                group = Some(parts.len());
                parts.push(Part::Optional(0));
            }
            if opened.is_some() && is_inside || inner.contains(['[', ']']) || closed.is_some() && group.is_none() {
                return Err(TemplateFault::Bracket);
            }
            let place = PLACES.iter().find(|(name, _)| *name == inner).map(|(_, place)| Part::Place(*place));
            if !inner.is_empty() {
                parts.push(place.unwrap_or_else(|| Part::Literal(inner.to_owned())));
            }
            if closed.is_some()
                && let Some(open) = group.take()
            {
                let count = parts.len() - open - 1;
                parts.get_mut(open).into_iter().for_each(|part| *part = Part::Optional(count));
            }
        }
        if group.is_some() {
            return Err(TemplateFault::Bracket);
        }
        let Some(Part::Literal(program)) = parts.first().cloned() else { return Err(TemplateFault::Program) };
        Ok(Self { program, parts: parts.split_off(1), text })
    }

    /// Returns the program.
    pub fn program(&self) -> &str {
        &self.program
    }

    /// Returns whether there is a place that takes any word.
    pub fn takes_any(&self) -> bool {
        self.parts.contains(&Part::Place(Place::Any))
    }

    /// Returns arguments that match, with plain words in the places and with all that may be left out, and the indices of paths among them.
    pub fn sample(&self) -> (Vec<Argument>, Vec<usize>) {
        let (mut arguments, mut paths) = (Vec::new(), Vec::new());
        for part in &self.parts {
            match part {
                Part::Literal(text) => arguments.push(Argument::known(text)),
                Part::Place(place) => {
                    paths.extend((*place == Place::Path).then_some(arguments.len()));
                    arguments.extend(place.plain_words().first().map(|word| Argument::known(*word)));
                }
                Part::Optional(_) => {}
            }
        }
        (arguments, paths)
    }

    /// Returns the places that the arguments of its program fill, each with the argument's place; `None` if they do not match. Each part is
    /// tried at most once at each argument: words that may be left out would double the tries otherwise.
    pub fn matched(&self, arguments: &[Argument]) -> Option<Vec<(usize, Place)>> {
        self.walk(arguments, &mut |_, _| {})
    }

    /// Returns the furthest argument at which the arguments depart from the entry, from 0 on, and what the entry has there; `None` if the entry
    /// ends before.
    pub fn departure(&self, arguments: &[Argument]) -> (usize, Option<String>) {
        let mut furthest = (0, None);
        self.walk(arguments, &mut |at, part| {
            // What the entry may have there says more than its end.
            if at > furthest.0 || at == furthest.0 && furthest.1.is_none() {
                furthest = (at, part.and_then(Part::text));
            }
        });
        furthest
    }

    /// Matches the arguments. `departs` is called for each try that fails, with its argument and the part that the argument is not.
    fn walk(&self, arguments: &[Argument], departs: &mut dyn FnMut(usize, Option<&Part>)) -> Option<Vec<(usize, Place)>> {
        let (mut filled, mut seen) = (Vec::new(), FxHashSet::default());
        // What is still to be tried: a part, an argument, and how many places were filled by then.
        let mut open = vec![(0, 0, 0)];
        while let Some((part, at, count)) = open.pop() {
            if !seen.insert((part, at)) {
                continue;
            }
            filled.truncate(count);
            match self.parts.get(part) {
                None if at == arguments.len() => return Some(filled),
                None => departs(at, None),
                Some(Part::Optional(skipped)) => open.extend([(part + 1 + skipped, at, count), (part + 1, at, count)]),
                Some(Part::Literal(text)) => {
                    let is_equal = arguments.get(at).and_then(Argument::as_known) == Some(text);
                    if is_equal {
                        open.push((part + 1, at + 1, count));
                    } else {
                        departs(at, self.parts.get(part));
                    }
                }
                Some(Part::Place(place)) if arguments.get(at).is_some_and(|argument| holds(*place, argument)) => {
                    filled.push((at, *place));
                    open.push((part + 1, at + 1, filled.len()));
                }
                Some(place @ Part::Place(_)) => departs(at, Some(place)),
            }
        }
        None
    }
}

impl Part {
    /// Returns the part as it stands in an entry; `None` for what opens words that may be left out.
    fn text(&self) -> Option<String> {
        match self {
            Self::Literal(text) => Some(text.clone()),
            Self::Place(place) => PLACES.iter().find(|(_, known)| known == place).map(|(name, _)| (*name).to_owned()),
            Self::Optional(_) => None,
        }
    }
}

fn holds(place: Place, argument: &Argument) -> bool {
    let known = argument.as_known();
    match place {
        Place::Number => known.is_some_and(|text| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())),
        Place::Word => known.is_some_and(|text| {
            let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
            text.starts_with(|first: char| first.is_ascii_alphanumeric() || first == '_') && text.bytes().all(is_plain)
        }),
        Place::Path => argument.is_operand() && !argument.many && !argument.computed && is_place(&argument.text),
        Place::Url => known.is_some_and(|text| {
            // To some programs a bracket is several addresses.
            let is_plain = |char: char| char.is_ascii_graphic() && !"{}[]\\^`|<>\"'".contains(char);
            (text.starts_with("http://") || text.starts_with("https://")) && text.chars().all(is_plain)
        }),
        Place::Any => argument.certainty == Certainty::Known,
    }
}

/// Returns whether a text names a file here: `-` is the input, and `HOST:PATH` another machine to many programs. To others a path that begins
/// with a sign is a list of arguments, a command or a program (`@x`, `+x`, `|x`), and one with brackets or `#` several files.
fn is_place(path: &str) -> bool {
    let is_remote = path.split('/').next().is_some_and(|first| first.contains(':'));
    let is_sign = path.starts_with(['@', '+', '|', '!', '<', '>', '=', '%', '&']);
    !matches!(path, "" | "-") && !is_remote && !is_sign && !path.contains(['{', '}', '[', ']', '#', '|'])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(entry: &str, line: &str) -> bool {
        let template = Template::read(entry).unwrap().unwrap();
        let arguments: Vec<Argument> = line.split_ascii_whitespace().skip(1).map(Argument::known).collect();
        template.program() == line.split_ascii_whitespace().next().unwrap() && template.matched(&arguments).is_some()
    }

    #[test]
    fn nothing_follows_the_end() {
        let entry = "git push origin main {end}";
        assert!(matches(entry, "git push origin main"));
        for line in ["git push origin main --force", "git push origin main :prod", "git push origin", "git push origin main {end}"] {
            assert!(!matches(entry, line), "{line}");
        }
        assert_eq!(Template::read(entry).unwrap().unwrap().to_string(), entry);
        for entry in ["git {end} push", "git push [{end}]", "git push {end} {end}"] {
            assert_eq!(Template::read(entry).unwrap(), Err(TemplateFault::End), "{entry}");
        }
        assert_eq!(Template::read("{end}").unwrap(), Err(TemplateFault::Program));
    }

    #[test]
    fn a_command_matches_from_its_first_word_to_its_last() {
        let entry = "gh pr view {number} [--json {word}] [--web]";
        for line in ["gh pr view 7", "gh pr view 7 --json title", "gh pr view 7 --web", "gh pr view 7 --json title --web"] {
            assert!(matches(entry, line), "{line}");
        }
        for line in [
            "gh pr view",
            "gh pr view x",
            "gh pr view 7 8",
            "gh pr view 7 --json",
            "gh pr view 7 --json -x",
            "gh pr view 7 --repo a",
            "gh pr merge 7",
        ] {
            assert!(!matches(entry, line), "{line}");
        }
        assert!(matches("cat {path}", "cat src/main.rs") && !matches("cat {path}", "cat -n"));
        for line in ["cat -", "cat host:x", "cat user@host:/x"] {
            assert!(!matches("cat {path}", line), "{line}");
        }
        assert!(matches("cat {path}", "cat ./a:b"));
        assert!(matches("curl {url}", "curl https://a.example/") && !matches("curl {url}", "curl file:///etc/passwd"));
        assert!(matches("x {any}", "x --whatever=1") && !matches("kubectl get {word}", "kubectl get a/b"));
    }

    #[test]
    fn words_that_may_be_left_out_do_not_double_the_tries() {
        // Each group could take each word: 2 to the power of 200 ways without a memory of what was tried.
        let entry = format!("x {}y", "[{any}] ".repeat(200));
        assert!(matches(&entry, &format!("x {}y", "a ".repeat(150))) && !matches(&entry, &format!("x {}z", "a ".repeat(150))));
        let template = Template::read("x [-a {word}] [-b {number}] {path}").unwrap().unwrap();
        let arguments = ["-b", "7", "f"].map(Argument::known);
        assert_eq!(template.matched(&arguments), Some(vec![(1, Place::Number), (2, Place::Path)]));
    }

    #[test]
    fn braces_and_brackets_of_other_entries_are_characters() {
        for entry in ["find -exec wc {} ;", "echo {a,b}", "[ -f x ]", "x {file}", "x '{number}'", "x {number}s"] {
            assert_eq!(Template::read(entry), None, "{entry}");
        }
        for (entry, fault) in [
            ("x [{word}", TemplateFault::Bracket),
            ("x {word}]", TemplateFault::Bracket),
            ("x [a [{word}]]", TemplateFault::Bracket),
            ("x 'a b' {word}", TemplateFault::Quote),
            ("{word} x", TemplateFault::Program),
        ] {
            assert_eq!(Template::read(entry), Some(Err(fault)), "{entry}");
        }
    }
}
