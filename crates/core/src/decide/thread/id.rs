//! Ids of threads and turns in little memory: a UUID takes 16 bytes in place of the 36 of its text.
//!
//! A partition holds a million threads, most of which wait, so what an id takes is a good part of what a thread takes. An id is the text that it
//! was given as, byte by byte: only the usual spelling of a UUID, in lower case and with its dashes, is packed.

use std::fmt;
use std::hash::{Hash, Hasher};

use serde::{Serialize, Serializer};
use uuid_simd::{AsOut as _, AsciiCase, format_hyphenated, parse_hyphenated};

use crate::engine::wire::{Input, Malformed, Wire};

/// The length of the text of a UUID, in bytes.
const UUID_TEXT: usize = 36;
/// The length of the longest other id that takes no heap, in bytes.
const SHORT_MAX: usize = 22;

/// The id of a thread or a turn.
#[derive(Clone, PartialEq, Eq)]
pub struct Id(Form);

#[derive(Clone, PartialEq, Eq)]
enum Form {
    Uuid([u8; 16]),
    /// The bytes beyond the length are zero.
    Short {
        length: u8,
        bytes: [u8; SHORT_MAX],
    },
    Long(Box<str>),
}

/// An id in the form in which ids are compared and hashed. Two ids are equal if their keys are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key<'t> {
    Uuid([u8; 16]),
    Text(&'t [u8]),
}

/// Room for the text of an id that is packed.
#[derive(Debug, Clone, Copy)]
pub struct IdText([u8; UUID_TEXT]);

impl Default for IdText {
    fn default() -> Self {
        Self([0; UUID_TEXT])
    }
}

impl<'t> Key<'t> {
    /// Returns the key of the id with this text.
    pub(super) fn of(text: &'t str) -> Self {
        packed(text).map_or(Self::Text(text.as_bytes()), Self::Uuid)
    }

    /// Returns the bytes that are hashed.
    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Self::Uuid(bytes) => bytes,
            Self::Text(text) => text,
        }
    }
}

impl Id {
    /// Returns the text; `room` holds it where it is packed.
    pub fn text<'t>(&'t self, room: &'t mut IdText) -> &'t str {
        match &self.0 {
            Form::Uuid(bytes) => unpacked(bytes, room),
            // The bytes were copied from a `str`, so they are UTF-8.
            Form::Short { .. } => std::str::from_utf8(self.short()).unwrap_or_default(),
            Form::Long(text) => text,
        }
    }

    /// Returns whether this is the id with that text.
    #[must_use]
    pub fn is(&self, text: &str) -> bool {
        self.key() == Key::of(text)
    }

    pub(super) fn key(&self) -> Key<'_> {
        match &self.0 {
            Form::Uuid(bytes) => Key::Uuid(*bytes),
            Form::Short { .. } => Key::Text(self.short()),
            Form::Long(text) => Key::Text(text.as_bytes()),
        }
    }

    fn short(&self) -> &[u8] {
        match &self.0 {
            Form::Short { length, bytes } => bytes.get(..usize::from(*length)).unwrap_or_default(),
            Form::Uuid(_) | Form::Long(_) => &[],
        }
    }

    /// Returns how many bytes it takes on the heap.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        match &self.0 {
            Form::Uuid(_) | Form::Short { .. } => 0,
            Form::Long(text) => text.len(),
        }
    }
}

/// Returns the bytes of a UUID in its usual spelling, and of no other text.
fn packed(text: &str) -> Option<[u8; 16]> {
    let mut bytes = [0; 16];
    parse_hyphenated(text.as_bytes(), bytes.as_out()).ok()?;
    // What is in capitals is another text.
    let mut room = IdText::default();
    (unpacked(&bytes, &mut room) == text).then_some(bytes)
}

fn unpacked<'t>(bytes: &[u8; 16], room: &'t mut IdText) -> &'t str {
    let text: &[u8; UUID_TEXT] = format_hyphenated(bytes, room.0.as_out(), AsciiCase::Lower);
    // Digits and dashes are UTF-8.
    std::str::from_utf8(text).unwrap_or_default()
}

