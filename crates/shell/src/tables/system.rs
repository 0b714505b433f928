//! The system's services, logs and cryptography: what shows and computes.
//!
//! Left out: starting, stopping and editing services, other hosts and roots (`-H`, `-M`, `--root`); emptying logs (`--vacuum-size`);
//! files to write to (`-out`, `--output`), engines and providers, which are loaded; servers to connect to.

use super::checks::{Checked, accept, files};
use super::{Operands, PROGRAM, Program, Style, Subcommand, any};
use crate::argument::Argument;

pub const PROGRAMS: &[Program] = &[
    Program {
        names: &["systemctl"],
        options: "-a --all -l --full --no-pager --plain --no-legend -q --quiet --user --system --failed -t=WORD --type=WORD \
                 --state=WORD --version",
        subcommands: SYSTEMCTL,
        ..PROGRAM
    },
    Program { names: &["service"], options: "--version", operands: Operands::Checked(service), ..PROGRAM },
    Program {
        names: &["journalctl"],
        options: "--no-pager -a --all -f --follow -e --pager-end -n[=WORD] --lines[=WORD] --no-tail -r --reverse -o=WORD \
        --output=WORD --utc -x \
                  --catalog -l --full --no-full -q --quiet -m --merge -b[=WORD] --boot[=WORD] --list-boots -k --dmesg -t=WORD \
                  --identifier=WORD -u=WORD --unit=WORD --user-unit=WORD -p=WORD --priority=WORD -g=WORD --grep=WORD -S=WORD --since=WORD \
                  -U=WORD --until=WORD --user --system --disk-usage -N --fields -F=WORD --field=WORD --no-hostname --version",
        ..PROGRAM
    },
    Program { names: &["openssl"], style: Style::Anywhere, options: "? !--version !-v", subcommands: OPENSSL, ..PROGRAM },
    Program {
        names: &["gpg", "gpg2"],
        options: "? !--version !-k !--list-keys !--list-public-keys !-K !--list-secret-keys !--fingerprint !--verify !--show-keys \
                  --keyid-format=WORD --with-colons --with-fingerprint --batch --no-tty -q --quiet -v --verbose --no-auto-key-retrieve",
        operands: Operands::Checked(files),
        ..PROGRAM
    },
    Program { names: &["ssh-keygen"], options: "? !-l -f=FILE -E=WORD -v", operands: Operands::AtMost(0), ..PROGRAM },
    Program {
        names: &["basenc"],
        options: "-d -D --decode -w=WORD --wrap=WORD --ignore-garbage --base64 --base64url --base32 --base16",
        operands: Operands::AtMost(1),
        ..PROGRAM
    },
];

/// TABLE: what `systemctl` shows.
const SYSTEMCTL: &[Subcommand] = &[any(
    "status show cat is-active is-enabled is-failed list-units list-unit-files list-timers list-sockets list-dependencies list-jobs \
     is-system-running get-default show-environment",
    "-a --all -l --full --no-pager --plain --no-legend -q --quiet --user --system --failed -t=WORD --type=WORD --state=WORD -p=WORD \
     --property=WORD --value -n=WORD --lines=WORD -o=WORD --output=WORD --reverse --with-dependencies",
)];

/// TABLE: what `openssl` computes and shows.
const OPENSSL: &[Subcommand] = &[
    Subcommand { names: "version", options: "-a -v -b -o -f -p -d", operands: Operands::AtMost(0) },
    any("dgst sha1 sha256 sha384 sha512 md5", "-sha1 -sha224 -sha256 -sha384 -sha512 -md5 -hex -binary -r -c"),
    Subcommand { names: "rand", options: "-hex -base64", operands: Operands::AtMost(1) },
    Subcommand {
        names: "x509",
        options: "-in=NAME -inform=WORD -noout -text -subject -issuer -dates -startdate -enddate -serial -fingerprint \
        -pubkey -modulus -email -hash \
                  -sha1 -sha256 -ext=WORD -nameopt=WORD -checkend=WORD -checkhost=WORD -purpose",
        operands: Operands::AtMost(0),
    },
    Subcommand {
        names: "req",
        options: "-in=NAME -inform=WORD -noout -text -subject -pubkey -modulus -verify",
        operands: Operands::AtMost(0),
    },
    Subcommand {
        names: "verify",
        options: "-CAfile=NAME -untrusted=NAME -purpose=WORD -verbose",
        operands: Operands::Checked(certificates),
    },
    Subcommand { names: "asn1parse", options: "-in=NAME -inform=WORD -i -dump", operands: Operands::AtMost(0) },
    Subcommand { names: "ciphers", options: "-v -V -s", operands: Operands::AtMost(1) },
];

/// Accepts files: an address can name an engine, which is loaded.
fn certificates(operands: &[&Argument]) -> Checked {
    files(operands)?;
    accept(operands.iter().all(|operand| !operand.text.contains(':')), "a certificate that is an address")
}

/// Accepts asking for the state of services: a name with a path is a script that is run.
fn service(operands: &[&Argument]) -> Checked {
    let texts: Vec<&str> = operands.iter().map(|operand| operand.as_known().unwrap_or("/")).collect();
    let is_name = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-@".contains(&byte));
    accept(matches!(texts.as_slice(), [name, "status"] if is_name(name)), "something that is not `NAME status`")
}
