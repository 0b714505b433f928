//! The variables that a line may use.
//!
//! POSIX leaves names with small letters to applications: no utility of the standard reads a variable of such a name. So a name of small letters,
//! digits and `_` is free, but for the names below. In capitals a program may read any name, and only the names of a list are free.

/// The words that open or continue something in this grammar.
pub(super) const KNOWN: [&str; 13] = ["if", "then", "elif", "else", "fi", "while", "until", "for", "do", "done", "in", "{", "}"];

/// The words that are reserved in some shell, beside those. To refuse them here only makes the message better: a command with such a name
/// would have to be on the list.
pub(super) const OTHERS: [&str; 13] =
    ["case", "esac", "function", "select", "coproc", "repeat", "foreach", "end", "nocorrect", "noglob", "always", "let", "eval"];

/// TABLE: names in small letters that zsh gives a meaning, with its modules, and bash: `zshparam(1)`, `zshmodules(1)`, `zshcompwid(1)`, `bash(1)`.
const OF_SHELLS: &str = "aliases argv auto_resume builtins cdpath commands compstate dirstack epochtime errnos fignore fpath funcfiletrace \
     funcsourcetrace funcstack functions functrace galiases histchars history historywords jobdirs jobstates jobtexts keymaps langinfo mailpath \
     manpath mapfile match mbegin mend module_path modules nameddirs options parameters patchars path pipestatus prompt psvar reply reswords \
     saliases signals status sysparams termcap terminfo userdirs usergroups watch widgets words";

/// TABLE: how names begin that programs and shells read all the same: `npm_config_prefix`, `zle_highlight`. So do those that end in `proxy`.
const FRONTS: [&str; 8] = ["bash_", "dis_", "git_", "npm_", "pip_", "zle_", "zsh_", "ld_"];

/// TABLE: names in capitals that mean nothing to a shell. Programs such as `make` read them where the environment has them: the values are plain.
const SHOUTED: [&str; 31] = [
    "BASE", "BRANCH", "CODE", "COMMIT", "COUNT", "DIR", "DST", "END", "FILE", "FILES", "HASH", "IMAGE", "LAST", "LOG", "N", "NAME", "NUM",
    "OUT", "PID", "PKG", "POD", "PR", "RC", "RESULT", "RUN", "SHA", "SRC", "START", "TAG", "TOTAL", "VERSION",
];

/// Returns whether a loop may use a variable of this name: the name means nothing to a shell, and no program reads it.
#[must_use]
pub fn is_loop_name(name: &str) -> bool {
    let is_small = name.starts_with(|first: char| first.is_ascii_lowercase())
        && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
    // To zsh this word ends a loop only where a command may begin, and all shells assign to it.
    let is_reserved = (KNOWN.contains(&name) || OTHERS.contains(&name)) && name != "end";
    let is_read = OF_SHELLS.split_ascii_whitespace().any(|other| other == name)
        || FRONTS.iter().any(|front| name.starts_with(front))
        || name.ends_with("proxy");
    SHOUTED.contains(&name) || is_small && !is_reserved && !is_read
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_something_reads_are_not_free() {
        for name in ["f", "start", "end", "start_time", "pr", "n2", "POD", "END"] {
            assert!(is_loop_name(name), "{name}");
        }
        for name in
            ["path", "status", "http_proxy", "no_proxy", "npm_config_x", "IFS", "PATH", "PS1", "Ab", "_x", "1x", "", "if", "x-y", "LC_ALL"]
        {
            assert!(!is_loop_name(name), "{name}");
        }
    }
}
