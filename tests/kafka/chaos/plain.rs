//! The plain group, with which the gate is compared: the same client settings on the same events, but a member only reads and acknowledges.
//!
//! A member is a process of its own, so that it can be killed with a worker: this test binary, started with the variables below.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer as _, DefaultConsumerContext};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};

use tollgate_testkit::Record;
use tollgate_worker::Stop;
use tollgate_worker::kafka::consumer_config;

use super::clock::now_us;
use super::load::number_of;

const CONFIG: &str = "TOLLGATE_CHAOS_PLAIN_CONFIG";
const GROUP: &str = "TOLLGATE_CHAOS_PLAIN_GROUP";
const INSTANCE: &str = "TOLLGATE_CHAOS_PLAIN_INSTANCE";
const NOTES: &str = "TOLLGATE_CHAOS_PLAIN_NOTES";

/// How often offsets are committed.
const COMMIT_INTERVAL: Duration = Duration::from_secs(1);
const POLL: Duration = Duration::from_millis(50);
const END_TIME_MAX: Duration = Duration::from_secs(240);

/// A member of the plain group. Dropping it kills it.
pub(super) struct Plain {
    child: Child,
}

impl Plain {
    /// Starts a member that notes in `notes` when it first reads each event. `instance` is its static membership; empty for none.
    pub(super) fn spawn(config: &Path, group: &str, instance: &str, notes: &Path) -> Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.env(CONFIG, config).env(GROUP, group).env(INSTANCE, instance).env(NOTES, notes);
        let log = File::create(notes.with_extension("log"))?;
        // The member ends when the pipe does, should this process be killed.
        Ok(Self { child: command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(log).spawn()? })
    }

    pub(super) fn signal(&self, name: &str) -> Result<()> {
        let sent = Command::new("kill").arg(format!("-{name}")).arg(self.child.id().to_string()).status()?;
        ensure!(sent.success(), "kill -{name} failed");
        Ok(())
    }

    /// Returns whether it has ended.
    pub(super) fn has_ended(&mut self) -> Result<bool> {
        Ok(self.child.try_wait()?.is_some())
    }

    /// Waits until it has ended.
    pub(super) fn wait(&mut self) -> Result<()> {
        let deadline = Instant::now() + END_TIME_MAX;
        while self.child.try_wait()?.is_none() {
            ensure!(Instant::now() < deadline, "a plain member does not end");
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }
}

impl Drop for Plain {
    fn drop(&mut self) {
        let _ended = self.child.kill();
        let _ended = self.child.wait();
    }
}

/// Reads when events were first read, as all members have noted it, into microseconds by number; 0 for those that were never read.
pub(super) fn first_reads(notes: &[PathBuf], events: usize) -> Result<Vec<u64>> {
    let mut first = vec![0_u64; events];
    for path in notes {
        let text = std::fs::read_to_string(path)?;
        // A line that was being written when its writer was killed is not whole.
        let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
        for line in whole.lines() {
            let (number, us) = line.split_once(' ').context("a note has two parts")?;
            let (number, us): (usize, u64) = (number.parse()?, us.parse()?);
            if let Some(first) = first.get_mut(number)
                && (*first == 0 || us < *first)
            {
                *first = us;
            }
        }
    }
    Ok(first)
}

/// Runs as a member if this process was started as one.
pub(crate) fn run_if_asked() -> Option<ExitCode> {
    let config = std::env::var_os(CONFIG)?;
    match member(Path::new(&config)) {
        Ok(()) => Some(ExitCode::SUCCESS),
        Err(error) => {
            eprintln!("{error:?}");
            Some(ExitCode::FAILURE)
        }
    }
}

fn member(config: &Path) -> Result<()> {
    let settings = tollgate_config::load(Some(config), [])?;
    let (group, instance) = (std::env::var(GROUP)?, std::env::var(INSTANCE)?);
    let instance = Some(instance.as_str()).filter(|instance| !instance.is_empty());
    let mut notes = File::options().create(true).append(true).open(std::env::var(NOTES)?)?;
    let stop = signs()?;
    let consumer: BaseConsumer<DefaultConsumerContext> = consumer_config(&settings.kafka, &group, instance).create()?;
    consumer.subscribe(&[&settings.kafka.topics.events])?;
    let mut due = Instant::now() + COMMIT_INTERVAL;
    while !stop.is_given() {
        match consumer.poll(POLL) {
            Some(Ok(message)) => {
                let number = number_of(&Record::from(&message)).context("an event without a number")?;
                // Noted at once: a commit must not come before the note.
                notes.write_all(format!("{number} {}\n", now_us()).as_bytes())?;
                // The partition may have been revoked meanwhile; whoever has it now acknowledges.
                let _stored = consumer.store_offset_from_message(&message);
            }
            Some(Err(error)) => eprintln!("{} {error}", now_us()),
            None => {}
        }
        // Also where nothing was read since: nobody hears of a commit that a coordinator has lost.
        if Instant::now() >= due {
            due = Instant::now() + COMMIT_INTERVAL;
            commit(&consumer, CommitMode::Async)?;
        }
    }
    commit(&consumer, CommitMode::Sync)
}

/// Commits what was read. A rebalance or brokers that are away are no reason to end: the next commit covers it.
fn commit(consumer: &BaseConsumer, mode: CommitMode) -> Result<()> {
    match consumer.commit_consumer_state(mode) {
        Ok(()) | Err(KafkaError::ConsumerCommit(RDKafkaErrorCode::NoOffset)) => Ok(()),
        Err(error) => {
            eprintln!("{} commit: {error}", now_us());
            Ok(())
        }
    }
}

/// Returns the sign to stop, which SIGTERM and the end of standard input give.
fn signs() -> Result<Stop> {
    let stop = Stop::default();
    let (terminated, orphaned) = (stop.clone(), stop.clone());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut signal = {
        let _inside = runtime.enter();
        tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?
    };
    std::thread::spawn(move || {
        runtime.block_on(signal.recv());
        terminated.give();
    });
    std::thread::spawn(move || {
        let _ended = std::io::stdin().read(&mut [0]);
        orphaned.give();
    });
    Ok(stop)
}
