//! Tests everything that a server can do wrong: which error it leads to, and when.

use std::task::Poll;
use std::time::{Duration, Instant};

use tollgate_core::decide::guardrail::{Answer, HttpSettings, ProviderError};
use tollgate_worker::metrics::Metrics;
use tollgate_worker::policy_servers::{Endpoint, PolicyServers};

use super::server::{Peer, Server};
use super::{NEVER_MS, endpoint, settings};

/// The deadline where the answer is that it is over.
const TIMEOUT: Duration = Duration::from_millis(1_500);
/// How long a test waits for an answer that has to come.
const PATIENCE: Duration = Duration::from_secs(120);
const MEGABYTES_100: usize = 100 * 1024 * 1024;
/// The bytes that sockets may hold of an answer that nobody reads: far less than the answer.
const BUFFERED_MAX: usize = 24 * 1024 * 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    Slow,
    Silent,
    NeverReads,
    ClosesAtOnce,
    ClosesUnanswered,
    ClosesAmidHead,
    ClosesAmidBody,
    ClosesAmidChunks,
    Status(u16),
    Html,
    Hints,
    EndlessLength,
    EndlessChunks,
    EndlessWithoutLength,
    AnnouncesTooMuch,
    Trickles,
    TricklesHead,
    Garbage,
    HugeHead,
    ManyHeaders,
    BadChunks,
    BadLength,
}

/// Returns every fault with the answer that it leads to.
fn table() -> Vec<(Fault, Answer)> {
    let connection = Err(ProviderError::Connection);
    let malformed = Err(ProviderError::Malformed("it is not HTTP"));
    vec![
        (Fault::Slow, Err(ProviderError::TimedOut)),
        (Fault::Silent, Err(ProviderError::TimedOut)),
        (Fault::NeverReads, Err(ProviderError::TimedOut)),
        (Fault::ClosesAtOnce, connection.clone()),
        (Fault::ClosesUnanswered, connection.clone()),
        (Fault::ClosesAmidHead, connection.clone()),
        (Fault::ClosesAmidBody, connection.clone()),
        (Fault::ClosesAmidChunks, connection.clone()),
        (Fault::Status(500), Err(ProviderError::Status(500))),
        (Fault::Status(503), Err(ProviderError::Status(503))),
        (Fault::Status(429), Err(ProviderError::Status(429))),
        (Fault::Status(404), Err(ProviderError::Status(404))),
        (Fault::Status(301), Err(ProviderError::Status(301))),
        (Fault::Status(307), Err(ProviderError::Status(307))),
        (Fault::Status(204), Err(ProviderError::Status(204))),
        (Fault::Status(201), Err(ProviderError::Status(201))),
        (Fault::Status(101), Err(ProviderError::Status(101))),
        (Fault::Html, Ok(b"<html>".to_vec())),
        (Fault::Hints, Ok(b"{}".to_vec())),
        (Fault::EndlessLength, Err(ProviderError::TooLarge)),
        (Fault::EndlessChunks, Err(ProviderError::TooLarge)),
        (Fault::EndlessWithoutLength, Err(ProviderError::TooLarge)),
        (Fault::AnnouncesTooMuch, Err(ProviderError::TooLarge)),
        (Fault::Trickles, Err(ProviderError::TimedOut)),
        (Fault::TricklesHead, Err(ProviderError::TimedOut)),
        (Fault::Garbage, malformed.clone()),
        (Fault::HugeHead, Err(ProviderError::TooLarge)),
        (Fault::ManyHeaders, Err(ProviderError::TooLarge)),
        (Fault::BadChunks, connection),
        (Fault::BadLength, malformed),
    ]
}

