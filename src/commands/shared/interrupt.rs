//! The signals that end a process. A command that is interrupted keeps what it has done, and says in its exit code that it was interrupted.

use std::future::poll_fn;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::Poll;

use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};

use tollgate_recordings::Input;
use tollgate_worker::Stop;
use tollgate_worker::health::Health;
use tollgate_worker::logging::finish_logging;
use tollgate_worker::threads::MustRun;

use super::process;

/// The signals that end any process, each with the exit code that shells report of a process that the signal ended.
const ENDING: [(SignalKind, u8); 2] = [(SignalKind::interrupt(), 130), (SignalKind::terminate(), 143)];
/// The signal that comes once a terminal is closed.
const HANG_UP: (SignalKind, u8) = (SignalKind::hangup(), 129);

/// The signals of this process, in the order in which they come.
pub(crate) struct Signals(Vec<(Signal, u8)>);

impl Signals {
    /// Catches SIGINT and SIGTERM from now on, on the current runtime.
    ///
    /// # Errors
    /// The system does not allow it.
    pub(crate) fn catch() -> std::io::Result<Self> {
        Self::of(ENDING)
    }

    /// Catches SIGHUP too.
    ///
    /// # Errors
    /// The system does not allow it.
    pub(crate) fn catch_with_hang_up() -> std::io::Result<Self> {
        Self::of(ENDING.into_iter().chain([HANG_UP]))
    }

    fn of(kinds: impl IntoIterator<Item = (SignalKind, u8)>) -> std::io::Result<Self> {
        kinds.into_iter().map(|(kind, code)| Ok((signal(kind)?, code))).collect::<Result<_, _>>().map(Self)
    }

    /// Waits for the next signal, and returns the exit code that shells report of a process that the signal ended.
    pub(crate) async fn next(&mut self) -> u8 {
        poll_fn(|context| {
            let code = self.0.iter_mut().find_map(|(signal, code)| signal.poll_recv(context).is_ready().then_some(*code));
            code.map_or(Poll::Pending, Poll::Ready)
        })
        .await
    }

    /// Gives the sign to stop at the first signal, once `note` has its exit code. The second signal ends the process at once, with the exit
    /// code of that signal.
    async fn stop(mut self, stop: Stop, note: impl FnOnce(u8)) {
        note(self.next().await);
        stop.give();
        let code = self.next().await;
        finish_logging();
        std::process::exit(code.into());
    }
}

/// Has the first SIGINT, SIGTERM or SIGHUP give the sign to stop, and the second signal end the process at once.
///
/// # Errors
/// The system does not allow it.
pub(crate) fn watch_signals(health: &Health, stop: &Stop) -> std::io::Result<()> {
    let (signals, given) = (Signals::catch_with_hang_up()?, stop.clone());
    MustRun::new("signals", health.threads(), stop).spawn_task(async {
        fail::fail_point!("signals");
        signals.stop(given, |_| tracing::info!("stopping: draining and committing; a second signal ends the process at once")).await;
    });
    Ok(())
}

/// The signals that stop a command.
///
/// Until a command watches them, a signal ends the process as it ends any other process. A command therefore watches behind its questions and
/// before its work: no file that cannot be opened yet and no broker that does not answer holds a signal back. A command that `nohup` started
/// goes on behind a hang-up.
pub(crate) struct Interrupt {
    pub(crate) stop: Stop,
    /// The exit code of the first signal; 0 before it.
    code: Arc<AtomicU8>,
    /// It listens for as long as it lives.
    _runtime: Runtime,
}

impl Interrupt {
    /// Watches signals: the first SIGINT or SIGTERM gives the sign to stop, the second ends the process at once.
    ///
    /// # Errors
    /// The system does not allow it.
    pub(crate) fn watch() -> anyhow::Result<Self> {
        let (runtime, stop, code) = (process::runtime()?, Stop::default(), Arc::new(AtomicU8::new(0)));
        let (signals, first) = (runtime.block_on(async { Signals::catch() })?, Arc::clone(&code));
        runtime.spawn(signals.stop(stop.clone(), move |code| first.store(code, Ordering::Relaxed)));
        Ok(Self { stop, code, _runtime: runtime })
    }

    /// Returns lines that end as soon as a signal comes.
    ///
    /// # Errors
    /// The system gives no thread.
    pub(crate) fn input(&self, input: Input) -> anyhow::Result<Input> {
        super::interrupt_input::until(self.stop.clone(), input)
    }

    /// Returns the exit code of the signal that came first, and says that the result is of a part; `None` if no signal came.
    pub(crate) fn ended_early(&self) -> Option<ExitCode> {
        let code = self.exit_code()?;
        say!("tollgate: interrupted; the result is of what was read until then");
        Some(code)
    }

    /// Returns the exit code of the signal that came first; `None` if no signal came.
    pub(crate) fn exit_code(&self) -> Option<ExitCode> {
        Some(self.code.load(Ordering::Relaxed)).filter(|code| *code > 0).map(ExitCode::from)
    }
}
