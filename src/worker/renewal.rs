//! Secrets that change while a worker runs: once the brokers accept the new ones, every client is made anew, one part after the other.
//!
//! librdkafka's clients read their secrets when they are made. So a part of the worker (the feed of controls, a member with its producers
//! and checkpoint writers) drains, stops and begins again. The process goes on, and so do the other members.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::health::Health;
use crate::kafka::{ChangedSecrets, SecretFiles};
use crate::metrics::Metrics;
use crate::settings::KafkaSettings;
use crate::stop::Stop;
use crate::threads::MustRun;

/// How often the files are read.
const POLL: Duration = Duration::from_secs(1);
/// How long to wait before secrets that the brokers refused are tried again.
const RETRY_PAUSE: Duration = Duration::from_secs(5);
/// How often to check how far a part has come.
const PART_POLL: Duration = Duration::from_millis(20);
/// How long a part may take to be at work again before the next one begins. If the secrets before are revoked already, the parts that have
/// them still are cut off, and the group waits for them: so it is short.
const PART_MAX: Duration = Duration::from_secs(10);
/// The part of the health report that tells of secrets.
const SECRETS: &str = "secrets";

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
    /// The parts that have clients, in the order in which they start over.
    pub parts: Vec<Stop>,
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
        while !self.stop.wait(POLL) {
            let Some(changed) = files.changed() else {
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

    /// Has every part start over, each once the one before is at work again. Where not all are at work to begin with, none is waited for.
    fn start_over(&self) {
        let (started, was_ready) = (Instant::now(), self.health.is_ready());
        for part in &self.parts {
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
