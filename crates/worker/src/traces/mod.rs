//! Traces: a span for each verdict that is sampled, sent to an OpenTelemetry collector.
//!
//! ```text
//! member: record ─▶ sampled? ─▶ span: consume, ask, answer, decide, publish ─▶ queue ─▶ exporter thread ─▶ collector
//! ```
//!
//! | module | what it does |
//! |---|---|
//! | `context` | reads `traceparent` and `tracestate` of a record |
//! | `sampler` | which records get a span |
//! | `span` | a span, and what of a verdict it holds |
//! | `tracer` | the spans of one member's records that are on their way |
//! | `queue` | finished spans on their way to the exporter; bounded, and it never waits |
//! | `exporter`, [`message`] | the thread that sends them; the messages of OTLP |
//!
//! No verdict waits for any of it: what the queue or the collector does not take is dropped and counted. The core knows nothing of traces,
//! and verdicts are the same with and without them.

mod context;
mod exporter;
pub mod message;
mod queue;
mod sampler;
mod span;
mod tracer;

use std::sync::Arc;

use crate::metrics::Metrics;
use crate::stop::Stop;
use crate::threads::Threads;
use tollgate_config::settings::{KafkaSettings, TraceSettings};

use queue::Queue;
use sampler::Sampler;
pub use tracer::Tracer;

/// Traces cannot be sent with these settings. The text holds no header's value and nothing of the URL.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TracesError {
    /// A key is wrong.
    #[error("traces.{key}: {problem}")]
    Setting {
        /// The key, below `traces`.
        key: String,
        /// What was found there, and what to write instead.
        problem: String,
    },
    /// The system gives no more threads or file handles.
    #[error("no thread to send traces: {0}")]
    Thread(String),
}

/// What all members of a process need to make spans. Clones share the queue.
#[derive(Debug, Clone)]
pub struct Traces {
    queue: Arc<Queue>,
    sampler: Sampler,
}

impl Traces {
    /// Returns traces with a queue that nobody empties yet.
    #[must_use]
    pub fn new(settings: &TraceSettings, metrics: &Metrics) -> Self {
        let sampler = Sampler::new(settings.sample_one_in, settings.follow_parent);
        Self { queue: Arc::new(Queue::new(metrics)), sampler }
    }

    /// Returns what a member makes its spans with.
    #[must_use]
    pub fn tracer(&self) -> Tracer {
        Tracer::new(self.clone())
    }
}

/// The export of a process: the exporter's thread, and what members make spans with.
#[derive(Debug, Default)]
pub struct Export {
    traces: Option<Traces>,
    running: Option<exporter::Running>,
}

impl Export {
    /// Starts the exporter, if a collector is configured.
    ///
    /// # Errors
    /// [`TracesError`] if the settings name no collector that spans can be sent to.
    pub fn start(
        settings: &TraceSettings,
        kafka: &KafkaSettings,
        metrics: &Metrics,
        (threads, stop): (&Arc<Threads>, &Stop),
    ) -> Result<Self, TracesError> {
        let Some(endpoint) = &settings.endpoint else { return Ok(Self::default()) };
        let traces = Traces::new(settings, metrics);
        let about = message::About::new(settings, kafka);
        let running = exporter::start(settings, endpoint, about, Arc::clone(&traces.queue), metrics, (threads, stop))?;
        Ok(Self { traces: Some(traces), running: Some(running) })
    }

    /// Returns what members make spans with; `None` if traces are off.
    #[must_use]
    pub fn traces(&self) -> Option<&Traces> {
        self.traces.as_ref()
    }

    /// Sends what is in the queue, and ends the exporter. It waits for two seconds at most. Call it when the members have ended.
    pub fn finish(self) {
        if let Some(running) = self.running {
            running.finish();
        }
    }
}

/// Checks that spans can be sent with these settings. It connects nothing.
///
/// # Errors
/// [`TracesError`] names the key and the fix.
pub fn check(settings: &TraceSettings) -> Result<(), TracesError> {
    settings.endpoint.as_ref().map_or(Ok(()), |endpoint| exporter::check(settings, endpoint))
}
