//! Checks that secrets come from files and are never shown.

use super::*;

#[test]
fn secrets_come_from_files_and_are_never_shown() {
    const SECRET: &str = "s3cret-7f3a";
    let file = temporary(&format!("{SECRET}\n"));
    let path = file.path().to_str().unwrap();
    let file_with_hash = temporary("a #b 007\r\n");
    let text = format!(
        "privacy: {{subject_key: {SECRET}}}\nkafka:\n  properties:\n    sasl.password: {SECRET}\n    ssl.key.password: {SECRET}\n    ssl.keystore.password: {SECRET}\n    ssl.key.pem: {SECRET}\n    sasl.oauthbearer.client.secret: {SECRET}\n    sasl.oauthbearer.config: {SECRET}\n    sasl.oauthbearer.assertion.private.key.pem: {SECRET}\n    sasl.oauthbearer.assertion.private.key.passphrase: {SECRET}\n    sasl.pasword: {SECRET}\n    sasl.username: alice\n    ssl.key.location: /etc/key.pem\n"
    );
    let shown = loaded(&text);
    assert_eq!(shown["privacy"]["subject_key"], "[redacted]");
    assert_has(
        "shown",
        &shown["kafka"]["properties"],
        &json!({"sasl.password": "[redacted]", "sasl.username": "alice", "ssl.key.location": "/etc/key.pem"}),
    );
    let properties = shown["kafka"]["properties"].as_object().unwrap();
    let leaks: Vec<_> = properties.iter().filter(|(_, value)| value.to_string().contains(SECRET)).map(|(property, _)| property).collect();
    assert!(leaks.is_empty(), "{leaks:?}");
    let variables = vec![("TOLLGATE__PRIVACY__SUBJECT_KEY_FILE", path), ("TOLLGATE__KAFKA__PROPERTIES__SASL_PASSWORD_FILE", path)];
    let ran = check(&Setup { variables, arguments: vec!["-X", "ssl.key.password=s3cret-7f3a"], ..Setup::default() });
    assert_eq!(ran.exit, Some(0), "{ran:?}");
    assert!(!format!("{ran:?}").contains(SECRET), "{ran:?}");
    assert_eq!(ran.stdout.matches("[redacted]").count(), 3, "{}", ran.stdout);
    // The text of the file is taken as it is, without the line's end.
    let variables = vec![("TOLLGATE__KAFKA__PROPERTIES__CLIENT_RACK_FILE", file_with_hash.path().to_str().unwrap())];
    let shown = effective(&Setup { variables, ..Setup::default() });
    assert_eq!(shown["kafka"]["properties"]["client.rack"], "a #b 007");
}

/// Returns what is shown of a configuration, whether a worker could use it or not: not every librdkafka has every property.
fn loaded(text: &str) -> Value {
    let file = temporary(text);
    tollgate::config::load(Some(file.path()), []).unwrap().redacted()
}

/// A URL may hold a secret wherever a server takes one: as user info, or in its query.
#[test]
fn user_info_and_queries_of_urls_are_never_shown() {
    const SECRET: &str = "s3cret-7f3a";
    let text = format!(
        "guardrails: {{enabled: true, provider: {{use: http, config: {{url: 'https://policy:8443/v1?token={SECRET}'}}}}}}\n\
         kafka:\n  properties:\n    \
         sasl.oauthbearer.token.endpoint.url: https://alice:{SECRET}@idp/token?secret={SECRET}\n"
    );
    // This librdkafka has no OpenID Connect, and says so, without the address.
    let ran = check(&yaml(&text));
    assert!(ran.exit == Some(1) && !format!("{ran:?}").contains(SECRET), "{ran:?}");
    let shown: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(shown["guardrails"]["providers"][0]["config"]["url"], "https://policy:8443/v1?[redacted]");
    assert_eq!(shown["kafka"]["properties"]["sasl.oauthbearer.token.endpoint.url"], "https://[redacted]@idp/token?[redacted]");
    // What was printed is no configuration until the secrets are written again.
    let again = check(&yaml(&ran.stdout));
    assert_eq!(again.exit, Some(1), "{again:?}");
    for key in ["config.url", "token.endpoint.url"] {
        assert!(again.stderr.contains(key), "{key}: {}", again.stderr);
    }
    // A broker's address has no user info, and what somebody has written there is not quoted.
    let refused = check(&yaml(&format!("kafka: {{brokers: 'alice:{SECRET}@kafka-1:9092,kafka-2:9092'}}")));
    check_refused(&refused, "kafka.brokers: found an address with user info; write HOST:PORT");
    assert!(!format!("{refused:?}").contains(SECRET), "{refused:?}");
}

#[test]
fn a_policy_servers_headers_are_never_shown_and_no_part_of_the_version() {
    let text = |secret: &str| {
        format!(
            "guardrails: {{enabled: true, provider: {{use: http, config: {{url: 'http://p/', headers: {{authorization: 'Bearer {secret}'}}}}}}}}"
        )
    };
    let [first, second] = ["s3cret-1", "s3cret-2"].map(|secret| check(&yaml(&text(secret))));
    assert!(!format!("{first:?}").contains("s3cret"), "{first:?}");
    assert_eq!((first.exit, &first.stdout), (second.exit, &second.stdout), "a rotated token changes no decision");
}
