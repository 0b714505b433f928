//! The log: lines for people and machines on stderr.
//!
//! A thread that logs never waits for stderr and never fails because of it. Lines go into a bounded queue, and a thread of their own
//! writes them. While nobody reads stderr the queue fills up, and further lines are dropped and counted. If stderr is closed, lines that
//! cannot be written are counted. Both counts are metrics.

mod filter;
mod once_per_minute;

pub use filter::read_filter;
pub use once_per_minute::OncePerMinute;

use std::io::{IsTerminal, Write};
use std::panic::{PanicHookInfo, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tracing_appender::non_blocking::{ErrorCounter, NonBlockingBuilder, WorkerGuard};

use tollgate_config::settings::{LogFormat, LogSettings};

/// The most lines that wait to be written. A line has a few hundred bytes.
const QUEUED_LINES_MAX: usize = 8_192;

/// How long a thread that panics waits for its line to be written: the panic may be about to abort the process.
const PANIC_PAUSE: Duration = Duration::from_millis(50);

/// What writes the lines that are queued. Dropping it writes them, for about a second at most. A process has one log.
static WRITER: Mutex<Option<WorkerGuard>> = Mutex::new(None);

/// Counts the lines that found the queue full.
static DROPPED: Mutex<Option<ErrorCounter>> = Mutex::new(None);

/// Lines that stderr refused.
static REFUSED: AtomicU64 = AtomicU64::new(0);

/// Threads that panicked.
static PANICS: AtomicU64 = AtomicU64::new(0);

/// What went wrong with the log, and what the log's hook has seen, since the process began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogCounts {
    /// Lines that were dropped because stderr did not take them in time, or could not be written because it is closed.
    pub lost_lines: u64,
    /// Panics of any thread.
    pub panics: u64,
}

/// Returns what was counted so far.
#[must_use]
pub fn log_counts() -> LogCounts {
    let dropped = DROPPED.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map_or(0, |dropped| dropped.dropped_lines() as u64);
    LogCounts { lost_lines: dropped + REFUSED.load(Ordering::Relaxed), panics: PANICS.load(Ordering::Relaxed) }
}

/// Starts logging to stderr.
///
/// # Errors
/// `log.filter` is no filter, or logging was started before.
pub fn start_logging(log: &LogSettings) -> anyhow::Result<()> {
    let filter = read_filter(&log.filter)?;
    let is_terminal = std::io::stderr().is_terminal();
    let (lines, guard) = NonBlockingBuilder::default().buffered_lines_limit(QUEUED_LINES_MAX).lossy(true).thread_name("log").finish(Stderr);
    *DROPPED.lock().unwrap_or_else(PoisonError::into_inner) = Some(lines.error_counter());
    // A subscriber that reported its own errors would write them to stderr, and panic if that is closed.
    let builder = tracing_subscriber::fmt().with_env_filter(filter).log_internal_errors(false).with_writer(lines);
    let started = match log.format {
        LogFormat::Json => builder.json().flatten_event(true).with_span_list(false).try_init(),
        LogFormat::Text => builder.with_ansi(is_terminal).try_init(),
    };
    started.map_err(|error| anyhow::anyhow!("logging cannot be started: {error}"))?;
    *WRITER.lock().unwrap_or_else(PoisonError::into_inner) = Some(guard);
    std::panic::set_hook(Box::new(|panic| {
        PANICS.fetch_add(1, Ordering::Relaxed);
        log_panic(panic);
        std::thread::sleep(PANIC_PAUSE);
    }));
    Ok(())
}

/// Writes the lines that are queued, for about a second at most, and ends the log. Call it before the process ends.
pub fn finish_logging() {
    drop(WRITER.lock().unwrap_or_else(PoisonError::into_inner).take());
}

/// Logs a panic by its thread and place. Its message is shown only if it was written in the source, for one that was put together at run
/// time may hold parts of an event.
fn log_panic(panic: &PanicHookInfo<'_>) {
    let thread = std::thread::current();
    let (name, message) = (thread.name().unwrap_or("unnamed"), panic.payload().downcast_ref::<&str>().copied());
    let place = panic.location().map(ToString::to_string);
    tracing::error!(thread = name, place, message, "a thread panicked");
}

/// stderr, or nothing where it cannot be written to.
struct Stderr;

impl Write for Stderr {
    fn write(&mut self, line: &[u8]) -> std::io::Result<usize> {
        let written = catch_unwind(|| {
            fail::fail_point!("log");
            std::io::stderr().write_all(line)
        });
        // A panic must not end the only thread that writes.
        if !matches!(written, Ok(Ok(()))) {
            REFUSED.fetch_add(1, Ordering::Relaxed);
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
