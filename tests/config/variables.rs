//! Variables and arguments, over the file.

use super::*;

#[test]
fn variables_and_arguments_win_over_the_file() {
    let file = "kafka: {brokers: \"file:1\", properties: {security.protocol: plaintext}}\nworker: {members: 7}\n";
    let over = |variables: &[(&'static str, &'static str)], arguments: &[&'static str]| Setup {
        yaml: file,
        variables: variables.to_vec(),
        arguments: arguments.to_vec(),
    };
    let cases = vec![
        (
            "a string",
            over(&[("TOLLGATE__KAFKA__BROKERS", "b:9092,c:9092")], &[]),
            json!({"kafka": {"brokers": "b:9092,c:9092"}, "worker": {"members": 7}}),
        ),
        ("a number", over(&[("TOLLGATE__WORKER__MEMBERS", "2")], &[]), json!({"worker": {"members": 2}})),
        ("null", over(&[("TOLLGATE__WORKER__MEMBERS", "null")], &[]), json!({"worker": {"members": null}})),
        (
            "a boolean",
            over(&[("TOLLGATE__SAFETY_FINISH_REASON__ENABLED", "false")], &[]),
            json!({"safety_finish_reason": {"enabled": false}}),
        ),
        (
            "a list",
            over(&[("TOLLGATE__KAFKA__REPLY_TOPICS", "[replies.*, other]")], &[]),
            json!({"kafka": {"reply_topics": ["replies.*", "other"]}}),
        ),
        (
            "a nested key",
            over(&[("TOLLGATE__KAFKA__TOPICS__EVENTS", "acme.events")], &[]),
            json!({"kafka": {"topics": {"events": "acme.events", "dlq": "agent.events.dlq"}}}),
        ),
        (
            "a property",
            over(&[("TOLLGATE__KAFKA__PROPERTIES__SECURITY_PROTOCOL", "ssl")], &[]),
            json!({"kafka": {"properties": {"security.protocol": "ssl"}}}),
        ),
        ("a section", over(&[("TOLLGATE__ADMIN", "null")], &[]), json!({"admin": null})),
        (
            "-X over all",
            over(&[("TOLLGATE__KAFKA__PROPERTIES__SECURITY_PROTOCOL", "ssl")], &["-X", "security.protocol=sasl_ssl", "-X", "a.b=c=d"]),
            json!({"kafka": {"properties": {"security.protocol": "sasl_ssl", "a.b": "c=d"}}}),
        ),
        ("a name that is a number", over(&[("TOLLGATE__KAFKA__GROUP_ID", "42")], &[]), json!({"kafka": {"group_id": "42"}})),
        (
            "a secret that looks like a number",
            over(&[("TOLLGATE__KAFKA__PROPERTIES__CLIENT_RACK", "007")], &[]),
            json!({"kafka": {"properties": {"client.rack": "007"}}}),
        ),
        (
            "a value that looks like a comment",
            over(&[("TOLLGATE__KAFKA__PROPERTIES__CLIENT_RACK", "a #b")], &[]),
            json!({"kafka": {"properties": {"client.rack": "a #b"}}}),
        ),
        (
            "a value that looks like a mapping",
            over(&[("TOLLGATE__KAFKA__PROPERTIES__CLIENT_RACK", "{a: b}")], &[]),
            json!({"kafka": {"properties": {"client.rack": "{a: b}"}}}),
        ),
    ];
    check_each(cases, |(name, ..)| (*name).to_owned(), |(name, setup, expected)| assert_has(name, &effective(setup), expected));
}

#[test]
fn wrong_variables_and_arguments() {
    let with = |variables: &[(&'static str, &'static str)], arguments: &[&'static str]| Setup {
        yaml: "",
        variables: variables.to_vec(),
        arguments: arguments.to_vec(),
    };
    let cases = vec![
        ("an unknown variable", with(&[("TOLLGATE__KAFKA__BROKER", "x")], &[]), "kafka.broker: found an unknown key; write `brokers`"),
        ("a variable of the wrong type", with(&[("TOLLGATE__WORKER__MEMBERS", "many")], &[]), "worker.members: found a string"),
        (
            "a secret file that is not there",
            with(&[("TOLLGATE__PRIVACY__SUBJECT_KEY_FILE", "/no/such/file")], &[]),
            "the file that TOLLGATE__PRIVACY__SUBJECT_KEY_FILE names",
        ),
        ("-X without a value", with(&[], &["-X", "security.protocol"]), "-X wants key=value"),
        ("-X of ours", with(&[], &["-X", "group.id=x"]), "-X group.id: Tollgate sets this property itself"),
        (
            "-X of ours by its other name",
            with(&[], &["-X", "request.required.acks=1"]),
            "-X request.required.acks: Tollgate sets this property itself",
        ),
        ("-X without a key", with(&[], &["-X", "=x"]), "-X wants key=value"),
    ];
    check_each(cases, |(name, ..)| (*name).to_owned(), |(_, setup, expected)| check_refused(&check(setup), expected));
}

/// Other programs' variables are none of our business, whatever bytes they hold.
#[test]
fn a_variable_that_is_no_text_is_not_ours() {
    use std::os::unix::ffi::OsStrExt;
    let mut command = tollgate();
    command.args(["config", "check"]).env("SOMETHING_ELSE", std::ffi::OsStr::from_bytes(b"\xff\xfe"));
    let ran = run(&mut command, b"");
    assert_eq!(ran.exit, Some(0), "{ran:?}");
}
