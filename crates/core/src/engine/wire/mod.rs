//! The binary encoding of state: the few forms of values that state is written with. The bytes outlive the program that wrote them.
//!
//! Integers are little-endian base-128 (7 bits a byte, the top bit says that more follow), signed ones in zigzag. Texts and lists are
//! preceded by their length, an option by 0 or 1. Reading never panics and never reserves more than the input could fill.
//!
//! Values are written in the newest version. A reader knows the version of its input, so that fields can be added and removed with
//! [`layout!`] and [`numbers!`].

mod layout;

pub(crate) use layout::are_distinct;
pub use layout::{layout, numbers};

use std::borrow::Cow;
use std::num::NonZeroU32;

use tollgate_json::digest::{Digest, Fingerprint};

/// What is wrong with bytes that should be state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// The bytes end too early.
    #[error("it ends too early")]
    Truncated,
    /// There are more bytes than there should be.
    #[error("{0} bytes follow its end")]
    Trailing(usize),
    /// There is a value that no version writes.
    #[error("{0} has a value that it cannot have")]
    Invalid(&'static str),
}

/// Bytes that are being read, and the version that they were written in.
#[derive(Debug)]
pub struct Input<'a> {
    version: u32,
    rest: &'a [u8],
}

impl<'a> Input<'a> {
    /// Returns input of a version.
    pub fn new(version: u32, bytes: &'a [u8]) -> Self {
        Self { version, rest: bytes }
    }

    /// Returns the version that the bytes were written in.
    pub fn version(&self) -> u32 {
        self.version
    }

    /// Returns the bytes that are not read yet.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Reads a number of bytes.
    pub fn bytes(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let (head, rest) = self.rest.split_at_checked(count).ok_or(Malformed::Truncated)?;
        self.rest = rest;
        Ok(head)
    }

    /// Reads the bytes of a part that is preceded by its length.
    pub fn sized(&mut self) -> Result<&'a [u8], Malformed> {
        let length = usize::try_from(u64::read(self)?).map_err(|_| Malformed::Truncated)?;
        self.bytes(length)
    }

    /// Reads a number of bytes as an array.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        self.bytes(N)?.try_into().map_err(|_| Malformed::Truncated)
    }

    /// Reads one byte.
    pub fn byte(&mut self) -> Result<u8, Malformed> {
        let [byte] = self.array()?;
        Ok(byte)
    }

    /// Reads a value that takes up all the remaining bytes.
    pub fn whole<T: Wire>(mut self) -> Result<T, Malformed> {
        let value = T::read(&mut self)?;
        if self.rest.is_empty() { Ok(value) } else { Err(Malformed::Trailing(self.rest.len())) }
    }
}

/// A value that can be written into state and read from it.
pub trait Wire: Sized {
    /// Appends the value, in the newest version.
    fn write(&self, out: &mut Vec<u8>);

    /// Reads a value that the input's version has written.
    ///
    /// # Errors
    /// [`Malformed`] if the bytes are not such a value.
    fn read(input: &mut Input<'_>) -> Result<Self, Malformed>;
}

/// Appends the length of a part and then the part, as [`Input::sized`] reads it.
pub fn write_sized(part: &impl Wire, out: &mut Vec<u8>) {
    write_sized_with(out, |out| part.write(out));
}

/// Appends the length of a part and then what `write` appends, as [`Input::sized`] reads it.
pub fn write_sized_with(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    write(out);
    let end = out.len();
    ((end - start) as u64).write(out);
    let length_bytes = out.len() - end;
    // The length is known last and comes first.
    out.get_mut(start..).unwrap_or_default().rotate_right(length_bytes);
}

impl Wire for u64 {
    fn write(&self, out: &mut Vec<u8>) {
        let mut rest = *self;
        while rest >= 0x80 {
            out.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        out.push(rest as u8);
    }

    fn read(input: &mut Input<'_>) -> Result<Self, Malformed> {
        let first = input.byte()?;
        // Most numbers are small.
        if first < 0x80 {
            return Ok(u64::from(first));
        }
        let mut value = u64::from(first & 0x7f);
        for shift in (7..u64::BITS).step_by(7) {
            let byte = input.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            // The tenth byte has room for one bit only.
            if byte < 0x80 {
                return if shift == 63 && byte > 1 { Err(Malformed::Invalid("an integer")) } else { Ok(value) };
            }
        }
        Err(Malformed::Invalid("an integer"))
    }
}

/// Writes short integers as long ones are written.
macro_rules! short_integers {
    ($($type:ty, $what:literal;)+) => {
        $(impl Wire for $type {
            fn write(&self, out: &mut Vec<u8>) {
                u64::from(*self).write(out);
            }

            fn read(input: &mut Input<'_>) -> Result<Self, Malformed> {
                Self::try_from(u64::read(input)?).map_err(|_| Malformed::Invalid($what))
            }
        })+
    };
}

short_integers! {
    u8, "an 8-bit integer";
    u16, "a 16-bit integer";
    u32, "a 32-bit integer";
}

impl Wire for i64 {
    fn write(&self, out: &mut Vec<u8>) {
        ((self << 1) ^ (self >> 63)).cast_unsigned().write(out);
    }

