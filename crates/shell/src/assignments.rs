//! Variables that may be set in front of a command.

use super::tables::is_in;

/// TABLE: variables whose value, whatever it is, only changes what programs print or how a project's own code behaves, and never what is
/// run, loaded, written or connected to.
const HARMLESS: &str = "CARGO_TERM_COLOR CGO_ENABLED CI CLICOLOR CLICOLOR_FORCE COLUMNS DEBIAN_FRONTEND DEBUG FORCE_COLOR GIT_EDITOR GIT_PAGER \
     GOARCH GOOS LANG LC_ALL LC_COLLATE LC_CTYPE LC_MESSAGES LC_NUMERIC LC_TIME LINES LOG_LEVEL MANPAGER MPLBACKEND NODE_ENV NO_COLOR \
     PAGER PORT PYTHONDONTWRITEBYTECODE PYTHONHASHSEED PYTHONIOENCODING PYTHONUNBUFFERED PY_COLORS RUST_BACKTRACE RUST_LOG TERM TZ";

/// TABLE: variables that say how many threads, devices or seconds there are, or whether something is on: numbers, lists of numbers, or truth
/// values.
const NUMBERS: &str = "CARGO_BUILD_JOBS CARGO_INCREMENTAL CARGO_NET_OFFLINE CMAKE_BUILD_PARALLEL_LEVEL CUDA_VISIBLE_DEVICES GIT_TERMINAL_PROMPT \
     GOMAXPROCS HF_HUB_OFFLINE MKL_NUM_THREADS NUMEXPR_NUM_THREADS OMP_NUM_THREADS OPENBLAS_NUM_THREADS PIP_DISABLE_PIP_VERSION_CHECK \
     PROPTEST_CASES PYTHONFAULTHANDLER PYTHONUTF8 RAYON_NUM_THREADS RUST_MIN_STACK RUST_TEST_THREADS SQLX_OFFLINE TF_CPP_MIN_LOG_LEVEL \
     TOKENIZERS_PARALLELISM TRANSFORMERS_OFFLINE VECLIB_MAXIMUM_THREADS";

/// The signs by which `make` and the shells that it starts read more in the value of a variable.
pub const SIGNS: [char; 11] = ['$', '`', ';', '&', '|', '<', '>', '\n', '\\', '"', '\''];

/// TABLE: variables that name the project's own code, in front of programs that run it anyway.
const OF_PROGRAMS: &[(&[&str], &[&str])] = &[
    (&["python", "python3", "pytest"], &["DJANGO_SETTINGS_MODULE", "FLASK_APP", "PYTHONPATH"]),
    (&["node", "npm", "npx", "yarn", "pnpm"], &["BABEL_ENV", "NODE_PATH"]),
];

/// Returns whether a variable may be set to this value in front of a program.
#[must_use]
pub fn is_harmless_for(program: &str, name: &str, value: &str) -> bool {
    const OF_NODE: [&str; 3] = ["--enable-source-maps", "--experimental-vm-modules", "--no-warnings"];
    let of_program = |(programs, names): &(&[&str], &[&str])| programs.contains(&program) && names.contains(&name);
    let is_node_option = || OF_NODE.contains(&value) || value.strip_prefix("--max-old-space-size=").is_some_and(is_numbers);
    let is_of_node =
        || name == "NODE_OPTIONS" && OF_PROGRAMS.iter().any(|(programs, _)| programs.contains(&"node") && programs.contains(&program));
    is_harmless(name, value)
        || is_of_node() && is_node_option()
        || OF_PROGRAMS.iter().any(of_program)
        || (program == "cargo" && ["RUSTDOCFLAGS", "RUSTFLAGS"].contains(&name) && is_lints(value))
}

/// Returns whether flags of the compiler only say which lints it reports, as `-D warnings` does. Others name linkers and files.
fn is_lints(flags: &str) -> bool {
    let is_name = |word: &str| word.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b':');
    flags.split_whitespace().all(|word| is_name(word.strip_prefix(['-']).filter(|flag| ["A", "D", "W"].contains(flag)).unwrap_or(word)))
}

/// Returns whether a variable may be set to this value in front of any program.
#[must_use]
pub fn is_harmless(name: &str, value: &str) -> bool {
    (is_in(HARMLESS, name) || is_in(NUMBERS, name))
        && !value.contains(SIGNS)
        && match name {
            "GIT_PAGER" | "PAGER" | "MANPAGER" => ["", "cat"].contains(&value),
            // Both leave the text as it is.
            "GIT_EDITOR" => ["true", ":"].contains(&value),
            "MPLBACKEND" => ["Agg", "agg"].contains(&value),
            name if is_in(NUMBERS, name) => is_numbers(value),
            // These are numbers to zsh, which evaluates what it takes for a number.
            "COLUMNS" | "LINES" => value.bytes().all(|byte| byte.is_ascii_digit()),
            // Debconf executes it as Perl.
            "DEBIAN_FRONTEND" => ["noninteractive", "readline", "teletype"].contains(&value),
            _ => !is_locale(name) || is_plain_locale(value),
        }
}

/// Returns whether a value is a number, numbers with commas between them, or a truth value.
fn is_numbers(value: &str) -> bool {
    ["true", "false", "on", "off", "yes", "no"].contains(&value.to_ascii_lowercase().as_str())
        || value.bytes().all(|byte| byte.is_ascii_digit() || byte == b',')
}

fn is_locale(name: &str) -> bool {
    name == "LANG" || name.starts_with("LC_")
}

/// Returns whether characters are bytes or UTF-8 in a locale. In others a byte of a letter may be a quote or a backslash to the shell.
fn is_plain_locale(value: &str) -> bool {
    let is_word = value.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte));
    is_word && (["", "C", "POSIX"].contains(&value) || value.ends_with(".UTF-8") || value.ends_with(".utf8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_harmless_by_name_program_and_value() {
        assert!(is_harmless_for("ls", "LANG", "C") && is_harmless_for("python", "PYTHONPATH", "src"));
        assert!(["RUSTDOCFLAGS", "RUSTFLAGS"].iter().all(|name| is_harmless_for("cargo", name, "-D warnings -A clippy::all")));
        let is_option = |value: &str| is_harmless_for("npx", "NODE_OPTIONS", value);
        assert!(is_option("--no-warnings") && !is_option("--no-warnings --require=./x") && !is_option("--require=./x"));
        assert!(is_harmless("LC_ALL", "de_DE.UTF-8") && !is_harmless("LC_ALL", "zh_CN.GBK"));
        assert!(is_harmless("GIT_EDITOR", "true") && !is_harmless("GIT_EDITOR", "vim"));
        assert!(is_harmless("COLUMNS", "80") && !is_harmless("COLUMNS", "path[$(id)]"));
        assert!(is_harmless("DEBIAN_FRONTEND", "noninteractive") && !is_harmless("DEBIAN_FRONTEND", "x; BEGIN{}"));
        assert!(!is_harmless_for("ls", "PYTHONPATH", "src") && !is_harmless_for("ls", "PATH", "/bin"));
        for flags in ["-C linker=evil", "-Clinker=evil", "--codegen=linker=evil", "-D warnings @file"] {
            assert!(!is_harmless_for("cargo", "RUSTFLAGS", flags), "{flags}");
        }
    }
}
