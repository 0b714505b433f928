//! Tests the completions of bash in bash itself: the words after which Tab is pressed, and the candidates.

use std::process::Command;

use crate::support::{check_each, run, temporary, tollgate};

/// Prints the candidates for the last word of its arguments, with the script of its first argument.
const ASK: &str = r#"
source "$1"; shift
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMP_LINE="$*" COMP_POINT=${#COMP_LINE} COMP_TYPE=9
function_of=$(complete -p tollgate); function_of=${function_of#*-F }; function_of=${function_of%% *}
"$function_of" tollgate "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}" 2>/dev/null
printf '%s\n' "${COMPREPLY[@]}"
"#;

/// The words of a command line and the candidates that are among those for its last word; `!` before one that is not.
type Case = (&'static [&'static str], &'static [&'static str]);

const CASES: &[Case] = &[
    (
        &["tollgate", ""],
        &["dev", "run", "tap", "top", "eval", "state", "control", "passport", "config", "topics", "dlq", "version", "completions"],
    ),
    (&["tollgate", "t"], &["tap", "top", "topics", "!dev"]),
    (&["tollgate", "topics", ""], &["apply"]),
    (
        &["tollgate", "topics", "apply", "--"],
        &["--partitions", "--replication-factor", "--retention", "--execute", "--check", "--wait", "--output", "!--delete"],
    ),
    (&["tollgate", "dlq", ""], &["list", "redrive"]),
    (&["tollgate", "dlq", "list", "--by", ""], &["reason", "partition", "stage", "hour", "day"]),
    (&["tollgate", "dlq", "redrive", "--"], &["--reason", "--since", "--from", "--to", "--again", "--execute"]),
    (&["tollgate", "version", "-o", ""], &["text", "json", "!wide"]),
    (&["tollgate", "control", "suspend", "--kind", ""], &["user", "tenant", "agent", "thread", "!tap"]),
    (&["tollgate", "control", "resume", "--kind", "te"], &["tenant", "!user"]),
    (&["tollgate", "control", ""], &["suspend", "exempt", "resume", "passport", "list", "history"]),
    (&["tollgate", "abuse", ""], &["show", "pardon", "resume", "blocklist", "top", "test", "!list"]),
    (&["tollgate", "abuse", "pardon", "--"], &["--tenant", "--wait", "!--id"]),
    (&["tollgate", "abuse", "show", "--"], &["--tenant", "--limit", "--output"]),
    (&["tollgate", "eval", "--"], &["--alerts", "--controls-out", "--signals", "--signals-out"]),
    (&["tollgate", "tap", "--only", ""], &["allow", "warn", "block", "halt", "suppress"]),
    (&["tollgate", "state", "list", "-o", ""], &["table", "json", "wide"]),
    (&["tollgate", "control", "list", "--output", "w"], &["wide", "!json"]),
    (&["tollgate", "top", "--color", ""], &["auto", "always", "never"]),
    (&["tollgate", "dev", "--"], &["--sample", "--once", "--port", "--prefix", "--brokers", "--color"]),
    (
        &["tollgate", "tap", "--"],
        &["--thread", "--agent", "--only", "--from-beginning", "--since", "--until", "--end", "--count", "--output"],
    ),
    (&["tollgate", "mcp-proxy", "--"], &["--server", "--url", "--url-token-file", "--gate", "--token-file", "--thread", "--timeout"]),
    (&["tollgate", "why", "--"], &["--at", "--within", "--agent", "--thread", "--output"]),
    (&["tollgate", "passport", "check", "--format", ""], &["json", "text"]),
    (&["tollgate", "completions", ""], &["bash", "zsh", "fish", "elvish", "powershell"]),
];

#[test]
fn bash_completes_commands_options_and_closed_sets_of_values() {
    let script = run(tollgate().args(["completions", "bash"]), b"");
    assert_eq!((script.exit, script.stderr.as_str()), (Some(0), ""));
    let file = temporary(&script.stdout);
    check_each(
        CASES.iter(),
        |(words, _)| words.join(" "),
        |(words, expected)| {
            let output = Command::new("bash").args(["--norc", "-c", ASK, "bash"]).arg(file.path()).args(*words).output().expect("bash");
            let text = String::from_utf8(output.stdout).unwrap();
            let candidates: Vec<&str> = text.lines().collect();
            for word in *expected {
                match word.strip_prefix('!') {
                    Some(absent) => assert!(!candidates.contains(&absent), "{absent} is among {candidates:?}"),
                    None => assert!(candidates.contains(word), "{word} is not among {candidates:?}"),
                }
            }
        },
    );
}
