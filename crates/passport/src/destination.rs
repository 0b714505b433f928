//! Reading the host of a URL, for URLs on which all readers agree.
//!
//! URL parsers differ over backslashes, credentials, percent-encoded hosts, control characters and hosts beyond ASCII. Where parsers
//! differ, one host is checked and another is fetched. So none of that is accepted here, and the rest can be read in one way only.

use std::collections::HashSet;
use std::net::{IpAddr, Ipv6Addr};

use super::address;
use super::fields::{Malformed, item_path};

/// The longest URL that is read, in bytes.
const URL_BYTES_MAX: usize = 8 * 1024;
/// The longest host name, in bytes.
const HOST_BYTES_MAX: usize = 253;

/// The host that a URL leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Host {
    /// A name in lower case, without a dot at its end.
    Name(String),
    /// An address.
    Address(IpAddr),
}

impl Host {
    /// Reads the host of an absolute http or https URL. The error says what is wrong, without quoting the URL.
    pub(super) fn of_url(url: &str) -> Result<Self, &'static str> {
        if url.len() > URL_BYTES_MAX {
            return Err("URL is too long");
        }
        if url.chars().any(|character| character.is_control() || character.is_whitespace() || character == '\\') {
            return Err("URL holds white space, a control character or a backslash");
        }
        let (scheme, rest) = url.split_once("://").ok_or("URL must be an absolute http(s) URL")?;
        if !scheme.eq_ignore_ascii_case("http") && !scheme.eq_ignore_ascii_case("https") {
            return Err("URL must be an absolute http(s) URL");
        }
        // A tool that takes several addresses in a text reads the others too.
        if begins_another(rest) {
            return Err("URL may be several URLs; write each as a text of its own");
        }
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        if authority.contains(['@', '%']) {
            return Err("URL holds credentials or a percent-encoded host");
        }
        // Readers that know no end of a host but a slash take what stands in front of such an `@` for credentials.
        if rest.split('/').next().is_some_and(|beginning| beginning.contains('@')) {
            return Err("URL holds an @ in front of its first slash; write a slash behind the host");
        }
        Self::read(without_port(authority)?)
    }

    /// Reads a host in the form of URLs and lists of domains.
    fn read(host: &str) -> Result<Self, &'static str> {
        if let Some(address) = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            let address = address.parse::<Ipv6Addr>().map_err(|_| "URL holds a malformed IPv6 address")?;
            return Ok(Self::Address(IpAddr::V6(address)));
        }
        let name = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
        let is_label = |label: &str| !label.is_empty() && label.len() <= 63;
        let is_plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'));
        if name.len() > HOST_BYTES_MAX || !is_plain || !name.split('.').all(is_label) {
            return Err("URL holds a malformed host; names beyond ASCII have to be written in Punycode");
        }
        match address::read_v4(&name) {
            Ok(Some(address)) => Ok(Self::Address(IpAddr::V4(address))),
            Ok(None) => Ok(Self::Name(name)),
            Err(()) => Err("URL holds a malformed IPv4 address"),
        }
    }

    /// Returns whether the host is outside the public network, as far as its text tells. Public names are not resolved.
    pub(super) fn is_private(&self) -> bool {
        match self {
            Self::Name(name) => address::is_local_name(name),
            Self::Address(address) => address::is_private(*address),
        }
    }
}

/// Returns whether another address begins in what stands behind a scheme: two slashes, perhaps behind a scheme, a blank or a quote, behind a sign
/// with which lists are written.
fn begins_another(rest: &str) -> bool {
    rest.match_indices("//").filter_map(|(at, _)| rest.get(..at)).any(|front| {
        let scheme = |char: char| char.is_ascii_alphabetic() || "+.-".contains(char);
        let front = front.strip_suffix(':').map_or(front, |front| front.trim_end_matches(scheme));
        let front = front.trim_end_matches("%20").trim_end_matches(['\'', '"', '[', '(', '<', '{']);
        front.trim_end_matches("%20").ends_with([',', ';', '|'])
    })
}

/// Returns the address that a text is under the name of a host, if it is one in some form.
pub(super) fn host_address(text: &str) -> Option<String> {
    let host = text.trim();
    let url = if host.parse::<Ipv6Addr>().is_ok() { format!("http://[{host}]") } else { format!("http://{host}") };
    (host.contains(['.', ':']) && matches!(Host::of_url(&url), Ok(Host::Address(_)))).then_some(url)
}

fn without_port(authority: &str) -> Result<&str, &'static str> {
    let behind_address = authority.find(']').map_or(0, |bracket| bracket + 1);
    let Some(colon) = authority.get(behind_address..).and_then(|rest| rest.find(':')) else { return Ok(authority) };
    let (host, port) = authority.split_at(behind_address + colon);
    let port = port.strip_prefix(':').unwrap_or_default();
    let is_port = port.is_empty() || port.bytes().all(|byte| byte.is_ascii_digit()) && port.parse::<u16>().is_ok();
    if is_port { Ok(host) } else { Err("URL holds a malformed port") }
}

