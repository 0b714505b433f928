//! The files of a line: those that redirections open, and those that programs are given by arguments.

use rustc_hash::FxHashSet;

use super::argument::{Argument, Certainty};
use super::entry::Entry;
use super::files::{self, Below, FileOperand, FileUse};
use super::found;
use super::grammar::{Access, Construct, Piece, Word};
use super::reached::Way;
use super::tables::{self, COMPUTED_NAME, Touch, touched};
use super::walk::{WORD_BYTES, Walk};

/// TABLE: programs that find names of files below what they are given, with the options without which they find no hidden files.
const FINDERS: [(&str, &[&str]); 4] = [
    ("egrep fgrep find gfind grep", &[]),
    ("fd fdfind", &["-H", "--hidden", "-u", "--unrestricted"]),
    ("git", &["-o", "--others"]),
    ("rg", &["-.", "--hidden", "-u", "--unrestricted"]),
];

/// TABLE: programs that print what is in the files that they are given, or give it another name.
const SHOWN: &str = "awk base32 base64 basenc bat batcat bsdtar bzcat bzip2 cat cmp column comm cp cut diff expand fmt fold gawk gdiff ginstall gojq \
     gsed gsort gtar gunzip guniq gxargs gzcat gzip head hexdump iconv install join jq less ln lz4cat mawk more mv nawk nl od original-awk paste \
     pigz pr rev sed sort strings tac tail tar tsort unexpand uniq unxz unzstd xargs xxd xz xzcat yq zcat zip zstd zstdcat";

/// TABLE: subcommands of `git` that print what is in files that it does not know.
const GIT_SHOWN: [&str; 3] = ["annotate", "blame", "diff"];

