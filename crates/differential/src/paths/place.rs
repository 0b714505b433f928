//! Where the kernel leads, and whether that is in a list: written anew and simply, so that it does not share the rules' mistakes.

use std::fs::{self, File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// The home directory that tools are taken to have.
pub(super) const HOME: &str = "/home/u";

/// `O_PATH` on Linux: the place is found, and not opened for reading.
const O_PATH: i32 = 0o10_000_000;

/// Returns the place that a tool reaches with a path, or would make there; `None` if there is nothing.
pub(super) fn reached(path: &str) -> Option<String> {
    let expanded = match path.strip_prefix('~') {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => format!("{HOME}{rest}"),
        _ => path.to_owned(),
    };
    if let Some(place) = opened(&expanded) {
        return Some(place);
    }
    // A new file is made where its directory is.
    let (directory, name) = expanded.rsplit_once('/').unwrap_or((".", &expanded));
    let directory = if directory.is_empty() { "/" } else { directory };
    if matches!(name, "" | "." | "..") {
        return None;
    }
    opened(directory).filter(|place| fs::metadata(place).is_ok_and(|found| found.is_dir())).map(|place| joined(&place, name))
}

fn opened(path: &str) -> Option<String> {
    let file: File = OpenOptions::new().read(true).custom_flags(O_PATH).open(path).ok()?;
    let link = fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).ok()?;
    link.to_str().map(str::to_owned)
}

fn joined(directory: &str, name: &str) -> String {
    format!("{}/{name}", directory.trim_end_matches('/'))
}

/// Returns whether a place is in an entry of a list of allowed paths.
pub(super) fn is_allowed(place: &str, entry: &str, directory: &str) -> bool {
    match (entry, entry.strip_suffix("/**").or_else(|| entry.strip_suffix("/*"))) {
        ("*", _) => true,
        (_, Some(base)) if entry.ends_with("/**") => is_below(place, &base_of(base, directory)),
        (_, Some(base)) => {
            let base = base_of(base, directory);
            is_below(place, &base) && Path::new(place).parent() == Some(Path::new(&base))
        }
        (_, None) => is_below(place, &base_of(entry, directory)),
    }
}

/// Returns whether a place is in an entry of a list of blocked paths.
pub(super) fn is_blocked(place: &str, entry: &str) -> bool {
    let components: Vec<&str> = place.split('/').filter(|component| !component.is_empty()).collect();
    if entry == "*.pem" {
        return components.iter().any(|component| component.ends_with(".pem"));
    }
    if let Some(rest) = entry.strip_prefix("~/") {
        let homes = ["/root", HOME, "/home/bob"];
        return homes.iter().any(|home| is_below(place, &format!("{home}/{rest}")));
    }
    if entry.starts_with('/') {
        return is_below(place, &base_of(entry, "/"));
    }
    let parts: Vec<&str> = entry.split('/').collect();
    components.windows(parts.len()).any(|window| window == parts)
}

/// Returns whether a place is in one that is never read.
pub(super) fn is_secret(place: &str) -> bool {
    let named = |name: &str| place.split('/').any(|component| component == name);
    let places = ["/etc/shadow", "/etc/ssl/private", "/run/secrets"];
    [".env", ".ssh", ".aws", "credentials", "id_rsa"].into_iter().any(named) || places.iter().any(|secret| is_below(place, secret))
}

/// Returns where an entry of a list is, from a working directory.
pub(super) fn base_of(entry: &str, directory: &str) -> String {
    let whole = match entry.strip_prefix('~') {
        Some(rest) => format!("{HOME}{rest}"),
        None if entry.starts_with('/') => entry.to_owned(),
        None => joined(directory, entry.trim_start_matches("./").trim_end_matches('.')),
    };
    let led = fs::canonicalize(&whole).ok().and_then(|path| path.to_str().map(str::to_owned));
    let whole = led.unwrap_or(whole);
    let trimmed = whole.trim_end_matches('/');
    if trimmed.is_empty() { "/".to_owned() } else { trimmed.to_owned() }
}

/// Returns whether a place is a directory or below it.
pub(super) fn is_below(place: &str, directory: &str) -> bool {
    directory == "/" && place.starts_with('/') || place.strip_prefix(directory).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}
