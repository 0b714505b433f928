//! One version everywhere, and workflows that run what README says.

use std::path::{Path, PathBuf};

use super::{read, value_of, workspace_version, yaml};

/// Returns the manifests of all members of the workspace.
fn manifests() -> Vec<PathBuf> {
    assert!(read("Cargo.toml").contains("members = [\".\", \"crates/*\"]"), "the members are those that this lists");
    let crates = std::fs::read_dir("crates").unwrap().map(|entry| entry.unwrap().path().join("Cargo.toml"));
    crates.chain([PathBuf::from("Cargo.toml")]).collect()
}

#[test]
fn every_crate_has_the_workspace_version() {
    let manifests = manifests();
    assert!(manifests.len() >= 7, "{manifests:?}");
    for manifest in manifests {
        let text = read(manifest.to_str().unwrap());
        assert!(text.lines().any(|line| line == "version.workspace = true"), "{}: version.workspace = true", manifest.display());
    }
    let lock = read("Cargo.lock");
    let entry = format!("name = \"tollgate\"\nversion = \"{}\"\n", workspace_version());
    assert!(lock.contains(&entry), "Cargo.lock is of another version; cargo check renews it");
}

/// What is being worked on stands on top; below it come releases, of which none is newer than the workspace.
#[test]
fn the_changelog_is_of_this_version() {
    let changelog = read("CHANGELOG.md");
    let headings: Vec<&str> = changelog.lines().filter_map(|line| line.strip_prefix("## ")).collect();
    let released: Vec<&str> = headings.iter().copied().filter(|heading| *heading != "Unreleased").collect();
    assert!(headings.iter().skip(1).all(|heading| *heading != "Unreleased"), "Unreleased stands on top: {headings:?}");
    let Some(newest) = released.first() else {
        assert_eq!(headings, ["Unreleased"], "before the first release");
        return;
    };
    let (version, date) = newest.split_once(" - ").unwrap_or_else(|| panic!("write `## 1.2.3 - 2026-01-31`: {newest}"));
    assert_eq!(version.trim_matches(['[', ']']), workspace_version(), "the newest release of CHANGELOG.md, and Cargo.toml");
    assert_eq!(date.len(), 10, "{newest}");
}

#[test]
fn the_chart_is_of_this_version() {
    let chart = yaml::file("helm/tollgate/Chart.yaml");
    assert_eq!(chart["version"], workspace_version());
    assert_eq!(chart["appVersion"], workspace_version());
}

#[test]
fn the_clients_are_of_this_version() {
    let version = workspace_version();
    let python = read("clients/python/pyproject.toml");
    assert!(python.lines().any(|line| line == format!("version = \"{version}\"")), "clients/python/pyproject.toml");
    let typescript: serde_json::Value = serde_json::from_str(&read("clients/typescript/package.json")).unwrap();
    assert_eq!(typescript["version"], version, "clients/typescript/package.json");
}

/// Returns the commands that a workflow runs, one a line.
fn commands(path: &str) -> Vec<String> {
    let workflow = yaml::file(path);
    let jobs = workflow["jobs"].as_object().unwrap_or_else(|| panic!("{path}: no jobs"));
    let steps = jobs.values().flat_map(|job| job["steps"].as_array().cloned().unwrap_or_default());
    let runs: Vec<String> = steps.filter_map(|step| Some(step["run"].as_str()?.to_owned())).collect();
    runs.iter().flat_map(|run| run.lines().map(|line| line.trim().to_owned())).collect()
}

/// Continuous integration runs the two commands of README, and a release runs all of it before it publishes anything.
#[test]
fn workflows_run_what_the_readme_says() {
    let readme = read("README.md");
    let (_, block) = readme.split_once("```sh\n").unwrap();
    let of_readme: Vec<&str> = block.split("```").next().unwrap().lines().collect();
    assert_eq!(of_readme.len(), 2, "{of_readme:?}");
    let of_ci = commands(".github/workflows/ci.yml");
    for command in of_readme {
        assert!(of_ci.iter().any(|line| line == command || line.starts_with(&format!("{command} "))), "ci.yml runs {command}: {of_ci:?}");
    }
    let release = yaml::file(".github/workflows/release.yml");
    assert_eq!(release["jobs"]["everything"]["uses"], "./.github/workflows/ci.yml");
    assert_eq!(release["jobs"]["check"]["needs"], "everything");
}

/// What `./test` does not run by itself has a job for each part, but for the image, which an engine builds.
#[test]
fn ci_runs_every_part_of_the_tests() {
    let listed = std::process::Command::new("./test").arg("--list").output().unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    let (_, besides) = listed.split_once("./test --all, besides\n").unwrap();
    let parts: Vec<&str> = besides.lines().filter_map(|line| line.split_whitespace().next()).filter(|part| *part != "image").collect();
    assert_eq!(yaml::file(".github/workflows/ci.yml")["jobs"]["part"]["strategy"]["matrix"]["part"], serde_json::json!(parts));
}

/// Files that a workflow names are there.
#[test]
fn workflows_name_what_exists() {
    let mut named = 0;
    for path in [".github/workflows/ci.yml", ".github/workflows/release.yml"] {
        for word in commands(path).iter().flat_map(|line| line.split_whitespace()) {
            if word.starts_with("tests/") || word.starts_with("./") {
                named += 1;
                assert!(Path::new(word).exists(), "{path}: {word} is not there");
            }
        }
    }
    assert!(named >= 4, "{named} files");
}

#[test]
fn release_notes_say_where_symbols_come_from() {
    let profile = read("Cargo.toml");
    let (_, dist) = profile.split_once("[profile.dist]\n").expect("the profile of images");
    let dist = dist.split("\n[").next().unwrap();
    assert_eq!((value_of(dist, "inherits"), value_of(dist, "debug")), ("release".to_owned(), "line-tables-only".to_owned()));
}
