//! The `traces` section: where spans of verdicts are sent, and which.

use std::collections::BTreeMap;

use serde::Serialize;

use tollgate_core::settings::{Secret, Section, is_plain_url, read_header_files, read_headers};

/// Where spans are sent, and which. Decisions do not depend on it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TraceSettings {
    /// The URL that spans are posted to, path included; `None` sends none.
    pub endpoint: Option<String>,
    /// Of the traces that begin here, one in this many is sampled.
    pub sample_one_in: u32,
    /// Whether an event with a valid `traceparent` is sampled exactly if its sender's span is.
    pub follow_parent: bool,
    /// The `service.name` of spans; `None` takes it from the environment.
    pub service_name: Option<String>,
    /// How long a request may take, in milliseconds.
    pub timeout_ms: u32,
    /// Headers of every request.
    pub headers: BTreeMap<String, Secret>,
    /// Headers whose values are read from files, without the line's end.
    pub header_files: BTreeMap<String, String>,
    /// A PEM file of the authorities that may vouch for the collector, in place of the system's.
    pub ca_file: Option<String>,
    /// A PEM file of the certificate chain that is presented to the collector, the own certificate first.
    pub client_certificate_file: Option<String>,
    /// The PEM file of its private key.
    pub client_key_file: Option<String>,
}

impl TraceSettings {
    /// Returns the settings of a process that sends no spans.
    #[must_use]
    pub fn off() -> Self {
        Self {
            endpoint: None,
            sample_one_in: 100,
            follow_parent: true,
            service_name: None,
            timeout_ms: 10_000,
            headers: BTreeMap::new(),
            header_files: BTreeMap::new(),
            ca_file: None,
            client_certificate_file: None,
            client_key_file: None,
        }
    }
}

pub(super) fn read(section: &Section<'_>) -> TraceSettings {
    let endpoint = section.optional_string("endpoint");
    if endpoint.as_ref().is_some_and(|url| !url.is_empty() && !is_plain_url(url)) {
        let fix = "write the whole address, such as http://otel-collector:4318/v1/traces; credentials belong into `header_files`";
        section.fault("endpoint", "a string that is no http or https URL without credentials", fix);
    }
    TraceSettings {
        endpoint,
        sample_one_in: section.positive("sample_one_in"),
        follow_parent: section.bool("follow_parent"),
        service_name: section.optional_string("service_name"),
        timeout_ms: section.positive("timeout_ms"),
        headers: read_headers(section),
        header_files: read_header_files(section),
        ca_file: section.optional_string("ca_file"),
        client_certificate_file: section.optional_string("client_certificate_file"),
        client_key_file: section.optional_string("client_key_file"),
    }
}
