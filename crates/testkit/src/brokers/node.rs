//! One node of a cluster: its process, its ports and its directory.

use std::fs;
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use super::BrokersSettings;
use super::disk::Disk;
use crate::ProcessGuard;
use crate::broker::{class_path, quick_options};

const FORMAT_TIME_MAX: Duration = Duration::from_secs(180);
const STOP_TIME_MAX: Duration = Duration::from_secs(120);
/// The cluster's id: any 16 bytes in base64.
const CLUSTER_ID: &str = "dG9sbGdhdGUtdGVzdHMtMw";

/// The ports of a node.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ports {
    /// Where clients connect to: the proxy, if there is one.
    pub(super) advertised: u16,
    /// Where the node listens for clients.
    pub(super) clients: u16,
    pub(super) internal: u16,
    pub(super) controller: u16,
}

/// A node. Dropping it kills it and removes its data.
#[derive(Debug)]
pub(super) struct Node {
    guard: ProcessGuard,
    class_path: String,
    /// The options of its JVM.
    options: Vec<String>,
    disk: Option<Disk>,
    pub(super) ports: Ports,
}

impl Node {
    /// Makes the node of this number, from 0, and formats its storage.
    pub(super) fn new(number: usize, jars: &Path, ports: &[Ports], disk_bytes: Option<u64>, of_all: &BrokersSettings) -> Result<Self> {
        let (class_path, options) = (class_path(jars)?, quick_options(jars)?);
        let mut guard = ProcessGuard::start()?;
        if let Some(logs) = &of_all.logs {
            fs::create_dir_all(logs)?;
            guard.log_to(&logs.join(format!("node-{}.log", number + 1)))?;
        }
        let disk = disk_bytes.map(Disk::make).transpose()?;
        let own = ports[number];
        let data = disk.as_ref().map_or_else(|| guard.home().join("data"), |disk| disk.path().join("data"));
        let voters: Vec<_> = (1..).zip(ports).map(|(id, ports)| format!("{id}@127.0.0.1:{}", ports.controller)).collect();
        let listen = |clients: u16| format!("PLAINTEXT://127.0.0.1:{clients},INTERNAL://127.0.0.1:{}", own.internal);
        let settings = [
            include_str!("server.properties").to_owned(),
            format!("node.id={}", number + 1),
            format!("listeners={},CONTROLLER://127.0.0.1:{}", listen(own.clients), own.controller),
            format!("advertised.listeners={}", listen(own.advertised)),
            format!("controller.quorum.voters={}", voters.join(",")),
            format!("log.dirs={}", data.display()),
            of_all.properties.clone(),
        ];
        fs::write(guard.home().join("server.properties"), settings.join("\n"))?;
        fs::write(guard.home().join("log4j2.properties"), include_str!("../broker/log4j2.properties"))?;
        let mut node = Self { guard, class_path, options, disk, ports: own };
        node.format()?;
        Ok(node)
    }

    fn format(&mut self) -> Result<()> {
        let command = self.java(&["kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c"])?;
        self.guard.run(&command)?;
        let status = self.guard.wait(FORMAT_TIME_MAX)?;
        ensure!(status.success(), "cannot format a node's storage:\n{}", self.guard.log_tail());
        Ok(())
    }

    /// Starts it, unless it is running.
    pub(super) fn start(&mut self) -> Result<()> {
        if !self.guard.is_running()? {
            let command = self.java(&["kafka.Kafka"])?;
            self.guard.run(&command)?;
        }
        Ok(())
    }

    pub(super) fn is_running(&mut self) -> Result<bool> {
        self.guard.is_running()
    }

    /// Returns whether clients can connect to it.
    pub(super) fn listens(&self) -> bool {
        TcpStream::connect((Ipv4Addr::LOCALHOST, self.ports.clients)).is_ok()
    }

    /// Ends it with a signal, and waits until it has.
    pub(super) fn end(&mut self, signal: &str) -> Result<()> {
        if self.guard.is_running()? {
            self.guard.signal(signal)?;
            self.guard.wait(STOP_TIME_MAX).with_context(|| self.guard.log_tail())?;
        }
        Ok(())
    }

    pub(super) fn signal(&mut self, name: &str) -> Result<()> {
        self.guard.signal(name)
    }

    pub(super) fn disk(&self) -> Result<&Disk> {
        self.disk.as_ref().context("a node without a small disk")
    }

    pub(super) fn log_path(&self) -> PathBuf {
        self.guard.log_path()
    }

    pub(super) fn log_tail(&self) -> String {
        self.guard.log_tail()
    }

    /// Returns a Java command whose last argument is the node's configuration.
    fn java(&self, arguments: &[&str]) -> Result<Command> {
        let home: &Path = self.guard.home();
        let mut command = match &self.disk {
            Some(disk) => {
                let mut command = disk.inside()?;
                command.arg("java");
                command
            }
            None => Command::new("java"),
        };
        command.args(&self.options).args(["-cp", &self.class_path]);
        command.arg(format!("-Dlog4j2.configurationFile={}/log4j2.properties", home.display()));
        command.args(arguments).arg(home.join("server.properties"));
        Ok(command)
    }
}
