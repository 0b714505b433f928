//! Patterns that are paths, compared with paths and with globs that may find them.

use crate::globs::{Element, meet};

/// The longest glob that is compared, in bytes. A longer one counts as finding everything.
const GLOB_BYTES_MAX: usize = 4096;

/// Returns whether a pattern is a path: it has a slash, or is the name of a hidden file, and nothing that no path has.
#[must_use]
pub fn is_path(pattern: &str) -> bool {
    let is_path = pattern.contains('/') || pattern.starts_with('.');
    is_path && !pattern.contains(|char: char| char.is_whitespace() || ";|&<>()$`'\"".contains(char))
}

/// Returns a path without empty components, `.`, and components in front of `..`.
#[must_use]
pub fn simplified(path: &str) -> String {
    let mut components: Vec<&str> = Vec::new();
    for component in path.split('/') {
        match component {
            "" | "." => {}
            ".." if components.last().is_some_and(|last| *last != "..") => drop(components.pop()),
            ".." if path.starts_with('/') => {}
            _ => components.push(component),
        }
    }
    let root = if path.starts_with('/') { "/" } else { "" };
    format!("{root}{}", components.join("/"))
}

/// Returns whether a glob may find a file at this path, or below it. The pattern's `*` stands for anything in a component, and `**` for any
/// number of components.
#[must_use]
pub fn may_find(glob: &str, pattern: &str) -> bool {
    if glob.len() > GLOB_BYTES_MAX {
        return true;
    }
    let glob = simplified(glob).to_ascii_lowercase();
    let pattern = pattern.to_ascii_lowercase();
    let wanted: Vec<&str> = pattern.split('/').filter(|component| !component.is_empty() && *component != "**").collect();
    let found: Vec<&str> = glob.split('/').filter(|component| !component.is_empty()).collect();
    let is_at = |from: usize| {
        let rest = found.get(from..).unwrap_or_default();
        rest.len() >= wanted.len() && wanted.iter().zip(rest).all(|(wanted, found)| meet(&elements(wanted), &elements(found)))
    };
    let is_fixed = pattern.starts_with('/') && glob.starts_with('/');
    if is_fixed { is_at(0) } else { (0..found.len()).any(is_at) }
}

/// Reads a component. A set in brackets counts as any character.
fn elements(component: &str) -> Vec<Element> {
    let characters: Vec<char> = component.chars().collect();
    let (mut elements, mut rest) = (Vec::new(), characters.as_slice());
    while let [first, behind @ ..] = rest {
        // A bracket at the beginning of a set is a character of the set.
        let end = behind.iter().skip(1).position(|character| *first == '[' && *character == ']');
        rest = behind.get(end.map_or(0, |end| end + 2)..).unwrap_or_default();
        elements.push(match first {
            '*' => Element::Many,
            '?' | '[' => Element::One,
            character => Element::Char(*character),
        });
    }
    elements
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lose_their_detours() {
        for (path, expected) in [
            ("/etc//passwd", "/etc/passwd"),
            ("/etc/./x/../passwd", "/etc/passwd"),
            ("a/../../b", "../b"),
            ("/../a", "/a"),
            ("~/./x", "~/x"),
        ] {
            assert_eq!(simplified(path), expected, "{path}");
        }
    }

    #[test]
    fn globs_may_find_what_they_match() {
        for (glob, pattern, expected) in [
            ("/etc/pass*", "/etc/passwd", true),
            ("/e*/p?sswd", "/etc/passwd", true),
            ("/etc/[p]asswd", "/etc/passwd", true),
            ("/etc/*", "/etc/passwd", true),
            ("/usr/*", "/etc/passwd", false),
            ("/etc/shadow*", "/etc/passwd", false),
            ("x/.s*/id", "**/.ssh/**", true),
            ("x/*.py", ".env", false),
            (".e*", ".env*", true),
            ("*.md", "docs/*.md", false),
            ("/srv/m?ller", "/srv/müller", true),
            ("/srv/m[uü]ller", "/srv/m??ller", false),
            ("/srv/[]x]", "/srv/y", true),
        ] {
            assert_eq!(may_find(glob, pattern), expected, "{glob} {pattern}");
        }
    }
}
