//! Tests mistakes in `tollgate state` commands: which are refused before any broker is asked, and with which message.

use crate::support::{check_each, run, tollgate};

/// Arguments behind `tollgate state`, and what stderr says of them.
type Case = (&'static str, Vec<String>, &'static str);

fn case(name: &'static str, arguments: &[&str], says: &'static str) -> Case {
    (name, arguments.iter().map(|argument| (*argument).to_owned()).collect(), says)
}

#[test]
fn wrong_arguments_are_named() {
    let (long, wide) = ("x".repeat(257), "é".repeat(129));
    let cases = [
        case("no subcommand", &[], "Usage: tollgate state"),
        case("no thread", &["show"], "<THREAD_ID>"),
        case("an empty thread", &["show", ""], "for '<THREAD_ID>': it is empty; write an id of 1 to 256 bytes"),
        case("a long thread", &["show", &long], "for '<THREAD_ID>': it has 257 bytes; write an id of 1 to 256 bytes"),
        case("an empty thread to reset", &["reset", ""], "for '<THREAD_ID>': it is empty"),
        case("a long thread to reset", &["reset", &wide, "--execute"], "for '<THREAD_ID>': it has 258 bytes"),
        case("a long turn", &["reset", "t", "--turn", &long], "for '--turn <TURN_ID>': it has 257 bytes; write an id of 1 to 256 bytes"),
        case("an empty turn", &["reset", "t", "--turn", ""], "for '--turn <TURN_ID>': it is empty"),
        case("no partition", &["show", "t", "--partition", "x"], "for '--partition <N>'"),
        case("a partition below 0", &["list", "--partition=-1"], "for '--partition <N>'"),
        case("a partition that no topic has", &["list", "--partition", "2147483648"], "for '--partition <N>'"),
        case("none of the largest", &["list", "--largest", "0"], "for '--largest <N>'"),
        case("two orders", &["list", "--largest", "1", "--oldest", "1"], "cannot be used with"),
    ];
    check_each(
        cases,
        |(name, ..)| (*name).to_owned(),
        |(_, arguments, says)| {
            let ran = run(tollgate().arg("state").args(arguments), b"");
            assert_eq!((ran.exit, ran.stdout.as_str()), (Some(2), ""), "{}", ran.stderr);
            assert!(ran.stderr.contains(says), "{}", ran.stderr);
        },
    );
}

#[test]
fn a_wrong_property_is_named() {
    let ran = run(tollgate().args(["state", "list", "-X", "security.protocol=nonsense"]), b"");
    assert_eq!((ran.exit, ran.stdout.as_str()), (Some(1), ""));
    assert!(ran.stderr.starts_with("tollgate: kafka.properties.security.protocol: found "), "{}", ran.stderr);
}
