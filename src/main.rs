//! The `tollgate` command.

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    // Nothing, unless it was built for tests: they name places where a thread has to panic.
    let _places = fail::FailScenario::setup();
    // A client whose brokers do not answer is left behind at the end, and its threads may be in the middle of a handshake then. This has
    // OpenSSL register no handler that frees at the exit of the process what they still use.
    #[cfg(feature = "tls")]
    openssl::init();
    tollgate::commands::execute(tollgate::commands::Cli::parse())
}
