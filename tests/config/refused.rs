//! Checks that `config check` refuses what a worker would refuse when it starts, and connects nothing.

use std::net::TcpListener;
use std::time::Duration;

use super::*;

/// Checks that the configuration is shown, and refused.
fn check_no_start(ran: &Ran, expected: &str) {
    assert!(ran.exit == Some(1) && ran.stdout.starts_with('{'), "it was accepted, or ended with {:?}: {}", ran.exit, ran.stderr);
    assert!(ran.stderr.contains(expected), "{} instead of {expected}", ran.stderr);
    assert!(ran.stderr.contains("\na worker would not start with this configuration; policy_version sha256:"), "{}", ran.stderr);
}

/// A case has a configuration, in which `BROKEN` stands for a file with a certificate that is none, and what the command says.
#[test]
fn what_a_worker_refuses_is_refused() {
    let broken = temporary("-----BEGIN CERTIFICATE-----\nbm9uZQ==\n-----END CERTIFICATE-----\n");
    let broken = broken.path().display().to_string();
    let check_case = |case: &Value| {
        let text = case["config"].as_str().unwrap().replace("BROKEN", &broken);
        check_no_start(&check(&yaml(&text)), case["says"].as_str().unwrap());
    };
    check_each(jsonl("tests/config/no_start.jsonl"), Value::to_string, check_case);
}

#[test]
fn all_of_it_is_said_at_once() {
    let ran = check(&yaml("log: {filter: verbose}\nkafka: {properties: {no.such: 1}}"));
    check_no_start(&ran, "log.filter: found \"verbose\"");
    check_no_start(&ran, "\nkafka.properties.no.such: found a property that librdkafka does not know");
}

/// A value may be a password, whatever is wrong with it.
#[test]
fn no_secret_is_repeated() {
    for properties in ["ssl.key.pem: MARKER-7f3a, security.protocol: ssl", "sasl.password: MARKER-7f3a, no.such: 1"] {
        let ran = check(&yaml(&format!("kafka: {{properties: {{{properties}}}}}")));
        check_no_start(&ran, "kafka.properties");
        assert!(!format!("{ran:?}").contains("MARKER-7f3a"), "{ran:?}");
    }
}

/// Every client is made, and none has an address. With `--connect` the brokers and each policy server are asked.
#[test]
fn nothing_is_connected_unless_it_is_asked_for() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let brokers = listener.local_addr().unwrap().to_string();
    let allows = tollgate_testkit::PolicyServer::start(|_| (Duration::ZERO, json!(true)));
    let undefined = tollgate_testkit::PolicyServer::start(|_| (Duration::ZERO, json!(null)));
    let server =
        |url: &str, tools: &str| json!({"use": "http", "tools": [tools], "config": {"url": url, "dialect": "opa", "timeout_ms": 60_000}});
    let servers = [server(&allows.url(), "mcp__*"), server(&undefined.url(), "bash"), server(&format!("http://{brokers}"), "*")];
    let text = json!({"kafka": {"brokers": brokers}, "guardrails": {"enabled": true, "providers": servers}}).to_string();
    assert_eq!(check(&yaml(&text)).exit, Some(0));
    assert_eq!(listener.accept().map(drop).unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
    drop(listener);
    let ran = check(&Setup { arguments: vec!["--connect"], ..yaml(&text) });
    check_no_start(&ran, "--connect: no answer within 10 s: the brokers at ");
    check_no_start(&ran, "Connection refused");
    let asked = |name, tool| format!("policy server {name:?}, asked about a call of {tool:?} without arguments: ");
    check_no_start(&ran, &(asked("http", "tollgate_config_check") + "it allows the call"));
    check_no_start(&ran, &(asked("http-2", "bash") + "no decision: malformed answer: the policy has no result"));
    check_no_start(&ran, &(asked("http-3", "tollgate_config_check") + "no decision: the connection failed: "));
    assert_eq!((allows.asked().len(), undefined.asked().len()), (1, 1));
}

/// A worker that cannot make its clients ends, and does not try again.
#[test]
fn a_wrong_property_ends_what_it_was_given_to() {
    for command in ["dev", "run"] {
        let ran = run(tollgate().args([command, "-X", "a=b"]), b"");
        assert_eq!((ran.exit, ran.stdout.as_str()), (Some(1), ""), "{command}");
        assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
        assert!(ran.stderr.starts_with("tollgate: kafka.properties.a: found a property that librdkafka does not know"), "{}", ran.stderr);
    }
    let ran = run(tollgate().args(["run", "-b", "http://kafka:9092"]), b"");
    assert_eq!(
        (ran.exit, ran.stderr.as_str()),
        (
            Some(2),
            "tollgate: --brokers: found a URL; write HOST:PORT, several of them separated by commas, such as kafka-1:9092,kafka-2:9092\n"
        )
    );
}

/// What `serve` reads when it starts is read here too.
#[test]
fn the_files_of_the_server_are_read() {
    let tokens = temporary("- {name: ci}\n");
    let tokens = tokens.path().display().to_string();
    let broken = temporary("nothing\n");
    let broken = broken.path().display().to_string();
    let tls = |certificate: &str| format!("serve: {{tls: {{certificate_file: {certificate}, key_file: /nowhere/key.pem}}}}");
    let cases = [
        ("serve: {tokens: /nowhere/tokens.yaml}".to_owned(), "serve.tokens: the file /nowhere/tokens.yaml cannot be read".to_owned()),
        (format!("serve: {{tokens: {tokens}}}"), format!("serve.tokens: {tokens}: ")),
        (tls("/nowhere/c.pem"), "serve.tls.certificate_file: the file /nowhere/c.pem cannot be read".to_owned()),
        (tls(&broken), "serve.tls.key_file: the file /nowhere/key.pem cannot be read".to_owned()),
    ];
    for (text, expected) in cases {
        let ran = check(&yaml(&text));
        assert!(ran.exit == Some(1) && ran.stderr.contains(&expected), "{expected}: {ran:?}");
        assert!(ran.stderr.contains("a server (`serve`, `run --serve`) would not"), "{ran:?}");
    }
    // A worker's faults and the server's are said at once.
    let ran = check(&yaml("serve: {tokens: /nowhere/tokens.yaml}\nlog: {filter: verbose}"));
    check_no_start(&ran, "serve.tokens: ");
    check_no_start(&ran, "log.filter: ");
}

#[test]
fn the_loop_controllers_in_force_are_named() {
    let said = |text: &str| check(&yaml(text)).stderr;
    let default = "loop controllers: preset seed, as where tool_loop_guardrails.preset is left out; in force: repetition\n";
    assert!(said("").contains(default), "{}", said(""));
    let named = said("tool_loop_guardrails: {preset: tollgate}");
    assert!(named.contains("loop controllers: preset tollgate; in force: steps\n"), "{named}");
}