impl Walk<'_> {
    /// Notes the files that a program is given. Names that the line computes cannot be held to any rule.
    /// Returns the places of the arguments that are files. What an archive holds that an entry of the list says to extract is its author's.
    pub(super) fn touch(&mut self, name: &str, arguments: &[Argument], behind: &Entry<'_>) -> Vec<usize> {
        if let Some(places) = self.write_files(name, arguments) {
            return places;
        }
        if name == "cd" && self.round == Some(true) && arguments.iter().all(|argument| argument.text == "..") {
            return Vec::new();
        }
        let mut places = Vec::new();
        for (index, path) in tables::outputs(name, arguments) {
            let Some(argument) = arguments.get(index) else { continue };
            self.output_file(name, argument, &path);
            places.push(index);
        }
        let touches = touched_behind(behind, name, arguments);
        let trees = trees_behind(behind, name, arguments);
        // Names that are only shown are held by no rule.
        let is_shown = !self.is_read_on && tables::only_names(name, arguments);
        self.note_found(name, arguments, &touches, is_shown);
        self.note_folders(name, arguments, &touches);
        let is_numbered = arguments.iter().any(|argument| argument.is_numbered);
        for touch in touches {
            match touch {
                // All of them go at the end.
                _ if self.budget == 0 => break,
                // `find` and `fd` look for names without a dot beside hidden names too, but `fd` asks for a hidden name by its dot.
                Touch::Pattern(pattern) if is_shown && !(name.starts_with("fd") && pattern.contains('.')) => {}
                Touch::Pattern(pattern) => self.patterns.push(if is_numbered { Argument::with_any_digits(&pattern) } else { pattern }),
                Touch::File { index, path, access } => {
                    let Some(argument) = arguments.get(index).filter(|_| !files::is_harmless_device(&path)) else { continue };
                    self.doubt_computed(name, argument);
                    self.number(argument, &path, access);
                    // To some programs a quoted pattern is one too.
                    let is_open = argument.certainty != Certainty::Known || tables::expands_patterns(name);
                    let is_glob = is_open && path.contains(['*', '?', '[', '{']);
                    let below = match trees.get(index).copied().unwrap_or(Below::Stays) {
                        Below::Changes | Below::Fills | Below::Tracked | Below::Committed if access == Access::Read => Below::Stays,
                        below => below,
                    };
                    // `git` may change its whole working folder, which may lie above the folder at hand.
                    if matches!(below, Below::Tracked | Below::Committed) && path == "." {
                        self.operands.push(FileOperand { below, ..FileOperand::new(path.clone(), access) });
                    }
                    self.touch_above((name, arguments), index, &path, access);
                    self.spend(self.directories.seen(&path).map_or(path.len(), |path| path.len()));
                    if name != "git" && !argument.found && hiding(name).is_some() {
                        self.search(name, arguments, path.clone());
                    }
                    // Behind another folder a name is that of a file there, which no program has found.
                    let folder = path.strip_suffix("/*").filter(|folder| argument.found && !folder.contains('*'));
                    folder.into_iter().for_each(|folder| self.search("", &[], format!("{folder}/")));
                    // Of more folders than are followed no word is looked at.
                    self.names_relative |= name != "cd" && !path.starts_with(['/', '~']);
                    self.operand(FileOperand { is_glob, is_found: argument.found, below, ..FileOperand::new(path, access) });
                    places.push(index);
                }
            }
        }
        places
    }

    /// Notes the folders in which a program finds names or works without being given them: home for `cd`, and the folder to which the line has gone.
    fn note_folders(&mut self, name: &str, arguments: &[Argument], touches: &[Touch]) {
        searched_besides(name, arguments, touches).into_iter().for_each(|folder| self.search(name, arguments, folder));
        if matches!(name, "cd" | "pushd") && arguments.iter().all(|argument| !argument.is_operand() && argument.text != "-") {
            self.operand(FileOperand::new("~".to_owned(), Access::Read));
        }
        let is_elsewhere = self.directories.seen(".").is_none_or(|here| !matches!(here.as_str(), "" | "."));
        if is_elsewhere && tables::works_here(name, arguments) {
            self.operand(FileOperand { below: Below::Unnamed, ..FileOperand::new(".".to_owned(), Access::Read) });
        }
    }

    /// Refuses a name of a file that the line computes, under a list.
    fn doubt_computed(&mut self, name: &str, argument: &Argument) {
        if argument.computed && self.allow.is_some() {
            let what = if tables::is_worded(name) { tables::COMPUTED_WORD } else { COMPUTED_NAME };
            self.doubt_of(Some(name.to_owned()), Construct::Argument(what), argument.at);
        }
    }

    /// Notes a path that `git` sees from the root of its repository in every folder above the folder at hand: each may be the root.
    fn touch_above(&mut self, (name, arguments): (&str, &[Argument]), index: usize, path: &str, access: Access) {
        if name != "git" || !tables::is_from_root(arguments, index, path) {
            return;
        }
        for above in self.directories.above(path) {
            self.spend(above.len());
            if above.starts_with('/') {
                // Whether it lies in an allowed folder cannot be told: it may be no folder of the repository. What is blocked is.
                self.patterns.push(above);
            } else {
                self.operands.push(FileOperand::new(above, access));
            }
        }
    }

    /// Notes what nothing keeps out of the names that a program finds: whatever others do with them, and hidden files that are shown.
    fn note_found(&mut self, name: &str, arguments: &[Argument], touches: &[Touch], is_shown: bool) {
        let finds_others = self.is_read_on && finds_others(name, arguments, touches);
        if finds_others {
            self.patterns.push(tables::UNHELD.to_owned());
        }
        let is_unheld =
            finds_others || touches.iter().any(|touch| matches!(touch, Touch::Pattern(pattern) if tables::is_everything(pattern)));
        self.finds_hidden |= is_unheld && !is_shown && finds_hidden(name, arguments);
        let is_printed = || match name {
            "git" => arguments.iter().any(|argument| GIT_SHOWN.contains(&argument.text.as_str())),
            // What is no name of a file in a list is printed.
            _ => SHOWN.split(' ').any(|shown| shown == name) || tables::reads_names(name, arguments).is_some(),
        };
        if self.finds_hidden && arguments.iter().any(|argument| argument.found) && is_printed() {
            self.patterns.push(tables::HIDDEN_ONES.to_owned());
        }
    }

    /// Notes which arguments are texts, and refuses names that a program reads from an input that no program of the line has found.
    pub(super) fn read_texts(&mut self, name: &str, arguments: &[Argument], reached: usize) {
        if self.allow.is_none() {
            return;
        }
        if let Some((at, is_input)) = tables::reads_names(name, arguments) {
            self.reads_names = true;
            if is_input && (name == "git" || !self.is_fed_found) {
                let at = arguments.get(at).map_or(0, |argument| argument.at);
                self.doubt_of(Some(name.to_owned()), Construct::Argument(COMPUTED_NAME), at);
            }
        }
        let mut texts = tables::texts(name, arguments);
        texts.sort_unstable();
        // What `xargs` starts gets the names as arguments.
        if self.is_fed_found && name.ends_with("grep") && !matches!(self.ways.last(), Some(Way::Behind(_))) {
            // What names are chosen by looks for names itself.
            let chosen = texts.iter().filter_map(|at| arguments.get(*at)).filter(|_| !arguments.iter().any(found::is_inverting));
            self.patterns.extend(chosen.flat_map(|pattern| tables::chosen_names(&pattern.text)));
        }
        // What another program reads may be a list of names to it.
        let is_read_on = self.is_read_on && matches!(name, "echo" | "printf");
        if let Some(reached) = self.reached.get_mut(reached).filter(|_| !is_read_on) {
            reached.texts = texts;
        }
    }

    /// Notes what is known of the names that `xargs` puts among the words of a command.
    pub(super) fn hand_on(&mut self, words: &mut [Argument]) {
        // A name that was found is a whole word, or stands behind a folder that is written out.
        let is_name = |text: &str| text == "*" || text.strip_suffix("/*").is_some_and(|folder| !folder.contains('*'));
        let is_computed = |word: &Argument| word.text.contains('*') && (!self.is_fed_found || !is_name(&word.text));
        words.iter_mut().filter(|word| is_computed(word)).for_each(|word| word.computed = true);
        // Numbers are no options, and no two of them are one word.
        words.iter_mut().filter(|word| self.is_fed_numbers && word.text == "*").for_each(|word| word.is_number = true);
        if std::mem::take(&mut self.is_fed_whole) {
            let is_begun = |word: &&mut Argument| word.certainty == Certainty::Nothing && word.text.starts_with('*');
            words.iter_mut().filter(is_begun).for_each(|word| word.certainty = Certainty::Operand);
        }
    }

    /// Notes a file that a program writes what it would print to, which is as good as a redirection.
    pub(super) fn output_file(&mut self, name: &str, argument: &Argument, path: &str) {
        self.number(argument, path, Access::Write);
        let at = argument.at;
        match argument.as_known().map(|_| path) {
            Some(path) if files::is_harmless_device(path) => {}
            Some(path) if files::is_special(path) => self.doubt(Construct::Device, at),
            Some(path) => {
                let at = self.text_at.unwrap_or(at);
                self.open(FileUse { path: path.to_owned(), access: Access::Write, bytes: self.written_bytes, at });
            }
            None if self.allow.is_some() => self.doubt_of(Some(name.to_owned()), Construct::Argument(COMPUTED_NAME), at),
            None => {}
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
        self.number(&argument, &argument.text, access);
        self.open(FileUse { path: argument.text, access, bytes, at: self.text_at.unwrap_or(target.at) });
    }

    /// Notes the folder that a command goes to. That of an option is as good as that of `cd`.
    pub(super) fn goes(&mut self, name: &str, arguments: &[Argument], at: usize) {
        let globals = arguments.get(..tables::git_subcommand(arguments)).unwrap_or_default();
        let folders: Vec<&[Argument]> = match name {
            "cd" | "pushd" | "popd" => vec![arguments],
            "git" => globals
                .windows(2)
                .filter(|pair| pair.iter().take(1).any(|word| word.text == "-C"))
                .filter_map(|pair| pair.get(1..))
                .collect(),
            _ => return,
        };
        if matches!(self.ways.last(), Some(Way::Behind(_))) {
            self.directories.lose();
        }
        if name == "cd" && self.goes_round(arguments) {
            return;
        }
        for folder in folders {
            let is_back = folder.iter().any(|argument| argument.text == "-");
            if is_back && !self.directories.knows_before() && self.allow.is_some() {
                self.doubt(Construct::Directory, at);
            }
            if name == "git" {
                self.directories.enter(folder, self.repeats > 0);
            } else {
                self.directories.go(folder, self.repeats > 0);
            }
        }
    }

    /// Notes a `cd` of a loop that goes into a folder of each turn and back; returns whether it is one of these two. The way back runs only
    /// where the way into the folder has been gone, so that no turn begins above the folder where the loop does.
    fn goes_round(&mut self, arguments: &[Argument]) -> bool {
        match (self.round, arguments) {
            (Some(false), [folder]) if files::is_one_folder(folder) => {
                self.directories.go(arguments, false);
                self.round = Some(true);
                true
            }
            (Some(true), [back]) if matches!(back.as_known(), Some(".." | "-")) => {
                self.round = Some(false);
                true
            }
            _ => false,
        }
    }

    /// Calls a function with every word that may be a path, in every folder that the line goes to, and with whether it is a glob.
    pub fn paths(&self, call: &mut impl FnMut(&str, bool)) {
        let words = self.reached.iter().flat_map(|reached| reached.words_of_files(self.reads_names));
        let words = words.map(|word| (word.text.as_str(), word.certainty != Certainty::Known));
        let opened = self.files.iter().map(|file| (file.path.as_str(), false));
        for (path, is_glob) in words.chain(opened).chain(self.numbered.iter().map(|path| (path.as_str(), true))) {
            if self.directories.has_moved {
                self.directories.everywhere(path).iter().for_each(|(path, in_glob)| call(path, is_glob || *in_glob));
            } else {
                call(path, is_glob);
            }
        }
    }

    /// Follows relative paths through the folders that the line goes to.
    pub(super) fn resolve_files(&mut self) {
        if self.directories.is_beyond && self.names_relative && self.allow.is_some() {
            self.doubt(Construct::Directory, 0);
        }
        self.hold_links();
        if self.directories.has_moved {
            for at in std::mem::take(&mut self.relative_programs) {
                self.doubt(Construct::RelativeProgram, at);
            }
        }
        // What loops repeat is looked at once.
        for files in [&mut self.files, &mut self.unplaced.files] {
            let mut seen = FxHashSet::default();
            files.retain(|file| seen.insert((file.path.clone(), file.access == Access::Write, file.bytes)));
        }
        for operands in [&mut self.operands, &mut self.unplaced.operands] {
            let mut seen = FxHashSet::default();
            operands.retain(|operand| seen.insert(operand.clone()));
        }
        let placed = self.files.len() + self.operands.len();
        let unplaced = self.unplaced.files.len() + self.unplaced.operands.len();
        self.spend((placed + unplaced * self.directories.count()) * WORD_BYTES);
        // Every word is looked at in every folder.
        let words: usize = self.reached.iter().map(|reached| reached.words.len()).sum();
        self.spend(words * self.directories.bytes() / WORD_BYTES);
        if self.budget == 0 {
            self.files.clear();
            self.operands.clear();
            return self.doubt(Construct::TooMuch, 0);
        }
        self.place();
        let special: Vec<usize> = self.files.iter().filter(|file| files::is_special(&file.path)).map(|file| file.at).collect();
        special.into_iter().for_each(|at| self.doubt(Construct::Device, at));
        let is_found = |access: Access| self.operands.iter().any(|operand| operand.is_found && operand.access == access);
        let (is_read, is_written) = (is_found(Access::Read), is_found(Access::Write));
        // What is found there is read or written.
        for operand in std::mem::take(&mut self.searched) {
            self.operands.extend(is_read.then(|| FileOperand { access: Access::Read, ..operand.clone() }));
            self.operands.extend(is_written.then_some(operand));
        }
    }
}

