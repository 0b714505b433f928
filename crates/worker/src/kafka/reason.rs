//! Why brokers cannot be reached: librdkafka's sentences, without what changes from attempt to attempt, and with what to check.

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};

/// Parts of librdkafka's sentences, each with what to check. The first that fits counts.
const CHECKS: [(&str, &str); 10] = [
    // A size of 1213486160 bytes is the word HTTP.
    ("Invalid response size", "what answers there is no Kafka listener of this protocol: check kafka.brokers and security.protocol"),
    ("Connection refused", "check kafka.brokers, and that a broker listens there"),
    ("connecting to a SSL listener", "the listener may want TLS: check security.protocol in kafka.properties"),
    ("connecting to a PLAINTEXT broker listener", "the listener may not speak TLS: check security.protocol in kafka.properties"),
    ("certificate verify failed", "check ssl.ca.location in kafka.properties, and that the certificate names the host of kafka.brokers"),
    ("SSL handshake failed", "check security.protocol and the ssl.* properties in kafka.properties"),
    ("require SASL authentication", "check security.protocol and the sasl.* properties in kafka.properties"),
    ("SASL", "check sasl.mechanism, sasl.username and sasl.password in kafka.properties"),
    ("Disconnected", "a listener that hangs up may want TLS or SASL: check security.protocol in kafka.properties"),
    ("timed out", "check kafka.brokers, and that nothing between here and there drops packets"),
];

/// What librdkafka says before our own reason why there is no token.
const NO_TOKEN: &str = "Failed to acquire SASL OAUTHBEARER token: ";

/// How many reasons of a broker are remembered as said.
const REASONS_MAX: usize = 8;

/// Why one broker cannot be reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason {
    /// The broker's address.
    pub broker: String,
    /// What librdkafka says.
    pub what: String,
    /// What to check, if that is known.
    pub check: Option<Cow<'static, str>>,
}

impl std::fmt::Display for Reason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { broker, what, check } = self;
        write!(f, "{broker}: {what}")?;
        check.as_ref().map_or(Ok(()), |check| write!(f, "; {check}"))
    }
}

impl Reason {
    /// Reads a sentence of librdkafka, such as `ssl://kafka-1:9093/bootstrap: SSL handshake failed: … (after 3ms in state SSL_HANDSHAKE)`.
    /// Returns `None` if it is not about one broker.
    #[must_use]
    pub fn read(sentence: &str) -> Option<Self> {
        if let Some(what) = sentence.strip_prefix(NO_TOKEN) {
            return Some(Self { broker: "no token".to_owned(), what: what.to_owned(), check: None });
        }
        let sentence = sentence.strip_prefix("[thrd:").and_then(|rest| rest.split_once("]: ")).map_or(sentence, |(_, rest)| rest);
        let (name, what) = sentence.split_once(": ")?;
        let (address, kind) = name.rsplit_once('/').filter(|(_, kind)| !kind.is_empty())?;
        let broker = address.rsplit_once("://").map_or(address, |(_, address)| address);
        // How long it took, and how often it was not said, is different every time.
        let what = what.rsplit_once(" (after ").map_or(what, |(what, _)| what).trim_end();
        // It is hardly ever right to follow that.
        let what = what.strip_suffix(": increase receive.message.max.bytes").unwrap_or(what);
        let is_unresolved = what.contains("Failed to resolve");
        let check = match (is_unresolved, kind) {
            (true, "bootstrap") => Some("check the host's name in kafka.brokers"),
            (true, _) => Some("the brokers themselves gave this name: check their advertised.listeners"),
            _ => CHECKS.iter().find(|(part, _)| what.contains(part)).map(|(_, check)| *check),
        };
        Some(Self { broker: broker.to_owned(), what: what.to_owned(), check: check.map(Cow::Borrowed) })
    }

    /// Returns the reason without the address that was tried. A host with an IPv4 and an IPv6 address is tried at both in turn.
    fn essence(&self) -> String {
        let is_address = |word: &&str| word.starts_with("ipv4#") || word.starts_with("ipv6#");
        self.what.split(' ').filter(|word| !is_address(word)).collect::<Vec<_>>().join(" ")
    }
}

/// What was said of each broker, so that each of its reasons is said once. librdkafka may have two sentences for one reason, in turns.
#[derive(Debug, Default)]
pub struct Wording {
    /// What was said of each broker: the essence, and the whole.
    brokers: HashMap<String, VecDeque<(String, Reason)>>,
    last: Option<Reason>,
}

impl Wording {
    /// Returns whether this reason is news of its broker, and notes it.
    pub fn is_news(&mut self, reason: &Reason) -> bool {
        let (essence, said) = (reason.essence(), self.brokers.entry(reason.broker.clone()).or_default());
        let before = said.iter().find(|(before, _)| *before == essence).map(|(_, whole)| whole.clone());
        let is_news = before.is_none();
        if is_news {
            said.push_back((essence, reason.clone()));
            if said.len() > REASONS_MAX {
                said.pop_front();
            }
        }
        self.last = before.or_else(|| Some(reason.clone()));
        is_news
    }

