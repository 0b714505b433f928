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
    ServeSettings {
        listen,
        tokens,
        partition: section.u32("partition"),
        deadline_ms: section.positive("deadline_ms"),
        in_flight_max: section.positive("in_flight_max"),
        remembered_max: section.positive("remembered_max"),
        body_bytes_max: section.positive("body_bytes_max"),
        connections_max: section.positive("connections_max"),
    }
}
