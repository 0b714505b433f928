//! A process of a worker or a server, controlled and observed as an operator would: signals, admin endpoint, log.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use crate::wait::eventually;

/// A process of `tollgate run` or `tollgate serve`. Dropping it kills it.
#[derive(Debug)]
pub struct Worker {
    child: Child,
    admin_port: u16,
    log: PathBuf,
}

impl Worker {
    pub(super) fn new(child: Child, admin_port: u16, log: PathBuf) -> Self {
        Self { child, admin_port, log }
    }

    /// Returns its process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns the port of its admin endpoint.
    #[must_use]
    pub fn admin_port(&self) -> u16 {
        self.admin_port
    }

    /// Waits until `/readyz` says that it is ready.
    ///
    /// # Errors
    /// It does not get ready in time: with its log.
    pub fn wait_ready(&self) -> Result<()> {
        eventually(|| {
            ensure!(self.get("/readyz").is_ok_and(|(status, _)| status == 200), "not ready in time:\n{}", self.log());
            Ok(())
        })
    }

    /// Returns a page of the admin endpoint: status and body.
    ///
    /// # Errors
    /// It does not answer.
    pub fn get(&self, path: &str) -> Result<(u16, String)> {
        admin_page(self.admin_port, path)
    }

    /// Returns the value of a metric, summed over its labels.
    ///
    /// # Errors
    /// The admin endpoint does not answer.
    pub fn metric(&self, name: &str) -> Result<f64> {
        Ok(metric_of(&self.get("/metrics")?.1, name))
    }

    /// Returns the partitions that the worker holds.
    ///
    /// # Errors
    /// The admin endpoint does not answer.
    pub fn partitions(&self) -> Result<Vec<i64>> {
        let (_, body) = self.get("/readyz")?;
        let report: Value = serde_json::from_str(&body)?;
        let members = report["members"].as_array().cloned().unwrap_or_default();
        Ok(members
            .iter()
            .flat_map(|member| member["partitions"].as_array().cloned().unwrap_or_default())
            .filter_map(|n| n.as_i64())
            .collect())
    }

    /// Asks it to stop and waits until it has.
    ///
    /// # Errors
    /// It does not end in time: with its log.
    pub fn stop(mut self) -> Result<ExitStatus> {
        self.signal("TERM")?;
        self.wait()
    }

    /// Sends a signal (`TERM`, `STOP`, …).
    ///
    /// # Errors
    /// It has ended.
    pub fn signal(&self, name: &str) -> Result<()> {
        let sent = Command::new("kill").arg(format!("-{name}")).arg(self.child.id().to_string()).status()?;
        ensure!(sent.success(), "kill -{name} failed");
        Ok(())
    }

    /// Waits until it has ended.
    ///
    /// # Errors
    /// It does not in time: with its log.
    pub fn wait(&mut self) -> Result<ExitStatus> {
        eventually(|| self.child.try_wait()?.with_context(|| format!("the worker did not end in time:\n{}", read(&self.log))))
    }

    /// Returns how it has ended, if it has.
    ///
    /// # Errors
    /// The system does not say.
    pub fn ended(&mut self) -> Result<Option<ExitStatus>> {
        Ok(self.child.try_wait()?)
    }

    /// Kills it, as a crash would.
    ///
    /// # Errors
    /// The system does not do it.
    pub fn kill(mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// Returns the file that it logs to.
    #[must_use]
    pub fn log_path(&self) -> &Path {
        &self.log
    }

    /// Returns what it has logged.
    #[must_use]
    pub fn log(&self) -> String {
        read(&self.log)
    }

    /// Waits until a line of its log holds all of these, and returns that line.
    ///
    /// # Errors
    /// There is none in time: with its log.
    pub fn await_line(&self, parts: &[&str]) -> Result<String> {
        let is_wanted = |line: &&str| parts.iter().all(|part| line.contains(part));
        eventually(|| {
            let log = self.log();
            log.lines().find(is_wanted).map(str::to_owned).with_context(|| format!("no line with {parts:?}:\n{log}"))
        })
    }

    /// Waits until a metric, summed over its labels, is as it should be.
    ///
    /// # Errors
    /// It is not in time: with its value.
    pub fn await_metric(&self, name: &str, is_right: impl Fn(f64) -> bool) -> Result<()> {
        eventually(|| {
            let value = self.metric(name)?;
            ensure!(is_right(value), "{name} is {value}:\n{}", self.log());
            Ok(())
        })
    }
}

fn read(log: &Path) -> String {
    fs::read_to_string(log).unwrap_or_default()
}

impl Drop for Worker {
    fn drop(&mut self) {
        // It has ended, or the test has failed.
        let _ended = self.child.kill();
        let _ended = self.child.wait();
    }
}

/// Returns a page of the admin endpoint, or of another web server, at this port: status and body.
///
/// # Errors
/// It does not answer.
pub fn admin_page(port: u16, path: &str) -> Result<(u16, String)> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(Duration::from_secs(60)))?;
    // Answers to requests of version 1.0 come in one piece.
    write!(stream, "GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (head, body) = answer.split_once("\r\n\r\n").context("an answer has a head")?;
    let status = head.split_whitespace().nth(1).context("an answer has a status")?.parse()?;
    Ok((status, body.to_owned()))
}

/// Returns the sum of all series of a metric in a page of metrics.
#[must_use]
pub fn metric_of(page: &str, name: &str) -> f64 {
    let is_of = |line: &&str| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(['{', ' ']));
    page.lines().filter(is_of).filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum()
}
