//! A macro for closed sets of codes: an enum with the names that its variants have in labels, headers and logs.

/// Declares an enum of codes and the name of each in one list, so that neither can be forgotten.
#[macro_export]
macro_rules! codes {
    ($(#[$enum_doc:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $code:literal,)+ }) => {
        $(#[$enum_doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $name { $($(#[$doc])* $variant,)+ }

        impl $name {
            /// Every code.
            pub const ALL: [Self; [$($code),+].len()] = [$(Self::$variant,)+];

            /// Returns the code as labels, headers, verdicts and logs write it.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $code,)+ }
            }

            /// Returns the code with this name.
            #[must_use]
            pub fn from_name(name: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|code| code.as_str() == name)
            }
        }
    };
}

pub use codes;
