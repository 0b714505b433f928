//! The one token that all clients share, and its renewal. Nobody waits for a token endpoint while the last token is still good.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::settings::OauthSettings;
use super::token::Token;
use crate::host_time::now_ms;

/// How long a client waits for the first token of the process. The endpoint gets a little less. Nobody waits for a later one: whoever asks
/// may be the thread that decides.
const WAIT_MAX: Duration = Duration::from_secs(7);
/// How long after a failure the endpoint is left alone. Every client asks again by itself.
const RETRY_PAUSE: Duration = Duration::from_secs(2);
/// A token that ends within this time is not handed out any more, in milliseconds.
const REST_MIN_MS: i64 = 1_000;

/// A source of tokens.
#[derive(Debug)]
pub struct TokenSource {
    /// Where they come from.
    pub settings: OauthSettings,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    token: Option<Token>,
    /// Whether the endpoint is being asked.
    is_asking: bool,
    /// The last failure, with its time.
    failure: Option<(Instant, String)>,
}

impl TokenSource {
    /// Returns a source that has no token yet.
    pub fn new(settings: OauthSettings) -> Self {
        Self { settings, state: Mutex::default(), changed: Condvar::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the last token that was handed out.
    pub fn known(&self) -> Option<Token> {
        self.state().token.clone()
    }

    /// Returns a token that is good for a while.
    ///
    /// # Errors
    /// Why there is none, for people.
    pub fn token(self: &Arc<Self>) -> Result<Token, String> {
        if let OauthSettings::File(path) = &self.settings {
            let text = std::fs::read_to_string(path).map_err(|error| format!("{path} cannot be read ({error})"))?;
            let token = Token::read(&text, None, now_ms()).map_err(|what| format!("{path}: {what}"))?;
            self.state().token = Some(token.clone());
            return Ok(token);
        }
        let deadline = Instant::now() + WAIT_MAX;
        let mut state = self.state();
        loop {
            let now_ms = now_ms();
            let good = state.token.clone().filter(|token| token.expires_ms > now_ms + REST_MIN_MS);
            let has_just_failed = state.failure.as_ref().is_some_and(|(at, _)| at.elapsed() < RETRY_PAUSE);
            let is_due = good.as_ref().is_none_or(|token| token.renew_ms() <= now_ms);
            if is_due && !state.is_asking && !has_just_failed {
                state.is_asking = self.ask();
            }
            if let Some(token) = good {
                return Ok(token);
            }
            // The answer to a question that is under way is there when librdkafka asks again.
            if state.token.is_some() || !state.is_asking || Instant::now() >= deadline {
                let failure = state.failure.as_ref().map(|(_, what)| what.clone());
                return Err(failure.unwrap_or_else(|| "the token endpoint has not answered yet".to_owned()));
            }
            state = self.changed.wait_timeout(state, RETRY_PAUSE).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Has the endpoint asked on a thread of its own, and returns whether it is.
    fn ask(self: &Arc<Self>) -> bool {
        let source = Arc::clone(self);
        let ask = move || {
            let asking = Asking(&source);
            let got = fetch(&source.settings);
            let mut state = source.state();
            match got {
                Ok(token) => (state.token, state.failure) = (Some(token), None),
                Err(what) => {
                    let is_news = state.failure.as_ref().is_none_or(|(_, before)| *before != what);
                    if is_news && state.token.is_some() {
                        tracing::warn!("the token for the brokers could not be renewed: {what}");
                    }
                    state.failure = Some((Instant::now(), what));
                }
            }
            drop(state);
            drop(asking);
        };
        std::thread::Builder::new().name("kafka-token".to_owned()).spawn(ask).is_ok()
    }
}

/// Held while the endpoint is asked, so that the next one may ask even if the thread panics.
struct Asking<'s>(&'s TokenSource);

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        self.0.state().is_asking = false;
        self.0.changed.notify_all();
    }
}

#[cfg(feature = "tls")]
fn fetch(settings: &OauthSettings) -> Result<Token, String> {
    let (text, lifetime_ms) = super::endpoint::fetch(settings)?;
    Token::read(&text.0, lifetime_ms, now_ms()).map_err(|what| format!("the token endpoint: {what}"))
}

#[cfg(not(feature = "tls"))]
fn fetch(_: &OauthSettings) -> Result<Token, String> {
    Err("this program was built without TLS".to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::settings::{Grant, SecretValue};
    use super::*;

    /// Returns a source whose endpoint takes connections and never answers.
    fn source() -> (Arc<TokenSource>, std::net::TcpListener) {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/token", listener.local_addr().unwrap());
        let grant = Grant::ClientCredentials { id: "me".to_owned(), secret: SecretValue::Written("s3cret".to_owned()) };
        let settings = OauthSettings::Endpoint { url, grant, scope: None, ca_file: None, ca_pem: None };
        (Arc::new(TokenSource::new(settings)), listener)
    }

    #[test]
    fn nobody_waits_for_an_endpoint_once_there_was_a_token() {
        let (source, _listener) = source();
        let mut token = Token::read("0123abcd", None, now_ms()).unwrap();
        source.state().token = Some(token.clone());
        assert!(source.token().is_ok() && !source.state().is_asking, "it is good for long");
        token.expires_ms = now_ms();
        source.state().token = Some(token);
        assert!(source.token().is_err());
        let state = source.state();
        // Whoever waits for the answer finds that the question is over. Without TLS there is none.
        assert!(if cfg!(feature = "tls") { state.is_asking } else { state.is_asking || state.failure.is_some() }, "it is asked meanwhile");
    }
}
