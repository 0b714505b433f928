//! The configuration of a policy server: its address, its dialect, and the limits on asking it.

use std::collections::BTreeMap;

use serde::Serialize;

use super::Http;
use crate::settings::{Secret, Section, is_plain_url, read_header_files, read_headers};

/// The settings of a policy server that is asked over HTTP.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HttpSettings {
    /// Its name in metrics and logs.
    pub name: String,
    /// The URL that questions are posted to: an absolute http or https URL without credentials.
    pub url: String,
    /// The form of question and answer.
    pub dialect: Dialect,
    /// Headers of every question. The policy's version does not depend on their values.
    pub headers: BTreeMap<String, Secret>,
    /// Headers whose values are read from files, without the line's end.
    pub header_files: BTreeMap<String, String>,
    /// How long a question may wait for its answer, in milliseconds, queueing and retries included.
    pub timeout_ms: u32,
    /// The most questions that are on their way at once.
    pub concurrency_max: u32,
    /// The most questions that wait to be sent. One more is answered with an error at once.
    pub queue_max: u32,
    /// The largest answer, in bytes.
    pub answer_bytes_max: u32,
    /// Whether a question may be asked again although the server may have dealt with it already.
    #[serde(rename = "idempotent")]
    pub is_idempotent: bool,
    /// The number of failures in a row after which the server is not asked for a while.
    pub breaker_failures: u32,
    /// How long the server is not asked then, in milliseconds. After that, one question tests it.
    pub breaker_open_ms: u32,
    /// A PEM file of the authorities that may vouch for the server, in place of the system's.
    pub ca_file: Option<String>,
    /// A PEM file of the certificate chain that is presented to the server, the own certificate first.
    pub client_certificate_file: Option<String>,
    /// The PEM file of its private key.
    pub client_key_file: Option<String>,
}

impl HttpSettings {
    /// Returns the settings of a server with defaults for the rest. A question in OPA's dialect may be asked again: it changes nothing
    /// there. A question in another dialect may be counted by the server.
    #[must_use]
    pub fn at(name: impl Into<String>, url: impl Into<String>, dialect: Dialect) -> Self {
        Self {
            name: name.into(),
            url: url.into(),
            dialect,
            headers: BTreeMap::new(),
            header_files: BTreeMap::new(),
            timeout_ms: 250,
            concurrency_max: 64,
            queue_max: 1_024,
            answer_bytes_max: 65_536,
            is_idempotent: dialect == Dialect::Opa,
            breaker_failures: 10,
            breaker_open_ms: 1_000,
            ca_file: None,
            client_certificate_file: None,
            client_key_file: None,
        }
    }
}

/// The protocol of a policy server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Dialect {
    /// The request as JSON; the answer is a decision.
    Tollgate,
    /// OPA's REST API: `{"input": request}`; the answer is `{"result": …}`.
    Opa,
}

/// Reads the provider's `config`.
pub(super) fn read(config: &Section<'_>) -> HttpSettings {
    let number = |key: &'static str, default: u32| config.optional_positive(key).unwrap_or(default);
    let dialect = config.word("dialect", &[("tollgate", Dialect::Tollgate), ("opa", Dialect::Opa)]).unwrap_or(Dialect::Tollgate);
    let url = config.string("url");
    if !url.is_empty() && !is_plain_url(&url) {
        let fix = "write an absolute URL such as http://127.0.0.1:8181/v1/data/agent/allow; credentials belong into `headers`";
        config.fault("url", "a string that is no http or https URL without credentials", fix);
    }
    let name = config.optional_string("name").unwrap_or_else(|| Http::NAME.to_owned());
    let defaults = HttpSettings::at(name, url, dialect);
    HttpSettings {
        headers: read_headers(config),
        header_files: read_header_files(config),
        timeout_ms: number("timeout_ms", defaults.timeout_ms),
        concurrency_max: number("concurrency_max", defaults.concurrency_max),
        queue_max: number("queue_max", defaults.queue_max),
        answer_bytes_max: number("answer_bytes_max", defaults.answer_bytes_max),
        is_idempotent: config.optional_bool("idempotent").unwrap_or(defaults.is_idempotent),
        breaker_failures: number("breaker_failures", defaults.breaker_failures),
        breaker_open_ms: number("breaker_open_ms", defaults.breaker_open_ms),
        ca_file: config.optional_string("ca_file"),
        client_certificate_file: config.optional_string("client_certificate_file"),
        client_key_file: config.optional_string("client_key_file"),
        ..defaults
    }
}
