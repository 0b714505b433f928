//! What few threads remember, behind a pointer: a worker holds very many threads, and in most of them there is nothing of it.

use std::ops::{Deref, DerefMut};

use serde::{Serialize, Serializer};

use crate::engine::wire::{Input, Malformed, Wire};

/// A type with a value that says nothing.
pub trait Blank: Default + PartialEq + 'static {
    /// The value that says nothing. It is equal to the default.
    const NOTHING: &'static Self;
}

/// A value on the heap, or a null pointer in place of [`Blank::NOTHING`]. It is compared, shown and written as the value is.
#[derive(Debug, Clone, Default)]
pub struct Rare<T>(Option<Box<T>>);

impl<T> Rare<T> {
    /// Nothing at all.
    pub const BLANK: Self = Self(None);
}

impl<T: Blank> Rare<T> {
    /// Changes the value if there is one. A value that says nothing any more leaves the heap.
    pub fn change(&mut self, change: impl FnOnce(&mut T)) {
        if let Some(value) = &mut self.0 {
            change(value);
        }
        self.0.take_if(|value| **value == *T::NOTHING);
    }

    /// Returns how many bytes it takes on the heap. `within` returns those that the value itself holds there.
    #[must_use]
    pub fn boxed_bytes(&self, within: impl FnOnce(&T) -> usize) -> usize {
        self.0.as_ref().map_or(0, |value| size_of::<T>() + within(value))
    }
}

impl<T: Blank> Deref for Rare<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0.as_deref().unwrap_or(T::NOTHING)
    }
}

/// A value that is to be changed is put on the heap.
impl<T: Blank> DerefMut for Rare<T> {
    fn deref_mut(&mut self) -> &mut T {
        self.0.get_or_insert_default()
    }
}

impl<T: Blank> From<T> for Rare<T> {
    fn from(value: T) -> Self {
        Self((value != *T::NOTHING).then(|| Box::new(value)))
    }
}

impl<T: Blank> PartialEq for Rare<T> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<T: Blank + Eq> Eq for Rare<T> {}

impl<T: Blank + Serialize> Serialize for Rare<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (**self).serialize(serializer)
    }
}

impl<T: Blank + Wire> Wire for Rare<T> {
    fn write(&self, out: &mut Vec<u8>) {
        (**self).write(out);
    }

    fn read(input: &mut Input<'_>) -> Result<Self, Malformed> {
        T::read(input).map(Self::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Blank for u32 {
        const NOTHING: &'static Self = &0;
    }

    #[test]
    fn a_value_that_says_nothing_takes_no_heap() {
        let mut value = Rare::from(0_u32);
        assert_eq!((*value, value.boxed_bytes(|_| 0)), (0, 0));
        value.change(|value| *value += 1);
        assert_eq!(*value, 0, "there was no value to change");
        *value = 2;
        assert_eq!((*value, value.boxed_bytes(|_| 0)), (2, 4));
        value.change(|value| *value -= 2);
        assert_eq!((*value, value.boxed_bytes(|_| 0)), (0, 0));
    }

    #[test]
    fn a_value_is_written_and_compared_as_it_is_without_a_pointer() {
        let (mut boxed, mut plain) = (Vec::new(), Vec::new());
        for value in [0_u32, 7] {
            Rare::from(value).write(&mut boxed);
            value.write(&mut plain);
        }
        assert_eq!(boxed, plain);
        let mut zero = Rare::<u32>::BLANK;
        *zero = 0;
        assert_eq!(zero, Rare::BLANK);
    }
}
