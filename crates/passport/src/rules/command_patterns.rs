//! The entries of `blocked_patterns` for command lines: which of them can match at all.

use bash_commands::has_place;

use super::super::fields::without;
use super::super::look_alike::is_invisible;
use super::Malformed;

/// Refuses patterns that no command line matches: regular expressions, rules of other products, and texts in quotes.
pub(super) fn read_patterns(entries: Vec<String>, path: &str) -> Result<Vec<String>, Malformed> {
    let found = "a regular expression or a rule of another form, which matches nothing";
    let expected = "a command such as `rm -rf`, or a text in which * stands for anything";
    without(entries, |entry| is_foreign_pattern(entry.trim()), path, (found, expected))
}

/// Returns whether a pattern is no text of a command line: a regular expression, a rule such as `rm:*` or `Bash(rm *)`, several names in one
/// entry, a typed place, a text in quotes, or a text with characters that nobody sees.
fn is_foreign_pattern(pattern: &str) -> bool {
    let expressions = [".*", ".+", "(?", "[^", "|^", "]+", ")+"];
    // `find` ends a command with `\;`.
    let is_escape = pattern.split('\\').skip(1).any(|behind| !behind.starts_with([';', ' ']));
    let is_between = |sign: char| pattern.strip_prefix(sign).and_then(|rest| rest.rsplit_once(sign));
    // `/etc/` is a path.
    let is_slashed = is_between('/').is_some_and(|(text, flags)| text.contains(' ') && flags.bytes().all(|flag| b"gimsu".contains(&flag)));
    let is_quoted = ['"', '\'', '`'].into_iter().any(|quote| is_between(quote).is_some_and(|(_, behind)| behind.is_empty()));
    let is_rule = pattern.split_once('(').is_some_and(|(tool, rest)| {
        is_name(tool) && tool.starts_with(|first: char| first.is_ascii_uppercase() || tool.contains('_')) && rest.ends_with(')')
    });
    let is_prefix = pattern.strip_suffix(":*").is_some_and(is_name);
    let is_anchored = pattern.starts_with('^') || pattern.len() > 1 && pattern.ends_with('$');
    let is_list = pattern.contains(',') && pattern.split(',').all(|part| is_name(part.trim()));
    let is_unseen = pattern.is_empty() || pattern.chars().any(|char| is_invisible(char) || char.is_control());
    let is_rule_of_others = is_slashed || is_quoted || is_rule || is_prefix || is_list || has_place(pattern);
    let is_expression = is_anchored || is_escape || has_group(pattern) || expressions.iter().any(|part| pattern.contains(part));
    is_unseen || is_rule_of_others || is_expression
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
}

/// Returns whether a pattern has a group of alternatives, `(a|b)`, or a class beside a letter, `[s]udo`.
fn has_group(pattern: &str) -> bool {
    let group = pattern
        .split_once('(')
        .and_then(|(_, rest)| rest.split_once(')'))
        .is_some_and(|(inner, _)| inner.contains('|') && !inner.contains(' '));
    let class = pattern.split_once('[').and_then(|(before, rest)| rest.split_once(']').map(|(inner, behind)| (before, inner, behind)));
    let is_letter = |char: Option<char>| char.is_some_and(char::is_alphanumeric);
    let is_class = class.is_some_and(|(before, inner, behind)| {
        is_name(inner) && (is_letter(before.chars().next_back()) || is_letter(behind.chars().next()))
    });
    group || is_class
}

#[cfg(test)]
mod tests {
    use super::is_foreign_pattern;

    #[test]
    fn what_matches_no_command_line_is_foreign() {
        let expressions = ["rm.*", "^rm", "rm$", "(rm|mv)", "[s]udo", "rm -[rf]+", r"rm\b", r"rm\.", "(?i)rm", "[^a]rm"];
        let rules = ["Bash(rm *)", "rm:*", "rm,mv", "rm, mv", "/rm -rf/", "/rm -rf/i", "rm {path}"];
        let others = ["'rm -rf'", "\"rm\"", "`rm`", "", "r\u{200b}m", "a\tb"];
        for pattern in expressions.iter().chain(&rules).chain(&others) {
            assert!(is_foreign_pattern(pattern), "{pattern}");
        }
    }

    #[test]
    fn what_a_command_line_may_hold_is_a_pattern() {
        let commands = ["rm -rf", "sudo", "chmod 777", "dd if=", "rm -rf /", "git push*--force", "del /S", "find*-exec*\\;", "echo a, b"];
        let texts = [":(){ :|:& };:", "| sh", "curl*|*sh", "a|b", "[x]", "[ -f x ]", "(cat | sh)", "awk '{*}'"];
        let others = ["/etc/", "/etc/passwd", "DROP TABLE", "$(", "é", "{a,b}"];
        for pattern in commands.iter().chain(&texts).chain(&others) {
            assert!(!is_foreign_pattern(pattern), "{pattern}");
        }
    }
}
