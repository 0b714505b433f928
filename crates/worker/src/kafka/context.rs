//! The context of every client: how it logs in, and where its log lines go, is the same for all clients.

use std::error::Error;
use std::ops::Deref;
use std::sync::LazyLock;
use std::time::Instant;

use rdkafka::ClientContext;
use rdkafka::client::OAuthToken;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::ConsumerContext;
use rdkafka::error::KafkaError;
use rdkafka::producer::{DeliveryResult, ProducerContext};
use rdkafka::statistics::Statistics;
use rdkafka::util::IntoOpaque;

use crate::logging::OncePerMinute;

/// What the owner of a client makes of librdkafka's callbacks. They run while the client is polled.
pub trait Callbacks: Send + Sync {
    /// Takes a log line of librdkafka.
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        log(level, facility, message);
    }

    /// Takes an error that librdkafka deals with itself.
    fn error(&self, error: KafkaError, reason: &str) {
        tracing::debug!(target: "librdkafka", %error, reason, "client");
    }

    /// Takes statistics, as JSON: see [`statistics`].
    fn statistics(&self, _json: &[u8]) {}
}

/// What the owner of a producer makes of delivery reports.
pub trait Deliveries: Callbacks {
    /// What a record carries from its sending to its report.
    type Tag: IntoOpaque;

    /// Takes the report on a record.
    fn delivered(&self, result: &DeliveryResult<'_>, tag: Self::Tag);
}

/// The context of a client, with its owner's callbacks.
#[derive(Debug, Clone, Copy, Default)]
pub struct Context<C>(pub C);

/// The context of a client whose owner needs no callbacks.
pub type PlainContext = Context<NoCallbacks>;

/// The callbacks of an owner who needs none.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoCallbacks;

impl Callbacks for NoCallbacks {}

impl Deliveries for NoCallbacks {
    type Tag = ();

    fn delivered(&self, _: &DeliveryResult<'_>, (): ()) {}
}

impl<C> Deref for Context<C> {
    type Target = C;

    fn deref(&self) -> &C {
        &self.0
    }
}

impl<C: Callbacks> ClientContext for Context<C> {
    const ENABLE_REFRESH_OAUTH_TOKEN: bool = true;

    fn generate_oauth_token(&self, config: Option<&str>) -> Result<OAuthToken, Box<dyn Error>> {
        super::oauth_token(config)
    }

    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        self.0.log(level, facility, message);
    }

    fn error(&self, error: KafkaError, reason: &str) {
        self.0.error(error, reason);
    }

    fn stats_raw(&self, json: &[u8]) {
        self.0.statistics(json);
    }
}

/// The callbacks of consumers that take no part in rebalances: they assign their partitions themselves.
pub trait AssignsItself: Callbacks {}

impl AssignsItself for NoCallbacks {}

impl<C: AssignsItself> ConsumerContext for Context<C> {}

impl<C: Deliveries> ProducerContext for Context<C> {
    type DeliveryOpaque = C::Tag;

    fn delivery(&self, result: &DeliveryResult<'_>, tag: C::Tag) {
        self.0.delivered(result, tag);
    }
}

/// Logs an error that librdkafka deals with itself. While brokers are away it repeats one for each of its attempts, so that each kind of error
/// of each kind of client is logged once a minute, with the number of its repetitions.
pub(crate) fn warn_of(client: &'static str, error: &KafkaError, reason: &str) {
    static LINES: LazyLock<OncePerMinute<(&'static str, Option<i32>)>> = LazyLock::new(OncePerMinute::default);
    if let Some(count) = LINES.count((client, error.rdkafka_error_code().map(|code| code as i32)), Instant::now()) {
        tracing::warn!(target: "librdkafka", %error, reason, count, "{client}");
    }
}

/// Reads statistics. `None` stands for statistics of a form that is not known.
#[must_use]
pub fn statistics(json: &[u8]) -> Option<Statistics> {
    serde_json::from_slice(json).inspect_err(|error| tracing::warn!(target: "librdkafka", %error, "statistics")).ok()
}

/// Passes a log line on. One kind is dropped: `kafka.properties` go to consumers and producers alike, and each client complains about the
/// properties of the other kind.
pub fn log(level: RDKafkaLogLevel, facility: &str, message: &str) {
    if facility == "CONFWARN" && message.contains("property and will be ignored by") {
        return;
    }
    // A consumer commits nothing but beats, and another one follows at once.
    if facility == "COMMITFAIL" {
        return tracing::debug!(target: "librdkafka", facility, "{message}");
    }
    match level {
        RDKafkaLogLevel::Emerg | RDKafkaLogLevel::Alert | RDKafkaLogLevel::Critical | RDKafkaLogLevel::Error => {
            tracing::error!(target: "librdkafka", facility, "{message}");
        }
        RDKafkaLogLevel::Warning => tracing::warn!(target: "librdkafka", facility, "{message}"),
        RDKafkaLogLevel::Notice | RDKafkaLogLevel::Info => tracing::info!(target: "librdkafka", facility, "{message}"),
        RDKafkaLogLevel::Debug => tracing::debug!(target: "librdkafka", facility, "{message}"),
    }
}
