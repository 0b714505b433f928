//! The parsers that are asked: of curl, Python, Node and Rust.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use serde_json::Value;

use crate::Fault;
use crate::peer::Peer;

/// Reads URLs with `urllib.parse`.
const PYTHON: &str = r#"
import json, sys
from urllib.parse import urlsplit
print("ready", flush=True)
for line in sys.stdin:
    try:
        split = urlsplit(json.loads(line))
        split.port
        answer = [split.scheme, split.hostname]
    except ValueError:
        answer = None
    print(json.dumps(answer), flush=True)
"#;

/// Reads URLs with libcurl's own parser.
const CURL: &str = r#"
import ctypes, json, sys
curl = ctypes.CDLL("libcurl.so.4")
curl.curl_url.restype = ctypes.c_void_p
curl.curl_url_set.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint]
curl.curl_url_get.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.POINTER(ctypes.c_char_p), ctypes.c_uint]
curl.curl_url_cleanup.argtypes = [ctypes.c_void_p]
def part(handle, which):
    text = ctypes.c_char_p()
    return None if curl.curl_url_get(handle, which, ctypes.byref(text), 0) else text.value.decode("utf-8", "replace")
print("ready", flush=True)
for line in sys.stdin:
    handle = curl.curl_url()
    failed = curl.curl_url_set(handle, 0, json.loads(line).encode(), 0)
    print(json.dumps(None if failed else [part(handle, 1), part(handle, 5)]), flush=True)
    curl.curl_url_cleanup(handle)
"#;

/// Reads URLs as browsers do.
const NODE: &str = r#"
const lines = require("readline").createInterface({ input: process.stdin });
console.log("ready");
lines.on("line", (line) => {
    let answer = null;
    try {
        const url = new URL(JSON.parse(line));
        answer = [url.protocol.replace(/:$/, ""), url.hostname];
    } catch {}
    process.stdout.write(JSON.stringify(answer) + "\n");
});
"#;

/// What a parser finds: the scheme, and the host without brackets and a dot at its end, addresses in their usual form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) scheme: String,
    pub(super) host: String,
}

/// What each parser finds in a URL, with its name; `None` where it refuses the URL.
pub(super) type Readings = Vec<(&'static str, Option<Place>)>;

/// All parsers.
#[derive(Debug)]
pub(super) struct Parsers([Peer; 3]);

impl Parsers {
    pub(super) fn start() -> Result<Self, Fault> {
        Ok(Self([
            Peer::start("curl", "python3", &["-c", CURL], "python3 and libcurl4")?,
            Peer::start("python", "python3", &["-c", PYTHON], "python3")?,
            Peer::start("node", "node", &["-e", NODE], "nodejs")?,
        ]))
    }

    /// Returns the readings of each URL.
    pub(super) fn read(&mut self, urls: &[&str]) -> Result<Vec<Readings>, Fault> {
        let mut read: Vec<Readings> = urls.iter().map(|url| vec![("rust", by_rust(url))]).collect();
        for peer in &mut self.0 {
            let (name, answers) = (peer.name(), peer.ask(urls.iter().copied())?);
            for (places, answer) in read.iter_mut().zip(answers) {
                places.push((name, place(&answer)));
            }
        }
        Ok(read)
    }
}

fn by_rust(url: &str) -> Option<Place> {
    let url = url::Url::parse(url).ok()?;
    Some(Place { scheme: url.scheme().to_owned(), host: host(url.host_str()?) })
}

fn place(answer: &Value) -> Option<Place> {
    let text = |index: usize| answer.get(index).and_then(Value::as_str);
    Some(Place { scheme: text(0)?.to_ascii_lowercase(), host: host(text(1)?) })
}

/// Returns a host as whoever resolves it understands it. Not all parsers do that themselves.
fn host(text: &str) -> String {
    let bare = text.trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase();
    let name = bare.strip_suffix('.').unwrap_or(&bare);
    if let Ok(address) = name.parse::<Ipv6Addr>() {
        return IpAddr::V6(address).to_string();
    }
    v4(name).map_or_else(|| name.to_owned(), |address| address.to_string())
}

/// Reads an IPv4 address as resolvers do (`inet_aton`).
fn v4(name: &str) -> Option<Ipv4Addr> {
    let number = |part: &str| {
        let (digits, radix) = match part.strip_prefix("0x") {
            Some("") => return Some(0),
            Some(digits) => (digits, 16),
            None if part.len() > 1 && part.starts_with('0') => (part, 8),
            None => (part, 10),
        };
        if digits.starts_with(['+', '-']) { None } else { u32::from_str_radix(digits, radix).ok() }
    };
    let parts: Option<Vec<u32>> = name.split('.').map(number).collect();
    let (last, leading) = parts.as_deref()?.split_last()?;
    let room = 4_usize.checked_sub(leading.len())?;
    let high = leading.iter().try_fold(0_u64, |sum, part| (*part < 256).then_some(sum << 8 | u64::from(*part)))?;
    let whole = (high << (8 * room)) | u64::from(*last);
    (u64::from(*last) < 1 << (8 * room)).then(|| u32::try_from(whole).ok().map(Ipv4Addr::from))?
}
