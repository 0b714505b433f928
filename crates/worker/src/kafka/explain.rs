//! Explains refusals that librdkafka tells in general words: which certificate does not fit, and why.

use rdkafka::ClientConfig;

use super::reason::Reason;

/// What OpenSSL says where a listener refuses the client's certificate, or the want of one.
const ALERTS: [&str; 6] = [
    "alert bad certificate",
    "alert certificate unknown",
    "alert certificate expired",
    "alert certificate required",
    "alert unknown ca",
    "alert handshake failure",
];

/// Returns a reason with more particular words, if the client's configuration tells more than librdkafka does. It may connect to the broker
/// that the reason is about.
pub(super) fn explained(reason: Reason, config: &ClientConfig) -> Reason {
    let what = reason.what.clone();
    let is_tls = config.get("security.protocol").is_some_and(|protocol| protocol.to_ascii_lowercase().ends_with("ssl"));
    if !is_tls {
        return reason;
    }
    #[cfg(feature = "tls")]
    if what.contains("certificate verify failed")
        && let Some((what, check)) = super::probe::why_refused(&reason.broker, config)
    {
        return Reason { what, check: Some(check.into()), ..reason };
    }
    let is_refused = ALERTS.iter().any(|alert| what.contains(alert));
    // A listener may also hang up on a certificate.
    #[cfg(feature = "tls")]
    if (is_refused || what.contains("Disconnected") || what.contains("SSL"))
        && let Some(what) = super::probe::own_fault(config)
    {
        return Reason { what, check: Some("renew it: ssl.certificate.location in kafka.properties".into()), ..reason };
    }
    if is_refused {
        let has_own =
            ["ssl.certificate.location", "ssl.certificate.pem", "ssl.keystore.location"].iter().any(|key| config.get(key).is_some());
        let check = if has_own {
            "the listener does not accept the client's certificate: check ssl.certificate.location in kafka.properties, and that the \
             brokers trust the authority that issued it"
        } else {
            "the listener wants a certificate of the client: name it in ssl.certificate.location and its key in ssl.key.location in \
             kafka.properties"
        };
        return Reason { check: Some(check.into()), ..reason };
    }
    let mechanism = config.get("sasl.mechanism").or_else(|| config.get("sasl.mechanisms"));
    if what.contains("SASL") && mechanism.is_some_and(|mechanism| mechanism.eq_ignore_ascii_case("OAUTHBEARER")) {
        return Reason { check: Some("check the token, its audience and its issuer: what the brokers expect of it".into()), ..reason };
    }
    reason
}
