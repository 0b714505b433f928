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
    assert_eq!(ran.stdout.matches("[redacted]").count(), 2, "{}", ran.stdout);
    let shown: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(shown["kafka"]["properties"]["sasl.password_file"], path, "a file is named, so that what was printed can be used again");
    // The text of the file is taken as it is, without the line's end.
    let variables = vec![("TOLLGATE__KAFKA__PROPERTIES__CLIENT_RACK_FILE", file_with_hash.path().to_str().unwrap())];
    let shown = effective(&Setup { variables, ..Setup::default() });
    assert_eq!(shown["kafka"]["properties"]["client.rack_file"], file_with_hash.path().to_str().unwrap());
    let variables = [("TOLLGATE__KAFKA__PROPERTIES__CLIENT_RACK_FILE".into(), file_with_hash.path().as_os_str().to_owned())];
    assert_eq!(tollgate_config::load(None, variables).unwrap().kafka.properties["client.rack"], "a #b 007");
}

/// While keys are changed there are two, each in a file of its own.
#[test]
fn several_keys_come_from_files_and_are_never_shown() {
    let (new, old) = (temporary("new-7f3a\n"), temporary("old-7f3a\n"));
    let [new, old] = [&new, &old].map(|file| file.path().to_str().unwrap());
    let names = ["TOLLGATE__PRIVACY__SUBJECT_KEYS__0_FILE", "TOLLGATE__PRIVACY__SUBJECT_KEYS__1_FILE"];
    let variables: Vec<_> = names.into_iter().zip([new, old]).collect();
    let settings = tollgate_config::load(None, variables.iter().map(|(name, path)| ((*name).into(), (*path).into()))).unwrap();
    assert_eq!(settings.subject_keys.iter().collect::<Vec<_>>(), ["new-7f3a", "old-7f3a"]);
    assert_eq!(settings.subject_keys.first(), Some("new-7f3a"));
    let ran = check(&Setup { variables, ..Setup::default() });
    assert_eq!(ran.exit, Some(0), "{ran:?}");
    assert!(!format!("{ran:?}").contains("7f3a"), "{ran:?}");
    let shown: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(shown["privacy"], json!({"subject_key": null, "subject_keys": ["[redacted]", "[redacted]"]}));
}

/// Every property can stand in a file, under the same name in the configuration, in a variable and as an argument.
#[test]
fn properties_come_from_files_wherever_they_are_named() {
    const SECRET: &str = "s3cret-7f3a";
    let file = temporary(&format!("{SECRET}\n"));
    let path = file.path().to_str().unwrap();
    for property in ["sasl.password", "ssl.key.password", "ssl.keystore.password", "ssl.key.pem", "sasl.oauthbearer.client.secret"] {
        let variable = format!("TOLLGATE__KAFKA__PROPERTIES__{}_FILE", property.to_uppercase().replace('.', "_"));
        let in_file = temporary(&format!("kafka: {{properties: {{{property}_file: {path}}}}}"));
        let by_file = tollgate_config::load(Some(in_file.path()), []).unwrap();
        let by_variable = tollgate_config::load(None, [(variable.into(), path.into())]).unwrap();
        let mut by_argument = tollgate_config::load(None, []).unwrap();
        by_argument.kafka.set_property(&format!("{property}_file={path}")).unwrap();
        by_argument.kafka.load_property_files(|path| std::fs::read(path).map_err(|error| error.to_string())).unwrap();
        for (way, settings) in [("file", &by_file), ("variable", &by_variable), ("argument", &by_argument)] {
            assert_eq!(settings.kafka.properties[property], SECRET, "{property} by {way}");
            assert_eq!(settings.kafka.property_files[property], path, "{property} by {way}");
            assert!(!settings.redacted(tollgate_worker::kafka::is_property).to_string().contains(SECRET), "{property} by {way}");
        }
    }
    // What comes last counts.
    let arguments = vec!["-X", "sasl.username=a", "-X", "sasl.username_file=/nowhere", "-X", "sasl.username=b"];
    assert_eq!(effective(&Setup { arguments, ..Setup::default() })["kafka"]["properties"]["sasl.username"], "b");
    let missing = check(&Setup { arguments: vec!["-X", "sasl.password_file=/nowhere/x"], ..Setup::default() });
    check_refused(&missing, "kafka.properties.sasl.password_file: found the name of a file that cannot be read (");
    let empty = temporary("\n");
    let empty = check(&yaml(&format!("kafka: {{properties: {{sasl.password_file: {}}}}}", empty.path().display())));
    check_refused(&empty, "kafka.properties.sasl.password_file: found the name of an empty file; name a readable file");
    let both = check(&yaml("kafka: {properties: {sasl.password: a, sasl.password_file: /b}}"));
    check_refused(&both, "kafka.properties.sasl.password_file: found a file beside the value itself; write one of the two");
    check_refused(
        &check(&yaml("kafka: {properties: {group.id_file: /b}}")),
        "kafka.properties.group.id_file: found a property that Tollgate sets itself",
    );
}

/// Tokens are not librdkafka's business here, so what is wrong with them is said by us.
#[test]
fn what_tokens_need_is_named() {
    let with =
        |rest: &str| check(&yaml(&format!("kafka: {{properties: {{security.protocol: sasl_ssl, sasl.mechanism: OAUTHBEARER{rest}}}}}")));
    let nothing = with("");
    assert!(
        nothing.exit == Some(1) && nothing.stderr.contains("sasl.oauthbearer.token.endpoint.url: found nothing; write the URL"),
        "{nothing:?}"
    );
    let of_file = with(", sasl.oauthbearer.token.endpoint.url: 'file:///run/token'");
    assert_eq!(of_file.exit, Some(0), "{of_file:?}");
}

/// Returns what is shown of a configuration, whether a worker could use it or not: not every librdkafka has every property.
fn loaded(text: &str) -> Value {
    let file = temporary(text);
    tollgate_config::load(Some(file.path()), []).unwrap().redacted(tollgate_worker::kafka::is_property)
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
    let ran = check(&yaml(&text));
    assert!(ran.exit == Some(0) && !format!("{ran:?}").contains(SECRET), "{ran:?}");
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
