//! The client of policy servers: over HTTP and within a deadline it sends the bytes of a question and receives the bytes of an answer. The
//! guardrail providers give both their meaning.
//!
//! | module | what it does |
//! |---|---|
//! | `servers` | all servers of the process, for threads that must not wait |
//! | `endpoint` | one server: deadline, queue, breaker, retries |
//! | [`breaker`] | when a server is left alone: a state machine without a clock |
//! | `fault` | what can go wrong, which error it is, whether to ask again |
//! | `pool`, `connection`, `tls` | connections, kept alive |
//! | `post` | posting without queue and breaker: to a collector of traces, and from commands |
//! | `target` | URL and headers, checked once |
//! | `meters` | metrics and log |
//!
//! The proxy variables of the environment are not used. A question holds what agents are about to do, and a variable that was set for
//! another purpose must not decide who can read it.

pub mod breaker;

mod connection;
mod endpoint;
mod fault;
mod meters;
mod pool;
mod post;
mod servers;
mod target;
#[cfg(feature = "tls")]
mod tls;

pub use endpoint::Endpoint;
pub use post::{PostFault, Poster, Stream};
pub use servers::PolicyServers;

use hyper::Uri;

use tollgate_config::settings::is_this_machine;
use tollgate_core::decide::guardrail::HttpSettings;

/// Returns whether a URL leads to this machine, where nobody can listen on the way.
#[must_use]
pub fn leads_here(url: &str) -> bool {
    url.parse::<Uri>().is_ok_and(|uri| uri.host().is_some_and(is_this_machine))
}

/// The settings of a policy server name no server that can be asked. The error holds no header's value and nothing of the URL.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("guardrail provider {provider}: {key}: {problem}")]
pub struct EndpointError {
    /// The provider's name.
    pub provider: String,
    /// The configuration key at fault.
    pub key: String,
    /// What was found there, and what to write instead.
    pub problem: String,
}

impl EndpointError {
    fn new(settings: &HttpSettings, key: &str, problem: &str) -> Self {
        Self { provider: settings.name.clone(), key: key.to_owned(), problem: problem.to_owned() }
    }
}

/// Returns settings for tests.
#[cfg(test)]
fn test_settings(url: &str) -> HttpSettings {
    HttpSettings { breaker_failures: 5, ..HttpSettings::at("policy", url, tollgate_core::decide::guardrail::Dialect::Tollgate) }
}
