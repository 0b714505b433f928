//! Tests TLS: a server is trusted only if a trusted authority has signed a certificate for the name that was asked for.

use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;

use openssl::asn1::Asn1Time;
use openssl::bn::BigNum;
use openssl::ec::{EcGroup, EcKey};
use openssl::hash::MessageDigest;
use openssl::nid::Nid;
use openssl::pkey::{PKey, Private};
use openssl::ssl::{Ssl, SslAcceptor, SslMethod, SslVerifyMode};
use openssl::symm::Cipher;
use openssl::x509::extension::{BasicConstraints, SubjectAlternativeName};
use openssl::x509::{X509, X509NameBuilder};
use tollgate_core::decide::guardrail::HttpSettings;
use tollgate_core::decide::guardrail::ProviderError;
use tollgate_worker::metrics::Metrics;
use tollgate_worker::policy_servers::Endpoint;

use super::server::Server;
use super::{endpoint, settings};

/// A self-signed certificate and its key.
struct Identity {
    certificate: X509,
    key: PKey<Private>,
}

/// Returns the identity of a host, valid for so many days from yesterday on.
fn identity(host: &str, days: u32) -> Identity {
    let group = EcGroup::from_curve_name(Nid::X9_62_PRIME256V1).unwrap();
    let key = PKey::from_ec_key(EcKey::generate(&group).unwrap()).unwrap();
    let mut name = X509NameBuilder::new().unwrap();
    name.append_entry_by_text("CN", "a test").unwrap();
    let name = name.build();
    let mut builder = X509::builder().unwrap();
    builder.set_version(2).unwrap();
    builder.set_serial_number(&BigNum::from_u32(1).unwrap().to_asn1_integer().unwrap()).unwrap();
    builder.set_subject_name(&name).unwrap();
    builder.set_issuer_name(&name).unwrap();
    builder.set_pubkey(&key).unwrap();
    let yesterday = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs() as i64 - 86_400;
    builder.set_not_before(&Asn1Time::from_unix(yesterday).unwrap()).unwrap();
    builder.set_not_after(&Asn1Time::from_unix(yesterday + i64::from(days) * 86_400).unwrap()).unwrap();
    builder.append_extension(BasicConstraints::new().critical().ca().build().unwrap()).unwrap();
    let mut names = SubjectAlternativeName::new();
    let names = if host.parse::<std::net::IpAddr>().is_ok() { names.ip(host) } else { names.dns(host) };
    builder.append_extension(names.build(&builder.x509v3_context(None, None)).unwrap()).unwrap();
    builder.sign(&key, MessageDigest::sha256()).unwrap();
    Identity { certificate: builder.build(), key }
}

fn write(folder: &Path, name: &str, text: &[u8]) -> Option<String> {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    Some(path.to_str().unwrap().to_owned())
}

/// Starts a TLS server with an identity, which asks for a client's certificate if it is to trust one.
async fn server(own: &Identity, client: Option<&Identity>) -> Server {
    let mut acceptor = SslAcceptor::mozilla_intermediate_v5(SslMethod::tls_server()).unwrap();
    acceptor.set_certificate(&own.certificate).unwrap();
    acceptor.set_private_key(&own.key).unwrap();
    if let Some(client) = client {
        acceptor.cert_store_mut().add_cert(client.certificate.clone()).unwrap();
        acceptor.set_verify(SslVerifyMode::PEER | SslVerifyMode::FAIL_IF_NO_PEER_CERT);
    }
    let acceptor = Arc::new(acceptor.build());
    let mut server = Server::start(move |peer| {
        let acceptor = Arc::clone(&acceptor);
        async move {
            // The stream goes from the peer into the TLS around it.
            let ssl = Ssl::new(acceptor.context()).unwrap();
            let (stream, peer) = peer.split();
            let mut stream = tokio_openssl::SslStream::new(ssl, stream).unwrap();
            if Pin::new(&mut stream).accept().await.is_err() {
                return;
            }
            let mut peer = peer.over(stream);
            while let Some(question) = peer.question().await {
                peer.answer(200, &question).await;
            }
        }
    })
    .await;
    server.url = server.url.replace("http://", "https://");
    server
}

async fn ask(settings: HttpSettings) -> Result<Vec<u8>, ProviderError> {
    endpoint(HttpSettings { is_idempotent: true, ..settings }, &Metrics::new().unwrap()).ask(b"hello".to_vec()).await
}

#[tokio::test]
async fn a_server_that_a_named_authority_vouches_for_is_asked_over_tls() {
    let (folder, own) = (tempfile::tempdir().unwrap(), identity("127.0.0.1", 30));
    let server = server(&own, None).await;
    let ca_file = write(folder.path(), "ca.pem", &own.certificate.to_pem().unwrap());
    let endpoint = endpoint(HttpSettings { ca_file, ..settings(&server.url) }, &Metrics::new().unwrap());
    for _ in 0..20 {
        assert_eq!(endpoint.ask(b"hello".to_vec()).await, Ok(b"hello".to_vec()));
    }
    assert_eq!((server.seen.questions(), server.seen.connections()), (20, 1));
}

