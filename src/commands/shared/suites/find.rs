//! Finding the test files that a command line names.

use std::path::{Path, PathBuf};

/// How the names of test files in a folder end. A file that is named itself may have any name.
const ENDINGS: [&str; 2] = ["_test.yaml", "_test.yml"];
/// How deep folders are searched. Links may lead round in circles.
const DEPTH_MAX: usize = 32;

/// Returns the test files: those that are named, and those below the folders that are named, in order.
///
/// # Errors
/// What is named cannot be read, as a sentence.
pub(crate) fn find(paths: &[PathBuf]) -> Result<Vec<PathBuf>, String> {
    let mut found = Vec::new();
    for path in paths {
        let unreadable = |error: std::io::Error| format!("{}: cannot be read ({error})", path.display());
        if std::fs::metadata(path).map_err(unreadable)?.is_dir() {
            search(path, 0, &mut found).map_err(unreadable)?;
        } else {
            found.push(path.clone());
        }
    }
    found.sort();
    found.dedup();
    Ok(found)
}

fn search(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) -> std::io::Result<()> {
    if depth > DEPTH_MAX {
        return Ok(());
    }
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            search(&path, depth + 1, found)?;
        } else if path.file_name().is_some_and(|name| ENDINGS.iter().any(|ending| name.to_string_lossy().ends_with(ending))) {
            found.push(path);
        }
    }
    Ok(())
}
