//! The server that is asked: its address, the token for it, and one question.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow, bail};
use clap::Args;
use serde_json::Value;

use tollgate_core::decide::guardrail::{Dialect, HttpSettings};
use tollgate_core::settings::Secret;
use tollgate_worker::policy_servers::{EndpointError, Poster};

use super::shown;

/// Where `tollgate serve` and `tollgate dev` listen, if nothing else is said.
pub(super) const DEFAULT_URL: &str = "http://127.0.0.1:7878";
/// The largest answer, in bytes. Answers of all hosts are below a quarter of it.
const ANSWER_BYTES_MAX: u32 = 64 * 1024;

#[derive(Debug, Clone, Args)]
pub(super) struct Server {
    /// The server of Tollgate
    #[arg(long, value_name = "URL", default_value = DEFAULT_URL, value_parser = read_url)]
    pub url: String,
    /// A file with the token that the server asks for
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
}

fn read_url(text: &str) -> Result<String, String> {
    let has_scheme = text.starts_with("http://") || text.starts_with("https://");
    let is_plain = text.bytes().all(|byte| byte.is_ascii_graphic() && !b"\"'\\`$?#@&;|<>(){}*!".contains(&byte));
    if has_scheme && is_plain {
        return Ok(text.trim_end_matches('/').to_owned());
    }
    Err(format!("it is no http or https URL without query and credentials; write one such as {DEFAULT_URL}"))
}

impl Server {
    /// Posts the request of a host and returns the answer, which is a JSON object.
    pub(super) fn ask(&self, path: &str, request: Vec<u8>, deadline: Instant) -> anyhow::Result<Vec<u8>> {
        let left = deadline.saturating_duration_since(Instant::now());
        let poster = Poster::new(&self.settings(path, left)?).map_err(said)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("no runtime for HTTP")?;
        let answer =
            runtime.block_on(poster.post(request)).map_err(|fault| anyhow!("{}: {}{}", self.url, fault.cause, hint(&fault.cause)))?;
        match serde_json::from_slice(&answer) {
            Ok(Value::Object(_)) => Ok(answer),
            _ => bail!("{}: the answer is no JSON object; is this a server of Tollgate?", self.url),
        }
    }

    fn settings(&self, path: &str, left: Duration) -> anyhow::Result<HttpSettings> {
        let mut settings = HttpSettings::at("hook", format!("{}/v1/hooks/{path}", self.url), Dialect::Tollgate);
        settings.timeout_ms = u32::try_from(left.as_millis()).unwrap_or(u32::MAX);
        settings.answer_bytes_max = ANSWER_BYTES_MAX;
        if let Some(file) = &self.token_file {
            let text = std::fs::read_to_string(file).with_context(|| format!("--token-file {}: cannot be read", shown(file)))?;
            let token = text.trim();
            if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
                bail!("--token-file {}: holds no token; write the token on one line", shown(file));
            }
            settings.headers.insert("authorization".to_owned(), Secret(format!("Bearer {token}")));
        }
        Ok(settings)
    }
}

fn said(error: EndpointError) -> anyhow::Error {
    anyhow!("--url: {}", error.problem)
}

/// Returns what to do about the faults that a new installation has.
fn hint(cause: &str) -> &'static str {
    match cause {
        "the answer's status is 401" | "the answer's status is 403" => "; name a token for this host with --token-file",
        "the answer's status is 404" => "; is this a server of Tollgate?",
        _ => "",
    }
}
