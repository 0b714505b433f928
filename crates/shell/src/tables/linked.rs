//! Files that programs touch by other names than their operands: `ln`, `cp` and `mv`, and the folders that builders enter.

use super::touches::Touch;
use crate::argument::Argument;
use crate::grammar::Access;

/// The hidden folder that a name found by its extension may be an option for: `*.x` finds a file that is called `-t.x`.
pub(super) fn hidden_targets(arguments: &[Argument]) -> impl Iterator<Item = Touch> {
    let kinds = arguments.iter().enumerate().filter_map(|(index, argument)| Some((index, argument.text.strip_prefix('*')?)));
    kinds.map(|(index, path)| Touch::File { index, path: path.to_owned(), access: Access::Write })
}

/// Returns whether `ln` makes links that hold the paths as they are written, and not as they are seen from the working folder.
pub(super) fn is_symbolic(arguments: &[Argument]) -> bool {
    let has = |letter: char, word: &str| {
        arguments.iter().map(|argument| argument.text.as_str()).any(|text| match text.strip_prefix("--") {
            Some(long) => !long.is_empty() && word.starts_with(long),
            None => text.starts_with('-') && text.contains(letter),
        })
    };
    has('s', "symbolic") && !has('r', "relative")
}

/// Follows the relative paths that symbolic links hold from the folders in which the links may lie: the last operand, or the folder in which that
/// lies.
pub(super) fn seen_from_link(touched: &mut Vec<Touch>) {
    let is_link = |touch: &&Touch| matches!(touch, Touch::File { access: Access::Write, .. });
    let Some(Touch::File { path: link, .. }) = touched.iter().rfind(is_link) else { return };
    let link = link.trim_end_matches('/').to_owned();
    let above = link.rsplit_once('/').map(|(above, _)| format!("{above}/")).unwrap_or_default();
    let mut below = Vec::new();
    for touch in touched.iter_mut() {
        if let Touch::File { index, path, access: Access::Read } = touch
            && !path.starts_with(['/', '~'])
        {
            below.push(Touch::File { index: *index, path: format!("{link}/{path}"), access: Access::Read });
            *path = format!("{above}{path}");
        }
    }
    touched.append(&mut below);
}

/// What a builder enters by an option.
pub(super) fn of_folder_option(arguments: &[Argument]) -> Vec<Touch> {
    let mut touched = Vec::new();
    for (index, argument) in arguments.iter().enumerate() {
        let text = argument.text.as_str();
        let path = match text.strip_prefix("--directory").or_else(|| text.strip_prefix("-C")) {
            Some("") => arguments.get(index + 1).map(|next| next.text.clone()),
            Some(rest) => Some(rest.strip_prefix('=').unwrap_or(rest).to_owned()),
            None => None,
        };
        touched.extend(path.map(|path| Touch::File { index, path, access: Access::Read }));
    }
    touched
}
