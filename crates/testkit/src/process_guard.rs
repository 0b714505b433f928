//! The process guard: a shell process beside this one that ends what this one has started, even if this one is killed.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};

const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// The lines of a log's end: enough to hold the exception that ended a broker.
const LOG_TAIL_LINES: usize = 30;

/// The guard's script. It makes a directory and prints its name. Then it reads process ids, one a line; the last one counts, and an empty
/// line means none. The input ends when the starter closes it or dies of whatever cause. Then the script kills that process with its
/// children and removes the directory. It tries the removal twice, because a killed process may still complete the system call it is in.
const SCRIPT: &str = r#"
home=$(mktemp -d "${TMPDIR:-/tmp}/tollgate.XXXXXX") || exit
guarded=
clean() {
    [ -z "$guarded" ] || kill -KILL "-$guarded" 2>/dev/null
    rm -rf "$home" 2>/dev/null || { sleep 1; rm -rf "$home"; }
}
trap clean EXIT
trap exit HUP INT PIPE TERM
echo "$home" 2>/dev/null
while read -r pid; do guarded=$pid; done
"#;

/// A script that runs a command once a line arrives on its standard input, and not at all if the input ends first.
const GATE: &str = r#"read -r _ && exec "$@""#;

/// A temporary directory and at most one process with its children, none of which outlives this value or this process.
#[derive(Debug)]
pub struct ProcessGuard {
    home: PathBuf,
    log: PathBuf,
    shell: Child,
    orders: Option<ChildStdin>,
    guarded: Option<Child>,
}

impl ProcessGuard {
    /// Starts the guard, in a process group of its own: an interrupt typed at the terminal must reach its starter
    /// alone.
    ///
    /// # Errors
    /// There is no shell, or no room for a temporary directory.
    pub fn start() -> Result<Self> {
        let mut shell = Command::new("sh")
            .args(["-c", SCRIPT])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .context("cannot start sh")?;
        let (orders, answer) = (shell.stdin.take(), shell.stdout.take().context("the guard has no output")?);
        let mut home = String::new();
        BufReader::new(answer).read_line(&mut home)?;
        ensure!(!home.is_empty(), "the guard could not make a temporary directory");
        let home = PathBuf::from(home.trim_end());
        Ok(Self { log: home.join("output.log"), home, shell, orders, guarded: None })
    }

    /// Has the output of the guarded process written to this file, which begins empty and stays, instead of one in the temporary directory.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn log_to(&mut self, file: &Path) -> Result<()> {
        std::fs::File::create(file).with_context(|| format!("cannot write {}", file.display()))?;
        file.clone_into(&mut self.log);
        Ok(())
    }

    /// Returns the temporary directory.
    #[must_use]
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// Runs `command` as the one process that is guarded. It waits behind a gate until the guard knows its id, so that there is no instant
    /// at which killing this process would leave it running. Of `command`, only the program, arguments and variables are used.
    ///
    /// # Errors
    /// One is running already, or the system starts none.
    pub fn run(&mut self, command: &Command) -> Result<()> {
        ensure!(!self.is_running()?, "a process is running already");
        let mut gated = Command::new("sh");
        gated.args(["-c", GATE, "gate"]).arg(command.get_program()).args(command.get_args());
        gated.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let log = std::fs::File::options().create(true).append(true).open(self.log_path())?;
        let mut child = gated.stdin(Stdio::piped()).stdout(log.try_clone()?).stderr(log).process_group(0).spawn()?;
        let gate = child.stdin.take();
        let pid = child.id();
        self.guarded = Some(child);
        self.tell(&pid.to_string())?;
        gate.context("the gate has no input")?.write_all(b"open\n")?;
        Ok(())
    }

    /// Returns the path of the file that takes the output of the guarded process.
    #[must_use]
    pub fn log_path(&self) -> PathBuf {
        self.log.clone()
    }

    /// Returns whether the guarded process is running.
    ///
    /// # Errors
    /// The system does not say, or the guard is gone.
    pub fn is_running(&mut self) -> Result<bool> {
        let Some(child) = &mut self.guarded else { return Ok(false) };
        if child.try_wait()?.is_none() {
            return Ok(true);
        }
        self.forget()?;
        Ok(false)
    }

    /// Returns the id of the guarded process, which is also that of its process group.
    #[must_use]
    pub fn id(&self) -> Option<u32> {
        self.guarded.as_ref().map(Child::id)
    }

    /// Sends a signal (`TERM`, `KILL`, …) to the guarded process and its children.
    ///
    /// # Errors
    /// There is none, or it is gone.
    pub fn signal(&mut self, name: &str) -> Result<()> {
        let pid = self.guarded.as_ref().context("no process is running")?.id();
        let status = Command::new("sh").args(["-c", r#"kill -"$0" "-$1""#, name, &pid.to_string()]).status()?;
        ensure!(status.success(), "kill -{name} {pid}: {status}");
        Ok(())
    }

    /// Waits until the guarded process ends.
    ///
    /// # Errors
    /// It does not in that time, or there is none.
    pub fn wait(&mut self, time_max: Duration) -> Result<ExitStatus> {
        let child = self.guarded.as_mut().context("no process is running")?;
        let deadline = Instant::now() + time_max;
        let status = loop {
            match child.try_wait()? {
                Some(status) => break status,
                None => ensure!(Instant::now() < deadline, "process {} does not end", child.id()),
            }
            std::thread::sleep(POLL_INTERVAL);
        };
        self.forget()?;
        Ok(status)
    }

    /// Returns the last lines of what the guarded process has put out.
    #[must_use]
    pub fn log_tail(&self) -> String {
        let log = std::fs::read_to_string(self.log_path()).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        lines.get(lines.len().saturating_sub(LOG_TAIL_LINES)..).unwrap_or_default().join("\n")
    }

    /// Notes that the process is gone, since its id may soon be another's.
    fn forget(&mut self) -> Result<()> {
        self.guarded = None;
        self.tell("")
    }

    fn tell(&mut self, order: &str) -> Result<()> {
        match &mut self.orders {
            Some(orders) => Ok(writeln!(orders, "{order}")?),
            None => bail!("the guard has no input"),
        }
    }
}

impl Drop for ProcessGuard {
    fn drop(&mut self) {
        drop(self.orders.take());
        // It kills the process before it ends; what is left to do here is to reap both.
        let _reaped = self.shell.wait();
        let _reaped = self.guarded.as_mut().map(Child::wait);
    }
}
