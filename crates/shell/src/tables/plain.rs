//! Programs of which no option and no operand runs, writes or connects to anything, in any of their implementations that are in use
//! (GNU, BusyBox, BSD): whatever their arguments are, they only read files and print. Their arguments may be computed.

/// TABLE: their names.
const PLAIN: &[&str] = &["cat", "echo", "ls", "wc"];

/// Returns whether no argument of this program runs, writes or connects to anything.
#[must_use]
pub fn is_plain(name: &str) -> bool {
    PLAIN.contains(&name)
}
