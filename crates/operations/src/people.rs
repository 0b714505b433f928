//! Sentences for people, on stderr.

use std::io::Write as _;

/// Writes a line for people to stderr, as `eprintln!` does, but without a panic if stderr is closed: then there is nobody to tell.
#[macro_export]
macro_rules! say {
    ($($line:tt)*) => {
        $crate::note(&format!($($line)*))
    };
}

/// Writes lines for people to stderr. If nobody reads them any more, that is no failure of the command.
pub fn note(text: &str) {
    let mut lines = text.to_owned();
    lines.push('\n');
    let _reader_gone = std::io::stderr().lock().write_all(lines.as_bytes());
}
