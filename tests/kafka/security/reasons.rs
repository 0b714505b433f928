//! What a worker says where a login or a handshake is refused: each cause has its own words, with what to check.

use anyhow::{Context as _, Result};
use tollgate_testkit::{Cluster, Deployment};

use super::certificates::Identity;
use super::{SENTINEL, USERS, password, shared_broker};

/// What is tried, where, with which properties, and what has to be said.
type Case<'a> = (&'static str, &'a str, Vec<(&'static str, String)>, &'static [&'static str]);

/// Returns the properties of a login with a password.
fn login<'l>(mechanism: &'l str, user: &'l str, password: &'l str) -> [(&'static str, &'l str); 4] {
    [("security.protocol", "sasl_ssl"), ("sasl.mechanism", mechanism), ("sasl.username", user), ("sasl.password", password)]
}

pub(crate) fn each_refusal_of_a_login_has_its_own_reason(shared: &Cluster) -> Result<()> {
    let secured = shared_broker()?;
    let (sasl, mtls, ca) = (secured.broker.secured_bootstrap()?, secured.broker.certified_bootstrap(), secured.path("ca.pem"));
    let named = sasl.replace("127.0.0.1", "localhost");
    let other = Identity::authority("Other Authority")?;
    let other_ca = secured.write("other-ca.pem", &other.certificate()?)?;
    let wrong = format!("{SENTINEL}-wrong");
    let good = password(USERS[0]);
    let with = |properties: &[(&'static str, &str)], more: &[(&'static str, &str)]| -> Vec<(&'static str, String)> {
        properties.iter().chain(more).map(|(key, value)| (*key, (*value).to_owned())).collect()
    };
    let expired = secured.authority.issue(&[("CN", "late")], &[], -3, -1)?;
    let foreign = other.issue(&[("CN", "foreign")], &[], -1, 1)?;
    let client = |name: &str, identity: &Identity| -> Result<Vec<(&'static str, String)>> {
        let certificate = secured.write(&format!("{name}.pem"), &identity.certificate()?)?;
        let key = secured.write(&format!("{name}.key"), &identity.key()?)?;
        let files = [("ssl.ca.location", ca.clone()), ("ssl.certificate.location", certificate), ("ssl.key.location", key)];
        Ok([("security.protocol", "ssl".to_owned())].into_iter().chain(files).collect())
    };
    let endpoint = |secret: &str| {
        with(
            &[
                ("security.protocol", "sasl_ssl"),
                ("sasl.mechanism", "OAUTHBEARER"),
                ("ssl.ca.location", &ca),
                ("https.ca.location", &ca),
                ("sasl.oauthbearer.token.endpoint.url", &secured.endpoint.url),
                ("sasl.oauthbearer.client.id", USERS[2]),
                ("sasl.oauthbearer.scope", "kafka all"),
            ],
            &[("sasl.oauthbearer.client.secret", secret)],
        )
    };
    let trusted = [("ssl.ca.location", ca.as_str())];
    let log_in = |mechanism: &str, user: &str, password: &str| with(&login(mechanism, user, password), &trusted);
    let token = format!("file://{}", secured.write("foreign-token", &super::TokenSigner::new()?.token("me", 600)?)?);
    let foreign_token =
        [("security.protocol", "sasl_ssl"), ("sasl.mechanism", "OAUTHBEARER"), ("sasl.oauthbearer.token.endpoint.url", token.as_str())];
    let check_login = &["check sasl.mechanism, sasl.username and sasl.password"];
    let late = &["the client's certificate", "late.pem", "expired on", "ssl.certificate.location"];
    let cases: Vec<Case<'_>> = vec![
        ("PLAIN, wrong password", &sasl, log_in("PLAIN", USERS[0], &wrong), check_login),
        ("SCRAM, wrong password", &sasl, log_in("SCRAM-SHA-512", USERS[1], &wrong), check_login),
        (
            "an unknown authority",
            &sasl,
            with(&login("PLAIN", USERS[0], &good), &[("ssl.ca.location", &other_ca)]),
            &["the broker's certificate is from CN=Test Authority", "check ssl.ca.location"],
        ),
        (
            "another host's certificate",
            &named,
            log_in("PLAIN", USERS[0], &good),
            &["the broker's certificate names 127.0.0.1 and not localhost", "check the host in kafka.brokers"],
        ),
        ("an expired certificate of the client", &mtls, client("late", &expired)?, late),
        (
            "a certificate that the broker does not know",
            &mtls,
            client("foreign", &foreign)?,
            &["does not accept the client's certificate", "ssl.certificate.location"],
        ),
        (
            "no certificate at all",
            &mtls,
            with(&[("security.protocol", "ssl")], &trusted),
            &["wants a certificate of the client", "ssl.certificate.location"],
        ),
        (
            "a wrong secret at the endpoint",
            &sasl,
            endpoint(&wrong),
            &["token", "status 401, invalid_client", "check sasl.oauthbearer.client.id"],
        ),
        ("a token of somebody else", &sasl, with(&foreign_token, &trusted), &["check the token, its audience and its issuer"]),
    ];
    let mut workers = Vec::new();
    for (name, brokers, properties, expected) in cases {
        let properties: Vec<_> = properties.iter().map(|(key, value)| (*key, value.as_str())).collect();
        let deployment: Deployment = secured.deployment(shared, brokers, &properties)?;
        workers.push((name, expected, deployment.spawn("")?, deployment));
    }
    for (name, expected, worker, _deployment) in &workers {
        let line = worker.await_line(&["the brokers cannot be reached"]).and_then(|_| worker.await_line(expected)).context(*name)?;
        let (_, health) = worker.get("/readyz")?;
        anyhow::ensure!(!worker.log().contains(SENTINEL) && !health.contains(SENTINEL), "{name}: {line}");
    }
    Ok(())
}
