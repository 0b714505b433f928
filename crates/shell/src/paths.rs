//! Patterns that are paths, compared with paths and with globs that may find them.

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
        rest.len() >= wanted.len() && wanted.iter().zip(rest).all(|(wanted, found)| overlap(wanted.as_bytes(), found.as_bytes()))
    };
    let is_fixed = pattern.starts_with('/') && glob.starts_with('/');
    if is_fixed { is_at(0) } else { (0..found.len()).any(is_at) }
}

/// Returns whether two wildcard patterns have a text in common. A set in brackets counts as any character.
fn overlap(one: &[u8], other: &[u8]) -> bool {
    let mut reached = vec![false; other.len() + 1];
    let stars = |places: &mut [bool], row_is_star: bool, before: &[bool]| {
        for at in 0..places.len() {
            // A star stands for nothing, or for one character more.
            let by_other = at > 0 && other.get(at - 1) == Some(&b'*') && places.get(at - 1) == Some(&true);
            let by_one = row_is_star && (before.get(at) == Some(&true) || (at > 0 && places.get(at - 1) == Some(&true)));
            if let Some(place) = places.get_mut(at) {
                *place |= by_other || by_one;
            }
        }
    };
    if let Some(first) = reached.first_mut() {
        *first = true;
    }
    stars(&mut reached, false, &[]);
    let mut at = 0;
    while let Some(byte) = one.get(at) {
        let width = set_width(one, at);
        let mut next = vec![false; other.len() + 1];
        let mut column = 0;
        while let Some(char) = other.get(column) {
            let end = column + set_width(other, column);
            let matches = *byte != b'*' && (*char == b'*' || is_any(*byte) || is_any(*char) || byte == char);
            if matches && reached.get(column) == Some(&true) {
                // The other's star takes the character and stays.
                let to = if *char == b'*' { column } else { end };
                if let Some(place) = next.get_mut(to) {
                    *place = true;
                }
            }
            column = end;
        }
        stars(&mut next, *byte == b'*', &reached);
        reached = next;
        at += width;
    }
    reached.last() == Some(&true)
}

fn is_any(byte: u8) -> bool {
    byte == b'?' || byte == b'['
}

/// Returns how many bytes the element here has: a set in brackets, or one byte.
fn set_width(text: &[u8], at: usize) -> usize {
    let rest = text.get(at..).unwrap_or_default();
    match rest.first() {
        Some(b'[') => rest.iter().skip(2).position(|byte| *byte == b']').map_or(1, |end| end + 3),
        _ => 1,
    }
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
        ] {
            assert_eq!(may_find(glob, pattern), expected, "{glob} {pattern}");
        }
    }
}
