//! A small disk for one broker: a file system in memory, in a mount namespace of its own, so that it ends with its processes and takes no
//! rights of the system's. A process that only sleeps keeps the namespace while the broker is down.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};

use crate::ProcessGuard;

const READY_TIME_MAX: Duration = Duration::from_secs(120);

/// Returns whether this machine gives a process a file system of its own: `unshare`, `nsenter` and user namespaces.
#[must_use]
pub fn has_small_disks() -> bool {
    let runs =
        |program: &str, arguments: &[&str]| Command::new(program).args(arguments).output().is_ok_and(|output| output.status.success());
    runs("nsenter", &["--version"]) && runs("unshare", &["--mount", "--map-root-user", "sh", "-c", "mount -t tmpfs tmpfs /mnt"])
}

/// A file system of a fixed size.
#[derive(Debug)]
pub(super) struct Disk {
    holder: ProcessGuard,
    path: PathBuf,
}

impl Disk {
    /// Makes a disk of so many bytes. Only processes that [`Disk::inside`] starts see it.
    pub(super) fn make(bytes: u64) -> Result<Self> {
        let mut holder = ProcessGuard::start()?;
        let path = holder.home().join("disk");
        std::fs::create_dir(&path)?;
        let script = r#"mount -t tmpfs -o size="$0" tmpfs "$1" && echo mounted && exec sleep 100000"#;
        let mut command = Command::new("unshare");
        command.args(["--mount", "--map-root-user", "sh", "-c", script, &bytes.to_string()]).arg(&path);
        holder.run(&command)?;
        let deadline = Instant::now() + READY_TIME_MAX;
        while !holder.log_tail().contains("mounted") {
            ensure!(Instant::now() < deadline, "no small disk: {}", holder.log_tail());
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(Self { holder, path })
    }

    /// Returns where it is mounted, for the processes that see it.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns a command that runs where the disk is seen; its program and arguments are yet to be added.
    pub(super) fn inside(&self) -> Result<Command> {
        let holder = self.holder.id().context("nobody holds the disk")?;
        let mut command = Command::new("nsenter");
        command.args(["--user", "--preserve-credentials", "--mount", "--target", &holder.to_string()]);
        Ok(command)
    }

    /// Fills it up to the last byte.
    pub(super) fn fill(&self) -> Result<()> {
        // It ends for want of room.
        let _full = self.inside()?.args(["dd", "if=/dev/zero", "bs=64k"]).arg(format!("of={}", self.filler())).output()?;
        Ok(())
    }

    /// Makes room again.
    pub(super) fn free(&self) -> Result<()> {
        let removed = self.inside()?.args(["rm", "-f", &self.filler()]).status()?;
        ensure!(removed.success(), "the filler could not be removed: {removed}");
        Ok(())
    }

    fn filler(&self) -> String {
        self.path.join("filler").display().to_string()
    }
}
