//! Variables that may be set in front of a command.

/// TABLE: variables whose value, whatever it is, only changes how programs print, and never what they run, load, write or connect to.
const HARMLESS: &[&str] = &[
    "CARGO_TERM_COLOR",
    "CI",
    "CLICOLOR",
    "CLICOLOR_FORCE",
    "COLUMNS",
    "FORCE_COLOR",
    "LANG",
    "LC_ALL",
    "LC_COLLATE",
    "LC_CTYPE",
    "LC_MESSAGES",
    "LC_NUMERIC",
    "LC_TIME",
    "LINES",
    "NO_COLOR",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONIOENCODING",
    "PYTHONUNBUFFERED",
    "PY_COLORS",
    "RUST_BACKTRACE",
    "TERM",
    "TZ",
];

/// Returns whether a variable of this name may be set.
#[must_use]
pub fn is_harmless(name: &str) -> bool {
    HARMLESS.contains(&name)
}
