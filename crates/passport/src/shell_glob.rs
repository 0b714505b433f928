//! Globs of a shell: which names a glob could match.

use bash_commands::globs::{Element, meet};

/// A component of a shell's glob.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ShellGlob(Vec<Element>);

impl ShellGlob {
    /// Reads a component. A backslash quotes the character behind it, and a bracket that is not closed is itself. Case is ignored.
    pub(super) fn new(component: &str) -> Self {
        let characters: Vec<char> = component.to_lowercase().chars().collect();
        let mut elements = Vec::new();
        let mut rest = characters.as_slice();
        while let [first, behind @ ..] = rest {
            rest = behind;
            elements.push(match (first, behind) {
                ('*', _) => Element::Many,
                ('?', _) => Element::One,
                ('\\', [quoted, behind @ ..]) => {
                    rest = behind;
                    Element::Char(*quoted)
                }
                ('[', _) => match read_set(behind) {
                    Some((set, behind)) => {
                        rest = behind;
                        set
                    }
                    None => Element::Char('['),
                },
                (character, _) => Element::Char(*character),
            });
        }
        elements.dedup_by(|left, right| *left == Element::Many && *right == Element::Many);
        Self(elements)
    }

    /// Returns whether the component is `*` or `**` alone.
    pub(super) fn is_anything(&self) -> bool {
        self.0 == [Element::Many]
    }

    /// Returns whether the component is `*.` and a plain extension.
    pub(super) fn is_kind(&self) -> bool {
        matches!(self.0.as_slice(), [Element::Many, Element::Char('.'), rest @ ..] if rest.iter().all(|element| matches!(element, Element::Char(_))))
    }

    /// Returns whether the component starts with a wildcard or a set, and whether it ends with `*`.
    pub(super) fn is_open(&self) -> (bool, bool) {
        (!matches!(self.0.first(), Some(Element::Char(_))), self.0.last() == Some(&Element::Many))
    }

    /// Returns whether a program finds a name with this glob: to it a dot at the beginning is as any other character.
    pub(super) fn finds(&self, name: &str) -> bool {
        meet(&self.0, &pattern_of(name))
    }

    /// Returns whether there is a name that both this glob and a pattern match. Only `*` has a meaning in the pattern. A dot at the
    /// beginning has to be written in the glob, or be listed in a set.
    pub(super) fn meets(&self, pattern: &str) -> bool {
        let hidden = match self.0.first() {
            Some(Element::Char('.')) => true,
            Some(Element::Set(ranges)) => ranges.iter().any(|(low, high)| (*low..=*high).contains(&'.')),
            _ => false,
        };
        // A glob in which more characters have to stand than a name has is too long for the name.
        let is_too_long = || !pattern.contains('*') && self.0.iter().filter(|element| **element != Element::Many).count() > pattern.len();
        if pattern.starts_with('.') && !hidden || is_too_long() {
            return false;
        }
        meet(&self.0, &pattern_of(pattern))
    }

    /// Returns whether the end of this glob from one of its plain characters on meets a name, and holds a letter or digit of it: `README.*`, which
    /// finds less than `README*`, names no key.
    pub(super) fn end_meets(&self, name: &str) -> bool {
        let name = pattern_of(name);
        // An end in which more characters have to stand than the name has is too long for it.
        let most = if name.contains(&Element::Many) { usize::MAX } else { name.len() };
        let mut characters = 0;
        let ends = self.0.iter().enumerate().rev().map_while(|(at, element)| {
            characters += usize::from(*element != Element::Many);
            (characters <= most).then_some((at, element))
        });
        let starts = ends.filter(|(_, element)| matches!(element, Element::Char(_)));
        let is_written = |element: &Element| match element {
            Element::Char(character) => character.is_alphanumeric(),
            Element::Set(_) => true,
            _ => false,
        };
        starts.filter_map(|(at, _)| self.0.get(at..)).any(|end| end.iter().any(is_written) && meet(end, &name))
    }
}

/// Returns whether a component of a glob may be `..`, as it is to some shells.
pub(super) fn may_climb(component: &str) -> bool {
    component == ".." || component.contains(['*', '?', '[']) && ShellGlob::new(component).meets("..")
}

/// The most wildcards of one pattern that stand for slashes too and are looked at.
const CROSSING_MAX: usize = 5;