/// The domains of a list: `example.com` covers its subdomains, `*.example.com` only those, and `*` everything that is public.
#[derive(Debug, Default)]
pub(super) struct DomainSet {
    everything: bool,
    /// Domains that are covered with their subdomains.
    whole: HashSet<String>,
    /// Domains of which only the subdomains are covered.
    below: HashSet<String>,
    addresses: HashSet<IpAddr>,
    /// Ports of this machine, with its name or address as it is to be written.
    ports: HashSet<String>,
}

impl DomainSet {
    /// Returns the set of the domains of a list of what is blocked, which is at `path` in the passport.
    pub(super) fn blocking(entries: &[String], path: &str) -> Result<Self, Malformed> {
        Self::read(entries, path, false)
    }

    /// Returns the set of the domains of a list of what is allowed, which is at `path` in the passport. An entry may be a port of this machine.
    ///
    /// # Errors
    /// [`Malformed`] for an entry that would allow nothing, since it is of the private network.
    pub(super) fn allowing(entries: &[String], path: &str) -> Result<Self, Malformed> {
        Self::read(entries, path, true)
    }

    fn read(entries: &[String], path: &str, allows: bool) -> Result<Self, Malformed> {
        let mut set = Self::default();
        for (index, entry) in entries.iter().enumerate() {
            let malformed = |found| {
                let expected = "a domain such as `example.com` or `*.example.com`, a public address, or `*`";
                let port = if allows { ", or a port of this machine such as `localhost:3000`" } else { "" };
                Malformed::new(item_path(path, index), found, format!("{expected}{port}"))
            };
            let (names, domain) = match entry.strip_prefix("*.") {
                _ if entry == "*" => {
                    set.everything = true;
                    continue;
                }
                _ if allows && is_port_of_this_machine(entry) => {
                    set.ports.insert(entry.to_ascii_lowercase());
                    continue;
                }
                Some(domain) => (&mut set.below, domain),
                None => (&mut set.whole, entry.as_str()),
            };
            let host = Host::read(domain).or_else(|_| Host::read(&format!("[{domain}]"))).map_err(|_| malformed("something else"))?;
            let is_private = match &host {
                // A domain such as `com` is no host, and has public hosts.
                Host::Name(name) => address::is_local_name(&format!("any.{name}")),
                Host::Address(_) => host.is_private(),
            };
            if allows && is_private {
                return Err(malformed("a host of the private network, which no call may reach"));
            }
            let is_label = matches!(&host, Host::Name(name) if !name.contains('.') && !address::leads_near(name));
            if !allows && is_private && is_label {
                return Err(malformed("a name without the ending of a domain, which no call may reach in any case"));
            }
            match host {
                Host::Name(name) => drop(names.insert(name)),
                Host::Address(address) if !entry.starts_with('*') => drop(set.addresses.insert(address)),
                Host::Address(_) => return Err(malformed("something else")),
            }
        }
        Ok(set)
    }

    /// Returns whether an address of the web, of which the host has been read, leads to a port of this machine that the list names: in the same
    /// words, but for case.
    pub(super) fn has_port(&self, url: &str) -> bool {
        let authority = url.split_once("://").and_then(|(_, rest)| rest.split(['/', '?', '#']).next());
        !self.ports.is_empty() && authority.is_some_and(|authority| self.ports.contains(&authority.to_ascii_lowercase()))
    }

    pub(super) fn contains(&self, host: &Host) -> bool {
        match host {
            _ if self.everything => true,
            Host::Address(address) => {
                // An IPv6 address that leads to an IPv4 address is the same host.
                let embedded = if let IpAddr::V6(address) = address { address::embedded_v4(*address) } else { None };
                self.addresses.contains(address) || embedded.is_some_and(|address| self.addresses.contains(&IpAddr::V4(address)))
            }
            Host::Name(name) => {
                domains(Some(name)).any(|domain| self.whole.contains(domain))
                    || domains(parent(name)).any(|domain| self.below.contains(domain))
            }
        }
    }
}

/// Returns whether an entry is a port of this machine: its name or its address, as nearly everybody writes them, and a port.
fn is_port_of_this_machine(entry: &str) -> bool {
    let is_port = |port: &str| port.parse::<u16>().is_ok_and(|number| number > 0 && number.to_string() == port);
    entry.rsplit_once(':').is_some_and(|(host, port)| ["localhost", "127.0.0.1", "[::1]"].contains(&host) && is_port(port))
}

/// Returns a domain and all domains that contain it.
fn domains(first: Option<&str>) -> impl Iterator<Item = &str> {
    std::iter::successors(first, |domain| parent(domain))
}

