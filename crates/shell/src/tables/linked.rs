//! Files that programs touch by other names than their operands: `ln`, `cp` and `mv`, and the folders that builders enter.

use super::archives::{bundles, extracted_to};
use super::looking::HIDDEN_ONES;
use super::outputs::{entered, outputs};
use super::touches::{Touch, operands, scan_of, targets, words};
use super::trees::has;
use crate::argument::Argument;
use crate::files::is_harmless_device;
use crate::grammar::Access;

/// The hidden folder that a name found by its extension may be an option for: `*.x` finds a file that is called `-t.x`.
pub(super) fn hidden_targets(arguments: &[Argument]) -> impl Iterator<Item = Touch> {
    let kinds = arguments.iter().enumerate().filter_map(|(index, argument)| Some((index, argument.text.strip_prefix('*')?)));
    kinds.map(|(index, path)| Touch::write(index, path))
}

/// Returns whether `ln` may make links that hold the paths as they are written, and not as they are seen from the working folder.
pub(super) fn is_symbolic(arguments: &[Argument]) -> bool {
    let is_relative = || scan_of("ln", arguments).is_some_and(|scan| scan.has(&["r", "relative"]));
    has(arguments, &['s'], "symbolic") && !is_relative()
}

/// Follows the relative paths that symbolic links hold from the folders in which the links may lie: the last operand, or the folder in which that
/// lies.
pub(super) fn seen_from_link(touched: &mut Vec<Touch>) {
    let is_link = |touch: &&Touch| matches!(touch, Touch::File { access: Access::Write, .. });
    let Some(Touch::File { path: link, .. }) = touched.iter().rfind(is_link).filter(|link| !is_too_long(link)) else { return };
    let link = link.trim_end_matches('/').to_owned();
    let above = link.rsplit_once('/').map(|(above, _)| format!("{above}/")).unwrap_or_default();
    let mut below = Vec::new();
    for touch in touched.iter_mut() {
        if let Touch::File { index, path, access: Access::Read } = touch
            && !path.starts_with(['/', '~'])
        {
            below.push(Touch::read(*index, format!("{link}/{path}")));
            // So `$PWD` stands here: the link holds the path from the root.
            if path == "." || path.starts_with("./") {
                below.push(Touch::read(*index, path.as_str()));
            }
            *path = format!("{above}{path}");
        }
    }
    touched.append(&mut below);
}

/// Returns whether a program makes symbolic links.
#[must_use]
pub fn makes_links(program: &str, arguments: &[Argument]) -> bool {
    match program {
        "ln" => has(arguments, &['s'], "symbolic"),
        "cp" => has(arguments, &['s'], "symbolic-link"),
        _ => false,
    }
}

