//! Shape: a usage line in the place of a result.

use super::view::View;
use super::{Asked, FailureSign};
use crate::decide::loops::search::begins;

/// Looks for a usage line among the first two lines.
pub fn see<'v>(view: &View<'v>) -> Option<FailureSign<'v>> {
    let line = view.lines().take(2).find(|line| begins(line, "usage:") && line.len() > "usage:".len())?;
    // Someone who asks for help gets it.
    Some(if view.asked.has(Asked::HELP) { FailureSign::Fine } else { FailureSign::Failed(line) })
}

#[cfg(test)]
mod tests {
    use crate::decide::loops::failure::tests::seen_after;

    #[test]
    fn a_usage_line_is_no_failure_where_help_was_asked_for() {
        assert!(seen_after("pack --help", None, "usage: pack [-h] DIR").class.is_none());
    }
}
