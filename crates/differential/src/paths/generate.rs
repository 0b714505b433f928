//! Makes lists, working directories and paths.

use crate::random::Random;

use super::Lists;

#[rustfmt::skip]
const ALLOWED: [&str; 21] = [
    "/etc", "/work", "/work/", "/work/b", "/work/a", "/work/*", "/work/**", "/work/src/*", ".", "src", "./b", "~", "~/work", "/var",
    "/var/run", "/bin", "/usr", "/tmp", "/proc", "/", "*",
];
#[rustfmt::skip]
const BLOCKED: [&str; 24] = [
    "/etc", "/etc/passwd", "/work/secret", "/work/b/d", "/work/src/bin", "secret", "b/d", ".config", "~/.config", "/home/u/.config",
    "/home/u", "/home", "/root", "/root/.config", "/bin", "/usr/bin", "/lib", "/run", "/run/lock", "/var/run", "/proc", "/dev", "*.pem",
    "/",
];
/// Working directories. None lies in a place that is blocked by itself: a relative path cannot be judged there.
const DIRECTORIES: [&str; 5] = ["/work", "/", "/home/u", "/work/b", "/usr"];

#[rustfmt::skip]
const COMPONENTS: [&str; 62] = [
    "work", "a", "b", "c", "d", "e", "src", "bin", "main.rs", "x", "secret", ".env", "etc", "passwd", "shadow", "hosts", "ssl", "private",
    "k", "home", "u", "bob", "notes", ".config", "y", ".ssh", "id_rsa", "root", ".aws", "credentials", "tmp", "run", "secrets", "t",
    "lock", "var", "lib", "usr", "ls", "workx", "Work", "proc", "self", "thread-self", "cwd", "exe", "fd", "0", "1", "3", "task",
    "map_files", "dev", "stdin", "stdout", "mtab", "mounts", "...", "~", "new", "a b", "\u{e4}",
];
const STARTS: [&str; 10] = ["/", "/", "/", "", "", "~/", "~", "./", "../", "//"];
const BETWEEN: [&str; 10] = ["/", "/", "/", "/", "/", "/../", "/../", "/./", "//", "/../../"];
#[rustfmt::skip]
const PIECES: [&str; 26] = [
    "/", "//", ".", "..", "/..", "/../", "../", "/.", "~", "~/", "~u", "~+", "%2e", "\\", "\0", "\n", " ", "\u{2024}", "\u{ff0f}",
    "proc/self/", "root/", "/proc/1/", "fd/", "etc/", "*", "?",
];

/// Returns lists for a passport.
pub(super) fn lists(random: &mut Random) -> Lists {
    let mut some = |entries: &[&'static str], percent| {
        random.chance(percent).then(|| (0..=random.below(2)).map(|_| random.pick(entries)).collect::<Vec<_>>())
    };
    Lists { allowed: some(&ALLOWED, 65), blocked: some(&BLOCKED, 65) }
}

/// Returns a working directory.
pub(super) fn directory(random: &mut Random) -> &'static str {
    random.pick(&DIRECTORIES)
}

/// Returns a path. Most start in a place of the lists, since others are refused early.
pub(super) fn path(random: &mut Random, lists: &Lists) -> String {
    let entries: Vec<&str> = lists.allowed.iter().chain(&lists.blocked).flatten().copied().filter(|entry| !entry.contains('*')).collect();
    let mut made = if random.chance(50) && !entries.is_empty() {
        format!("{}/", random.pick(&entries).trim_end_matches('/'))
    } else {
        random.pick(&STARTS).to_owned()
    };
    for at in 0..random.below(7) {
        if at > 0 {
            made += random.pick(&BETWEEN);
        }
        made += if random.chance(15) { ".." } else { random.pick(&COMPONENTS) };
    }
    if random.chance(25) { random.mutate(&made, &PIECES) } else { made }
}
