//! JSON as Python's `json` module reads and prints it.
//!
//! Everything that Tollgate hashes was first hashed by agents written in Python, so it uses their dialect: `NaN` and `Infinity` are values,
//! integers have any size, a lone surrogate is a character, and the last of two equal keys wins. One parser reads events, tool arguments,
//! tool results and provider responses alike. It builds a flat table of nodes over the borrowed text, never recurses (so no nesting can
//! overflow the stack) and is linear in its input.
//!
//! - [`parse`](Parser::parse) text → [`Value`], a cheap handle into the table
//! - [`canonical`] value → the bytes of `json.dumps(sort_keys=True, separators=(",", ":"), ensure_ascii=False)`
//! - [`Splice`] text → the same text with some of its values replaced at their places
//! - [`decode_string`] the source of one string → its text, without a table
//! - [`Text`] a decoded string, in UTF-8 that may hold lone surrogates (WTF-8, Python's `surrogatepass`)

mod arrangement;
pub mod canonical;
pub mod digest;
mod error;
mod find;
pub mod number;
mod object;
mod parse;
mod splice;
mod text;
pub mod time;
mod unescape;
mod value;

pub use arrangement::{Arrangement, arrangement};
pub use error::{SyntaxError, SyntaxErrorKind};
pub use object::ObjectWriter;
pub use parse::Parser;
pub use splice::{Splice, SpliceError};
pub use text::Text;
pub use unescape::decode_string;
pub use value::{Shape, Value};

/// How many containers may be open at once in tool arguments and results. Deeper text is "not JSON", as it is for Python, whose own limit
/// is between 990 and 1,000 frames. This limit is a little above that, so it accepts whatever an agent could parse.
pub const DEPTH_MAX: usize = 1_024;

/// How many values a text may hold, keys included. Where values are as long as they usually are, the largest event holds some 350,000. It
/// could hold four million, each of which takes time to sort and to hash, and memory in the table.
pub const VALUES_MAX: usize = 500_000;

/// How many digits an integer may have. Python's `int` refuses to read more (a `ValueError`, so the text is "not JSON").
pub const INTEGER_DIGITS_MAX: usize = 4_300;
