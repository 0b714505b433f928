//! Macros for the layout of types in state: structs field by field, and variants by number.
//!
//! Once a format is in use, it changes by the rules below. The version goes up by one with each change of a format, and a golden of the old
//! version stays.
//! - To add a field, name it with `since` and the version that writes it first. State of an older version is read with its `Default`.
//! - To remove a field, leave its type in brackets in its place: `[u32, before 4]` says that the versions below 4 wrote it. It is skipped
//!   when read, and no longer written.
//! - To add a variant, give it a number that was never used.
//! - To remove a variant, or to write it in another way, leave its number under `before`, with a function that reads it.

/// Declares which fields of a struct are written, in which order, and in which versions.
#[macro_export]
macro_rules! layout {
    (@read $input:ident) => {
        $crate::engine::wire::Wire::read($input)?
    };
    (@read $input:ident $since:literal) => {
        if $input.version() < $since { Default::default() } else { $crate::engine::wire::Wire::read($input)? }
    };
    ($($type:ty {
        $($([$gone:ty, before $before:literal])* $field:ident $(since $since:literal)?),+ $(,)?
        $(; $([$last:ty, before $last_before:literal])+)?
    })+) => {
        $(impl $crate::engine::wire::Wire for $type {
            fn write(&self, out: &mut Vec<u8>) {
                $($crate::engine::wire::Wire::write(&self.$field, out);)+
            }

            fn read(input: &mut $crate::engine::wire::Input<'_>) -> Result<Self, $crate::engine::wire::Malformed> {
                let value = Self {
                    $($field: {
                        $(if input.version() < $before {
                            <$gone as $crate::engine::wire::Wire>::read(input)?;
                        })*
                        $crate::engine::wire::layout!(@read input $($since)?)
                    }),+
                };
                $($(if input.version() < $last_before {
                    <$last as $crate::engine::wire::Wire>::read(input)?;
                })+)?
                Ok(value)
            }
        })+
    };
}

/// Declares the number of each variant of an enum. A variant's values follow its number. A variant without a number does not compile, nor
/// does a number that is used twice. The text names the enum in the error for an unknown number.
#[macro_export]
macro_rules! numbers {
    (@read $input:ident $value:ident) => {
        $crate::engine::wire::Wire::read($input)?
    };
    ($($type:ty, $what:literal {
        $($number:literal = $variant:ident $(($value:ident))? $({ $($field:ident),+ })?),+ $(,)?
        $(; before $before:literal { $($old:literal = $read:path),+ $(,)? })?
    })+) => {
        $(const _: () = assert!($crate::engine::wire::are_distinct(&[$($number,)+ $($($old),+)?]), "a number stands twice");

        impl $crate::engine::wire::Wire for $type {
            fn write(&self, out: &mut Vec<u8>) {
                match self {
                    $(Self::$variant $(($value))? $({ $($field),+ })? => {
                        $crate::engine::wire::Wire::write(&($number as u64), out);
                        $($crate::engine::wire::Wire::write($value, out);)?
                        $($($crate::engine::wire::Wire::write($field, out);)+)?
                    })+
                }
            }

            fn read(input: &mut $crate::engine::wire::Input<'_>) -> Result<Self, $crate::engine::wire::Malformed> {
                Ok(match <u64 as $crate::engine::wire::Wire>::read(input)? {
                    $($number => Self::$variant
                        $(($crate::engine::wire::numbers!(@read input $value)))?
                        $({ $($field: $crate::engine::wire::Wire::read(input)?),+ })?,)+
                    $($($old if input.version() < $before => $read(input)?,)+)?
                    _ => return Err($crate::engine::wire::Malformed::Invalid($what)),
                })
            }
        })+
    };
}

pub use {layout, numbers};

