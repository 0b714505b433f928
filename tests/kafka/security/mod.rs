//! Every way to authenticate, on one broker that grants nothing by itself: what a worker needs, and what it says where something is wrong.

mod certificates;
mod commands;
mod mechanisms;
mod reasons;
mod rotation;
mod tokens;

pub(crate) use commands::every_command_logs_in_by_every_mechanism;
pub(crate) use mechanisms::{each_right_that_is_wanting_is_named, every_mechanism_works_with_the_least_rights};
pub(crate) use reasons::each_refusal_of_a_login_has_its_own_reason;
pub(crate) use rotation::secrets_change_under_running_workers;

use std::fs;
use std::path::PathBuf;
use std::sync::OnceLock;

use anyhow::{Result, anyhow};
use serde_json::json;
use tollgate_testkit::{Broker, Cluster, Deployment, Outgoing, Security, grant, header};

use certificates::Identity;
use tokens::{AUDIENCE, TokenEndpoint, TokenSigner};

/// What no log and no output may hold: it is a part of every secret.
pub(crate) const SENTINEL: &str = "s3ntinel";
/// How long a token of the endpoint is good for.
const TOKEN_SECONDS: i64 = 20;
/// The user of each mechanism.
const USERS: [&str; 3] = ["plain-user", "scram-user", "oauth-user"];
/// The users of the table of rights.
const WANTING: [&str; 9] =
    ["wanting-0", "wanting-1", "wanting-2", "wanting-3", "wanting-4", "wanting-5", "wanting-6", "wanting-7", "wanting-8"];

/// Returns the password of a user.
pub(crate) fn password(user: &str) -> String {
    format!("{SENTINEL}-{user}-1")
}

/// A broker with everything that its clients need.
pub(crate) struct Secured {
    pub(crate) broker: Broker,
    pub(crate) authority: Identity,
    pub(crate) signer: TokenSigner,
    pub(crate) endpoint: TokenEndpoint,
    directory: tempfile::TempDir,
}

impl Secured {
    pub(crate) fn start() -> Result<Self> {
        let directory = tempfile::tempdir()?;
        let authority = Identity::authority("Test Authority")?;
        let signer = TokenSigner::new()?;
        let file = |name: &str, text: &str| -> Result<PathBuf> {
            let path = directory.path().join(name);
            fs::write(&path, text)?;
            Ok(path)
        };
        let of_broker = authority.issue(&[("CN", "broker")], &["127.0.0.1"], -1, 10)?;
        file("ca.pem", &authority.certificate()?)?;
        let users = |names: &[&str]| names.iter().map(|name| ((*name).to_owned(), password(name))).collect::<Vec<_>>();
        let security = Security {
            plain: [users(&USERS[..1]), users(&WANTING)].concat(),
            scram: users(&USERS[1..2]),
            key_store: file("broker.pem", &(of_broker.key()? + &of_broker.certificate()?))?,
            trust_store: file("trusted.pem", &authority.certificate()?)?,
            token_keys: file("keys.json", &signer.keys()?)?,
            token_audience: AUDIENCE.to_owned(),
        };
        let target_tmpdir = crate::target_tmpdir();
        let broker = Broker::start_with_security(&target_tmpdir, &target_tmpdir.join("kafka/secured-broker.log"), &security)?;
        let endpoint = TokenEndpoint::start(
            signer.clone(),
            &of_broker.certificate()?,
            &of_broker.key()?,
            USERS[2],
            &password(USERS[2]),
            TOKEN_SECONDS,
        )?;
        Ok(Self { broker, authority, signer, endpoint, directory })
    }

    /// Returns the path of a file of this broker's clients, with this content from now on. Whoever reads it meanwhile reads all of the one
    /// content or all of the other.
    pub(crate) fn write(&self, name: &str, text: &str) -> Result<String> {
        let (path, new) = (self.path(name), self.path(&format!("{name}.new")));
        fs::write(&new, text)?;
        fs::rename(&new, &path)?;
        Ok(path)
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.directory.path().join(name).display().to_string()
    }

    /// Returns a deployment on a listener of the broker, with these properties.
    pub(crate) fn deployment(&self, shared: &Cluster, brokers: &str, properties: &[(&str, &str)]) -> Result<Deployment> {
        let cluster = self.cluster(shared)?;
        let mut deployment = Deployment::new(&cluster, 2)?;
        deployment.configure("/kafka/brokers", json!(brokers));
        for (property, value) in properties {
            deployment.configure(&format!("/kafka/properties/{property}"), json!(value));
        }
        Ok(deployment)
    }

    /// Returns the cluster for super users.
    pub(crate) fn cluster(&self, shared: &Cluster) -> Result<Cluster> {
        shared.at(self.broker.bootstrap())
    }

    /// Grants rights that the documents list, and returns nothing else.
    pub(crate) fn grant(&self, principal: &str, rights: &[String]) -> Result<()> {
        for right in rights {
            grant(&self.broker.bootstrap(), &format!("kafka-acls.sh --add --allow-principal '{principal}' {right}"))?;
        }
        Ok(())
    }
}

/// The broker that tests share which change nothing of it. It ends with the process.
pub(crate) fn shared_broker() -> Result<&'static Secured> {
    static SHARED: OnceLock<Result<Secured, String>> = OnceLock::new();
    SHARED.get_or_init(|| Secured::start().map_err(|error| format!("{error:#}"))).as_ref().map_err(|error| anyhow!("{error}"))
}

/// Returns the rights that `docs/kafka-security.md` lists, in its order, as `kafka-acls.sh` takes them.
pub(crate) fn documented_rights(deployment: &Deployment) -> Vec<String> {
    let Deployment { events, decisions, dlq, state, controls, group, .. } = deployment;
    let topic = |operation: &str, topic: &str| format!("--operation {operation} --topic {topic}");
    vec![
        topic("Read", events),
        topic("Read", controls),
        topic("Read", state),
        topic("Write", state),
        topic("Write", decisions),
        topic("Write", dlq),
        topic("Write", controls),
        format!("--operation Read --group {group}"),
        format!("--operation Write --transactional-id {group}/ --resource-pattern-type prefixed"),
    ]
}

/// Sends a call, and one record that is no event.
pub(crate) fn send(cluster: &Cluster, deployment: &Deployment, id: &str) -> Result<()> {
    let call = format!(r#"{{"type":"tool_call","event_id":"{id}","tool_call_id":"{id}","tool_name":"ls","tool_input":{{}}}}"#);
    cluster.produce(&deployment.events, &[Outgoing::new("t", call), Outgoing::new("t", "no event")])?;
    Ok(())
}

/// Sends as [`send`] does, and waits for the verdict on the call.
pub(crate) fn decides(cluster: &Cluster, deployment: &Deployment, id: &str) -> Result<()> {
    send(cluster, deployment, id)?;
    cluster.read_until(&deployment.decisions, |verdicts| verdicts.iter().any(|verdict| header(verdict, "event_id") == id))?;
    Ok(())
}