fn parent(domain: &str) -> Option<&str> {
    domain.split_once('.').map(|(_, parent)| parent)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(url: &str) -> Result<String, &'static str> {
        Host::of_url(url).map(|host| match host {
            Host::Name(name) => name,
            Host::Address(address) => address.to_string(),
        })
    }

    #[test]
    fn hosts_are_read_in_one_way() {
        for (url, expected) in [
            ("https://EXAMPLE.com./path?u=evil.io#x", "example.com"),
            ("HTTP://example.com:8080", "example.com"),
            ("http://example.com:/", "example.com"),
            ("http://0x7f.1/", "127.0.0.1"),
            ("http://2130706433", "127.0.0.1"),
            ("http://[::ffff:127.0.0.1]:80/", "::ffff:127.0.0.1"),
            ("https://example.com?x=y", "example.com"),
            ("https://example.com/?x@y", "example.com"),
            ("https://example.com/a,b//c?u=https://x.io/", "example.com"),
        ] {
            assert_eq!(name(url).as_deref(), Ok(expected), "{url}");
        }
    }

    #[test]
    fn what_parsers_differ_over_is_refused() {
        for url in [
            "",
            "example.com",
            "//example.com",
            "http:example.com",
            "http:/example.com",
            "http:///example.com",
            "ftp://example.com",
            "file:///etc/passwd",
            " http://example.com",
            "http://exam\tple.com",
            "http://example.com\n",
            "http://example.com\\@evil.io",
            "http://user@example.com",
            "https://example.com?x@y",
            "https://example.com#@evil.io/",
            "http://user:pass@example.com",
            "http://ex%61mple.com",
            "http://example.com%2f.evil.io",
            "http://exämple.com",
            "http://１２７.0.0.1",
            "http://example..com",
            "http://.example.com",
            "http://",
            "http://?x",
            "http://[::1",
            "http://[fe80::1%25eth0]/",
            "http://::1/",
            "http://example.com:80:80",
            "http://example.com:99999",
            "http://example.com:+80",
            "http://1.2.3.4.5",
            "http://a_b!c",
            "https://example.com/,https://evil.io/",
            "https://example.com/;HTTP://evil.io/",
            "https://example.com/,ftp://evil.io",
            "https://example.com/,//evil.io",
            "https://example.com/,%20https://evil.io/",
            "https://example.com/,'https://evil.io'",
            "https://example.com/,[https://evil.io/]",
            "https://example.com/;ws://10.0.0.1",
        ] {
            assert!(name(url).is_err(), "{url}");
        }
        assert!(name(&format!("http://example.com/{}", "x".repeat(URL_BYTES_MAX))).is_err());
    }

    #[test]
    fn domains_cover_their_subdomains() {
        let owned = |entries: &[&str]| entries.iter().map(|entry| (*entry).to_owned()).collect::<Vec<_>>();
        let set = |entries: &[&str]| DomainSet::blocking(&owned(entries), "p");
        let listed = set(&["Example.com", "*.github.com", "8.8.8.8", "::1"]).unwrap();
        for (url, expected) in [
            ("https://example.com", true),
            ("https://a.b.example.com", true),
            ("https://notexample.com", false),
            ("https://example.com.evil.io", false),
            ("https://github.com", false),
            ("https://api.github.com", true),
            ("https://8.8.8.8", true),
            ("https://134744072", true),
            ("https://8.8.4.4", false),
            ("https://[0:0::1]", true),
        ] {
            assert_eq!(listed.contains(&Host::of_url(url).unwrap()), expected, "{url}");
        }
        assert!(set(&["*"]).unwrap().contains(&Host::of_url("https://x.y").unwrap()));
        for entry in ["https://example.com", "example.com/x", "example.com:80", "a.*.com", "exämple.com", "*.8.8.8", ""] {
            assert!(set(&[entry]).is_err(), "{entry}");
        }
    }

    #[test]
    fn a_port_of_this_machine_is_allowed_in_its_own_words_and_nothing_else_that_is_private() {
        let set = |entry: &str| DomainSet::allowing(&[entry.to_owned()], "p");
        for (entry, url, expected) in [
            ("localhost:3000", "http://localhost:3000/a", true),
            ("localhost:3000", "https://LOCALHOST:3000", true),
            ("localhost:3000", "http://localhost:3001/", false),
            ("localhost:3000", "http://localhost/", false),
            ("localhost:3000", "http://127.0.0.1:3000/", false),
            ("localhost:3000", "http://a.localhost:3000/", false),
            ("127.0.0.1:80", "http://127.0.0.1:80?x", true),
            ("127.0.0.1:80", "http://127.1:80/", false),
            ("127.0.0.1:80", "http://127.0.0.1/", false),
            ("[::1]:8080", "http://[::1]:8080/", true),
            ("com", "http://localhost:3000/", false),
            ("*", "http://localhost:3000/", false),
        ] {
            assert_eq!(set(entry).unwrap().has_port(url), expected, "{entry} {url}");
        }
        for entry in "localhost localhost:0 localhost:03000 localhost:+80 localhost: localhost:99999 *.localhost 127.0.0.1 ::1 10.0.0.1 \
            10.0.0.1:80 169.254.169.254:80 router db.internal:5432 *.internal example.com:80"
            .split_ascii_whitespace()
        {
            assert!(set(entry).is_err(), "{entry}");
        }
    }
}
