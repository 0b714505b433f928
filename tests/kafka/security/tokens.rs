//! Signed tokens, the keys to check them with, and a token endpoint.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use openssl::hash::MessageDigest;
use openssl::pkey::{PKey, Private};
use openssl::rsa::Rsa;
use openssl::sign::Signer;
use openssl::ssl::{SslAcceptor, SslMethod};
use openssl::x509::X509;
use serde_json::json;

/// The audience of the tokens.
pub const AUDIENCE: &str = "kafka";

/// Signs tokens.
#[derive(Clone)]
pub struct TokenSigner(PKey<Private>);

impl TokenSigner {
    pub fn new() -> Result<Self> {
        Ok(Self(PKey::from_rsa(Rsa::generate(2048)?)?))
    }

    /// Returns the keys to check tokens with, as JSON.
    pub fn keys(&self) -> Result<String> {
        let rsa = self.0.rsa()?;
        let (n, e) = (URL_SAFE_NO_PAD.encode(rsa.n().to_vec()), URL_SAFE_NO_PAD.encode(rsa.e().to_vec()));
        Ok(json!({"keys": [{"kty": "RSA", "use": "sig", "alg": "RS256", "kid": "test", "n": n, "e": e}]}).to_string())
    }

    /// Returns a token for a subject that is good for so many seconds.
    pub fn token(&self, subject: &str, seconds: i64) -> Result<String> {
        let now = i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs())?;
        let part = |value: serde_json::Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let head = part(json!({"alg": "RS256", "typ": "JWT", "kid": "test"}));
        let claims = json!({"sub": subject, "aud": AUDIENCE, "iss": "test", "iat": now - 1, "exp": now + seconds, "scope": "kafka"});
        let text = format!("{head}.{}", part(claims));
        let mut signer = Signer::new(MessageDigest::sha256(), &self.0)?;
        signer.update(text.as_bytes())?;
        Ok(format!("{text}.{}", URL_SAFE_NO_PAD.encode(signer.sign_to_vec()?)))
    }
}

/// A token endpoint with TLS, which gives tokens to one client.
pub struct TokenEndpoint {
    pub url: String,
    given: Arc<AtomicUsize>,
}

impl TokenEndpoint {
    /// Starts an endpoint that gives whoever has this name and secret tokens for that name, good for so many seconds.
    pub fn start(signer: TokenSigner, certificate: &str, key: &str, client: &str, secret: &str, seconds: i64) -> Result<Self> {
        let mut acceptor = SslAcceptor::mozilla_intermediate_v5(SslMethod::tls_server())?;
        let (certificate, key) = (X509::from_pem(certificate.as_bytes())?, PKey::private_key_from_pem(key.as_bytes())?);
        acceptor.set_certificate(&certificate)?;
        acceptor.set_private_key(&key)?;
        let acceptor = acceptor.build();
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let url = format!("https://127.0.0.1:{}/token", listener.local_addr()?.port());
        let given = Arc::new(AtomicUsize::new(0));
        let (counter, client) = (Arc::clone(&given), client.to_owned());
        let basic = format!("Basic {}", STANDARD.encode(format!("{client}:{secret}")));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let Ok(mut stream) = acceptor.accept(stream) else { continue };
                let Ok(request) = read_request(&mut stream) else { continue };
                let is_known = request.lines().any(|line| {
                    line.split_once(": ").is_some_and(|(name, value)| name.eq_ignore_ascii_case("authorization") && value == basic)
                });
                let is_asked = request.ends_with("grant_type=client_credentials&scope=kafka%20all");
                let (status, body) = match (is_known && is_asked, signer.token(&client, seconds)) {
                    (true, Ok(token)) => {
                        counter.fetch_add(1, Ordering::Relaxed);
                        ("200 OK", json!({"access_token": token, "token_type": "Bearer", "expires_in": seconds}))
                    }
                    _ => ("401 Unauthorized", json!({"error": "invalid_client", "error_description": "who are you"})),
                };
                let body = body.to_string();
                let head = format!(
                    "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                    body.len()
                );
                let _answered = stream.write_all((head + &body).as_bytes());
                let _ended = stream.shutdown();
            }
        });
        Ok(Self { url, given })
    }

    /// Returns how many tokens it has given.
    pub fn given(&self) -> usize {
        self.given.load(Ordering::Relaxed)
    }
}

/// Reads a request with its body.
fn read_request(stream: &mut impl Read) -> Result<String> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let count = stream.read(&mut buffer)?;
        bytes.extend_from_slice(buffer.get(..count).context("a count")?);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse::<usize>().ok());
            if body.len() >= length.unwrap_or_default() {
                return Ok(text);
            }
        }
        anyhow::ensure!(count > 0, "the request broke off");
    }
}
