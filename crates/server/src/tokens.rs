//! Who may ask for whom: the file of hashed tokens and of names of certificates. It is pure: the file is read elsewhere.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use axum::http::StatusCode;
use serde::Deserialize;

use tollgate_core::decide::tools::ToolPatterns;
use tollgate_json::digest::Digest;

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
    /// The agent of events that name none: the only one that it may speak for.
    pub agent: Option<String>,
    /// The user that its events belong to; `None` leaves the user to the events.
    pub user: Option<String>,
    /// How many requests it may send.
    rate: Option<Arc<Rate>>,
}

impl Caller {
    /// Returns the caller of a server without tokens, which listens on loopback alone.
    #[must_use]
    pub fn anyone() -> Self {
        Self { name: "loopback".to_owned(), tenant: None, agents: None, agent: None, user: None, rate: None }
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
        if self.tenant.is_some() && tenant.is_none() {
            let message = "tenant_id: found nothing; name the token's tenant in the `data` of a CloudEvent, which stays as it is";
            return refused("tenant_not_allowed", message);
        }
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

    /// Checks for which user an event speaks.
    ///
    /// # Errors
    /// Returns a [`Refusal`] that repeats no value.
    pub fn check_user(&self, user: Option<&str>) -> Result<(), Refusal> {
        if self.user.is_none() || self.user.as_deref() == user {
            return Ok(());
        }
        let message = "user_id: found another user than this token may speak for; leave user_id out, or use that user's token";
        Err(Refusal::new(StatusCode::FORBIDDEN, "user_not_allowed", message))
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

/// The names in the verified certificate of a client, as [`certificate_name`] writes them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peer(pub Vec<String>);

/// Returns the one spelling of a certificate's name: `DNS:` and the name in lower case, or `URI:` and the URI as it stands. `None` if the text
/// names nothing that a certificate is compared with.
#[must_use]
pub fn certificate_name(text: &str) -> Option<String> {
    let (kind, name) = text.split_once(':')?;
    let is_plain = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_graphic());
    match kind {
        "DNS" if is_plain && !name.contains(['*', '/', ':']) => Some(format!("DNS:{}", name.to_ascii_lowercase())),
        "URI" if is_plain && name.contains(':') => Some(text.to_owned()),
        _ => None,
    }
}

/// The callers, by the digests of their tokens and by the names in their certificates.
#[derive(Debug, Default)]
pub struct Tokens {
    by_token: HashMap<Digest, Arc<Caller>>,
    by_certificate: HashMap<String, Arc<Caller>>,
}

/// An entry of the file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    name: String,
    #[serde(default)]
    sha256: Option<String>,
    #[serde(default)]
    certificate: Option<String>,
    #[serde(default)]
    tenant: Option<String>,
    #[serde(default)]
    agents: Option<Vec<String>>,
    #[serde(default)]
    user: Option<String>,
    #[serde(default)]
    rate_per_second: Option<u32>,
}

/// What a caller shows.
enum Proof {
    Token(Digest),
    Certificate(String),
}

impl Entry {
    /// Returns what the entry's caller shows.
    fn proof(&self) -> Result<Proof, &'static str> {
        match (&self.sha256, &self.certificate) {
            (Some(digest), None) => Digest::parse(&digest.to_ascii_lowercase()).map(Proof::Token).ok_or(
                ".sha256: found a text that is no SHA-256 digest; write its 64 hex digits: printf %s TOKEN | sha256sum | cut -d' ' -f1",
            ),
            (None, Some(name)) => certificate_name(name).map(Proof::Certificate).ok_or(
                ".certificate: found a text that is no name of a certificate; write a subject alternative name in full, such as \
                 DNS:build.example.org or URI:spiffe://example.org/build",
            ),
            _ => Err(": found both or neither of sha256 and certificate; write the one that the caller shows"),
        }
    }

