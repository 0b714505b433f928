//! Files that commands write beside what they print.

use std::fs::{File, metadata};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use anyhow::{Context as _, ensure};

/// Makes the file that an option names, and empties it if it is there, unless it is one of those that the command reads.
///
/// # Errors
/// It is one of these, or it cannot be written.
pub(crate) fn create(option: &str, path: &Path, reads: &[&Path]) -> anyhow::Result<File> {
    check(option, path, reads)?;
    File::create(path).with_context(|| format!("{option} {}: cannot be written", path.display()))
}

/// Checks that an option names none of the files that the command reads, whatever the file is called there.
///
/// # Errors
/// It does.
pub(crate) fn check(option: &str, path: &Path, reads: &[&Path]) -> anyhow::Result<()> {
    let identity = |path: &Path| metadata(path).ok().filter(std::fs::Metadata::is_file).map(|found| (found.dev(), found.ino()));
    let is_read = identity(path).is_some_and(|found| reads.iter().any(|read| identity(read) == Some(found)));
    ensure!(!is_read, "{option}: found {}, which this command reads; name another file", path.display());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_is_never_emptied() {
        let folder = tempfile::tempdir().unwrap();
        let [read, link, other] = ["read", "link", "other"].map(|name| folder.path().join(name));
        std::fs::write(&read, "kept").unwrap();
        std::fs::hard_link(&read, &link).unwrap();
        for named in [&read, &link, &folder.path().join("./read")] {
            let error = create("--flips", named, &[&other, &read]).unwrap_err().to_string();
            assert!(error.starts_with("--flips: found ") && error.ends_with("which this command reads; name another file"), "{error}");
        }
        create("--flips", &other, &[&read, Path::new("-"), Path::new("topic:a")]).unwrap();
        let error = create("--flips", &folder.path().join("no/such"), &[&read]).unwrap_err().to_string();
        assert!(error.ends_with("no/such: cannot be written"), "{error}");
        assert_eq!(std::fs::read_to_string(&read).unwrap(), "kept");
    }
}
