//! Secrets that change under running workers: the new ones are taken from their files, and verdicts go on.

use anyhow::{Context as _, Result, ensure};
use tollgate_testkit::{Cluster, Deployment, Worker, eventually};

use super::certificates::Identity;
use super::{SENTINEL, Secured, USERS, documented_rights, password};

struct Running {
    name: &'static str,
    deployment: Deployment,
    worker: Worker,
}

impl Running {
    fn start(name: &'static str, secured: &Secured, principal: &str, deployment: Deployment) -> Result<Self> {
        secured.grant(principal, &documented_rights(&deployment))?;
        let worker = deployment.spawn_adapted(|command| _ = command.env("TOLLGATE__WORKER__MEMBERS", "2"))?;
        Ok(Self { name, deployment, worker })
    }

    /// Sends an event and waits for its verdict.
    fn decides(&self, cluster: &Cluster, id: &str) -> Result<()> {
        let decided = super::decides(cluster, &self.deployment, id);
        decided.with_context(|| format!("{}: no verdict on {id}:\n{}", self.name, self.worker.log()))
    }

    fn is_unready(&self, because: &[&str]) -> Result<()> {
        eventually(|| {
            let (status, health) = self.worker.get("/readyz")?;
            ensure!(status == 503 && because.iter().all(|text| health.contains(text)), "{health}");
            Ok(())
        })
    }

    fn is_told(&self, what: &str) -> Result<()> {
        self.worker.await_line(&["secrets of the brokers' clients have changed", what]).with_context(|| self.name)?;
        self.worker.await_line(&["every client has the changed secrets"]).with_context(|| self.name)?;
        self.worker.wait_ready().with_context(|| self.name)
    }
}

pub(crate) fn secrets_change_under_running_workers(shared: &Cluster) -> Result<()> {
    let mut secured = Secured::start()?;
    let cluster = secured.cluster(shared)?;
    let (sasl, mtls, ca) = (secured.broker.secured_bootstrap()?, secured.broker.certified_bootstrap(), secured.path("ca.pem"));
    let password_file = secured.write("scram-password", &password(USERS[1]))?;
    let scram: [(&str, &str); 5] = [
        ("security.protocol", "sasl_ssl"),
        ("ssl.ca.location", &ca),
        ("sasl.mechanism", "SCRAM-SHA-512"),
        ("sasl.username", USERS[1]),
        ("sasl.password_file", &password_file),
    ];
    let subject = [("CN", "tollgate")];
    let client = secured.authority.issue(&subject, &[], -1, 10)?;
    let (certificate, key) = (secured.write("client.pem", &client.certificate()?)?, secured.write("client.key", &client.key()?)?);
    let certified: [(&str, &str); 4] =
        [("security.protocol", "ssl"), ("ssl.ca.location", &ca), ("ssl.certificate.location", &certificate), ("ssl.key.location", &key)];
    let by_password = Running::start("SCRAM", &secured, "User:scram-user", secured.deployment(shared, &sasl, &scram)?)?;
    let by_certificate = Running::start("mTLS", &secured, "User:CN=tollgate", secured.deployment(shared, &mtls, &certified)?)?;
    let both = [&by_password, &by_certificate];
    for running in both {
        running.worker.wait_ready()?;
        running.decides(&cluster, "before")?;
    }

    // A password that the broker does not take changes nothing, and is told.
    secured.write("scram-password", &format!("{SENTINEL}-mistyped"))?;
    by_password.worker.await_line(&["the changed secrets are not taken over", "check sasl.mechanism, sasl.username and sasl.password"])?;
    by_password.is_unready(&["the changed secrets are not taken over"])?;
    by_password.decides(&cluster, "mistyped")?;

    // A file without a secret is told too, beside what was last known, and changes nothing either.
    secured.write("scram-password", "")?;
    by_password
        .worker
        .await_line(&["files of secrets cannot be read", "kafka.properties.sasl.password_file: found the name of an empty file"])?;
    by_password.is_unready(&["files of secrets cannot be read", "the changed secrets are not taken over"])?;
    by_password.decides(&cluster, "emptied")?;

    // The old ones are revoked and the connections are cut, before the new ones are in the files.
    let next = Identity::authority("Next Authority")?;
    secured.write("trusted.pem", &next.certificate()?)?;
    let changed = format!("{SENTINEL}-changed");
    secured.broker.set_password(USERS[1], &changed)?;
    secured.broker.stop()?;
    secured.broker.start_again()?;
    let client = next.issue(&subject, &[], -1, 10)?;
    secured.write("client.pem", &client.certificate()?)?;
    secured.write("client.key", &client.key()?)?;
    secured.write("scram-password", &changed)?;
    by_password.is_told("sasl.password")?;
    by_certificate.is_told("ssl.certificate.location")?;
    for running in both {
        running.decides(&cluster, "after")?;
        running.worker.await_metric("tollgate_secret_changes_total", |count| count >= 1.0)?;
        ensure!(!running.worker.log().contains(SENTINEL), "{}: a secret is in the log", running.name);
    }
    for running in [by_password, by_certificate] {
        ensure!(running.worker.stop()?.success());
    }
    Ok(())
}
