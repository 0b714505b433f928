//! Thread ids as a store holds them. Ids of usual length lie within the slot, so that looking at a thread needs no second memory access for
//! its id.

/// The length of the longest id that lies within the slot, in bytes: a UUID and some more.
const INLINE_BYTES: usize = 46;

/// A thread's id.
#[derive(Debug, Clone)]
pub(super) struct ThreadId(Spelling);

#[derive(Debug, Clone)]
enum Spelling {
    Inline { length: u8, bytes: [u8; INLINE_BYTES] },
    Boxed(Box<str>),
}

impl ThreadId {
    pub(super) fn as_bytes(&self) -> &[u8] {
        match &self.0 {
            Spelling::Inline { length, bytes } => bytes.get(..usize::from(*length)).unwrap_or_default(),
            Spelling::Boxed(text) => text.as_bytes(),
        }
    }

    pub(super) fn as_str(&self) -> &str {
        match &self.0 {
            // The bytes were copied from a `str`, so they are UTF-8.
            Spelling::Inline { .. } => std::str::from_utf8(self.as_bytes()).unwrap_or_default(),
            Spelling::Boxed(text) => text,
        }
    }

    /// Returns how many bytes it takes on the heap.
    pub(super) fn heap_bytes(&self) -> usize {
        match &self.0 {
            Spelling::Inline { .. } => 0,
            Spelling::Boxed(text) => text.len(),
        }
    }
}

impl From<&str> for ThreadId {
    fn from(text: &str) -> Self {
        let mut inline = [0; INLINE_BYTES];
        match (inline.get_mut(..text.len()), u8::try_from(text.len())) {
            (Some(place), Ok(length)) => {
                place.copy_from_slice(text.as_bytes());
                Self(Spelling::Inline { length, bytes: inline })
            }
            _ => Self(Spelling::Boxed(text.into())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_of_any_length_is_what_it_was() {
        for length in [0, 1, INLINE_BYTES - 1, INLINE_BYTES, INLINE_BYTES + 1, 300] {
            let text: String = "é-"
                .chars()
                .cycle()
                .scan(0, |bytes, c| {
                    *bytes += c.len_utf8();
                    (*bytes <= length).then_some(c)
                })
                .collect();
            let id = ThreadId::from(text.as_str());
            assert_eq!((id.as_str(), id.as_bytes()), (text.as_str(), text.as_bytes()));
            assert_eq!(id.heap_bytes() > 0, text.len() > INLINE_BYTES, "{length}");
        }
        assert_eq!(size_of::<ThreadId>(), 48);
    }
}
