//! OAUTHBEARER: tokens of a token endpoint or of a file, one at a time for all clients of the process.
//!
//! librdkafka has properties for that and could ask an endpoint itself, once for every client: a worker has two for each partition, and
//! token endpoints count requests. So these properties are read here under the same names, and librdkafka asks us.
//!
//! | module | what it does |
//! |---|---|
//! | `settings` | reads the properties |
//! | `source` | holds the token and renews it in time |
//! | `token` | reads what is needed of a token: its end and its subject |
//! | `endpoint` | asks a token endpoint |

#[cfg(feature = "tls")]
mod endpoint;
mod settings;
mod source;
mod token;

pub(super) use settings::{OauthSettings, is_taken_here};

use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};

use rdkafka::ClientConfig;
use rdkafka::client::OAuthToken;

use tollgate_config::settings::KafkaSettings;

use source::TokenSource;

/// The property that librdkafka hands back when it wants a token. It holds the number of the source.
pub(super) const CONFIG: &str = "sasl.oauthbearer.config";

/// The sources of tokens of this process: one, unless a test or a command has clients of several clusters.
static SOURCES: Mutex<Vec<Arc<TokenSource>>> = Mutex::new(Vec::new());

/// Sets the properties of a client that gets its tokens from here.
pub(super) fn configure(config: &mut ClientConfig, kafka: &KafkaSettings) {
    // What is wrong with them was said before the first client was made.
    if let Ok(Some(settings)) = OauthSettings::read(kafka) {
        config.set(CONFIG, source_of(settings).to_string());
    }
}

/// Returns the number of the source with these settings.
fn source_of(settings: OauthSettings) -> usize {
    let mut sources = SOURCES.lock().unwrap_or_else(PoisonError::into_inner);
    sources.iter().position(|source| source.settings == settings).unwrap_or_else(|| {
        sources.push(Arc::new(TokenSource::new(settings)));
        sources.len() - 1
    })
}

/// Returns the token for a client, for `ClientContext::generate_oauth_token` of every context. It waits for a token endpoint only if there
/// never was a token.
///
/// # Errors
/// Why there is none, for people. librdkafka asks again ten seconds later.
pub fn oauth_token(config: Option<&str>) -> Result<OAuthToken, Box<dyn Error>> {
    let number: Option<usize> = config.and_then(|config| config.parse().ok());
    let source = number.and_then(|number| SOURCES.lock().unwrap_or_else(PoisonError::into_inner).get(number).cloned());
    let token = source.ok_or("no source of tokens is configured")?.token()?;
    Ok(OAuthToken { token: token.text.0, principal_name: token.subject, lifetime_ms: token.expires_ms })
}

/// Returns the subject of the token that is in use, if one is.
pub(super) fn subject(kafka: &KafkaSettings) -> Option<String> {
    let settings = OauthSettings::read(kafka).ok().flatten()?;
    let sources = SOURCES.lock().unwrap_or_else(PoisonError::into_inner);
    let source = sources.iter().find(|source| source.settings == settings).cloned()?;
    drop(sources);
    source.known().map(|token| token.subject)
}
