//! The Dockerfile against the crate and its configuration. That it builds, and what comes out, `tests/image/run` proves.

use super::{read, value_of, workspace_version, yaml};
use crate::support::{run, tollgate};
use crate::tidy::source_files;

/// Returns the instructions of the Dockerfile in order, as name and arguments, with continued lines put together.
fn instructions() -> Vec<(String, String)> {
    let text = read("Dockerfile");
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty()).collect();
    let joined = lines.join("\n").replace("\\\n", "");
    joined.lines().map(|line| line.split_once(' ').map(|(name, rest)| (name.to_owned(), rest.trim().to_owned())).unwrap()).collect()
}

fn all(name: &str) -> Vec<String> {
    instructions().into_iter().filter(|(known, _)| known == name).map(|(_, arguments)| arguments).collect()
}

fn last(name: &str) -> String {
    all(name).pop().unwrap_or_else(|| panic!("no {name}"))
}

/// Returns the words of a command in its JSON form.
fn vector(arguments: &str) -> Vec<String> {
    let (_, list) = arguments.split_once('[').unwrap_or_else(|| panic!("{arguments}: the base has no shell, so write a list"));
    serde_json::from_str(&format!("[{list}")).unwrap()
}

/// Returns the port that `/metrics` and the probes are on by default.
pub fn admin_port() -> String {
    let defaults = yaml::file("config/tollgate.yaml");
    defaults["admin"]["listen"].as_str().unwrap().rsplit_once(':').unwrap().1.to_owned()
}

#[test]
fn bases_are_pinned() {
    for from in all("FROM") {
        let image = from.split(' ').next().unwrap();
        let is_stage = all("FROM").iter().any(|other| other.ends_with(&format!(" AS {image}")));
        let has_tag = image.rsplit_once(':').is_some_and(|(_, tag)| tag != "latest");
        assert!(image == "scratch" || is_stage || has_tag, "{from}: pin the base by a tag");
    }
}

#[test]
fn the_compiler_is_new_enough() {
    let rust = all("FROM").iter().find_map(|from| from.strip_prefix("rust:")?.split('-').next().map(str::to_owned)).expect("a Rust image");
    let number = |version: &str| version.split('.').map(|part| part.parse().unwrap()).collect::<Vec<u32>>();
    let wanted = value_of(&read("Cargo.toml"), "rust-version");
    assert!(number(&rust) >= number(&wanted), "Rust {rust}, and Cargo.toml wants {wanted}");
}

#[test]
fn it_runs_as_a_user_that_is_known_not_to_be_root() {
    let numbers: Vec<u32> = last("USER").split(':').map(|id| id.parse().expect("a number")).collect();
    assert!(numbers.len() == 2 && numbers.iter().all(|id| *id > 0), "{numbers:?}");
}

/// A variable of the image would count over the configuration file that a user mounts.
#[test]
fn it_sets_no_key_of_the_configuration() {
    let offenders: Vec<_> = all("ENV").into_iter().filter(|line| line.contains("TOLLGATE")).collect();
    assert!(offenders.is_empty(), "{offenders:?}");
}

#[test]
fn it_is_labelled_with_the_version() {
    let default = all("ARG").iter().find_map(|arg| arg.strip_prefix("VERSION=").map(str::to_owned));
    assert_eq!(default, Some(workspace_version()));
    let labels = last("LABEL");
    for name in ["title", "description", "version", "revision", "licenses", "base.name"] {
        assert!(labels.contains(&format!("org.opencontainers.image.{name}=")), "no label {name}");
    }
    let base = all("FROM").pop().unwrap();
    assert!(labels.contains(&format!("base.name=\"{}\"", base.split(' ').next().unwrap())), "the label of the base is another one");
    assert!(labels.contains(&format!("licenses=\"{}\"", value_of(&read("Cargo.toml"), "license"))));
}

#[test]
fn features_and_profile_are_the_crates() {
    let manifest = read("Cargo.toml");
    let features = all("ARG").iter().find_map(|arg| arg.strip_prefix("FEATURES=").map(str::to_owned)).expect("ARG FEATURES");
    for feature in features.split(',') {
        assert!(manifest.lines().any(|line| line.starts_with(&format!("{feature} = ["))), "no feature {feature}");
    }
    let builds: Vec<_> = all("RUN").into_iter().filter(|line| line.contains("cargo build") || line.contains("chef cook")).collect();
    assert_eq!(builds.len(), 2, "{builds:?}");
    for build in builds {
        // Where the two differ in one of these, the second compiles all dependencies again.
        for part in ["--locked", "--profile dist", "--package tollgate", "--no-default-features", "--features \"$FEATURES\""] {
            assert!(build.contains(part), "{build}: no {part}");
        }
    }
    assert!(manifest.contains("[profile.dist]"));
}

#[test]
fn its_commands_are_commands() {
    let entrypoint = vector(&last("ENTRYPOINT"));
    for words in [vector(&last("CMD")), vector(&last("HEALTHCHECK"))[1..].to_vec()] {
        let ran = run(tollgate().args(&words).arg("--help"), b"");
        assert_eq!(ran.exit, Some(0), "{words:?}: {}", ran.stderr);
    }
    assert_eq!(vector(&last("HEALTHCHECK"))[0], entrypoint[0]);
    assert_eq!(last("EXPOSE"), admin_port());
}

/// What is not named in .dockerignore stays out of every layer.
#[test]
fn the_context_is_a_list_of_what_goes_in() {
    let text = read(".dockerignore");
    let patterns: Vec<&str> = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()).collect();
    assert_eq!(patterns[0], "*");
    for pattern in &patterns[1..] {
        assert!(std::path::Path::new(pattern.trim_start_matches('!')).exists(), "{pattern} is not there");
    }
    for path in all("COPY").iter().filter(|copy| !copy.starts_with("--from") && !copy.starts_with(". ")) {
        let source = path.split(' ').next().unwrap();
        assert!(patterns.contains(&format!("!{source}").as_str()), "COPY {source}: .dockerignore leaves it out");
    }
    // What the sources have compiled into the program.
    let mut count = 0;
    for path in source_files() {
        let text = read(&path.to_string_lossy());
        let compiled_in = text.split("include_str!(\"").skip(1).filter_map(|rest| rest.split('"').next()?.split_once("/config/"));
        for (_, file) in compiled_in {
            count += 1;
            assert!(patterns.contains(&format!("!config/{file}").as_str()), "{}: .dockerignore leaves config/{file} out", path.display());
        }
    }
    assert!(count >= 3, "only {count} files of config/ are compiled in");
}
