//! Globs: matches a text against many patterns at once, in time that does not grow with their number.
//!
//! In paths `*` and `?` stop at `/`, and `**` does not. Every pattern is indexed under one piece of literal text that it cannot match
//! without: the rarest one among all patterns. One automaton finds the pieces that a text contains, and only the patterns under those
//! pieces are tried.

use std::collections::HashMap;

use aho_corasick::AhoCorasick;

/// The characters that `*` and `?` match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wildcards {
    /// They match anything except `/`.
    WithinComponent,
    /// They match anything.
    Anywhere,
}

/// Whether case matters. It does not where a pattern blocks, since some file systems ignore it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Case {
    Sensitive,
    Ignored,
}

/// An index of patterns.
#[derive(Debug)]
pub(super) struct GlobIndex {
    globs: Vec<Glob>,
    case: Case,
    pieces: Option<AhoCorasick>,
    /// The indexes of the patterns under each piece.
    filed: Vec<Vec<usize>>,
    /// Patterns without any literal text.
    bare: Vec<usize>,
}

#[derive(Debug)]
struct Glob {
    elements: Vec<Element>,
    /// The number that the caller knows the pattern by.
    tag: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Element {
    Char(char),
    /// `?`, and whether it stops at `/`.
    One {
        within: bool,
    },
    /// `*`, and whether it stops at `/`.
    Many {
        within: bool,
    },
    /// `**/` between two components: it matches no component or several. The second variant is the inside of a component.
    Components,
    InComponent,
    /// `/**` at the end: it matches nothing, or what is below. The second variant is what is below.
    Below,
    InBelow,
}

/// Returns the first character of a pattern that is a wildcard in other globs but not here. A pattern with one is refused.
pub(super) fn unsupported(pattern: &str) -> Option<char> {
    pattern.chars().find(|character| matches!(character, '[' | ']' | '{' | '}' | '\\')).or_else(|| pattern.starts_with('!').then_some('!'))
}

/// Returns whether a text is a pattern and not a plain name.
pub(super) fn has_wildcards(text: &str) -> bool {
    text.contains(['*', '?'])
}

impl GlobIndex {
    /// Returns an index of these patterns, each with its tag.
    pub(super) fn new<'p>(patterns: impl IntoIterator<Item = (&'p str, usize)>, wildcards: Wildcards, case: Case) -> Self {
        let glob = |(pattern, tag): (&str, usize)| Glob { elements: parse(&fold(pattern, case), wildcards), tag };
        let globs: Vec<Glob> = patterns.into_iter().map(glob).collect();
        let mut frequency: HashMap<String, usize> = HashMap::new();
        for piece in globs.iter().flat_map(Glob::pieces) {
            *frequency.entry(piece).or_default() += 1;
        }
        let (mut places, mut texts): (HashMap<String, usize>, Vec<String>) = (HashMap::new(), Vec::new());
        let (mut filed, mut bare): (Vec<Vec<usize>>, _) = (Vec::new(), Vec::new());
        for (index, glob) in globs.iter().enumerate() {
            let rarity = |piece: &String| (frequency.get(piece).copied().unwrap_or_default(), usize::MAX - piece.len());
            let Some(piece) = glob.pieces().into_iter().min_by_key(rarity) else {
                bare.push(index);
                continue;
            };
            let place = *places.entry(piece).or_insert_with_key(|piece| {
                texts.push(piece.clone());
                filed.push(Vec::new());
                texts.len() - 1
            });
            if let Some(patterns) = filed.get_mut(place) {
                patterns.push(index);
            }
        }
        let pieces = if texts.is_empty() { None } else { AhoCorasick::new(&texts).ok() };
        // If there is not enough memory to build the automaton, every pattern is tried.
        if pieces.is_none() {
            bare = (0..globs.len()).collect();
        }
        Self { globs, case, pieces, filed, bare }
    }

    /// Returns the most patterns that one piece of a text can make worth a try. It is small however many patterns there are, unless they share
    /// their rarest piece.
    pub(super) fn weight(&self) -> usize {
        self.bare.len() + self.filed.iter().map(Vec::len).max().unwrap_or_default()
    }

    /// Returns the tag of the first pattern that matches the whole text.
    pub(super) fn find(&self, text: &str) -> Option<usize> {
        if self.globs.is_empty() {
            return None;
        }
        let text = fold(text, self.case);
        let pieces = self.pieces.iter().flat_map(|pieces| pieces.find_overlapping_iter(text.as_ref()));
        let filed = pieces.filter_map(|found| self.filed.get(found.pattern().as_usize())).flatten();
        let mut candidates: Vec<usize> = filed.chain(&self.bare).copied().collect();
        candidates.sort_unstable();
        candidates.dedup();
        candidates.into_iter().filter_map(|index| self.globs.get(index)).find(|glob| glob.matches(&text)).map(|glob| glob.tag)
    }
}

fn fold(text: &str, case: Case) -> std::borrow::Cow<'_, str> {
    match case {
        Case::Ignored if text.bytes().any(|byte| byte.is_ascii_uppercase()) => text.to_ascii_lowercase().into(),
        _ => text.into(),
    }
}

