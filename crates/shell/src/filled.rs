//! What typed places of the list hold: the files and addresses that a line puts into them.

use super::argument::Argument;
use super::entry::Entry;
use super::files::FileOperand;
use super::grammar::Access;
use super::tables;
use super::template::Place;
use super::walk::Walk;

impl Walk<'_> {
    /// Notes what typed places of the list hold. `touched` are the arguments that the program is known to take for files, and
    /// `is_listed` says whether its table has all arguments.
    pub(super) fn fill(&mut self, (name, arguments): (&str, &[Argument]), filled: Vec<(usize, Place)>, touched: &[usize], is_listed: bool) {
        for (index, place) in filled {
            let Some(argument) = arguments.get(index) else { continue };
            match place {
                Place::Url => {
                    self.urls.push(argument.text.clone());
                    self.fetched(name, arguments, argument);
                }
                // A program that is not known, or is given what its table does not know, may do both with it.
                Place::Path if !touched.contains(&index) || tables::is_unnamed_at(name, arguments, index, is_listed) => {
                    for access in [Access::Read, Access::Write] {
                        self.operand(FileOperand::new(argument.text.clone(), access));
                    }
                }
                _ => {}
            }
            // The path of a file is no host without a scheme.
            let is_file =
                place == Place::Path && matches!(name, "curl" | "http" | "https" | "wget" | "xh") && !argument.text.contains("://");
            self.urls.extend(tables::address_at(name, arguments, index).filter(|_| place != Place::Url && !is_file));
        }
    }

    /// Notes the addresses in words that no entry of the list has, where a program may fetch from them.
    pub(super) fn addresses(&mut self, name: &str, arguments: &[Argument], entry: &Entry<'_>) {
        let others = tables::others(name, arguments);
        let is_authored = |index: usize| index + 1 < entry.given && !entry.between.contains(&index);
        let is_open = |index: &usize| !is_authored(*index) && others.binary_search(index).is_err();
        let own = arguments.iter().take(tables::may_fetch(name, arguments, entry.is_listed)).enumerate();
        let open = own.filter(|(index, _)| is_open(index));
        self.urls.extend(open.filter_map(|(index, _)| tables::address_at(name, arguments, index)));
    }

    /// Notes the file into which a program writes what it fetches from an address, where the address gives it its name.
    fn fetched(&mut self, name: &str, arguments: &[Argument], url: &Argument) {
        let is_named = arguments.iter().any(|argument| {
            let is_letter = !argument.text.starts_with("--") && argument.text.starts_with('-') && argument.text.contains('O');
            argument.text.starts_with("--remote-n") || is_letter
        });
        if name != "wget" && !(name == "curl" && is_named) {
            return;
        }
        // `wget` decodes what `curl` leaves.
        let text = if name == "wget" { decoded(&url.text) } else { url.text.clone() };
        let path = text.split_once("://").map_or("", |(_, rest)| rest);
        let path = path.split('#').next().unwrap_or_default();
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let folders = path.split_once('/').map_or("", |(_, path)| path);
        // Behind a slash at the end `wget` takes a name of its own, and newer versions of `curl` the name in front.
        let file = match folders.rsplit_once('/').map_or(folders, |(_, file)| file) {
            "" if name == "wget" => "index.html",
            "" => folders.trim_end_matches('/').rsplit('/').next().unwrap_or_default(),
            file => file,
        };
        let with_query = format!("{file}?{query}");
        for path in [file, with_query.as_str()].into_iter().filter(|path| !path.starts_with('?') && !path.is_empty()) {
            self.operand(FileOperand::new(path.to_owned(), Access::Write));
        }
    }
}

/// Returns a text with each percent sign and two digits as the byte that they stand for. Bytes that are no UTF-8 become U+FFFD.
#[must_use]
pub fn decoded(text: &str) -> String {
    let (mut bytes, mut rest) = (Vec::with_capacity(text.len()), text.as_bytes());
    while let [first, behind @ ..] = rest {
        let digits = behind.get(..2).filter(|digits| *first == b'%' && digits.iter().all(u8::is_ascii_hexdigit));
        let byte = digits.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok());
        bytes.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { behind.get(2..).unwrap_or_default() } else { behind };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
