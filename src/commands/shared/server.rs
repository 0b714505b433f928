//! The server of Tollgate that a command asks: its address, the token for it, and how it is posted to.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use clap::Args;

use tollgate_core::decide::guardrail::{Dialect, HttpSettings};
use tollgate_core::settings::Secret;
use tollgate_worker::policy_servers::Poster;

/// Where `tollgate serve` and `tollgate dev` listen, if nothing else is said.
pub(in crate::commands) const DEFAULT_URL: &str = "http://127.0.0.1:7878";
/// The largest answer, in bytes. Answers of all hosts are below a quarter of it.
const ANSWER_BYTES_MAX: u32 = 64 * 1024;

#[derive(Debug, Clone, Args)]
pub(in crate::commands) struct Server {
    /// The server of Tollgate
    #[arg(long, value_name = "URL", default_value = DEFAULT_URL, value_parser = read_url)]
    pub url: String,
    /// A file with the token that the server asks for
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
}

/// Reads the URL of a server.
pub(in crate::commands) fn read_url(text: &str) -> Result<String, String> {
    let has_scheme = text.starts_with("http://") || text.starts_with("https://");
    let is_plain = text.bytes().all(|byte| byte.is_ascii_graphic() && !b"\"'\\`$?#@&;|<>(){}*!".contains(&byte));
    if has_scheme && is_plain {
        return Ok(text.trim_end_matches('/').to_owned());
    }
    Err(format!("it is no http or https URL without query and credentials; write one such as {DEFAULT_URL}"))
}

impl Server {
    /// Returns a poster to a path of the server, with the token. `timeout` is what one post may take.
    pub(in crate::commands) fn poster(&self, path: &str, timeout: Duration) -> anyhow::Result<Poster> {
        let mut settings = HttpSettings::at("server", format!("{}{path}", self.url), Dialect::Tollgate);
        settings.timeout_ms = u32::try_from(timeout.as_millis()).unwrap_or(u32::MAX);
        settings.answer_bytes_max = ANSWER_BYTES_MAX;
        if let Some(file) = &self.token_file {
            settings.headers.insert("authorization".to_owned(), bearer("--token-file", file)?);
        }
        Poster::new(&settings).map_err(|error| anyhow!("{}: {}", self.url, error.problem))
    }

    /// Returns the error of a post, with what to do about it.
    pub(in crate::commands) fn fault(&self, cause: &str) -> anyhow::Error {
        anyhow!("{}: {cause}{}", self.url, hint(cause))
    }
}

/// Returns the header `Authorization` with the token in a file that an option names.
pub(in crate::commands) fn bearer(option: &str, file: &Path) -> anyhow::Result<Secret> {
    let text = std::fs::read_to_string(file).with_context(|| format!("{option} {}: cannot be read", file.display()))?;
    let token = text.trim();
    if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        bail!("{option} {}: holds no token; write the token on one line", file.display());
    }
    Ok(Secret(format!("Bearer {token}")))
}

/// Returns what to do about the faults that a new installation has.
fn hint(cause: &str) -> &'static str {
    match cause {
        "the answer's status is 401" | "the answer's status is 403" => "; name a token for this host with --token-file",
        "the answer's status is 404" => "; is this a server of Tollgate?",
        _ => "",
    }
}
