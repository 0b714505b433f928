//! `curl`, of which an entry of the list says what it fetches: the options that only say how that is shown.
//!
//! Left out: `-L` (leads to another host), `-I` (another method), `-k`, whatever names a file (`-o` but for `/dev/null`, `-w @FILE`,
//! `-w %output{FILE}`), and `-:`.

use std::sync::LazyLock;

use super::Style;
use super::options::Options;
use super::reading::scan;
use super::shell::is_decimal;
use crate::argument::Argument;

/// TABLE: the options.
static SHOWING: LazyLock<Options> = LazyLock::new(|| {
    Options::new(
        "-f -i -s -S -v -m=WORD -o=NEXT -w=NEXT --compressed --connect-timeout=NEXT --fail --include --max-time=NEXT --no-progress-meter \
         --output=NEXT --retry=NEXT --show-error --silent --verbose --write-out=NEXT",
    )
});

/// Returns the places of the arguments of `curl` without these options and their values; `None` with any other option.
#[must_use]
pub fn without_showing(arguments: &[Argument]) -> Option<Vec<usize>> {
    let scan = scan(arguments, &SHOWING, Style::Gnu).ok().filter(|scan| !scan.ended)?;
    let is_value = |name: &str, value: &str| match name {
        "o" | "output" => value == "/dev/null",
        "w" | "write-out" => !value.starts_with('@') && !value.contains("%output"),
        _ => is_decimal(value) && !value.starts_with('-'),
    };
    let mut given = scan.given.iter();
    let is_shown =
        given.all(|(name, value)| value.as_ref().is_none_or(|value| value.as_known().is_some_and(|value| is_value(name, value))));
    is_shown.then_some(scan.operands)
}
