//! Ids of threads and events, packed: most are UUIDs, which need no more than 16 bytes.

use tollgate_core::engine::wire::{Input, Malformed, Wire};

/// The length of a UUID's text.
const UUID_CHARS: usize = 36;
/// Where the dashes of a UUID stand.
const DASHES: [usize; 4] = [8, 13, 18, 23];
/// Where the digits between them stand.
const GROUPS: [std::ops::Range<usize>; 5] = [0..8, 9..13, 14..18, 19..23, 24..36];
/// What stands for all that is no hex digit in lower case. It has a bit that no digit's value has.
const NO_DIGIT: u8 = 0x10;

/// An id in the form in which it is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PackedId<'p> {
    /// A UUID in lower case.
    Uuid([u8; 16]),
    /// Anything else.
    Text(&'p str),
}

impl<'p> PackedId<'p> {
    /// Returns an id in its shortest form.
    pub(crate) fn of(text: &'p str) -> Self {
        uuid(text.as_bytes()).map_or(Self::Text(text), Self::Uuid)
    }

    /// Appends the ids of a thread and of an event of it. A number tells the form of both: its lowest bit whether the event's is a UUID, the
    /// others the form of the thread's: 0 stands for the thread before it, 1 for a UUID, and more for the length of a text.
    pub(super) fn write_pair([thread, event]: [&Self; 2], before: Option<&Self>, out: &mut Vec<u8>) {
        let form = match thread {
            same if before == Some(same) => 0,
            Self::Uuid(_) => 1,
            Self::Text(text) => text.len() as u64 + 2,
        };
        (form << 1 | u64::from(matches!(event, Self::Uuid(_)))).write(out);
        if form > 0 {
            out.extend_from_slice(thread.as_bytes());
        }
        if let Self::Text(text) = event {
            (text.len() as u64).write(out);
        }
        out.extend_from_slice(event.as_bytes());
    }

    /// Reads the ids of a thread and of an event. `before` is the thread that was read before them.
    pub(super) fn read_pair(input: &mut Input<'p>, before: Option<Self>) -> Result<[Self; 2], Malformed> {
        let form = u64::read(input)?;
        let thread = match form >> 1 {
            0 => before.ok_or(Malformed::Invalid("a packed id"))?,
            1 => Self::Uuid(input.array()?),
            more => Self::read_text(input, more - 2)?,
        };
        let event = if form & 1 == 1 {
            Self::Uuid(input.array()?)
        } else {
            let length = u64::read(input)?;
            Self::read_text(input, length)?
        };
        Ok([thread, event])
    }

    fn read_text(input: &mut Input<'p>, length: u64) -> Result<Self, Malformed> {
        let length = usize::try_from(length).map_err(|_| Malformed::Truncated)?;
        std::str::from_utf8(input.bytes(length)?).map(Self::Text).map_err(|_| Malformed::Invalid("a packed id"))
    }

    fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Uuid(bytes) => bytes,
            Self::Text(text) => text.as_bytes(),
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

/// Returns a UUID's bytes, if its text is the one that is written for them.
fn uuid(text: &[u8]) -> Option<[u8; 16]> {
    let text: &[u8; UUID_CHARS] = text.try_into().ok()?;
    if DASHES.iter().any(|at| text.get(*at) != Some(&b'-')) {
        return None;
    }
    let mut digits = [0; 32];
    let mut rest = digits.as_mut_slice();
    for group in GROUPS {
        let (digits, others) = rest.split_at_mut_checked(group.len())?;
        digits.copy_from_slice(text.get(group)?);
        rest = others;
    }
    // Digits that stand together, and no branch for any of them: the processor takes many at once.
    let mut all = 0;
    for digit in &mut digits {
        *digit = value_of(*digit);
        all |= *digit;
    }
    let mut bytes = [0; 16];
    for (byte, [high, low]) in bytes.iter_mut().zip(digits.as_chunks().0) {
        *byte = high << 4 | low;
    }
    (all < NO_DIGIT).then_some(bytes)
}

/// Returns the value of a hex digit in lower case, or [`NO_DIGIT`].
fn value_of(digit: u8) -> u8 {
    let (number, letter) = (digit.wrapping_sub(b'0'), digit.wrapping_sub(b'a'));
    if number < 10 {
        number
    } else if letter < 6 {
        letter + 10
    } else {
        NO_DIGIT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_what_they_were() {
        let uuid = "0123abcd-4a5b-4c6d-8e7f-0123456789ab";
        let long = "x".repeat(300);
        let texts = [
            uuid,
            uuid,
            "",
            "t-1",
            "0123ABCD-4A5B-4C6D-8E7F-0123456789AB",
            "0123abcd-4a5b-4c6d-8e7f-0123456789a",
            "0123abcd-4a5b-4c6d-8e7f-01234567-9ab",
            "0123abcd-4a5b-4c6d-8e7f-0123456789ag",
            "0123abcd-4a5b-4c6d-8e7f-0123456789a:",
            "/123abcd-4a5b-4c6d-8e7f-0123456789ab",
            "0123abcd-4a5b-4c6d-8e7f-01234567`9ab",
            "0123abcd04a5b-4c6d-8e7f-0123456789ab",
            "0123abcd-4a5b-4c6d-8e7f-0123456789é",
            "é",
            &long,
        ];
        let pairs = || texts.iter().flat_map(|thread| texts.iter().map(move |event| [*thread, *event]));
        let (mut out, mut before) = (Vec::new(), None);
        for pair in pairs() {
            let [thread, event] = pair.map(PackedId::of);
            PackedId::write_pair([&thread, &event], before.as_ref(), &mut out);
            before = Some(thread);
        }
        let (mut input, mut before) = (Input::new(1, &out), None);
        for pair in pairs() {
            let ids = PackedId::read_pair(&mut input, before).unwrap();
            assert_eq!(ids.map(|id| id.to_string()), pair);
            before = Some(ids[0]);
        }
        assert!(input.rest().is_empty());
        assert_eq!(PackedId::read_pair(&mut Input::new(1, &[0]), None), Err(Malformed::Invalid("a packed id")));
    }

    #[test]
    fn most_take_few_bytes() {
        let id = PackedId::of("0123abcd-4a5b-4c6d-8e7f-0123456789ab");
        let mut out = Vec::new();
        PackedId::write_pair([&id, &id], None, &mut out);
        assert_eq!(out.len(), 1 + 16 + 16);
        PackedId::write_pair([&id, &PackedId::of("e-1")], Some(&id), &mut out);
        assert_eq!(out.len(), 33 + 1 + 1 + 3);
    }
}
