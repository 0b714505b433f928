//! The places of keys in a YAML text, and which parts of it may hold a secret.
//!
//! The values themselves come from elsewhere: this only says where they stand, for errors.

use std::collections::BTreeMap;

use tollgate_core::settings::Secret;
use yaml_rust2::parser::{Event, MarkedEventReceiver, Parser};
use yaml_rust2::scanner::{Marker, ScanError};

/// A place in a text: line and column, from 1, in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    /// The line.
    pub(super) line: usize,
    /// The column.
    pub(super) column: usize,
}

/// The place of one key and of its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry {
    /// The key's place; for an element of a list, the element's.
    pub(super) key: Place,
    /// The value's place.
    pub(super) value: Place,
}

/// A scalar value: the path of its key, where it begins, and where the next thing begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Scalar {
    pub(super) path: String,
    pub(super) begin: Place,
    pub(super) end: Place,
    pub(super) text: Secret,
}

/// The places in a text.
#[derive(Debug, Default)]
pub(super) struct Places {
    /// By path, as faults write it: `a.b[0].c`.
    pub(super) entries: BTreeMap<String, Entry>,
    pub(super) scalars: Vec<Scalar>,
}

impl Places {
    /// Returns the places in the first document of a text.
    pub(super) fn of(text: &str) -> Result<Self, ScanError> {
        let mut walk = Walk::default();
        Parser::new_from_str(text).load(&mut walk, false)?;
        Ok(walk.places)
    }

    /// Returns the entry of a path, or of the nearest one above it. The flag says whether it is the path's own.
    pub(super) fn nearest(&self, path: &str) -> Option<(Entry, bool)> {
        if let Some(entry) = self.entries.get(path) {
            return Some((*entry, true));
        }
        let mut above = path;
        while let Some(at) = above.rfind(['.', '[']) {
            above = above.get(..at)?;
            if let Some(entry) = self.entries.get(above) {
                return Some((*entry, false));
            }
        }
        None
    }
}

impl From<&Marker> for Place {
    fn from(marker: &Marker) -> Self {
        Self { line: marker.line(), column: marker.col() + 1 }
    }
}

/// A container that is open.
#[derive(Debug)]
enum Open {
    /// A mapping, and its key whose value comes next.
    Mapping { path: String, key: Option<(String, Place)> },
    /// A list, and the number of its next element.
    List { path: String, next: usize },
}

/// The state of a walk over the events of a parser.
#[derive(Debug, Default)]
struct Walk {
    places: Places,
    open: Vec<Open>,
    /// The last scalar, whose end is not known yet.
    scalar: Option<Scalar>,
    is_done: bool,
}

impl MarkedEventReceiver for Walk {
    fn on_event(&mut self, event: Event, mark: Marker) {
        let place = Place::from(&mark);
        if let Some(scalar) = self.scalar.take() {
            self.places.scalars.push(Scalar { end: place, ..scalar });
        }
        match event {
            _ if self.is_done => {}
            Event::Scalar(text, ..) => self.scalar(text, place),
            Event::Alias(_) => self.scalar(String::new(), place),
            Event::MappingStart(..) => {
                let path = self.value(place);
                self.open.push(Open::Mapping { path, key: None });
            }
            Event::SequenceStart(..) => {
                let path = self.value(place);
                self.open.push(Open::List { path, next: 0 });
            }
            Event::MappingEnd | Event::SequenceEnd => drop(self.open.pop()),
            Event::DocumentEnd => self.is_done = true,
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentStart => {}
        }
    }
}

impl Walk {
    fn scalar(&mut self, text: String, place: Place) {
        if let Some(Open::Mapping { path, key: key @ None }) = self.open.last_mut() {
            *key = Some((text, place));
            // The parser says that a block of keys begins behind its first key.
            if let Some(entry) = self.places.entries.get_mut(path).filter(|entry| entry.value > place) {
                entry.key = if entry.key == entry.value { place } else { entry.key };
                entry.value = place;
            }
            return;
        }
        let path = self.value(place);
        self.scalar = Some(Scalar { path, begin: place, end: place, text: Secret(text) });
    }

    /// Notes a value that begins here, and returns its path.
    fn value(&mut self, value: Place) -> String {
        let (path, key) = match self.open.last_mut() {
            None => return String::new(),
            Some(Open::Mapping { path, key }) => {
                let (name, place) = key.take().unwrap_or_else(|| (String::new(), value));
                (if path.is_empty() { name } else { format!("{path}.{name}") }, place)
            }
            Some(Open::List { path, next }) => {
                *next += 1;
                (format!("{path}[{}]", *next - 1), value)
            }
        };
        self.places.entries.insert(path.clone(), Entry { key, value });
        path
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_values_are_found() {
        let text = "a: 1\nb:\n  - use: x\n    c: {d: 2, e.f: [3, 4]}\n  - y\n# g: 5\n\"h\": |\n  text\n  more\ni: z\n";
        let places = Places::of(text).unwrap();
        let at = |path: &str| {
            let Entry { key, value } = places.entries[path];
            ((key.line, key.column), (value.line, value.column))
        };
        assert_eq!(at("a"), ((1, 1), (1, 4)));
        assert_eq!(at("b[0].use"), ((3, 5), (3, 10)));
        assert_eq!(at("b[0].c.d"), ((4, 9), (4, 12)));
        assert_eq!(at("b[0].c.e.f[1]"), ((4, 24), (4, 24)));
        assert_eq!(at("b[1]"), ((5, 5), (5, 5)));
        assert_eq!(at("h").0, (7, 1));
        assert_eq!(at("i"), ((10, 1), (10, 4)));
        assert_eq!(places.nearest("b[0].c.zzz").map(|(entry, own)| (entry.key.line, own)), Some((4, false)));
        assert_eq!(places.nearest("zzz"), None);
        let block = places.scalars.iter().find(|scalar| scalar.path == "h").unwrap();
        assert!(block.begin.line <= 8 && block.end.line == 10, "{block:?}");
        assert!(Places::of("a: [").is_err());
    }
}