fn parse(pattern: &str, wildcards: Wildcards) -> Vec<Element> {
    let within = wildcards == Wildcards::WithinComponent;
    let mut elements = Vec::new();
    let mut rest = pattern;
    loop {
        let is_component_start = matches!(elements.last(), None | Some(Element::Char('/') | Element::InComponent));
        if within && rest == "/**" {
            elements.extend([Element::Below, Element::InBelow]);
            return elements;
        }
        if let Some(behind) = rest.strip_prefix("**/").filter(|_| within && is_component_start) {
            elements.extend([Element::Components, Element::InComponent]);
            rest = behind;
        } else if let Some(behind) = rest.strip_prefix("**") {
            elements.push(Element::Many { within: false });
            rest = behind;
        } else {
            let mut characters = rest.chars();
            elements.push(match characters.next() {
                None => return elements,
                Some('*') => Element::Many { within },
                Some('?') => Element::One { within },
                Some(character) => Element::Char(character),
            });
            rest = characters.as_str();
        }
    }
}

impl Glob {
    /// Returns the runs of literal text in the pattern.
    fn pieces(&self) -> Vec<String> {
        let runs = self.elements.split(|element| !matches!(element, Element::Char(_)));
        let text =
            |run: &[Element]| run.iter().filter_map(|element| if let Element::Char(c) = element { Some(*c) } else { None }).collect();
        runs.filter(|run| !run.is_empty()).map(text).collect()
    }

    /// Returns whether the whole text matches. All possible places in the pattern are followed at once, so time is bounded by the product
    /// of the lengths.
    fn matches(&self, text: &str) -> bool {
        let mut places = vec![false; self.elements.len() + 1];
        let mut next = places.clone();
        reach(&mut places, &self.elements, 0);
        for character in text.chars() {
            next.fill(false);
            for (at, element) in self.elements.iter().enumerate().filter(|(at, _)| places.get(*at) == Some(&true)) {
                let to = match element {
                    Element::Char(expected) => (*expected == character).then_some(at + 1),
                    Element::One { within } => (!within || character != '/').then_some(at + 1),
                    Element::Many { within } => (!within || character != '/').then_some(at),
                    Element::Components => Some(if character == '/' { at } else { at + 1 }),
                    Element::InComponent => Some(if character == '/' { at - 1 } else { at }),
                    Element::Below => (character == '/').then_some(at + 1),
                    Element::InBelow => Some(at),
                };
                if let Some(to) = to {
                    reach(&mut next, &self.elements, to);
                }
            }
            std::mem::swap(&mut places, &mut next);
        }
        places.last() == Some(&true)
    }
}

/// Marks a place, and the places that can be reached from it without a character.
fn reach(places: &mut [bool], elements: &[Element], from: usize) {
    let mut at = from;
    while let Some(place) = places.get_mut(at).filter(|place| !**place) {
        *place = true;
        at = match elements.get(at) {
            Some(Element::Many { .. } | Element::InBelow) => at + 1,
            Some(Element::Components | Element::Below) => at + 2,
            _ => return,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, text: &str) -> bool {
        GlobIndex::new([(pattern, 0)], Wildcards::WithinComponent, Case::Sensitive).find(text).is_some()
    }

    #[test]
    fn stars_stop_at_slashes_and_double_stars_do_not() {
        for (pattern, text, expected) in [
            ("/work/*", "/work/a", true),
            ("/work/*", "/work/a/b", false),
            ("/work/*", "/work", false),
            ("/work/*/c", "/work/a/c", true),
            ("/work/**", "/work/a/b", true),
            ("/work/**", "/work", true),
            ("/work/**", "/workx", false),
            ("/work/**/c", "/work/c", true),
            ("/work/**/c", "/work/a/b/c", true),
            ("/work/**/c", "/work/a/bc", false),
            ("**/.ssh/**", "/home/u/.ssh/id", true),
            ("**/.ssh/**", ".ssh", true),
            ("**/.ssh/**", "/home/u/x.ssh/id", false),
            ("**/id_rsa*", "/a/id_rsa.pub", true),
            ("**/id_rsa*", "/a/id_rsa/x", false),
            ("**secret**", "/a/my-secrets/x", true),
            ("/a?c", "/abc", true),
            ("/a?c", "/a/c", false),
            ("*", "é", true),
            ("", "", true),
            ("", "a", false),
            ("a*b*c", "aXbXbYc", true),
            ("a*b*c", "aXbXbYd", false),
        ] {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn names_have_no_components() {
        let index = GlobIndex::new([("issues.*", 0), ("a/*", 1)], Wildcards::Anywhere, Case::Sensitive);
        assert_eq!(index.find("issues.create"), Some(0));
        assert_eq!(index.find("a/b/c"), Some(1));
        assert_eq!(index.find("Issues.create"), None);
    }

    #[test]
    fn the_first_of_several_is_named_and_case_can_be_ignored() {
        let index = GlobIndex::new([("*.PEM", 7), ("*", 8), ("x*", 9)], Wildcards::WithinComponent, Case::Ignored);
        assert_eq!(index.find("X.Pem"), Some(7));
        assert_eq!(index.find("x"), Some(8));
        assert_eq!(index.find("a/b"), None);
    }

    /// These patterns take exponential time in other implementations.
    #[test]
    fn hostile_texts_take_bounded_time() {
        assert!(!matches(&format!("{}b", "*a".repeat(40)), &"a".repeat(4_000)));
    }

    #[test]
    fn many_patterns_are_found_by_their_own_piece() {
        let patterns: Vec<String> = (0..10_000).map(|n| format!("/work/project-{n}/*/out-{n}.txt")).collect();
        let index = GlobIndex::new(
            patterns.iter().enumerate().map(|(tag, pattern)| (pattern.as_str(), tag)),
            Wildcards::WithinComponent,
            Case::Sensitive,
        );
        assert_eq!(index.find("/work/project-77/a/out-77.txt"), Some(77));
        assert_eq!(index.find("/work/project-77/a/out-78.txt"), None);
    }
}
