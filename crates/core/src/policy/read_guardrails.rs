//! `guardrails`: the block as DeerFlow writes it, with a list of providers besides.

use std::collections::BTreeMap;

use crate::guardrail::{Allowlist, Http, OapPassport};
use crate::policy::{Dialect, GuardrailSettings, HttpSettings, ProviderKind, ProviderSettings};
use crate::settings::{REDACTED, Secret};

use super::read_passport as passport;
use crate::settings::{Section, shape};

const NO_PROVIDER: &str = "write `provider: {use: allowlist, config: {denied_tools: [\"bash\"]}}`, or set `enabled: false`";

pub(super) fn read(section: &Section<'_>) -> Option<GuardrailSettings> {
    let is_enabled = section.bool("enabled");
    let single = section.value("provider").is_some_and(|value| !value.is_null()).then(|| section.section("provider"));
    let several = section.value("providers").filter(|value| !value.is_null()).and_then(|_| section.sections("providers"));
    if single.is_some() && several.is_some() {
        section.fault("provider", "both `provider` and `providers`", "write one of them");
    }
    let entries: Vec<_> = single.into_iter().chain(several.unwrap_or_default()).collect();
    if is_enabled && entries.is_empty() {
        section.fault("provider", "nothing although `enabled` is true", NO_PROVIDER);
    }
    let mut providers: Vec<_> = entries.iter().filter_map(|entry| read_provider(entry, section)).collect();
    // What answers at once goes first: whom it stops, nobody has to be asked about.
    providers.sort_by_key(|provider| matches!(provider.kind, ProviderKind::Http(_)));
    name_apart(&mut providers);
    let settings = GuardrailSettings { fail_closed: section.bool("fail_closed"), passport: section.optional_string("passport"), providers };
    is_enabled.then_some(settings)
}

fn read_provider(entry: &Section<'_>, guardrails: &Section<'_>) -> Option<ProviderSettings> {
    let name = entry.string("use");
    let tools = entry.strings("tools");
    if tools.as_ref().is_some_and(Vec::is_empty) {
        entry.fault("tools", "an empty list", "name tools, such as [\"bash\", \"mcp__*\"], or leave it out for all");
    }
    let config = entry.section("config");
    let kind = match name.rsplit(':').next().unwrap_or_default() {
        Allowlist::NAME | "AllowlistProvider" => ProviderKind::Allowlist {
            allowed_tools: config.strings("allowed_tools").map(|tools| tools.into_iter().collect()),
            denied_tools: config.strings("denied_tools").unwrap_or_default().into_iter().collect(),
        },
        OapPassport::NAME | "OAPGuardrailProvider" => ProviderKind::OapPassport(passport::read(&config, guardrails)),
        Http::NAME => ProviderKind::Http(read_http(&config)),
        "" => return None,
        _ => {
            entry.fault("use", "an unknown provider", "write `allowlist`, `oap_passport` or `http`");
            return None;
        }
    };
    Some(ProviderSettings { tools, kind })
}

fn read_http(config: &Section<'_>) -> HttpSettings {
    let number = |key: &'static str, default: u32| config.optional_positive(key).unwrap_or(default);
    let dialect = match config.optional_string("dialect").as_deref() {
        None | Some("tollgate") => Dialect::Tollgate,
        Some("opa") => Dialect::Opa,
        Some(_) => {
            config.fault("dialect", "another word", "write tollgate or opa");
            Dialect::Tollgate
        }
    };
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

fn is_plain_url(url: &str) -> bool {
    let rest = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"));
    let authority = rest.and_then(|rest| rest.split(['/', '?', '#']).next()).unwrap_or_default();
    !authority.is_empty() && !authority.contains('@') && !url.contains(char::is_whitespace)
}

fn read_headers(config: &Section<'_>) -> BTreeMap<String, Secret> {
    let mut headers = BTreeMap::new();
    for (name, value) in config.entries("headers") {
        match value.as_str() {
            Some(REDACTED) => config.fault(&format!("headers.{name}"), "a secret that was redacted", "write the header's value"),
            Some(text) => _ = headers.insert(name.to_owned(), Secret(text.to_owned())),
            None => config.fault(&format!("headers.{name}"), shape(value), "write a string"),
        }
    }
    headers
}

fn read_header_files(config: &Section<'_>) -> BTreeMap<String, String> {
    let mut files = BTreeMap::new();
    for (name, value) in config.entries("header_files") {
        match value.as_str() {
            Some(file) => _ = files.insert(name.to_owned(), file.to_owned()),
            None => config.fault(&format!("header_files.{name}"), shape(value), "write the name of a file that holds the header's value"),
        }
    }
    files
}

/// Servers that are called the same are numbered, so that metrics tell them apart.
fn name_apart(providers: &mut [ProviderSettings]) {
    let mut seen = BTreeMap::<String, usize>::new();
    for provider in providers {
        if let ProviderKind::Http(settings) = &mut provider.kind {
            let number = seen.entry(settings.name.clone()).and_modify(|number| *number += 1).or_insert(1);
            if *number > 1 {
                settings.name = format!("{}-{number}", settings.name);
            }
        }
    }
}
