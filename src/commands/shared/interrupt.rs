//! The signals that end a command before its time: it keeps what it has done, and says in its exit code that it was interrupted.

use std::future::poll_fn;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::Poll;

use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};

use tollgate_recordings::Input;
use tollgate_worker::Stop;

use super::process;

/// The exit codes of a process that a signal ended, as shells report them.
const INTERRUPTED: u8 = 130;
const TERMINATED: u8 = 143;

/// Catches the signals by which hosts, shells and supervisors end a command. Returns the wait for the first of them.
///
/// # Errors
/// The system does not allow it.
pub(crate) fn ending_signal(runtime: &Runtime) -> std::io::Result<impl Future<Output = ()> + use<>> {
    let _entered = runtime.enter();
    let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
    let mut signals = kinds.into_iter().map(signal).collect::<Result<Vec<_>, _>>()?;
    Ok(poll_fn(move |context| {
        let has_come = signals.iter_mut().any(|signal| signal.poll_recv(context).is_ready());
        if has_come { Poll::Ready(()) } else { Poll::Pending }
    }))
}

/// The signals that stop a command.
///
/// Until a command watches them, a signal ends the process as it ends any other process. A command therefore watches behind its questions and
/// before its work: no file that cannot be opened yet and no broker that does not answer holds a signal back.
pub(crate) struct Interrupt {
    pub(crate) stop: Stop,
    /// The exit code of the first of them.
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
        let runtime = process::runtime()?;
        let _entered = runtime.enter();
        let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
        let (stop, code) = (Stop::default(), Arc::new(AtomicU8::new(0)));
        let (given, first) = (stop.clone(), Arc::clone(&code));
        runtime.spawn(async move {
            for is_first in [true, false] {
                let code = tokio::select! {
                    _ = interrupt.recv() => INTERRUPTED,
                    _ = terminate.recv() => TERMINATED,
                };
                if !is_first {
                    std::process::exit(i32::from(code));
                }
                first.store(code, Ordering::Relaxed);
                given.give();
            }
        });
        drop(_entered);
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

    /// Returns the exit code of the signal that came first; `None` if none came.
    pub(crate) fn exit_code(&self) -> Option<ExitCode> {
        Some(self.code.load(Ordering::Relaxed)).filter(|code| *code > 0).map(ExitCode::from)
    }
}
