//! The server of Tollgate that a command asks: its address, the files for it, and how it is posted to.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use clap::Args;
use hyper::Uri;

use tollgate_core::decide::guardrail::{Dialect, HttpSettings};
use tollgate_core::settings::Secret;
use tollgate_server::routes::PROOF;
use tollgate_worker::policy_servers::{EndpointError, Poster, leads_here};

/// Where `tollgate serve` and `tollgate dev` listen, if nothing else is said.
pub(in crate::commands) const DEFAULT_URL: &str = "http://127.0.0.1:7878";
/// The largest answer, in bytes. Answers of all hosts are below a quarter of it.
const ANSWER_BYTES_MAX: u32 = 64 * 1024;

#[derive(Debug, Clone, Args)]
pub(in crate::commands) struct Server {
    /// The server of Tollgate
    #[arg(long, value_name = "URL", default_value = DEFAULT_URL, value_parser = read_url)]
    pub url: String,
    /// The option that names the server
    #[arg(skip = "--url")]
    pub option: &'static str,
    #[command(flatten)]
    pub files: Files,
}

// The files that a server of Tollgate is asked with. A doc comment would become the text of the commands that take them.
#[derive(Debug, Clone, Args)]
pub(in crate::commands) struct Files {
    /// A file with the token that the server of Tollgate asks for
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// A PEM file of the authorities that may vouch for an https server, in place of the system's
    #[arg(long, value_name = "FILE")]
    pub ca_file: Option<PathBuf>,
    /// A PEM file of the certificate that an https server is shown, the own certificate first
    #[arg(long, value_name = "FILE", requires = "key_file")]
    pub certificate_file: Option<PathBuf>,
    /// The PEM file of the certificate's private key
    #[arg(long, value_name = "FILE", requires = "certificate_file")]
    pub key_file: Option<PathBuf>,
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

/// Returns the address that a URL has in place of a name.
fn address(url: &str) -> Option<IpAddr> {
    let uri = url.parse::<Uri>().ok()?;
    uri.host()?.trim_start_matches('[').trim_end_matches(']').parse().ok()
}

impl Files {
    /// Returns the files, each with its option.
    pub(in crate::commands) fn each(&self) -> impl Iterator<Item = (&'static str, Option<&Path>)> {
        let files = [
            ("--token-file", &self.token_file),
            ("--ca-file", &self.ca_file),
            ("--certificate-file", &self.certificate_file),
            ("--key-file", &self.key_file),
        ];
        files.into_iter().map(|(option, file)| (option, file.as_deref()))
    }
}

impl Server {
    /// Returns whether the URL has the address of another machine, and no name.
    pub(in crate::commands) fn is_at_foreign_address(&self) -> bool {
        address(&self.url).is_some_and(|address| !address.is_loopback())
    }

    /// Checks options that only make sense together.
    ///
    /// # Errors
    /// Returns a sentence for people if a token would cross a network in plain text, or if files of TLS are named for plain http.
    pub(in crate::commands) fn check(&self) -> anyhow::Result<()> {
        if self.url.starts_with("https://") {
            return Ok(());
        }
        if self.files.token_file.is_some() && !leads_here(&self.url) {
            bail!(
                "{}: found plain http to another machine, on whose way the token can be read; write an https URL, or ask a server on this \
                 machine, such as {DEFAULT_URL}",
                self.url
            );
        }
        if self.files.ca_file.is_some() || self.files.certificate_file.is_some() {
            bail!(
                "{}: found plain http beside files of TLS, which have no effect there; write an https URL, or leave the files out",
                self.url
            );
        }
        Ok(())
    }

    /// Returns a poster to a path of the server, with the token. It takes answers of Tollgate's server alone. `timeout` is what one post may take.
    pub(in crate::commands) fn poster(&self, path: &str, timeout: Duration) -> anyhow::Result<Poster> {
        self.check()?;
        let mut settings = HttpSettings::at("server", format!("{}{path}", self.url), Dialect::Tollgate);
        settings.timeout_ms = u32::try_from(timeout.as_millis()).unwrap_or(u32::MAX);
        settings.answer_bytes_max = ANSWER_BYTES_MAX;
        let text = |file: &Option<PathBuf>| file.as_deref().map(|file| file.display().to_string());
        settings.ca_file = text(&self.files.ca_file);
        settings.client_certificate_file = text(&self.files.certificate_file);
        settings.client_key_file = text(&self.files.key_file);
        if let Some(file) = &self.files.token_file {
            settings.headers.insert("authorization".to_owned(), bearer("--token-file", file)?);
        }
        Ok(Poster::new(&settings).map_err(|error| self.wrong(&error))?.proven_by(PROOF))
    }

    fn wrong(&self, error: &EndpointError) -> anyhow::Error {
        let place = match error.key.as_str() {
            "ca_file" => "--ca-file",
            "client_certificate_file" => "--certificate-file",
            "client_key_file" => "--key-file",
            _ => &self.url,
        };
        anyhow!("{place}: {}", error.problem)
    }

    /// Returns the error of a post, with what to do about the faults that a new installation has. `timeout` is that of `--timeout`, in
    /// milliseconds.
    pub(in crate::commands) fn fault(&self, cause: &str, timeout: u32) -> anyhow::Error {
        let hint = match cause {
            "the answer's status is 401" => "; name the file of a token that this server knows with --token-file".to_owned(),
            "the answer's status is 403" => "; name a token for this host with --token-file".to_owned(),
            "the answer's status is 404" | "the answer is of another server" => "; is this a server of Tollgate?".to_owned(),
            "no answer within the deadline" => {
                format!(" of {timeout} ms (--timeout); the server may hang: look at its log, or start it anew")
            }
            _ if cause.contains("Connection refused") => {
                format!("; start the server (`tollgate serve` or `tollgate dev`), or name another server with {}", self.option)
            }
            _ => String::new(),
        };
        anyhow!("{}: {cause}{hint}", self.url)
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
