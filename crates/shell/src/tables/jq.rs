//! `jq` and `yq`, whose filters run and write nothing.
//!
//! Left out: `-f` (some versions take the next argument, others the first operand), `-i` (writes in place), `-L` (loads), `-s` of `yq`
//! (splits into files in one of the two programs of this name), filters of `yq` with `system`, `load` or `eval`, and `--run-tests`. The
//! formats of `yq` are taken for operands where they are not attached, since one of the two programs knows no such options.

use super::reading::OPERAND;
use super::{Operands, PROGRAM, Program, Style};
use crate::argument::Argument;

/// TABLE: the programs.
pub const PROGRAMS: &[Program] = &[
    Program {
        names: &["jq", "gojq"],
        options: "-r -c -n -s -R -e -S -C -M -a -j --raw-output --compact-output --null-input --slurp --raw-input --exit-status --sort-keys
            --color-output --monochrome-output --ascii-output --join-output --raw-output0 --tab --indent=NEXT --stream --seq --unbuffered
            --arg=TWO --argjson=TWO --slurpfile=TWO --rawfile=TWO --args --jsonargs --version",
        operands: Operands::Checked(jq),
        ..PROGRAM
    },
    Program {
        names: &["yq"],
        options: "-r -c -n -j -e -P -C -M -N -o[=FORMAT] -p[=FORMAT] --output-format[=FORMAT] --input-format[=FORMAT] --null-input
            --prettyPrint --exit-status --no-colors --no-doc --unwrapScalar --version",
        style: Style::First,
        operands: Operands::Checked(yq),
        ..PROGRAM
    },
];

/// Returns whether a filter loads a module, by the only words that do so.
fn loads(filter: &str) -> bool {
    ["import", "include", "modulemeta", "get_search_list"].iter().any(|word| filter.contains(word))
}

/// The filter is known, and loads no module: a module is a file in a folder that the filter names.
fn jq(operands: &[&Argument]) -> Result<(), &'static str> {
    let Some((filter, _)) = operands.split_first() else { return Ok(()) };
    filter.as_known().is_some_and(|text| !loads(text)).then_some(()).ok_or(OPERAND)
}

/// Each may be the filter, and options may stand behind it.
fn yq(operands: &[&Argument]) -> Result<(), &'static str> {
    let reads = |text: &str| text.contains("system") || text.contains('(') && (text.contains("load") || text.contains("eval"));
    let is_harmless = |text: &str| !reads(text) && !loads(text) && !text.starts_with('-');
    operands.iter().all(|operand| operand.as_known().is_some_and(is_harmless)).then_some(()).ok_or(OPERAND)
}
