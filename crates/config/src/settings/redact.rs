//! Effective settings for people to read, without their secrets.

use serde_json::{Value, json};

use super::properties::SUFFIX;
use super::{Settings, urls};
use tollgate_core::settings::REDACTED;

/// Parts of a librdkafka property's name that mark its value as a secret.
const SECRET_PARTS: [&str; 8] =
    ["password", "passphrase", "private.key", "secret", "sasl.jaas", "ssl.key", "token", "sasl.oauthbearer.config"];

/// Property names that hold a URL or path and no secret, although a part of their name suggests one.
const PLAIN: [&str; 8] = [
    "ssl.key.location",
    "sasl.oauthbearer.token.endpoint.url",
    // librdkafka knows these only if it was built with a client of HTTP.
    "sasl.oauthbearer.method",
    "sasl.oauthbearer.client.id",
    "sasl.oauthbearer.scope",
    "sasl.oauthbearer.grant.type",
    "sasl.oauthbearer.assertion.file",
    "https.ca.location",
];

pub(super) fn redacted(settings: &Settings, is_taken: impl Fn(&str, &str) -> bool) -> Value {
    // A property that librdkafka does not know may be the misspelt name of a secret.
    let is_taken = |name: &str, value: &Value| value.as_str().is_some_and(|value| is_taken(name, value));
    let mut kafka = json!(settings.kafka);
    if let Some(brokers) = kafka.get_mut("brokers") {
        *brokers = settings.kafka.shown_brokers().into();
    }
    if let Some(properties) = kafka.get_mut("properties").and_then(Value::as_object_mut) {
        for (_, value) in
            properties.iter_mut().filter(|(name, value)| is_secret(name) || !PLAIN.contains(&name.as_str()) && !is_taken(name, value))
        {
            *value = Value::from(REDACTED);
        }
        // Where a value stands in a file, its name is shown, and what was printed can be used again as it is.
        for (property, file) in &settings.kafka.property_files {
            properties.remove(property);
            properties.insert(format!("{property}{SUFFIX}"), Value::from(file.as_str()));
        }
    }
    let policy = &settings.policy;
    urls::redacted_value(json!({
        "safety_finish_reason": if policy.detectors.is_empty() {
            json!({"enabled": false})
        } else {
            let responses = &policy.responses;
            json!({
                "enabled": true,
                "detectors": policy.detectors,
                "on_unrecognized": responses.on_unrecognized,
                "on_unreliable": responses.on_unreliable,
                "only_on": responses.only_on,
            })
        },
        "guardrails": policy.guardrails.as_ref().map_or_else(|| json!({"enabled": false}), |guardrails| {
            json!({
                "enabled": true,
                "fail_closed": guardrails.fail_closed,
                "passport": guardrails.passport,
                "providers": guardrails.providers,
            })
        }),
        "tool_loop_guardrails": policy.tool_loop_guardrails,
        "limits": policy.limits,
        "kafka": kafka,
        "worker": settings.worker,
        "serve": settings.serve,
        "admin": settings.admin,
        "log": settings.log,
        "traces": settings.traces,
        "privacy": settings.subject_keys.redacted(),
        "abuse": settings.abuse,
    }))
}

/// Returns whether the value of a key of the configuration may be a secret, by its path.
pub fn may_be_secret(path: &str) -> bool {
    // Somebody may have written a password into an address.
    matches!(path, "kafka.brokers" | "traces.endpoint")
        || path.starts_with("privacy.subject_key")
        || path.starts_with("traces.headers")
        || path.ends_with(".url")
        || is_secret(path)
}

pub(super) fn is_secret(property: &str) -> bool {
    !PLAIN.contains(&property) && SECRET_PARTS.iter().any(|part| property.contains(part))
}
