//! Other names of the same place: links that every system has, and names that only a running process or a shell can follow.

use std::sync::LazyLock;

use rustc_hash::FxHashSet;

use super::beginning::{CLIMBS_MAX, count_parents};

/// Directories of common systems that are links, in lower case, and where they lead. Both names are one place where a path is blocked.
const LINKS: [(&str, &str); 13] = [
    ("/var/run", "/run"),
    ("/var/lock", "/run/lock"),
    ("/etc/mtab", "/proc/self/mounts"),
    ("/bin", "/usr/bin"),
    ("/sbin", "/usr/sbin"),
    ("/lib", "/usr/lib"),
    ("/lib32", "/usr/lib32"),
    ("/lib64", "/usr/lib64"),
    ("/private/etc", "/etc"),
    ("/private/tmp", "/tmp"),
    ("/private/var", "/var"),
    ("/system/volumes/data", ""),
    ("/volumes/macintosh hd", ""),
];

/// The first components of the links, and of the places that they lead to. Most paths begin with none of these.
static BEGINNINGS: LazyLock<FxHashSet<&str>> =
    LazyLock::new(|| LINKS.iter().flat_map(|(link, target)| [first(link), first(target)]).filter(|first| !first.is_empty()).collect());

/// How many links are followed one after another.
const HOPS_MAX: usize = 3;

/// Returns the other names of an absolute place, which is in lower case. There are none for most.
pub(super) fn names_of(place: &str) -> Vec<String> {
    followed(place, "")
}

/// As [`names_of`], without the names below `/private` that macOS has for a place: an entry for any depth that is called so would be in them.
pub(super) fn places_of(place: &str) -> Vec<String> {
    followed(place, "/private/")
}

/// Returns the other names of a place, without the links that begin with `left_out`, if that is not empty.
fn followed(place: &str, left_out: &str) -> Vec<String> {
    if !BEGINNINGS.contains(first(place)) {
        return Vec::new();
    }
    let mut names: Vec<String> = Vec::new();
    let mut fresh = renamed(place, left_out);
    for _ in 0..HOPS_MAX {
        let next: Vec<String> = fresh.iter().flat_map(|name| renamed(name, left_out)).collect();
        names.append(&mut fresh);
        fresh = next.into_iter().filter(|name| name != place && !names.contains(name)).collect();
    }
    names
}

fn renamed(place: &str, left_out: &str) -> Vec<String> {
    let swap = |from: &str, to: &str| {
        below(place, from).map(|rest| if to.len() + rest.len() == 0 { "/".to_owned() } else { format!("{to}{rest}") })
    };
    let there = LINKS.iter().filter_map(|(link, target)| swap(link, target));
    // The link to the root would rename every place.
    let leads_back = |link: &str| left_out.is_empty() || !link.starts_with(left_out);
    let back = LINKS.iter().filter(|(link, target)| !target.is_empty() && leads_back(link)).filter_map(|(link, target)| swap(target, link));
    there.chain(back).collect()
}

/// Returns the first component of an absolute place.
fn first(place: &str) -> &str {
    place.split('/').nth(1).unwrap_or_default()
}

