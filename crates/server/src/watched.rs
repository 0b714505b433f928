//! Files that make a value: read at start, and read again when their bytes change.

use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use anyhow::Context as _;

use tollgate_worker::Stop;
use tollgate_worker::threads::MustRun;

/// How often the files are looked at.
const INTERVAL: Duration = Duration::from_secs(1);
/// How often the log says that a file cannot be read.
const SAID_AGAIN: Duration = Duration::from_secs(60);

/// The value in force, which later contents of the files replace.
#[derive(Debug)]
pub struct Current<T>(Arc<RwLock<Arc<T>>>);

impl<T> Clone for Current<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Current<T> {
    /// Returns a value in force.
    pub fn new(value: T) -> Self {
        Self(Arc::new(RwLock::new(Arc::new(value))))
    }

    /// Returns the value in force now.
    #[must_use]
    pub fn get(&self) -> Arc<T> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Replaces the value in force.
    pub(crate) fn set(&self, value: T) {
        let before = std::mem::replace(&mut *self.0.write().unwrap_or_else(PoisonError::into_inner), Arc::new(value));
        // The lock is free by now: the end of a value may ask for the value in force.
        drop(before);
    }
}

/// A file, with the setting that names it.
#[derive(Debug, Clone)]
pub struct NamedFile {
    /// The setting, as `serve.tokens`.
    pub setting: &'static str,
    /// The file's path.
    pub path: PathBuf,
}

impl NamedFile {
    /// Returns the file that a setting names.
    pub fn new(setting: &'static str, path: impl Into<PathBuf>) -> Self {
        Self { setting, path: path.into() }
    }

    fn read(&self) -> anyhow::Result<Vec<u8>> {
        // A pipe would be waited for without an end, and nothing would be read again.
        let is_file = std::fs::metadata(&self.path).map(|found| found.is_file());
        let read = is_file.and_then(|is_file| if is_file { std::fs::read(&self.path) } else { Err(ErrorKind::InvalidInput.into()) });
        read.with_context(|| format!("{}: the file {} cannot be read; name a readable file", self.setting, self.path.display()))
    }
}

/// Makes the value of the files' bytes, which stand in the order of the files.
type Make<T> = Box<dyn Fn(&[Vec<u8>]) -> anyhow::Result<T> + Send>;

/// Files that make one value, and the value in force.
pub struct Watched<T> {
    /// What the files hold, for the log: `tokens`.
    what: &'static str,
    files: Vec<NamedFile>,
    /// The bytes that were read last, whether they could be used or not.
    seen: Vec<Vec<u8>>,
    /// When the log said that a file cannot be read; nothing while the files can be read.
    said: Option<Instant>,
    make: Make<T>,
    current: Current<T>,
}

impl<T> std::fmt::Debug for Watched<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watched").field("files", &self.files).finish_non_exhaustive()
    }
}

impl<T: Send + Sync + 'static> Watched<T> {
    /// Reads the files. `what` says for the log what they hold.
    ///
    /// # Errors
    /// Returns a sentence for people if a file cannot be read or is wrong.
    pub fn read(
        what: &'static str,
        files: Vec<NamedFile>,
        make: impl Fn(&[Vec<u8>]) -> anyhow::Result<T> + Send + 'static,
    ) -> anyhow::Result<Self> {
        let seen = read_all(&files)?;
        let current = Current::new(make(&seen)?);
        Ok(Self { what, files, seen, said: None, make: Box::new(make), current })
    }

    /// Returns the value in force.
    #[must_use]
    pub fn current(&self) -> Current<T> {
        self.current.clone()
    }

    /// Looks at the files again and again until the sign to stop. Files that are wrong change nothing, and are named in the log.
    ///
    /// # Errors
    /// The system gives no more threads.
    pub fn watch(mut self, must_run: MustRun, stop: Stop) -> std::io::Result<()> {
        must_run
            .spawn(move || {
                while !stop.wait(INTERVAL) {
                    self.look();
                }
            })
            .map(drop)
    }

    /// Reads the files, and puts what they hold in force if it is another thing and right.
    fn look(&mut self) {
        let made = match read_all(&self.files) {
            Ok(bytes) => {
                self.said = None;
                if bytes == self.seen {
                    return;
                }
                self.seen = bytes;
                (self.make)(&self.seen)
            }
            Err(_) if self.said.is_some_and(|said| said.elapsed() < SAID_AGAIN) => return,
            Err(error) => {
                self.said = Some(Instant::now());
                Err(error)
            }
        };
        match made {
            Ok(value) => {
                self.current.set(value);
                tracing::info!("the changed {} are in force", self.what);
            }
            Err(error) => {
                tracing::warn!(error = format!("{error:#}"), "the changed {0} cannot be used; the {0} before stay in force", self.what)
            }
        }
    }
}

fn read_all(files: &[NamedFile]) -> anyhow::Result<Vec<Vec<u8>>> {
    files.iter().map(NamedFile::read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_files_are_in_force_and_wrong_files_change_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        let file = |name: &str| NamedFile::new("serve.tokens", folder.path().join(name));
        let sum = |bytes: &[Vec<u8>]| -> anyhow::Result<i32> {
            bytes.iter().map(|bytes| Ok(std::str::from_utf8(bytes)?.parse::<i32>()?)).sum::<anyhow::Result<i32>>()
        };
        write("a", "1");
        let missing = Watched::read("numbers", vec![file("a"), file("b")], sum).unwrap_err();
        assert!(
            missing.to_string().starts_with("serve.tokens: the file ") && missing.to_string().contains("/b cannot be read"),
            "{missing}"
        );
        write("b", "2");
        let mut watched = Watched::read("numbers", vec![file("a"), file("b")], sum).unwrap();
        let current = watched.current();
        for (text, expected) in [("5", 6), ("plain", 6), ("7", 8)] {
            write("b", text);
            watched.look();
            assert_eq!(*current.get(), expected, "{text}");
        }
        std::fs::remove_file(folder.path().join("a")).unwrap();
        watched.look();
        let said = watched.said;
        watched.look();
        assert_eq!((*current.get(), said.is_some(), watched.said), (8, true, said), "the log says so once a minute");
        write("a", "2");
        watched.look();
        assert_eq!((*current.get(), watched.said), (9, None));
    }
}
