//! The files of command lines: those that redirections open, those that programs are given by arguments, and names that programs find.

use bash_commands::{Below, FileOperand};

use super::super::super::denial::{Denial, Report, report};
use super::super::super::look_alike::plain_spelling;
use super::super::super::path::{NormalPath, PathSet};
use super::super::file_path::read_path;
use super::super::left_behind::{self, BUILT};
use super::super::left_out::is_left_out;
use super::super::{budget, check_limit, deny_found, deny_if};
use super::{FileLimits, MATCHED, Patterns};

const UNSIZED: &str = "Size of what is written cannot be told, and max_file_size limits it; write a text that is written out, with echo, printf \
     or cat <<'EOF', or with a tool for files";

impl FileLimits {
    /// Reports the checks of a file that a redirection opens: the same as for a tool with this path. `bytes` is the size of what is written. Where
    /// sizes are limited and the command does not tell the size, the write is denied.
    pub(in super::super) fn check_redirect(&self, path: &str, bytes: Option<usize>, to: &mut dyn Report) {
        let normal = match read_path(path) {
            Ok(normal) => normal,
            Err(denial) => return report(to, "path", Err(denial)),
        };
        report(to, "allowed_paths", self.check_allowed_here(path, &normal));
        self.check_place(&normal, path, self.is_read, to);
        if self.is_read {
            return;
        }
        let size = check_limit(&self.max_file_size, |_| match bytes {
            Some(bytes) => self.check_bytes(bytes),
            None => Err(Denial::new("oap.file_too_large", UNSIZED)),
        });
        report(to, "max_file_size", size);
    }

    /// Checks a file that a program is given by an argument. A path from the root or a home has to be allowed, and no path may be blocked. Where
    /// the working folder is not known, a path below it is taken to be allowed, as the folder is.
    pub(in super::super) fn check_operand(&self, text: &str, is_glob: bool) -> Result<(), Denial> {
        budget::check_depth(text)?;
        let path = if is_glob { NormalPath::of_glob(text) } else { NormalPath::new(text) };
        self.check_allowed_here(text, &path)?;
        self.extensions.check_of_command(path.name(), is_glob)?;
        self.check_unblocked(text, is_glob)
    }

    /// Checks that a file is not blocked, whether it is in a list or not.
    pub(in super::super) fn check_unblocked(&self, text: &str, is_glob: bool) -> Result<(), Denial> {
        let path = NormalPath::new(text);
        self.check_places(&path, text)?;
        self.extensions.check_ending(path.name())?;
        if let Some(spelling) = plain_spelling(text) {
            self.check_places(&NormalPath::new(&spelling), &spelling)?;
        }
        self.check_finds(&if is_glob { bash_commands::braces(text) } else { Vec::new() })
    }

    /// Checks that nothing blocked lies below a file that is taken away.
    pub(in super::super) fn check_tree(&self, text: &str, below: Below) -> Result<(), Denial> {
        self.check_below(text, below, &|_| true)
    }

    /// Checks that no blocked path may have a name that is found below a folder by some patterns, and is written.
    pub(in super::super) fn check_written_below(&self, folder: &FileOperand, patterns: &[String]) -> Result<(), Denial> {
        self.check_below(&folder.path, folder.below, &|entry| !is_left_out(entry, folder, self.allowed_paths.valid(), patterns))
    }

    /// Checks that no blocked path may have a name that is found below a folder by some patterns, and is read.
    pub(in super::super) fn check_shown_below(&self, folder: &FileOperand, patterns: &[String]) -> Result<(), Denial> {
        const MESSAGE: &str = "Files that a search finds are read only where no blocked path lies below its folder; leave the blocked path out by \
             its name, as in find src -name '*.ts' -not -path '*/private/*' and rg -l x -g '!private', or search another folder; here it may find";
        let counts = |entry: &str| !is_left_out(entry, folder, self.allowed_paths.valid(), patterns);
        check_limit(&self.blocked_paths, |blocked| {
            deny_found(blocked.may_lie_shown_below(&folder.path, &counts), "oap.path_blocked", MESSAGE)
        })?;
        check_limit(&self.blocked_patterns, |patterns| {
            deny_found(patterns.rooted.may_lie_shown_below(&folder.path, &counts), "oap.blocked_pattern", MESSAGE)
        })
    }

    /// Checks that no folder above a blocked path is found below a folder by some patterns.
    pub(in super::super) fn check_whole_below(&self, folder: &str, patterns: &[String]) -> Result<(), Denial> {
        let is_above = |blocked: &PathSet| left_behind::may_be_above(blocked, patterns);
        check_limit(&self.blocked_paths, |blocked| if is_above(blocked) { self.check_tree(folder, Below::Moves) } else { Ok(()) })
    }

    /// Checks patterns with which programs look for names: none may name a blocked place, or end in an extension that is not allowed. A search reads
    /// what lies below its folder in any case.
    pub(in super::super) fn check_patterns(&self, patterns: &[String]) -> Result<(), Denial> {
        const MESSAGE: &str = "A pattern of names looks for a blocked path";
        let names = |blocked: &PathSet| patterns.iter().any(|pattern| blocked.is_named_by(pattern));
        check_limit(&self.blocked_paths, |blocked| deny_if(names(blocked), "oap.path_blocked", MESSAGE))?;
        let asks = |blocked: &Patterns| patterns.iter().any(|pattern| blocked.is_asked_for_by(pattern, &[]));
        check_limit(&self.blocked_patterns, |blocked| deny_if(asks(blocked), "oap.blocked_pattern", MATCHED))?;
        let mut names = patterns.iter().filter_map(|pattern| pattern.rsplit('/').next());
        names.try_for_each(|name| self.extensions.check_of_command(name, true))
    }

    /// Checks names that a program has found by some patterns, or without a pattern, and that are written: no name may be that of a blocked path,
    /// or of a folder above it.
    pub(in super::super) fn check_found(&self, patterns: &[String]) -> Result<(), Denial> {
        check_limit(&self.blocked_paths, |blocked| {
            let finds = |pattern: &String| {
                let hidden = |rest: &str| blocked.may_be_found_by(&format!(".*{rest}"));
                let last = pattern.rsplit('/').next().unwrap_or_default();
                blocked.has_part(last)
                    || blocked.is_named_by(pattern)
                    || blocked.may_be_found_by(pattern)
                    || last.strip_prefix('*').is_some_and(hidden)
            };
            let is_plain = |pattern: &String| left_behind::has_extension(pattern) || BUILT.contains(&pattern.as_str());
            let is_harmless = !patterns.is_empty() && !patterns.iter().any(finds) && patterns.iter().all(is_plain);
            let message = "Command writes names that a program finds, and blocked paths may be among them; look for names with an extension, as in \
                 find src -name '*.py' and grep -rl --include='*.py' x src";
            if is_harmless { Ok(()) } else { Err(Denial::new("oap.path_blocked", message)) }
        })
    }
}
