//! PLAIN, SCRAM, OAUTHBEARER and client certificates: without rights, with the documented ones, and with all of them but one.

use std::process::Command;
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use tollgate_testkit::{Cluster, Deployment};

use super::{SENTINEL, Secured, TOKEN_SECONDS, USERS, WANTING, decides, documented_rights, password, send, shared_broker};

/// One way to authenticate.
pub(super) struct Mechanism {
    pub(super) name: &'static str,
    pub(super) principal: String,
    pub(super) deployment: Deployment,
    /// Arguments for every command.
    arguments: Vec<String>,
    variables: Vec<(String, String)>,
}

impl Mechanism {
    /// Has a command log in so.
    pub(super) fn log_in(&self, command: &mut Command) {
        command.args(&self.arguments).envs(self.variables.iter().map(|(name, value)| (name, value)));
    }

    fn adapt(&self, command: &mut Command) {
        self.log_in(command);
        // Everything that librdkafka says of logins, conversations and its configuration.
        command.args(["-X", "debug=security,broker,protocol,conf"]);
        command.env("TOLLGATE__LOG__FILTER", "trace");
    }
}

/// Returns all mechanisms. Each is configured in another form: with `-X`, in the file, by environment.
pub(super) fn mechanisms(secured: &Secured, shared: &Cluster) -> Result<Vec<Mechanism>> {
    let (sasl, mtls, ca) = (secured.broker.secured_bootstrap()?, secured.broker.certified_bootstrap(), secured.path("ca.pem"));
    let assigned = |pairs: &[(&str, &str)]| -> Vec<String> {
        pairs.iter().flat_map(|(key, value)| ["-X".to_owned(), format!("{key}={value}")]).collect()
    };
    let variables = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
        let name = |key: &str| format!("TOLLGATE__KAFKA__PROPERTIES__{}", key.to_uppercase().replace('.', "_"));
        pairs.iter().map(|(key, value)| (name(key), (*value).to_owned())).collect()
    };
    let tls = [("security.protocol", "sasl_ssl"), ("ssl.ca.location", ca.as_str())];
    let plain = secured.write("plain-password", &format!("{}\n", password(USERS[0])))?;
    let by_plain: [(&str, &str); 3] = [("sasl.mechanism", "PLAIN"), ("sasl.username", USERS[0]), ("sasl.password_file", &plain)];
    let scram = secured.write("scram-password", &password(USERS[1]))?;
    let by_scram = |mechanism| [("sasl.mechanism", mechanism), ("sasl.username", USERS[1]), ("sasl.password_file", scram.as_str())];
    let secret = secured.write("client-secret", &password(USERS[2]))?;
    let by_endpoint: [(&str, &str); 7] = [
        ("sasl.mechanism", "OAUTHBEARER"),
        ("sasl.oauthbearer.method", "oidc"),
        ("sasl.oauthbearer.token.endpoint.url", secured.endpoint.url.as_str()),
        ("sasl.oauthbearer.client.id", USERS[2]),
        ("sasl.oauthbearer.client.secret_file", &secret),
        ("sasl.oauthbearer.scope", "kafka all"),
        ("https.ca.location", &ca),
    ];
    let token = format!("file://{}", secured.write("token", &secured.signer.token("service-account", 3_600)?)?);
    let by_file: [(&str, &str); 2] = [("sasl.mechanism", "OAUTHBEARER"), ("sasl.oauthbearer.token.endpoint.url", token.as_str())];
    let client = secured.authority.issue(&[("O", "Acme, Inc."), ("CN", "tollgate")], &[], -1, 10)?;
    let certificate = secured.write("client.pem", &client.certificate()?)?;
    let passphrase = format!("{SENTINEL}-passphrase");
    let (key, passphrase) = (secured.write("client.key", &client.encrypted_key(&passphrase)?)?, secured.write("passphrase", &passphrase)?);
    let by_certificate: [(&str, &str); 5] = [
        ("security.protocol", "ssl"),
        ("ssl.ca.location", &ca),
        ("ssl.certificate.location", &certificate),
        ("ssl.key.location", &key),
        ("ssl.key.password_file", &passphrase),
    ];
    let in_file = |name, principal: &str, brokers: &str, properties: &[(&str, &str)]| -> Result<Mechanism> {
        let deployment = secured.deployment(shared, brokers, properties)?;
        Ok(Mechanism { name, principal: principal.to_owned(), deployment, arguments: Vec::new(), variables: Vec::new() })
    };
    let scram_user = format!("User:{}", USERS[1]);
    Ok(vec![
        Mechanism {
            arguments: assigned(&[tls.as_slice(), &by_plain].concat()),
            ..in_file("PLAIN with -X", &format!("User:{}", USERS[0]), &sasl, &[])?
        },
        in_file("SCRAM-SHA-512 in the file", &scram_user, &sasl, &[tls.as_slice(), &by_scram("SCRAM-SHA-512")].concat())?,
        Mechanism {
            variables: variables(&[tls.as_slice(), &by_scram("SCRAM-SHA-256")].concat()),
            ..in_file("SCRAM-SHA-256 by environment", &scram_user, &sasl, &[])?
        },
        Mechanism {
            variables: variables(&[tls.as_slice(), &by_endpoint].concat()),
            ..in_file("OAUTHBEARER by environment, of an endpoint", &format!("User:{}", USERS[2]), &sasl, &[])?
        },
        in_file("OAUTHBEARER in the file, of a file", "User:service-account", &sasl, &[tls.as_slice(), &by_file].concat())?,
        in_file("a certificate", "User:CN=tollgate,O=Acme\\, Inc.", &mtls, &by_certificate)?,
    ])
}

