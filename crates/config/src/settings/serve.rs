//! The `serve` section: HTTP in front of the gate.

use std::net::SocketAddr;

use serde::Serialize;

use tollgate_core::settings::Section;

/// The settings of `tollgate serve`, and of `tollgate run --serve`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ServeSettings {
    /// The address and port to listen on.
    pub listen: SocketAddr,
    /// The file of hashed tokens, which says who may ask for whom. Without a file, only loopback addresses are listened on.
    pub tokens: Option<String>,
    /// The files of TLS. Without them the server speaks plain HTTP.
    pub tls: Option<ServeTls>,
    /// The partition of the replies topic that this server alone reads.
    pub partition: u32,
    /// How long a request waits for its verdicts where it does not say how long, in milliseconds.
    pub deadline_ms: u32,
    /// How many events may wait for a verdict at once.
    pub in_flight_max: u32,
    /// How many verdicts are remembered for requests that are repeated.
    pub remembered_max: u32,
    /// The largest body of a request, unpacked, in bytes.
    pub body_bytes_max: u32,
    /// How many connections there may be at once.
    pub connections_max: u32,
    /// How long a server that was asked to stop still takes requests, in milliseconds. It is not ready meanwhile, so that balancers send new
    /// requests elsewhere.
    pub stop_delay_ms: u32,
}

/// The files of TLS, in PEM. A changed file is taken over without a restart.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ServeTls {
    /// The server's certificate, and behind it the certificates of its issuers.
    pub certificate_file: String,
    /// The private key of the certificate, unencrypted.
    pub key_file: String,
    /// The authorities of clients. Without them no client is asked for a certificate.
    pub client_ca_file: Option<String>,
}

/// Where a server listens if the configuration names no address.
const LOOPBACK: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 7878);

impl ServeSettings {
    /// Sets the address to listen on, as this option of a command line does.
    ///
    /// # Errors
    /// Returns a sentence for people if others could reach the address and there are no tokens.
    pub fn set_listen(&mut self, option: &str, listen: SocketAddr) -> Result<(), String> {
        if is_open(listen, self.tokens.as_deref()) {
            return Err(format!("{option}: found {OPEN}; {NAME_TOKENS}"));
        }
        self.listen = listen;
        Ok(())
    }
}

/// The longest time that a request may wait for its verdicts, in milliseconds. A server that stops waits for those that have begun.
const DEADLINE_MS_MAX: u32 = 60_000;

/// The longest time for which a server that was asked to stop takes requests, in milliseconds.
const STOP_DELAY_MS_MAX: u32 = 600_000;

/// Returns whether anybody could ask a server at this address.
fn is_open(listen: SocketAddr, tokens: Option<&str>) -> bool {
    tokens.is_none() && !listen.ip().is_loopback()
}

/// What is found where anybody could ask.
const OPEN: &str = "an address that others can reach, and no serve.tokens";
/// What to do about that.
const NAME_TOKENS: &str = "name a file of hashed tokens in serve.tokens, or listen on a loopback address such as 127.0.0.1:7878";

pub(super) fn read(root: &Section<'_>) -> ServeSettings {
    let section = root.section("serve");
    let (text, tokens) = (section.string("listen"), section.optional_string("tokens"));
    let listen = text.parse().unwrap_or_else(|_| {
        // An empty string is a fault already.
        if !text.is_empty() {
            section.fault("listen", "a string that is no address with a port", "write an address such as 127.0.0.1:7878 or 0.0.0.0:7878");
        }
        LOOPBACK
    });
    if is_open(listen, tokens.as_deref()) {
        section.fault("listen", OPEN, NAME_TOKENS);
    }
    let deadline_ms = section.positive("deadline_ms");
    if deadline_ms > DEADLINE_MS_MAX {
        section.fault(
            "deadline_ms",
            "more than the minute that a request may wait",
            "write at most 60000; whoever waits for longer asks again",
        );
    }
    let stop_delay_ms = section.u32("stop_delay_ms");
    if stop_delay_ms > STOP_DELAY_MS_MAX {
        section.fault("stop_delay_ms", "more than ten minutes", "write at most 600000; balancers notice within seconds");
    }
    let tls = read_tls(&section, tokens.is_some());
    ServeSettings {
        listen,
        tokens,
        tls,
        partition: section.u32("partition"),
        deadline_ms,
        in_flight_max: section.positive("in_flight_max"),
        remembered_max: section.positive("remembered_max"),
        body_bytes_max: section.positive("body_bytes_max"),
        connections_max: section.positive("connections_max"),
        stop_delay_ms,
    }
}

fn read_tls(section: &Section<'_>, has_tokens: bool) -> Option<ServeTls> {
    let tls = section.section("tls");
    let file = |key| tls.optional_string(key);
    let (certificate, key, client_ca_file) = (file("certificate_file"), file("key_file"), file("client_ca_file"));
    if client_ca_file.is_some() && !has_tokens {
        tls.fault(
            "client_ca_file",
            "a file, and no serve.tokens, so that no certificate of a client names a caller",
            "name the file of callers in serve.tokens, or remove client_ca_file",
        );
    }
    match (certificate, key) {
        (Some(certificate_file), Some(key_file)) => return Some(ServeTls { certificate_file, key_file, client_ca_file }),
        (Some(_), None) => tls.fault("key_file", "nothing beside certificate_file", "name the file of the certificate's private key"),
        (None, Some(_)) => tls.fault("certificate_file", "nothing beside key_file", "name the file of the key's certificate"),
        (None, None) if client_ca_file.is_some() => {
            tls.fault("certificate_file", "nothing beside client_ca_file", "name the files of the server's certificate and key too");
        }
        (None, None) => {}
    }
    None
}
