//! Tests the house rules: headers, lengths, documents that name what exists, and nothing left for later.

mod tables;
mod words;

use std::path::{Path, PathBuf};

use serde_json::json;
use tollgate_core::Gate;
use tollgate_core::decide::policy::{Policy, PolicySettings};

const SOURCE_LINES_MAX: usize = 400;
const FUNCTION_LINES_MAX: usize = 60;

/// Returns every file below these folders with this extension, in order.
fn files(folders: &[&str], extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open: Vec<PathBuf> = folders.iter().map(PathBuf::from).filter(|folder| folder.exists()).collect();
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|found| found == extension) {
                found.push(path);
            }
        }
    }
    found.sort();
    assert!(!found.is_empty(), "no .{extension} below {folders:?}");
    found
}

/// Returns what ships: the sources of the worker and of the crates, without their tests and benchmarks.
pub fn source_files() -> Vec<PathBuf> {
    let crates = std::fs::read_dir("crates").unwrap().map(|entry| format!("{}/src", entry.unwrap().path().display()));
    let folders: Vec<_> = crates.chain(["src".to_owned()]).collect();
    files(&folders.iter().map(String::as_str).collect::<Vec<_>>(), "rs")
}

fn rust_files() -> Vec<PathBuf> {
    files(&["src", "crates", "tests", "examples"], "rs")
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Fails with all offenders at once.
fn assert_none(rule: &str, offenders: &[String]) {
    assert!(offenders.is_empty(), "{rule}:\n{}", offenders.join("\n"));
}

#[test]
fn every_file_says_what_it_is_for() {
    let has_header = |path: &PathBuf| read(path).starts_with("//! ");
    let offenders: Vec<_> = rust_files().iter().filter(|path| !has_header(path)).map(|path| path.display().to_string()).collect();
    assert_none("a file begins with a `//!` header", &offenders);
}

#[test]
fn no_source_file_is_too_long() {
    let lengths = source_files().into_iter().map(|path| (read(&path).lines().count(), path));
    let offenders: Vec<_> = lengths
        .filter(|(length, _)| *length > SOURCE_LINES_MAX)
        .map(|(length, path)| format!("{}: {length} lines", path.display()))
        .collect();
    assert_none(&format!("a source file has at most {SOURCE_LINES_MAX} lines"), &offenders);
}

#[test]
fn no_function_is_too_long() {
    let mut seen = 0;
    let mut offenders = Vec::new();
    for path in source_files() {
        for (line, name, length) in functions(&read(&path)) {
            seen += 1;
            if length > FUNCTION_LINES_MAX {
                offenders.push(format!("{}:{line}: {name} has {length} lines", path.display()));
            }
        }
    }
    assert!(seen > 300, "only {seen} functions were found");
    assert_none(&format!("a function has at most {FUNCTION_LINES_MAX} lines"), &offenders);
}

/// Returns the functions of a formatted file: line, name and length. A function ends at the brace that stands under its first line.
fn functions(text: &str) -> Vec<(usize, String, usize)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let code = line.trim_start();
        let Some(name) = function_name(code) else { continue };
        let end = format!("{}}}", " ".repeat(line.len() - code.len()));
        let is_short = code.ends_with('}') || code.ends_with(';');
        let length = if is_short { 1 } else { lines[at..].iter().position(|line| **line == end).map_or(1, |last| last + 1) };
        found.push((at + 1, name, length));
    }
    found
}

fn function_name(code: &str) -> Option<String> {
    let words: Vec<&str> = code.split_whitespace().collect();
    let at = words.iter().position(|word| *word == "fn")?;
    let is_modifier = |word: &str| matches!(word, "pub" | "const" | "async" | "unsafe") || word.starts_with("pub(") || word.ends_with(')');
    words[..at].iter().all(|word| is_modifier(word)).then(|| words.get(at + 1).map(|name| (*name).to_owned()))?
}

#[test]
fn functions_are_found() {
    let text = "pub(super) fn one(\n    a: u8,\n) -> u8 {\n    a\n}\n\nimpl X {\n    async fn two() {\n        {\n        }\n    }\n    fn three() {}\n}\n// no fn here\n";
    let expected = [(1, "one(", 5), (8, "two()", 4), (12, "three()", 1)];
    assert_eq!(functions(text), expected.map(|(line, name, length)| (line, name.to_owned(), length)));
}

