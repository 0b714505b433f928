//! In which folder each command of a line runs: what a `cd` changes for the commands behind it, and what it leaves alone.
//!
//! Behind `cd DIR &&` a command runs only if the `cd` has succeeded, so that its folder is known. Behind `||`, `;` and `&`, in the other branch of
//! an `if`, and around a loop with a `cd` in it, the folder may be any that the line goes to. What a subshell does is over with it.

use rustc_hash::FxHashSet;

use super::argument::{Argument, Certainty};
use super::files::{Below, FileOperand, FileUse, Unplaced, may_move};
use super::grammar::{Access, Command, Construct, End, List};
use super::reached::Reached;
use super::tables::{CLIMBS, climbing_link, held_by_links, left_out, makes_links, moves_links};
use super::walk::Walk;

impl Walk<'_> {
    pub(super) fn list(&mut self, list: &List) {
        let (mut moves_before, mut follows_failure) = (self.directories.moves(), false);
        for (index, pipeline) in list.iter().enumerate() {
            let moves = self.directories.moves();
            if pipeline.commands.len() > 1 && may_move(&pipeline.commands) {
                // Some shells run the last command of a pipe themselves.
                self.directories.lose();
            }
            self.pipeline(&pipeline.commands);
            if pipeline.commands.len() > 1 || pipeline.is_negated || follows_failure {
                self.directories.lose_since(moves);
            }
            let is_last = index + 1 == list.len();
            if matches!(pipeline.end, End::Or | End::Background) || pipeline.end == End::Sequence && !is_last {
                self.directories.lose_since(moves_before);
            }
            match pipeline.end {
                End::And => {}
                End::Or => follows_failure = true,
                End::Sequence | End::Background => (moves_before, follows_failure) = (self.directories.moves(), false),
            }
        }
    }

    /// Walks the conditions and branches of an `if`. A branch runs where its condition has succeeded, and all else where another one has failed.
    pub(super) fn branches(&mut self, lists: &[List]) {
        let moves_before = self.directories.moves();
        for (index, list) in lists.iter().enumerate() {
            if index % 2 == 0 {
                self.directories.lose_since(moves_before);
            }
            self.list(list);
        }
        self.directories.lose_since(moves_before);
    }

    /// Walks commands that cannot change the folder of those behind them.
    pub(super) fn elsewhere(&mut self, walk: impl FnOnce(&mut Self)) {
        let outside = self.directories.spot();
        walk(self);
        self.directories.set(outside);
    }

    /// Walks a loop. If it goes to another folder, each turn may begin in the folder in which one before it has ended.
    pub(super) fn looping(&mut self, command: &Command, walk: impl FnOnce(&mut Self)) {
        let moves = self.directories.moves();
        let is_known = may_move(std::slice::from_ref(command));
        if is_known {
            self.directories.lose();
        }
        walk(self);
        if self.directories.moves() != moves && !is_known {
            self.doubt(Construct::Directory, 0);
        }
        self.directories.lose_since(moves);
    }

    /// Notes a file that a program is given, with its path as it is seen from the folder at hand.
    pub(super) fn operand(&mut self, operand: FileOperand) {
        match self.directories.seen(&operand.path) {
            Some(path) => self.operands.push(FileOperand { path, ..operand }),
            None => self.unplaced.operands.push(operand),
        }
    }

    /// Notes the folders from which a program loads code, as a variable in front of it says.
    pub(super) fn load_from(&mut self, folders: &str) {
        let folders = folders.split(':').filter(|folder| !folder.is_empty());
        folders.for_each(|folder| self.operand(FileOperand::new(folder.to_owned(), Access::Read)));
    }

    /// Notes a name of which a part is a number that the line computes: any digits may stand there, those of a secret's name too.
    pub(super) fn number(&mut self, argument: &Argument, path: &str, access: Access) {
        if argument.is_numbered {
            let path = Argument::with_any_digits(path);
            self.spend(path.len());
            self.numbered.push(path.clone());
            self.operand(FileOperand { is_glob: true, ..FileOperand::new(path, access) });
        }
    }

    /// Notes the targets of symbolic links as they are seen from any folder: the links may be moved, and so may the folders in which they lie.
    pub(super) fn links(&mut self, name: &str, arguments: &[Argument]) {
        for (index, path) in held_by_links(name, arguments) {
            if self.is_over() {
                return;
            }
            self.spend(path.len());
            let is_glob = arguments.get(index).is_some_and(|argument| argument.certainty != Certainty::Known);
            let operand = FileOperand { is_glob, below: Below::Moves, ..FileOperand::new(path.to_owned(), Access::Read) };
            self.operands.extend([FileOperand { access: Access::Write, ..operand.clone() }, operand]);
        }
    }

    /// Refuses what [`doubtful_link`] finds.
    pub(super) fn hold_links(&mut self) {
        if let Some(at) = doubtful_link(&self.reached, &self.files).filter(|_| self.allow.is_some()) {
            self.doubt_of(Some("ln".to_owned()), Construct::Argument(CLIMBS), at);
        }
    }

    /// Notes a folder in which a program looks for names, as if it wrote there, with what it leaves out: for each folder all arguments are read.
    /// Where the folder at hand is not known, neither are the paths that are left out.
    pub(super) fn search(&mut self, name: &str, arguments: &[Argument], path: String) {
        self.spend(arguments.len());
        if self.budget == 0 {
            return;
        }
        let left_out = left_out(name, arguments, &path);
        let mut folder = FileOperand { below: Below::Searched, left_out, ..FileOperand::new(path, Access::Write) };
        let is_anywhere = |path: &String| path.starts_with("**/");
        match self.directories.seen(&folder.path) {
            Some(path) => {
                let seen = |path: &String| if is_anywhere(path) { Some(path.clone()) } else { self.directories.seen(path) };
                let left_out = folder.left_out.iter().filter_map(seen).collect();
                self.searched.push(FileOperand { path, left_out, ..folder });
            }
            None => {
                folder.left_out.retain(is_anywhere);
                self.unplaced.searched.push(folder);
            }
        }
    }

    /// Notes a file that a redirection opens.
    pub(super) fn open(&mut self, file: FileUse) {
        match self.directories.seen(&file.path) {
            Some(path) => self.files.push(FileUse { path, ..file }),
            None => self.unplaced.files.push(file),
        }
    }

    /// Puts files whose folder is not known into every folder that it may be.
    pub(super) fn place(&mut self) {
        let Unplaced { files, operands, searched } = std::mem::take(&mut self.unplaced);
        for file in files {
            if self.directories.is_lost {
                self.doubt(Construct::Directory, file.at);
            }
            let places = self.directories.all(&file.path).into_iter();
            self.files.extend(places.map(|(path, _)| FileUse { path, ..file.clone() }));
        }
        let in_folders = |operand: FileOperand| {
            let places = self.directories.all(&operand.path).into_iter();
            let place = move |(path, in_glob)| FileOperand { path, is_glob: operand.is_glob || in_glob, ..operand.clone() };
            places.map(place).collect::<Vec<_>>()
        };
        self.operands.extend(operands.into_iter().flat_map(in_folders));
        self.searched.extend(searched.into_iter().flat_map(in_folders));
    }
}

