//! Programs that write files, and have an option or operand by which they run a program or write to another place than their names say.
//!
//! `cp`, `mv`, `rm`, `mkdir`, `touch`, `chmod` and `ln` have none: they need no table. Left out: `split --filter`, `--additional-suffix` and the prefix of its files, `csplit -f`, `-b`, `install -s`, `--strip-program`,
//! `-D`, `-t`, `-S`, `-T` (other things in other versions), `patch`, `ed` and `mkfifo` as a whole.

use super::reading::{OPERAND, nothing};
use super::{Operands, PROGRAM, Program, Style};
use crate::argument::Argument;

/// TABLE: the programs.
pub const PROGRAMS: &[Program] = &[
    Program { names: &["csplit"], options: "-k -s -z -n=NUM", ..PROGRAM },
    Program {
        names: &["install", "ginstall"],
        options: "-d -v -p -C -m=MODE -o=NAME -g=NAME --directory --mode=MODE --verbose",
        ..PROGRAM
    },
    Program { names: &["patch", "sdiff", "sponge"], operands: Operands::Own(nothing), ..PROGRAM },
    Program {
        names: &["split"],
        options: "-l=NUM -b=NUM -a=NUM -d --lines=NUM --bytes=NUM --suffix-length=NUM",
        style: Style::First,
        operands: Operands::AtMost(1),
        ..PROGRAM
    },
    Program { names: &["tee"], options: "-a -i -p --append --ignore-interrupts", operands: Operands::Checked(written), ..PROGRAM },
];

/// Names of files, which are held to the rules of files as a redirection's are.
fn written(operands: &[&Argument]) -> Result<(), &'static str> {
    operands.iter().all(|operand| operand.as_known().is_some_and(|text| !text.starts_with('-'))).then_some(()).ok_or(OPERAND)
}
