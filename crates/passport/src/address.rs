//! Classifying hosts: which addresses and names are surely on the public network.

use std::collections::HashSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::LazyLock;

/// The top-level domains that are delegated in the root zone. A name that does not end in one of them is answered by somebody near by, or by
/// nobody.
static TOP_LEVEL_DOMAINS: LazyLock<HashSet<&str>> = LazyLock::new(|| {
    let lines = include_str!("tlds.txt").lines().filter(|line| !line.starts_with('#'));
    lines.flat_map(str::split_ascii_whitespace).collect()
});

/// Domains below delegated ones whose names lead to metadata services, to the local network or to this machine.
const LOCAL_DOMAINS: [&str; 5] = [
    // Metadata services of clouds.
    "metadata.goog metadata.tencentyun.com api.metadata.cloud.ibm.com metadata.packet.net metadata.platformequinix.com",
    // Networks of clouds' virtual machines.
    "internal.cloudapp.net",
    // Networks at home, and those between the machines of a company.
    "home.arpa ts.net",
    // Routers.
    "fritz.box myfritz.box routerlogin.net routerlogin.com tplinkwifi.net router.asus.com",
    // Names that are answered with the address that they spell, or with 127.0.0.1. There are more of them than can be known.
    "nip.io sslip.io xip.io traefik.me backname.io rbndr.us 1u.ms local.gd localtest.me lvh.me vcap.me lacolhost.com localho.st localhost.direct \
      plex.direct local-ip.co local-ip.sh smackaho.st fuf.me",
];

/// Returns whether an address is loopback, private, link-local (where clouds serve their metadata) or reserved, or leads to such an
/// address.
pub(super) fn is_private(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_private_v4(address),
        IpAddr::V6(address) => is_private_v6(address),
    }
}

/// Returns whether a name may be one of the local network: its last label is no top-level domain that is delegated, as in `localhost`,
/// `router`, `metadata.google.internal`, `kubernetes.default.svc` and `grafana.monitoring`, or it lies in a domain that is known to lead
/// there. `host` is in lower case.
pub(super) fn is_local_name(host: &str) -> bool {
    host.rsplit_once('.').is_none_or(|(_, last)| !TOP_LEVEL_DOMAINS.contains(last)) || leads_near(host)
}

/// Returns whether a name lies in a domain that is known to lead to the local network or to a metadata service.
pub(super) fn leads_near(host: &str) -> bool {
    let in_domain = |domain: &str| host.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
    LOCAL_DOMAINS.iter().flat_map(|domains| domains.split(' ')).any(in_domain)
}

fn is_private_v4(address: Ipv4Addr) -> bool {
    match address.octets() {
        [0 | 10 | 127, ..] | [169, 254, ..] | [192, 168, ..] | [198, 18 | 19, ..] | [224..=255, ..] => true,
        [172, second, ..] => (16..32).contains(&second),
        [100, second, ..] => (64..128).contains(&second),
        // A cloud serves its virtual machines' metadata on this public address.
        [168, 63, 129, 16] => true,
        // These are for IETF protocols, documentation, and the relays of 6to4.
        [192, 0, 0 | 2, _] | [198, 51, 100, _] | [203, 0, 113, _] | [192, 88, 99, _] => true,
        _ => false,
    }
}

/// Returns the IPv4 address that an IPv6 address leads to: in its compatible and mapped forms, by NAT64 and by 6to4.
pub(super) fn embedded_v4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let (high, low) = match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0 | 1] => return None,
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low]
        | [0, 0, 0, 0, 0xffff, 0, high, low]
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low]
        | [0x2002, high, low, ..] => (high, low),
        _ => return None,
    };
    let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
    Some(Ipv4Addr::new(a, b, c, d))
}

fn is_private_v6(address: Ipv6Addr) -> bool {
    if let Some(address) = embedded_v4(address) {
        return is_private_v4(address);
    }
    match address.segments() {
        // Unspecified and loopback.
        [0, 0, 0, 0, 0, 0, 0, 0 | 1] | [0x64, 0xff9b, 1, ..] => true,
        // These are for Teredo and other protocols, ORCHID, and documentation.
        [0x2001, 0..0x200, ..] | [0x2001, 0xdb8, ..] | [0x3fff, 0..0x1000, ..] | [0x100, 0, 0, _, ..] => true,
        // Only 2000::/3 is handed out. This excludes unique local, link-local, site-local and multicast addresses, and reserved ones.
        [first, ..] => first & 0xe000 != 0x2000,
    }
}