#[tokio::test]
async fn a_server_that_cannot_be_believed_gets_no_question() {
    let folder = tempfile::tempdir().unwrap();
    let (own, other, elsewhere, expired) =
        (identity("127.0.0.1", 30), identity("127.0.0.1", 30), identity("policy.example", 30), identity("127.0.0.1", 0));
    let ca_file = |identity: &Identity| write(folder.path(), "ca.pem", &identity.certificate.to_pem().unwrap());
    for (what, identity, ca_file) in [("nobody vouches for it", &own, None), ("someone else is trusted", &own, ca_file(&other))] {
        let server = server(identity, None).await;
        assert_eq!(ask(HttpSettings { ca_file, ..settings(&server.url) }).await, Err(ProviderError::Connection), "{what}");
        assert_eq!(server.seen.questions(), 0, "{what}");
    }
    for (what, identity) in [("another name", &elsewhere), ("expired", &expired)] {
        let server = server(identity, None).await;
        let answer = ask(HttpSettings { ca_file: ca_file(identity), ..settings(&server.url) }).await;
        assert_eq!((answer, server.seen.questions()), (Err(ProviderError::Connection), 0), "{what}");
    }
}

#[tokio::test]
async fn a_server_that_does_not_speak_tls_gets_no_question() {
    let server = Server::echo().await;
    let url = server.url.replace("http://", "https://");
    // It waits for the end of a request that never comes; the deadline ends it.
    let answer = ask(HttpSettings { timeout_ms: 200, ..settings(&url) }).await;
    assert_eq!((answer, server.seen.questions()), (Err(ProviderError::TimedOut), 0));
}

#[tokio::test]
async fn a_server_that_wants_to_know_us_is_shown_the_configured_certificate() {
    let (folder, own, client) = (tempfile::tempdir().unwrap(), identity("127.0.0.1", 30), identity("a client", 30));
    let server = server(&own, Some(&client)).await;
    let ca_file = write(folder.path(), "ca.pem", &own.certificate.to_pem().unwrap());
    let unknown = HttpSettings { ca_file, ..settings(&server.url) };
    assert_eq!(ask(unknown.clone()).await, Err(ProviderError::Connection));
    let known = HttpSettings {
        client_certificate_file: write(folder.path(), "client.pem", &client.certificate.to_pem().unwrap()),
        client_key_file: write(folder.path(), "client.key", &client.key.private_key_to_pem_pkcs8().unwrap()),
        ..unknown
    };
    assert_eq!(ask(known).await, Ok(b"hello".to_vec()));
}

#[test]
fn files_that_are_no_good_are_named_with_their_key() {
    let (folder, own, other) = (tempfile::tempdir().unwrap(), identity("a client", 30), identity("a client", 30));
    let file = |name: &str, text: &[u8]| write(folder.path(), name, text);
    let certificate = file("own.pem", &own.certificate.to_pem().unwrap());
    let key = file("own.key", &own.key.private_key_to_pem_pkcs8().unwrap());
    let other_key = file("other.key", &other.key.private_key_to_pem_pkcs8().unwrap());
    let encrypted_key = file("encrypted.key", &own.key.private_key_to_pem_pkcs8_passphrase(Cipher::aes_128_cbc(), b"s3cret").unwrap());
    let absent = Some(folder.path().join("absent").to_str().unwrap().to_owned());
    let plain = settings("https://policy.example/");
    let with = |ca_file: &Option<String>, certificate: &Option<String>, key: &Option<String>| {
        let (ca_file, client_certificate_file, client_key_file) = (ca_file.clone(), certificate.clone(), key.clone());
        HttpSettings { ca_file, client_certificate_file, client_key_file, ..plain.clone() }
    };
    for (settings, key, problem) in [
        (with(&absent, &None, &None), "ca_file", "absent"),
        (with(&key, &None, &None), "ca_file", "own.key"),
        (with(&None, &certificate, &None), "client_key_file", "without its key"),
        (with(&None, &None, &key), "client_certificate_file", "without its certificate"),
        (with(&None, &absent, &key), "client_certificate_file", "absent"),
        (with(&None, &certificate, &absent), "client_key_file", "absent"),
        (with(&None, &certificate, &other_key), "client_key_file", "other.key"),
        (with(&None, &certificate, &encrypted_key), "client_key_file", "encrypted.key"),
    ] {
        let error = Endpoint::new(&settings, &Metrics::new().unwrap()).unwrap_err();
        assert!(error.key == key && error.problem.contains(problem), "{error}");
    }
    assert!(Endpoint::new(&with(&None, &certificate, &key), &Metrics::new().unwrap()).is_ok());
    assert!(Endpoint::new(&plain, &Metrics::new().unwrap()).is_ok());
}
