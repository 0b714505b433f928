//! What the author of a list should know about its entries.

use super::argument::Argument;
use super::template::Template;
use super::{entry, literal_words, tables};

/// A remark on an entry of a list of allowed commands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remark {
    /// The entry's place in the list, from 0.
    pub index: usize,
    /// What it allows, as a sentence.
    pub says: String,
    /// Whether whoever may run it may run anything.
    pub runs_anything: bool,
    /// Whether nothing is known of the program, so that nothing is proven of what it does with its arguments, or of a place.
    pub is_unknown: bool,
}

/// Returns remarks on the entries of a list that allow more than they seem to, or nothing.
#[must_use]
pub fn remarks(allowed: &[String]) -> Vec<Remark> {
    let remark = |(index, entry): (usize, &String)| {
        let (says, runs_anything) = remark_on(entry)?;
        let program =
            literal_words(entry).and_then(|words| words.first().map(|word| word.rsplit('/').next().unwrap_or_default().to_owned()));
        let template = Template::read(entry).and_then(Result::ok).map(|template| template.program().to_owned());
        let is_unknown = template.or(program).is_some_and(|name| !tables::is_known(&name) && !tables::is_refused(&name))
            || unknown_place(entry).is_some();
        Some(Remark { index, says, runs_anything, is_unknown })
    };
    allowed.iter().enumerate().filter_map(remark).collect()
}

fn remark_on(entry: &str) -> Option<(String, bool)> {
    if entry.trim() == "*" {
        let says = "allows every command, interpreters too: patterns under it are a seat belt, and only a sandbox is a boundary";
        return Some((says.to_owned(), true));
    }
    match Template::read(entry) {
        Some(Err(fault)) => return Some((fault.says().to_owned(), false)),
        Some(Ok(template)) if template.takes_any() => {
            return Some(("has a place for any word, which may be an option or a script".to_owned(), true));
        }
        Some(Ok(template)) => return remark_on_template(&template),
        None => {}
    }
    if let Some(word) = unknown_place(entry) {
        let says = format!(
            "has '{word}', which is no place but that word: places are {{number}}, {{word}}, {{path}}, {{url}}, {{any}} and {{end}}"
        );
        return Some((says, false));
    }
    let Some(words) = literal_words(entry) else {
        return Some(("is no plain command, and matches only words that are written like this".to_owned(), false));
    };
    let (program, rest) = words.split_first()?;
    let name = program.rsplit('/').next().unwrap_or_default();
    if tables::is_refused(name) {
        return Some(("is a builtin that works inside the shell: it is refused, listed or not".to_owned(), false));
    }
    if let Some(what) = tables::runs(name) {
        let says = format!("runs {what}: whoever may run it may run anything; allow it in a sandbox only");
        return Some((says, true));
    }
    if !tables::is_known(name) {
        return Some(("is not known here: whatever it does with its arguments is allowed, as long as they are literal".to_owned(), false));
    }
    let arguments: Vec<Argument> = rest.iter().map(Argument::known).collect();
    if let Some(unlisted) = tables::read(name, &arguments).err().filter(|unlisted| unlisted.index < rest.len()) {
        let word = rest.get(unlisted.index).map_or("", String::as_str);
        return Some((format!("names '{word}', which is not known to be harmless: what stands behind it is not looked into"), false));
    }
    // Who writes more than a subcommand may mean these words alone.
    let is_long = rest.len() > 1;
    is_long.then(|| {
        ("allows known options and further operands behind it too; end it with {end} to allow these words alone".to_owned(), false)
    })
}

/// Returns what an entry with places allows beyond what it seems to: the program may run what stands in a place, or read it as code.
fn remark_on_template(template: &Template) -> Option<(String, bool)> {
    let name = template.program();
    if let Some(what) = tables::runs(name) {
        return Some((format!("runs {what}: what a place holds may be a script of the agent; allow it in a sandbox only"), true));
    }
    let (sample, paths) = template.sample();
    if paths.is_empty() {
        return None;
    }
    if !tables::is_known(name) {
        return Some((
            "is not known here: what it makes of {path} is held to the rules of files, and may be more than that".to_owned(),
            false,
        ));
    }
    let is_open = paths.iter().any(|index| !entry::knows(name, &sample, *index));
    is_open.then(|| {
        let says =
            "has {path} where no file is known to stand: the program may run it, or read settings or code in it; write the word itself";
        (says.to_owned(), true)
    })
}

/// Returns the first word of an entry without places that looks like a place.
fn unknown_place(entry: &str) -> Option<&str> {
    let is_like_a_place = |word: &&str| {
        let name = word.trim_matches(['[', ']']).strip_prefix('{').and_then(|word| word.strip_suffix('}'));
        name.is_some_and(|name| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase()))
    };
    entry.split_ascii_whitespace().find(is_like_a_place).filter(|_| Template::read(entry).is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_that_run_anything_are_told() {
        let list = [
            "ls",
            "git status",
            "python3",
            "npm run",
            "docker run",
            "sh",
            "eval",
            "frobnicate",
            "*",
            "sed -i",
            "make {word}",
            "git show {word}",
            "pytest -q {pth}",
            "git push origin main",
            "git push origin main {end}",
            "git config core.hooksPath {path}",
            "rsync -e {path} {path} {path}",
            "frobnicate {path}",
            "cat {path}",
            "sed -n {number} {path}",
        ]
        .map(str::to_owned);
        let remarks = remarks(&list);
        let loud: Vec<usize> = remarks.iter().filter(|remark| remark.runs_anything).map(|remark| remark.index).collect();
        assert_eq!(loud, [2, 3, 5, 8, 10, 15, 16]);
        let unknown: Vec<usize> = remarks.iter().filter(|remark| remark.is_unknown).map(|remark| remark.index).collect();
        assert_eq!(unknown, [7, 12, 17]);
        let all: Vec<usize> = remarks.iter().map(|remark| remark.index).collect();
        assert_eq!(all, [2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 13, 15, 16, 17]);
        assert!(remarks[9].says.starts_with("has '{pth}', which is no place"), "{remarks:?}");
    }
}