/// Returns the targets of symbolic links as they are seen from any folder to which the links may be moved: relative paths without the steps up in
/// front, each with the place of its argument. With `-r` a link holds an end of the path of its target.
pub fn held_by_links<'a>(program: &str, arguments: &'a [Argument]) -> impl Iterator<Item = (usize, &'a str)> + use<'a> {
    let mut sources = if makes_links(program, arguments) { operands(program, arguments) } else { Vec::new() };
    if sources.len() > 1 && targets(arguments).is_empty() {
        sources.pop();
    }
    let holds_end = program == "ln" && has(arguments, &['r'], "relative");
    sources.into_iter().flat_map(move |index| {
        let text = arguments.get(index).map_or("", |argument| argument.text.as_str());
        let whole = Some(without_climbs(text)).filter(|_| holds_end || !text.starts_with(['/', '~']));
        let ends = text.match_indices('/').filter(move |_| holds_end).filter_map(move |(at, _)| text.get(at..)).map(without_climbs);
        whole.into_iter().chain(ends).map(move |path| (index, path))
    })
}

/// Says of a link that it leads upwards where the line may move it, and of a path that it leads out of a link.
pub const CLIMBS: &str = "a path that leads up beside a link";

/// Returns the place of a target of a symbolic link that leads upwards.
#[must_use]
pub fn climbing_link(program: &str, arguments: &[Argument]) -> Option<usize> {
    let holds_end = program == "ln" && has(arguments, &['r'], "relative");
    let climbs = |index: &usize| arguments.get(*index).is_some_and(|argument| argument.text.split('/').any(|part| part == ".."));
    held_by_links(program, arguments).map(|(index, _)| index).find(|index| holds_end || climbs(index))
}

/// Returns whether a program may move links, or copy them as such.
#[must_use]
pub fn moves_links(program: &str, arguments: &[Argument]) -> bool {
    match program {
        "mv" | "rsync" | "tar" | "gtar" | "bsdtar" => true,
        "git" => arguments.iter().any(|argument| argument.text == "mv"),
        "cp" => has(arguments, &['a', 'd', 'r', 'R', 'P'], "archive recursive no-dereference"),
        _ => false,
    }
}

/// Returns a path without the steps up, and those that lead nowhere, in front of it.
fn without_climbs(path: &str) -> &str {
    let mut rest = path;
    while let Some(behind) = ["../", "./", "/"].iter().find_map(|front| rest.strip_prefix(front)) {
        rest = behind;
    }
    if matches!(rest, "" | "..") { "." } else { rest }
}

/// Returns the files that `diff` reads where an operand is a folder: the file in it that has the name of the other operand.
pub(super) fn met(arguments: &[Argument], operands: &[usize]) -> Vec<Touch> {
    let [first, second] = *operands else { return Vec::new() };
    let is_device = |index: &usize| arguments.get(*index).is_some_and(|argument| is_harmless_device(&argument.text));
    let read = |touch: Touch| match touch {
        Touch::File { index, path, .. } => Touch::read(index, path),
        pattern @ Touch::Pattern(_) => pattern,
    };
    let pairs = [[first, second], [second, first]];
    let pairs = pairs.iter().filter(|pair| !pair.iter().any(is_device));
    pairs.flat_map(|pair| placed(arguments, pair, None)).map(read).collect()
}

/// Returns the files that `split` writes: their names begin with a word that may be its prefix.
pub(super) fn parts(arguments: &[Argument], operands: &[usize]) -> Vec<Touch> {
    let named = operands.iter().skip(1).filter_map(|index| Some((*index, arguments.get(*index)?.text.as_str())));
    let prefixes = named.chain(operands.first().map(|index| (*index, "x")));
    prefixes.map(|(index, prefix)| Touch::write(index, format!("{prefix}*"))).collect()
}

/// Returns the program that `go build` writes: it has the name of its package, and lies in the folder that an option names, or in the folder at
/// hand.
pub(super) fn built_by_go(arguments: &[Argument]) -> Vec<Touch> {
    let is_build = arguments.iter().any(|argument| argument.text == "build");
    let entered = entered(arguments, "C").unwrap_or(".").to_owned();
    let folder = outputs("go", arguments).into_iter().map(|(_, path)| path).next().unwrap_or(entered);
    let named = |index: usize| {
        let name = arguments.get(index)?.text.trim_end_matches('/').rsplit('/').next()?;
        let path = format!("{folder}/{}", name.split('@').next()?.trim_end_matches(".go"));
        Some(Touch::write(index, path)).filter(|_| !matches!(name, "" | "." | ".." | "..."))
    };
    let packages = if is_build { words(arguments) } else { Vec::new() };
    if packages.len() * folder.len() > PLACED_BYTES_MAX {
        return vec![Touch::Pattern(HIDDEN_ONES.to_owned())];
    }
    packages.into_iter().skip(1).filter_map(named).collect()
}

/// How many bytes the paths of the folder of programs that are built may have together. Behind more nothing is looked at, and the line is refused.
const PLACED_BYTES_MAX: usize = 1 << 16;

/// The longest path of Linux, in bytes. No file lies behind a longer one.
const PATH_BYTES_MAX: usize = 4096;

fn is_too_long(touch: &&Touch) -> bool {
    matches!(touch, Touch::File { path, .. } if path.len() > PATH_BYTES_MAX)
}

/// What programs write that put files into a folder under the names that the files have: `cp x/a .` writes `./a`. The last operand, or what `-t`
/// names, may be such a folder. Without one, `ln` writes into the working folder.
pub(super) fn placed(arguments: &[Argument], operands: &[usize], target: Option<(usize, String)>) -> Vec<Touch> {
    let (folder, sources) = match (target, operands) {
        (Some(target), _) => (target, operands),
        (None, [index]) => ((*index, ".".to_owned()), operands),
        (None, [sources @ .., last]) => {
            let Some(folder) = arguments.get(*last) else { return Vec::new() };
            ((*last, folder.text.clone()), sources)
        }
        (None, []) => return Vec::new(),
    };
    let has = |option: &str| arguments.iter().any(|argument| argument.text.len() > 3 && option.starts_with(&argument.text));
    if folder.1.len() > PATH_BYTES_MAX {
        return Vec::new();
    }
    let keeps_folders = has("--parents");
    let is_letter = |text: &str| text.starts_with('-') && !text.starts_with("--") && text.contains('T');
    let merges = has("--no-target-directory") || arguments.iter().any(|argument| is_letter(&argument.text));
    let is_open = arguments.get(folder.0).is_some_and(|argument| argument.as_known().is_none());
    let below = |name: &str| match name {
        // What lies in the source goes into the folder itself.
        "" | "." | ".." | "~" => folder.1.clone(),
        name => format!("{}/{name}", folder.1.trim_end_matches('/')),
    };
    // What looks like an option may be a value or an operand, so that the name alone counts always.
    let written = |index: &usize| {
        let source = arguments.get(*index).map_or("", |argument| argument.text.trim_end_matches('/'));
        let name = source.rsplit('/').next().unwrap_or(source);
        let paths = [Some(below(name)), keeps_folders.then(|| below(source)), merges.then(|| folder.1.clone())];
        let index = if is_open { folder.0 } else { *index };
        paths.into_iter().flatten().map(move |path| Touch::write(index, path))
    };
    sources.iter().flat_map(written).collect()
}

/// What `tar` writes, if it does not only list: the archive, or else the members that are named. Where its letters take other values too, any of
/// its words may be the one that is written.
pub(super) fn of_archive(arguments: &[Argument]) -> Vec<Touch> {
    const VALUED: &str = "bFgHIKLNTVX";
    let texts = || arguments.iter().map(|argument| argument.text.as_str()).enumerate();
    let bundles = || bundles(arguments);
    let has = |letters: &[char], words: &[&str]| {
        bundles().any(|(_, text)| text.contains(letters)) || texts().any(|(_, text)| words.contains(&text))
    };
    if has(&['t'], &["--list"]) {
        return Vec::new();
    }
    let archives: Vec<usize> = bundles().filter(|(_, text)| text.ends_with('f')).map(|(index, _)| index + 1).collect();
    let is_bundle = |text: &str| match text.strip_suffix('f') {
        Some(rest) => !rest.contains(['C', 'f']),
        None => !text.contains('f'),
    };
    let is_plain = bundles().all(|(_, text)| is_bundle(text) && !text.contains(|letter| VALUED.contains(letter)));
    let (is_read, is_made) = (has(&['x'], &["--extract", "--get"]), has(&['c', 'r', 'u', 'A'], &["--create", "--append", "--update"]));
    let is_written = |index: &usize| match (is_read, is_made) {
        (true, false) if is_plain => !archives.contains(index),
        (false, true) if is_plain && !archives.is_empty() => archives.contains(index),
        _ => true,
    };
    let file = |(index, text): (usize, &str)| match text.strip_prefix("--file=") {
        Some(archive) => (!is_read || is_made).then(|| (index, archive.to_owned())),
        None => (index > 0 && !text.starts_with('-') && is_written(&index)).then(|| (index, text.to_owned())),
    };
    let folder =
        extracted_to(arguments).filter(|index| *index == 0 || arguments.get(*index).is_some_and(|word| word.text.starts_with('-')));
    let folder = folder.map(|index| (index, ".".to_owned()));
    texts().filter_map(file).chain(folder).map(|(index, path)| Touch::write(index, path)).collect()
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
        touched.extend(path.map(|path| Touch::read(index, path)));
    }
    touched
}
