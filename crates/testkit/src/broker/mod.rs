//! Runs a real Kafka broker: one node, on the loopback interface, in a temporary directory, which ends with its starter.

mod archive;
mod jars;
mod security;

pub(crate) use archive::quick_options;
pub(crate) use jars::class_path;
pub use jars::{default_cache, lacking, test_cache};
pub use security::Security;

use std::fs;
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use rdkafka::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer as _};

use super::{ProcessGuard, free_ports};

const START_TIME_MAX: Duration = Duration::from_secs(300);
const STOP_TIME_MAX: Duration = Duration::from_secs(120);
const METADATA_TIME_MAX: Duration = Duration::from_secs(10);
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// The cluster's id: any 16 bytes in base64.
const CLUSTER_ID: &str = "dG9sbGdhdGUtdGVzdHMtMQ";

/// The properties of a broker for tests.
const TESTS: &str = include_str!("tests.properties");

/// The properties of a broker that grants nothing by itself. Clients of the listener without security are super users.
const AUTHORIZER: &str = "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:ANONYMOUS
allow.everyone.if.no.acl.found=false";

/// A broker of our own. Dropping it kills it and removes its data.
#[derive(Debug)]
pub struct Broker {
    guard: ProcessGuard,
    class_path: String,
    /// The options of its JVM.
    options: Vec<String>,
    port: u16,
    /// The port of the listener that wants a password, if there is one.
    secured_port: Option<u16>,
    /// The port of the listener that wants a client certificate.
    certified_port: u16,
    security: Option<Security>,
}

/// What a broker has that others have not.
struct Setup<'s> {
    /// Further lines of its `server.properties`.
    properties: &'s str,
    /// The file of its log, which stays.
    log: Option<&'s Path>,
    /// Users with their passwords, on a listener of their own.
    users: &'s [(&'s str, &'s str)],
    /// Security of every kind, on listeners of their own.
    all: Option<&'s Security>,
    /// The options of its JVM.
    options: Vec<String>,
}

impl Default for Setup<'_> {
    fn default() -> Self {
        let options = ["-Xms512m", "-Xmx1g"].map(str::to_owned).to_vec();
        Self { properties: "", log: None, users: &[], all: None, options }
    }
}

impl Broker {
    /// Starts a broker on free ports and waits until it answers. Its jars are in `jars`, or are put there; `properties` are further lines
    /// of its `server.properties`.
    ///
    /// # Errors
    /// Java, Maven or the jars are missing, or the broker does not come up: with the end of its log.
    pub fn start(jars: &Path, properties: &str) -> Result<Self> {
        Self::start_with(jars, Setup { properties, ..Setup::default() })
    }

    fn start_with(jars: &Path, setup: Setup<'_>) -> Result<Self> {
        let Setup { properties, log, users, all, options } = setup;
        let class_path = class_path(jars)?;
        let mut guard = ProcessGuard::start()?;
        log.map_or(Ok(()), |log| guard.log_to(log))?;
        let [port, controller_port, secured_port, certified_port] = free_ports()?;
        let home = guard.home();
        let secured_port = (!users.is_empty() || all.is_some()).then_some(secured_port);
        let (secured, security) = match all {
            Some(all) => {
                (format!(",SASLTLS://127.0.0.1:{},MTLS://127.0.0.1:{certified_port}", secured_port.unwrap_or_default()), all.properties())
            }
            None if users.is_empty() => (String::new(), String::new()),
            None => (format!(",SECURED://127.0.0.1:{}", secured_port.unwrap_or_default()), security(users)),
        };
        let settings = [
            include_str!("server.properties").to_owned(),
            format!("listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}{secured}"),
            security,
            format!("controller.quorum.voters=1@127.0.0.1:{controller_port}"),
            format!("log.dirs={}", home.join("data").display()),
            properties.to_owned(),
        ];
        fs::write(home.join("server.properties"), settings.join("\n"))?;
        fs::write(home.join("log4j2.properties"), include_str!("log4j2.properties"))?;
        let mut broker = Self { guard, class_path, options, port, secured_port, certified_port, security: all.cloned() };
        broker.format()?;
        broker.start_again()?;
        Ok(broker)
    }

    /// Starts a broker for benchmarks, which deals with dead members, open transactions and small topics at once. `target_tmpdir` is cargo's
    /// `CARGO_TARGET_TMPDIR`, beside which its jars are kept.
    ///
    /// # Errors
    /// Those of [`Broker::start`].
    pub fn start_for_benchmarks(target_tmpdir: &Path) -> Result<Self> {
        Self::start(&test_cache(target_tmpdir), TESTS)
    }

    /// Starts the same broker for tests: it starts sooner, and is slower under load. It logs to the file `log`, which stays.
    ///
    /// # Errors
    /// Those of [`Broker::start`].
    pub fn start_for_tests(target_tmpdir: &Path, log: &Path) -> Result<Self> {
        Self::start_quickly(target_tmpdir, log, Setup::default())
    }

    fn start_quickly(target_tmpdir: &Path, log: &Path, setup: Setup<'_>) -> Result<Self> {
        let jars = test_cache(target_tmpdir);
        let options = quick_options(&jars)?;
        Self::start_with(&jars, Setup { properties: TESTS, log: Some(log), options, ..setup })
    }

    /// Starts a broker for tests with a second listener, at which users log in with a name and a password (SASL/PLAIN) and may do only what
    /// they were granted. Clients of the first listener are super users.
    ///
    /// # Errors
    /// Those of [`Broker::start`].
    pub fn start_secured(target_tmpdir: &Path, log: &Path, users: &[(&str, &str)]) -> Result<Self> {
        Self::start_quickly(target_tmpdir, log, Setup { users, ..Setup::default() })
    }