impl From<&str> for Id {
    fn from(text: &str) -> Self {
        if let Some(bytes) = packed(text) {
            return Self(Form::Uuid(bytes));
        }
        let mut short = [0; SHORT_MAX];
        match (short.get_mut(..text.len()), u8::try_from(text.len())) {
            (Some(place), Ok(length)) => {
                place.copy_from_slice(text.as_bytes());
                Self(Form::Short { length, bytes: short })
            }
            _ => Self(Form::Long(text.into())),
        }
    }
}

impl fmt::Display for Id {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.text(&mut IdText::default()))
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.text(&mut IdText::default()), formatter)
    }
}

impl Hash for Id {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key().bytes().hash(state);
    }
}

impl Serialize for Id {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.text(&mut IdText::default()))
    }
}

/// On the wire an id is its text.
impl Wire for Id {
    fn write(&self, out: &mut Vec<u8>) {
        let mut room = IdText::default();
        let text = self.text(&mut room);
        (text.len() as u64).write(out);
        out.extend_from_slice(text.as_bytes());
    }

    fn read(input: &mut Input<'_>) -> Result<Self, Malformed> {
        String::read(input).map(|text| Self::from(text.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn text(id: &Id) -> String {
        id.text(&mut IdText::default()).to_owned()
    }

    #[test]
    fn an_id_is_the_text_that_it_was_given_as() {
        let uuid = "0a1b2c3d-aaaa-bbbb-cccc-dddddddddddd";
        for other in [
            uuid,
            "",
            "t",
            "é",
            "0A1B2C3D-aaaa-bbbb-cccc-dddddddddddd",
            "0a1b2c3daaaabbbbccccdddddddddddd",
            "{0a1b2c3d-aaaa-bbbb-cccc-dddddddddddd}",
            "0a1b2c3d-aaaa-bbbb-cccc-ddddddddddd",
            "0a1b2c3d-aaaa-bbbb-cccc-ddddddddddd/",
            "0a1b2c3d_aaaa-bbbb-cccc-dddddddddddd",
            "0a1b2c3d-aaaa-bbbb-cccc-dddddddddddd/child",
        ] {
            let id = Id::from(other);
            assert_eq!((text(&id).as_str(), id.to_string().as_str()), (other, other));
            assert!(id.is(other) && (other == uuid) == id.is(uuid), "{other}");
            assert_eq!(other == uuid, id.key() == Key::of(uuid), "{other}");
        }
        // The bytes of a UUID are no text with the same bytes.
        assert_ne!(Id::from("0123456789abcdef"), Id::from("30313233-3435-3637-3839-616263646566"));
        assert_eq!((size_of::<Id>(), size_of::<Option<Id>>()), (24, 24));
    }

    #[test]
    fn only_long_ids_take_heap() {
        let heap = |length: usize| Id::from("x".repeat(length).as_str()).heap_bytes();
        assert_eq!([heap(SHORT_MAX), heap(SHORT_MAX + 1), heap(36), heap(300)], [0, SHORT_MAX + 1, 36, 300]);
        assert_eq!(Id::from("0a1b2c3d-aaaa-bbbb-cccc-dddddddddddd").heap_bytes(), 0);
    }

    proptest! {
        #[test]
        fn ids_are_equal_where_their_texts_are(left in "[0-9a-f]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-f]{12}|.{0,40}", right in ".{0,24}") {
            let (one, other) = (Id::from(left.as_str()), Id::from(right.as_str()));
            prop_assert_eq!(text(&one), left.clone());
            prop_assert_eq!(one == other, left == right);
            prop_assert_eq!(one.is(&right), left == right);
            let mut bytes = Vec::new();
            one.write(&mut bytes);
            prop_assert_eq!(Input::new(1, &bytes).whole::<Id>().unwrap(), one);
        }
    }
}
