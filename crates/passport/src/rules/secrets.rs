//! Places of credentials and keys, which are never read whatever the lists of a passport say.
//!
//! Tools that read files check their paths, and commands check every word, since any program may read a file that it is given by name.

use std::sync::LazyLock;

use super::super::beginning::{CLIMBS_MAX, count_parents};
use super::super::links;
use super::super::path::{NormalPath, PathSet, Purpose};
use super::super::shell_glob::{ShellGlob, crossed, may_climb};
use super::file_path::PATH_BYTES_MAX;
use super::{Denial, budget};

/// TABLE: patterns of files that are never read, at any depth unless they start at the root. What was typed holds passwords and tokens, agents keep
/// their own tokens in some, and disks and memory hold the files too.
const TABLE: &str = ".env* *.env .aws .azure .boto .s3cfg .oci .databrickscfg .config/gcloud .config/gh .config/rclone .ssh .gnupg .password-store \
     .local/share/keyrings library/keychains .kube kubeconfig .docker/config.json .dockercfg .netrc _netrc .pgpass .my.cnf .mylogin.cnf \
     .git-credentials .npmrc .pypirc .terraformrc terraform.tfstate* .m2/settings.xml .bash_history .zsh_history .python_history .psql_history \
     .mysql_history .node_repl_history .htpasswd .vault-token .credentials.json oauth_creds.json .codex/auth.json opencode/auth.json \
     .config/github-copilot .cache/huggingface/token .config/sops/age credentials credentials.json credentials.yml credentials.yaml credentials.ini \
     credentials.csv credentials.toml credentials.xml credentials.db credentials.tfrc.json *_credentials.json *-credentials.json id_rsa* id_dsa* \
     id_ecdsa* id_ed25519* id_xmss* *.pem *.key *.p12 *.pfx *.ppk *.jks *.keystore *.kdbx *.keytab *.p8 \
     /etc/shadow* /etc/gshadow* /etc/sudoers* /etc/master.passwd /etc/security/opasswd /etc/krb5.keytab /etc/ssh/ssh_host_* /etc/ssl/private \
     /etc/kubernetes /run/secrets /run/credentials /var/lib/kubelet /proc/*/environ /proc/*/mem /proc/kcore \
     /dev/mem /dev/kmem /dev/sd* /dev/vd* /dev/xvd* /dev/nvme* /dev/mmcblk* /dev/dm-* /dev/mapper /dev/disk /dev/block";

static SECRETS: LazyLock<Vec<&str>> = LazyLock::new(|| TABLE.split_ascii_whitespace().collect());

/// Paths that lead to other places, as globs could spell them. [`links::is_other_name`] has the reasons.
const OTHER_NAMES: &str =
    "/proc/self /proc/thread-self /proc/*/root /proc/*/cwd /proc/*/exe /proc/*/fd /proc/*/map_files /proc/*/task /dev/fd";

/// Characters of a word behind which a path may begin, or before which it may end: `--file=PATH`, `@PATH`, `HOST:PATH`, `PATH,PATH`.
const SEPARATORS: [char; 4] = ['=', '@', ':', ','];

/// How many letters of options are looked at for a path that is attached to them, as in `-xfPATH`.
const BUNDLE_LETTERS_MAX: usize = 8;

static SECRET_PLACES: LazyLock<Option<PathSet>> =
    LazyLock::new(|| PathSet::new(SECRETS.iter().map(|secret| (*secret).to_owned()).collect(), Purpose::Guard, "secrets").ok());

/// Names of files that show which variables a project has, and hold none of their values.
const EXAMPLES: [&str; 4] = [".env.example", ".env.sample", ".env.template", ".env.dist"];

/// Returns the pattern of the table that a path lies in.
pub(super) fn secret_of(path: &NormalPath) -> Option<&'static str> {
    let find = |path: &NormalPath| SECRET_PLACES.as_ref().map_or(Some("**"), |secrets| secrets.find(path));
    if EXAMPLES.contains(&path.name()) { find(&path.folder()) } else { find(path) }
}

