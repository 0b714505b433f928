//! Tests the build script: which revision it tells the program, with and without git, and what makes it run again.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Compiles the script, as cargo does.
fn compiled(folder: &Path) -> PathBuf {
    let (source, program) = (Path::new(env!("CARGO_MANIFEST_DIR")).join("build.rs"), folder.join("script"));
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let ran = Command::new(rustc).args(["--edition", "2024", "-o"]).arg(&program).arg(source).status().expect("rustc runs");
    assert!(ran.success());
    program
}

/// Runs the script for sources in a folder; returns the revision, and the files that make it run again.
fn told(script: &Path, sources: &Path, path: Option<&Path>, given: Option<&str>) -> (String, Vec<String>) {
    let mut command = Command::new(script);
    command.current_dir(sources).env("CARGO_MANIFEST_DIR", sources).env_remove("TOLLGATE_REVISION").env_remove("GIT_DIR");
    // A folder of tests may lie in the repository of something else.
    command.env("GIT_CEILING_DIRECTORIES", sources.parent().unwrap());
    given.into_iter().for_each(|given| _ = command.env("TOLLGATE_REVISION", given));
    path.into_iter().for_each(|path| _ = command.env("PATH", path));
    let output = command.output().expect("it runs");
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let of = |name: &str| text.lines().filter_map(|line| line.strip_prefix(name)).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(of("cargo::rerun-if-env-changed="), ["TOLLGATE_REVISION"]);
    let revisions = of("cargo::rustc-env=TOLLGATE_REVISION=");
    assert_eq!(revisions.len(), 1, "{text}");
    (revisions[0].clone(), of("cargo::rerun-if-changed="))
}

fn git(folder: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new("git");
    command.current_dir(folder).args(["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"]).args(arguments);
    let output = command.env_remove("GIT_DIR").output().expect("git runs");
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[test]
fn the_revision_is_gits_or_what_is_given_or_unknown() {
    let folder = tempfile::tempdir().unwrap();
    let script = compiled(folder.path());
    let sources = folder.path().join("sources");
    std::fs::create_dir_all(sources.join("below")).unwrap();
    std::fs::write(sources.join("build.rs"), "").unwrap();
    // No repository, and no git.
    assert_eq!(told(&script, &sources, None, None), ("unknown".to_owned(), vec!["build.rs".to_owned()]));
    assert_eq!(told(&script, &sources, Some(folder.path()), None).0, "unknown");
    git(&sources, &["init", "-q", "-b", "main"]);
    assert_eq!(told(&script, &sources, None, None).0, "unknown", "nothing is committed yet");
    git(&sources, &["add", "."]);
    git(&sources, &["commit", "-q", "-m", "one"]);
    let head = git(&sources, &["rev-parse", "HEAD"]);
    let (revision, files) = told(&script, &sources, None, None);
    assert!(revision.len() >= 12 && head.starts_with(&revision), "{revision} of {head}");
    // Cargo runs a script every time if it names a file that is not there.
    let missing: Vec<_> = files.iter().filter(|file| !sources.join(file).exists()).collect();
    assert!(missing.is_empty(), "{missing:?}");
    // A commit changes one of the files.
    let contents = || files.iter().map(|file| std::fs::read(sources.join(file)).unwrap()).collect::<Vec<_>>();
    let before = contents();
    git(&sources, &["commit", "-q", "--allow-empty", "-m", "two"]);
    assert_ne!(contents(), before);
    assert_ne!(told(&script, &sources, None, None).0, revision);
    git(&sources, &["pack-refs", "--all"]);
    let (packed, files) = told(&script, &sources, None, None);
    assert!(packed != revision && packed != "unknown");
    assert!(files.iter().all(|file| sources.join(file).exists()), "{files:?}");
    // Sources inside of something else's repository have no revision.
    assert_eq!(told(&script, &sources.join("below"), None, None).0, "unknown");
    // What is given counts, if it can be a label.
    for (given, expected) in [("v1.2-rc/3", "v1.2-rc/3"), (" abc\n", "abc"), ("", packed.as_str()), ("a\"b", &packed), ("a\nb", &packed)] {
        assert_eq!(told(&script, &sources, None, Some(given)).0, expected, "{given:?}");
    }
}
