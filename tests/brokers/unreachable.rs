//! Brokers that cannot be reached: the reason is said at once and again when it changes, and Ctrl-C ends the wait.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::ExitStatusExt as _;

use openssl::asn1::Asn1Time;
use openssl::ec::{EcGroup, EcKey};
use openssl::hash::MessageDigest;
use openssl::nid::Nid;
use openssl::pkey::PKey;
use openssl::ssl::{SslAcceptor, SslMethod};
use openssl::x509::{X509, X509NameBuilder};

use super::dev::after;
use super::process::Process;
use crate::serve::client::Client;
use crate::support::{run, temporary, tollgate};

/// Starts a server that treats every connection like this, and returns its address.
fn server(serve: impl Fn(TcpStream) + Send + Sync + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || listener.incoming().flatten().for_each(serve));
    address
}

/// Returns an address at which nobody listens.
fn refused() -> String {
    let [port] = tollgate_testkit::free_ports().unwrap();
    format!("127.0.0.1:{port}")
}

/// Hangs up on a request of no valid size, as Kafka's plaintext listeners do with a TLS greeting.
fn plaintext(mut stream: TcpStream) {
    let _read = stream.read(&mut [0; 4]);
}

/// Answers nothing.
fn silent(stream: TcpStream) {
    std::mem::forget(stream);
}

/// Returns a listener that speaks TLS only.
fn tls() -> impl Fn(TcpStream) {
    let group = EcGroup::from_curve_name(Nid::X9_62_PRIME256V1).unwrap();
    let key = PKey::from_ec_key(EcKey::generate(&group).unwrap()).unwrap();
    let mut name = X509NameBuilder::new().unwrap();
    name.append_entry_by_text("CN", "a test").unwrap();
    let name = name.build();
    let mut certificate = X509::builder().unwrap();
    certificate.set_subject_name(&name).unwrap();
    certificate.set_issuer_name(&name).unwrap();
    certificate.set_pubkey(&key).unwrap();
    certificate.set_not_before(&Asn1Time::days_from_now(0).unwrap()).unwrap();
    certificate.set_not_after(&Asn1Time::days_from_now(1).unwrap()).unwrap();
    certificate.sign(&key, MessageDigest::sha256()).unwrap();
    let mut acceptor = SslAcceptor::mozilla_intermediate_v5(SslMethod::tls_server()).unwrap();
    acceptor.set_certificate(&certificate.build()).unwrap();
    acceptor.set_private_key(&key).unwrap();
    let acceptor = acceptor.build();
    move |stream| {
        if let Ok(mut stream) = acceptor.accept(stream) {
            let _written = stream.write_all(b"?");
        }
    }
}

fn worker(brokers: &str, properties: &[&str]) -> Process {
    let mut command = tollgate();
    command.arg("run").env("TOLLGATE__ADMIN", "null").env("TOLLGATE__KAFKA__BROKERS", brokers);
    properties.iter().for_each(|property| _ = command.args(["-X", property]));
    Process::start(&mut command)
}

#[test]
fn a_worker_says_why_it_reaches_no_broker() {
    let cases: Vec<(String, Vec<&str>, &[&str])> = vec![
        (refused(), vec![], &["Connection refused", "check kafka.brokers, and that a broker listens there"]),
        (
            "nowhere.invalid:9092".to_owned(),
            vec![],
            &["Failed to resolve 'nowhere.invalid:9092'", "check the host's name in kafka.brokers"],
        ),
        (server(tls()), vec![], &["may want TLS", "check security.protocol in kafka.properties"]),
        (server(plaintext), vec!["security.protocol=ssl"], &["SSL handshake failed", "check security.protocol"]),
        (server(tls()), vec!["security.protocol=ssl"], &["none of the trusted authorities", "check ssl.ca.location in kafka.properties"]),
        (server(silent), vec![], &["no answer yet, and no error either"]),
    ];
    for (brokers, properties, says) in cases {
        let mut worker = worker(&brokers, &properties);
        worker.line(&[&["the brokers cannot be reached", &brokers], says].concat());
        worker.interrupt();
        assert!(worker.wait().success(), "{}", worker.said());
        let said = worker.said();
        // librdkafka may have a second sentence for the same trouble.
        let mut reasons: Vec<_> =
            said.lines().filter_map(|line| line.split_once("the brokers cannot be reached")).map(|(_, reason)| reason).collect();
        reasons.sort_unstable();
        assert!(reasons.windows(2).all(|pair| pair[0] != pair[1]), "the same reason again:\n{said}");
        assert!(!said.contains("stats"), "{said}");
    }
}

#[test]
fn a_reason_that_changes_is_said_again() {
    let address = refused();
    let worker = worker(&address, &["statistics.interval.ms=100"]);
    worker.line(&["the brokers cannot be reached", "Connection refused"]);
    let listener = TcpListener::bind(&address).unwrap();
    std::thread::spawn(move || listener.incoming().flatten().for_each(tls()));
    worker.line(&["the brokers cannot be reached", "may want TLS"]);
    // librdkafka's statistics would fill the log.
    assert!(!worker.said().to_lowercase().contains("statistics"), "{}", worker.said());
}

#[test]
fn the_health_report_says_why() {
    let address = refused();
    let mut command = tollgate();
    let worker = Process::start(command.arg("run").env("TOLLGATE__ADMIN__LISTEN", "127.0.0.1:0").env("TOLLGATE__KAFKA__BROKERS", &address));
    worker.line(&["the brokers cannot be reached"]);
    let admin = Client { address: after(&worker.line(&["admin endpoint"]), "listen=").to_owned() };
    let answer = admin.get("/readyz");
    assert_eq!(answer.status, 503, "{answer:?}");
    assert!(answer.body.contains(&format!("\"problems\":[\"the brokers at {address} cannot be reached: ")), "{answer:?}");
}

#[test]
fn every_command_says_why_it_reaches_no_broker() {
    let address = refused();
    for arguments in [["state", "list"], ["control", "list"], ["shadow", "report"]] {
        let ran = run(tollgate().args(arguments).args(["-b", &address]), b"");
        assert_eq!((ran.exit, ran.stdout.as_str()), (Some(1), ""));
        let lines: Vec<_> = ran.stderr.lines().collect();
        assert_eq!(lines.len(), 2, "{}", ran.stderr);
        assert!(lines[0].contains("cannot be reached") && lines[0].contains("Connection refused"), "{}", ran.stderr);
        assert!(lines[1].contains("do not answer") && lines[1].contains("Connection refused"), "{}", ran.stderr);
    }
}

/// Ctrl-C ends every command that waits for brokers, at once and as it ends any other process.
#[test]
fn a_signal_ends_the_wait_of_every_command() {
    let (address, policy) =
        (refused(), temporary("tool_loop_guardrails: {same_tool_failure_halt_after: 3, same_tool_failure_warn_after: 2}\n"));
    let diff = ["diff", "--policy", policy.path().to_str().unwrap(), "topic:agent.events"];
    let commands: [&[&str]; 6] =
        [&["abuse", "pardon", "user:x"], &["abuse", "resume", "safety-stop-user"], &["capture"], &["dlq", "redrive"], &["sample"], &diff];
    for arguments in commands {
        let mut waiting = Process::start(tollgate().args(arguments).args(["-b", &address]));
        waiting.line(&["cannot be reached", "trying for"]);
        waiting.interrupt();
        assert_eq!(waiting.wait().signal(), Some(2), "{arguments:?}: {}", waiting.said());
    }
}