    /// Puts more particular words in place of the last reason, which was news.
    pub fn explain_last(&mut self, reason: Reason) {
        if let Some((_, whole)) = self.brokers.get_mut(&reason.broker).and_then(VecDeque::back_mut) {
            *whole = reason.clone();
        }
        self.last = Some(reason);
    }

    /// Returns the last reason; of its broker the last one that says what to check, if there is one. A connection that breaks has reasons
    /// that tell nothing, behind the one that does.
    #[must_use]
    pub fn last(&self) -> Option<&Reason> {
        let last = self.last.as_ref()?;
        let said = self.brokers.get(&last.broker).into_iter().flatten().map(|(_, whole)| whole);
        let telling = || said.rev().find(|reason| reason.check.is_some());
        if last.check.is_some() { Some(last) } else { telling().or(Some(last)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_lose_what_changes_and_gain_what_to_check() {
        for (sentence, expected) in [
            (
                "127.0.0.1:1/bootstrap: Connect to ipv4#127.0.0.1:1 failed: Connection refused (after 0ms in state CONNECT)",
                "127.0.0.1:1: Connect to ipv4#127.0.0.1:1 failed: Connection refused; check kafka.brokers, and that a broker listens there",
            ),
            (
                "[thrd:sasl_ssl://k:9093/bootstrap]: sasl_ssl://k:9093/bootstrap: SASL authentication error: Authentication failed (after 302ms in state AUTH_REQ, 4 identical error(s) suppressed)",
                "k:9093: SASL authentication error: Authentication failed; check sasl.mechanism, sasl.username and sasl.password in kafka.properties",
            ),
            (
                "b.internal:9092/1: Failed to resolve 'b.internal:9092': Name or service not known (after 1ms in state CONNECT)",
                "b.internal:9092: Failed to resolve 'b.internal:9092': Name or service not known; the brokers themselves gave this name: check their advertised.listeners",
            ),
            ("a:1/bootstrap: something new", "a:1: something new"),
            ("Failed to acquire SASL OAUTHBEARER token: the token endpoint h: status 401", "no token: the token endpoint h: status 401"),
        ] {
            assert_eq!(Reason::read(sentence).map(|reason| reason.to_string()).as_deref(), Some(expected));
        }
        for nothing in ["1/1 brokers are down", "", "a: b", "[thrd:main]: Disconnected"] {
            assert_eq!(Reason::read(nothing), None, "{nothing}");
        }
    }

    /// A listener of another protocol hangs up, and then what was on its way cannot be sent.
    #[test]
    fn the_last_reason_says_what_to_check_if_one_of_its_broker_did() {
        let reason = |text: &str| Reason::read(text).unwrap();
        let mut said = Wording::default();
        for text in ["h:1/bootstrap: Disconnected", "g:1/bootstrap: Connection refused", "h:1/bootstrap: Send failed: Broken pipe"] {
            assert!(said.is_news(&reason(text)));
        }
        assert_eq!(said.last(), Some(&reason("h:1/bootstrap: Disconnected")));
        assert!(!said.is_news(&reason("g:1/bootstrap: Connection refused")));
        assert_eq!(said.last(), Some(&reason("g:1/bootstrap: Connection refused")));
        assert!(said.is_news(&reason("f:1/bootstrap: Send failed: Broken pipe")));
        assert_eq!(said.last(), Some(&reason("f:1/bootstrap: Send failed: Broken pipe")), "nothing better is known of it");
    }

    #[test]
    fn a_reason_is_news_once_and_when_it_changes() {
        let reason = |text: &str| Reason::read(text).unwrap();
        let mut said = Wording::default();
        assert!(
            said.is_news(&reason("h:1/bootstrap: Connect to ipv4#127.0.0.1:1 failed: Connection refused (after 0ms in state CONNECT)"))
        );
        assert!(!said.is_news(&reason("h:1/bootstrap: Connect to ipv6#[::1]:1 failed: Connection refused (after 7ms in state CONNECT)")));
        assert!(said.is_news(&reason("h:1/bootstrap: SSL handshake failed: x (after 7ms in state SSL_HANDSHAKE)")));
        assert!(
            !said.is_news(&reason("h:1/bootstrap: Connect to ipv4#127.0.0.1:1 failed: Connection refused (after 1ms in state CONNECT)"))
        );
        assert!(said.is_news(&reason("g:1/bootstrap: SSL handshake failed: x (after 7ms in state SSL_HANDSHAKE)")));
        assert_eq!(said.last().map(|last| last.broker.as_str()), Some("g:1"));
    }
}
