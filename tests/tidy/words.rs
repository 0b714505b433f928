//! Words that went: the code has one word for a thing, and older ones do not come back. ARCHITECTURE.md has both side by side.

use std::path::{Path, PathBuf};

use super::{assert_none, documents, files, read, source_files};

/// Words that are nowhere, neither in names nor in comments and documents; a plural is the same word.
const GONE: [&str; 8] = ["lane", "ledger", "keeper", "intake", "valve", "door", "ticket", "survey"];

/// Words that no name in the code holds. In sentences they are English, and so they are in the name of a test that is one: behind a verb.
const GONE_FROM_NAMES: [&str; 1] = ["told"];
const VERBS: [&str; 5] = ["be", "is", "are", "was", "were"];

/// Phrases that no docstring holds: they say nothing of the thing itself.
const EMPTY_PHRASES: [&str; 2] = ["See the module.", "The answer is"];

/// Where a word may stand after all: the file, the word, and why.
const ALLOWED: [(&str, &str, &str); 1] = [("crates/server/src/tls.rs", "ticket", "TLS has session tickets")];

#[test]
fn words_that_went_do_not_come_back() {
    let sources = source_files().into_iter().map(|path| (read(&path), path)).map(|(text, path)| (without_strings(&text), path, text));
    let mut offenders = Vec::new();
    for (code, path, text) in sources {
        report(&path, &text, &GONE, &mut offenders);
        report(&path, &without_sentences(&code), &GONE_FROM_NAMES, &mut offenders);
    }
    for path in documents().into_iter().chain(files(&["config"], "yaml")) {
        report(&path, &without_old_words(&read(&path)), &GONE, &mut offenders);
    }
    assert_none("a word that went is back; ARCHITECTURE.md's glossary says what it is called now", &offenders);
}

#[test]
fn every_exception_is_needed() {
    let is_needed = |file: &str, gone: &str| words(&read(Path::new(file))).any(|(_, word)| is_form_of(&word, gone));
    let offenders: Vec<_> =
        ALLOWED.iter().filter(|(file, word, _)| !is_needed(file, word)).map(|(file, word, _)| format!("{file}: {word}")).collect();
    assert_none("an exception for a word that does not stand there", &offenders);
}

#[test]
fn docstrings_say_what_a_thing_is() {
    let mut offenders = Vec::new();
    for path in source_files() {
        for (at, line) in read(&path).lines().enumerate().filter(|(_, line)| line.trim_start().starts_with("//")) {
            offenders.extend(
                EMPTY_PHRASES
                    .iter()
                    .filter(|phrase| line.contains(*phrase))
                    .map(|phrase| format!("{}:{}: {phrase}", path.display(), at + 1)),
            );
        }
    }
    assert_none("a docstring says what the thing is, or what is returned", &offenders);
}

fn report(path: &Path, text: &str, gone: &[&str], offenders: &mut Vec<String>) {
    let is_allowed = |word: &str| ALLOWED.iter().any(|(file, allowed, _)| path == Path::new(file) && is_form_of(word, allowed));
    let found = words(text).filter(|(_, word)| gone.iter().any(|gone| is_form_of(word, gone)) && !is_allowed(word));
    offenders.extend(found.map(|(line, word)| format!("{}:{line}: {word}", path.display())));
    let name = PathBuf::from(path).with_extension("").display().to_string();
    let in_name = words(&name).filter(|(_, word)| gone.iter().any(|gone| is_form_of(word, gone)) && !is_allowed(word));
    offenders.extend(in_name.map(|(_, word)| format!("{}: the file's name: {word}", path.display())));
}

fn is_form_of(word: &str, gone: &str) -> bool {
    word == gone || word.strip_suffix('s') == Some(gone)
}

/// Every word in lower case with its line. Names are taken apart at underscores and where a capital follows a small letter.
fn words(text: &str) -> impl Iterator<Item = (usize, String)> {
    text.lines().enumerate().flat_map(|(at, line)| {
        let mut found: Vec<String> = Vec::new();
        let mut before = ' ';
        for letter in line.chars() {
            if letter.is_ascii_alphabetic() {
                let is_new = !before.is_ascii_alphabetic() || (before.is_ascii_lowercase() && letter.is_ascii_uppercase());
                if is_new {
                    found.push(String::new());
                }
                found.last_mut().unwrap().push(letter.to_ascii_lowercase());
            }
            before = letter;
        }
        found.into_iter().map(move |word| (at + 1, word))
    })
}

