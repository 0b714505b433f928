//! The configuration of Tollgate: [`settings`] says what it may hold, [`load`] reads it from a file, from variables and from files of secrets,
//! and [`topics`] is the table of topics.

mod sources;

pub mod settings;
pub mod topics;

pub use sources::{ConfigError, Document, load, load_as_of};
