//! What the author of a list should know about its entries.

use super::argument::{Argument, text_at};
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
    allowed.iter().enumerate().filter_map(|(index, entry)| remark_on(index, entry)).collect()
}

impl Remark {
    fn new(index: usize, says: impl Into<String>) -> Self {
        Self { index, says: says.into(), runs_anything: false, is_unknown: false }
    }

    fn loud(index: usize, says: impl Into<String>) -> Self {
        Self { runs_anything: true, ..Self::new(index, says) }
    }
}

fn remark_on(index: usize, entry: &str) -> Option<Remark> {
    if entry.trim() == "*" {
        let says = "allows every command, interpreters too: patterns under it are a seat belt, and only a sandbox is a boundary";
        return Some(Remark::loud(index, says));
    }
    match Template::read(entry) {
        Some(Err(fault)) => return Some(Remark::new(index, fault.says())),
        Some(Ok(template)) => return remark_on_template(index, &template),
        None => {}
    }
    if let Some(word) = unknown_place(entry) {
        let says = format!(
            "has '{word}', which is no place but that word: places are {{number}}, {{word}}, {{path}}, {{url}}, {{any}} and {{end}}"
        );
        return Some(Remark { is_unknown: true, ..Remark::new(index, says) });
    }
    let Some(words) = literal_words(entry) else {
        return Some(Remark::new(index, "is no plain command, and matches only words that are written like this"));
    };
    let (program, rest) = words.split_first()?;
    let name = program.rsplit('/').next().unwrap_or_default();
    if tables::is_refused(name) {
        return Some(Remark::new(index, "is a builtin that works inside the shell: it is refused, listed or not"));
    }
    let arguments: Vec<Argument> = rest.iter().map(Argument::known).collect();
    if let Some(what) = tables::runs(name).filter(|_| !tables::asks_version(name, &arguments)) {
        return Some(Remark::loud(index, format!("runs {what}: whoever may run it may run anything; allow it in a sandbox only")));
    }
    if !tables::is_known(name) {
        let says = "is not known here: whatever it does with its arguments is allowed, as long as they are literal";
        return Some(Remark { is_unknown: true, ..Remark::new(index, says) });
    }
    if let Some(unlisted) = tables::read(name, &arguments).err().filter(|unlisted| unlisted.index < rest.len()) {
        let word = text_at(&arguments, unlisted.index);
        let says = match unlisted.what {
            tables::NAMED => "allows these words alone; name words behind them with {word}, {path} or {any}".to_owned(),
            _ => format!("names '{word}', which is not known to be harmless: what stands behind it is not looked into"),
        };
        return Some(Remark::new(index, says));
    }
    // Who writes more than a subcommand may mean these words alone.
    let says = "allows known options and further operands behind it too; end it with {end} to allow these words alone";
    (rest.len() > 1).then(|| Remark::new(index, says))
}

/// Returns what an entry with places allows beyond what it seems to: the program may run what stands in a place, or read it as code.
fn remark_on_template(index: usize, template: &Template) -> Option<Remark> {
    let name = template.program();
    let is_unknown = !tables::is_known(name) && !tables::is_refused(name);
    if template.takes_any() {
        return Some(Remark { is_unknown, ..Remark::loud(index, "has a place for any word, which may be an option or a script") });
    }
    if let Some(what) = tables::runs(name) {
        let says = format!("runs {what}: what a place holds may be a script of the agent; allow it in a sandbox only");
        return Some(Remark::loud(index, says));
    }
    let (sample, paths) = template.sample();
    if paths.is_empty() {
        return None;
    }
    if !tables::is_known(name) {
        let says = "is not known here: what it makes of {path} is held to the rules of files, and may be more than that";
        return Some(Remark { is_unknown, ..Remark::new(index, says) });
    }
    let says = "has {path} where no file is known to stand: the program may run it, or read settings or code in it; write the word itself";
    paths.iter().any(|path| !entry::knows(name, &sample, *path)).then(|| Remark::loud(index, says))
}

/// Returns the first word of an entry without places that looks like a place all the same.
fn unknown_place(entry: &str) -> Option<&str> {
    let is_like_a_place = |word: &&str| {
        let name = word.trim_matches(['[', ']']).strip_prefix('{').and_then(|word| word.strip_suffix('}'));
        name.is_some_and(|name| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase()))
    };
    entry.split_ascii_whitespace().find(is_like_a_place)
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
            "python3 --version",
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
        let says = |entry: &str| super::remarks(&[entry.to_owned()]).into_iter().map(|remark| remark.says).collect::<String>();
        assert!(says("aws s3 ls").starts_with("allows these words alone"));
        assert!(says("docker run").ends_with("what stands behind it is not looked into"));
    }
}
