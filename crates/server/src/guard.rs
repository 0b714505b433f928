//! Who may ask: looked at before the body of a request is read.

use std::sync::Arc;
use std::time::Instant;

use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderName, StatusCode, Uri, header};

use tollgate_config::settings::is_this_machine;

use crate::refusal::Refusal;
use crate::tokens::{Caller, Peer, Tokens};
use crate::watched::Current;

/// The headers that say how a request is read. Of two values, one reader takes the first value and another reader the last.
const ONCE: [HeaderName; 5] =
    [header::HOST, header::CONTENT_TYPE, header::CONTENT_ENCODING, header::TRANSFER_ENCODING, HeaderName::from_static("idempotency-key")];

/// Says who a request comes from.
#[derive(Debug, Clone)]
pub enum Guard {
    /// Without tokens: anybody on this machine, and no browser on behalf of a page.
    Loopback(Arc<Caller>),
    /// With tokens and names of certificates, which may be replaced.
    Tokens(Current<Tokens>),
}

impl Guard {
    /// Returns the guard of a server without tokens.
    #[must_use]
    pub fn loopback() -> Self {
        Self::Loopback(Arc::new(Caller::anyone()))
    }

    /// Returns the caller of a request. `peer` is the verified certificate of the connection, where there is one.
    ///
    /// # Errors
    /// Returns a [`Refusal`] if the request comes from nobody who may ask.
    pub fn caller(&self, uri: &Uri, headers: &HeaderMap, peer: Option<&Peer>) -> Result<Arc<Caller>, Refusal> {
        refuse_browsers(headers)?;
        refuse_repeated(headers)?;
        let caller = match self {
            Self::Loopback(caller) => {
                refuse_other_names(uri, headers)?;
                Arc::clone(caller)
            }
            Self::Tokens(tokens) => {
                let tokens = tokens.get();
                let of_certificate = peer.map_or(Ok(None), |peer| tokens.of_certificate(peer))?;
                match (of_certificate, headers.contains_key(header::AUTHORIZATION)) {
                    (Some(_), true) => return Err(two_callers()),
                    (Some(caller), false) => caller,
                    (None, _) => {
                        let token = bearer(headers)
                            .ok_or_else(|| unauthorized("no bearer token, and no client certificate that this server knows"))?;
                        tokens.caller(token).ok_or_else(|| unauthorized("a token that this server does not know"))?
                    }
                }
            }
        };
        caller.count(Instant::now())?;
        Ok(caller)
    }
}

fn unauthorized(found: &str) -> Refusal {
    let message = format!(
        "authorization: found {found}; show a token of serve.tokens (`--token-file` of Tollgate's commands, or `Authorization: Bearer TOKEN`), \
         or connect with the certificate of an entry of serve.tokens"
    );
    Refusal::new(StatusCode::UNAUTHORIZED, "unauthorized", message)
}

fn two_callers() -> Refusal {
    let message = "authorization: found a token beside a client certificate that names a caller of its own; send one of the two";
    Refusal::new(StatusCode::UNAUTHORIZED, "two_callers", message)
}

/// Returns the token of a request that has just one.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let value = values.next().filter(|_| values.next().is_none())?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim()).filter(|token| !token.is_empty())
}

/// A browser says for which page it asks. No page has anything to ask here.
fn refuse_browsers(headers: &HeaderMap) -> Result<(), Refusal> {
    if !headers.contains_key(header::ORIGIN) {
        return Ok(());
    }
    let message = "origin: found the header of a browser; pages may not ask the gate, so ask from a program";
    Err(Refusal::new(StatusCode::FORBIDDEN, "origin_not_allowed", message))
}

fn refuse_repeated(headers: &HeaderMap) -> Result<(), Refusal> {
    let is_repeated = |name: &&HeaderName| headers.get_all(*name).iter().nth(1).is_some();
    ONCE.iter().find(is_repeated).map_or(Ok(()), |name| {
        Err(Refusal::body("header_repeated", format!("{name}: found the header more than once; send the header once")))
    })
}

