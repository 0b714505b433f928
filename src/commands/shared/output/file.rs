//! Where commands write: to stdout, and to files beside it. An error of writing names the place.

use std::fs::{File, metadata};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use anyhow::{Context as _, ensure};
use tollgate_recordings::create_file;

/// stdout, for a result that is known as a whole before it is printed. If the reader has gone, the bytes count as written: the command says the
/// rest on stderr, and ends with the exit code of its result.
#[derive(Debug)]
pub(crate) struct Finding;

impl Write for Finding {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        passed(io::stdout().write(bytes), bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        passed(io::stdout().flush(), ())
    }
}

fn passed<T>(written: io::Result<T>, unread: T) -> io::Result<T> {
    match written {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(unread),
        written => written.map_err(stdout_error),
    }
}

/// Returns an error of writing to stdout that names stdout. The error of a reader that has gone stays, since it decides the exit code.
pub(crate) fn stdout_error(error: io::Error) -> io::Error {
    if error.kind() == ErrorKind::BrokenPipe { error } else { io::Error::new(error.kind(), format!("stdout: cannot be written: {error}")) }
}

/// Returns whether a command failed because the reader of its output has gone. Files and connections name themselves in their errors.
pub(crate) fn is_reader_gone(error: &anyhow::Error) -> bool {
    let is_alone = error.chain().nth(1).is_none();
    is_alone
        && error.downcast_ref::<io::Error>().is_some_and(|error| error.raw_os_error().is_some() && error.kind() == ErrorKind::BrokenPipe)
}

/// A file that an option names.
#[derive(Debug)]
pub(crate) struct OutputFile {
    file: File,
    /// The option and the file.
    name: String,
}

impl OutputFile {
    fn named(&self, error: &io::Error) -> io::Error {
        io::Error::new(error.kind(), format!("{}: cannot be written to its end, and holds a part: {error}", self.name))
    }
}

impl Write for OutputFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes).map_err(|error| self.named(&error))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush().map_err(|error| self.named(&error))
    }
}

/// Makes the file that an option names, and empties it if it is there, unless it is one of those that the command reads or another process
/// writes.
///
/// # Errors
/// It is one of these, or it cannot be written.
pub(crate) fn create(option: &str, path: &Path, reads: &[&Path]) -> anyhow::Result<OutputFile> {
    check(option, path, reads)?;
    let name = format!("{option} {}", path.display());
    let file = create_file(path).with_context(|| format!("{name}: cannot be written"))?;
    Ok(OutputFile { file, name })
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
