//! How far a replay has come: which records of the source were acknowledged, and the file that keeps it.

use std::collections::{BTreeMap, VecDeque};
use std::fs::{File, OpenOptions, metadata, rename};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use serde::{Deserialize, Serialize};

use crate::own_file::{create_file, own};

/// A file of so many bytes is none of ours: a partition takes some twenty.
const BYTES_MAX: u64 = 4 << 20;

/// A record's place in the source: the line of a file (partition 0), or partition and offset in a topic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The partition.
    pub partition: i32,
    /// The line, or the offset.
    pub at: i64,
}

/// The file's content. It belongs to one source, one target and one set of options: with others its places would mean something else.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Progress {
    /// The file or the topic that records come from.
    pub source: String,
    /// The topic that records go to.
    pub target: String,
    /// The option `--topic`.
    pub topic: Option<String>,
    /// The option `--multiply`.
    pub multiply: u64,
    /// The option `--mark`.
    pub mark: String,
    /// How far times are moved in milliseconds, if they are.
    pub shift_ms: Option<i64>,
    /// For each partition, the last place up to which everything was acknowledged.
    pub acknowledged: BTreeMap<i32, i64>,
}

impl Progress {
    /// Reads the file, if there is one that holds something.
    ///
    /// # Errors
    /// It cannot be read, or it is the file of another replay than `wanted`.
    pub fn read(path: &Path, wanted: &Self) -> anyhow::Result<Option<Self>> {
        let mut text = Vec::new();
        match File::open(path).and_then(|file| file.take(BYTES_MAX).read_to_end(&mut text)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Ok(0) => return Ok(None),
            read => read.with_context(|| format!("--progress {}: cannot be read", path.display()))?,
        };
        let is_short = (text.len() as u64) < BYTES_MAX;
        ensure!(is_short, "--progress {}: it is no progress of a replay; name a file that is not there yet", path.display());
        let found: Self = serde_json::from_slice(&text)
            .with_context(|| format!("--progress {}: it is no progress of a replay; name a file that is not there yet", path.display()))?;
        let differs = [
            ("SOURCE", found.source != wanted.source),
            ("--to", found.target != wanted.target),
            ("--topic", found.topic != wanted.topic),
            ("--multiply", found.multiply != wanted.multiply),
            ("--mark", found.mark != wanted.mark),
            ("--shift-time", found.shift_ms.is_some() != wanted.shift_ms.is_some()),
        ];
        let differs: Vec<_> = differs.into_iter().filter(|(_, differs)| *differs).map(|(name, _)| name).collect();
        ensure!(
            differs.is_empty(),
            "--progress {}: it belongs to a replay with another {}; go on with the same options, or remove the file to begin anew",
            path.display(),
            differs.join(" and ")
        );
        Ok(Some(found))
    }
}

/// The file of a replay that runs. No other replay can take the file for as long as this lives.
#[derive(Debug)]
pub struct ProgressFile {
    path: PathBuf,
    /// The file that stands there now.
    owned: File,
}

impl ProgressFile {
    /// Takes the file, and makes an empty one if there is none.
    ///
    /// # Errors
    /// The file cannot be written, or another replay has it.
    pub fn take(path: &Path) -> anyhow::Result<Self> {
        let taken = || -> io::Result<File> {
            loop {
                let file = OpenOptions::new().write(true).create(true).truncate(false).open(path)?;
                // A replay that ran may have put a new file in the place of the opened file, and have ended since.
                if !own(&file)? || metadata(path).is_ok_and(|found| file.metadata().is_ok_and(|opened| found.ino() == opened.ino())) {
                    return Ok(file);
                }
            }
        };
        Ok(Self { owned: taken().with_context(|| cannot_write(path))?, path: path.to_owned() })
    }

