//! Faults of a configuration: they are collected, so that one run reports all of them.

use std::cell::RefCell;

use super::{Accepted, Notes, YamlError};

/// One fault of a configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The key as a dotted path. If a variable set it, the variable follows in parentheses.
    pub key: String,
    /// The shape of what was found there.
    pub found: String,
    /// What to write instead.
    pub fix: String,
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: found {}; {}", self.key, self.found, self.fix)
    }
}

/// All faults of a configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Faults(pub Vec<Fault>);

impl std::fmt::Display for Faults {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (index, fault) in self.0.iter().enumerate() {
            write!(f, "{}{fault}", if index > 0 { "\n" } else { "" })?;
        }
        Ok(())
    }
}

impl std::error::Error for Faults {}

impl Faults {
    /// Returns the single fault of a text that is not YAML.
    #[must_use]
    pub fn of(origin: &str, error: &YamlError) -> Self {
        let (found, fix) = (format!("what is not YAML ({error})"), "write a mapping of sections".to_owned());
        Self(vec![Fault { key: origin.to_owned(), found, fix }])
    }
}

/// The collection that faults are added to while sections are read.
#[derive(Debug, Default)]
pub struct Collector {
    faults: RefCell<Vec<Fault>>,
    /// What readers take, if that is asked for.
    notes: Option<RefCell<Notes>>,
}

impl Collector {
    /// Returns a collector that notes what readers take, too.
    #[must_use]
    pub fn noting() -> Self {
        Self { notes: Some(RefCell::default()), ..Self::default() }
    }

    /// Notes what a reader accepts at a path.
    pub(super) fn accept(&self, path: impl FnOnce() -> String, accepted: Accepted) {
        if let Some(notes) = &self.notes {
            notes.borrow_mut().accept(&path(), accepted);
        }
    }

    /// Notes that a key has to be written.
    pub(super) fn require(&self, path: impl FnOnce() -> String) {
        if let Some(notes) = &self.notes {
            notes.borrow_mut().require(&path());
        }
    }

    /// Returns what was noted.
    #[must_use]
    pub fn into_notes(self) -> Notes {
        self.notes.map(RefCell::into_inner).unwrap_or_default()
    }

    /// Adds a fault, unless it is there already, because a key may be read more than once.
    pub(super) fn push(&self, fault: Fault) {
        let mut faults = self.faults.borrow_mut();
        if !faults.contains(&fault) {
            faults.push(fault);
        }
    }

    /// Returns the value, or the faults if there are any.
    pub fn into_result<T>(self, value: T) -> Result<T, Faults> {
        let faults = self.faults.into_inner();
        if faults.is_empty() { Ok(value) } else { Err(Faults(faults)) }
    }
}