#[test]
fn nothing_is_left_for_later() {
    // Put together here, so that this file does not name them itself.
    let forbidden = [["to", "do!"], ["unimple", "mented!"], ["#[ig", "nore"], ["FIX", "ME"]].map(|parts| parts.concat());
    let mut offenders = Vec::new();
    for path in rust_files() {
        for (at, line) in read(&path).lines().enumerate() {
            offenders
                .extend(forbidden.iter().filter(|word| line.contains(*word)).map(|word| format!("{}:{}: {word}", path.display(), at + 1)));
        }
    }
    assert_none("nothing is left for later", &offenders);
}

/// Returns the documents: those of the root, which must be there, and all below.
fn documents() -> Vec<PathBuf> {
    let root = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"];
    root.into_iter().map(PathBuf::from).chain(files(&["examples", "docs", "tests", "crates", "helm"], "md")).collect()
}

#[test]
fn every_path_in_a_document_exists() {
    let mut offenders = Vec::new();
    let mut named = 0;
    for document in documents() {
        let text = read(&document);
        for path in paths(&text) {
            named += 1;
            let beside = document.parent().unwrap().join(&path);
            if !Path::new(&path).exists() && !beside.exists() {
                offenders.push(format!("{}: {path}", document.display()));
            }
        }
    }
    assert!(named > 5, "only {named} paths were found");
    assert_none("a path that a document names exists", &offenders);
}

/// Returns what looks like a path of this repository: in backticks with a slash or a source file's extension, or the target of a link.
fn paths(text: &str) -> Vec<String> {
    let in_backticks = text.lines().flat_map(|line| line.split('`').skip(1).step_by(2)).filter(|code| looks_like_a_path(code));
    let links = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let links = links.map(|link| link.split('#').next().unwrap_or_default()).filter(|link| !link.is_empty() && !link.contains(':'));
    in_backticks.chain(links).map(str::to_owned).collect()
}

fn looks_like_a_path(code: &str) -> bool {
    let is_plain = code.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-/".contains(&byte));
    let is_source = [".rs", ".toml", ".md", ".yaml", ".py"].iter().any(|extension| code.ends_with(extension));
    // Neither an endpoint (`/metrics`) nor a media type.
    is_plain && !code.starts_with('/') && !code.starts_with("application/") && (code.contains('/') || is_source)
}

#[test]
fn paths_are_found() {
    let text =
        "See `src/lib.rs`, [this](examples/README.md#there) or `/metrics`; `{}` and `a b/c` are none, nor is [that](https://x.org/y).";
    assert_eq!(paths(text), ["src/lib.rs", "examples/README.md"]);
}

/// A test that reads an empty fixture passes and proves nothing.
#[test]
fn every_fixture_holds_something() {
    let offenders: Vec<_> = files(&["tests", "crates"], "jsonl")
        .into_iter()
        .filter(|path| read(path).lines().count() < 10)
        .map(|path| path.display().to_string())
        .collect();
    assert_none("a fixture holds at least ten cases", &offenders);
}

const README_LINES_MAX: usize = 150;

#[test]
fn the_readme_is_read_in_one_go() {
    let length = read(Path::new("README.md")).lines().count();
    assert!(length <= README_LINES_MAX, "README.md has {length} lines; what is more than {README_LINES_MAX} belongs into docs");
}

