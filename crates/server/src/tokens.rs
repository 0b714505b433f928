//! Who may ask for whom: the file of hashed tokens. It is pure: the file is read elsewhere.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use axum::http::StatusCode;
use serde::Deserialize;

use tollgate_core::decide::tools::ToolPatterns;
use tollgate_json::digest::Digest;

use crate::hex;
use crate::refusal::Refusal;

/// A caller: whom it may speak for, and how often.
#[derive(Debug, Clone)]
pub struct Caller {
    /// The token's name, for logs and metrics.
    pub name: String,
    /// The tenant that its events belong to; `None` leaves the tenant to the events.
    pub tenant: Option<String>,
    /// The agents that it may speak for; `None` is any agent.
    pub agents: Option<Arc<ToolPatterns>>,
    /// How many requests it may send.
    rate: Option<Arc<Rate>>,
}

impl Caller {
    /// Returns the caller of a server without tokens, which listens on loopback alone.
    #[must_use]
    pub fn anyone() -> Self {
        Self { name: "loopback".to_owned(), tenant: None, agents: None, rate: None }
    }

    /// Returns the caller with another tenant.
    #[cfg(test)]
    pub(crate) fn of_tenant(self, tenant: &str) -> Self {
        Self { tenant: Some(tenant.to_owned()), ..self }
    }

    /// Checks whom an event speaks for.
    ///
    /// # Errors
    /// Returns a [`Refusal`] that names the field, and repeats no value.
    pub fn check(&self, tenant: Option<&str>, agent: Option<&str>) -> Result<(), Refusal> {
        let refused = |code, message: &str| Err(Refusal::new(StatusCode::FORBIDDEN, code, message));
        if self.tenant.is_some() && self.tenant.as_deref() != tenant {
            let message = "tenant_id: found another tenant than this token may speak for; leave tenant_id out, or use that tenant's token";
            return refused("tenant_not_allowed", message);
        }
        match (&self.agents, agent) {
            (None, _) => Ok(()),
            (Some(agents), Some(agent)) if agents.matches(agent) => Ok(()),
            (Some(_), Some(_)) => {
                let message = "agent_id: found an agent that this token may not speak for; use the agent's own token";
                refused("agent_not_allowed", message)
            }
            (Some(_), None) => {
                let message = "agent_id: found nothing; this token speaks for certain agents alone, so name the agent";
                refused("agent_not_allowed", message)
            }
        }
    }

    /// Counts a request against the caller's rate.
    ///
    /// # Errors
    /// Returns a [`Refusal`] with status 429 where the caller sends more than it may.
    pub fn count(&self, now: Instant) -> Result<(), Refusal> {
        if self.rate.as_ref().is_none_or(|rate| rate.takes(now)) {
            return Ok(());
        }
        let message = "this token sends more requests than its rate_per_second; send fewer, or have the rate raised";
        Err(Refusal::new(StatusCode::TOO_MANY_REQUESTS, "rate_exceeded", message))
    }
}

/// A token bucket that holds the requests of a second.
#[derive(Debug)]
struct Rate {
    per_second: f64,
    left: Mutex<(f64, Option<Instant>)>,
}

impl Rate {
    fn new(per_second: u32) -> Self {
        let per_second = f64::from(per_second);
        Self { per_second, left: Mutex::new((per_second, None)) }
    }

    fn takes(&self, now: Instant) -> bool {
        let mut guard = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        let (left, since) = *guard;
        let passed = since.map_or(0.0, |since| now.saturating_duration_since(since).as_secs_f64());
        let left = (left + passed * self.per_second).min(self.per_second);
        let takes = left >= 1.0;
        *guard = (if takes { left - 1.0 } else { left }, Some(now));
        takes
    }
}

/// The callers, by the digests of their tokens.
#[derive(Debug, Default)]
pub struct Tokens(HashMap<Digest, Arc<Caller>>);

/// An entry of the file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    name: String,
    sha256: String,
    #[serde(default)]
    tenant: Option<String>,
    #[serde(default)]
    agents: Option<Vec<String>>,
    #[serde(default)]
    rate_per_second: Option<u32>,
}

