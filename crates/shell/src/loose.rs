//! Reads a line that is not in the grammar as nothing but words: quotes are taken away or count as blanks, and every operator separates.
//! That is no understanding. It is what blocked patterns are compared with where such lines are let through, and finds more than runs.

use super::argument::Argument;

/// Returns the words between separators, read in both ways.
#[must_use]
pub fn words(text: &str) -> Vec<Vec<Argument>> {
    let mut segments = Vec::new();
    for quotes_are_blanks in [false, true] {
        let mut words = Vec::new();
        let mut word = String::new();
        for char in text.chars().chain([';']) {
            let is_separator = ";|&()`\n".contains(char);
            let is_blank = char.is_whitespace() || "${}<>,!".contains(char) || (quotes_are_blanks && "'\"\\=:".contains(char));
            if is_separator || is_blank {
                if !word.is_empty() {
                    words.push(Argument::known(std::mem::take(&mut word)));
                }
                if is_separator && !words.is_empty() {
                    segments.push(std::mem::take(&mut words));
                }
            } else if !"'\"\\".contains(char) {
                word.push(char);
            }
        }
    }
    segments
}

/// The most functions that are looked through. No line of an ordinary agent has more, and one that has is taken for what it may be.
const FUNCTIONS_MAX: usize = 50;

/// Returns whether a text defines a function that starts itself, or several that start one another.
#[must_use]
pub fn has_self_starting_function(text: &str) -> bool {
    if !text.contains("()") && !text.contains("( )") && !text.contains("function") {
        return false;
    }
    let tokens = tokens(text);
    let defined = |at: &usize| matches!(tokens.get(*at..), Some(["function", _, ..] | [_, "(", ")", ..]));
    if (0..tokens.len()).filter(defined).count() > FUNCTIONS_MAX {
        return true;
    }
    let functions: Vec<(&str, &[&str])> = (0..tokens.len()).filter_map(|at| function(&tokens, at)).collect();
    // A function reaches another one if its name stands in its body.
    functions.iter().any(|(name, _)| {
        let mut reached: Vec<&str> = Vec::new();
        let mut open = vec![*name];
        while let Some(next) = open.pop() {
            let bodies = functions.iter().filter(|(other, _)| *other == next);
            for (other, _) in functions.iter().filter(|(other, _)| bodies.clone().any(|(_, body)| body.contains(other))) {
                if other == name {
                    return true;
                }
                if !reached.contains(other) {
                    reached.push(other);
                    open.push(other);
                }
            }
        }
        false
    })
}

/// Returns the words and operators of a text.
fn tokens(text: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut start = 0;
    for (at, char) in text.char_indices() {
        let is_operator = ";|&(){}<>".contains(char);
        if is_operator || char.is_whitespace() || "'\"`$".contains(char) {
            tokens.extend(text.get(start..at).filter(|word| !word.is_empty()));
            start = at + char.len_utf8();
            if is_operator {
                tokens.extend(text.get(at..start));
            }
        }
    }
    tokens.extend(text.get(start..).filter(|word| !word.is_empty()));
    tokens
}

/// Returns the name and the body of the function that is defined here.
fn function<'t>(tokens: &'t [&'t str], at: usize) -> Option<(&'t str, &'t [&'t str])> {
    let (name, from) = match tokens.get(at..)? {
        ["function", name, ..] => (*name, at + 2),
        [name, "(", ")", ..] => (*name, at + 3),
        _ => return None,
    };
    let mut depth = 0_usize;
    let body = tokens.get(from..)?;
    for (index, token) in body.iter().enumerate() {
        match *token {
            "{" | "(" => depth += 1,
            "}" | ")" => {
                depth = depth.saturating_sub(1);
                if depth == 0 && index > 1 {
                    return Some((name, body.get(..index)?));
                }
            }
            _ => {}
        }
    }
    Some((name, body))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_that_start_themselves_are_seen() {
        for text in [
            ":(){ :|:& };:",
            ": ( ) { : | : & } ; :",
            "function f { f | f & }; f",
            "a() { b; }; b() { a & }; a",
            "bomb() ( bomb & bomb & )",
            "f(){ sh -c \"$(f)\"; }; f",
        ] {
            assert!(has_self_starting_function(text), "{text}");
        }
        for text in ["f() { echo x; }; f", "a() { b; }; b() { ls; }; a; b", "echo 'def f(): return g()'", "x=$(ls); f"] {
            assert!(!has_self_starting_function(text), "{text}");
        }
    }

    #[test]
    fn words_are_found_in_quotes_and_without_them() {
        let all = |text: &str| -> Vec<String> {
            words(text).iter().map(|words| words.iter().map(|word| word.text.as_str()).collect::<Vec<_>>().join(" ")).collect()
        };
        assert!(all("sh -c 'r\"\"m -rf x'").contains(&"sh -c rm -rf x".to_owned()));
        assert!(all("x=\"rm${IFS}-rf\"").iter().any(|text| text.contains("rm IFS -rf")));
    }
}
