//! Patterns of names that programs match themselves, as globs of a shell that find at least as much.

/// The most patterns that braces may stand for.
const BRACES_MAX: usize = 64;

/// Returns the patterns that a pattern with braces stands for: `*.{c,h}` is `*.c` and `*.h`. What cannot be told finds everything.
pub fn braces(pattern: &str) -> Vec<String> {
    if pattern.matches('{').count() > BRACES_MAX {
        return vec![".*".to_owned()];
    }
    let mut found = vec![pattern.to_owned()];
    while let Some(at) = found.iter().position(|pattern| pattern.contains('{')) {
        let pattern = found.swap_remove(at);
        // The innermost braces first.
        let split = pattern.rsplit_once('{').and_then(|(before, rest)| rest.split_once('}').map(|(inner, behind)| (before, inner, behind)));
        let Some((before, inner, behind)) = split else { return vec![".*".to_owned()] };
        if found.len() + inner.matches(',').count() >= BRACES_MAX {
            return vec![".*".to_owned()];
        }
        found.extend(inner.split(',').map(|choice| format!("{before}{choice}{behind}")));
    }
    found
}

/// Returns a glob that finds at least what a regular expression does; `None` if the expression has more than letters, `.`, `.*`, anchors and
/// quoted dots.
pub fn glob_of_regex(regex: &str) -> Option<String> {
    let body = regex.strip_prefix('^').unwrap_or(regex);
    let (body, is_ended) = body.strip_suffix('$').map_or((body, false), |body| (body, true));
    let mut glob = String::with_capacity(regex.len() + 2);
    if !regex.starts_with('^') {
        glob.push('*');
    }
    let mut characters = body.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\\' if characters.peek() == Some(&'.') => {
                characters.next();
                glob.push('.');
            }
            '.' if characters.next_if_eq(&'*').is_some() => glob.push('*'),
            '.' => glob.push('?'),
            character if character.is_alphanumeric() || "_-/ ".contains(character) => glob.push(character),
            _ => return None,
        }
    }
    if !is_ended {
        glob.push('*');
    }
    Some(glob)
}

/// Returns the pattern of a program to which `*`, `?` and sets stand for slashes too, as `find -path` and `git` take them: `**` stands for
/// any text, slashes among it, and finds at least as much.
pub fn crossing(pattern: &str) -> String {
    let mut crossed = String::with_capacity(pattern.len() + 8);
    let mut rest = pattern;
    while let Some(first) = rest.chars().next() {
        // A bracket at the beginning of a set is one of its characters.
        let set = rest.strip_prefix('[').and_then(|inner| {
            let mut set = inner.strip_prefix(['!', '^']).unwrap_or(inner).chars();
            set.next()?;
            set.as_str().split_once(']').map(|(_, behind)| rest.len() - behind.len())
        });
        let length = match first {
            '\\' => 1 + rest.chars().nth(1).map_or(0, char::len_utf8),
            '[' => set.unwrap_or(1),
            _ => first.len_utf8(),
        };
        if matches!(first, '*' | '?') || set.is_some() {
            if !crossed.ends_with("**") {
                crossed.push_str("**");
            }
        } else {
            crossed.push_str(rest.get(..length).unwrap_or_default());
        }
        rest = rest.get(length..).unwrap_or_default();
    }
    crossed
}

/// Returns a pattern, as [`crossing`] does, that finds at least the paths that a regular expression does; `None` if the expression has more than
/// [`glob_of_regex`] reads, or a dot that may be a slash.
pub fn path_of_regex(regex: &str) -> Option<String> {
    let unanchored = regex.strip_prefix('^').unwrap_or(regex);
    let unanchored = unanchored.strip_suffix('$').unwrap_or(unanchored);
    let (start, rest) = unanchored.strip_prefix("./").map_or(("", unanchored), |rest| ("./", rest));
    let glob = glob_of_regex(&format!("^{rest}$"))?;
    (!glob.contains('?')).then(|| format!("{start}{}", crossing(&glob)))
}

/// Returns the names that a regular expression chooses among names that a program has found, as far as it says how they begin; with the hidden
/// name that it may mean, if it is a plain word: `env` chooses `.env`.
pub fn chosen_names(regex: &str) -> Vec<String> {
    let begin = regex.trim_start_matches(['^', '/']);
    let dotted = begin.strip_prefix("\\.").or_else(|| begin.strip_prefix('.')).map(|rest| format!("\\.{rest}"));
    let begin = dotted.unwrap_or_else(|| begin.to_owned());
    let hidden = (!begin.is_empty() && begin.bytes().all(|byte| byte.is_ascii_alphanumeric())).then(|| format!(".{begin}"));
    let names = glob_of_regex(&format!("^{begin}")).unwrap_or(begin);
    std::iter::once(names).chain(hidden).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn braces_are_written_out() {
        let mut found = braces("a{b,c{d,e}}f");
        found.sort_unstable();
        found.dedup();
        assert_eq!(found, ["abf", "acdf", "acef"]);
        assert_eq!(braces("*.py"), ["*.py"]);
        assert_eq!([braces("{"), braces(&"{a,b}".repeat(9)), braces(&"{a}".repeat(65))], [[".*"], [".*"], [".*"]]);
    }

    #[test]
    fn wildcards_of_paths_stand_for_slashes_too() {
        for (pattern, expected) in
            [("./.s*g", "./.s**g"), ("./src/*.py", "./src/**.py"), ("a?b[!x]c", "a**b**c"), ("[]]x", "**x"), ("\\*[", "\\*["), ("", "")]
        {
            assert_eq!(crossing(pattern), expected);
        }
        for (regex, expected) in [(".*", Some("**")), ("./.*\\.py", Some("./**.py")), ("./src/x", Some("./src/x")), ("./.ssh.config", None)]
        {
            assert_eq!(path_of_regex(regex).as_deref(), expected, "{regex}");
        }
    }

    #[test]
    fn expressions_choose_names() {
        assert_eq!(chosen_names(r"^\.en"), [".en*"]);
        assert_eq!(chosen_names("/.env$"), [".env"]);
        assert_eq!(chosen_names("env"), ["env*", ".env"]);
    }

    #[test]
    fn expressions_become_globs_that_find_as_much() {
        assert_eq!(glob_of_regex(r"^\.env$").as_deref(), Some(".env"));
        assert_eq!(glob_of_regex(r".*\.py").as_deref(), Some("**.py*"));
        assert_eq!(glob_of_regex("a.c$").as_deref(), Some("*a?c"));
        for regex in [r"\(a\)", "a|b", "[.]env", "ab?", r"\W", "a{2}", "a+"] {
            assert_eq!(glob_of_regex(regex), None, "{regex}");
        }
    }
}
