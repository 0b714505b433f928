//! Watching the files of the jail: what has changed, and making it as it was.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use crate::commands::files::{OUT, WORK};

/// Folders that are watched with everything below them.
const DEEP: [&str; 5] = [WORK, "/home", "/tmp", "/etc", "/var"];

/// Folders whose entries are watched.
const SHALLOW: [&str; 5] = ["/", "/usr/lib", "/usr/local", "/dev", "/dev/shm"];

/// What git may set in its configuration without a consequence.
const HARMLESS_SETTINGS: [&str; 5] = ["[", "name ", "email ", "defaultbranch ", "logallrefupdates "];

/// What shows that a file is still the same one.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Stamp {
    inode: u64,
    mode: u32,
    /// Size and times; nothing for folders, which show what changes by their entries.
    contents: Option<(u64, i64, i64, i64, i64)>,
}

impl Stamp {
    fn of(data: &fs::Metadata) -> Self {
        let contents = (data.size(), data.mtime(), data.mtime_nsec(), data.ctime(), data.ctime_nsec());
        // Devices change by being used.
        let is_contents = data.is_file() || data.is_symlink();
        Self { inode: data.ino(), mode: data.mode(), contents: is_contents.then_some(contents) }
    }
}

/// What a file has to be.
#[derive(Debug, Clone)]
enum Pristine {
    Folder(u32),
    File(u32, Vec<u8>),
    Link(PathBuf),
    Other,
}

/// The state of the watched places.
#[derive(Debug)]
pub(in crate::commands) struct Places {
    stamps: BTreeMap<PathBuf, Stamp>,
    pristine: BTreeMap<PathBuf, Pristine>,
    out: PathBuf,
}

impl Places {
    /// Takes all places as they are for what they have to be.
    ///
    /// # Errors
    /// If they cannot be read.
    pub(super) fn watch() -> io::Result<Self> {
        let out = Path::new(WORK).join(OUT);
        let stamps = scan(&out);
        let mut pristine = BTreeMap::new();
        for path in stamps.keys() {
            let data = fs::symlink_metadata(path)?;
            let mode = data.mode() & 0o7777;
            let entry = if data.is_dir() {
                Pristine::Folder(mode)
            } else if data.is_symlink() {
                Pristine::Link(fs::read_link(path)?)
            } else if data.is_file() {
                Pristine::File(mode, fs::read(path)?)
            } else {
                Pristine::Other
            };
            pristine.insert(path.clone(), entry);
        }
        Ok(Self { stamps, pristine, out })
    }

    /// Returns the paths that are not what they were.
    pub(super) fn changed(&self) -> Vec<PathBuf> {
        let now = scan(&self.out);
        if now == self.stamps {
            return Vec::new();
        }
        let gone = self.stamps.keys().filter(|path| !now.contains_key(*path));
        let other = now.iter().filter(|(path, stamp)| self.stamps.get(*path) != Some(stamp)).map(|(path, _)| path);
        gone.chain(other).cloned().collect()
    }

    /// Returns the first of the changed paths that a line with these programs may not change.
    pub(super) fn harmed<'p>(&self, changed: &'p [PathBuf], has_git: bool) -> Option<&'p Path> {
        let is_harm = |path: &Path| {
            let Ok(below) = path.strip_prefix(WORK) else { return !is_shells_own(path) };
            if !has_git {
                return true;
            }
            if below.starts_with("tracked") || below == Path::new(".git") {
                return false;
            }
            match below.strip_prefix(".git") {
                Ok(config) if config == Path::new("config") => !self.is_harmless_config(path),
                Ok(inner) => inner.starts_with("hooks") || inner.starts_with("info"),
                Err(_) => true,
            }
        };
        changed.iter().map(PathBuf::as_path).find(|path| is_harm(path))
    }

    fn is_harmless_config(&self, path: &Path) -> bool {
        let Some(Pristine::File(_, before)) = self.pristine.get(path) else { return false };
        let before = String::from_utf8_lossy(before);
        let now = fs::read(path).unwrap_or_default();
        String::from_utf8_lossy(&now).lines().filter(|line| !before.lines().any(|old| old == *line)).all(|line| {
            let line = line.trim().to_ascii_lowercase();
            line.is_empty() || HARMLESS_SETTINGS.iter().any(|setting| line.starts_with(setting))
        })
    }

    /// Makes the changed paths as they were.
    ///
    /// # Errors
    /// If that is not possible; the jail is of no use then.
    pub(super) fn restore(&mut self, changed: &[PathBuf]) -> io::Result<()> {
        for path in changed.iter().rev() {
            match self.pristine.get(path) {
                // It has to go unless it is a folder that only has another mode.
                Some(Pristine::Folder(_)) if fs::symlink_metadata(path).is_ok_and(|data| data.is_dir()) => {}
                _ => remove(path)?,
            }
        }
        let mut paths: Vec<&PathBuf> = changed.iter().collect();
        paths.sort();
        for path in paths {
            match self.pristine.get(path) {
                Some(Pristine::Folder(mode)) => {
                    fs::create_dir_all(path)?;
                    fs::set_permissions(path, fs::Permissions::from_mode(*mode))?;
                }
                Some(Pristine::File(mode, bytes)) => {
                    fs::write(path, bytes)?;
                    fs::set_permissions(path, fs::Permissions::from_mode(*mode))?;
                }
                Some(Pristine::Link(target)) => symlink(target, path)?,
                Some(Pristine::Other) => return Err(io::Error::other(format!("{} is gone", path.display()))),
                None => {}
            }
        }
        self.stamps = scan(&self.out);
        Ok(())
    }

    /// Empties the folder that may be written.
    ///
    /// # Errors
    /// If that is not possible.
    pub(super) fn empty_out(&self) -> io::Result<()> {
        for entry in fs::read_dir(&self.out)? {
            remove(&entry?.path())?;
        }
        Ok(())
    }
}

fn remove(path: &Path) -> io::Result<()> {
    let result = match fs::symlink_metadata(path) {
        Ok(data) if data.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    result.or_else(|error| if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) })
}

fn scan(out: &Path) -> BTreeMap<PathBuf, Stamp> {
    let mut stamps = BTreeMap::new();
    let mut folders: Vec<(PathBuf, bool)> = Vec::new();
    folders.extend(SHALLOW.map(|folder| (folder.into(), false)));
    folders.extend(DEEP.map(|folder| (folder.into(), true)));
    while let Some((folder, deep)) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            // The place of an entry that is gone already shows as a change.
            let Ok(data) = entry.metadata() else { continue };
            let path = entry.path();
            if deep && data.is_dir() && path != out {
                folders.push((path.clone(), true));
            }
            stamps.insert(path, Stamp::of(&data));
        }
    }
    stamps
}

/// Returns whether a file is one that zsh or bash keeps a here-document in. A shell that is killed leaves it.
fn is_shells_own(path: &Path) -> bool {
    let name = path.strip_prefix("/tmp").ok().and_then(Path::to_str).unwrap_or_default();
    let random = name.strip_prefix("zsh").or_else(|| name.strip_prefix("sh-thd."));
    random.is_some_and(|random| random.len() == 6 && random.bytes().all(|byte| byte.is_ascii_alphanumeric()))
}
