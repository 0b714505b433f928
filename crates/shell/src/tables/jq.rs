//! `jq` and `yq`, whose filters run and write nothing.
//!
//! Left out: `-f` (some versions take the next argument, others the first operand), `-i` (writes in place), `-L` (loads), `-s` of `yq`
//! (splits into files in one of the two programs of this name), filters of `yq` with brackets, and `--run-tests`. The
//! formats of `yq` are taken for operands where they are not attached, since one of the two programs knows no such options.

use crate::argument::Argument;

/// Returns whether a filter loads a module, by the only words that do so. Behind a dot such a word is a member.
fn loads(filter: &str) -> bool {
    let mut words = filter.split(|char: char| !char.is_ascii_alphanumeric() && char != '_' && char != '.');
    words.any(|word| ["import", "include", "modulemeta", "get_search_list"].contains(&word))
}

/// Accepts a filter of `jq` that is known and loads no module: a module is a file in a folder that the filter names.
pub(super) fn is_filter(operand: &Argument) -> bool {
    operand.as_known().is_some_and(|text| !loads(text))
}

/// Accepts an operand of `yq`: each may be the filter, and options may stand behind it. Without brackets and semicolons a filter calls nothing
/// with an argument, but for what loads a file.
pub(super) fn is_yq(operand: &Argument) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-[]\" |/:,*+~@%".contains(&byte);
    operand.as_known().is_some_and(|text| text.bytes().all(is_plain) && !text.starts_with('-') && !text.contains("load"))
}
