//! TLS of callers by files, with the same OpenSSL that the brokers' clients use: versions 1.2 and 1.3, HTTP/1.1 and HTTP/2 over ALPN, and the
//! certificates of clients where their authorities are configured.
//!
//! No session is resumed, so that every connection proves anew who it comes from.

use std::pin::Pin;
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use openssl::asn1::Asn1Time;
use openssl::pkey::{PKey, Private};
use openssl::ssl::{
    AlpnError, Ssl, SslAcceptor, SslAcceptorBuilder, SslMethod, SslOptions, SslSessionCacheMode, SslVerifyMode, select_next_proto,
};
use openssl::x509::store::X509StoreBuilder;
use openssl::x509::{X509, X509Ref};
use tokio::net::TcpStream;
use tokio_openssl::SslStream;

use tollgate_config::settings::ServeTls;
use tollgate_worker::metrics::Metrics;

use crate::tokens::{Peer, certificate_name};
use crate::watched::{NamedFile, Watched};

/// The settings, as errors name them.
const CERTIFICATE: &str = "serve.tls.certificate_file";
const KEY: &str = "serve.tls.key_file";
const CLIENT_CA: &str = "serve.tls.client_ca_file";
/// What is spoken above TLS, in the form of ALPN: the server's favourite first.
const PROTOCOLS: &[u8] = b"\x02h2\x08http/1.1";

/// What connections are accepted with.
pub struct Tls(SslAcceptor);

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tls").finish_non_exhaustive()
    }
}

/// A connection after its handshake.
#[derive(Debug)]
pub struct Accepted {
    /// The connection.
    pub stream: SslStream<TcpStream>,
    /// The names in the certificate of the client, and for how long the certificate holds, where the client has shown a certificate.
    pub peer: Option<(Peer, Duration)>,
}

/// Reads the files of certificate, key and authorities.
///
/// # Errors
/// Returns a sentence for people if a file cannot be read or is wrong.
pub fn read(settings: &ServeTls, metrics: &Metrics) -> anyhow::Result<Watched<Tls>> {
    let mut files = vec![NamedFile::new(CERTIFICATE, &settings.certificate_file), NamedFile::new(KEY, &settings.key_file)];
    files.extend(settings.client_ca_file.iter().map(|file| NamedFile::new(CLIENT_CA, file)));
    let metrics = metrics.clone();
    Watched::read("certificates of TLS", files, move |files| match files {
        [certificate, key, client_ca @ ..] => Tls::new(certificate, key, client_ca.first().map(Vec::as_slice), &metrics),
        _ => bail!("{CERTIFICATE}: found no file"),
    })
}

impl Tls {
    fn new(certificate: &[u8], key: &[u8], client_ca: Option<&[u8]>, metrics: &Metrics) -> anyhow::Result<Self> {
        let chain = certificates(CERTIFICATE, certificate, "the server's certificate, and behind it those of its issuers")?;
        let (own, issuers) = chain.split_first().context(CERTIFICATE)?;
        let key = private_key(key)?;
        if !own.public_key().is_ok_and(|public| public.public_eq(&key)) {
            bail!(
                "{KEY}: found the key of another certificate than the first in {CERTIFICATE}; name the key that the certificate was made with"
            );
        }
        let mut builder = SslAcceptor::mozilla_intermediate_v5(SslMethod::tls_server()).context("TLS cannot be set up (OPENSSL_CONF)")?;
        let refused = |error| anyhow!("{CERTIFICATE}: found a certificate or key that OpenSSL refuses ({error}); use a stronger key");
        builder.set_certificate(own).and_then(|()| builder.set_private_key(&key)).map_err(refused)?;
        issuers.iter().try_for_each(|issuer| builder.add_extra_chain_cert(issuer.clone())).map_err(refused)?;
        configure(&mut builder)?;
        if let Some(client_ca) = client_ca {
            verify_clients(&mut builder, client_ca)?;
        }
        look_at_time(own, metrics)?;
        Ok(Self(builder.build()))
    }

    /// Performs the handshake on a connection.
    ///
    /// # Errors
    /// Returns OpenSSL's text, for people.
    pub async fn accept(&self, stream: TcpStream) -> Result<Accepted, String> {
        let ssl = Ssl::new(self.0.context()).and_then(|ssl| SslStream::new(ssl, stream));
        let mut stream = ssl.map_err(|error| error.to_string())?;
        Pin::new(&mut stream).accept().await.map_err(|error| error.to_string())?;
        let certificate = stream.ssl().peer_certificate();
        let peer = certificate.map(|certificate| (Peer(names(&certificate)), left(&certificate).unwrap_or_default()));
        Ok(Accepted { stream, peer })
    }
}

