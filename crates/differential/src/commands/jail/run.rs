//! Running a line in a shell, within limits.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::wait;
use nix::unistd::Pid;

use super::build::Jail;
use super::errors::missing_program;
use crate::commands::finding::Harm;
use crate::commands::rules::RuleSet;

/// How long lines may take.
#[derive(Debug, Clone, Copy)]
pub(in crate::commands) struct Limits {
    /// How long a line may run.
    line: Duration,
    /// How long what a line leaves behind may go on when its shell has ended.
    background: Duration,
    /// How long a line that does harm may be made shorter.
    pub(in crate::commands) minimising: Duration,
}

impl Limits {
    /// For lines by the thousand, of which one that is too slow is no loss.
    pub(in crate::commands) const FUZZING: Self =
        Self { line: Duration::from_secs(1), background: Duration::from_millis(200), minimising: Duration::from_secs(10) };
    /// For a few lines of which each has to be seen to its end, however busy the machine is.
    pub(in crate::commands) const CHECKING: Self =
        Self { line: Duration::from_secs(5), background: Duration::from_secs(1), minimising: Duration::from_secs(60) };
}

/// How long a line may run that has used up its time in another shell.
const SLOW_LINE_TIME: Duration = Duration::from_millis(200);

/// How often it is looked whether the time is over, and what does not end is killed again.
const INTERVAL: Duration = Duration::from_millis(20);

/// From how many processes on, that outlived their shell, a line has multiplied itself. They need not be there when the time is over: at
/// the limit of processes a shell that cannot start another one ends by itself.
const BOMB_PROCESSES: usize = 48;

/// How much of what a line writes to the standard error is read, in bytes.
const ERROR_BYTES_MAX: u64 = 16 << 10;

/// The longest part of what a canary wrote that is shown, in characters.
const SHOWN_CHARS_MAX: usize = 300;

/// A shell under test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::commands) enum Shell {
    Bash,
    Dash,
    Zsh,
    Busybox,
}

impl Shell {
    /// All of them, the fastest first.
    pub(in crate::commands) const ALL: [Self; 4] = [Self::Dash, Self::Busybox, Self::Bash, Self::Zsh];

    /// Returns its name.
    pub(in crate::commands) fn name(self) -> &'static str {
        match self {
            Self::Bash => "bash",
            Self::Dash => "dash",
            Self::Zsh => "zsh",
            Self::Busybox => "busybox",
        }
    }

    /// The words between the shell's name and the line.
    fn arguments(self) -> &'static [&'static str] {
        match self {
            Self::Bash => &["--norc", "--noprofile", "-c"],
            Self::Dash => &["-c"],
            Self::Zsh => &["-f", "-c"],
            Self::Busybox => &["sh", "-c"],
        }
    }
}

/// A line, and how it is run.
#[derive(Debug, Clone, Copy)]
pub(in crate::commands) struct Run<'l> {
    pub(in crate::commands) line: &'l str,
    pub(in crate::commands) folder: &'static str,
    pub(in crate::commands) set: &'l RuleSet,
}

/// Runs lines in the jail.
#[derive(Debug)]
pub(in crate::commands) struct Runner {
    jail: Jail,
    limits: Limits,
    watch: Arc<Watch>,
    log: File,
    connections: u64,
    /// Whether the last line used up its time.
    slow: bool,
}

impl Runner {
    /// Returns what runs lines in a jail.
    ///
    /// # Errors
    /// If the jail lacks a file.
    pub(in crate::commands) fn new(jail: Jail, limits: Limits) -> Result<Self> {
        let log = File::options().write(true).open(jail.hidden.join("log")).context("the log of the canaries")?;
        let watch = Arc::new(Watch::default());
        let watching = Arc::clone(&watch);
        std::thread::Builder::new().stack_size(64 << 10).spawn(move || watching.keep())?;
        Ok(Self { jail, limits, watch, log, connections: connections(), slow: false })
    }

    /// Returns how long lines may take.
    pub(in crate::commands) fn limits(&self) -> Limits {
        self.limits
    }

    /// Puts the programs of a rule set in their place.
    ///
    /// # Errors
    /// If the kernel refuses it.
    pub(in crate::commands) fn use_programs(&self, set: &RuleSet) -> Result<()> {
        self.jail.use_programs(set)
    }

    /// Returns whether the last line used up its time in some shell.
    pub(in crate::commands) fn was_slow(&self) -> bool {
        self.slow
    }

    /// Runs a line in some shells, one after the other, and returns the first harm that it does.
    ///
    /// # Errors
    /// If the jail is of no use any more.
    pub(in crate::commands) fn harm(&mut self, run: Run<'_>, shells: &[Shell]) -> Result<Option<(Shell, Harm)>> {
        self.slow = false;
        for &shell in shells {
            if let Some(harm) = self.run(run, shell)? {
                self.clean(run)?;
                return Ok(Some((shell, harm)));
            }
        }
        let Some(harm) = self.clean(run)? else { return Ok(None) };
        // Files and connections are looked at once for all shells; the one that did it is found by running the line again.
        for &shell in shells {
            let ran = self.run(run, shell)?;
            if let Some(harm) = ran.or(self.clean(run)?) {
                return Ok(Some((shell, harm)));
            }
        }
        // It happens only if several shells run it in a row.
        Ok(shells.last().map(|&shell| (shell, harm)))
    }

