//! Looks at certificates: that of a broker which librdkafka has refused, and the client's own.

use std::net::{TcpStream, ToSocketAddrs as _};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use openssl::asn1::{Asn1Time, Asn1TimeRef};
use openssl::ssl::{SslConnector, SslMethod, SslVerifyMode};
use openssl::x509::{X509, X509NameRef, X509Ref};
use rdkafka::ClientConfig;

/// How long each step of the look at a broker may take.
const STEP_MAX: Duration = Duration::from_millis(1_500);
/// How many names of a certificate are shown.
const NAMES_MAX: usize = 8;

/// OpenSSL's numbers of what is wrong with a certificate.
mod wrong {
    pub(super) const NOT_YET_VALID: i32 = 9;
    pub(super) const EXPIRED: i32 = 10;
    pub(super) const NO_ISSUER: [i32; 4] = [18, 19, 20, 21];
    pub(super) const REVOKED: i32 = 23;
    pub(super) const OTHER_NAME: [i32; 2] = [62, 64];
}

/// The first thing that was wrong with a certificate.
struct Refused {
    code: i32,
    sentence: String,
}

/// Connects to a broker as its clients do, and returns why its certificate is refused and what to check; `None` if it is not, or cannot be
/// seen.
pub(super) fn why_refused(broker: &str, config: &ClientConfig) -> Option<(String, &'static str)> {
    let (host, _) = broker.rsplit_once(':')?;
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let stream = broker.to_socket_addrs().ok()?.find_map(|address| TcpStream::connect_timeout(&address, STEP_MAX).ok())?;
    stream.set_read_timeout(Some(STEP_MAX)).ok()?;
    stream.set_write_timeout(Some(STEP_MAX)).ok()?;
    let mut builder = SslConnector::builder(SslMethod::tls_client()).ok()?;
    trust(&mut builder, config)?;
    let refused: Arc<Mutex<Option<Refused>>> = Arc::default();
    let (found, name) = (Arc::clone(&refused), host.to_owned());
    builder.set_verify_callback(SslVerifyMode::PEER, move |is_good, context| {
        let certificate = context.current_cert();
        if let Some(certificate) = certificate.filter(|_| !is_good) {
            let code = context.error().as_raw();
            let whose = if context.error_depth() == 0 { "the broker's certificate" } else { "the certificate of the broker's authority" };
            let sentence = sentence(code, whose, certificate, &name, context.error().error_string());
            found.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(Refused { code, sentence });
        }
        is_good
    });
    let mut configuration = builder.build().configure().ok()?;
    let checks_host = config.get("ssl.endpoint.identification.algorithm") != Some("none");
    configuration.set_verify_hostname(checks_host);
    // It fails, or else there is nothing to explain.
    let _connected = configuration.connect(host, stream).is_ok();
    let Refused { code, sentence } = refused.lock().unwrap_or_else(PoisonError::into_inner).take()?;
    Some((sentence, check(code)))
}

/// Sets which authorities are trusted, as librdkafka does.
fn trust(builder: &mut openssl::ssl::SslConnectorBuilder, config: &ClientConfig) -> Option<()> {
    match (config.get("ssl.ca.pem"), config.get("ssl.ca.location").filter(|location| *location != "probe")) {
        (Some(pem), _) => {
            let mut store = openssl::x509::store::X509StoreBuilder::new().ok()?;
            X509::stack_from_pem(pem.as_bytes()).ok()?.into_iter().try_for_each(|authority| store.add_cert(authority)).ok()?;
            builder.set_cert_store(store.build());
        }
        (None, Some(location)) => {
            builder.set_cert_store(openssl::x509::store::X509StoreBuilder::new().ok()?.build());
            let path = std::path::Path::new(location);
            let (file, folder) = if path.is_dir() { (None, Some(path)) } else { (Some(path), None) };
            builder.load_verify_locations(file, folder).ok()?;
        }
        (None, None) => {
            let found = openssl_probe::probe();
            let _loaded = found.cert_file.is_some_and(|file| builder.set_ca_file(file).is_ok());
        }
    }
    Some(())
}

fn sentence(code: i32, whose: &str, certificate: &X509Ref, host: &str, openssl: &str) -> String {
    match code {
        wrong::EXPIRED => format!("{whose} expired on {}", certificate.not_after()),
        wrong::NOT_YET_VALID => format!("{whose} is valid only from {} on; is the clock right?", certificate.not_before()),
        wrong::REVOKED => format!("{whose} was revoked"),
        code if wrong::NO_ISSUER.contains(&code) => {
            format!("{whose} is from {}, which is none of the trusted authorities", shown(certificate.issuer_name()))
        }
        code if wrong::OTHER_NAME.contains(&code) => format!("{whose} names {} and not {host}", names(certificate)),
        _ => format!("{whose} is refused: {openssl}"),
    }
}

fn check(code: i32) -> &'static str {
    match code {
        wrong::EXPIRED | wrong::REVOKED => "have it renewed on the broker",
        wrong::NOT_YET_VALID => "compare the clocks of this machine and of the authority",
        code if wrong::OTHER_NAME.contains(&code) => {
            "check the host in kafka.brokers and the brokers' advertised.listeners, or have the certificate issued for that name"
        }
        _ => "check ssl.ca.location in kafka.properties: it has to hold the authority that issued the brokers' certificates",
    }
}

/// Returns the hosts that a certificate names.
fn names(certificate: &X509Ref) -> String {
    let alternatives = certificate.subject_alt_names();
    let name = |name: &openssl::x509::GeneralNameRef| {
        let address = |bytes: &[u8]| {
            let four: Option<[u8; 4]> = bytes.try_into().ok();
            let sixteen: Option<[u8; 16]> = bytes.try_into().ok();
            four.map(|bytes| std::net::IpAddr::from(bytes).to_string()).or(sixteen.map(|bytes| std::net::IpAddr::from(bytes).to_string()))
        };
        name.dnsname().map(str::to_owned).or_else(|| name.ipaddress().and_then(address))
    };
    let names: Vec<_> = alternatives.iter().flatten().filter_map(name).take(NAMES_MAX).collect();
    if names.is_empty() { shown(certificate.subject_name()) } else { names.join(", ") }
}

/// Returns the name of a subject or an issuer.
fn shown(name: &X509NameRef) -> String {
    let part = |entry: &openssl::x509::X509NameEntryRef| {
        Some(format!("{}={}", entry.object().nid().short_name().ok()?, entry.data().to_string().ok()?))
    };
    let parts: Vec<_> = name.entries().filter_map(part).collect();
    if parts.is_empty() { "nobody".to_owned() } else { parts.join(",") }
}

/// Returns what is wrong with the client's own certificate, as far as it can be seen: whether its time is over, or has not come.
pub(super) fn own_fault(config: &ClientConfig) -> Option<String> {
    let (pem, place) = match (config.get("ssl.certificate.pem"), config.get("ssl.certificate.location")) {
        (Some(pem), _) => (pem.as_bytes().to_vec(), String::new()),
        (None, Some(path)) => (std::fs::read(path).ok()?, format!(" in {path}")),
        (None, None) => return None,
    };
    let certificate = X509::from_pem(&pem).ok()?;
    let now = Asn1Time::days_from_now(0).ok()?;
    let is_over = |time: &Asn1TimeRef| time.compare(&now).is_ok_and(std::cmp::Ordering::is_lt);
    if is_over(certificate.not_after()) {
        return Some(format!("the client's certificate{place} expired on {}", certificate.not_after()));
    }
    (!is_over(certificate.not_before()))
        .then(|| format!("the client's certificate{place} is valid only from {} on", certificate.not_before()))
}
