//! Files that one process writes at a time. Two processes would write into each other's lines.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::Path;

/// Makes a file, or empties a file that is there, unless another process writes that file.
///
/// # Errors
/// The file cannot be written, or another process writes it.
pub fn create_file(path: &Path) -> io::Result<File> {
    // It is emptied only once it is known that nobody else writes it.
    let file = OpenOptions::new().write(true).create(true).truncate(false).open(path)?;
    if own(&file)? {
        file.set_len(0)?;
    }
    Ok(file)
}

/// Takes a file for this process, for as long as the file is open. Returns `false` for a pipe or a device, which anybody may write.
///
/// # Errors
/// Another process has it, or the file system has no locks.
pub(crate) fn own(file: &File) -> io::Result<bool> {
    if !file.metadata()?.is_file() {
        return Ok(false);
    }
    match file.try_lock() {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Err(io::Error::other(
            "it is being written already; let the process that writes it end (`fuser FILE` names it), or name another file",
        )),
        // Some file systems know no locks.
        Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => Ok(true),
        Err(TryLockError::Error(error)) => Err(error),
    }
}
