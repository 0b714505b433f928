//! Secrets that change while a worker runs: once the brokers accept the new ones, every client is made anew, one part after the other.
//!
//! librdkafka's clients read their secrets when they are made. So a part of the worker (the feed of controls, a member with its producers
//! and checkpoint writers) drains, stops and begins again. The process goes on, and so do the other members.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::health::Health;
use crate::kafka::{ChangedSecrets, SecretFiles};
use crate::metrics::Metrics;
use crate::stop::Stop;
use crate::threads::MustRun;
use tollgate_config::settings::KafkaSettings;

/// How often the files are read.
const POLL: Duration = Duration::from_secs(1);
/// How long to wait before secrets that the brokers refused are tried again.
const RETRY_PAUSE: Duration = Duration::from_secs(5);
/// How often to check how far a part has come.
const PART_POLL: Duration = Duration::from_millis(20);
/// How long a part may take to be at work again before the next one begins. If the secrets before are revoked already, the parts that have
/// them still are cut off, and the group waits for them: so it is short.
const PART_MAX: Duration = Duration::from_secs(10);
/// How long files may be unreadable before it is a problem. Whoever replaces them needs less.
const UNREADABLE_MAX: Duration = Duration::from_secs(10);
/// The part of the health report that tells of secrets.
const SECRETS: &str = "secrets";
/// The part of the health report that tells of their files.
const FILES: &str = "secret files";

/// The parts that have clients, in the order in which they start over. Clones share them, and parts may be added while the worker starts.
#[derive(Debug, Clone, Default)]
pub struct RenewedParts(Arc<Mutex<Listed>>);

#[derive(Debug, Default)]
struct Listed {
    parts: Vec<Stop>,
    /// How often all parts were told to start over.
    renewals: u64,
}

impl RenewedParts {
    fn listed(&self) -> MutexGuard<'_, Listed> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds what `start` returns: what has started, and its parts. Those start over at once if secrets have changed while it started, since
    /// then their clients may have been made before.
    ///
    /// # Errors
    /// Returns that of `start`.
    pub fn add<T, E>(&self, start: impl FnOnce() -> Result<T, E>, parts_of: impl FnOnce(&T) -> Vec<Stop>) -> Result<T, E> {
        let renewals = self.listed().renewals;
        let started = start()?;
        let parts = parts_of(&started);
        let mut listed = self.listed();
        if listed.renewals != renewals {
            parts.iter().for_each(Stop::start_over);
        }
        listed.parts.extend(parts);
        Ok(started)
    }

    /// Counts a renewal, and returns the parts that are to start over with it.
    fn renew(&self) -> Vec<Stop> {
        let mut listed = self.listed();
        listed.renewals += 1;
        listed.parts.clone()
    }
}

/// What watches the secrets of a worker.
#[derive(Debug)]
pub struct Renewal {
    /// Brokers and their properties.
    pub kafka: Arc<KafkaSettings>,
    /// The metrics to count in.
    pub metrics: Metrics,
    /// The health report that shows secrets which the brokers refuse.
    pub health: Arc<Health>,
    /// The sign to stop.
    pub stop: Stop,
    /// The parts that have clients.
    pub parts: RenewedParts,
}

impl Renewal {
    /// Starts to watch the files, as they were when `files` was made.
    ///
    /// # Errors
    /// The system gives no more threads.
    pub fn start(self, files: SecretFiles) -> std::io::Result<JoinHandle<()>> {
        let thread = MustRun::new("secrets", self.health.threads(), &self.stop);
        thread.spawn(move || self.watch(files))
    }

    fn watch(&self, mut files: SecretFiles) {
        let mut refused: Option<(ChangedSecrets, Instant)> = None;
        let mut unreadable_since = None;
        while !self.stop.wait(POLL) {
            let changed = match files.changed() {
                Ok(changed) => changed,
                // What was last known of the secrets still holds.
                Err(fault) => {
                    self.report_unreadable(*unreadable_since.get_or_insert_with(Instant::now), &fault);
                    continue;
                }
            };
            unreadable_since = None;
            self.health.set_problem(FILES, None);
            let Some(changed) = changed else {
                // They may have been changed back.
                refused = None;
                self.health.set_problem(SECRETS, None);
                continue;
            };
            let is_new = refused.as_ref().is_none_or(|(before, _)| *before != changed);
            if !is_new && refused.as_ref().is_some_and(|(_, at)| at.elapsed() < RETRY_PAUSE) {
                continue;
            }
            match files.try_out(&changed, &|| !self.stop.is_given()) {
                Ok(()) => {
                    refused = None;
                    self.health.set_problem(SECRETS, None);
                    self.metrics.secret_changes.with_label_values(&["taken_over"]).inc();
                    let properties = changed.properties.join(", ");
                    files.take_over(changed);
                    tracing::info!(
                        properties,
                        "secrets of the brokers' clients have changed; every client is made anew, one part after the other"
                    );
                    self.start_over();
                }
                Err(reason) => {
                    let problem = format!("the changed secrets are not taken over, and those before stay in use: {reason}");
                    if is_new {
                        self.metrics.secret_changes.with_label_values(&["refused"]).inc();
                    }
                    if self.health.set_problem(SECRETS, Some(problem.clone())) {
                        tracing::error!(properties = changed.properties.join(", "), "{problem}");
                    }
                    refused = Some((changed, Instant::now()));
                }
            }
        }
    }

    fn report_unreadable(&self, since: Instant, fault: &str) {
        if since.elapsed() < UNREADABLE_MAX {
            return;
        }
        let problem = format!("files of secrets cannot be read, and what was last read of them stays in use: {fault}");
        if self.health.set_problem(FILES, Some(problem.clone())) {
            tracing::error!("{problem}");
        }
    }

    /// Has every part start over, each once the one before is at work again. Where not all are at work to begin with, none is waited for.
    fn start_over(&self) {
        let (started, was_ready) = (Instant::now(), self.health.is_ready());
        for part in self.parts.renew() {
            part.start_over();
            let deadline = Instant::now() + PART_MAX;
            let is_under_way = || part.is_to_start_over() || (was_ready && !self.health.is_ready());
            while is_under_way() && Instant::now() < deadline {
                if self.stop.is_given() {
                    return;
                }
                std::thread::sleep(PART_POLL);
            }
        }
        tracing::info!(seconds = started.elapsed().as_secs_f64(), "every client has the changed secrets");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_that_start_while_secrets_change_start_over() {
        let (parts, process) = (RenewedParts::default(), Stop::default());
        let add = |is_renewed_meanwhile: bool| {
            let start = || {
                if is_renewed_meanwhile {
                    parts.renew();
                }
                Ok::<_, ()>(process.part())
            };
            parts.add(start, |part| vec![part.clone()]).unwrap()
        };
        let (before, meanwhile) = (add(false), add(true));
        assert!(!before.is_to_start_over() && meanwhile.is_to_start_over());
        assert_eq!(parts.renew().len(), 2);
    }
}
