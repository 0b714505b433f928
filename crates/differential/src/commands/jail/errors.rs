//! What shells say of a program that is not there. A canary has a name; a word that becomes a command by mistake may have any.

use std::path::Path;

/// Returns the program that a shell, or a listed program that runs others, has looked for in vain, by what it wrote to the standard error.
/// `hidden` is the folder that the shells are in, and `is_listed` says which programs may be run.
pub(super) fn missing_program(errors: &str, hidden: &Path, is_listed: impl Fn(&str) -> bool) -> Option<String> {
    let hidden = hidden.display().to_string();
    let missing = |line: &str| -> Option<String> {
        let name = if let Some(rest) = line.strip_prefix(&format!("{hidden}/bash: ")) {
            rest.strip_suffix(": command not found")?.split_once(": ")?.1
        } else if let Some(rest) = line.strip_prefix(&format!("{hidden}/dash: ")) {
            not_found(rest.split_once(": ")?.1)?
        } else if let Some(rest) = line.strip_prefix("zsh:") {
            rest.split_once(": command not found: ")?.1
        } else if let Some(rest) = line.strip_prefix("sh: ") {
            not_found(rest)?
        } else if let Some(rest) = line.strip_prefix("timeout: failed to run command ") {
            rest.split_once(": ")?.0
        } else {
            // xargs says the same of a name; of a file it says that it cannot open it.
            let (program, rest) = line.split_once(": ")?;
            ["env", "nice", "xargs"].contains(&program).then_some(rest.strip_suffix(": No such file or directory")?)?
        };
        // Two processes may say it at once, and one of them in the middle of what the other says.
        let is_mixed = name.contains(": not found") || name.contains(&hidden);
        let mut names = name.split(": not found").map(|part| if is_mixed { part.rsplit(": ").next().unwrap_or(part) } else { part });
        let name = names.find_map(|name| Some(name.trim_matches(['\'', '‘', '’'])).filter(|name| !is_listed(name)))?;
        (!name.to_ascii_lowercase().contains("cannot ")).then(|| format!("{name} (which is not there)"))
    };
    errors.lines().find_map(missing)
}

/// Returns the name in what dash and busybox say of a program that they cannot run.
fn not_found(text: &str) -> Option<&str> {
    let name = text.strip_suffix(": not found").or_else(|| text.strip_suffix(": Permission denied"))?;
    // They say the same of files that a redirection names.
    (!name.starts_with("cannot ") && !name.starts_with("can't ")).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn missing(errors: &str) -> Option<String> {
        missing_program(errors, Path::new("/.h"), |name| name == "ls")
    }

    #[test]
    fn a_program_that_was_looked_for_is_seen() {
        for line in [
            "/.h/bash: line 1: nope: command not found",
            "/.h/dash: 1: nope: not found",
            "zsh:1: command not found: nope",
            "sh: nope: not found",
            "timeout: failed to run command ‘nope’: No such file or directory",
            "env: ‘nope’: No such file or directory",
            "xargs: nope: No such file or directory",
        ] {
            assert_eq!(missing(&format!("ls: x\n{line}\n")).as_deref(), Some("nope (which is not there)"), "{line}");
            assert_eq!(missing(&line.replace("nope", "ls")), None, "{line}");
        }
        assert!(missing("/.h/dash: 1: /work: Permission denied").is_some());
    }

    #[test]
    fn what_two_processes_say_at_once_is_told_apart() {
        assert_eq!(missing("sh: sh: ls: not foundls: not found\n\n"), None);
        assert_eq!(missing("/.h/dash: 1: /.h/dash: 1: ls: not found\nls: not found\n"), None);
        assert!(missing("/.h/dash: 1: /.h/dash: 1: nope: not found\nls: not found\n").is_some());
        assert_eq!(missing("sh: sh: nope: not foundls: not found\n\n").as_deref(), Some("nope (which is not there)"));
        assert_eq!(missing("sh: sh: ls: not foundnope: not found\n\n").as_deref(), Some("nope (which is not there)"));
    }

    #[test]
    fn a_file_that_is_not_there_is_no_program() {
        for line in [
            "/.h/bash: line 1: nope: No such file or directory",
            "/.h/dash: 1: cannot open nope: No such file",
            "/.h/dash: 1: cannot create x: Permission denied",
            "zsh:1: no matches found: *x",
            "cat: nope: No such file or directory",
            "xargs: Cannot open input file ‘nope’: No such file or directory",
            "",
        ] {
            assert_eq!(missing(line), None, "{line}");
        }
    }
}