/// Returns what a program touches. Where nothing but its words says that, what an entry names itself is its author's, and what fills its places is
/// not.
fn touched_behind(entry: &Entry<'_>, name: &str, arguments: &[Argument]) -> Vec<Touch> {
    let mut touches = touched(name, arguments, entry.is_listed);
    if entry.given > 1 && tables::is_worded(name) {
        let is_filled = |at: usize| entry.between.contains(&at) || entry.filled.iter().any(|(index, _)| *index == at);
        touches.retain(|touch| !matches!(touch, Touch::File { index, .. } if *index + 1 < entry.given && !is_filled(*index)));
    }
    touches
}

/// Returns what happens to what lies below the arguments of a command. What is extracted behind an entry is its author's.
fn trees_behind(entry: &Entry<'_>, name: &str, arguments: &[Argument]) -> Vec<Below> {
    match entry.given {
        0 | 1 => tables::trees(name, arguments),
        _ if name.ends_with("tar") && tables::extracts(arguments) => Vec::new(),
        _ => tables::trees_of_entry(name, arguments, entry.is_listed),
    }
}

/// Returns the folders in which a command finds names beside those that it is given as files: the folder at hand, where it is given none or where
/// the names are seen from another folder than the folder in which it looks.
fn searched_besides(name: &str, arguments: &[Argument], touches: &[Touch]) -> Vec<String> {
    let words: Vec<&str> = std::iter::once(name).chain(arguments.iter().map(|argument| argument.text.as_str())).collect();
    let has_folder = hiding(name).is_some() && touches.iter().any(|touch| matches!(touch, Touch::File { .. }));
    match name {
        _ if !found::is_finder(&words) => Vec::new(),
        "git" => tables::pathspec_folders(arguments),
        _ if has_folder => Vec::new(),
        _ => vec![".".to_owned()],
    }
}