/// Returns the denial of what names a secret, with the pattern of the table where a name matches it, and not a glob.
pub(super) fn denial(what: &str, secret: Option<&str>) -> Denial {
    let pattern = secret.map(|secret| format!(": {secret}")).unwrap_or_default();
    Denial::new("oap.blocked_pattern", format!("{what} matches default sensitive read pattern{pattern}"))
}

/// Returns whether a path lies in a place of secrets.
pub(super) fn is_secret(path: &NormalPath) -> bool {
    secret_of(path).is_some()
}

/// Returns whether a text is the path of a secret. What is longer than any path, whatever of it is left out, is none; what goes up more often than
/// is followed, or has more components than are looked at, may be one.
pub(super) fn names_secret(text: &str) -> bool {
    let components = text.split('/').filter(|component| !matches!(*component, "" | "."));
    let bytes: usize = components.map(|component| component.len() + 1).sum();
    // Where there are blanks it is a list of paths rather than one.
    let is_too_deep = || budget::is_too_deep(text) && !text.contains(char::is_whitespace);
    count_parents(text) > CLIMBS_MAX || bytes <= PATH_BYTES_MAX && (is_too_deep() || is_secret(&NormalPath::new(text)))
}

/// Returns the denial of a text that names a secret.
pub(super) fn denial_of(text: &str) -> Denial {
    denial("An argument names a file that", secret_of_word(text))
}

/// Refuses a text that names a secret.
pub(super) fn check_no_secret(text: &str) -> Result<(), Denial> {
    if names_secret(text) { Err(denial_of(text)) } else { Ok(()) }
}

/// Returns whether a word of a command, taken as a path, lies in a place of secrets, or holds such a path: behind or between `=`, `@`, `:`
/// and `,`, or attached to the letters of an option (`-fPATH`). The word is literal, without quotes; a home directory is written `~/x`.
///
/// Not seen is a program that finds its files itself: below a directory (`grep -r x ~`), by a list of names that is in a file, or in its
/// settings.
pub(super) fn secret_word(word: &str) -> bool {
    secret_of_word(word).is_some()
}

/// Returns the pattern of the table that a word of a command lies in, or a path that it holds.
pub(super) fn secret_of_word(word: &str) -> Option<&'static str> {
    paths_in(word).find_map(|path| secret_of(&NormalPath::new(path)))
}

/// Returns whether a word of a command is, or holds, another name of a place: see [`links::is_other_name`].
pub(super) fn other_name_word(word: &str) -> bool {
    let is_tilde = |path: &str| path.starts_with('~');
    // Only behind these two a shell or a program reads `~` as a home directory.
    let behind = |separator| word.split(separator).skip(1).any(|path| is_tilde(path) && links::is_other_name(path));
    links::is_other_name(word) || behind('=') || behind(':') || paths_in(word).any(|path| !is_tilde(path) && links::is_other_name(path))
}

/// Returns whether a glob of a shell (`*`, `?`, `[...]`, with `\` before a quoted character) could match a place of secrets, or another name
/// of a place. A leading dot is matched by a dot only, `*` and `?` stop at `/`, and a component `**` stands for any number of directories.
///
/// A component is compared with the spellings of a pattern that come to mind, since otherwise `*.py` could be `id_rsa.py`. These are not
/// found: `*` alone, where a secret without a dot before its name lies among the files (`cat *` beside `server.pem`); `*` behind the name
/// of a key (`server*`, `server.*`); all files of a kind (`*.json` for `credentials.json`); longer names of keys between plain characters
/// (`i*k` for `id_rsa.bak`); and `*/*` in a working directory that is the root.
pub(super) fn secret_glob(word: &str) -> bool {
    paths_in(word).any(|path| glob_paths(path).any(|path| reaches(&path)))
}

