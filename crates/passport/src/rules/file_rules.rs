//! The passport's rules for files, for commands and tools that open files beside what they are about.

use std::borrow::Cow;

use bash_commands::grammar::Access;
use bash_commands::{Below, FileOperand, FileUse};
use tollgate_json::Text;

use super::super::argument_names::is_method;
use super::super::denial::{Denial, Report, report};
use super::super::pack::Pack;
use super::{Limits, RuleCall, budget, left_behind};

/// The passport's rules for files, for commands that open some by redirections.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FileRules<'c> {
    pub(crate) limits: &'c Limits,
    /// Whether the passport has the capability to read files.
    pub(crate) reads: bool,
    /// Whether it has the one to write them.
    pub(crate) writes: bool,
}

impl FileRules<'_> {
    /// Reports the checks of a file that a redirection opens.
    pub(super) fn check(&self, file: &FileUse, to: &mut dyn Report) {
        let (pack, granted) = match file.access {
            Access::Read => (Pack::FileRead, self.reads),
            Access::Write => (Pack::FileWrite, self.writes),
        };
        if !granted {
            let message = format!("Redirection needs capability '{}', which the passport does not have", pack.capability());
            return report(to, "redirection", Err(Denial::new("oap.unknown_capability", message)));
        }
        each(self.limits.files(pack), to, |rules, to| rules.check_redirect(&file.path, file.bytes, to));
    }

    /// Reports the checks of an address that a program is given.
    pub(super) fn check_address(&self, url: &str, to: &mut dyn Report) {
        each(self.limits.web(), to, |rules, to| rules.check_url(url, to));
    }

    /// Checks a path, which may be a glob, that a tool is given that may read it, and may write it.
    pub(super) fn check_path(&self, path: &str, is_glob: bool, writes: bool) -> Result<(), Denial> {
        packs(writes).flat_map(|pack| self.limits.files(pack)).try_for_each(|rules| rules?.check_operand(path, is_glob))
    }

    /// Checks a path that a tool may show, and may write: it may not be blocked.
    pub(super) fn check_unblocked(&self, path: &str, writes: bool) -> Result<(), Denial> {
        packs(writes).flat_map(|pack| self.limits.files(pack)).try_for_each(|rules| rules?.check_unblocked(path, false))
    }

    /// Checks the methods that a call names beside an address: under the names of methods at any depth, and as a word in capitals among the texts
    /// that it says.
    pub(super) fn check_methods<'t>(&self, call: &RuleCall<'_>, said: impl Iterator<Item = &'t str>) -> Result<(), Denial> {
        let mut open: Vec<_> = call.arguments.under(is_method).collect();
        let mut methods: Vec<Cow<'_, str>> =
            said.filter(|text| text.bytes().all(|byte| byte.is_ascii_uppercase())).map(Cow::Borrowed).collect();
        while let Some(value) = open.pop() {
            methods.extend(value.as_text().and_then(Text::into_str));
            open.extend(value.items().chain(value.members().map(|(_, value)| value)));
        }
        methods.iter().try_for_each(|method| self.limits.web().try_for_each(|rules| rules?.check_method(method)))
    }

    /// Checks that nothing blocked lies below a folder that a tool takes as a whole.
    pub(super) fn check_whole(&self, path: &str, below: Below) -> Result<(), Denial> {
        packs(true).flat_map(|pack| self.limits.files(pack)).try_for_each(|rules| rules?.check_tree(path, below))
    }

    /// Checks the patterns with which programs look for names of files.
    pub(super) fn check_patterns(&self, patterns: &[String]) -> Result<(), Denial> {
        self.limits.files(Pack::FileRead).try_for_each(|rules| rules?.check_patterns(patterns))
    }

    /// Checks the files that programs are given by arguments, and the names that programs have found by some patterns. That a program may be run
    /// at all is for the list of commands: no capability for files is asked for.
    pub(super) fn check_operands(&self, operands: &[FileOperand], patterns: &[String]) -> Result<(), Denial> {
        let is_whole =
            |operand: &FileOperand| !operand.is_found && !matches!(operand.below, Below::Stays | Below::Searched | Below::Unnamed);
        let compared = operands.iter().filter(|operand| operand.is_glob || is_whole(operand)).map(|operand| operand.path.as_str());
        budget::check_compared(compared, self.limits.entries())?;
        let searched = || operands.iter().filter(|operand| operand.below == Below::Searched && operand.access == Access::Read);
        let is_searched = searched().next().is_some();
        operands.iter().try_for_each(|operand| {
            // A name that is read where it was found is held by the folders in which it was found.
            let is_held = is_searched && operand.is_found && operand.access == Access::Read && is_any_name(operand);
            if is_held { self.check_operand(&FileOperand { is_glob: false, ..operand.clone() }) } else { self.check_operand(operand) }
        })?;
        if operands.iter().any(|operand| operand.is_found && operand.access == Access::Read) {
            let mut folders = searched().flat_map(|folder| self.limits.files(Pack::FileRead).map(move |rules| (folder, rules)));
            // A folder that is found goes away with all that lies below it.
            let is_whole =
                |operand: &FileOperand| matches!(operand.below, Below::Moves | Below::Comes | Below::Lands | Below::Sent | Below::Given);
            let goes_away = operands.iter().any(|operand| operand.is_found && operand.access == Access::Read && is_whole(operand));
            folders.try_for_each(|(folder, rules)| {
                let rules = rules?;
                rules.check_shown_below(folder, patterns)?;
                if goes_away { rules.check_whole_below(&folder.path, patterns) } else { Ok(()) }
            })?;
        }
        self.check_found(operands, patterns)
    }

    fn check_operand(&self, operand: &FileOperand) -> Result<(), Denial> {
        let pack = if operand.access == Access::Read { Pack::FileRead } else { Pack::FileWrite };
        // A whole name that is written is judged by the patterns that have found it.
        let is_glob = operand.is_glob && !(is_any_name(operand) && is_found(operand));
        self.limits.files(pack).try_for_each(|rules| {
            let rules = rules?;
            rules.check_operand(&operand.path, is_glob)?;
            // What is found has been chosen by its name.
            match operand.below {
                _ if operand.is_found => Ok(()),
                Below::Stays | Below::Searched | Below::Unnamed => Ok(()),
                // It is read here.
                Below::Given => rules.check_tree(&operand.path, Below::Sent),
                below => rules.check_tree(&operand.path, below),
            }
        })?;
        // Nobody allows it to write the file, but it may not do so where that is blocked.
        let may_write = matches!(operand.below, Below::Unnamed | Below::Sent | Below::Given) && !operand.is_found;
        let written = may_write.then(|| self.limits.files(Pack::FileWrite)).into_iter().flatten();
        written.into_iter().try_for_each(|rules| {
            let rules = rules?;
            rules.check_unblocked(&operand.path, is_glob)?;
            if operand.below == Below::Given { rules.check_tree(&operand.path, Below::Given) } else { Ok(()) }
        })
    }

    /// Checks the names that programs have found by some patterns, or by none, if such names are written.
    fn check_found(&self, operands: &[FileOperand], patterns: &[String]) -> Result<(), Denial> {
        if !operands.iter().any(is_found) {
            return Ok(());
        }
        let is_searched = |operand: &&FileOperand| operand.below == Below::Searched && operand.access == Access::Write;
        let searched = || operands.iter().filter(is_searched).filter(|_| !left_behind::are_built(patterns));
        self.limits.files(Pack::FileWrite).try_for_each(|rules| {
            let rules = rules?;
            // Where nothing blocked lies below, any name may be found.
            let is_free =
                || searched().next().is_some() && searched().all(|operand| rules.check_tree(&operand.path, Below::Changes).is_ok());
            rules.check_found(patterns).or_else(|denial| if is_free() { Ok(()) } else { Err(denial) })?;
            searched().try_for_each(|operand| rules.check_written_below(operand, patterns))
        })
    }
}

/// Reports what `check` says under all rules, or that limits cannot be read.
fn each<R>(rules: impl Iterator<Item = Result<R, Denial>>, to: &mut dyn Report, check: impl Fn(R, &mut dyn Report)) {
    rules.for_each(|rules| match rules {
        Ok(rules) => check(rules, to),
        Err(denial) => report(to, "limits", Err(denial)),
    });
}

/// Returns the packs of the rules for a file that is read, and may be written.
fn packs(writes: bool) -> impl Iterator<Item = Pack> {
    std::iter::once(Pack::FileRead).chain(writes.then_some(Pack::FileWrite))
}

/// Returns whether a path is a whole name that is not known, in the folder at hand or in a folder that is written out.
fn is_any_name(operand: &FileOperand) -> bool {
    operand.path.strip_suffix('*').is_some_and(|folder| folder.is_empty() || folder.ends_with('/') && !folder.contains('*'))
}

/// Returns whether a name that a program has found is written. What is read may be found in any case.
fn is_found(operand: &FileOperand) -> bool {
    operand.is_found && operand.access == Access::Write
}
