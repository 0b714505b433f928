//! The offset tracker of a partition: which records are finished, and up to which offset all of them are.
//!
//! A record is opened with the number of publications that it waits for, and finished when all of them are acknowledged. A record that
//! cannot be decided yet is opened as undecided and gets that number later. The offset behind the longest run of finished records from the
//! front is committable: it is never ahead of a verdict that is not acknowledged. Offsets may have gaps, which compaction and transaction
//! markers leave, but they only go up.

use std::collections::VecDeque;

use crate::event::record::Offset;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Entry {
    offset: Offset,
    /// How many publications are not acknowledged yet; `None` while the record is undecided.
    unacknowledged: Option<u32>,
}

/// Tracks which records of a partition are finished, and up to which offset all of them are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OffsetTracker {
    entries: VecDeque<Entry>,
    /// The last offset that was opened.
    opened: Option<Offset>,
    /// The offset behind the run of finished records.
    committable: Option<Offset>,
}

/// A misuse of an offset tracker. Each is a fault of the caller, who must not commit after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TrackerError {
    /// A record was opened at or below one that was opened before.
    #[error("offset {offset} was opened after {opened}")]
    NotAscending {
        /// The offset of the record.
        offset: Offset,
        /// The last offset that was opened before it.
        opened: Offset,
    },
    /// An acknowledgement came for a record that is not open, or not decided.
    #[error("offset {0} is not open")]
    NotOpen(Offset),
    /// A decision came for a record that does not wait for one.
    #[error("offset {0} is not undecided")]
    NotUndecided(Offset),
}

impl OffsetTracker {
    /// Opens a record that waits for `unacknowledged` acknowledgements. A record that waits for none is finished at once.
    ///
    /// # Errors
    /// [`TrackerError::NotAscending`] if `offset` is not above every one before it.
    pub fn open(&mut self, offset: Offset, unacknowledged: u32) -> Result<(), TrackerError> {
        self.push(Entry { offset, unacknowledged: Some(unacknowledged) })
    }

    /// Opens a record that is decided later.
    ///
    /// # Errors
    /// [`TrackerError::NotAscending`] if `offset` is not above every one before it.
    pub fn open_undecided(&mut self, offset: Offset) -> Result<(), TrackerError> {
        self.push(Entry { offset, unacknowledged: None })
    }

    /// Sets how many acknowledgements an undecided record waits for.
    ///
    /// # Errors
    /// [`TrackerError::NotUndecided`] if the record does not wait for a decision.
    pub fn decide(&mut self, offset: Offset, unacknowledged: u32) -> Result<(), TrackerError> {
        match self.entry(offset) {
            Some(entry) if entry.unacknowledged.is_none() => entry.unacknowledged = Some(unacknowledged),
            _ => return Err(TrackerError::NotUndecided(offset)),
        }
        self.advance();
        Ok(())
    }

    /// Takes one acknowledgement for a record.
    ///
    /// # Errors
    /// [`TrackerError::NotOpen`] if the record was never opened, is not decided, or has all its acknowledgements already.
    pub fn acknowledge(&mut self, offset: Offset) -> Result<(), TrackerError> {
        match self.entry(offset).and_then(|entry| entry.unacknowledged.as_mut()) {
            Some(unacknowledged) if *unacknowledged > 0 => *unacknowledged -= 1,
            _ => return Err(TrackerError::NotOpen(offset)),
        }
        self.advance();
        Ok(())
    }

    fn push(&mut self, entry: Entry) -> Result<(), TrackerError> {
        if let Some(opened) = self.opened.filter(|opened| entry.offset <= *opened) {
            return Err(TrackerError::NotAscending { offset: entry.offset, opened });
        }
        self.opened = Some(entry.offset);
        self.entries.push_back(entry);
        self.advance();
        Ok(())
    }

    fn entry(&mut self, offset: Offset) -> Option<&mut Entry> {
        // Most records are decided as soon as they are opened.
        if self.opened == Some(offset) {
            return self.entries.back_mut().filter(|entry| entry.offset == offset);
        }
        let at = self.entries.binary_search_by_key(&offset, |entry| entry.offset).ok()?;
        self.entries.get_mut(at)
    }

    /// Returns the offset behind the longest run of finished records from the front. Nothing beyond it may be committed.
    #[must_use]
    pub fn committable(&self) -> Option<Offset> {
        self.committable
    }

    /// Returns how many records are in flight: not finished, or behind one that is not.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.entries.len()
    }

    fn advance(&mut self) {
        while let Some(entry) = self.entries.front().filter(|entry| entry.unacknowledged == Some(0)) {
            self.committable = Some(entry.offset.next());
            self.entries.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_undecided_record_holds_the_run_back() {
        let mut tracker = OffsetTracker::default();
        tracker.open_undecided(Offset(0)).unwrap();
        tracker.open(Offset(1), 0).unwrap();
        assert_eq!((tracker.committable(), tracker.in_flight()), (None, 2));
        assert_eq!(tracker.acknowledge(Offset(0)), Err(TrackerError::NotOpen(Offset(0))));
        tracker.decide(Offset(0), 1).unwrap();
        assert_eq!(tracker.committable(), None);
        tracker.acknowledge(Offset(0)).unwrap();
        assert_eq!(tracker.committable(), Some(Offset(2)));
    }
}