/// Returns whether all numbers are distinct.
pub const fn are_distinct(numbers: &[u64]) -> bool {
    let mut rest = numbers;
    while let [first, others @ ..] = rest {
        let mut unseen = others;
        while let [other, more @ ..] = unseen {
            if *first == *other {
                return false;
            }
            unseen = more;
        }
        rest = others;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::wire::{Input, Malformed, Wire};

    /// A struct as three releases had it, and an enum as two releases had it.
    mod first {
        #[derive(Debug, Default, PartialEq)]
        pub struct Count {
            pub name: String,
            pub is_old: bool,
            pub count: u32,
            pub last: u32,
        }
        #[derive(Debug, PartialEq)]
        pub enum Kind {
            Plain,
            Named(String),
        }
        super::layout! { Count { name, is_old, count, last } }
        super::numbers! { Kind, "a kind" { 0 = Plain, 1 = Named(name) } }
    }

    mod second {
        #[derive(Debug, Default, PartialEq)]
        pub struct Count {
            pub name: String,
            pub is_old: bool,
            pub count: u32,
            pub since_ms: Option<i64>,
            pub last: u32,
        }
        super::layout! { Count { name, is_old, count, since_ms since 2, last } }
    }

    mod third {
        use super::*;

        #[derive(Debug, Default, PartialEq)]
        pub struct Count {
            pub name: String,
            pub count: u32,
            pub since_ms: Option<i64>,
        }
        #[derive(Debug, PartialEq)]
        pub enum Kind {
            Plain,
            Named { name: String, times: u32 },
        }
        fn named_once(input: &mut Input<'_>) -> Result<Kind, Malformed> {
            Ok(Kind::Named { name: Wire::read(input)?, times: 1 })
        }
        layout! { Count { name, [bool, before 3] count, since_ms since 2; [u32, before 3] } }
        numbers! { Kind, "a kind" { 0 = Plain, 2 = Named { name, times }; before 3 { 1 = named_once } } }
    }

    fn encoded(value: &impl Wire) -> Vec<u8> {
        let mut out = Vec::new();
        value.write(&mut out);
        out
    }

    #[test]
    fn a_field_that_came_later_reads_as_nothing_where_it_is_not_written() {
        let old = encoded(&first::Count { name: "a".to_owned(), is_old: true, count: 300, last: 9 });
        let read = Input::new(1, &old).whole::<second::Count>();
        assert_eq!(read, Ok(second::Count { name: "a".to_owned(), is_old: true, count: 300, since_ms: None, last: 9 }));
        assert_ne!(Input::new(2, &old).whole::<second::Count>(), read, "the version decides, not the bytes");
    }

    #[test]
    fn a_field_that_is_gone_is_read_over_in_the_versions_that_wrote_it() {
        let expected = |since_ms| Ok(third::Count { name: "b".to_owned(), count: 7, since_ms });
        let of_first = encoded(&first::Count { name: "b".to_owned(), is_old: true, count: 7, last: 9 });
        let of_second = encoded(&second::Count { name: "b".to_owned(), is_old: true, count: 7, since_ms: Some(-5), last: 9 });
        let of_third = encoded(&expected(Some(-5)).unwrap());
        assert_eq!(Input::new(1, &of_first).whole::<third::Count>(), expected(None));
        assert_eq!(Input::new(2, &of_second).whole::<third::Count>(), expected(Some(-5)));
        assert_eq!(Input::new(3, &of_third).whole::<third::Count>(), expected(Some(-5)));
        assert_eq!(of_third, [1, b'b', 7, 1, 9], "nothing is written of what is gone");
    }

    #[test]
    fn the_number_of_a_variant_that_is_gone_is_read_in_the_versions_that_wrote_it() {
        let once = |times| Ok(third::Kind::Named { name: "c".to_owned(), times });
        let old = encoded(&first::Kind::Named("c".to_owned()));
        assert_eq!(Input::new(2, &old).whole::<third::Kind>(), once(1));
        assert_eq!(Input::new(3, &old).whole::<third::Kind>(), Err(Malformed::Invalid("a kind")));
        assert_eq!(Input::new(3, &encoded(&once(4).unwrap())).whole::<third::Kind>(), once(4));
        assert_eq!(Input::new(1, &encoded(&first::Kind::Plain)).whole::<third::Kind>(), Ok(third::Kind::Plain));
        assert_eq!(Input::new(3, &encoded(&third::Kind::Plain)).whole::<third::Kind>(), Ok(third::Kind::Plain));
        assert_eq!(Input::new(1, &[3]).whole::<first::Kind>(), Err(Malformed::Invalid("a kind")));
    }

    #[test]
    fn a_number_that_stands_twice_is_found() {
        assert!(are_distinct(&[]) && are_distinct(&[0, 1, 2]));
        assert!(!are_distinct(&[0, 1, 2, 1]) && !are_distinct(&[5, 5]));
    }
}
