//! The words with which `programs.txt` says what may stand behind options.

use super::values::{is_refspec, is_remote};
use super::{Check, Operands, archives, awk, checks, conditions, find, git, jq, printf, reading, sed, shell, shells, starters, xargs};

/// TABLE: words for operands that are looked at one by one: the first, and the others.
const EACH: &[(&str, Check, Check)] = &[
    ("charts", checks::local, checks::local),
    ("date", checks::date, checks::date),
    ("files", checks::file, checks::file),
    ("jq", jq::is_filter, checks::anything),
    ("literal", checks::known, checks::known),
    ("modules", checks::module, checks::module),
    ("names", checks::name, checks::name),
    ("no-argument-files", checks::no_argument_file, checks::no_argument_file),
    ("package-fields", checks::package, checks::known),
    ("packages", checks::package, checks::package),
    ("place", checks::place, checks::nothing),
    ("plain", checks::plain, checks::plain),
    ("project", checks::project_or_package, checks::project_or_package),
    ("projects", checks::project, checks::project),
    ("remote", is_remote, is_refspec),
    ("remotes", is_remote, is_remote),
    ("targets", checks::target, checks::target),
    ("quoted-options", checks::quoted_option, checks::quoted_option),
    ("quoted-script", checks::plain, checks::quoted_option),
    ("word", checks::word, checks::word),
    ("written", checks::written, checks::written),
    ("yq", jq::is_yq, jq::is_yq),
];

/// TABLE: words for operands that mean something in another way, or programs that read their arguments in a way of their own.
const OTHERS: &[(&str, Operands)] = &[
    ("any", Operands::Inert),
    ("awk", Operands::Own(awk::awk)),
    ("bracket", Operands::Own(|arguments| conditions::bracket(arguments, "]"))),
    ("code", Operands::Own(reading::literal)),
    ("command", Operands::Own(starters::command)),
    ("compress", Operands::Own(archives::compress)),
    ("config", Operands::Checked(git::config)),
    ("double-bracket", Operands::Own(|arguments| conditions::bracket(arguments, "]]"))),
    ("export", Operands::Own(shell::export)),
    ("find", Operands::Own(find::find)),
    ("forwarded", Operands::Forwarded { named: false }),
    ("kill", Operands::Own(shell::kill)),
    ("lints", Operands::Checked(checks::lints)),
    ("none", Operands::AtMost(0)),
    ("nothing", Operands::Nothing),
    ("number", Operands::Own(shell::number)),
    ("numbers", Operands::Own(shell::numbers)),
    ("open", Operands::Open),
    ("own-program", Operands::Program(checks::own_program)),
    ("printf", Operands::Own(printf::printf)),
    ("refused", Operands::Refused),
    ("script", Operands::Forwarded { named: true }),
    ("sed", Operands::Own(sed::sed)),
    ("set", Operands::Own(shell::set)),
    ("shell", Operands::Own(shells::shell)),
    ("starts", Operands::Command { assignments: false }),
    ("starts-set", Operands::Command { assignments: true }),
    ("tar", Operands::Own(archives::tar)),
    ("test", Operands::Own(conditions::test)),
    ("timeout", Operands::Own(starters::timeout)),
    ("unzip", Operands::Own(archives::unzip)),
    ("version", Operands::Version),
    ("workspace", Operands::Checked(checks::workspace)),
    ("xargs", Operands::Own(xargs::xargs)),
];

/// Returns the operands that a word stands for.
pub(super) fn known(word: &'static str) -> Option<Operands> {
    if let Some((kind, rest)) = word.split_once(' ') {
        return match kind {
            "most" => rest.parse().ok().map(Operands::AtMost),
            "of" => Some(Operands::Of(rest)),
            _ => None,
        };
    }
    let each = EACH.iter().find(|(name, ..)| *name == word).map(|(_, first, rest)| Operands::Each(*first, *rest));
    each.or_else(|| OTHERS.iter().find(|(name, _)| *name == word).map(|(_, operands)| *operands))
}

/// Returns the operands that a word stands for. If the word is not known, nothing is accepted.
pub(super) fn named(word: &'static str) -> Operands {
    known(word).unwrap_or(Operands::Refused)
}