/// A page of a foreign site whose name was made to resolve to this machine comes with that name.
fn refuse_other_names(uri: &Uri, headers: &HeaderMap) -> Result<(), Refusal> {
    let of_header = || headers.get(header::HOST).and_then(|host| host.to_str().ok()?.parse::<Authority>().ok());
    let host = uri.authority().cloned().or_else(of_header);
    if host.is_some_and(|host| is_this_machine(host.host())) {
        return Ok(());
    }
    let message =
        "host: found another name than localhost or a loopback address; this server has no tokens, so that only this machine may ask";
    Err(Refusal::new(StatusCode::FORBIDDEN, "host_not_allowed", message))
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;
    use serde_json::json;
    use tollgate_json::digest::Digest;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, HeaderValue::from_static(value));
        }
        headers
    }

    fn code(guard: &Guard, pairs: &[(&'static str, &'static str)]) -> &'static str {
        guard.caller(&Uri::from_static("/v1/events"), &headers(pairs), None).map_or_else(|refusal| refusal.code, |_| "ok")
    }

    #[test]
    fn without_tokens_this_machine_asks_and_no_page() {
        let guard = Guard::loopback();
        for host in ["localhost:7878", "127.0.0.1:7878", "[::1]:7878", "LOCALHOST"] {
            assert_eq!(code(&guard, &[("host", host)]), "ok", "{host}");
        }
        for host in ["gate.example.org", "127.0.0.1.example.org:7878", "10.0.0.1", "localhost.evil:7878"] {
            assert_eq!(code(&guard, &[("host", host)]), "host_not_allowed", "{host}");
        }
        assert_eq!(code(&guard, &[]), "host_not_allowed");
        assert_eq!(code(&guard, &[("host", "localhost"), ("origin", "http://localhost")]), "origin_not_allowed");
        for name in ["host", "content-type", "idempotency-key"] {
            assert_eq!(code(&guard, &[("host", "localhost"), (name, "localhost"), (name, "localhost")]), "header_repeated", "{name}");
        }
    }

    #[test]
    fn with_tokens_a_known_one_is_needed() {
        let document = json!({"tokens": [{"name": "ci", "sha256": Digest::of(b"s3cret").to_string(), "rate_per_second": 1}]});
        let guard = Guard::Tokens(Current::new(Tokens::read(&document).unwrap()));
        for wrong in ["", "Bearer ", "Bearer nope", "Basic s3cret", "s3cret", "Bearer s3cret2"] {
            assert_eq!(code(&guard, &[("host", "gate.example.org"), ("authorization", wrong)]), "unauthorized", "{wrong}");
        }
        assert_eq!(code(&guard, &[("authorization", "Bearer s3cret"), ("authorization", "Bearer s3cret")]), "unauthorized", "two of them");
        for (shown, found) in [("Bearer ", "found no bearer token"), ("Bearer nope", "found a token that this server does not know")] {
            let refusal = guard.caller(&Uri::from_static("/v1/events"), &headers(&[("authorization", shown)]), None).unwrap_err();
            assert!(refusal.message.contains(found) && !refusal.message.contains("nope"), "{refusal:?}");
        }
        assert_eq!(code(&guard, &[("host", "gate.example.org"), ("authorization", "bearer s3cret")]), "ok");
        assert_eq!(code(&guard, &[("authorization", "Bearer s3cret")]), "rate_exceeded");
    }

    #[test]
    fn a_certificate_stands_for_a_token_and_not_beside_one() {
        let document = json!({"tokens": [
            {"name": "ci", "sha256": Digest::of(b"s3cret").to_string()},
            {"name": "build", "certificate": "DNS:build.example.org"},
        ]});
        let guard = Guard::Tokens(Current::new(Tokens::read(&document).unwrap()));
        let asked = |name: &str, pairs: &[(&'static str, &'static str)]| {
            let peer = Peer(vec![name.to_owned()]);
            guard
                .caller(&Uri::from_static("/v1/events"), &headers(pairs), Some(&peer))
                .map(|caller| caller.name.clone())
                .map_err(|refusal| refusal.code)
        };
        let token = [("authorization", "Bearer s3cret")];
        assert_eq!(asked("DNS:build.example.org", &[]), Ok("build".to_owned()));
        assert_eq!(asked("DNS:build.example.org", &token), Err("two_callers"));
        assert_eq!(asked("DNS:build.example.org", &[("authorization", "Bearer wrong")]), Err("two_callers"));
        assert_eq!(asked("DNS:other.example.org", &token), Ok("ci".to_owned()), "a certificate of nobody changes nothing");
        assert_eq!(asked("DNS:other.example.org", &[]), Err("unauthorized"));
    }
}
