//! The filter of log lines: whether it is one, and whether each part of it can match a line.

use anyhow::{anyhow, bail};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

/// The crates that log.
const CRATES: [&str; 9] =
    ["tollgate", "tollgate_worker", "tollgate_bench", "librdkafka", "rdkafka", "hyper", "hyper_util", "tokio", "axum"];

/// The modules of this crate, which log under their paths.
#[rustfmt::skip]
const MODULES: [&str; 18] = [
    "admin", "control_feed", "health", "host_time", "kafka", "logging", "member", "metrics", "outbox", "partition", "peers",
    "policy_servers", "process", "shadow", "stages", "stop", "threads", "traces",
];

/// The modules of the program that log: the lines of all others stand under the worker's.
const PROGRAM_MODULES: [&str; 1] = ["commands"];

/// What may be written.
const FIX: &str =
    "write a level (off, error, warn, info, debug, trace), or levels by module: info,librdkafka=error,tollgate_worker::member=debug";

/// Reads `log.filter`, and refuses one of which a part matches nothing. `tracing` takes any word for a module, so a level that is
/// misspelled would switch everything off.
///
/// # Errors
/// It is no filter, or a part of it matches nothing: with what may be written.
pub fn read_filter(filter: &str) -> anyhow::Result<EnvFilter> {
    let read = EnvFilter::try_new(filter).map_err(|error| anyhow!("log.filter: found a string that is no filter ({error}); {FIX}"))?;
    for part in filter.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        let target = part.split_once('=').map_or(part, |(target, _)| target).trim();
        if target.contains('[') {
            bail!("log.filter: found {target:?}, which names a span, and there are none; {FIX}");
        }
        let is_level = target == part && part.parse::<LevelFilter>().is_ok();
        if !is_level && !is_known(target) {
            bail!("log.filter: found {target:?}, which is no level and no module that logs; {FIX}");
        }
    }
    Ok(read)
}

fn is_known(target: &str) -> bool {
    let mut names = target.split("::");
    let (name, module) = (names.next().unwrap_or_default(), names.next());
    let modules: Option<&[&str]> = match name {
        "tollgate" => Some(&PROGRAM_MODULES),
        env!("CARGO_CRATE_NAME") => Some(&MODULES),
        _ => None,
    };
    let has_module = |modules: &[&str]| module.is_none_or(|module| modules.contains(&module));
    CRATES.contains(&name) && modules.is_none_or(has_module)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_matches_something_in_each_part() {
        for good in [
            "info",
            "WARN",
            "off",
            "3",
            "info,librdkafka=error",
            "tollgate=debug",
            "tollgate",
            "warn,tollgate_worker::member=trace,",
            "tollgate_worker::process::preflight=debug",
            "tollgate::commands=debug",
        ] {
            assert!(read_filter(good).is_ok(), "{good}");
        }
        for (bad, says) in [
            ("tollgat=info", "found \"tollgat\", which is no level and no module that logs; write a level (off"),
            ("inf", "found \"inf\""),
            ("info,librdkafk=error", "found \"librdkafk\""),
            ("tollgate_worker::membre=debug", "found \"tollgate_worker::membre\""),
            ("tollgate::member=debug", "found \"tollgate::member\""),
            ("tollgate_=debug", "found \"tollgate_\""),
            ("[span]=debug", "names a span"),
            ("info=librdkafka", "no filter"),
            ("tollgate=loud", "no filter"),
        ] {
            let error = read_filter(bad).unwrap_err().to_string();
            assert!(error.starts_with("log.filter: ") && error.contains(says), "{bad}: {error}");
        }
    }

    /// A module that is not in the list could not be named in a filter.
    #[test]
    fn every_module_of_the_crate_is_known() {
        let lines = include_str!("../lib.rs").lines();
        let declared = lines.filter_map(|line| line.strip_prefix("pub mod ").or(line.strip_prefix("mod "))?.strip_suffix(';'));
        assert_eq!(declared.collect::<Vec<_>>(), MODULES);
    }
}
