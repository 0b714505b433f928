//! Typed reading of configuration values. It collects faults instead of stopping at the first.
//!
//! A value may come from a file, where YAML gives it a type, or as text from the environment ([`Texts`]). The reader of a key decides what
//! the text means: a string takes it as it is, everything else reads it as YAML.

mod duration;
mod fault;
mod found;
mod http;
mod named;
mod narrow;
mod notes;
mod schema;
mod section;
mod spelling_help;
mod texts;
mod yaml;

pub use duration::{DURATION_PATTERN, duration_text, parse_duration};
pub use fault::{Collector, Fault, Faults};
pub use found::{Entry, Found, Spelling, shape};
pub use http::{is_plain_url, read_header_files, read_headers};
pub use named::{Named, find};
pub use notes::{Accepted, Notes};
pub use schema::{SchemaWriter, put};
pub use section::Section;
pub use spelling_help::{did_you_mean, nearest};
pub use texts::{REDACTED, Secret, Source, Texts};
pub use yaml::{YamlError, defaults, parse};