    fn read(input: &mut Input<'_>) -> Result<Self, Malformed> {
        let zigzag = u64::read(input)?;
        Ok((zigzag >> 1).cast_signed() ^ -(zigzag & 1).cast_signed())
    }
}

impl Wire for NonZeroU32 {
    fn write(&self, out: &mut Vec<u8>) {
        self.get().write(out);
    }

    fn read(input: &mut Input<'_>) -> Result<Self, Malformed> {
        Self::new(u32::read(input)?).ok_or(Malformed::Invalid("a count, which is not 0"))
    }
}

impl Wire for [u8; 8] {
    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self);
    }

    fn read(input: &mut Input<'_>) -> Result<Self, Malformed> {
        input.array()
    }
}

impl Wire for [u64; 3] {
    fn write(&self, out: &mut Vec<u8>) {
        self.iter().for_each(|number| number.write(out));
    }

    fn read(input: &mut Input<'_>) -> Result<Self, Malformed> {
        Ok([Wire::read(input)?, Wire::read(input)?, Wire::read(input)?])
    }
}

impl Wire for bool {
    fn write(&self, out: &mut Vec<u8>) {
        out.push(u8::from(*self));
    }

    fn read(input: &mut Input<'_>) -> Result<Self, Malformed> {
        match input.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Malformed::Invalid("a flag")),
        }
    }
}

impl<T: Wire> Wire for Option<T> {
    fn write(&self, out: &mut Vec<u8>) {
        self.is_some().write(out);
        if let Some(value) = self {
            value.write(out);
        }
    }

    fn read(input: &mut Input<'_>) -> Result<Self, Malformed> {
        bool::read(input)?.then(|| T::read(input)).transpose()
    }
}

impl<T: Wire> Wire for Box<T> {
    fn write(&self, out: &mut Vec<u8>) {
        (**self).write(out);
    }

    fn read(input: &mut Input<'_>) -> Result<Self, Malformed> {
        T::read(input).map(Self::new)
    }
}

impl<A: Wire, B: Wire> Wire for (A, B) {
    fn write(&self, out: &mut Vec<u8>) {
        self.0.write(out);
        self.1.write(out);
    }

    fn read(input: &mut Input<'_>) -> Result<Self, Malformed> {
        Ok((A::read(input)?, B::read(input)?))
    }
}

/// Writes a list, which can be read as a `Vec` or a boxed slice.
pub fn write_list<T: Wire>(items: &[T], out: &mut Vec<u8>) {
    (items.len() as u64).write(out);
    items.iter().for_each(|item| item.write(out));
}

impl<T: Wire> Wire for Vec<T> {
    fn write(&self, out: &mut Vec<u8>) {
        write_list(self, out);
    }