    /// Checks what else the entry holds.
    fn check(&self, names: &HashSet<String>) -> Result<(), &'static str> {
        if self.name.is_empty() || names.contains(&self.name) {
            return Err(".name: found an empty name, or a name for the second time; give each entry a name of its own");
        }
        if self.rate_per_second == Some(0) {
            return Err(".rate_per_second: found 0, which lets nothing pass; write 1 or more, or remove the entry");
        }
        let is_empty = |text: &Option<String>| text.as_ref().is_some_and(String::is_empty);
        if is_empty(&self.tenant) {
            return Err(".tenant: found an empty text, which is no tenant; leave it out for a token that may speak for any tenant");
        }
        if is_empty(&self.user) {
            return Err(".user: found an empty text, which is no user; leave it out for a token that may speak for any user");
        }
        let is_wrong = |agent: &String| agent.is_empty() || agent.chars().any(char::is_control);
        if self.agents.as_ref().is_some_and(|agents| agents.is_empty() || agents.iter().any(is_wrong)) {
            return Err(".agents: found an empty list or an empty name; name agents, in which * stands for any characters");
        }
        Ok(())
    }

    fn caller(self) -> Caller {
        let only = self.agents.as_deref().and_then(|agents| if let [agent] = agents { Some(agent) } else { None });
        Caller {
            agent: only.filter(|agent| !agent.contains('*')).cloned(),
            user: self.user,
            name: self.name,
            tenant: self.tenant,
            agents: self.agents.map(|agents| Arc::new(ToolPatterns::new(agents))),
            rate: self.rate_per_second.map(|rate| Arc::new(Rate::new(rate))),
        }
    }
}

impl Tokens {
    /// Reads the file's document: a list of entries under `tokens`.
    ///
    /// # Errors
    /// Returns a sentence for each fault, which names the entry and the field, and repeats no value.
    pub fn read(document: &serde_json::Value) -> Result<Self, String> {
        let only = document.as_object().filter(|members| members.len() == 1).and_then(|members| members.get("tokens")?.as_array());
        // An empty list revokes all tokens.
        let Some(entries) = only else {
            return Err(
                "found no list of entries; write `tokens:` and a list of {name, sha256 or certificate, tenant, agents, user, rate_per_second}"
                    .to_owned(),
            );
        };
        let (mut tokens, mut names) = (Self::default(), HashSet::new());
        for (index, entry) in entries.iter().enumerate() {
            let fault = |words: &str| format!("tokens[{index}]{words}");
            // The message of the parser may repeat a value, which may be a token.
            let entry = Entry::deserialize(entry).map_err(|_| {
                fault(
                    ": found an entry of another form; write name, sha256 or certificate, and as you like tenant, agents (a list), user \
                     and rate_per_second",
                )
            })?;
            let proof = entry.proof().map_err(fault)?;
            entry.check(&names).map_err(fault)?;
            names.insert(entry.name.clone());
            let caller = Arc::new(entry.caller());
            let (before, key) = match proof {
                Proof::Token(digest) => (tokens.by_token.insert(digest, caller), "sha256"),
                Proof::Certificate(name) => (tokens.by_certificate.insert(name, caller), "certificate"),
            };
            if before.is_some() {
                return Err(fault(&format!(
                    ".{key}: found the same for the second time; give each entry a token or certificate of its own"
                )));
            }
        }
        Ok(tokens)
    }

    /// Returns the caller who has this token. A token is hashed before it is looked up, so the time of that tells nothing of a token.
    #[must_use]
    pub fn caller(&self, token: &str) -> Option<Arc<Caller>> {
        self.by_token.get(&Digest::of(token.as_bytes())).filter(|_| !token.is_empty()).cloned()
    }

    /// Returns the caller whose certificate has these names; `None` if it is nobody's.
    ///
    /// # Errors
    /// Returns a [`Refusal`] if the names are those of several callers.
    pub fn of_certificate(&self, peer: &Peer) -> Result<Option<Arc<Caller>>, Refusal> {
        let named: HashMap<_, _> =
            peer.0.iter().filter_map(|name| self.by_certificate.get(name)).map(|caller| (caller.name.as_str(), caller)).collect();
        if named.len() > 1 {
            let message =
                "certificate: found names of several entries of serve.tokens in one certificate; use a certificate for each caller";
            return Err(Refusal::new(StatusCode::UNAUTHORIZED, "two_callers", message));
        }
        Ok(named.into_values().next().cloned())
    }

    /// Returns whether there are callers who show certificates.
    #[must_use]
    pub fn has_certificates(&self) -> bool {
        !self.by_certificate.is_empty()
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
        assert!(caller.check(Some("acme"), Some("build-7")).is_ok() && caller.check_user(Some("anybody")).is_ok());
        for (tenant, agent) in
            [(Some("other"), Some("build-7")), (None, Some("build-7")), (Some("acme"), Some("deploy")), (Some("acme"), None)]
        {
            assert_eq!(caller.check(tenant, agent).unwrap_err().status, StatusCode::FORBIDDEN, "{tenant:?} {agent:?}");
        }
        let document = json!({"tokens": [{"name": "ada", "sha256": hash("s3cret"), "agents": ["coder"], "user": "ada"}]});
        let desk = Tokens::read(&document).unwrap().caller("s3cret").unwrap();
        assert_eq!((caller.agent.as_deref(), desk.agent.as_deref(), desk.user.as_deref()), (None, Some("coder"), Some("ada")));
        assert!(desk.check(None, Some("coder")).is_ok() && desk.check_user(Some("ada")).is_ok());
        assert_eq!(desk.check_user(Some("bob")).unwrap_err().code, "user_not_allowed");
        for wrong in ["", "s3cre", "S3CRET", &hash("s3cret")] {
            assert!(tokens.caller(wrong).is_none());
        }
    }

