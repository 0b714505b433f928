//! Tests the circuit breaker with a real server: while it is open nothing arrives there, and then one question tries the server.

use std::io::Write;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::Semaphore;
use tollgate_core::decide::guardrail::HttpSettings;
use tollgate_core::decide::guardrail::ProviderError;
use tollgate_core::settings::Secret;
use tollgate_worker::metrics::Metrics;

use super::limits::until;
use super::server::Server;
use super::{endpoint, settings};

/// A server whose status can be switched, and that answers only by permit.
struct Switched {
    server: Server,
    status: Arc<AtomicU16>,
    gate: Arc<Semaphore>,
}

impl Switched {
    async fn new(status: u16) -> Self {
        let (status, gate) = (Arc::new(AtomicU16::new(status)), Arc::new(Semaphore::new(1_000)));
        let shared = (Arc::clone(&status), Arc::clone(&gate));
        let server = Server::start(move |mut peer| {
            let (status, gate) = shared.clone();
            async move {
                while peer.question().await.is_some() {
                    gate.acquire().await.unwrap().forget();
                    peer.answer(status.load(Ordering::SeqCst), b"an answer that stays here").await;
                }
            }
        })
        .await;
        Self { server, status, gate }
    }
}

/// Returns settings with which three failures in a row open the circuit, for ever.
fn breaking(url: &str) -> HttpSettings {
    HttpSettings { breaker_failures: 3, ..settings(url) }
}

#[tokio::test]
async fn a_server_that_fails_is_left_alone() {
    let switched = Switched::new(500).await;
    let metrics = Metrics::new().unwrap();
    let endpoint = endpoint(breaking(&switched.server.url), &metrics);
    for _ in 0..3 {
        assert_eq!(endpoint.ask(b"?".to_vec()).await, Err(ProviderError::Status(500)));
    }
    assert_eq!(metrics.provider_circuit_open.with_label_values(&["policy"]).get(), 1);
    for _ in 0..100 {
        assert_eq!(endpoint.ask(b"?".to_vec()).await, Err(ProviderError::CircuitOpen));
    }
    assert_eq!(switched.server.seen.questions(), 3);
}

#[tokio::test]
async fn a_server_that_was_left_alone_is_tried_by_one_question_and_taken_back() {
    const OPEN_FOR: Duration = Duration::from_millis(200);
    let switched = Switched::new(500).await;
    let (seen, metrics) = (&switched.server.seen, Metrics::new().unwrap());
    let settings = HttpSettings { breaker_open_ms: OPEN_FOR.as_millis().try_into().unwrap(), ..breaking(&switched.server.url) };
    let endpoint = Arc::new(endpoint(settings, &metrics));
    let circuit_open = metrics.provider_circuit_open.with_label_values(&["policy"]);
    for _ in 0..3 {
        assert_eq!(endpoint.ask(b"?".to_vec()).await, Err(ProviderError::Status(500)));
    }
    assert_eq!((seen.questions(), circuit_open.get()), (3, 1));
    let before = seen.questions();

    // The probe is held at the server while nine others come and go.
    switched.status.store(200, Ordering::SeqCst);
    switched.gate.forget_permits(1_000);
    tokio::time::sleep(OPEN_FOR).await;
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..10 {
        let endpoint = Arc::clone(&endpoint);
        tasks.spawn(async move { endpoint.ask(b"?".to_vec()).await });
    }
    for _ in 0..9 {
        assert_eq!(tasks.join_next().await.unwrap().unwrap(), Err(ProviderError::CircuitOpen));
    }
    until("the probe", || seen.questions() > before).await;
    assert_eq!((seen.questions(), circuit_open.get()), (before + 1, 1));
    switched.gate.add_permits(1_000);
    assert!(tasks.join_next().await.unwrap().unwrap().is_ok());
    assert_eq!(circuit_open.get(), 0);
    for _ in 0..10 {
        assert!(endpoint.ask(b"?".to_vec()).await.is_ok());
    }
    assert_eq!(seen.questions(), before + 11);
}

