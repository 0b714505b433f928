//! Programs that do nothing but write files: `tee`, and `apply_patch`, whose patch names its files in a text.
//!
//! Programs differ in how they read such a text: some take blanks off a line, some end a line at other signs than a line feed. So a patch is
//! read only if its lines have the form in which all of these programs see the same files.

use super::argument::Argument;
use super::grammar::Construct;
use super::walk::Walk;

const BEGIN: &str = "*** Begin Patch";
const END: &str = "*** End Patch";
const END_OF_FILE: &str = "*** End of File";

/// What may stand on the next line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Behind the first line of the patch, or behind a file that is taken away.
    File,
    /// In the lines of a file that is added.
    Added,
    /// Behind the name of a file that is changed.
    Updated,
    /// In the changes of a file.
    Changes,
    /// Behind the mark of the file's end.
    Ended,
}

/// Says of an argument that it is no patch which all programs read in one way.
pub(super) const UNREAD: &str = "a patch that is not read";

impl Walk<'_> {
    /// Notes the files of a program that does nothing but write to them: those that are its operands, or that its patch names. Returns the places
    /// of its arguments; `None` for another program.
    pub(super) fn write_files(&mut self, name: &str, arguments: &[Argument]) -> Option<Vec<usize>> {
        match name {
            "tee" => {
                let written = arguments.iter().filter(|argument| argument.is_operand());
                written.for_each(|argument| self.output_file(name, argument, &argument.text));
            }
            "apply_patch" | "applypatch" => {
                let argument = arguments.first().filter(|_| arguments.len() == 1);
                match argument.and_then(|argument| Some((argument, patched(argument.as_known()?).ok()?))) {
                    Some((argument, paths)) => paths.into_iter().for_each(|path| self.output_file(name, argument, path)),
                    None => self.doubt_of(Some(name.to_owned()), Construct::Argument(UNREAD), argument.map_or(0, |argument| argument.at)),
                }
            }
            _ => return None,
        }
        Some((0..arguments.len()).collect())
    }
}

/// Returns the paths that a patch names, in its order.
///
/// # Errors
/// The number of the first line that is not understood, from 1 on, with what is expected there.
pub fn patched(patch: &str) -> Result<Vec<&str>, (usize, &'static str)> {
    let (mut paths, mut place) = (Vec::new(), None);
    let mut lines = patch.strip_suffix('\n').unwrap_or(patch).split('\n').enumerate().map(|(index, line)| (index + 1, line)).peekable();
    while let Some((number, line)) = lines.next() {
        let is_last = lines.peek().is_none();
        if line.contains(ends_a_line) {
            return Err((number, "a line that ends in a line feed alone, without another sign that ends a line"));
        }
        place = match place {
            None if line == BEGIN && !is_last => Some(Place::File),
            None => return Err((number, "`*** Begin Patch` as the first line of several")),
            Some(_) if is_last && line == END => return Ok(paths),
            Some(_) if is_last => return Err((number, "`*** End Patch` as the last line")),
            Some(place) => Some(next(place, line, &mut paths).map_err(|expected| (number, expected))?),
        };
    }
    Err((1, "`*** Begin Patch` as the first line of several"))
}