/// Returns whether a command prints names that it finds and that no pattern holds. What it is given by others is held by theirs.
fn finds_others(name: &str, arguments: &[Argument], touches: &[Touch]) -> bool {
    let words: Vec<&str> = std::iter::once(name).chain(arguments.iter().map(|argument| argument.text.as_str())).collect();
    let files = || {
        touches.iter().filter_map(|touch| match touch {
            Touch::File { index, path, .. } => Some((*index, path)),
            Touch::Pattern(_) => None,
        })
    };
    let is_found = |index: usize| arguments.get(index).is_some_and(|argument| argument.found);
    let is_fed = files().next().is_some() && files().all(|(index, _)| is_found(index));
    // To `git` an operand is a pattern or a folder, of which all names are found.
    let has_folder = name == "git" && files().any(|(_, path)| !path.contains(['*', '?', '[']));
    let is_held = touches.iter().any(|touch| matches!(touch, Touch::Pattern(pattern) if !tables::is_everything(pattern))) && !has_folder;
    found::is_finder(&words) && !is_fed && !is_held
}

/// Returns whether a program finds hidden files too. Letters may be bundled.
fn finds_hidden(name: &str, arguments: &[Argument]) -> bool {
    let is_given = |option: &&str| {
        let letters = option.strip_prefix('-').filter(|letters| !letters.starts_with('-'));
        arguments.iter().map(|argument| argument.text.as_str()).any(|text| match letters {
            Some(letters) => text.starts_with('-') && !text.starts_with("--") && text.contains(letters),
            None => text == *option,
        })
    };
    hiding(name).is_some_and(|options| options.is_empty() || options.iter().any(is_given))
}

/// Returns the options without which a program that finds names finds no hidden files; `None` for any other program.
fn hiding(name: &str) -> Option<&'static [&'static str]> {
    FINDERS.iter().find(|(names, _)| names.split(' ').any(|other| other == name)).map(|(_, options)| *options)
}