/// Only errors that say that the server does not work open the circuit.
#[tokio::test]
async fn only_what_says_that_the_server_does_not_work_opens_the_circuit() {
    for (status, opens) in [(500, true), (503, true), (429, true), (404, false), (301, false), (200, false)] {
        let switched = Switched::new(status).await;
        let metrics = Metrics::new().unwrap();
        let endpoint = endpoint(breaking(&switched.server.url), &metrics);
        for _ in 0..5 {
            let _answer = endpoint.ask(b"?".to_vec()).await;
        }
        assert_eq!(metrics.provider_circuit_open.with_label_values(&["policy"]).get(), i64::from(opens), "{status}");
    }
    // A question in the queue says nothing of the server, and neither does one that was refused.
    let switched = Switched::new(200).await;
    switched.gate.forget_permits(1_000);
    let metrics = Metrics::new().unwrap();
    let settings =
        HttpSettings { timeout_ms: 3_000, concurrency_max: 1, queue_max: 10, breaker_failures: 2, ..breaking(&switched.server.url) };
    let endpoint = Arc::new(endpoint(settings, &metrics));
    let asked = (0..20).map(|_| {
        let endpoint = Arc::clone(&endpoint);
        async move { endpoint.ask(b"?".to_vec()).await }
    });
    let answers = asked.collect::<tokio::task::JoinSet<_>>().join_all().await;
    let count = |error| answers.iter().filter(|answer| **answer == Err(error)).count();
    assert_eq!((count(ProviderError::TimedOut), count(ProviderError::Overloaded)), (11, 9));
    assert_eq!(metrics.provider_circuit_open.with_label_values(&["policy"]).get(), 0, "only one of them was on its way");
}

#[tokio::test]
async fn answers_that_come_too_late_open_the_circuit() {
    let switched = Switched::new(200).await;
    switched.gate.forget_permits(1_000);
    let metrics = Metrics::new().unwrap();
    let endpoint = endpoint(HttpSettings { timeout_ms: 1_500, ..breaking(&switched.server.url) }, &metrics);
    let mut answers = Vec::new();
    for _ in 0..4 {
        answers.push(endpoint.ask(b"?".to_vec()).await.unwrap_err());
    }
    assert_eq!(answers, [ProviderError::TimedOut, ProviderError::TimedOut, ProviderError::TimedOut, ProviderError::CircuitOpen]);
}

#[tokio::test]
async fn retries_stop_where_the_circuit_opens() {
    let switched = Switched::new(503).await;
    let settings = HttpSettings { is_idempotent: true, ..breaking(&switched.server.url) };
    let endpoint = endpoint(settings, &Metrics::new().unwrap());
    assert_eq!(endpoint.ask(b"?".to_vec()).await, Err(ProviderError::Status(503)));
    assert_eq!(endpoint.ask(b"?".to_vec()).await, Err(ProviderError::Status(503)), "what is known is told, not that there was no retry");
    assert_eq!(switched.server.seen.questions(), 3);
    assert_eq!(endpoint.ask(b"?".to_vec()).await, Err(ProviderError::CircuitOpen));
}

/// The log of a test.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn the_log_says_once_that_a_server_is_left_alone_and_once_that_it_is_back_and_holds_nothing_raw() {
    // The subscriber is set for all threads, because what a thread does not log, others do not log either. So the other tests log here
    // too, under another name.
    let log = Log::default();
    let writer = log.clone();
    tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE).with_ansi(false).with_writer(move || writer.clone()).init();
    let switched = Switched::new(500).await;
    let mut settings = HttpSettings { name: "logged".to_owned(), breaker_open_ms: 1, ..breaking(&switched.server.url) };
    settings.url.push_str("?key=s3cret-query");
    settings.headers = [("authorization".to_owned(), Secret("Bearer s3cret-header".to_owned()))].into();
    let endpoint = endpoint(settings, &Metrics::new().unwrap());
    let ask = || endpoint.ask(b"a s3cret-question".to_vec());
    for _ in 0..20 {
        assert!(ask().await.is_err());
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    switched.status.store(200, Ordering::SeqCst);
    while ask().await.is_err() {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let text = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    let lines = |level: &str| text.lines().filter(|line| line.contains(level) && line.contains("provider=\"logged\"")).collect::<Vec<_>>();
    let (warned, informed) = (lines(" WARN "), lines(" INFO "));
    assert!(warned.len() == 1 && warned[0].contains("left alone") && warned[0].contains("error=\"status\""), "{text}");
    assert!(informed.len() == 1 && informed[0].contains("is back"), "{text}");
    assert!(lines("DEBUG").len() > 3 && text.contains("hyper_util"), "{text}");
    for raw in ["s3cret", "stays here"] {
        assert!(!text.contains(raw), "{text}");
    }
}