    fn read(input: &mut Input<'_>) -> Result<Self, Malformed> {
        let count = usize::try_from(u64::read(input)?).map_err(|_| Malformed::Truncated)?;
        // Every item takes at least a byte, so a wrong length reserves no more items than the input has bytes.
        let mut items = Self::with_capacity(count.min(input.rest.len()));
        for _ in 0..count {
            items.push(T::read(input)?);
        }
        Ok(items)
    }
}

impl<T: Wire> Wire for Box<[T]> {
    fn write(&self, out: &mut Vec<u8>) {
        write_list(self, out);
    }

    fn read(input: &mut Input<'_>) -> Result<Self, Malformed> {
        Vec::read(input).map(Self::from)
    }
}

impl Wire for String {
    fn write(&self, out: &mut Vec<u8>) {
        (self.len() as u64).write(out);
        out.extend_from_slice(self.as_bytes());
    }

    fn read(input: &mut Input<'_>) -> Result<Self, Malformed> {
        let text = std::str::from_utf8(input.sized()?).map_err(|_| Malformed::Invalid("a text"))?;
        Ok(text.to_owned())
    }
}

impl Wire for Cow<'static, str> {
    fn write(&self, out: &mut Vec<u8>) {
        (self.len() as u64).write(out);
        out.extend_from_slice(self.as_bytes());
    }

    fn read(input: &mut Input<'_>) -> Result<Self, Malformed> {
        String::read(input).map(Self::Owned)
    }
}

impl Wire for Box<str> {
    fn write(&self, out: &mut Vec<u8>) {
        (self.len() as u64).write(out);
        out.extend_from_slice(self.as_bytes());
    }

    fn read(input: &mut Input<'_>) -> Result<Self, Malformed> {
        String::read(input).map(Self::from)
    }
}

impl Wire for Digest {
    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.as_bytes());
    }

    fn read(input: &mut Input<'_>) -> Result<Self, Malformed> {
        input.array().map(Self::from_bytes)
    }
}

impl Wire for Fingerprint {
    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.as_bytes());
    }

    fn read(input: &mut Input<'_>) -> Result<Self, Malformed> {
        input.array().map(Self::from_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn back<T: Wire>(value: &T) -> Result<T, Malformed> {
        let mut out = Vec::new();
        value.write(&mut out);
        Input::new(1, &out).whole()
    }

    #[test]
    fn values_come_back() {
        for value in [0, 1, 0x7f, 0x80, 300, u64::from(u32::MAX), u64::MAX] {
            assert_eq!(back(&value), Ok(value));
        }
        for value in [0, -1, 1, i64::MIN, i64::MAX] {
            assert_eq!(back(&value), Ok(value));
        }
        assert_eq!(back(&Some(vec!["é".to_owned(), String::new()])), Ok(Some(vec!["é".to_owned(), String::new()])));
        assert_eq!(back(&None::<bool>), Ok(None));
        assert_eq!(back(&Digest::of(b"x")), Ok(Digest::of(b"x")));
    }

    #[test]
    fn bytes_that_nothing_writes_are_refused() {
        assert_eq!(Input::new(1, &[2]).whole::<bool>(), Err(Malformed::Invalid("a flag")));
        assert_eq!(Input::new(1, &[0xff; 10]).whole::<u64>(), Err(Malformed::Invalid("an integer")));
        let tenth = |byte: u8| Input::new(1, &[[0xff; 9].as_slice(), &[byte]].concat()).whole::<u64>();
        assert_eq!([tenth(1), tenth(2)], [Ok(u64::MAX), Err(Malformed::Invalid("an integer"))]);
        assert_eq!(Input::new(1, &[0xff; 3]).whole::<u64>(), Err(Malformed::Truncated));
        assert_eq!(Input::new(1, &[0, 0]).whole::<bool>(), Err(Malformed::Trailing(1)));
        assert_eq!(Input::new(1, &[1, 0xff]).whole::<String>(), Err(Malformed::Invalid("a text")));
        // The list claims to be longer than memory.
        assert_eq!(Input::new(1, &[0xff, 0xff, 0xff, 0xff, 0xff, 0x7f]).whole::<Vec<u64>>(), Err(Malformed::Truncated));
    }
}