/// Returns the part of a place behind a directory: empty for the directory itself.
fn below<'p>(place: &'p str, directory: &str) -> Option<&'p str> {
    place.strip_prefix(directory).filter(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Returns whether an absolute place is a link of the system.
pub(super) fn is_link(place: &str) -> bool {
    LINKS.iter().any(|(link, _)| place.eq_ignore_ascii_case(link))
}

/// Returns the link of the system that a place goes through although it leads out of the link's own directory, and the place that is meant.
pub(super) fn led_out_of(place: &str) -> Option<(&'static str, String)> {
    let led = |(link, target): &(&'static str, &'static str)| below(place, link).map(|rest| (*link, format!("{target}{rest}")));
    LINKS.iter().filter(|(link, _)| link.starts_with("/var/") || link.starts_with("/etc/")).find_map(led)
}

/// Returns whether a path is another name for a place that its text does not tell: it goes through a process' own root, working directory
/// or open files in `/proc` or `/dev/fd`, or it begins with a form of `~` other than the plain one (`~user`, `~+`, `~-`, `~1`). A path with
/// more than [`CLIMBS_MAX`] components `..` counts as such too.
///
/// A relative path is taken as if it stood at the root, and so is what stands behind a `..`.
pub(super) fn is_other_name(path: &str) -> bool {
    if is_tilde_of_other(path) || count_parents(path) > CLIMBS_MAX {
        return true;
    }
    // One of these is in every name that leads elsewhere.
    if !path.split('/').any(|component| matches!(component, "proc" | "dev" | ".vol" | ".nofollow" | ".resolve")) {
        return false;
    }
    let components: Vec<&str> = path.split('/').filter(|component| !matches!(*component, "" | ".")).collect();
    let behind = components.iter().enumerate().filter(|(_, component)| **component == "..").map(|(at, _)| at + 1);
    std::iter::once(0).chain(behind).any(|start| is_led(components.get(start..).unwrap_or_default()))
}

/// Returns whether a path begins with a form of `~` other than the plain one, such as `~user`.
pub(super) fn is_tilde_of_other(path: &str) -> bool {
    path.strip_prefix('~').is_some_and(|rest| !rest.is_empty() && !rest.starts_with('/'))
}

/// Returns whether a walk from the root along these components is led to another place on its way.
fn is_led(components: &[&str]) -> bool {
    let mut walked: Vec<&str> = Vec::new();
    components.iter().any(|component| {
        if *component == ".." {
            walked.pop();
            return false;
        }
        walked.push(component);
        // macOS names any file by its number, and any path with another way to follow links.
        let at_root = matches!(
            walked.as_slice(),
            ["proc", "self" | "thread-self", ..] | ["dev", "fd", ..] | [".vol" | ".nofollow" | ".resolve", _, ..]
        );
        // The file system of processes may be mounted elsewhere, as at `/host/proc`.
        let is_process = |name: &str| matches!(name, "self" | "thread-self") || name.bytes().all(|byte| byte.is_ascii_digit());
        let anywhere = match walked.as_slice() {
            [.., "proc", process, name] => is_process(process) && matches!(*name, "root" | "cwd" | "exe" | "fd" | "map_files" | "task"),
            _ => false,
        };
        at_root || anywhere
    })
}

/// Returns whether a path is a stream of the process that opens it.
pub(super) fn is_stream(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    matches!(name, "stdin" | "stdout" | "stderr") && path.split('/').any(|component| component == "dev")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_through_processes_and_tildes_are_other_names() {
        for path in "/proc/self/root/etc/shadow /proc//self/./cwd/x /proc/self /proc/thread-self/fd/3 /proc/1/root /proc/1/cwd/../x \
            /proc/1/x/../root /proc/77/task/78/root/x /proc/77/task/78/environ /proc/1/map_files/0-1 /host/proc/1/root/etc/shadow \
            proc/self/root/x ../../proc/1/cwd/x ~/../../proc/self/root /var/run/../proc/1/root/x /dev/fd/3 /dev/./fd /.vol/16777220/2/etc \
            /.nofollow/etc/hosts ~root/.x ~+/x ~- ~1"
            .split_ascii_whitespace()
        {
            assert!(is_other_name(path), "{path}");
        }
        assert!(is_other_name(&"../".repeat(CLIMBS_MAX + 1)));
        for path in [
            "/proc/cpuinfo",
            "/proc/1/status",
            "~",
            "~/x",
            "a~1",
            "/dev/null",
            "/work/dev/fd",
            "/work/.vol/a",
            "src/proc/mod.rs",
            "../../x",
            "",
        ] {
            assert!(!is_other_name(path), "{path}");
        }
    }

    #[test]
    fn links_of_the_system_are_known_under_both_names() {
        assert_eq!(names_of("/bin/ls"), ["/usr/bin/ls"]);
        assert_eq!(names_of("/usr/bin"), ["/bin"]);
        assert!(names_of("/run/secrets/x").contains(&"/private/var/run/secrets/x".to_owned()));
        assert_eq!(places_of("/private/tmp/x"), ["/tmp/x"]);
        assert_eq!(places_of("/tmp/x"), Vec::<String>::new());
        assert_eq!(names_of("/work/bin"), Vec::<String>::new());
        assert_eq!(names_of("/binary"), Vec::<String>::new());
        assert_eq!(names_of("/system/volumes/data"), ["/"]);
    }
}