/// Returns whether a pattern with which a program itself looks for names could find a secret by its name. `*`, `?` and brackets find a dot in
/// front of a name too, so that names that begin with them are also tried with the dot. What stands at the root is not asked about: `*/test/*`
/// is no `/etc`.
pub(super) fn secret_pattern(pattern: &str) -> bool {
    crossed(pattern).iter().any(|pattern| is_secret_pattern(pattern))
}

fn is_secret_pattern(pattern: &str) -> bool {
    let parts: Vec<&str> = pattern.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    let is_secret = |named: &dyn Fn(&str) -> Option<String>, but: &str| {
        let globs = parts.iter().map(|part| ShellGlob::new(&named(part).unwrap_or_else(|| (*part).to_owned())));
        is_named(&globs.collect::<Vec<_>>(), but)
    };
    // Any text may follow `.env`, so a star that stands for `.env` itself makes a secret of every name: `*_test.go` finds less than `*.go`.
    let is_written = |kind: &str| !kind.is_empty() && !kind.contains(['*', '?', '[', '\\']);
    let is_of_kind = parts.last().and_then(|part| part.rsplit_once('.')).is_some_and(|(_, kind)| is_written(kind));
    let fronts = [(".*", if is_of_kind { ".env*" } else { "" }), (".", ""), (".e", ""), (".en", "")];
    let is_begun = fronts.iter().any(|(front, but)| is_secret(&|part| dotted(part, front), but));
    is_begun || is_secret(&|_| None, "") || is_secret(&bare, "")
}

/// Returns a name of a pattern with the dot that its first character may stand for. A star in front of other text stands for `front`.
fn dotted(part: &str, front: &str) -> Option<String> {
    if part.starts_with('*') {
        let rest = part.trim_start_matches('*');
        return (!rest.is_empty() && !rest.starts_with('.')).then(|| format!("{front}{rest}"));
    }
    let rest = match part.strip_prefix('[') {
        Some(rest) => rest.split_once(']').filter(|(set, _)| has_dot(set))?.1,
        None => part.strip_prefix('?')?,
    };
    Some(format!(".{rest}"))
}

/// Returns a name of a pattern that begins with a dot behind a star, which may stand for nothing.
fn bare(part: &str) -> Option<String> {
    let rest = part.strip_prefix('*')?.trim_start_matches('*');
    if rest.starts_with('.') { Some(rest.to_owned()) } else { dotted(rest, "") }
}

/// Returns whether a dot is one of the characters that brackets stand for, or may be.
fn has_dot(set: &str) -> bool {
    let characters: Vec<char> = set.chars().collect();
    let is_range = |range: &[char]| matches!(range, [first, '-', last] if ('.'..).contains(last) && *first <= '.');
    set.starts_with(['!', '^']) || set.contains(['.', '[', '\\']) || characters.windows(3).any(is_range)
}

/// Returns the parts of a word that a program may take for a path, the word itself among them.
fn paths_in(word: &str) -> impl Iterator<Item = &str> {
    let behind = word.match_indices(SEPARATORS).filter_map(|(at, _)| word.get(at + 1..));
    let between = word.split(SEPARATORS).filter(|part| part.len() < word.len());
    let letters = word.strip_prefix('-').map_or(0, |rest| rest.bytes().take_while(u8::is_ascii_alphabetic).count());
    let attached = (2..=letters.min(BUNDLE_LETTERS_MAX) + 1).filter_map(|at| word.get(at..));
    std::iter::once(word).chain(behind).chain(between).chain(attached).filter(|path| !path.is_empty())
}

/// A glob's components.
struct GlobPath<'w> {
    components: Vec<&'w str>,
    /// Whether it starts at the working directory and does not leave it.
    is_relative: bool,
}

