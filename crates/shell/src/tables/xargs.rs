//! `xargs`: the command that it starts, with what it reads.
//!
//! Left out: `-i`, `-l`, `-e` (take a value in some versions only), `-J`, `-R`, `-S`, `-p`, `-o`.

use std::sync::LazyLock;

use super::find::filled;
use super::options::Options;
use super::reading::{COMPUTED, COMPUTED_NAME, scan};
use super::{Started, Style, Unlisted};
use crate::argument::{Argument, Certainty};

static OPTIONS: LazyLock<Options> = LazyLock::new(|| {
    Options::new(
        "-0 -r -t -x -I=TEXT -L=NUM -P=NUM -n=NUM -s=NUM -d=TEXT -a=FILE -E=TEXT --null --no-run-if-empty --verbose --exit
        --max-args=NUM --max-procs=NUM --max-chars=NUM --delimiter=TEXT --arg-file=FILE",
    )
});

/// Returns whether `xargs` reads a file instead of its input, or is given what its table does not know.
#[must_use]
pub fn reads_list(arguments: &[Argument]) -> bool {
    scan(arguments, &OPTIONS, Style::First).map_or(true, |scan| scan.has(&["a", "arg-file"]))
}

/// Returns whether `xargs` takes names apart at a NUL.
#[must_use]
pub fn takes_nul(arguments: &[Argument]) -> bool {
    scan(arguments, &OPTIONS, Style::First).is_ok_and(|scan| scan.has(&["0", "null"]))
}

pub(super) fn xargs(arguments: &[Argument]) -> Result<Vec<Started>, Unlisted> {
    let scan = scan(arguments, &OPTIONS, Style::First)?;
    let mut command: Vec<Argument> = scan.operands.iter().filter_map(|at| arguments.get(*at)).cloned().collect();
    for (name, value) in &scan.given {
        if let Some(value) = value.as_ref().filter(|_| *name == "I") {
            let index = scan.operands.first().copied().unwrap_or(arguments.len());
            let placeholder = value.as_known().filter(|text| !text.is_empty()).ok_or(Unlisted { index, what: COMPUTED })?;
            command = command.iter().map(|word| filled(word, placeholder, Certainty::Nothing)).collect();
        }
    }
    // Another separator than the line break takes names apart where the line wants.
    let parts = |(name, value): &(_, Option<Argument>)| {
        matches!(*name, "d" | "delimiter") && value.as_ref().and_then(Argument::as_known) != Some("\\n")
    };
    if scan.given.iter().any(parts) {
        return Err(Unlisted { index: 0, what: COMPUTED_NAME });
    }
    if command.is_empty() {
        // It starts `echo`.
        return Ok(Vec::new());
    }
    // With `-I` nothing is appended, unless another option takes that back.
    if !scan.has(&["I"]) || scan.has(&["n", "L", "max-args"]) {
        let at = command.first().map_or(0, |program| program.at);
        command.push(Argument { text: "*".to_owned(), certainty: Certainty::Nothing, many: true, found: true, at, ..Argument::default() });
    }
    Ok(vec![Started::Command(command)])
}
