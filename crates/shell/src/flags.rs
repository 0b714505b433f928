//! TABLE: options that mean the same, and words that mean an option.
//!
//! Patterns and commands are compared by the long name where a row gives one, so that `rm -fr`, `rm -r -f` and `rm --recursive --force`
//! are the same. An option without a row is compared as it is written.

/// TABLE: options that have a short and a long form, by program and subcommand, or "" for any subcommand.
const OPTIONS: &[(&str, &str, &str)] = &[
    ("rm", "", "r=recursive R=recursive f=force i=interactive d=dir v=verbose"),
    ("chmod", "", "R=recursive f=silent v=verbose"),
    ("chown", "", "R=recursive h=no-dereference"),
    ("chgrp", "", "R=recursive"),
    ("cp", "", "r=recursive R=recursive f=force a=archive"),
    ("mv", "", "f=force n=no-clobber"),
    ("ln", "", "s=symbolic f=force"),
    ("mkdir", "", "p=parents"),
    ("shred", "", "u=remove f=force"),
    ("sed", "", "i=in-place"),
    ("kill", "", "9=KILL s=signal"),
    ("pkill", "", "9=KILL"),
    ("killall", "", "9=KILL"),
    ("git", "push", "f=force d=delete u=set-upstream"),
    ("git", "branch", "d=delete f=force"),
    ("git", "checkout", "f=force"),
    ("git", "clean", "f=force n=dry-run"),
    ("git", "commit", "a=all n=no-verify"),
    ("git", "add", "A=all f=force"),
    ("git", "rm", "f=force"),
    ("git", "fetch", "f=force"),
    ("git", "switch", "f=force"),
    ("git", "tag", "d=delete f=force"),
    ("curl", "", "o=output O=remote-name k=insecure X=request d=data T=upload-file F=form L=location"),
    ("wget", "", "O=output-document"),
    ("docker", "", "f=force v=volume"),
    ("docker", "system", "a=all"),
    ("kubectl", "", "A=all-namespaces f=filename"),
    ("npm", "", "g=global f=force"),
    ("apt", "", "y=yes"),
    ("apt-get", "", "y=yes"),
    ("tar", "", "x=extract c=create f=file"),
    ("sudo", "", "u=user"),
    ("useradd", "", "m=create-home"),
    ("userdel", "", "r=remove"),
    ("crontab", "", "r=remove"),
];

/// Programs whose options are whole words behind one dash.
const WORD_OPTIONS: [&str; 9] = ["find", "gfind", "java", "javac", "ffmpeg", "openssl", "terraform", "iptables", "kill"];

/// A row: program, subcommand or "", beginning of a word, the option that it means.
const MEANINGS: &[(&str, &str, &str, &str)] = &[
    // A plus before a reference forces it; a mirror forces all.
    ("git", "push", "+", "force"),
    ("git", "push", "--mirror", "force"),
    ("kill", "", "-SIGKILL", "KILL"),
];

/// The words that mean the same to a program, row by row.
const SAME_WORDS: &[(&str, &[&str])] = &[(
    "chmod",
    &["777", "0777", "00777", "a+rwx", "a=rwx", "ugo+rwx", "ugo=rwx", "+rwx", "=rwx", "u+rwx,g+rwx,o+rwx", "u=rwx,g=rwx,o=rwx"],
)];

/// The options before the first plain word that take a value, by program: the value is not the subcommand.
const VALUED: &[(&str, &[&str])] = &[
    ("git", &["-C", "-c", "--git-dir", "--work-tree", "--namespace", "--super-prefix", "--attr-source"]),
    ("docker", &["--context", "-H", "--host", "--config", "-l", "--log-level"]),
    ("kubectl", &["-n", "--namespace", "--context", "--kubeconfig", "--cluster", "--user", "-s", "--server"]),
    ("npm", &["--prefix", "-C", "-w", "--workspace", "--registry"]),
    ("sudo", &["-u", "--user", "-g", "--group", "-C", "-h", "-p", "-T", "-r", "-t", "-U", "-D", "-R"]),
    ("systemctl", &["-t", "--type", "-H", "--host", "-M", "-p", "-s", "--signal"]),
    ("cargo", &["--config", "-Z", "--color", "-C"]),
    ("go", &["-C"]),
    ("gh", &["-R", "--repo"]),
];

/// The options without a value before the first plain word, by program.
const PLAIN: &[(&str, &[&str])] = &[
    ("git", &["-p", "-P", "--paginate", "--no-pager", "--bare", "--no-replace-objects", "--literal-pathspecs", "--no-optional-locks"]),
    ("docker", &["-D", "--debug", "--tls", "--tlsverify"]),
    ("npm", &["-g", "--global", "-s", "--silent", "-f", "--force", "-y", "--yes"]),
    ("sudo", &["-n", "-E", "-H", "-S", "-k", "-b", "-i", "-s"]),
    ("systemctl", &["-q", "--quiet", "--user", "--system", "--no-block", "--now"]),
];

/// Returns whether this option of the program takes the next word; `None` if that is not known.
#[must_use]
pub fn takes_value(program: &str, option: &str) -> Option<bool> {
    let is_in = |table: &[(&str, &[&str])]| table.iter().any(|(name, options)| *name == program && options.contains(&option));
    if is_in(VALUED) {
        return Some(true);
    }
    (option.contains('=') || is_in(PLAIN)).then_some(false)
}

/// Returns the long option that a letter stands for.
#[must_use]
pub fn long_name(program: &str, subcommand: &str, letter: char) -> Option<&'static str> {
    let rows = OPTIONS.iter().filter(|(name, of, _)| *name == program && (of.is_empty() || *of == subcommand));
    rows.flat_map(|(.., options)| options.split(' ')).find_map(|option| option.strip_prefix(letter)?.strip_prefix('='))
}

/// Returns whether the program has this very long option, so that it abbreviates no other.
#[must_use]
pub fn has_long(program: &str, long: &str) -> bool {
    let options = OPTIONS.iter().filter(|(name, ..)| *name == program).flat_map(|(.., options)| options.split(' '));
    options.filter_map(|option| option.split_once('=')).any(|(_, name)| name == long)
}

/// Returns whether options of the program are words behind one dash.
#[must_use]
pub fn has_word_options(program: &str) -> bool {
    WORD_OPTIONS.contains(&program)
}

/// Returns the option that a word stands for.
#[must_use]
pub fn meaning(program: &str, subcommand: &str, word: &str) -> Option<&'static str> {
    let is_row = |row: &&(&str, &str, &str, &str)| row.0 == program && (row.1.is_empty() || row.1 == subcommand) && word.starts_with(row.2);
    MEANINGS.iter().find(is_row).map(|row| row.3)
}

/// Returns the word that stands for all that mean the same.
#[must_use]
pub fn same_word<'a>(program: &str, word: &'a str) -> &'a str {
    let row = SAME_WORDS.iter().find(|(name, words)| *name == program && words.contains(&word));
    row.and_then(|(_, words)| words.first()).map_or(word, |first| first)
}

/// Returns the family of a program, which a pattern of that name stands for too: `mkfs` is one.
#[must_use]
pub fn family(program: &str) -> &str {
    const FAMILIES: [&str; 2] = ["mkfs", "fsck"];
    match program.split_once('.') {
        Some((family, _)) if FAMILIES.contains(&family) => family,
        _ => program,
    }
}