/// README's first screen shows an event of the sample and the verdict on it, with some fields left out.
#[test]
fn the_readme_shows_what_the_sample_gives() {
    let readme = std::fs::read_to_string("README.md").unwrap();
    let user = json!({"guardrails": {"enabled": true, "provider": {"use": "allowlist", "config": {"denied_tools": ["bash"]}}},
                      "tool_loop_guardrails": {"preset": "tollgate"}});
    let mut gate = Gate::new(Policy::new(&PolicySettings::from_value(&user).unwrap()));
    let shown: Vec<&str> = readme.lines().filter(|line| line.starts_with(r#"{"verdict_id":"#)).collect();
    let [shown] = shown[..] else { panic!("README.md shows {} verdicts", shown.len()) };
    for field in ["action", "allows_execution", "should_halt", "code", "message", "decided_by", "count"] {
        assert!(shown.contains(&format!(r#""{field}":"#)), "README.md's verdict shows {field}");
    }
    let sample = std::fs::read_to_string("src/commands/shared/sample.tsv").unwrap();
    let given = sample.lines().filter(|line| {
        let (thread, event) = line.split_once('\t').unwrap();
        let verdict = gate.decide_keyed(Some(thread.as_bytes()), event.as_bytes());
        readme.lines().any(|line| line == event) && is_shortened(shown, std::str::from_utf8(verdict).unwrap())
    });
    assert_eq!(given.count(), 1);
}

/// Returns whether `shown` is `text` with some members of the object left out, each run of them for one `…`.
fn is_shortened(shown: &str, text: &str) -> bool {
    let mut rest = text;
    let parts: Vec<&str> = shown.split('…').collect();
    for (at, part) in parts.iter().enumerate() {
        let (is_first, is_last) = (at == 0, at + 1 == parts.len());
        let begins = is_first || part.starts_with(',') || *part == "}";
        let ends = is_last || part.ends_with(',');
        // What is left out ends where the next part begins, and that is a comma between members or the object's end.
        let found = match (is_first, is_last) {
            (true, true) => return shown == text,
            (true, false) => rest.starts_with(part).then_some(0),
            (false, true) => rest.ends_with(part).then(|| rest.len() - part.len()),
            (false, false) => rest.find(part),
        };
        let Some(found) = found.filter(|_| begins && ends) else { return false };
        rest = &rest[found + part.len()..];
    }
    true
}

#[test]
fn shortened_verdicts_are_known() {
    let text = r#"{"a":1,"b":2,"c":3,"d":4}"#;
    for shown in [text, r#"{"a":1,…,"c":3,…}"#, r#"{"a":1,"b":2,…,"d":4}"#] {
        assert!(is_shortened(shown, text), "{shown}");
    }
    for shown in [r#"{"a":2,…}"#, r#"{"a":1,…,"c":4,…}"#, r#"{"a":1,…3,"d":4}"#, r#"{"a":1,…,"c":3}"#, r#"{"a":1,"b":…}"#] {
        assert!(!is_shortened(shown, text), "{shown}");
    }
}

/// Figures in the documents are those of the report, which are measured in one run.
#[test]
fn figures_are_those_of_the_report() {
    let report = read(Path::new("crates/bench/report/report.md"));
    let machine = report.lines().next().unwrap().split_once(", ").expect("version and machine").1;
    let table = report.lines().skip_while(|line| !line.starts_with("| what |")).take_while(|line| line.starts_with('|'));
    let targets: Vec<_> = table.filter(|line| line.starts_with("| ")).collect();
    assert!(targets.len() > 10, "a report with {} rows", targets.len());
    let page = read(Path::new("docs/performance.md"));
    let offenders: Vec<_> = targets.iter().filter(|row| !page.lines().any(|line| line == **row)).map(|row| (*row).to_owned()).collect();
    assert_none("docs/performance.md shows every row of crates/bench/report/report.md's table", &offenders);
    let readme = read(Path::new("README.md"));
    let (_, chapter) = readme.split_once("\n## Performance\n").expect("the chapter");
    let chapter = chapter.split("\n## ").next().unwrap();
    let rows = |text: &str| text.lines().filter(|line| line.starts_with("| ")).map(str::to_owned).collect::<Vec<_>>();
    for (document, text) in [("README.md", chapter), ("docs/performance.md", page.split("\n## What").next().unwrap())] {
        let offenders: Vec<_> = rows(text).into_iter().filter(|row| !targets.contains(&row.as_str())).collect();
        assert_none(&format!("a row of {document} stands in crates/bench/report/report.md"), &offenders);
        assert!(text.contains(machine), "{document} names the machine of the report: {machine}");
    }
    let shown = rows(chapter);
    assert!(
        shown.len() == 6 && shown.iter().any(|row| row.ends_with("| **no** |")),
        "README.md shows five figures, a missed one among them"
    );
    let missed = targets.iter().filter(|row| row.ends_with("| **no** |")).count();
    let words = ["None", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine", "Ten", "Eleven", "Twelve", "Thirteen"];
    let sentence = words.get(missed).map(|missed| format!("{missed} of twenty targets were missed"));
    assert!(
        targets.len() == 21 && sentence.is_some_and(|sentence| chapter.contains(&sentence)),
        "README.md says how many targets were missed: {missed}"
    );
}