    /// Runs a line in a shell and returns what can be said at once: the canary that ran, and whether it multiplied itself.
    fn run(&mut self, run: Run<'_>, shell: Shell) -> Result<Option<Harm>> {
        let mut command = Command::new(self.jail.hidden.join(shell.name()));
        command.args(shell.arguments()).arg(run.line).current_dir(run.folder).env_clear();
        command.envs([("PATH", "/usr/local/bin:/usr/bin:/bin"), ("HOME", "/home/agent"), ("LANG", "C.UTF-8")]);
        command.envs([("TERM", "dumb"), ("USER", "agent"), ("PWD", run.folder), ("SHELL", "/bin/sh")]);
        command.stdin(File::open(self.jail.hidden.join("input"))?).stdout(Stdio::null());
        command.stderr(File::create(self.jail.hidden.join("errors"))?);
        self.watch.start(if self.slow { SLOW_LINE_TIME } else { self.limits.line });
        let child = command.spawn().with_context(|| format!("{} cannot be started", shell.name()))?;
        let first = i32::try_from(child.id()).map(Pid::from_raw)?;
        let mut left = 0;
        // The first process of the jail inherits all others.
        loop {
            match wait() {
                Ok(status) if status.pid() == Some(first) => self.watch.shorten(self.limits.background),
                Ok(_) => {}
                Err(Errno::EINTR) => continue,
                Err(_) => break,
            }
            left += 1;
        }
        self.slow |= self.watch.has_killed();
        self.watch.stop();
        if let Some(harm) = self.read_log(run.set)? {
            return Ok(Some(harm));
        }
        if let Some(harm) = self.read_errors(run.set)? {
            return Ok(Some(harm));
        }
        Ok((left >= BOMB_PROCESSES).then_some(Harm::Endless))
    }

    /// Returns what the first canary wrote that may not run, and empties the log.
    fn read_log(&mut self, set: &RuleSet) -> Result<Option<Harm>> {
        if self.log.metadata()?.size() == 0 {
            return Ok(None);
        }
        let bytes = fs::read(self.jail.hidden.join("log"))?;
        self.log.set_len(0)?;
        let text = String::from_utf8_lossy(&bytes);
        let first = text.split_terminator('\0').map(str::trim_end).find(|written| !set.tolerates(written));
        Ok(first.map(|line| Harm::Ran(line.chars().take(SHOWN_CHARS_MAX).collect())))
    }

    /// Returns the program that was looked for and is not there. What is not there would run elsewhere.
    fn read_errors(&self, set: &RuleSet) -> Result<Option<Harm>> {
        let mut errors = Vec::new();
        File::open(self.jail.hidden.join("errors"))?.take(ERROR_BYTES_MAX).read_to_end(&mut errors)?;
        let is_listed = |name: &str| set.programs().any(|program| program == name);
        Ok(missing_program(&String::from_utf8_lossy(&errors), &self.jail.hidden, is_listed).map(Harm::Ran))
    }

    /// Makes all files as they were and returns the harm that was done to them, or by the network.
    fn clean(&mut self, run: Run<'_>) -> Result<Option<Harm>> {
        let changed = self.jail.places.changed();
        let mut harm = self.jail.places.harmed(&changed, run.set.has_git()).map(|path| Harm::Wrote(path.display().to_string()));
        if !changed.is_empty() {
            self.jail.places.restore(&changed).context("the files of the jail cannot be restored")?;
        }
        self.jail.places.empty_out()?;
        let connections = connections();
        if connections != self.connections {
            self.connections = connections;
            harm = harm.or(Some(Harm::Connected));
        }
        Ok(harm)
    }
}

/// Returns how many connections were opened and datagrams sent in this network.
fn connections() -> u64 {
    let text = fs::read_to_string("/proc/net/snmp").unwrap_or_default();
    let count = |protocol: &str, name: &str| -> u64 {
        let mut lines = text.lines().filter(|line| line.split(' ').next() == Some(protocol));
        let (Some(names), Some(values)) = (lines.next(), lines.next()) else { return 0 };
        let place = names.split(' ').position(|word| word == name);
        place.and_then(|place| values.split(' ').nth(place)?.parse().ok()).unwrap_or(0)
    };
    count("Tcp:", "ActiveOpens") + count("Udp:", "OutDatagrams")
}

/// Kills everything but the worker when the time of a line is over.
#[derive(Debug, Default)]
struct Watch {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    deadline: Option<Instant>,
    killed: bool,
}

impl Watch {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn start(&self, time: Duration) {
        *self.state() = State { deadline: Some(Instant::now() + time), killed: false };
    }

    /// Takes an earlier end.
    fn shorten(&self, time: Duration) {
        let end = Instant::now() + time;
        let mut state = self.state();
        state.deadline = state.deadline.map(|deadline| deadline.min(end));
    }

    fn stop(&self) {
        self.state().deadline = None;
    }

    fn has_killed(&self) -> bool {
        self.state().killed
    }

    /// Watches for ever. It looks every few milliseconds, which costs less than being woken twice a line.
    fn keep(&self) {
        loop {
            std::thread::sleep(INTERVAL);
            // The lock is held while it kills: the next line must not begin meanwhile.
            let mut state = self.state();
            if state.deadline.is_some_and(|deadline| deadline <= Instant::now()) {
                state.killed = true;
                // All processes of this namespace but the first, which this one is.
                let _ = kill(Pid::from_raw(-1), Signal::SIGKILL);
            }
        }
    }
}
