//! The principal that the brokers know us as, as far as the properties say it.

use tollgate_config::settings::KafkaSettings;

use super::oauth;

/// Returns the principal as `kafka-acls.sh` takes it: the SASL user, the subject of the token or of the client's
/// certificate, or nobody in particular.
/// Brokers can be configured to name principals otherwise.
#[must_use]
pub fn principal(kafka: &KafkaSettings) -> String {
    let protocol = kafka.protocol().to_ascii_lowercase();
    if protocol.starts_with("sasl") {
        let properties = kafka.current_properties();
        let mechanism = properties.get("sasl.mechanism").or_else(|| properties.get("sasl.mechanisms"));
        let is_by_name = mechanism.is_some_and(|mechanism| mechanism.eq_ignore_ascii_case("PLAIN") || mechanism.starts_with("SCRAM"));
        let user = properties.get("sasl.username").filter(|_| is_by_name).cloned();
        let user = user.or_else(|| oauth::subject(kafka)).filter(|user| !user.is_empty());
        return user.map_or_else(|| "User:NAME".to_owned(), |user| format!("User:{user}"));
    }
    let subject = if protocol == "ssl" { certificate_subject(kafka) } else { None };
    subject.map_or_else(|| "User:ANONYMOUS".to_owned(), |subject| format!("User:{subject}"))
}

/// Returns the subject of the client's certificate, as Java writes it: RFC 2253.
#[cfg(feature = "tls")]
fn certificate_subject(kafka: &KafkaSettings) -> Option<String> {
    let properties = kafka.current_properties();
    let pem = match properties.get("ssl.certificate.pem") {
        Some(pem) => pem.clone().into_bytes(),
        None => std::fs::read(properties.get("ssl.certificate.location")?).ok()?,
    };
    let certificate = openssl::x509::X509::from_pem(&pem).ok()?;
    let part = |entry: &openssl::x509::X509NameEntryRef| {
        let name = entry.object().nid().short_name().ok()?;
        Some(format!("{name}={}", escaped(&entry.data().to_string().ok()?)))
    };
    let mut parts: Vec<String> = certificate.subject_name().entries().map(part).collect::<Option<_>>()?;
    // The most particular part comes first.
    parts.reverse();
    (!parts.is_empty()).then(|| parts.join(","))
}

#[cfg(not(feature = "tls"))]
fn certificate_subject(_: &KafkaSettings) -> Option<String> {
    None
}

/// Returns a value with its special characters escaped.
#[cfg(feature = "tls")]
fn escaped(value: &str) -> String {
    let escape = |character: char| if ",+\"\\<>;".contains(character) { format!("\\{character}") } else { character.to_string() };
    value.chars().map(escape).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tollgate_core::settings::{defaults, parse};

    fn of(properties: &str) -> String {
        let user = parse(&format!("kafka: {{properties: {{{properties}}}}}")).unwrap();
        principal(&tollgate_config::settings::Settings::read(&user, &defaults().unwrap()).unwrap().kafka)
    }

    #[test]
    fn the_principal_is_the_user_or_nobody() {
        for (properties, expected) in [
            ("", "User:ANONYMOUS"),
            ("security.protocol: ssl", "User:ANONYMOUS"),
            ("sasl.mechanism: PLAIN, sasl.username: bob", "User:ANONYMOUS"),
            ("security.protocol: SASL_SSL, sasl.mechanism: SCRAM-SHA-512, sasl.username: bob", "User:bob"),
            ("security.protocol: sasl_plaintext, sasl.mechanism: OAUTHBEARER, sasl.username: bob", "User:NAME"),
        ] {
            assert_eq!(of(properties), expected, "{properties}");
        }
    }

    #[cfg(feature = "tls")]
    #[test]
    fn the_principal_is_the_subject_of_the_certificate() {
        use openssl::{asn1::Asn1Time, hash::MessageDigest, pkey::PKey, rsa::Rsa, x509::X509, x509::X509NameBuilder};
        let key = PKey::from_rsa(Rsa::generate(2048).unwrap()).unwrap();
        let mut name = X509NameBuilder::new().unwrap();
        for (part, value) in [("C", "CH"), ("O", "Acme, Inc."), ("CN", "tollgate")] {
            name.append_entry_by_text(part, value).unwrap();
        }
        let name = name.build();
        let mut certificate = X509::builder().unwrap();
        certificate.set_subject_name(&name).unwrap();
        certificate.set_pubkey(&key).unwrap();
        certificate.set_not_before(&Asn1Time::days_from_now(0).unwrap()).unwrap();
        certificate.set_not_after(&Asn1Time::days_from_now(1).unwrap()).unwrap();
        certificate.sign(&key, MessageDigest::sha256()).unwrap();
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), certificate.build().to_pem().unwrap()).unwrap();
        let properties = format!("security.protocol: ssl, ssl.certificate.location: {}", file.path().display());
        assert_eq!(of(&properties), "User:CN=tollgate,O=Acme\\, Inc.,C=CH");
    }
}
