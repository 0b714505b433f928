//! The thread that sends spans to the collector, as OTLP over HTTP. It has a runtime of its own, so that a collector that hangs delays
//! neither policy servers nor probes.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use prost::Message as _;
use tokio::runtime::Runtime;
use tollgate_core::decide::guardrail::{Dialect, HttpSettings};
use tollgate_core::settings::Secret;

use crate::logging::OncePerMinute;
use crate::metrics::Metrics;
use crate::policy_servers::{PostFault, Poster};
use crate::stop::Stop;
use crate::threads::{MustRun, Threads};
use tollgate_config::settings::TraceSettings;

use super::TracesError;
use super::message::{About, Answer};
use super::queue::{Dropped, Queue};
use super::span::Span;

/// The address that errors show as an example.
const EXAMPLE: &str = "http://otel-collector:4318/v1/traces";
/// How often the queue is looked at.
const POLL: Duration = Duration::from_millis(100);
/// How long a span waits for others at most.
const SEND_INTERVAL: Duration = Duration::from_secs(1);
/// The most spans of a request: some 1.5 MB.
const BATCH_MAX: usize = 2_048;
/// The pauses before a request is sent again that the collector may take later.
const PAUSES: [Duration; 2] = [Duration::from_millis(500), Duration::from_secs(2)];
/// How long a process that ends waits for its last spans to be sent.
const FINISH_MAX: Duration = Duration::from_secs(2);
/// How many characters of a collector's words the log shows.
const SHOWN_CHARACTERS_MAX: usize = 200;

/// Checks that spans can be sent with these settings. It connects nothing.
pub(super) fn check(settings: &TraceSettings, endpoint: &str) -> Result<(), TracesError> {
    poster(settings, endpoint).map(drop)
}

fn poster(settings: &TraceSettings, endpoint: &str) -> Result<Poster, TracesError> {
    let mut http = HttpSettings {
        headers: settings.headers.clone(),
        header_files: settings.header_files.clone(),
        timeout_ms: settings.timeout_ms,
        ca_file: settings.ca_file.clone(),
        client_certificate_file: settings.client_certificate_file.clone(),
        client_key_file: settings.client_key_file.clone(),
        ..HttpSettings::at("traces", endpoint, Dialect::Tollgate)
    };
    let own = |name: &&str| http.headers.keys().chain(http.header_files.keys()).any(|key| key.eq_ignore_ascii_case(name));
    if let Some(name) = ["content-type", "accept"].iter().find(|name| own(name)) {
        return Err(TracesError::Setting {
            key: format!("headers.{name}"),
            problem: "found a header that OTLP sets; leave it out".to_owned(),
        });
    }
    for name in ["content-type", "accept"] {
        http.headers.insert(name.to_owned(), Secret("application/x-protobuf".to_owned()));
    }
    Poster::new(&http).map_err(|error| TracesError::Setting {
        key: if error.key == "url" { "endpoint".to_owned() } else { error.key },
        problem: error
            .problem
            .replace("https://policy.example/v1/decide", EXAMPLE)
            .replace("https://policy.example:8443/v1/decide", EXAMPLE),
    })
}

/// Starts the exporter. It has to run for as long as the process does.
pub(super) fn start(
    settings: &TraceSettings,
    endpoint: &str,
    about: About,
    queue: Arc<Queue>,
    metrics: &Metrics,
    (threads, stop): (&Arc<Threads>, &Stop),
) -> Result<Running, TracesError> {
    let poster = poster(settings, endpoint)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| TracesError::Thread(error.to_string()))?;
    let (closing, (done, ended)) = (Stop::default(), channel());
    let exporter =
        Exporter { poster, runtime, about, queue, metrics: metrics.clone(), closing: closing.clone(), warned: OncePerMinute::default() };
    let thread = MustRun::new("traces", threads, stop).spawn(move || exporter.run(&done));
    thread.map_err(|error| TracesError::Thread(error.to_string()))?;
    Ok(Running { closing, ended })
}

/// A running exporter.
#[derive(Debug)]
pub(super) struct Running {
    closing: Stop,
    ended: Receiver<()>,
}

impl Running {
    /// Has the queue sent and the exporter end, and waits for it for a while. A collector that hangs does not delay the end of a process.
    pub(super) fn finish(self) {
        self.closing.give();
        if self.ended.recv_timeout(FINISH_MAX) == Err(RecvTimeoutError::Timeout) {
            tracing::warn!("the last traces could not be sent in time");
        }
    }
}

struct Exporter {
    poster: Poster,
    runtime: Runtime,
    about: About,
    queue: Arc<Queue>,
    metrics: Metrics,
    /// The sign that the members have ended.
    closing: Stop,
    /// The log lines that say that spans are lost.
    warned: OncePerMinute<()>,
}

impl Exporter {
    fn run(mut self, done: &Sender<()>) {
        let mut due = Instant::now() + SEND_INTERVAL;
        while !self.closing.wait(POLL) {
            fail::fail_point!("traces");
            if self.queue.len() >= BATCH_MAX || Instant::now() >= due {
                due = Instant::now() + SEND_INTERVAL;
                self.send_all();
            }
        }
        self.send_all();
        // Nobody may wait for it any more.
        let _waiting = done.send(());
    }

    /// Sends the spans that are in the queue now.
    fn send_all(&mut self) {
        let mut left = self.queue.len();
        while left > 0 {
            let spans = self.queue.take(BATCH_MAX.min(left));
            left -= spans.len();
            self.send(&spans);
        }
    }

    /// Sends spans, and counts what became of them.
    fn send(&mut self, spans: &[Span]) {
        match self.post(self.about.request(spans)) {
            Ok(answer) => {
                let refused = Answer::decode(answer.as_slice()).ok().and_then(|answer| answer.partial_success);
                let count = refused.as_ref().map_or(0, |refused| usize::try_from(refused.rejected_spans).unwrap_or(0)).min(spans.len());
                self.metrics.traces_exported.inc_by((spans.len() - count) as u64);
                if let Some(refused) = refused.filter(|_| count > 0) {
                    self.lost(Dropped::Refused, count, &refused.error_message);
                }
            }
            Err(fault) => self.lost(Dropped::Failed, spans.len(), &fault.cause),
        }
    }

    fn post(&self, request: Vec<u8>) -> Result<Vec<u8>, PostFault> {
        for pause in PAUSES {
            match self.runtime.block_on(self.poster.post(request.clone())) {
                Err(fault) if fault.may_pass => {
                    tracing::debug!(cause = fault.cause, "the collector of traces is asked again");
                    if self.closing.wait(pause) {
                        return Err(fault);
                    }
                }
                posted => return posted,
            }
        }
        self.runtime.block_on(self.poster.post(request))
    }

    fn lost(&mut self, why: Dropped, spans: usize, cause: &str) {
        self.queue.count(why, spans);
        if self.warned.count((), Instant::now()).is_some() {
            let cause: String = cause.chars().take(SHOWN_CHARACTERS_MAX).flat_map(char::escape_debug).collect();
            tracing::warn!(
                spans,
                cause,
                "traces are lost: the collector at traces.endpoint does not take them. Verdicts do not depend on it; \
                 tollgate_traces_dropped_total counts on"
            );
        }
    }
}