    /// Starts a broker for tests that is secured in every way: a listener with SASL over TLS, for all mechanisms, and one that wants client
    /// certificates. Clients of the first listener are super users.
    ///
    /// # Errors
    /// Those of [`Broker::start`].
    pub fn start_with_security(target_tmpdir: &Path, log: &Path, security: &Security) -> Result<Self> {
        Self::start_quickly(target_tmpdir, log, Setup { all: Some(security), ..Setup::default() })
    }

    /// Returns the address of the listener that wants a client certificate.
    #[must_use]
    pub fn certified_bootstrap(&self) -> String {
        format!("127.0.0.1:{}", self.certified_port)
    }

    /// Sets the password of a user of SCRAM-SHA-512 while the broker runs. The one before is not accepted any more.
    ///
    /// # Errors
    /// The broker refuses it.
    pub fn set_password(&self, user: &str, password: &str) -> Result<()> {
        let mut command = Command::new("java");
        command.args(["-XX:TieredStopAtLevel=1", "-cp", &self.class_path, "kafka.admin.ConfigCommand"]);
        command.args(["--bootstrap-server", &self.bootstrap(), "--alter", "--entity-type", "users", "--entity-name", user]);
        let output = command.args(["--add-config", &format!("SCRAM-SHA-512=[password={password}]")]).output()?;
        ensure!(output.status.success(), "{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        Ok(())
    }

    /// Returns the address of the listener that wants a password.
    ///
    /// # Errors
    /// The broker was not started with one.
    pub fn secured_bootstrap(&self) -> Result<String> {
        Ok(format!("127.0.0.1:{}", self.secured_port.context("a broker without users")?))
    }

    /// Returns the address for `bootstrap.servers`.
    #[must_use]
    pub fn bootstrap(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Returns where it logs to.
    #[must_use]
    pub fn log_path(&self) -> PathBuf {
        self.guard.log_path()
    }

    /// Starts it on the same ports and data, unless it is running, and waits until it answers.
    ///
    /// # Errors
    /// It does not come up: with the end of its log.
    pub fn start_again(&mut self) -> Result<()> {
        if !self.guard.is_running()? {
            let own = self.security.iter().flat_map(Security::java_options);
            let options: Vec<_> = self.options.iter().cloned().chain(own).collect();
            self.guard.run(&self.java(&options, &["kafka.Kafka".to_owned()]))?;
        }
        let deadline = Instant::now() + START_TIME_MAX;
        while !self.answers() {
            ensure!(self.guard.is_running()?, "the broker ended; its log:\n{}", self.guard.log_tail());
            ensure!(Instant::now() < deadline, "the broker does not answer; its log:\n{}", self.guard.log_tail());
            std::thread::sleep(POLL_INTERVAL);
        }
        Ok(())
    }

    /// Stops it as an operator would: it hands over, writes what it holds and ends.
    ///
    /// # Errors
    /// It does not end.
    pub fn stop(&mut self) -> Result<()> {
        self.end("TERM")
    }

    /// Kills it, as a crash would.
    ///
    /// # Errors
    /// It does not end.
    pub fn kill(&mut self) -> Result<()> {
        self.end("KILL")
    }

    fn end(&mut self, signal: &str) -> Result<()> {
        if self.guard.is_running()? {
            self.guard.signal(signal)?;
            self.guard.wait(STOP_TIME_MAX).with_context(|| self.guard.log_tail())?;
        }
        Ok(())
    }

    /// Formats the storage, which a broker needs before its first start.
    fn format(&mut self) -> Result<()> {
        let mut tool = ["kafka.tools.StorageTool", "format", "-t", CLUSTER_ID].map(str::to_owned).to_vec();
        tool.extend(self.security.iter().flat_map(Security::format_options));
        tool.push("-c".to_owned());
        self.guard.run(&self.java(&["-XX:TieredStopAtLevel=1".to_owned()], &tool))?;
        let status = self.guard.wait(START_TIME_MAX)?;
        ensure!(status.success(), "cannot format the broker's storage:\n{}", self.guard.log_tail());
        Ok(())
    }

    /// Returns a Java command whose last argument is the broker's configuration.
    fn java(&self, options: &[String], arguments: &[String]) -> Command {
        let home = self.guard.home();
        let mut command = Command::new("java");
        command.args(options).args(["-cp", &self.class_path]);
        command.arg(format!("-Dlog4j2.configurationFile={}/log4j2.properties", home.display()));
        command.args(arguments).arg(home.join("server.properties"));
        command
    }

    /// Returns whether it lists itself and a leader for every partition. A client that finds no broker backs off, so none is made before
    /// the port is open.
    fn answers(&self) -> bool {
        if TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).is_err() {
            return false;
        }
        let client: BaseConsumer = match ClientConfig::new().set("bootstrap.servers", self.bootstrap()).create() {
            Ok(client) => client,
            Err(_) => return false,
        };
        client.fetch_metadata(None, METADATA_TIME_MAX).is_ok_and(|metadata| {
            let led = metadata.topics().iter().flat_map(|topic| topic.partitions()).all(|partition| partition.leader() >= 0);
            !metadata.brokers().is_empty() && led
        })
    }
}

/// Returns the properties of a broker whose users have passwords and rights.
fn security(users: &[(&str, &str)]) -> String {
    let users: String = users.iter().map(|(name, password)| format!(" user_{name}=\"{password}\"")).collect();
    let module = "org.apache.kafka.common.security.plain.PlainLoginModule";
    [
        "listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SECURED:SASL_PLAINTEXT".to_owned(),
        "listener.name.secured.sasl.enabled.mechanisms=PLAIN".to_owned(),
        format!("listener.name.secured.plain.sasl.jaas.config={module} required{users};"),
        AUTHORIZER.to_owned(),
    ]
    .join("\n")
}
