//! Threads and tasks that have to run for as long as their process does, and what is known of those that do not.
//!
//! A group member, a checkpoint writer, a reader of signals for rules that are new, and the feed of controls are started over when they
//! panic. The other threads are not: when one of them ends, the process stops, drains and exits with [`THREAD_ENDED`]. Either way `/livez`
//! names the thread until it runs again.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use tokio::task::JoinHandle as TaskHandle;

use crate::stop::Stop;

/// The exit code of a process that stopped because a thread ended that has to run. It is `EX_SOFTWARE` of sysexits.
pub const THREAD_ENDED: u8 = 70;

/// Why a thread does not run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// It panicked and starts over.
    Panicked,
    /// It ended and does not start over.
    Ended,
    /// It stopped as it was asked to, and verdicts of its own are not acknowledged.
    Undrained,
}

/// The threads of a process that do not run although they have to, by name.
#[derive(Debug, Default)]
pub struct Threads(Mutex<BTreeMap<String, Fault>>);

impl Threads {
    /// Records that a thread panicked and will be started over.
    pub fn panicked(&self, name: &str) {
        self.faults().insert(name.to_owned(), Fault::Panicked);
    }

    /// Records that a thread runs again, or is not needed any more.
    pub fn recovered(&self, name: &str) {
        self.faults().remove(name);
    }

    /// Returns whether a thread has ended that is not started over.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.faults().values().any(|fault| *fault == Fault::Ended)
    }

    /// Records that a thread stopped before the brokers had acknowledged its verdicts.
    pub fn undrained(&self, name: &str) {
        self.faults().insert(name.to_owned(), Fault::Undrained);
    }

    /// Returns whether a thread stopped before the brokers had acknowledged its verdicts.
    #[must_use]
    pub fn is_undrained(&self) -> bool {
        self.faults().values().any(|fault| *fault == Fault::Undrained)
    }

    /// Returns a sentence for each thread that does not run.
    #[must_use]
    pub fn sentences(&self) -> Vec<String> {
        let says = |fault: &Fault| match fault {
            Fault::Panicked => "panicked and is being started over",
            Fault::Ended => "ended, so the process stops",
            Fault::Undrained => "stopped with verdicts unacknowledged",
        };
        self.faults().iter().map(|(name, fault)| format!("thread {name} {}", says(fault))).collect()
    }

    fn faults(&self) -> MutexGuard<'_, BTreeMap<String, Fault>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A thread or task that has to run: if it returns or panics before the sign to stop, the process stops.
#[derive(Debug)]
pub struct MustRun {
    name: String,
    threads: Arc<Threads>,
    stop: Stop,
    /// The sign that ends the thread or task, where that is another sign than the sign to the process.
    until: Option<Stop>,
}

impl MustRun {
    /// Returns what to start a thread or task with.
    #[must_use]
    pub fn new(name: impl Into<String>, threads: &Arc<Threads>, stop: &Stop) -> Self {
        Self { name: name.into(), threads: Arc::clone(threads), stop: stop.clone(), until: None }
    }

    /// Returns the same for a thread or task that runs on behind the sign to the process, until a sign of its own.
    #[must_use]
    pub fn until(self, stop: &Stop) -> Self {
        Self { until: Some(stop.clone()), ..self }
    }

    /// Starts the thread.
    ///
    /// # Errors
    /// The system gives no more threads.
    pub fn spawn(self, run: impl FnOnce() + Send + 'static) -> std::io::Result<JoinHandle<()>> {
        std::thread::Builder::new().name(self.name.clone()).spawn(move || {
            let _running = Running(self);
            run();
        })
    }

    /// Starts the task, on the current runtime. Give the sign to stop before the runtime ends, which drops the task.
    pub fn spawn_task(self, run: impl Future<Output = ()> + Send + 'static) -> TaskHandle<()> {
        tokio::spawn(async move {
            let _running = Running(self);
            run.await;
        })
    }
}

/// Held by the thread or task while it runs.
struct Running(MustRun);

impl Drop for Running {
    fn drop(&mut self) {
        let MustRun { name, threads, stop, until } = &self.0;
        if !until.as_ref().unwrap_or(stop).is_given() {
            threads.faults().insert(name.clone(), Fault::Ended);
            stop.give();
            tracing::error!(thread = name, exit_code = THREAD_ENDED, "a thread ended that has to run; the process drains and ends");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_panicked_is_named_until_it_runs_again() {
        let threads = Threads::default();
        threads.panicked("member-1");
        assert_eq!(threads.sentences(), ["thread member-1 panicked and is being started over"]);
        assert!(!threads.has_ended());
        threads.recovered("member-1");
        assert!(threads.sentences().is_empty());
    }

    #[test]
    fn a_thread_that_returns_or_panics_too_early_stops_the_process() {
        for panics in [false, true] {
            let (threads, stop) = (Arc::new(Threads::default()), Stop::default());
            let thread = MustRun::new("feed", &threads, &stop).spawn(move || assert!(!panics, "as the test wants it")).unwrap();
            assert_eq!(thread.join().is_err(), panics);
            assert!(stop.is_given() && threads.has_ended());
            assert_eq!(threads.sentences(), ["thread feed ended, so the process stops"]);
        }
    }

    #[test]
    fn a_task_that_panics_stops_the_process() {
        let (threads, stop) = (Arc::new(Threads::default()), Stop::default());
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let guard = MustRun::new("signals", &threads, &stop);
        let outcome = runtime.block_on(async { guard.spawn_task(async { panic!("as the test wants it") }).await });
        assert!(outcome.is_err() && stop.is_given() && threads.has_ended());
    }

    #[test]
    fn a_thread_that_ends_after_the_sign_to_stop_is_no_fault() {
        let (threads, stop) = (Arc::new(Threads::default()), Stop::default());
        stop.give();
        MustRun::new("feed", &threads, &stop).spawn(|| ()).unwrap().join().unwrap();
        assert!(!threads.has_ended() && threads.sentences().is_empty());
    }
}
