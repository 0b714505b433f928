//! Checks that errors in a file show its line, that those of variables name them, and that no secret is on a line that is shown.

use super::*;

fn refused(setup: &Setup<'_>) -> String {
    let ran = check(setup);
    assert_eq!((ran.exit, ran.stdout.as_str()), (Some(1), ""), "{}", ran.stderr);
    ran.stderr
}

#[test]
fn errors_point_at_line_and_column_with_the_line_shown() {
    let text = "\
# A comment.
kafka:
  broker: kafka-1:9092
  group_id: 7 # seven
worker: {members: 0, instance_id: pod}
tool_loop_guardrails:
  idempotent_tools:
    a: b
guardrails:
  enabled: true
  providers:
    - use: http
    - {use: nothing, tools: []}
";
    let expected = "\
tollgate: FILE:
guardrails.providers[0].config.url: found nothing; write a string
  --> FILE:12:7
    |
 12 |     - use: http
    |       ^
guardrails.providers[1].use: found an unknown provider; write `allowlist`, `oap_passport` or `http`
  --> FILE:13:13
    |
 13 |     - {use: nothing, tools: []}
    |             ^
guardrails.providers[1].tools: found an empty list; name tools, such as [\"bash\", \"mcp__*\"], or leave it out for all
  --> FILE:13:29
    |
 13 |     - {use: nothing, tools: []}
    |                             ^
tool_loop_guardrails.idempotent_tools: found a mapping; write a list of strings, such as [\"a\", \"b\"]
  --> FILE:7:3
   |
 7 |   idempotent_tools:
   |   ^
kafka.group_id: found a number; write a string
  --> FILE:4:13
   |
 4 |   group_id: 7
   |             ^
worker.members: found a number; write a whole number of 1 or more
  --> FILE:5:19
   |
 5 | worker: {members: 0, instance_id: pod}
   |                   ^
kafka.broker: found an unknown key; write `brokers`, or remove it
  --> FILE:3:3
   |
 3 |   broker: [redacted]
   |   ^
";
    assert_eq!(refused(&yaml(text)), expected);
}

/// A word is often the mistake itself, and a word of YAML is no secret. A word may be one under a key that sounds like it.
#[test]
fn a_word_is_shown_unless_its_key_sounds_like_a_secret() {
    for (text, line) in [
        ("guardrails:\n  enable: true\n", "  enable: true"),
        ("worker:\n  members: two\n", "  members: two"),
        ("guardrails: {provider: {use: allowlist, config: {allow_tools: [bash, grep]}}}", "{allow_tools: [bash, grep]}}}"),
        ("kafka:\n  properties: {x: [true]}\n", "  properties: {x: [true]}"),
    ] {
        let shown = refused(&yaml(text));
        assert!(shown.contains(line), "{text}: {shown}");
    }
    for text in [
        "privacy: {subject_kye: hunter, x: 1}",
        "privacy: {subject_key: true, x: 1}",
        "privacy: {kye: hunter}",
        "pasword: hunter",
        "kafka: {sasl_pasword: hunter}",
        "kafka: {properties: {sasl.pasword: [hunter]}}",
        "traces: {header: {a: hunter}}",
        "guardrails: {provider: {use: http, config: {url: 'http://a', header: hunter}}}",
        "guardrails: {provider: {use: http, config: {url: 'http://a', api_tokn: hunter}}}",
    ] {
        let shown = refused(&yaml(text));
        assert!(shown.contains("[redacted]") && !shown.contains("hunter"), "{text}: {shown}");
    }
}

#[test]
fn syntax_errors_show_their_line_too() {
    let cases = [
        ("worker:\n  members: 3\n drain_timeout_ms: 4\n", "  --> FILE:3:18\n   |\n 3 |  drain_timeout_ms: 4\n   |                  ^"),
        ("kafka:\n  brokers: [a\n  group_id: x\n", "  --> FILE:3:11\n   |\n 3 |   group_id: [redacted]\n   |           ^"),
        ("kafka:\n  brokers: \"a\n", "  --> FILE:2:12"),
        ("kafka: [}\n", "  --> FILE:1:"),
    ];
    for (text, expected) in cases {
        let shown = refused(&yaml(text));
        assert!(shown.starts_with("tollgate: FILE is not valid YAML: ") && shown.contains(expected), "{shown}");
    }
}

#[test]
fn variables_are_named_in_place_of_a_line() {
    let setup = Setup { yaml: "worker: {members: 2}", variables: vec![("TOLLGATE__WORKER__MEMBERS", "x")], ..Setup::default() };
    let shown = refused(&setup);
    assert!(shown.contains("worker.members (TOLLGATE__WORKER__MEMBERS): found a string") && !shown.contains("-->"), "{shown}");
    let shown = check(&Setup { yaml: "", arguments: vec!["-X", "acks=1"], ..Setup::default() }).stderr;
    assert!(shown.contains("-X acks") && !shown.contains("-->"), "{shown}");
}

#[test]
fn long_lines_and_strange_characters_are_shown_in_part() {
    let tools: String = (0..200).map(|number| format!("tool_{number}, ")).collect();
    let text = format!("tool_loop_guardrails: {{idempotent_tools: [{tools}x], exact_failure_warn_after: -1, warnings_enabled: \"\u{7}\"}}");
    let shown = refused(&yaml(&text));
    assert!(shown.lines().all(|line| line.chars().count() < 160 && !line.contains('\u{7}')), "{shown}");
    let lines: Vec<_> = shown.lines().collect();
    let line = lines.iter().position(|line| line.contains("exact_failure_warn_after: -1")).expect("the part with the fault");
    let caret = lines[line + 1].chars().position(|character| character == '^').unwrap();
    assert_eq!(lines[line].chars().nth(caret), Some('-'), "{shown}");
}

/// Wherever a secret stands, and whatever is wrong beside it, the line is shown without it. A case is a configuration, or no YAML at all.
#[test]
fn no_secret_is_on_a_line_that_is_shown() {
    check_each(jsonl("tests/config/secret_lines.jsonl"), Value::to_string, |text| {
        let text = text.as_str().unwrap();
        let shown = refused(&yaml(text));
        assert!(text.contains("s3cret-7f3a") && !shown.contains("s3cret-7f3a"), "{text}\n{shown}");
        assert!(shown.contains("  --> FILE:") || shown.contains("map"), "{text}\n{shown}");
    });
}
