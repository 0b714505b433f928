//! URLs: whoever fetches an allowed one has to ask the host that was judged.

mod generate;
mod parsers;

use serde_json::json;

use crate::Fault;
use crate::minimise::minimise;
use crate::options::Options;
use crate::question::Agent;
use crate::random::Random;

use parsers::{Parsers, Place};

/// How many URLs the parsers are asked for at once.
const BATCH: usize = 64;

/// How many failures end a run.
const FAILURES_MAX: usize = 20;

/// What a run has found.
#[derive(Debug, Default)]
pub struct Run {
    /// How many URLs were made.
    pub made: u64,
    /// How many of them the rules allow, so that they were compared.
    pub allowed: u64,
    /// How many of these some parser refuses, which is no disagreement about the host: nobody is asked then.
    pub refused: u64,
    /// What failed: the URL, made small, and the readings of it.
    pub failures: Vec<String>,
}

impl std::fmt::Display for Run {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for failure in &self.failures {
            writeln!(f, "{failure}")?;
        }
        let Self { made, allowed, refused, failures } = self;
        write!(f, "{made} URLs, {allowed} allowed and compared, {refused} of them refused by a parser, {} failures", failures.len())
    }
}

/// Makes URLs until the time is over.
///
/// # Errors
/// If a parser is missing or ends.
pub fn run(options: &Options) -> Result<Run, Fault> {
    let mut random = Random::new(options.seed);
    let mut parsers = Parsers::start()?;
    let agents = [
        Agent::new(&json!({}))?,
        Agent::new(&json!({"web.fetch": {"allowed_domains": ["example.com", "*.example.org", "8.8.8.8", "2606:4700::1111"]}}))?,
    ];
    let (end, mut run) = (options.end(), Run::default());
    while options.goes_on(end, run.allowed) && run.failures.len() < FAILURES_MAX {
        let made: Vec<String> = (0..BATCH).map(|_| generate::url(&mut random)).collect();
        run.made += made.len() as u64;
        let allowed: Vec<&str> =
            made.iter().map(String::as_str).filter(|url| agents.iter().any(|agent| agent.may("web_fetch", "url", url))).collect();
        run.allowed += allowed.len() as u64;
        let readings = parsers.read(&allowed)?;
        for (url, places) in allowed.into_iter().zip(readings) {
            run.refused += u64::from(places.iter().any(|(_, place)| place.is_none()));
            if disagreement(url, &places).is_some() {
                run.failures.push(smallest(url, &agents, &mut parsers)?);
            }
        }
    }
    Ok(run)
}

/// Returns what is wrong with the readings of an allowed URL.
fn disagreement(url: &str, places: &[(&'static str, Option<Place>)]) -> Option<String> {
    let said = || {
        let each = places.iter().map(|(name, place)| match place {
            Some(place) => format!("{name} {}://{}", place.scheme, place.host),
            None => format!("{name} refuses"),
        });
        each.collect::<Vec<_>>().join(", ")
    };
    let mut found = places.iter().filter_map(|(_, place)| place.as_ref());
    // All of them refuse it: nobody is asked, but the rules should not have read it either.
    let Some(first) = found.next() else { return Some(said()) };
    // Punycode that stands for nothing is refused by some, and nobody reads another host in it.
    let is_refused = places.iter().any(|(_, place)| place.is_none()) && !first.host.contains("xn--");
    if is_refused || found.any(|place| place != first) {
        return Some(said());
    }
    let judged = judges(url, &first.host) && matches!(first.scheme.as_str(), "http" | "https");
    (!judged).then(|| format!("{}; the rules judge another host", said()))
}

/// Returns whether the rules judge a URL by this host and no other.
fn judges(url: &str, host: &str) -> bool {
    let below = if host.parse::<std::net::IpAddr>().is_ok() { "blocked.example.net".to_owned() } else { format!("*.{host}") };
    let agent = Agent::new(&json!({"web.fetch": {"allowed_domains": [host], "blocked_domains": [below]}}));
    agent.is_ok_and(|agent| agent.may("web_fetch", "url", url))
}

fn smallest(url: &str, agents: &[Agent], parsers: &mut Parsers) -> Result<String, Fault> {
    let mut said = |candidate: &str| -> Result<_, Fault> {
        let is_allowed = agents.iter().any(|agent| agent.may("web_fetch", "url", candidate));
        let readings = if is_allowed { parsers.read(&[candidate])? } else { Vec::new() };
        Ok(readings.first().and_then(|places| disagreement(candidate, places)))
    };
    let small = minimise(url, |candidate| Ok::<_, Fault>(said(candidate)?.is_some()))?;
    Ok(format!("FAILURE {small:?}: {} (from {url:?})", said(&small)?.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(readings: [Option<(&str, &str)>; 2]) -> parsers::Readings {
        let place = |(scheme, host): (&str, &str)| Place { scheme: scheme.to_owned(), host: host.to_owned() };
        ["one", "other"].into_iter().zip(readings.map(|reading| reading.map(place))).collect()
    }

    #[test]
    fn readings_that_differ_from_each_other_or_from_the_rules_are_failures() {
        let url = "http://example.com/";
        let said = |readings| disagreement(url, &read(readings));
        assert_eq!(said([Some(("http", "example.com")), Some(("http", "example.com"))]), None);
        for readings in [
            [Some(("http", "example.com")), Some(("http", "evil.io"))],
            [Some(("http", "example.com")), Some(("https", "example.com"))],
            [Some(("http", "evil.io")), Some(("http", "evil.io"))],
            [Some(("http", "com")), Some(("http", "com"))],
            [Some(("http", "www.example.com")), Some(("http", "www.example.com"))],
            [Some(("http", "example.com")), None],
            [None, None],
        ] {
            assert!(said(readings).is_some(), "{readings:?}");
        }
    }
}