    /// Writes the file as a whole: whoever reads it finds the old one or the new one.
    ///
    /// # Errors
    /// The folder cannot be written to.
    pub fn write(&mut self, progress: &Progress) -> anyhow::Result<()> {
        let mut beside = self.path.as_os_str().to_owned();
        beside.push(".new");
        let written = || -> io::Result<File> {
            let mut file = create_file(Path::new(&beside))?;
            file.write_all(&serde_json::to_vec(progress)?)?;
            file.sync_all()?;
            rename(&beside, &self.path)?;
            Ok(file)
        };
        let new = written().with_context(|| cannot_write(&self.path))?;
        // The old file is let go once the new one stands in its place.
        let _old = std::mem::replace(&mut self.owned, new);
        Ok(())
    }
}

fn cannot_write(path: &Path) -> String {
    format!("--progress {}: cannot be written", path.display())
}

/// Records on their way, in the order in which they were sent.
#[derive(Debug, Default)]
pub struct Tracker {
    /// By partition: places, and how many copies are not acknowledged.
    partitions: BTreeMap<i32, VecDeque<(i64, u64)>>,
    /// For each partition, the last place up to which everything was acknowledged.
    pub acknowledged: BTreeMap<i32, i64>,
}

impl Tracker {
    /// Notes that so many copies of a record are about to be sent.
    pub fn send(&mut self, place: Place, copies: u64) {
        self.partitions.entry(place.partition).or_default().push_back((place.at, copies));
    }

    /// Notes that one copy was acknowledged, or refused for good.
    pub fn settle(&mut self, place: Place) {
        let Some(partition) = self.partitions.get_mut(&place.partition) else { return };
        if let Ok(found) = partition.binary_search_by_key(&place.at, |(at, _)| *at)
            && let Some((_, open)) = partition.get_mut(found)
        {
            *open = open.saturating_sub(1);
        }
        while let Some((at, 0)) = partition.front().copied() {
            self.acknowledged.insert(place.partition, at);
            partition.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(partition: i32, at: i64) -> Place {
        Place { partition, at }
    }

    #[test]
    fn only_what_has_no_gap_before_it_counts() {
        let mut tracker = Tracker::default();
        [place(0, 1), place(0, 4), place(0, 5), place(3, 90)].into_iter().for_each(|place| tracker.send(place, 2));
        [place(0, 4), place(0, 4), place(0, 1), place(3, 90), place(7, 7)].into_iter().for_each(|place| tracker.settle(place));
        assert_eq!(tracker.acknowledged, BTreeMap::new());
        tracker.settle(place(0, 1));
        assert_eq!(tracker.acknowledged, BTreeMap::from([(0, 4)]));
        [place(3, 90), place(0, 5), place(0, 5)].into_iter().for_each(|place| tracker.settle(place));
        assert_eq!(tracker.acknowledged, BTreeMap::from([(0, 5), (3, 90)]));
    }

    #[test]
    fn a_file_belongs_to_its_replay() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("progress");
        let wanted = Progress { source: "a".to_owned(), target: "t".to_owned(), multiply: 1, mark: "~".to_owned(), ..Progress::default() };
        assert_eq!(Progress::read(&path, &wanted).unwrap(), None);
        let kept = Progress { acknowledged: BTreeMap::from([(0, 17)]), ..wanted.clone() };
        let mut file = ProgressFile::take(&path).unwrap();
        assert_eq!(Progress::read(&path, &wanted).unwrap(), None, "an empty file says nothing");
        for _ in 0..2 {
            let error = format!("{:#}", ProgressFile::take(&path).unwrap_err());
            assert!(error.contains("progress: cannot be written: it is being written already"), "{error}");
            file.write(&kept).unwrap();
        }
        drop(file);
        ProgressFile::take(&path).unwrap();
        assert_eq!(Progress::read(&path, &wanted).unwrap(), Some(kept));
        let other = Progress { multiply: 2, shift_ms: Some(1), ..wanted.clone() };
        let error = Progress::read(&path, &other).unwrap_err().to_string();
        assert!(error.contains("another --multiply and --shift-time; go on with the same options"), "{error}");
        std::fs::write(&path, "{}").unwrap();
        assert!(Progress::read(&path, &wanted).unwrap_err().to_string().contains("no progress of a replay"));
    }
}