async fn misbehave(fault: Fault, mut peer: Peer) {
    if fault == Fault::ClosesAtOnce {
        return;
    }
    if fault == Fault::NeverReads {
        return std::future::pending().await;
    }
    while let Some(_question) = peer.question().await {
        match fault {
            Fault::Slow => {
                tokio::time::sleep(TIMEOUT * 8).await;
                peer.answer(200, b"late").await;
            }
            Fault::Html => peer.answer(200, b"<html>").await,
            Fault::Hints => {
                peer.send(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </>\r\n\r\n").await;
                peer.answer(200, b"{}").await;
            }
            Fault::Status(code) => {
                let head = format!("HTTP/1.1 {code} Whatever\r\nlocation: /elsewhere\r\n");
                let body = if code == 204 || code == 101 { "\r\n" } else { "content-length: 2\r\n\r\n{}" };
                peer.send(format!("{head}{body}").as_bytes()).await;
            }
            _ => return spoil(fault, peer).await,
        }
    }
}

/// Ends the connection in the way of the fault.
async fn spoil(fault: Fault, mut peer: Peer) {
    const OK: &str = "HTTP/1.1 200 OK\r\n";
    let megabyte = vec![b' '; 1024 * 1024];
    match fault {
        Fault::ClosesAmidHead => drop(peer.send(b"HTTP/1.1 200 OK\r\ncontent-le").await),
        Fault::ClosesAmidBody => drop(peer.send(format!("{OK}content-length: 10\r\n\r\n{{").as_bytes()).await),
        Fault::ClosesAmidChunks => drop(peer.send(format!("{OK}transfer-encoding: chunked\r\n\r\n5\r\n{{").as_bytes()).await),
        Fault::EndlessLength => {
            peer.send(format!("{OK}content-length: {MEGABYTES_100}\r\n\r\n").as_bytes()).await;
            while peer.send(&megabyte).await {}
        }
        Fault::AnnouncesTooMuch => {
            peer.send(format!("{OK}content-length: 1025\r\n\r\n").as_bytes()).await;
            peer.linger().await;
        }
        Fault::EndlessChunks => {
            peer.send(format!("{OK}transfer-encoding: chunked\r\n\r\n").as_bytes()).await;
            while peer.send(b"100000\r\n").await && peer.send(&megabyte).await && peer.send(b"\r\n").await {}
        }
        Fault::EndlessWithoutLength => {
            peer.send(format!("{OK}\r\n").as_bytes()).await;
            while peer.send(&megabyte).await {}
        }
        Fault::Trickles | Fault::TricklesHead => {
            let (head, drop) = if fault == Fault::Trickles { ("content-length: 1000\r\n\r\n", " ") } else { ("", "x: y\r\n") };
            peer.send(format!("{OK}{head}").as_bytes()).await;
            while peer.send(drop.as_bytes()).await {
                tokio::time::sleep(TIMEOUT / 20).await;
            }
        }
        Fault::Garbage => drop(peer.send(b"\x15\x03\x01\x00\x02\x02\x16 and so on\r\n\r\n").await),
        Fault::HugeHead => {
            peer.send(OK.as_bytes()).await;
            let line = format!("x-filler: {}\r\n", "x".repeat(8_000));
            while peer.send(line.as_bytes()).await {}
        }
        Fault::ManyHeaders => drop(peer.send(format!("{OK}{}\r\n", "x: y\r\n".repeat(500)).as_bytes()).await),
        Fault::BadChunks => drop(peer.send(format!("{OK}transfer-encoding: chunked\r\n\r\nfive\r\n").as_bytes()).await),
        Fault::BadLength => drop(peer.send(format!("{OK}content-length: 5\r\ncontent-length: 6\r\n\r\n").as_bytes()).await),
        Fault::Silent => peer.linger().await,
        _ => {}
    }
}

async fn server(fault: Fault) -> Server {
    Server::start(move |peer| misbehave(fault, peer)).await
}

/// Returns more than sockets buffer, so that a server that does not read is noticed.
fn question(fault: Fault) -> Vec<u8> {
    vec![b'q'; if fault == Fault::NeverReads { MEGABYTES_100 / 4 } else { 100 }]
}

/// Returns the deadline of a question that has this answer.
fn timeout(expected: &Answer) -> Duration {
    if *expected == Err(ProviderError::TimedOut) { TIMEOUT } else { Duration::from_millis(NEVER_MS.into()) }
}

fn endpoint_for(url: &str, metrics: &Metrics, timeout: Duration, is_idempotent: bool) -> Endpoint {
    let timeout_ms = timeout.as_millis().try_into().unwrap();
    endpoint(HttpSettings { timeout_ms, answer_bytes_max: 1_024, is_idempotent, ..settings(url) }, metrics)
}

#[tokio::test]
async fn every_fault_has_its_error_within_the_deadline_whether_asked_once_or_again() {
    let mut tasks = tokio::task::JoinSet::new();
    for (fault, expected) in table() {
        for is_idempotent in [false, true] {
            let expected = expected.clone();
            tasks.spawn(async move {
                let (server, metrics) = (server(fault).await, Metrics::new().unwrap());
                let endpoint = endpoint_for(&server.url, &metrics, timeout(&expected), is_idempotent);
                let asked_at = Instant::now();
                let answer = tokio::time::timeout(PATIENCE, endpoint.ask(question(fault))).await;
                let answer = answer.unwrap_or_else(|_| panic!("{fault:?}: no answer"));
                assert!(answer != Err(ProviderError::TimedOut) || asked_at.elapsed() >= TIMEOUT, "{fault:?}: {:?}", asked_at.elapsed());
                assert_eq!(answer, expected, "{fault:?}, idempotent: {is_idempotent}");
                let seen = server.seen.questions();
                assert!(seen <= 1 + usize::from(is_idempotent), "{fault:?} was asked {seen} times, idempotent: {is_idempotent}");
                let in_flight = metrics.provider_in_flight.with_label_values(&["policy"]).get();
                assert_eq!(in_flight, 0, "{fault:?}");
            });
        }
    }
    let done = tasks.join_all().await.len();
    assert!(done > 50, "only {done} cases");
}

#[tokio::test]
async fn an_answer_of_100_megabytes_is_neither_read_nor_buffered() {
    for fault in [Fault::EndlessLength, Fault::EndlessChunks, Fault::EndlessWithoutLength] {
        let (server, metrics) = (server(fault).await, Metrics::new().unwrap());
        let answer = endpoint_for(&server.url, &metrics, timeout(&Err(ProviderError::TooLarge)), false).ask(question(fault)).await;
        assert_eq!(answer, Err(ProviderError::TooLarge), "{fault:?}");
        let count = || server.seen.written.load(std::sync::atomic::Ordering::SeqCst);
        let mut written = count();
        // The server writes until its client has gone.
        loop {
            tokio::time::sleep(Duration::from_millis(50)).await;
            if std::mem::replace(&mut written, count()) == written {
                break;
            }
        }
        assert!(written < BUFFERED_MAX, "{fault:?}: the server could write {written} bytes");
    }
}

/// Under every fault, and for every question of several, there is one answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_asks_from_a_thread_is_answered_exactly_once_under_every_fault() {
    const QUESTIONS: usize = 8;
    let (answers, received) = std::sync::mpsc::channel();
    let (mut servers, mut endpoints, mut expected) = (Vec::new(), Vec::new(), Vec::new());
    for (provider, (fault, answer)) in table().into_iter().enumerate() {
        let (server, metrics) = (server(fault).await, Metrics::new().unwrap());
        endpoints.push((provider, endpoint_for(&server.url, &metrics, timeout(&answer), provider.is_multiple_of(2))));
        servers.push(server);
        expected.push((fault, answer));
    }
    let servers = PolicyServers::new(endpoints, tokio::runtime::Handle::current());
    let providers = expected.len();
    let asker = std::thread::spawn(move || {
        for request in 0..providers * QUESTIONS {
            servers.ask(request % providers, question(Fault::Silent), request, &answers);
        }
    });
    let mut requests: Vec<usize> = tokio::task::spawn_blocking(move || {
        received
            .iter()
            .map(|(request, answer): (usize, Answer)| {
                let (fault, expected) = &expected[request % providers];
                // A server that does not read answers nothing either; and once the circuit is open, that is the answer.
                let is_open = answer == Err(ProviderError::CircuitOpen);
                assert!(answer == *expected || is_open, "{fault:?}: {answer:?}");
                request
            })
            .collect()
    })
    .await
    .unwrap();
    asker.join().unwrap();
    requests.sort_unstable();
    assert_eq!(requests, (0..providers * QUESTIONS).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_server_that_is_down_is_a_failed_connection_and_worth_two_more_tries() {
    // The port stays taken, and nobody listens on it.
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let url = format!("http://{}/", socket.local_addr().unwrap());
    let metrics = Metrics::new().unwrap();
    let endpoint = endpoint(settings(&url), &metrics);
    assert_eq!(endpoint.ask(b"{}".to_vec()).await, Err(ProviderError::Connection));
    assert_eq!(metrics.provider_retries.with_label_values(&["policy"]).get(), 2);
}

#[tokio::test]
async fn a_host_that_nobody_knows_is_a_failed_connection() {
    let metrics = Metrics::new().unwrap();
    let settings = HttpSettings { timeout_ms: 10_000, ..settings("http://policy.invalid/") };
    let answer = endpoint(settings, &metrics).ask(b"{}".to_vec()).await;
    // A resolver that has nobody to ask itself may take longer than the deadline.
    assert!(matches!(answer, Err(ProviderError::Connection | ProviderError::TimedOut)), "{answer:?}");
}

/// The port is taken and refuses; as soon as the question was tried a second time, someone listens.
#[tokio::test]
async fn a_question_that_could_not_be_asked_is_asked_when_the_server_comes_up() {
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let url = format!("http://{}/", socket.local_addr().unwrap());
    let metrics = Metrics::new().unwrap();
    let retries = metrics.provider_retries.with_label_values(&["policy"]);
    let endpoint = endpoint(settings(&url), &metrics);
    // Whatever wakes the question wakes this first, so that the server is there before the third try, however late that is.
    let second_try = std::future::poll_fn(|_| if retries.get() == 0 { Poll::Pending } else { Poll::Ready(()) });
    let listen = async {
        second_try.await;
        Server::listen(socket.listen(8).unwrap(), |mut peer| async move {
            while let Some(question) = peer.question().await {
                peer.answer(200, &question).await;
            }
        })
    };
    let (server, answer) = tokio::join!(biased; listen, endpoint.ask(b"hello".to_vec()));
    assert_eq!((answer, server.seen.questions()), (Ok(b"hello".to_vec()), 1));
}