/// A worker without rights ends, and names all that it can know by then; with exactly the documented rights it decides.
pub(crate) fn every_mechanism_works_with_the_least_rights(shared: &Cluster) -> Result<()> {
    let (secured, began) = (shared_broker()?, Instant::now());
    let cluster = secured.cluster(shared)?;
    for mechanism in mechanisms(secured, shared)? {
        check(secured, &cluster, &mechanism).with_context(|| mechanism.name)?;
    }
    let given = secured.endpoint.given();
    // Three processes asked it, and their clients shared what they got, until it was to be renewed. Without that each client asks.
    let renewals = usize::try_from(began.elapsed().as_secs() / TOKEN_SECONDS.unsigned_abs() * 2)?;
    ensure!((3..12 + renewals).contains(&given), "{given} tokens were asked for, and {renewals} may be renewals");
    Ok(())
}

fn check(secured: &Secured, cluster: &Cluster, mechanism: &Mechanism) -> Result<()> {
    let Mechanism { deployment, principal, .. } = mechanism;
    let mut worker = deployment.spawn_adapted(|command| mechanism.adapt(command))?;
    ensure!(worker.wait()?.code() == Some(1), "{}", worker.log());
    let refused = worker.log();
    let named = refused.lines().filter(|line| line.contains(&format!("{principal} lacks the right to "))).count();
    ensure!(named == 7 && !refused.contains(SENTINEL), "{named} rights are named:\n{refused}");

    secured.grant(principal, &documented_rights(deployment))?;
    let worker = deployment.spawn_adapted(|command| mechanism.adapt(command))?;
    worker.wait_ready()?;
    decides(cluster, deployment, "e")?;
    // The state is written too.
    worker.await_metric("tollgate_checkpoint_records_total", |records| records >= 1.0)?;
    let (_, metrics) = worker.get("/metrics")?;
    let (_, health) = worker.get("/readyz")?;
    let log = worker.log();
    ensure!(!log.contains("lacks the right to Read") && !log.contains("lacks the right to Write"), "{log}");
    ensure!(worker.stop()?.success());
    let mut command = deployment.command("config");
    command.args(["check", "--connect"]);
    mechanism.adapt(&mut command);
    let checked = command.output()?;
    let shown = [String::from_utf8_lossy(&checked.stdout), String::from_utf8_lossy(&checked.stderr)].concat();
    ensure!(checked.status.success(), "{shown}");
    ensure!(![log, metrics, health, shown].iter().any(|text| text.contains(SENTINEL)), "a secret is shown");
    Ok(())
}

/// A worker that lacks one right says which: topic, group or transactional ids, operation and principal, with the line that grants it.
pub(crate) fn each_right_that_is_wanting_is_named(shared: &Cluster) -> Result<()> {
    let secured = shared_broker()?;
    let (cluster, brokers, ca) = (secured.cluster(shared)?, secured.broker.secured_bootstrap()?, secured.path("ca.pem"));
    let mut workers = Vec::new();
    for (at, user) in WANTING.into_iter().enumerate() {
        let file = secured.write(&format!("{user}-password"), &password(user))?;
        let properties = [
            ("security.protocol", "sasl_ssl"),
            ("ssl.ca.location", &ca),
            ("sasl.mechanism", "PLAIN"),
            ("sasl.username", user),
            ("sasl.password_file", &file),
        ];
        let deployment = secured.deployment(shared, &brokers, &properties)?;
        let mut rights = documented_rights(&deployment);
        let wanting = rights.remove(at);
        secured.grant(&format!("User:{user}"), &rights)?;
        send(&cluster, &deployment, "e")?;
        let worker = deployment.spawn("")?;
        workers.push((user, wanting, worker, deployment));
    }
    for (user, wanting, worker, _deployment) in workers {
        let mut words = wanting.split(' ');
        let (operation, resource) = (words.nth(1).context("an operation")?, words.nth(1).context("a resource")?);
        let principal = format!("User:{user}");
        let line = worker.await_line(&[&format!("{principal} lacks the right to "), &format!("{operation} "), resource])?;
        let (said, command) = line.split_once("; grant it: ").with_context(|| line.clone())?;
        ensure!(said.contains(operation) && said.contains(resource), "{line}");
        ensure!(
            command.contains(&format!("--allow-principal {principal}")) && command.contains(&format!("--operation {operation}")),
            "{line}"
        );
        // Nothing else is missed.
        let log = worker.log();
        let refusals = log.lines().filter(|line| line.contains("lacks the right to") && !line.contains("DescribeConfigs"));
        ensure!(refusals.clone().all(|line| line.contains(resource)), "{log}");
    }
    Ok(())
}