/// Returns the IPv4 address that a host is, in any form that `inet_aton` and browsers read: one to four parts, decimal, octal or
/// hexadecimal. Returns `Err` where the host ends in a number, so that it cannot be a name, and is not an address either.
pub(super) fn read_v4(host: &str) -> Result<Option<Ipv4Addr>, ()> {
    let last = host.rsplit('.').next().unwrap_or_default();
    let ends_in_a_number = !last.is_empty() && (last.bytes().all(|byte| byte.is_ascii_digit()) || read_part(last).is_some());
    if !ends_in_a_number {
        return Ok(None);
    }
    let parts: Option<Vec<u64>> = host.split('.').map(read_part).collect();
    let parts = parts.filter(|parts| parts.len() <= 4).ok_or(())?;
    let (last, leading) = parts.split_last().ok_or(())?;
    let room = 4 - leading.len();
    if leading.iter().any(|part| *part > 255) || *last >= 1 << (8 * room) {
        return Err(());
    }
    let high = leading.iter().zip([24, 16, 8]).fold(0, |sum, (part, shift)| sum | part << shift);
    u32::try_from(high | last).map(|bits| Some(Ipv4Addr::from(bits))).map_err(|_| ())
}

fn read_part(part: &str) -> Option<u64> {
    let (digits, radix) = match (part.strip_prefix("0x"), part.strip_prefix('0')) {
        (Some(""), _) | (None, Some("")) => return Some(0),
        (Some(digits), _) => (digits, 16),
        (None, Some(digits)) => (digits, 8),
        (None, None) => (part, 10),
    };
    // `from_str_radix` accepts a sign, so it is ruled out here.
    digits.bytes().all(|byte| byte.is_ascii_alphanumeric()).then(|| u64::from_str_radix(digits, radix).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ipv4_in_every_form() {
        for (host, expected) in [
            ("127.0.0.1", Ok(Some([127, 0, 0, 1]))),
            ("2130706433", Ok(Some([127, 0, 0, 1]))),
            ("0x7f.1", Ok(Some([127, 0, 0, 1]))),
            ("0177.0.0.01", Ok(Some([127, 0, 0, 1]))),
            ("0x7f000001", Ok(Some([127, 0, 0, 1]))),
            ("10.1", Ok(Some([10, 0, 0, 1]))),
            ("0x", Ok(Some([0, 0, 0, 0]))),
            ("8.8.2056", Ok(Some([8, 8, 8, 8]))),
            ("1.2.3.4.5", Err(())),
            ("1.2.3.256", Err(())),
            ("256.1", Err(())),
            ("4294967296", Err(())),
            ("a.1", Err(())),
            ("1..2", Err(())),
            ("09.1", Err(())),
            ("1.09", Err(())),
            ("example.com", Ok(None)),
            ("1.example", Ok(None)),
            ("0x7g", Ok(None)),
        ] {
            assert_eq!(read_v4(host), expected.map(|octets| octets.map(Ipv4Addr::from)), "{host}");
        }
    }

    #[test]
    fn only_public_addresses_are_public() {
        for address in "127.0.0.1 0.0.0.0 10.1.2.3 172.16.0.1 172.31.255.255 192.168.1.1 169.254.169.254 100.64.0.1 198.19.0.1 224.0.0.1 \
            255.255.255.255 192.0.2.1 :: ::1 ::ffff:127.0.0.1 ::127.0.0.1 ::ffff:0:10.0.0.1 fe80::1 fc00::1 fd12::1 fec0::1 ff02::1 \
            64:ff9b::7f00:1 64:ff9b:1::1 2002:7f00:1:: 2001::1 2001:db8::1 100::1 fd00:ec2::254"
            .split_ascii_whitespace()
        {
            assert!(is_private(address.parse().unwrap()), "{address}");
        }
        for address in
            ["8.8.8.8", "172.32.0.1", "100.128.0.1", "192.0.1.1", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808", "2002:808:808::"]
        {
            assert!(!is_private(address.parse().unwrap()), "{address}");
        }
    }

    #[test]
    fn only_names_below_a_delegated_domain_are_public() {
        for name in "localhost a.localhost printer.local metadata.google.internal metadata.goog a.metadata.goog \
            api.metadata.cloud.ibm.com kubernetes.default kubernetes.default.svc kubernetes.default.svc.cluster.local grafana.monitoring \
            registry.corp instance-data router com fritz.box x.home.arpa 1.0.0.127.in-addr.arpa a.test a.example a.invalid a.onion \
            169-254-169-254.nip.io localtest.me"
            .split_ascii_whitespace()
        {
            assert!(is_local_name(name), "{name}");
        }
        for name in "example.com notlocalhost.com internal.example.com svc.example.org dl.google.goog notmetadata.goog a.b.co.uk docs.rs \
            x.xn--p1ai cloud.ibm.com"
            .split_ascii_whitespace()
        {
            assert!(!is_local_name(name), "{name}");
        }
    }

    #[test]
    fn the_table_of_top_level_domains_is_whole() {
        let text = include_str!("tlds.txt");
        let said: usize = text.split_ascii_whitespace().nth(2).and_then(|number| number.parse().ok()).unwrap();
        assert_eq!(TOP_LEVEL_DOMAINS.len(), said);
        assert!(
            TOP_LEVEL_DOMAINS.iter().all(|name| name.len() > 1 && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-'))
        );
        for name in ["com", "org", "de", "uk", "io", "rs", "xn--p1ai"] {
            assert!(TOP_LEVEL_DOMAINS.contains(name), "{name}");
        }
    }
}
