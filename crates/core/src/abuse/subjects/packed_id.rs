//! Ids of threads and events, packed: most are UUIDs, which need no more than 16 bytes.

use crate::wire::{Input, Malformed, Wire};

/// The length of a UUID's text.
const UUID_CHARS: usize = 36;
/// Where the dashes of a UUID stand.
const DASHES: [usize; 4] = [8, 13, 18, 23];

/// An id in the form in which it is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::abuse) enum PackedId<'p> {
    /// A UUID in lower case.
    Uuid([u8; 16]),
    /// Anything else.
    Text(&'p str),
}

impl<'p> PackedId<'p> {
    /// Returns an id in its shortest form.
    pub(in crate::abuse) fn of(text: &'p str) -> Self {
        uuid(text.as_bytes()).map_or(Self::Text(text), Self::Uuid)
    }

    /// Appends the id. A number tells its form: 0 stands for the id before it, 1 for a UUID, and more for the length of a text.
    pub(super) fn write(&self, before: Option<&Self>, out: &mut Vec<u8>) {
        match self {
            same if before == Some(same) => out.push(0),
            Self::Uuid(bytes) => {
                out.push(1);
                out.extend_from_slice(bytes);
            }
            Self::Text(text) => {
                (text.len() as u64 + 2).write(out);
                out.extend_from_slice(text.as_bytes());
            }
        }
    }

    /// Reads an id. `before` is the one that was read before it.
    pub(super) fn read(input: &mut Input<'p>, before: Option<Self>) -> Result<Self, Malformed> {
        const INVALID: Malformed = Malformed::Invalid("a packed id");
        match u64::read(input)? {
            0 => before.ok_or(INVALID),
            1 => Ok(Self::Uuid(input.array()?)),
            more => {
                let length = usize::try_from(more - 2).map_err(|_| Malformed::Truncated)?;
                std::str::from_utf8(input.bytes(length)?).map(Self::Text).map_err(|_| INVALID)
            }
        }
    }
}

impl std::fmt::Display for PackedId<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Uuid(bytes) => bytes.iter().enumerate().try_for_each(|(at, byte)| {
                let dash = if matches!(at, 4 | 6 | 8 | 10) { "-" } else { "" };
                write!(f, "{dash}{byte:02x}")
            }),
        }
    }
}

fn uuid(text: &[u8]) -> Option<[u8; 16]> {
    if text.len() != UUID_CHARS {
        return None;
    }
    let mut bytes = [0; 16];
    let mut nibbles = 0;
    for (at, char) in text.iter().enumerate() {
        if DASHES.contains(&at) {
            if *char != b'-' {
                return None;
            }
            continue;
        }
        let nibble = match char {
            b'0'..=b'9' => char - b'0',
            b'a'..=b'f' => char - b'a' + 10,
            _ => return None,
        };
        let byte = bytes.get_mut(nibbles / 2)?;
        *byte = *byte << 4 | nibble;
        nibbles += 1;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_what_they_were() {
        let uuid = "0123abcd-4a5b-4c6d-8e7f-0123456789ab";
        let texts = [uuid, uuid, "", "t-1", "0123ABCD-4A5B-4C6D-8E7F-0123456789AB", "0123abcd-4a5b-4c6d-8e7f-0123456789a", "é"];
        let (mut out, mut before) = (Vec::new(), None);
        for text in texts {
            let id = PackedId::of(text);
            id.write(before.as_ref(), &mut out);
            before = Some(id);
        }
        assert_eq!(out.len(), 17 + 1 + 1 + 4 + 37 + 36 + 3);
        let (mut input, mut before) = (Input::new(1, &out), None);
        for text in texts {
            let id = PackedId::read(&mut input, before).unwrap();
            assert_eq!(id.to_string(), text);
            before = Some(id);
        }
        assert_eq!(PackedId::read(&mut Input::new(1, &[0]), None), Err(Malformed::Invalid("a packed id")));
    }
}