/// Code without what stands behind a verb in a name: `files_are_told_apart` is a sentence.
fn without_sentences(code: &str) -> String {
    let behind_verbs = VERBS.iter().flat_map(|verb| GONE_FROM_NAMES.map(|gone| (format!("_{verb}_{gone}"), format!("_{verb}"))));
    behind_verbs.fold(code.to_owned(), |code, (sentence, verb)| code.replace(&sentence, &verb))
}

/// The glossary's last column names the words that went.
fn without_old_words(document: &str) -> String {
    let mut is_glossary = false;
    let mut kept = String::new();
    for line in document.lines() {
        is_glossary = if line.starts_with("## ") { line == "## Glossary" } else { is_glossary };
        let cell = line.strip_suffix('|').and_then(|row| row.rfind('|')).filter(|_| is_glossary && line.starts_with('|'));
        kept += cell.map_or(line, |at| &line[..at]);
        kept.push('\n');
    }
    kept
}

/// Rust code with spaces in place of its comments, strings and characters; lines stay.
fn without_strings(code: &str) -> String {
    let mut kept = String::with_capacity(code.len());
    let mut rest = code;
    while let Some(letter) = rest.chars().next() {
        let length = skipped(rest, kept.chars().last());
        let (part, behind) = rest.split_at(length.max(letter.len_utf8()));
        if length == 0 {
            kept.push(letter);
        } else {
            kept.extend(part.chars().map(|letter| if letter == '\n' { '\n' } else { ' ' }));
        }
        rest = behind;
    }
    kept
}

/// How many bytes of a comment, a string or a character begin here; `before` stands in front of them.
fn skipped(code: &str, before: Option<char>) -> usize {
    let to = |end: &str, from: usize| code[from..].find(end).map_or(code.len(), |at| from + at + end.len());
    if code.starts_with("//") {
        return code.find('\n').unwrap_or(code.len());
    }
    let hashes = code.strip_prefix('r').map(|raw| raw.len() - raw.trim_start_matches('#').len());
    if let Some(hashes) = hashes.filter(|hashes| code[1 + hashes..].starts_with('"'))
        && !before.is_some_and(|before| before.is_alphanumeric() || before == '_')
    {
        return to(&format!("\"{}", "#".repeat(hashes)), hashes + 2);
    }
    if code.starts_with('"') {
        return string_end(code);
    }
    match code.strip_prefix('\'').map(|inner| inner.chars().collect::<Vec<_>>()) {
        Some(inner) if inner.first() == Some(&'\\') => to("'", 3),
        Some(inner) if inner.get(1) == Some(&'\'') => 2 + inner[0].len_utf8(),
        _ => 0,
    }
}

/// The bytes of a string up to its closing quote.
fn string_end(code: &str) -> usize {
    let mut is_escaped = true;
    for (at, letter) in code.char_indices() {
        match letter {
            '"' if !is_escaped => return at + 1,
            '\\' => is_escaped = !is_escaped,
            _ => is_escaped = false,
        }
    }
    code.len()
}

#[test]
fn words_are_found() {
    let found = |text: &str| words(text).map(|(line, word)| format!("{line} {word}")).collect::<Vec<_>>();
    assert_eq!(found("a_lane LaneMap\nplanes"), ["1 a", "1 lane", "1 lane", "1 map", "2 planes"]);
    assert!(is_form_of("doors", "door") && !is_form_of("indoor", "door"));
}

#[test]
fn strings_and_comments_are_no_names() {
    let code = "let told = \"it \\\" told\"; // told\nf(r#\"told \" told\"#, '\"', told_by('\\''), \"\") /* x */ for<'told>";
    let names: Vec<_> = words(&without_strings(code)).filter(|(_, word)| word == "told").map(|(line, _)| line).collect();
    assert_eq!(names, [1, 2, 2]);
}

#[test]
fn a_sentence_may_hold_what_a_name_may_not() {
    let code = "fn ids_are_told_apart() { told(event.told) }";
    assert_eq!(words(&without_sentences(code)).filter(|(_, word)| word == "told").count(), 2);
}

#[test]
fn the_glossary_may_name_old_words() {
    let text = "| lane |\n## Glossary\n| a lane | processor | lane |\n\nlane\n## Next\n| x | lane |\n";
    let kept = "| lane |\n## Glossary\n| a lane | processor \n\nlane\n## Next\n| x | lane |\n";
    assert_eq!(without_old_words(text), kept);
}