/// Returns the path of a glob, and what stands behind each `..` in it, taken from the root.
fn glob_paths(path: &str) -> impl Iterator<Item = GlobPath<'_>> {
    let components: Vec<&str> = path.split('/').filter(|component| !matches!(*component, "" | ".")).collect();
    let behind = components.iter().enumerate().filter(|(_, component)| may_climb(component)).map(|(at, _)| at + 1);
    let starts: Vec<usize> = std::iter::once(0).chain(behind).collect();
    let is_relative = !path.starts_with('/') && starts.len() == 1;
    starts.into_iter().map(move |start| {
        let mut walked = Vec::new();
        for component in components.get(start..).unwrap_or_default() {
            if *component == ".." {
                walked.pop();
            } else {
                walked.push(*component);
            }
        }
        GlobPath { components: walked, is_relative }
    })
}

/// The patterns of secrets and of other names that start at the root, under every name of their place, as their components.
static ROOTED: LazyLock<Vec<Vec<String>>> = LazyLock::new(|| {
    let rooted = SECRETS.iter().copied().chain(OTHER_NAMES.split_ascii_whitespace()).filter(|secret| secret.starts_with('/'));
    let named = rooted.flat_map(|secret| std::iter::once(secret.to_owned()).chain(links::names_of(secret)));
    named.map(|secret| secret.split('/').skip(1).map(str::to_owned).collect()).collect()
});

fn reaches(path: &GlobPath<'_>) -> bool {
    let globs: Vec<ShellGlob> = path.components.iter().map(|component| ShellGlob::new(component)).collect();
    // The working directory may be the root, but nobody means that by `*/*`.
    is_named(&globs, "") || ROOTED.iter().any(|parts| begins(&globs, parts, path.is_relative))
}

/// Returns whether components could be the name of a secret that lies anywhere, `but` this.
fn is_named(globs: &[ShellGlob], but: &str) -> bool {
    SECRETS.iter().filter(|secret| !secret.starts_with('/') && **secret != but).any(|secret| {
        let parts: Vec<&str> = secret.split('/').collect();
        (0..globs.len()).any(|start| globs.get(start..).is_some_and(|globs| stands(globs, &parts)))
    })
}

/// Returns whether a path from the root could begin with these parts. If it has to be named, `*` alone does not suffice for all of them.
fn begins(globs: &[ShellGlob], parts: &[String], is_to_be_named: bool) -> bool {
    match (globs, parts) {
        (_, []) => !is_to_be_named,
        ([], _) => false,
        ([glob, behind @ ..], [part, rest @ ..]) => {
            let deeper = glob.is_anything() && begins(globs, rest, is_to_be_named);
            deeper || meets(glob, part) && begins(behind, rest, is_to_be_named && glob.is_anything())
        }
    }
}

/// Returns whether these parts could stand at the beginning of the components.
fn stands(globs: &[ShellGlob], parts: &[&str]) -> bool {
    let Some(globs) = globs.get(..parts.len()) else { return false };
    !globs.iter().all(ShellGlob::is_anything) && globs.iter().zip(parts).all(|(glob, part)| meets(glob, part))
}

/// Returns whether a component could be a name that a part of a pattern means. See [`secret_glob`] for what counts.
fn meets(glob: &ShellGlob, part: &str) -> bool {
    let (opens, ends) = glob.is_open();
    match (part.strip_prefix('*'), part.strip_suffix('*')) {
        (Some(""), _) => true,
        (Some(suffix), _) if suffix.starts_with('.') && !ends => glob.meets(part),
        // `*.json` is all files of a kind, and none in particular.
        (Some(suffix), _) if suffix.starts_with('.') || !glob.is_kind() => glob.end_meets(suffix) || glob.meets(&format!("x{suffix}")),
        (Some(_), _) => false,
        (None, _) if glob.is_kind() => false,
        (None, Some(name)) if !name.starts_with('.') && (opens || !ends) => glob.meets(name) || glob.meets(&format!("{name}-")),
        (None, _) => glob.meets(part),
    }
}

#[cfg(test)]
#[path = "secrets_tests.rs"]
mod tests;
