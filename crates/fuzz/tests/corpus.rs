//! Checks every input of the corpus once. Inputs that failed are kept there, so that this test notices if they fail again.

use std::collections::BTreeSet;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};

use tollgate_fuzz::TARGETS;

/// The largest input that is worth keeping, in bytes.
const INPUT_BYTES_MAX: usize = 8 * 1024;

fn below(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    entries.map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn every_input_holds() {
    let mut failed = Vec::new();
    for target in TARGETS {
        let inputs = below(&format!("corpus/{}", target.name));
        assert!(inputs.len() >= 20, "{} has {} inputs", target.name, inputs.len());
        for path in inputs {
            let input = std::fs::read(&path).unwrap();
            assert!(input.len() <= INPUT_BYTES_MAX, "{}: {} bytes", path.display(), input.len());
            if catch_unwind(|| (target.check)(&input)).is_err() {
                failed.push(path.display().to_string());
            }
        }
    }
    assert!(failed.is_empty(), "{} failed:\n{}", failed.len(), failed.join("\n"));
}

/// There is a program, a dictionary and a corpus for each target, and none without a target.
#[test]
fn targets_have_their_files() {
    let names: BTreeSet<String> = TARGETS.iter().map(|target| target.name.to_owned()).collect();
    for folder in ["targets", "dictionaries", "corpus"] {
        let stems = below(folder).into_iter().map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned());
        assert_eq!(stems.collect::<BTreeSet<_>>(), names, "{folder}");
    }
}
