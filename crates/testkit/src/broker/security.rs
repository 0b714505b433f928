//! The listeners of a broker that is secured in every way: TLS with all SASL mechanisms on one, TLS with client certificates on another.

use std::path::PathBuf;

/// How a broker is secured.
#[derive(Debug, Clone)]
pub struct Security {
    /// Users with passwords for PLAIN.
    pub plain: Vec<(String, String)>,
    /// Users with passwords for SCRAM-SHA-256 and SCRAM-SHA-512.
    pub scram: Vec<(String, String)>,
    /// The PEM file of the broker's key and certificate.
    pub key_store: PathBuf,
    /// The PEM file of the authorities whose client certificates are believed.
    pub trust_store: PathBuf,
    /// The file of the keys that tokens are signed with, as JSON.
    pub token_keys: PathBuf,
    /// The audience that a token has to name.
    pub token_audience: String,
}

impl Security {
    /// Returns the lines of the broker's configuration. Clients of the listener without TLS are super users.
    pub(super) fn properties(&self) -> String {
        let jaas = |listener: &str, module: &str, rest: &str| {
            let (listener, name) = (listener.to_lowercase(), "org.apache.kafka.common.security");
            format!("listener.name.sasltls.{listener}.sasl.jaas.config={name}.{module} required{rest};")
        };
        let users: String = self.plain.iter().map(|(name, password)| format!(" user_{name}=\"{password}\"")).collect();
        [
            "listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SASLTLS:SASL_SSL,MTLS:SSL".to_owned(),
            "listener.name.sasltls.sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER".to_owned(),
            jaas("PLAIN", "plain.PlainLoginModule", &users),
            jaas("SCRAM-SHA-256", "scram.ScramLoginModule", ""),
            jaas("SCRAM-SHA-512", "scram.ScramLoginModule", ""),
            jaas("OAUTHBEARER", "oauthbearer.OAuthBearerLoginModule", ""),
            "listener.name.sasltls.oauthbearer.sasl.server.callback.handler.class=\
             org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler"
                .to_owned(),
            format!("listener.name.sasltls.oauthbearer.sasl.oauthbearer.jwks.endpoint.url=file://{}", self.token_keys.display()),
            format!("listener.name.sasltls.oauthbearer.sasl.oauthbearer.expected.audience={}", self.token_audience),
            "listener.name.mtls.ssl.client.auth=required".to_owned(),
            "ssl.keystore.type=PEM".to_owned(),
            format!("ssl.keystore.location={}", self.key_store.display()),
            "ssl.truststore.type=PEM".to_owned(),
            format!("ssl.truststore.location={}", self.trust_store.display()),
            super::AUTHORIZER.to_owned(),
        ]
        .join("\n")
    }

    /// Returns the options of the tool that formats the storage: the users of SCRAM are part of the cluster's metadata.
    pub(super) fn format_options(&self) -> Vec<String> {
        let user = |mechanism: &str, (name, password): &(String, String)| {
            ["--add-scram".to_owned(), format!("{mechanism}=[name={name},password={password}]")]
        };
        let of = |mechanism: &'static str| self.scram.iter().flat_map(move |entry| user(mechanism, entry));
        of("SCRAM-SHA-256").chain(of("SCRAM-SHA-512")).collect()
    }

    /// Returns the options of the broker's Java: it reads keys of tokens only from where it is allowed to.
    pub(super) fn java_options(&self) -> [String; 1] {
        [format!("-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls=file://{}", self.token_keys.display())]
    }
}
