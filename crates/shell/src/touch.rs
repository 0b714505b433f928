//! The files of a line: those that redirections open, and those that programs are given by arguments.

use super::argument::{Argument, Certainty};
use super::files::{self, FileOperand, FileUse};
use super::grammar::{Access, Construct, Piece, Word};
use super::tables::{COMPUTED_NAME, Touch, touched};
use super::template::Place;
use super::walk::Walk;

impl Walk<'_> {
    /// Notes the files that a program is given. Names that the line computes cannot be held to any rule.
    /// Returns the places of the arguments that are files.
    pub(super) fn touch(&mut self, name: &str, arguments: &[Argument]) -> Vec<usize> {
        if name == "tee" {
            self.tee(arguments);
            return (0..arguments.len()).collect();
        }
        let mut places = Vec::new();
        for touch in touched(name, arguments) {
            match touch {
                Touch::Pattern(pattern) => self.patterns.push(pattern),
                Touch::File { index, path, access } => {
                    let Some(argument) = arguments.get(index) else { continue };
                    if files::is_harmless_device(&path) {
                        continue;
                    }
                    if argument.computed && self.allow.is_some() {
                        self.doubt_of(Some(name.to_owned()), Construct::Argument(COMPUTED_NAME), argument.at);
                    }
                    let is_glob = argument.certainty != Certainty::Known && path.contains(['*', '?', '[']);
                    self.operands.push(FileOperand { path, access, is_glob, is_found: argument.found });
                    places.push(index);
                }
            }
        }
        places
    }

    /// Notes the files that `tee` writes, which are as good as redirections.
    fn tee(&mut self, arguments: &[Argument]) {
        for argument in arguments.iter().filter(|argument| argument.is_operand()) {
            match argument.as_known() {
                Some(path) if files::is_harmless_device(path) => {}
                Some(path) if files::is_special(path) => self.doubt(Construct::Device, argument.at),
                Some(path) => {
                    let at = self.text_at.unwrap_or(argument.at);
                    self.files.push(FileUse { path: path.to_owned(), access: Access::Write, bytes: None, at });
                }
                None if self.allow.is_some() => self.doubt_of(Some("tee".to_owned()), Construct::Argument(COMPUTED_NAME), argument.at),
                None => {}
            }
        }
    }

    /// Notes what typed places of the list hold. `touched` are the arguments that the program is known to take for files.
    pub(super) fn fill(&mut self, filled: Vec<(usize, Place)>, arguments: &[Argument], touched: &[usize]) {
        for (index, place) in filled {
            let Some(argument) = arguments.get(index) else { continue };
            match place {
                Place::Url => self.urls.push(argument.text.clone()),
                // A program that is not known may do both with it.
                Place::Path if !touched.contains(&index) => {
                    for access in [Access::Read, Access::Write] {
                        self.operands.push(FileOperand { path: argument.text.clone(), access, is_glob: false, is_found: false });
                    }
                }
                _ => {}
            }
        }
    }

    pub(super) fn redirect(&mut self, access: Access, target: &Word, bytes: Option<usize>) {
        let argument = self.argument(target);
        // The home directory is as literal as an absolute path.
        let pieces: Vec<&Piece> = target.pieces.iter().filter(|piece| !matches!(piece, Piece::Text(text) if text.is_empty())).collect();
        let is_home = matches!(pieces.as_slice(), [Piece::Home] | [Piece::Home, Piece::Text(_)]);
        if !is_home && argument.as_known().is_none_or(str::is_empty) {
            return self.doubt(Construct::Target, target.at);
        }
        if files::is_harmless_device(&argument.text) {
            return;
        }
        if files::is_special(&argument.text) {
            return self.doubt(Construct::Device, target.at);
        }
        self.files.push(FileUse { path: argument.text, access, bytes, at: self.text_at.unwrap_or(target.at) });
    }

    /// Follows relative paths through the folders that the line goes to.
    pub(super) fn resolve_files(&mut self) {
        if self.directories.has_moved() {
            for at in std::mem::take(&mut self.relative_programs) {
                self.doubt(Construct::RelativeProgram, at);
            }
        }
        let mut resolved = Vec::new();
        for file in std::mem::take(&mut self.files) {
            if file.is_relative() && self.directories.is_lost() {
                self.doubt(Construct::Directory, file.at);
            }
            for (path, _) in self.directories.all(&file.path) {
                if files::is_special(&path) {
                    self.doubt(Construct::Device, file.at);
                }
                resolved.push(FileUse { path, ..file.clone() });
            }
        }
        self.files = resolved;
        let operands = std::mem::take(&mut self.operands);
        let in_folders = |operand: FileOperand| {
            let places = self.directories.all(&operand.path).into_iter();
            places
                .map(move |(path, in_glob)| FileOperand { path, is_glob: operand.is_glob || in_glob, ..operand.clone() })
                .collect::<Vec<_>>()
        };
        self.operands = operands.into_iter().flat_map(in_folders).collect();
    }
}