/// Returns the patterns that a pattern stands for whose `**` beside other characters stands for any text, slashes among it: with a slash at all
/// such places, and its parts between any two of them. One that has too many of them stands for everything hidden.
pub(super) fn crossed(pattern: &str) -> Vec<String> {
    let is_alone = |component: &str| component.bytes().all(|byte| byte == b'*');
    let (mut plain, mut broken) = (Vec::new(), Vec::new());
    let mut parts = Vec::new();
    for component in pattern.split('/') {
        let pieces: Vec<&str> = if is_alone(component) { vec![component] } else { component.split("**").collect() };
        if pieces.len() > CROSSING_MAX + 1 {
            return vec![".*".to_owned()];
        }
        plain.push(pieces.join("*"));
        broken.push(pieces.join("*/*"));
        for first in 0..pieces.len() {
            for last in first..pieces.len().min(first + pieces.len() - 1) {
                let joined = pieces.get(first..=last).unwrap_or_default().join("*");
                let (front, end) = (if first > 0 { "*" } else { "" }, if last + 1 < pieces.len() { "*" } else { "" });
                parts.push(format!("{front}{joined}{end}"));
            }
        }
    }
    let (plain, broken) = (plain.join("/"), broken.join("/"));
    let broken = (plain != broken).then_some(broken);
    let parts = parts.into_iter().filter(|part| !is_alone(part));
    std::iter::once(plain).chain(broken).chain(parts).collect()
}

/// Case is ignored, as in globs.
fn pattern_of(pattern: &str) -> Vec<Element> {
    let lower = |character: char| Element::Char(character.to_lowercase().next().unwrap_or(character));
    pattern.chars().map(|character| if character == '*' { Element::Many } else { lower(character) }).collect()
}

/// Reads what stands behind `[`. Returns the element, and what stands behind the set.
fn read_set(behind: &[char]) -> Option<(Element, &[char])> {
    let negated = matches!(behind.first(), Some('!' | '^'));
    let mut at = usize::from(negated);
    let (mut ranges, mut is_any) = (Vec::new(), negated);
    let start = at;
    loop {
        let mut character = *behind.get(at)?;
        if character == ']' && at > start {
            break;
        }
        if character == '[' && matches!(behind.get(at + 1), Some(':' | '.' | '=')) {
            is_any = true;
            // The class ends at its own bracket, which does not end the set.
            let close = *behind.get(at + 1)?;
            let length = behind.get(at + 2..)?.windows(2).position(|pair| pair == [close, ']'])?;
            at += length + 4;
            continue;
        }
        if character == '\\' {
            at += 1;
            character = *behind.get(at)?;
        }
        match (behind.get(at + 1), behind.get(at + 2)) {
            (Some('-'), Some(high)) if *high != ']' => {
                // A range depends on the locale, and a quoted or reversed one on the shell.
                is_any |= *high == '\\' || *high < character || !character.is_ascii_alphanumeric() || !high.is_ascii_alphanumeric();
                ranges.push((character, *high));
                at += 3;
            }
            _ => {
                ranges.push((character, character));
                at += 1;
            }
        }
    }
    Some((if is_any { Element::One } else { Element::Set(ranges) }, behind.get(at + 1..)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs_meet_what_they_could_match() {
        for (glob, pattern, expected) in [
            (".e*", ".env*", true),
            (".e*l", ".env*", true),
            ("*", ".env*", false),
            ("?env", ".env*", false),
            ("[.]env", ".env*", true),
            (".[!a]nv", ".env*", true),
            (".[a-f]nv", ".env*", true),
            (".[a-d]nv", ".env*", false),
            (".[[:alpha:]]nv", ".env*", true),
            ("id_r?a", "id_rsa", true),
            ("id\\_rsa", "id_rsa", true),
            ("i\\*", "id_rsa", false),
            ("ID*", "id_rsa", true),
            ("cargo.loc[k]", "Cargo.lock", true),
            ("[i", "id_rsa", false),
            ("[]i]d_rsa", "id_rsa", true),
            ("*.py", "x.pem", false),
            ("**", "x.pem", true),
            ("", "x", false),
            ("", "", true),
        ] {
            assert_eq!(ShellGlob::new(glob).meets(pattern), expected, "{glob} {pattern}");
        }
        assert!(ShellGlob::new("?git").finds(".git") && !ShellGlob::new("*.py").finds(".git"));
        assert!(ShellGlob::new("a*.p?m").end_meets(".pem"));
        assert!(!["test*", "test.*", "test.???"].iter().any(|glob| ShellGlob::new(glob).end_meets(".pem")));
    }

    #[test]
    fn patterns_that_cross_slashes_stand_for_several() {
        assert_eq!(crossed("./src/**/*.py"), ["./src/**/*.py"]);
        assert_eq!(crossed("./.s**g"), ["./.s*g", "./.s*/*g", ".s*", "*g"]);
        assert_eq!(crossed("a**.e**v"), ["a*.e*v", "a*/*.e*/*v", "a*", "a*.e*", "*.e*", "*.e*v", "*v"]);
        assert_eq!(crossed(&"a**".repeat(9)), [".*"]);
    }
}