/// Reads a line between the first and the last, and takes its path.
fn next<'p>(place: Place, line: &'p str, paths: &mut Vec<&'p str>) -> Result<Place, &'static str> {
    const HEADER: &str =
        "`*** Add File: `, `*** Update File: ` or `*** Delete File: ` and a path without blanks around it, or `*** End Patch`";
    const CONTENT: &str = "a line that begins with `+`, `-`, a blank or `@@`, or the header of a file";
    let headers = [
        ("*** Add File: ", Place::Added),
        ("*** Update File: ", Place::Updated),
        ("*** Delete File: ", Place::File),
        ("*** Move to: ", Place::Changes),
    ];
    if let Some((path, behind)) = headers.iter().find_map(|(header, behind)| Some((line.strip_prefix(header)?, *behind))) {
        let is_path = !path.is_empty() && path.trim_matches(is_blank) == path;
        if !is_path || behind == Place::Changes && place != Place::Updated {
            return Err(HEADER);
        }
        paths.push(path);
        return Ok(behind);
    }
    match (place, line.chars().next()) {
        (Place::Added, Some('+')) => Ok(Place::Added),
        (Place::Updated | Place::Changes, _) if line == END_OF_FILE => Ok(Place::Ended),
        (Place::Ended, _) if line.starts_with("@@") => Ok(Place::Changes),
        // Some programs take the blank off, and read a header.
        (Place::Updated | Place::Changes, Some(' ')) if line.trim_start_matches(is_blank).starts_with("***") => Err(CONTENT),
        (Place::Updated | Place::Changes, None | Some('+' | '-' | ' ')) => Ok(Place::Changes),
        (Place::Updated | Place::Changes, _) if line.starts_with("@@") => Ok(Place::Changes),
        (Place::Updated | Place::Changes, _) => Err(CONTENT),
        (Place::Added, _) => Err("a line that begins with `+`, or the header of a file"),
        (Place::File | Place::Ended, _) => Err(HEADER),
    }
}

/// Returns whether a character may end a line to some program.
fn ends_a_line(char: char) -> bool {
    char.is_control() && char != '\t' || matches!(char, '\u{2028}' | '\u{2029}')
}

/// Returns whether some program takes a character off the ends of a line.
fn is_blank(char: char) -> bool {
    char.is_whitespace() || char == '\u{feff}'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(patch: &str) -> Result<Vec<&str>, usize> {
        patched(patch).map_err(|(line, _)| line)
    }

    #[test]
    fn headers_name_files_and_content_names_none() {
        let patch = "*** Begin Patch\n*** Add File: a b.md\n++*** Delete File: x\n+\n*** Update File: c\n*** Move to: d\n@@ fn x\n-*** y\n \n\n+z\n\
                     *** End of File\n*** Delete File: e\n*** End Patch";
        assert_eq!(files(patch), Ok(vec!["a b.md", "c", "d", "e"]));
        assert_eq!(files(&format!("{patch}\n")), files(patch));
        assert_eq!(files("*** Begin Patch\n*** End Patch"), Ok(Vec::new()));
    }

    #[test]
    fn what_programs_may_read_in_two_ways_is_refused() {
        for (lines, refused) in [
            ("", 1),
            ("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b", 1),
            (" *** Begin Patch\n*** Delete File: x\n*** End Patch", 1),
            ("*** Begin Patch\r\n*** Delete File: x\r\n*** End Patch", 1),
            ("*** Begin Patch\n*** Delete File: x\n*** End Patch\n\n", 3),
            ("*** Begin Patch\n*** Delete File: x\n*** End Patch\n*** Begin Patch\n*** Delete File: y\n*** End Patch", 3),
            ("*** Begin Patch\n*** Delete File: x \n*** End Patch", 2),
            ("*** Begin Patch\n*** Delete File:  x\n*** End Patch", 2),
            ("*** Begin Patch\n*** Delete File: \n*** End Patch", 2),
            ("*** Begin Patch\n*** Rename File: x\n*** End Patch", 2),
            ("*** Begin Patch\n*** Move to: x\n*** End Patch", 2),
            ("*** Begin Patch\n*** Delete File: x\n+a\n*** End Patch", 3),
            ("*** Begin Patch\n*** Add File: x\n+a\n *** Delete File: y\n*** End Patch", 4),
            ("*** Begin Patch\n*** Update File: x\n *** Delete File: y\n*** End Patch", 3),
            ("*** Begin Patch\n*** Update File: x\n@@\n+a\u{2028}*** Delete File: y\n*** End Patch", 4),
            ("*** Begin Patch\n*** Update File: x\n+a\n*** End of File\n *** Delete File: y\n*** End Patch", 5),
            ("*** Begin Patch\n*** Update File: x\n \u{feff}*** Delete File: y\n*** End Patch", 3),
            ("*** Begin Patch\n*** Update File: x\n\u{a0}*** Delete File: y\n*** End Patch", 3),
        ] {
            assert_eq!(files(lines), Err(refused), "{lines:?}");
        }
    }
}