    #[test]
    fn an_empty_list_revokes_all_tokens() {
        assert!(Tokens::read(&json!({"tokens": []})).unwrap().caller("x").is_none());
    }

    #[test]
    fn an_entry_that_is_wrong_is_named_without_its_values() {
        let good = hash("x");
        let cases = [
            (json!({}), "found no list"),
            (json!("s3cret"), "found no list"),
            (json!([{"name": "a"}]), "[0]: found both or neither"),
            (json!([{"name": "a", "sha256": good, "tennant": "b"}]), "[0]: found an entry of another form"),
            (json!([{"name": "a", "sha256": "s3cret"}]), "[0].sha256: found a text that is no SHA-256 digest"),
            (json!([{"name": "", "sha256": good}]), "[0].name"),
            (json!([{"name": "a", "sha256": good}, {"name": "a", "sha256": hash("y")}]), "[1].name"),
            (json!([{"name": "a", "sha256": good}, {"name": "b", "sha256": good}]), "[1].sha256: found the same for the second time"),
            (json!([{"name": "a", "sha256": good, "certificate": "DNS:a"}]), "[0]: found both or neither"),
            (json!([{"name": "a", "certificate": "s3cret"}]), "[0].certificate: found a text that is no name"),
            (json!([{"name": "a", "certificate": "DNS:*.s3cret"}]), "[0].certificate"),
            (json!([{"name": "a", "certificate": "CN:s3cret"}]), "[0].certificate"),
            (json!([{"name": "a", "certificate": "URI:s3cret"}]), "[0].certificate"),
            (json!([{"name": "a", "certificate": "DNS:A.b"}, {"name": "b", "certificate": "DNS:a.B"}]), "[1].certificate: found the same"),
            (json!([{"name": "a", "sha256": good, "agents": []}]), "[0].agents"),
            (json!([{"name": "a", "sha256": good, "tenant": ""}]), "[0].tenant: found an empty text"),
            (json!([{"name": "a", "sha256": good, "user": ""}]), "[0].user: found an empty text"),
            (json!([{"name": "a", "sha256": good, "rate_per_second": 0}]), "[0].rate_per_second"),
        ];
        for (document, words) in cases {
            let fault = Tokens::read(&json!({"tokens": document})).unwrap_err();
            assert!(fault.contains(words) && !fault.contains("s3cret"), "{fault}");
        }
    }

    #[test]
    fn a_certificate_names_its_caller() {
        let document = json!({"tokens": [
            {"name": "build", "certificate": "DNS:Build.example.org", "tenant": "acme"},
            {"name": "deploy", "certificate": "URI:spiffe://example.org/deploy"},
            {"name": "ci", "sha256": hash("s3cret")},
        ]});
        let tokens = Tokens::read(&document).unwrap();
        let caller = |names: &[&str]| {
            let names = names.iter().filter_map(|name| certificate_name(name)).collect();
            tokens.of_certificate(&Peer(names)).map(|caller| caller.map(|caller| caller.name.clone()))
        };
        assert_eq!(caller(&["DNS:BUILD.example.org", "DNS:other"]).unwrap().as_deref(), Some("build"));
        assert_eq!(caller(&["URI:spiffe://example.org/deploy"]).unwrap().as_deref(), Some("deploy"));
        for nobody in [&[][..], &["DNS:x.build.example.org"], &["URI:spiffe://example.org/Deploy"], &["DNS:build.example.org."]] {
            assert_eq!(caller(nobody).unwrap(), None, "{nobody:?}");
        }
        assert_eq!(caller(&["DNS:build.example.org", "URI:spiffe://example.org/deploy"]).unwrap_err().code, "two_callers");
        assert!(tokens.caller("DNS:build.example.org").is_none());
    }

    #[test]
    fn a_rate_holds_a_seconds_requests() {
        let (rate, start) = (Rate::new(2), Instant::now());
        assert!(rate.takes(start) && rate.takes(start) && !rate.takes(start));
        assert!(rate.takes(start + Duration::from_millis(500)) && !rate.takes(start + Duration::from_millis(600)));
        assert!(rate.takes(start + Duration::from_secs(60)), "time that stood still gathers no more than a second's requests");
    }
}
