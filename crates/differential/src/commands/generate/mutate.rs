//! Small changes of lines.

use fastrand::Rng;

use super::programs;
use super::words::{
    GLOBS, NAMES, ODD_REDIRECTIONS, ODD_SEPARATORS, ODD_WORDS, PAYLOADS, PIECES, PLAIN, REDIRECTIONS, RESERVED, SEPARATORS,
};
use crate::commands::rules::RuleSet;

/// Splits a line into words, runs of blanks, and single characters of the rest.
fn tokens(line: &str) -> Vec<String> {
    let mut tokens: Vec<String> = Vec::new();
    let class = |char: char| {
        if char.is_alphanumeric() || "_-./".contains(char) {
            'w'
        } else if char == ' ' {
            ' '
        } else {
            char
        }
    };
    let mut last = '\0';
    for char in line.chars() {
        let class = class(char);
        match tokens.last_mut() {
            Some(token) if class == last && (class == 'w' || class == ' ') => token.push(char),
            _ => tokens.push(char.to_string()),
        }
        last = class;
    }
    tokens
}

fn piece(rng: &mut Rng, set: &RuleSet) -> String {
    let list: &[&str] = match rng.u8(..24) {
        0..8 => PIECES,
        8..11 => ODD_WORDS,
        11 | 12 => RESERVED,
        13 => PAYLOADS,
        14 | 15 => SEPARATORS,
        16 => ODD_SEPARATORS,
        17 => REDIRECTIONS,
        18 => ODD_REDIRECTIONS,
        19 => GLOBS,
        20 => NAMES,
        21 => PLAIN,
        22 => set.listed,
        _ => {
            let program = rng.choice(set.listed).copied().unwrap_or_default();
            let program = program.split(' ').next().unwrap_or_default();
            return programs::arguments(rng, program);
        }
    };
    rng.choice(list).copied().unwrap_or_default().to_owned()
}

/// Changes a line in one place or a few; `other` may lend it a part.
pub(super) fn mutate(rng: &mut Rng, set: &RuleSet, line: &str, other: &str) -> String {
    let mut tokens = tokens(line);
    for _ in 0..rng.choice([1, 1, 1, 2, 2, 3, 5]).unwrap_or(1) {
        let place = rng.usize(..=tokens.len());
        match rng.u8(..17) {
            0..4 => tokens.insert(place, piece(rng, set)),
            4 => tokens.insert(place, format!(" {} ", piece(rng, set))),
            5 | 6 if place < tokens.len() => drop(tokens.remove(place)),
            7 if place < tokens.len() => {
                if let Some(token) = tokens.get(place).cloned() {
                    let to = rng.usize(..=tokens.len());
                    tokens.insert(to, token);
                }
            }
            8 if place < tokens.len() => {
                let to = rng.usize(..tokens.len());
                tokens.swap(place, to);
            }
            9 | 10 => {
                let piece = piece(rng, set);
                if let Some(token) = tokens.get_mut(place) {
                    *token = piece;
                }
            }
            11 => {
                if let Some(token) = tokens.get_mut(place) {
                    *token = wrapped(rng, token);
                }
            }
            12 => {
                if let Some(token) = tokens.get_mut(place) {
                    *token = changed_char(rng, token);
                }
            }
            13 => {
                let lent = self::tokens(other);
                let from = rng.usize(..=lent.len());
                let to = rng.usize(from..=lent.len());
                tokens.splice(place..place, lent.get(from..to).unwrap_or_default().to_vec());
            }
            14 => tokens.push(format!("{}{other}", rng.choice(SEPARATORS).copied().unwrap_or_default())),
            15 => tokens.insert(0, format!("{other}{}", rng.choice(SEPARATORS).copied().unwrap_or_default())),
            _ => {
                let end = tokens.len();
                let from = place.min(end);
                let to = rng.usize(from..=end).min(from + 4);
                tokens.drain(from..to);
            }
        }
    }
    tokens.concat()
}

/// Puts something around a token.
fn wrapped(rng: &mut Rng, token: &str) -> String {
    #[rustfmt::skip]
    const AROUND: [(&str, &str); 18] = [
        ("'", "'"), ("\"", "\""), ("$(", ")"), ("`", "`"), ("\"$(", ")\""), ("{", "}"), ("{ ", "; }"), ("(", ")"), ("[", "]"),
        ("${", "}"), ("$'", "'"), ("<(", ")"), ("\\", ""), ("x=", ""), ("if ", "; then ls; fi"), ("for x in ", "; do ls; done"),
        ("!", ""), ("((", "))"),
    ];
    let (before, after) = rng.choice(AROUND).unwrap_or_default();
    format!("{before}{token}{after}")
}

/// Changes, inserts or removes one character.
fn changed_char(rng: &mut Rng, token: &str) -> String {
    let mut chars: Vec<char> = token.chars().collect();
    let place = rng.usize(..chars.len().max(1));
    let char = match rng.u8(..4) {
        0 => char::from(rng.u8(1..128)),
        1 => rng.choice(b"'\"\\`$(){}[];&|<>!#~=^*?%@+,:- \t\n").map_or(' ', |&byte| char::from(byte)),
        2 => char::from_u32(rng.u32(0x80..0x3000)).unwrap_or('\u{a0}'),
        _ => rng.alphanumeric(),
    };
    match rng.u8(..3) {
        0 => chars.insert(place, char),
        1 if place < chars.len() => drop(chars.remove(place)),
        _ => {
            if let Some(old) = chars.get_mut(place) {
                *old = char;
            }
        }
    }
    chars.into_iter().collect()
}

/// Puts listed programs in place of the words that may be the names of programs.
pub(super) fn with_programs(rng: &mut Rng, set: &RuleSet, line: &str) -> String {
    let mut is_program = true;
    let mut text = String::new();
    for token in tokens(line) {
        let is_word = token.chars().all(|char| char.is_alphanumeric() || "_-./".contains(char));
        if is_word && is_program {
            text.push_str(rng.choice(set.listed).copied().unwrap_or_default());
        } else {
            text += &token;
        }
        is_program = match token.as_str() {
            ";" | "&" | "|" | "\n" | "(" | "{" | "`" | "do" | "then" | "else" | "if" | "while" | "until" => true,
            token if token.trim().is_empty() => is_program,
            _ => false,
        };
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::rules::RULE_SETS;

    #[test]
    fn tokens_are_words_blanks_and_single_characters() {
        assert_eq!(tokens("ls  -la;x=1"), ["ls", "  ", "-la", ";", "x", "=", "1"]);
        assert_eq!(tokens("ls  '-la'\n").concat(), "ls  '-la'\n");
    }

    #[test]
    fn a_corpus_line_gets_listed_programs() {
        let line = with_programs(&mut Rng::with_seed(1), &RULE_SETS[0], "git log | (npm test; cat -n)");
        assert_eq!(line, "ls log | (ls test; ls -n)");
    }

    #[test]
    fn no_line_makes_it_fail() {
        let mut rng = Rng::with_seed(1);
        let mut line = String::new();
        for _ in 0..20_000 {
            line = mutate(&mut rng, &RULE_SETS[5], &line, "ls 'é' | cat");
            if line.len() > 300 {
                line.clear();
            }
        }
    }
}
