//! Commits beside the member's loop.
//!
//! A commit that is waited for would hold decisions up for a round trip, or for as long as the group's coordinator is away; one that is
//! not waited for never says whether it failed (rdkafka 0.39 reports no outcome of asynchronous commits). So a thread of its own waits.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer};

use super::MemberContext;

/// Whether a commit is under way. A revocation waits for it, or an older offset could be committed behind its newer one.
#[derive(Debug, Default)]
pub struct CommitGate {
    is_busy: Mutex<bool>,
    changed: Condvar,
}

impl CommitGate {
    fn set(&self, is_busy: bool) {
        *self.is_busy.lock().unwrap_or_else(PoisonError::into_inner) = is_busy;
        self.changed.notify_all();
    }

    fn is_busy(&self) -> bool {
        *self.is_busy.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until no commit is under way; whether that came true in time.
    pub fn wait(&self, timeout: Duration) -> bool {
        let guard = self.is_busy.lock().unwrap_or_else(PoisonError::into_inner);
        let (guard, _) = self.changed.wait_timeout_while(guard, timeout, |is_busy| *is_busy).unwrap_or_else(PoisonError::into_inner);
        !*guard
    }
}

/// The thread that commits for one member.
#[derive(Debug)]
pub struct Committer {
    requests: Sender<()>,
    thread: JoinHandle<()>,
}

impl Committer {
    /// Starts the thread.
    ///
    /// # Errors
    /// The system gives no more threads.
    pub fn start(consumer: Arc<BaseConsumer<MemberContext>>) -> std::io::Result<Self> {
        let (requests, wanted) = channel();
        let name = format!("committer-{}", consumer.context().member);
        let thread = std::thread::Builder::new().name(name).spawn(move || commit_when_asked(&consumer, &wanted))?;
        Ok(Self { requests, thread })
    }

    /// Has everything committed that may be, unless a commit is under way or nothing has moved.
    pub fn commit(&self, context: &MemberContext) {
        if !context.commits.is_busy() && context.committable().is_some() {
            context.commits.set(true);
            // The thread goes away only with this sender.
            let _sent = self.requests.send(());
        }
    }

    /// Commits for the last time within `timeout`; whether nothing is left to commit. A thread that hangs is left behind.
    pub fn finish(self, context: &MemberContext, timeout: Duration) -> bool {
        // What is under way may not cover everything; what comes after it does.
        let is_idle = context.commits.wait(timeout);
        self.commit(context);
        if !is_idle || !context.commits.wait(timeout) {
            return false;
        }
        drop(self.requests);
        let _panicked = self.thread.join();
        context.committable().is_none()
    }
}

fn commit_when_asked(consumer: &BaseConsumer<MemberContext>, wanted: &Receiver<()>) {
    let context = consumer.context();
    while wanted.recv().is_ok() {
        if let Some(offsets) = context.committable() {
            let result = consumer.commit(&offsets, CommitMode::Sync);
            context.note_commit(&result, &offsets);
        }
        context.commits.set(false);
    }
}