/// Returns where a line has a link that leads upwards beside a command that may move it, since from there it leaves another folder, or a path that
/// leads out of a link, since that is the way to the folder above its target.
fn doubtful_link(reached: &[Reached], files: &[FileUse]) -> Option<usize> {
    let commands = || reached.iter().filter_map(|reached| reached.words.split_first()).map(|(program, words)| (base(program), words));
    let links = || commands().filter(|(name, words)| makes_links(name, words));
    let climbing = links().find_map(|(name, words)| words.get(climbing_link(name, words)?)).map(|word| word.at);
    if let Some(at) = climbing.filter(|_| commands().any(|(name, words)| moves_links(name, words))) {
        return Some(at);
    }
    let names: FxHashSet<&str> = links().flat_map(|(_, words)| words).map(base).filter(|name| !matches!(*name, "" | "." | "..")).collect();
    let enters = |path: &str| path.split('/').any(|part| names.contains(part));
    let leaves = |path: &str| {
        let mut parts = path.split('/').skip_while(|part| !names.contains(part) && !part.contains(['*', '?', '[']));
        parts.any(|part| part == "..")
    };
    let goes_in = commands().any(|(name, words)| name == "cd" && words.iter().any(|word| enters(&word.text)));
    let leaving = || {
        commands().find_map(|(name, words)| {
            let is_other = goes_in && name != "cd" && !makes_links(name, words);
            words.iter().find(|word| leaves(&word.text) || is_other && word.text.starts_with("..")).map(|word| word.at)
        })
    };
    let opened = || files.iter().find(|file| leaves(&file.path)).map(|file| file.at);
    if names.is_empty() { None } else { leaving().or_else(opened) }
}

/// Returns the last part of a path.
fn base(word: &Argument) -> &str {
    word.text.trim_end_matches('/').rsplit('/').next().unwrap_or_default()
}
