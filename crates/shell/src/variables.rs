//! Variables whose value is executed by the shell or by common programs.

/// The role of a variable: what is done with its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// A shell executes it.
    Command,
    /// A shell expands it.
    Prompt,
    /// It names code that programs load, or settings that start others.
    Loader,
    /// None of these.
    Other,
}

/// TABLE: variables whose value is executed or names other code.
const VARIABLES: &[(&str, Role)] = &[
    // Editors and pagers, which git, man, crontab, sudoedit and others start through a shell.
    ("EDITOR", Role::Command),
    ("VISUAL", Role::Command),
    ("PAGER", Role::Command),
    ("MANPAGER", Role::Command),
    ("BROWSER", Role::Command),
    ("FCEDIT", Role::Command),
    ("LESSOPEN", Role::Command),
    ("LESSCLOSE", Role::Command),
    ("SYSTEMD_PAGER", Role::Command),
    ("SUDO_EDITOR", Role::Command),
    ("SUDO_ASKPASS", Role::Command),
    ("SSH_ASKPASS", Role::Command),
    ("RSYNC_RSH", Role::Command),
    ("CVS_RSH", Role::Command),
    ("SVN_SSH", Role::Command),
    ("FZF_DEFAULT_COMMAND", Role::Command),
    // Those of git.
    ("GIT_ASKPASS", Role::Command),
    ("GIT_EDITOR", Role::Command),
    ("GIT_EXTERNAL_DIFF", Role::Command),
    ("GIT_PAGER", Role::Command),
    ("GIT_PROXY_COMMAND", Role::Command),
    ("GIT_SEQUENCE_EDITOR", Role::Command),
    ("GIT_SSH", Role::Command),
    ("GIT_SSH_COMMAND", Role::Command),
    ("GIT_EXEC_PATH", Role::Loader),
    ("GIT_TEMPLATE_DIR", Role::Loader),
    // Those of the shell.
    ("PROMPT_COMMAND", Role::Command),
    ("PS0", Role::Prompt),
    ("PS1", Role::Prompt),
    ("PS2", Role::Prompt),
    ("PS4", Role::Prompt),
    ("BASH_ENV", Role::Loader),
    ("ZDOTDIR", Role::Loader),
    // Those of the dynamic linker.
    ("LD_PRELOAD", Role::Loader),
    ("LD_AUDIT", Role::Loader),
    ("DYLD_INSERT_LIBRARIES", Role::Loader),
];

/// The variables that decide which programs and settings are used, beside those that are executed.
const SETTINGS: [&str; 18] = [
    "PATH",
    "HOME",
    "IFS",
    "ENV",
    "SHELL",
    "SHELLOPTS",
    "BASHOPTS",
    "CDPATH",
    "PWD",
    "OLDPWD",
    "TMPDIR",
    "GLOBIGNORE",
    "EXECIGNORE",
    "POSIXLY_CORRECT",
    "PYTHONPATH",
    "NODE_OPTIONS",
    "PERL5OPT",
    "RUBYOPT",
];

/// The beginnings of the names of more such variables.
const SETTINGS_OF: [&str; 6] = ["XDG_", "GIT_", "LD_", "DYLD_", "npm_config_", "BASH_"];

/// Returns whether the variable changes what programs do or which are found.
#[must_use]
pub fn is_special(name: &str) -> bool {
    role(name) != Role::Other || SETTINGS.contains(&name) || SETTINGS_OF.iter().any(|prefix| name.starts_with(prefix))
}

/// Returns whether the variable is one that a loop may use: of lower case, and read by no program that is known.
#[must_use]
pub fn is_ordinary(name: &str) -> bool {
    let is_local = name.len() == 1 || !name.bytes().any(|byte| byte.is_ascii_uppercase());
    is_local && !is_special(name) && !name.ends_with("_proxy")
}

/// The beginnings of names that are loaders as well.
const LOADERS: [&str; 5] = [
    // Settings from the environment.
    "GIT_CONFIG_COUNT",
    "GIT_CONFIG_KEY_",
    "GIT_CONFIG_PARAMETERS",
    // Functions of the next shell, and aliases of this one.
    "BASH_FUNC_",
    "BASH_ALIASES",
];

/// Returns the role of this variable.
#[must_use]
pub fn role(name: &str) -> Role {
    let name = name.trim_end_matches('+');
    if LOADERS.iter().any(|prefix| name.starts_with(prefix)) {
        return Role::Loader;
    }
    VARIABLES.iter().find(|(known, _)| *known == name).map_or(Role::Other, |(_, role)| *role)
}
