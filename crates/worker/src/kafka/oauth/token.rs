//! Tokens. Of one that is a JWT its end and its subject are read; whether it is valid is for the brokers to say.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;
use tollgate_core::settings::Secret;

/// How long a token is used that does not say when it ends, in milliseconds.
const LIFETIME_MS: i64 = 600_000;

/// A token.
#[derive(Clone)]
pub struct Token {
    /// The token as it is sent.
    pub text: Secret,
    /// Whom it names, or nothing if it does not say.
    pub subject: String,
    /// When it was got, in milliseconds since the epoch.
    pub got_ms: i64,
    /// When it ends, in milliseconds since the epoch.
    pub expires_ms: i64,
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Token").field("expires_ms", &self.expires_ms).finish_non_exhaustive()
    }
}

impl Token {
    /// Reads a token that came now. `lifetime_ms` is what the endpoint said of it.
    ///
    /// # Errors
    /// It cannot be sent, or it has ended: a sentence for people.
    pub fn read(text: &str, lifetime_ms: Option<i64>, now_ms: i64) -> Result<Self, String> {
        let text = text.trim();
        if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err("what came is no token: it is empty, or has characters that no token has".to_owned());
        }
        let claims = claims(text).unwrap_or_default();
        let end_ms = claims.get("exp").and_then(Value::as_f64).map(|seconds| (seconds * 1e3) as i64);
        let expires_ms = match (end_ms, lifetime_ms) {
            (Some(end_ms), Some(lifetime_ms)) => end_ms.min(now_ms.saturating_add(lifetime_ms)),
            (Some(end_ms), None) => end_ms,
            (None, lifetime_ms) => now_ms.saturating_add(lifetime_ms.unwrap_or(LIFETIME_MS)),
        };
        if expires_ms <= now_ms {
            return Err(format!("the token ended {} s ago; whoever writes it has to renew it", (now_ms - expires_ms) / 1_000));
        }
        let subject = claims.get("sub").and_then(Value::as_str).filter(|subject| !subject.contains('\0')).unwrap_or_default().to_owned();
        Ok(Self { text: Secret(text.to_owned()), subject, got_ms: now_ms, expires_ms })
    }

    /// Returns from when on a client that asks for a token has the next one asked for. Clients ask after four fifths of the time: the first
    /// of them still gets this token, and asks again after four fifths of the rest.
    pub fn renew_ms(&self) -> i64 {
        self.got_ms + (self.expires_ms - self.got_ms) / 10 * 7
    }
}

/// Returns the claims of a JWT, if it is one.
fn claims(text: &str) -> Option<Value> {
    let mut parts = text.split('.');
    let (_, payload, _) = (parts.next()?, parts.next()?, parts.next()?);
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(payload.trim_end_matches('=')).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn jwt(claims: &str) -> String {
        format!("e30.{}.c2ln", URL_SAFE_NO_PAD.encode(claims))
    }

    #[test]
    fn the_end_and_the_subject_are_those_of_the_token() {
        let token = Token::read(&format!("{}\n", jwt(r#"{"sub":"svc","exp":100.5}"#)), None, 50_500).unwrap();
        assert_eq!((token.subject.as_str(), token.expires_ms, token.renew_ms()), ("svc", 100_500, 85_500));
        let token = Token::read(&jwt(r#"{"sub":"svc","exp":100}"#), Some(20_000), 50_000).unwrap();
        assert_eq!(token.expires_ms, 70_000);
        let opaque = Token::read("0123abcd", None, 1_000).unwrap();
        assert_eq!((opaque.subject.as_str(), opaque.expires_ms), ("", 601_000));
        assert!(!format!("{opaque:?}").contains("0123abcd"));
    }

    #[test]
    fn what_is_no_token_or_has_ended_is_refused() {
        assert_eq!(
            Token::read(&jwt(r#"{"exp":100}"#), None, 130_000).unwrap_err(),
            "the token ended 30 s ago; whoever writes it has to renew it"
        );
        for none in ["", "\n", "a b", "<html>\n</html>"] {
            assert!(Token::read(none, None, 0).unwrap_err().starts_with("what came is no token"), "{none}");
        }
    }
}