impl Tokens {
    /// Reads the file's document: a list of entries under `tokens`.
    ///
    /// # Errors
    /// Returns a sentence for each fault, which names the entry and the field, and repeats no value.
    pub fn read(document: &serde_json::Value) -> Result<Self, String> {
        let only = document.as_object().filter(|members| members.len() == 1).and_then(|members| members.get("tokens")?.as_array());
        let Some(entries) = only.filter(|entries| !entries.is_empty()) else {
            return Err(
                "found no list of entries; write `tokens:` and a list of {name, sha256, tenant, agents, rate_per_second}".to_owned()
            );
        };
        let (mut callers, mut names) = (HashMap::new(), Vec::new());
        for (index, entry) in entries.iter().enumerate() {
            let fault = |words: &str| format!("tokens[{index}]{words}");
            // The message of the parser may repeat a value, which may be a token.
            let entry = Entry::deserialize(entry).map_err(|_| {
                fault(": found an entry of another form; write name, sha256, and as you like tenant, agents (a list) and rate_per_second")
            })?;
            let digest = hex::bytes(&entry.sha256).map(Digest::from_bytes).ok_or_else(|| {
                fault(".sha256: found a text that is no SHA-256 digest; write its 64 hex digits: printf %s TOKEN | sha256sum")
            })?;
            if entry.name.is_empty() || names.contains(&entry.name) {
                return Err(fault(".name: found an empty name, or a name for the second time; give each entry a name of its own"));
            }
            if entry.rate_per_second == Some(0) {
                return Err(fault(".rate_per_second: found 0, which lets nothing pass; write 1 or more, or remove the entry"));
            }
            let is_wrong = |agent: &String| agent.is_empty() || agent.chars().any(char::is_control);
            if entry.agents.as_ref().is_some_and(|agents| agents.is_empty() || agents.iter().any(is_wrong)) {
                return Err(fault(".agents: found an empty list or an empty name; name agents, in which * stands for any characters"));
            }
            names.push(entry.name.clone());
            let caller = Caller {
                name: entry.name,
                tenant: entry.tenant.filter(|tenant| !tenant.is_empty()),
                agents: entry.agents.map(|agents| Arc::new(ToolPatterns::new(agents))),
                rate: entry.rate_per_second.map(|rate| Arc::new(Rate::new(rate))),
            };
            if callers.insert(digest, Arc::new(caller)).is_some() {
                return Err(fault(".sha256: found a digest for the second time; give each entry a token of its own"));
            }
        }
        Ok(Self(callers))
    }

    /// Returns the caller who has this token. A token is hashed before it is looked up, so the time of that tells nothing of a token.
    #[must_use]
    pub fn caller(&self, token: &str) -> Option<Arc<Caller>> {
        self.0.get(&Digest::of(token.as_bytes())).filter(|_| !token.is_empty()).cloned()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use serde_json::json;

    fn hash(token: &str) -> String {
        Digest::of(token.as_bytes()).to_string()
    }

    #[test]
    fn a_token_names_its_caller() {
        let document = json!({"tokens": [{"name": "ci", "sha256": hash("s3cret"), "tenant": "acme", "agents": ["build-*"]}]});
        let tokens = Tokens::read(&document).unwrap();
        let caller = tokens.caller("s3cret").unwrap();
        assert_eq!((caller.name.as_str(), caller.tenant.as_deref()), ("ci", Some("acme")));
        assert!(caller.check(Some("acme"), Some("build-7")).is_ok());
        for (tenant, agent) in
            [(Some("other"), Some("build-7")), (None, Some("build-7")), (Some("acme"), Some("deploy")), (Some("acme"), None)]
        {
            assert_eq!(caller.check(tenant, agent).unwrap_err().status, StatusCode::FORBIDDEN, "{tenant:?} {agent:?}");
        }
        for wrong in ["", "s3cre", "S3CRET", &hash("s3cret")] {
            assert!(tokens.caller(wrong).is_none());
        }
    }

    #[test]
    fn an_entry_that_is_wrong_is_named_without_its_values() {
        let good = hash("x");
        let cases = [
            (json!({}), "found no list"),
            (json!("s3cret"), "found no list"),
            (json!([]), "found no list"),
            (json!([{"name": "a"}]), "[0]: found an entry of another form"),
            (json!([{"name": "a", "sha256": good, "tennant": "b"}]), "[0]: found an entry of another form"),
            (json!([{"name": "a", "sha256": "s3cret"}]), "[0].sha256: found a text that is no SHA-256 digest"),
            (json!([{"name": "", "sha256": good}]), "[0].name"),
            (json!([{"name": "a", "sha256": good}, {"name": "a", "sha256": hash("y")}]), "[1].name"),
            (json!([{"name": "a", "sha256": good}, {"name": "b", "sha256": good}]), "[1].sha256: found a digest for the second time"),
            (json!([{"name": "a", "sha256": good, "agents": []}]), "[0].agents"),
            (json!([{"name": "a", "sha256": good, "rate_per_second": 0}]), "[0].rate_per_second"),
        ];
        for (document, words) in cases {
            let fault = Tokens::read(&json!({"tokens": document})).unwrap_err();
            assert!(fault.contains(words) && !fault.contains("s3cret"), "{fault}");
        }
    }

    #[test]
    fn a_rate_holds_a_seconds_requests() {
        let (rate, start) = (Rate::new(2), Instant::now());
        assert!(rate.takes(start) && rate.takes(start) && !rate.takes(start));
        assert!(rate.takes(start + Duration::from_millis(500)) && !rate.takes(start + Duration::from_millis(600)));
        assert!(rate.takes(start + Duration::from_secs(60)), "time that stood still gathers no more than a second's requests");
    }
}
