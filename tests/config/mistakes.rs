//! Checks that mistakes are reported with their key, the shape of what was found, and the fix.

use super::*;

/// A case has a configuration, arguments and variables; what the command says of them, and where; and its exit code, 1 unless it says
/// another.
#[test]
fn mistakes_name_the_key_what_was_found_and_what_to_write() {
    let check_case = |case: &Value| {
        let ran = check(&Setup::of(case));
        check_ended(&ran, case["exit"].as_i64().unwrap_or(1), case["says"].as_str().unwrap());
        assert!(ran.stderr.contains(case["place"].as_str().unwrap_or_default()), "{}", ran.stderr);
        assert!(!ran.stderr.contains("MARKER-7f3a"), "{}", ran.stderr);
    };
    check_each(jsonl("tests/config/refused.jsonl"), Value::to_string, check_case);
}

#[test]
fn all_mistakes_are_told_at_once_and_no_value_is_quoted() {
    let ran = check(&yaml(
        "kafka: {brokers: [MARKER-7f3a], group: MARKER-7f3a}\nprivacy: {subject_key: {x: MARKER-7f3a}}\nlimits: {thread_bytes_max: MARKER-7f3a}\n",
    ));
    assert_eq!(ran.exit, Some(1));
    for key in ["kafka.brokers", "kafka.group", "privacy.subject_key", "limits.thread_bytes_max"] {
        assert!(ran.stderr.contains(&format!("{key}: found ")), "{key}: {}", ran.stderr);
    }
    assert!(!ran.stderr.contains("MARKER"), "{}", ran.stderr);
    assert!(ran.stderr.starts_with("tollgate: FILE:\n"), "{}", ran.stderr);
    assert_eq!(ran.stderr.lines().filter(|line| line.contains(": found ")).count(), 4, "{}", ran.stderr);
}

#[test]
fn text_that_is_no_yaml() {
    for text in ["kafka: {brokers", "kafka:\n\t- x", "a: b: c", "kafka: {}\n---\nkafka: {}\n"] {
        let ran = check(&yaml(text));
        assert_eq!((ran.exit, ran.stdout.as_str()), (Some(1), ""), "{text}: {ran:?}");
        assert!(ran.stderr.contains("FILE is not valid YAML"), "{text}: {}", ran.stderr);
    }
}
