//! The properties of OAUTHBEARER, under the names that librdkafka and Kafka's Java client have for them.

use tollgate_config::settings::{KafkaSettings, Properties};

use super::super::property_fault::PropertyFault;
use crate::policy_servers::leads_here;

/// Properties that are read here and not by librdkafka.
const TAKEN: [&str; 14] = [
    "sasl.oauthbearer.method",
    "sasl.oauthbearer.config",
    "sasl.oauthbearer.client.id",
    "sasl.oauthbearer.client.credentials.client.id",
    "sasl.oauthbearer.client.secret",
    "sasl.oauthbearer.client.credentials.client.secret",
    "sasl.oauthbearer.scope",
    "sasl.oauthbearer.grant.type",
    "sasl.oauthbearer.assertion.file",
    // The same where a variable names the file: ASSERTION_FILE.
    ASSERTION,
    URL,
    "https.ca.location",
    "https.ca.pem",
    "sasl.oauthbearer.extensions",
];
const URL: &str = "sasl.oauthbearer.token.endpoint.url";
const ASSERTION: &str = "sasl.oauthbearer.assertion";
const JWT_BEARER: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";

/// A secret: its value, or the file that holds it and may change.
#[derive(Clone, PartialEq, Eq)]
pub enum SecretValue {
    /// The value itself.
    Written(String),
    /// The path of the file.
    InFile(String),
}

impl SecretValue {
    /// Returns the secret as it is now.
    ///
    /// # Errors
    /// Returns a sentence if its file cannot be read.
    #[cfg(feature = "tls")]
    pub(super) fn read(&self) -> Result<String, String> {
        match self {
            Self::Written(value) => Ok(value.clone()),
            Self::InFile(path) => {
                let text = std::fs::read_to_string(path).map_err(|error| format!("the file {path} cannot be read ({error})"))?;
                Ok(text.trim_end_matches(['\r', '\n']).to_owned())
            }
        }
    }
}

impl std::fmt::Debug for SecretValue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SecretValue")
    }
}

/// How a token endpoint is shown who asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Grant {
    /// By the client's name and secret.
    ClientCredentials {
        /// The client's name.
        id: String,
        /// Its secret.
        secret: SecretValue,
    },
    /// By a signed assertion, such as the token of a Kubernetes service account.
    Assertion {
        /// The file that holds it.
        file: String,
    },
}

/// Where tokens come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OauthSettings {
    /// A file that somebody else keeps up to date.
    File(String),
    /// A token endpoint.
    Endpoint {
        /// Its URL.
        url: String,
        /// How it is shown who asks.
        grant: Grant,
        /// The scope that is asked for.
        scope: Option<String>,
        /// The file of the authorities that may have issued its certificate.
        ca_file: Option<String>,
        /// The same as text.
        ca_pem: Option<String>,
    },
}

/// Returns whether clients authenticate with OAUTHBEARER.
pub fn is_oauth(properties: &Properties, protocol: &str) -> bool {
    let mechanism = properties.get("sasl.mechanism").or_else(|| properties.get("sasl.mechanisms"));
    protocol.to_ascii_lowercase().starts_with("sasl") && mechanism.is_some_and(|mechanism| mechanism.eq_ignore_ascii_case("OAUTHBEARER"))
}

/// Returns whether a property is read here, so that librdkafka is not given it.
pub fn is_taken_here(property: &str) -> bool {
    TAKEN.contains(&property)
}

fn fault(property: &str, found: &str, fix: &'static str) -> PropertyFault {
    PropertyFault { key: format!("kafka.properties.{property}"), found: found.to_owned(), fix }
}

impl OauthSettings {
    /// Reads the properties; `None` if another mechanism is in use.
    ///
    /// # Errors
    /// Returns what is missing or cannot be done.
    pub fn read(kafka: &KafkaSettings) -> Result<Option<Self>, PropertyFault> {
        let properties = &kafka.properties;
        if !is_oauth(properties, kafka.protocol()) {
            return Ok(None);
        }
        let get = |names: &[&str]| names.iter().find_map(|name| properties.get(*name)).filter(|value| !value.is_empty()).cloned();
        if get(&["sasl.oauthbearer.extensions"]).is_some() {
            return Err(fault("sasl.oauthbearer.extensions", "extensions, which cannot be sent", "remove it"));
        }
        if get(&["enable.sasl.oauthbearer.unsecure.jwt"]).is_some_and(|value| value == "true") {
            let fix = "remove it, and name a token endpoint or a file in sasl.oauthbearer.token.endpoint.url";
            return Err(fault("enable.sasl.oauthbearer.unsecure.jwt", "tokens that nobody has signed", fix));
        }
        let fix = "write the URL of a token endpoint (https://…), or file:///PATH of a file that holds a token";
        let url = get(&[URL]).ok_or_else(|| fault(URL, "nothing", fix))?;
        if let Some(path) = url.strip_prefix("file://") {
            return if path.starts_with('/') { Ok(Some(Self::File(path.to_owned()))) } else { Err(fault(URL, "no path", fix)) };
        }
        if !url.starts_with("https://") && !url.starts_with("http://") {
            return Err(fault(URL, "no URL of http, https or file", fix));
        }
        if url.starts_with("http://") && !leads_here(&url) {
            let fix = "write https://…; http:// is taken only for this machine (localhost, 127.0.0.1, [::1])";
            return Err(fault(URL, "http:// to another machine, to which secret and token would go unencrypted", fix));
        }
        let grant = grant(kafka, &get)?;
        let (ca_file, ca_pem) = (get(&["https.ca.location"]), get(&["https.ca.pem"]));
        Ok(Some(Self::Endpoint { url, grant, scope: get(&["sasl.oauthbearer.scope"]), ca_file, ca_pem }))
    }
}

