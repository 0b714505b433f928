//! librdkafka's log lines, passed on through `tracing`.

use std::error::Error;

use rdkafka::ClientContext;
use rdkafka::client::OAuthToken;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::ConsumerContext;
use rdkafka::error::KafkaError;
use rdkafka::producer::{DeliveryResult, ProducerContext};

/// A context for clients that need no callbacks.
#[derive(Debug, Clone, Copy, Default)]
pub struct PlainContext;

impl ClientContext for PlainContext {
    const ENABLE_REFRESH_OAUTH_TOKEN: bool = true;

    fn generate_oauth_token(&self, config: Option<&str>) -> Result<OAuthToken, Box<dyn Error>> {
        super::oauth_token(config)
    }

    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        log(level, facility, message);
    }

    fn error(&self, error: KafkaError, reason: &str) {
        tracing::debug!(target: "librdkafka", %error, reason, "client");
    }

    /// Statistics are for metrics and not for the log.
    fn stats_raw(&self, _: &[u8]) {}
}

impl ConsumerContext for PlainContext {}

impl ProducerContext for PlainContext {
    type DeliveryOpaque = ();

    fn delivery(&self, _: &DeliveryResult<'_>, (): ()) {}
}

/// Passes a log line on. One kind is dropped: `kafka.properties` go to consumers and producers alike, and each client complains about the
/// properties of the other kind.
pub fn log(level: RDKafkaLogLevel, facility: &str, message: &str) {
    if facility == "CONFWARN" && message.contains("property and will be ignored by") {
        return;
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