impl Accepted {
    /// Returns whether client and server have agreed on HTTP/2. A client that offers no protocol speaks HTTP/1.1.
    #[must_use]
    pub fn is_http2(&self) -> bool {
        self.stream.ssl().selected_alpn_protocol() == Some(b"h2")
    }
}

fn configure(builder: &mut SslAcceptorBuilder) -> anyhow::Result<()> {
    builder.set_session_cache_mode(SslSessionCacheMode::OFF);
    builder.set_options(SslOptions::NO_TICKET);
    builder.set_num_tickets(0)?;
    builder.set_alpn_select_callback(|_, offered| select_next_proto(PROTOCOLS, offered).ok_or(AlpnError::ALERT_FATAL));
    Ok(())
}

/// Asks clients for a certificate. A client without a certificate goes on, and needs a token.
fn verify_clients(builder: &mut SslAcceptorBuilder, file: &[u8]) -> anyhow::Result<()> {
    let mut store = X509StoreBuilder::new()?;
    for authority in certificates(CLIENT_CA, file, "the certificates of the authorities of clients")? {
        builder.add_client_ca(&authority)?;
        store.add_cert(authority)?;
    }
    builder.set_verify_cert_store(store.build())?;
    builder.set_verify(SslVerifyMode::PEER);
    Ok(())
}

/// Returns the certificates of a PEM file; there is at least one.
fn certificates(setting: &str, bytes: &[u8], what: &str) -> anyhow::Result<Vec<X509>> {
    let read = X509::stack_from_pem(bytes).ok().filter(|certificates| !certificates.is_empty());
    read.ok_or_else(|| anyhow!("{setting}: found {}; write a PEM file with {what}", shape(bytes)))
}

fn private_key(bytes: &[u8]) -> anyhow::Result<PKey<Private>> {
    // With a passphrase given, OpenSSL does not prompt on the terminal for that of an encrypted key.
    PKey::private_key_from_pem_passphrase(bytes, b"").map_err(|_| {
        let found = shape(bytes);
        anyhow!("{KEY}: found {found}; write a PEM file with the unencrypted private key of the certificate in {CERTIFICATE}")
    })
}

/// Returns what a file holds that is not what it should be.
fn shape(bytes: &[u8]) -> &'static str {
    let has = |words: &str| bytes.windows(words.len()).any(|window| window == words.as_bytes());
    if bytes.iter().all(u8::is_ascii_whitespace) {
        "an empty file"
    } else if has("ENCRYPTED") {
        "an encrypted private key"
    } else if has(" PRIVATE KEY-----") || has("-----BEGIN PRIVATE KEY-----") {
        "a private key"
    } else if has("-----BEGIN CERTIFICATE-----") {
        "a certificate"
    } else if has("-----BEGIN ") {
        "PEM of another kind"
    } else {
        "no PEM"
    }
}

/// Returns the names in a certificate, as entries of the file of tokens write them.
fn names(certificate: &X509Ref) -> Vec<String> {
    let names = certificate.subject_alt_names();
    let name = |name: &openssl::x509::GeneralNameRef| {
        let dns = name.dnsname().map(|name| format!("DNS:{name}"));
        certificate_name(&dns.or_else(|| name.uri().map(|uri| format!("URI:{uri}")))?)
    };
    names.iter().flatten().filter_map(name).collect()
}

/// Returns for how long a certificate holds from now on; `None` if it has expired.
fn left(certificate: &X509Ref) -> Option<Duration> {
    let left = Asn1Time::days_from_now(0).ok()?.diff(certificate.not_after()).ok()?;
    u64::try_from(i64::from(left.days) * 86_400 + i64::from(left.secs)).ok().map(Duration::from_secs)
}

/// Notes until when the server's certificate holds, and says so where clients will refuse it for now.
///
/// # Errors
/// Returns a sentence for people if the certificate has expired: the certificate in force may hold still.
fn look_at_time(certificate: &X509Ref, metrics: &Metrics) -> anyhow::Result<()> {
    let (from, until) = (certificate.not_before(), certificate.not_after());
    if left(certificate).is_none() {
        bail!("{CERTIFICATE}: found a certificate that expired on {until}; put a new certificate there");
    }
    let since_epoch = Asn1Time::from_unix(0)?.diff(until)?;
    metrics.serve_certificate_expiry.set(i64::from(since_epoch.days) * 86_400 + i64::from(since_epoch.secs));
    if *from > *Asn1Time::days_from_now(0)? {
        tracing::warn!("{CERTIFICATE}: found a certificate that holds from {from} on; clients refuse it until then");
    }
    Ok(())
}