fn grant(kafka: &KafkaSettings, get: &dyn Fn(&[&str]) -> Option<String>) -> Result<Grant, PropertyFault> {
    match get(&["sasl.oauthbearer.grant.type"]).as_deref() {
        None | Some("client_credentials") => {}
        Some(JWT_BEARER) => {
            let fix = "name the file of the assertion";
            let file = get(&["sasl.oauthbearer.assertion.file"]).or_else(|| kafka.property_files.get(ASSERTION).cloned());
            return file
                .map(|file| Grant::Assertion { file })
                .ok_or_else(|| fault("sasl.oauthbearer.assertion.file", "nothing, and a grant type that needs it", fix));
        }
        Some(_) => {
            let fix = "write client_credentials or urn:ietf:params:oauth:grant-type:jwt-bearer";
            return Err(fault("sasl.oauthbearer.grant.type", "another grant type", fix));
        }
    }
    let id = get(&["sasl.oauthbearer.client.id", "sasl.oauthbearer.client.credentials.client.id"])
        .ok_or_else(|| fault("sasl.oauthbearer.client.id", "nothing", "write the name that the token endpoint knows Tollgate by"))?;
    let names = ["sasl.oauthbearer.client.secret", "sasl.oauthbearer.client.credentials.client.secret"];
    let file = names.iter().find_map(|name| kafka.property_files.get(*name)).cloned();
    let secret = file.map(SecretValue::InFile).or_else(|| get(&names).map(SecretValue::Written));
    let fix = "name the file that holds it: sasl.oauthbearer.client.secret_file";
    let secret = secret.ok_or_else(|| fault("sasl.oauthbearer.client.secret", "nothing", fix))?;
    Ok(Grant::ClientCredentials { id, secret })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tollgate_core::settings::{defaults, parse};

    fn read(properties: &str) -> Result<Option<OauthSettings>, String> {
        read_all(&format!("security.protocol: sasl_ssl, sasl.mechanism: OAUTHBEARER, {properties}"))
    }

    fn read_all(properties: &str) -> Result<Option<OauthSettings>, String> {
        let text = format!("kafka: {{properties: {{{properties}}}}}");
        let settings = tollgate_config::settings::Settings::read(&parse(&text).unwrap(), &defaults().unwrap()).unwrap();
        OauthSettings::read(&settings.kafka).map_err(|fault| fault.to_string())
    }

    #[test]
    fn tokens_come_from_a_file_or_an_endpoint() {
        assert_eq!(
            read("sasl.oauthbearer.token.endpoint.url: 'file:///run/token'"),
            Ok(Some(OauthSettings::File("/run/token".to_owned())))
        );
        let endpoint = "sasl.oauthbearer.method: oidc, sasl.oauthbearer.token.endpoint.url: 'https://idp/token', ";
        let read_one = read(&format!("{endpoint}sasl.oauthbearer.client.id: me, sasl.oauthbearer.client.secret: s3cret")).unwrap().unwrap();
        assert!(
            matches!(&read_one, OauthSettings::Endpoint { url, grant: Grant::ClientCredentials { id, .. }, .. } if url == "https://idp/token" && id == "me")
        );
        assert!(!format!("{read_one:?}").contains("s3cret"));
        let jwt = "sasl.oauthbearer.grant.type: 'urn:ietf:params:oauth:grant-type:jwt-bearer', sasl.oauthbearer.assertion.file: /run/jwt";
        let assertion = read(&format!("{endpoint}{jwt}")).unwrap().unwrap();
        assert!(matches!(assertion, OauthSettings::Endpoint { grant: Grant::Assertion { file }, .. } if file == "/run/jwt"));
        assert_eq!(read_all("sasl.mechanisms: OAUTHBEARER, security.protocol: ssl").ok(), Some(None));
    }

    #[test]
    fn what_is_missing_is_named() {
        for (properties, expected) in [
            ("", "sasl.oauthbearer.token.endpoint.url: found nothing; write the URL"),
            ("sasl.oauthbearer.token.endpoint.url: 'ftp://x'", "sasl.oauthbearer.token.endpoint.url: found no URL of http, https or file"),
            ("sasl.oauthbearer.token.endpoint.url: 'https://x'", "sasl.oauthbearer.client.id: found nothing"),
            (
                "sasl.oauthbearer.token.endpoint.url: 'http://idp/token'",
                "sasl.oauthbearer.token.endpoint.url: found http:// to another machine, to which secret and token would go unencrypted; write https://…",
            ),
            (
                "sasl.oauthbearer.token.endpoint.url: 'https://x', sasl.oauthbearer.client.id: me",
                "sasl.oauthbearer.client.secret: found nothing; name the file",
            ),
            ("sasl.oauthbearer.extensions: a=b", "sasl.oauthbearer.extensions: found extensions, which cannot be sent; remove it"),
            ("enable.sasl.oauthbearer.unsecure.jwt: true", "found tokens that nobody has signed"),
        ] {
            let said = read(properties).unwrap_err();
            assert!(said.contains(expected), "{properties}: {said}");
        }
    }

    #[test]
    fn a_secret_goes_unencrypted_to_this_machine_only() {
        for here in ["localhost:8080/token", "LOCALHOST", "127.0.0.1/token", "127.0.0.2:80", "[::1]:8080/t", "[::1]?x"] {
            assert!(leads_here(&format!("http://{here}")), "{here}");
        }
        for elsewhere in ["idp/token", "localhost@idp/t", "127.0.0.1:80@idp/t", "localhost.idp", "10.0.0.1:80", "[::2]:1", ""] {
            assert!(!leads_here(&format!("http://{elsewhere}")), "{elsewhere}");
        }
    }
}
