//! TLS to policy servers, with the same OpenSSL that the brokers' clients use. Certificates are always verified.

use std::pin::Pin;

use hyper::Uri;
use openssl::pkey::PKey;
use openssl::ssl::{ConnectConfiguration, SslConnector, SslConnectorBuilder, SslMethod, SslVersion};
use openssl::x509::X509VerifyResult;
use openssl::x509::store::X509StoreBuilder;
use tokio::net::TcpStream;
use tokio_openssl::SslStream;

use tollgate_core::decide::guardrail::HttpSettings;

use super::EndpointError;

/// The TLS settings of one server.
pub(super) struct Tls {
    connector: SslConnector,
    /// The name or address that the server's certificate has to prove, without brackets.
    host: String,
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tls").field("host", &self.host).finish_non_exhaustive()
    }
}

impl Tls {
    pub(super) fn new(settings: &HttpSettings, uri: &Uri) -> Result<Self, EndpointError> {
        let unavailable = |_| EndpointError::new(settings, "url", "TLS cannot be set up; check the OpenSSL configuration (OPENSSL_CONF)");
        let mut builder = SslConnector::builder(SslMethod::tls_client()).map_err(unavailable)?;
        builder.set_min_proto_version(Some(SslVersion::TLS1_2)).map_err(unavailable)?;
        trust(&mut builder, settings)?;
        identify(&mut builder, settings)?;
        let host = uri.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']').to_owned();
        Ok(Self { connector: builder.build(), host })
    }

    /// Performs the TLS handshake on a connection. The error is OpenSSL's text, for people.
    pub(super) async fn connect(&self, stream: TcpStream) -> Result<SslStream<TcpStream>, String> {
        let configured = self.connector.configure().and_then(|configuration: ConnectConfiguration| configuration.into_ssl(&self.host));
        let ssl = configured.map_err(|error| error.to_string())?;
        let mut stream = SslStream::new(ssl, stream).map_err(|error| error.to_string())?;
        match Pin::new(&mut stream).connect().await {
            Ok(()) => Ok(stream),
            // The result of the verification says more than "certificate verify failed".
            Err(error) => match stream.ssl().verify_result() {
                X509VerifyResult::OK => Err(error.to_string()),
                refused => Err(format!("the server's certificate was refused: {}", refused.error_string())),
            },
        }
    }
}

/// Sets which certificate authorities are trusted.
fn trust(builder: &mut SslConnectorBuilder, settings: &HttpSettings) -> Result<(), EndpointError> {
    let Some(file) = &settings.ca_file else {
        // An OpenSSL built from source looks only where it would be installed, so the system's certificates have to be found.
        let found = openssl_probe::probe();
        let loaded = found.cert_file.is_some_and(|file| builder.set_ca_file(file).is_ok());
        let has_folder = found.cert_dir.into_iter().any(|folder| builder.load_verify_locations(None, Some(&folder)).is_ok());
        if !loaded && !has_folder {
            let provider = settings.name.as_str();
            tracing::warn!(provider, "no certificates of the system were found: no server can be believed; name those to trust in ca_file");
        }
        return Ok(());
    };
    // A new builder trusts the system's certificates; these are replaced.
    let replaced = X509StoreBuilder::new().map(|empty| builder.set_cert_store(empty.build()));
    replaced.and_then(|()| builder.set_ca_file(file)).map_err(|_| {
        EndpointError::new(settings, "ca_file", &format!("found no certificates in {file}; name a readable PEM file of authorities"))
    })
}

/// Sets the client certificate and its key, where they are configured.
fn identify(builder: &mut SslConnectorBuilder, settings: &HttpSettings) -> Result<(), EndpointError> {
    let (certificate, key) = match (&settings.client_certificate_file, &settings.client_key_file) {
        (Some(certificate), Some(key)) => (certificate, key),
        (None, None) => return Ok(()),
        (Some(_), None) => {
            return Err(EndpointError::new(settings, "client_key_file", "found a certificate without its key; name both files"));
        }
        (None, Some(_)) => {
            return Err(EndpointError::new(settings, "client_certificate_file", "found a key without its certificate; name both files"));
        }
    };
    builder.set_certificate_chain_file(certificate).map_err(|_| {
        let problem = format!("found no certificate in {certificate}; name a readable PEM file, the own certificate first");
        EndpointError::new(settings, "client_certificate_file", &problem)
    })?;
    // With a passphrase given, OpenSSL does not prompt on the terminal for that of an encrypted key.
    let read = std::fs::read(key).ok().and_then(|pem| PKey::private_key_from_pem_passphrase(&pem, b"").ok());
    let fits = read.is_some_and(|read| builder.set_private_key(&read).and_then(|()| builder.check_private_key()).is_ok());
    if !fits {
        let problem = format!("found no key of the certificate in {key}; name the readable PEM file of its unencrypted private key");
        return Err(EndpointError::new(settings, "client_key_file", &problem));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy_servers::test_settings;

    fn tls(url: &str) -> Tls {
        Tls::new(&test_settings(url), &url.parse().unwrap()).unwrap()
    }

    #[test]
    fn the_systems_certificates_are_trusted_where_there_are_any() {
        let trusted = tls("https://policy.example/").connector.context().cert_store().all_certificates().len();
        assert_eq!(trusted > 0, openssl_probe::probe().cert_file.is_some(), "{trusted} certificates");
    }

    #[test]
    fn an_address_has_to_be_proved_without_its_brackets() {
        for (url, host) in
            [("https://[::1]:8443/", "::1"), ("https://127.0.0.1/", "127.0.0.1"), ("https://Policy.example/", "Policy.example")]
        {
            assert_eq!(tls(url).host, host);
        }
    }
}
