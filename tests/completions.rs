//! Tests the completions of bash in bash itself: the words after which Tab is pressed, and the candidates.

use std::process::Command;

use crate::support::{check_each, run, temporary, tollgate};
use serde_json::Value;
use tollgate_fixtures::cases::jsonl;

/// Prints the candidates for the last word of its arguments, with the script of its first argument.
const ASK: &str = r#"
source "$1"; shift
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMP_LINE="$*" COMP_POINT=${#COMP_LINE} COMP_TYPE=9
function_of=$(complete -p tollgate); function_of=${function_of#*-F }; function_of=${function_of%% *}
"$function_of" tollgate "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}" 2>/dev/null
printf '%s\n' "${COMPREPLY[@]}"
"#;

/// A case is a line in `completions.jsonl`: a command line whose last word is completed, candidates that are there, and words that are not.
#[test]
fn bash_completes_commands_options_and_closed_sets_of_values() {
    let script = run(tollgate().args(["completions", "bash"]), b"");
    assert_eq!((script.exit, script.stderr.as_str()), (Some(0), ""));
    let file = temporary(&script.stdout);
    check_each(jsonl("tests/completions.jsonl"), Value::to_string, |case| {
        let words = case["line"].as_str().unwrap().split(' ');
        let output = Command::new("bash").args(["--norc", "-c", ASK, "bash"]).arg(file.path()).args(words).output().expect("bash");
        let text = String::from_utf8(output.stdout).unwrap();
        let candidates: Vec<&str> = text.lines().collect();
        let listed = |member: &str| case[member].as_array().into_iter().flatten().map(|word| word.as_str().unwrap()).collect::<Vec<_>>();
        let missing: Vec<_> = listed("has").into_iter().filter(|word| !candidates.contains(word)).collect();
        assert!(missing.is_empty(), "{missing:?} are not among {candidates:?}");
        assert!(!listed("lacks").iter().any(|word| candidates.contains(word)), "{candidates:?}");
    });
}
