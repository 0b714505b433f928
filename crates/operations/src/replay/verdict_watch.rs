//! The thread that reads the decisions topic beside the sender.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::anyhow;

use tollgate_config::settings::KafkaSettings;
use tollgate_recordings::replay::Awaiting;

use crate::{Start, VerdictReader};

const POLL: Duration = Duration::from_millis(50);

/// The verdicts that come, from the end of the topic on as it was before the first record was sent.
pub(super) struct VerdictWatch {
    awaiting: Arc<Mutex<Awaiting>>,
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<anyhow::Result<()>>,
}

impl VerdictWatch {
    /// Begins to read.
    ///
    /// # Errors
    /// The decisions topic is not there, or the brokers do not answer.
    pub(super) fn begin(kafka: &KafkaSettings) -> anyhow::Result<Self> {
        let reader = VerdictReader::new(kafka, Start::End)?;
        let (awaiting, is_over) = (Arc::new(Mutex::new(Awaiting::new()?)), Arc::new(AtomicBool::new(false)));
        let (into, ends) = (Arc::clone(&awaiting), Arc::clone(&is_over));
        let thread = std::thread::Builder::new().name("verdicts".to_owned()).spawn(move || {
            while !ends.load(Ordering::Relaxed) {
                if let Some(verdict) = reader.next(POLL)? {
                    let came = Instant::now();
                    lock(&into).receive(&verdict.value, came);
                }
            }
            Ok(())
        })?;
        Ok(Self { awaiting, is_over, thread })
    }

    /// Returns what is known of the verdicts.
    pub(super) fn awaiting(&self) -> MutexGuard<'_, Awaiting> {
        lock(&self.awaiting)
    }

    /// Returns whether the topic can no longer be read.
    pub(super) fn has_ended(&self) -> bool {
        self.thread.is_finished()
    }

    /// Ends the reading.
    ///
    /// # Errors
    /// The topic could not be read.
    pub(super) fn end(self) -> anyhow::Result<Arc<Mutex<Awaiting>>> {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.join().map_err(|_| anyhow!("the thread that reads the decisions has ended"))??;
        Ok(self.awaiting)
    }
}

/// Returns the awaited verdicts under their lock.
pub(super) fn lock(awaiting: &Mutex<Awaiting>) -> MutexGuard<'_, Awaiting> {
    awaiting.lock().unwrap_or_else(PoisonError::into_inner)
}
