//! Checks that imports of the core and of the worker run one way, in the orders that ARCHITECTURE.md gives.

use std::path::{Path, PathBuf};

use super::{assert_none, files, read};

const CORE: &str = "crates/core/src";
const WORKER: &str = "src";

#[test]
fn imports_of_the_core_run_in_the_order_of_the_map() {
    check(CORE, "The core: modules in order");
}

#[test]
fn imports_of_the_worker_run_in_the_order_of_the_map() {
    check(WORKER, "The worker: modules in order");
}

fn check(root: &str, chapter: &str) {
    let lines = lines_of_modules(&read(Path::new("ARCHITECTURE.md")), chapter);
    let line_of = |module: &str| lines.iter().position(|line| line.iter().any(|listed| listed == module));
    let mut offenders = Vec::new();
    let mut imports = 0;
    for path in files(&[root], "rs") {
        let Some(module) = module_of(&path, root) else { continue };
        let Some(own) = line_of(&module) else {
            offenders.push(format!("{}: {module} is not in ARCHITECTURE.md's table", path.display()));
            continue;
        };
        let text = read(&path);
        // Unit tests stand at the end of a file, and may use what they like.
        let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        for (at, line) in code.lines().enumerate().filter(|(_, line)| !line.trim_start().starts_with("//")) {
            for used in modules_used(line).filter(|used| *used != module) {
                imports += 1;
                match line_of(&used) {
                    Some(other) if other < own => {}
                    Some(other)
                        if other == own
                            && lines[own].iter().position(|listed| *listed == used)
                                < lines[own].iter().position(|listed| *listed == module) => {}
                    Some(_) => offenders.push(format!("{}:{}: {module} uses {used}", path.display(), at + 1)),
                    None => {}
                }
            }
        }
    }
    assert!(imports > 50, "only {imports} imports were found");
    assert_none("a module imports from lines above its own in ARCHITECTURE.md, or from the left in its own line", &offenders);
}

/// Returns the lines of the table of modules, lowest first.
fn lines_of_modules(map: &str, chapter: &str) -> Vec<Vec<String>> {
    let (_, chapter) = map.split_once(&format!("\n## {chapter}\n")).expect("the chapter");
    let chapter = chapter.split("\n## ").next().unwrap();
    let rows = chapter.lines().filter(|line| line.starts_with("| `")).map(|line| line.split('|').nth(1).unwrap_or_default());
    rows.map(|cell| cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()).collect()
}

/// Returns the module that a file below a root belongs to; `None` for the crate's own files.
fn module_of(path: &Path, root: &str) -> Option<String> {
    let inside = path.strip_prefix(root).ok()?;
    let first = PathBuf::from(inside.iter().next()?).with_extension("").display().to_string();
    (!["lib", "main"].contains(&first.as_str())).then_some(first)
}

/// Returns the modules that a line names as `crate::module`, one by one or in braces.
fn modules_used(line: &str) -> impl Iterator<Item = String> {
    let is_name = |letter: char| letter.is_ascii_lowercase() || letter == '_';
    line.split("crate::")
        .skip(1)
        .flat_map(move |rest| {
            let names: Vec<&str> = match rest.strip_prefix('{') {
                Some(list) => list
                    .split('}')
                    .next()
                    .unwrap_or_default()
                    .split(',')
                    .map(|name| name.trim().split("::").next().unwrap_or_default())
                    .collect(),
                None => vec![rest],
            };
            names.into_iter().map(|name| name.chars().take_while(|letter| is_name(*letter)).collect::<String>()).collect::<Vec<_>>()
        })
        .filter(|name| !name.is_empty())
}

#[test]
fn modules_are_found() {
    let used = |line| modules_used(line).collect::<Vec<_>>();
    assert_eq!(used("use crate::{decode, thread::Thread};"), ["decode", "thread"]);
    assert_eq!(used("fn f(a: crate::record::Offset, b: crate::json::Value) {}"), ["record", "json"]);
    assert_eq!(module_of(Path::new("crates/core/src/json/text.rs"), CORE).as_deref(), Some("json"));
    assert_eq!(module_of(Path::new("crates/core/src/gate.rs"), CORE).as_deref(), Some("gate"));
    assert_eq!(lines_of_modules("\n## x\n| `a`, `b` | x |\n| `c` | y |\n## z\n| `d` |\n", "x"), [vec!["a", "b"], vec!["c"]]);
}
