//! The addresses of brokers, as `kafka.brokers` and `--brokers` have them.

/// What to write.
const FIX: &str = "write HOST:PORT, several of them separated by commas, such as kafka-1:9092,kafka-2:9092";

/// The protocols that librdkafka takes before an address.
const PROTOCOLS: [&str; 4] = ["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"];

/// Checks addresses, separated by commas.
///
/// # Errors
/// Returns the shape of the first that librdkafka would not reach, and what to write. Addresses are not quoted, since somebody may have
/// written a password into one.
pub(super) fn check(brokers: &str, protocol: &str) -> Result<(), (String, &'static str)> {
    for (place, address) in brokers.split(',').map(str::trim).enumerate() {
        let at = |found: &str| {
            let found = if place == 0 { found.to_owned() } else { format!("{found} at place {}", place + 1) };
            Err((found, FIX))
        };
        let (scheme, address) = address.split_once("://").map_or((None, address), |(scheme, address)| (Some(scheme), address));
        match scheme.map(str::to_ascii_uppercase) {
            Some(scheme) if !PROTOCOLS.contains(&scheme.as_str()) => return at("a URL"),
            Some(scheme) if !scheme.eq_ignore_ascii_case(protocol) => {
                return Err((format!("the protocol {scheme}, which is not kafka.properties.security.protocol"), "set both alike"));
            }
            _ => {}
        }
        if address.contains('@') {
            return at("an address with user info");
        }
        if address.contains('/') {
            return at("an address with a path");
        }
        // The colons of an IPv6 address stand in brackets.
        let (host, port) = match address.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((host, port)) => (host, port.strip_prefix(':').filter(|_| !port.is_empty()).or((!port.is_empty()).then_some("?"))),
            None => address.rsplit_once(':').map_or((address, None), |(host, port)| (host, Some(port))),
        };
        if host.is_empty() || host.contains(char::is_whitespace) {
            return at("an address without a host");
        }
        if host.contains(|c: char| c.is_ascii() && !c.is_ascii_alphanumeric() && !"._-:%".contains(c)) {
            return at("an address with a character that no host has");
        }
        if port.is_some_and(|port| !port.parse::<u16>().is_ok_and(|port| port > 0)) {
            return at("an address whose port is no number of 1 to 65535");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_hosts_with_ports() {
        for good in
            ["a:1", "kafka-1:9092,kafka-2:9092", "a:1, b:2", "a", "127.0.0.1:65535", "[::1]:9092", "[::1]", "ssl://a:1", "SSL://a:1,b:1"]
        {
            assert_eq!(check(good, "ssl"), Ok(()), "{good}");
        }
        for (bad, found) in [
            ("http://kafka:9092", "a URL"),
            ("a:1,kafka://b:9092", "a URL at place 2"),
            ("plaintext://a:1", "the protocol PLAINTEXT, which is not kafka.properties.security.protocol"),
            ("u:s3cret@a:1", "an address with user info"),
            ("ssl://u:s3cret@a:1", "an address with user info"),
            ("a:9092/", "an address with a path"),
            ("", "an address without a host"),
            ("a:1,,b:1", "an address without a host at place 2"),
            ("a b:1", "an address without a host"),
            (":9092", "an address without a host"),
            ("a:1;b:1", "an address with a character that no host has"),
            ("a:", "an address whose port is no number of 1 to 65535"),
            ("a:port", "an address whose port is no number of 1 to 65535"),
            ("a:0", "an address whose port is no number of 1 to 65535"),
            ("a:65536", "an address whose port is no number of 1 to 65535"),
            ("[::1]x", "an address whose port is no number of 1 to 65535"),
        ] {
            assert_eq!(check(bad, "ssl").map_err(|(found, _)| found), Err(found.to_owned()), "{bad}");
        }
    }
}
