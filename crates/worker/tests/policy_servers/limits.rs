//! Tests how many questions are on their way, how many wait, and what happens to the rest.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;
use tollgate_core::decide::guardrail::HttpSettings;
use tollgate_core::decide::guardrail::{Answer, ProviderError};
use tollgate_worker::metrics::Metrics;
use tollgate_worker::policy_servers::{Endpoint, PolicyServers};

use super::server::Server;
use super::{endpoint, settings};

/// How long to wait for what has to come.
const PATIENCE: Duration = Duration::from_secs(120);

/// Starts a server that answers a question for every permit it gets.
pub async fn gated(gate: &Arc<Semaphore>) -> Server {
    let gate = Arc::clone(gate);
    Server::start(move |mut peer| {
        let gate = Arc::clone(&gate);
        async move {
            while let Some(question) = peer.question().await {
                gate.acquire().await.unwrap().forget();
                peer.answer(200, &question).await;
            }
        }
    })
    .await
}

/// Waits until something holds.
pub async fn until(what: &str, holds: impl Fn() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "never came: {what}");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

fn ask_all(endpoint: &Arc<Endpoint>, questions: usize) -> tokio::task::JoinSet<(usize, Answer)> {
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..questions {
        let endpoint = Arc::clone(endpoint);
        tasks.spawn(async move { (n, endpoint.ask(n.to_string().into_bytes()).await) });
    }
    tasks
}

#[tokio::test]
async fn no_more_questions_are_on_their_way_than_allowed() {
    // The first four are held until all of them are there.
    let gate = Arc::new(Semaphore::new(0));
    let opens = Arc::clone(&gate);
    let server = Server::start(move |mut peer| {
        let gate = Arc::clone(&gate);
        async move {
            while let Some(question) = peer.question().await {
                gate.acquire().await.unwrap().forget();
                tokio::time::sleep(Duration::from_millis(10)).await;
                peer.answer(200, &question).await;
            }
        }
    })
    .await;
    let settings = HttpSettings { concurrency_max: 4, ..settings(&server.url) };
    let endpoint = Arc::new(endpoint(settings, &Metrics::new().unwrap()));
    let tasks = ask_all(&endpoint, 200);
    until("four questions", || server.seen.questions() == 4).await;
    opens.add_permits(200);
    for (n, answer) in tasks.join_all().await {
        assert_eq!(answer, Ok(n.to_string().into_bytes()));
    }
    assert_eq!(server.seen.peak.load(Ordering::SeqCst), 4);
    assert_eq!(server.seen.questions(), 200);
    // One that takes its time to be ready again is replaced.
    assert!((4..20).contains(&server.seen.connections()), "{} connections", server.seen.connections());
}

#[tokio::test]
async fn one_question_more_than_the_queue_holds_is_refused_at_once() {
    let gate = Arc::new(Semaphore::new(0));
    let (server, metrics) = (gated(&gate).await, Metrics::new().unwrap());
    let settings = HttpSettings { concurrency_max: 2, queue_max: 3, ..settings(&server.url) };
    let endpoint = Arc::new(endpoint(settings, &metrics));
    let mut tasks = ask_all(&endpoint, 10);
    for _ in 0..5 {
        let (_, answer) = tasks.join_next().await.unwrap().unwrap();
        assert_eq!(answer, Err(ProviderError::Overloaded));
    }
    until("two questions", || server.seen.questions() == 2).await;
    let gauges = || [&metrics.provider_in_flight, &metrics.provider_queued].map(|gauge| gauge.with_label_values(&["policy"]).get());
    assert_eq!(gauges(), [2, 3]);
    gate.add_permits(5);
    for (n, answer) in tasks.join_all().await {
        assert_eq!(answer, Ok(n.to_string().into_bytes()));
    }
    assert_eq!((gauges(), server.seen.questions()), ([0, 0], 5));
    assert_eq!(metrics.provider_duration.with_label_values(&["policy"]).get_sample_count(), 5);
}

#[tokio::test]
async fn waiting_for_a_turn_counts_towards_the_deadline() {
    let gate = Arc::new(Semaphore::new(0));
    let server = gated(&gate).await;
    let settings = HttpSettings { concurrency_max: 1, timeout_ms: 300, ..settings(&server.url) };
    let endpoint = Arc::new(endpoint(settings, &Metrics::new().unwrap()));
    let asked_at = Instant::now();
    for (n, answer) in ask_all(&endpoint, 20).join_all().await {
        assert_eq!(answer, Err(ProviderError::TimedOut), "question {n}");
    }
    assert!(asked_at.elapsed() >= Duration::from_millis(300), "{:?}", asked_at.elapsed());
    // If the wait did not count, all would have been asked, one after the other. These are the first one, and at most those few that were
    // admitted a moment later and whose turn came before their own deadline.
    assert!(server.seen.questions() < 10, "{} questions", server.seen.questions());
}

/// Asks from a plain thread, does something when all is asked, and checks that each question gets one answer. Returns how many got their own
/// one, and how many were refused.
async fn ask_from_a_thread(settings: HttpSettings, questions: usize, when_asked: impl FnOnce() + Send + 'static) -> (usize, usize) {
    let endpoint = endpoint(settings, &Metrics::new().unwrap());
    let servers = PolicyServers::new(vec![(5, endpoint)], tokio::runtime::Handle::current());
    let asked = tokio::task::spawn_blocking(move || {
        let (answers, received) = std::sync::mpsc::channel();
        for request in 0..questions {
            servers.ask(5, request.to_string().into_bytes(), request, &answers);
        }
        drop(answers);
        when_asked();
        received.iter().collect::<Vec<(usize, Answer)>>()
    });
    let mut answers = asked.await.unwrap();
    answers.sort_unstable_by_key(|(request, _)| *request);
    assert!(answers.iter().map(|(request, _)| *request).eq(0..questions), "one answer for every question");
    let answered = answers.iter().filter(|(request, answer)| *answer == Ok(request.to_string().into_bytes())).count();
    let overloaded = answers.iter().filter(|(_, answer)| *answer == Err(ProviderError::Overloaded)).count();
    (answered, overloaded)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_questions_at_once_get_ten_thousand_answers() {
    let server = Server::echo().await;
    let settings = HttpSettings { queue_max: 10_000, ..settings(&server.url) };
    assert_eq!(ask_from_a_thread(settings, 10_000, || ()).await, (10_000, 0));
    assert!(server.seen.peak.load(Ordering::SeqCst) <= 64);
    assert_eq!(server.seen.questions(), 10_000);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_ten_thousand_questions_those_that_do_not_fit_are_refused() {
    let gate = Arc::new(Semaphore::new(0));
    let server = gated(&gate).await;
    let settings = HttpSettings { concurrency_max: 64, queue_max: 100, ..settings(&server.url) };
    // Nothing is answered before all is asked.
    let asked = ask_from_a_thread(settings, 10_000, move || gate.add_permits(164));
    assert_eq!((asked.await, server.seen.questions()), ((164, 10_000 - 164), 164));
}

/// A question that is abandoned gives its place back.
#[tokio::test]
async fn questions_that_nobody_waits_for_any_more_hold_no_place() {
    let gate = Arc::new(Semaphore::new(0));
    let (server, metrics) = (gated(&gate).await, Metrics::new().unwrap());
    let settings = HttpSettings { concurrency_max: 2, queue_max: 2, ..settings(&server.url) };
    let endpoint = Arc::new(endpoint(settings, &metrics));
    for round in 1..=5 {
        let mut tasks = ask_all(&endpoint, 4);
        until("two questions", || server.seen.questions() == 2 * round).await;
        tasks.shutdown().await;
    }
    gate.add_permits(100);
    assert_eq!(endpoint.ask(b"still here?".to_vec()).await, Ok(b"still here?".to_vec()));
    assert_eq!(metrics.provider_in_flight.with_label_values(&["policy"]).get(), 0);
}

/// The runtime stops while questions are out, and when it has stopped nobody can be asked.
#[test]
fn whoever_waits_hears_that_the_runtime_has_stopped() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let server = runtime.block_on(gated(&Arc::new(Semaphore::new(0))));
    let metrics = Metrics::new().unwrap();
    let settings = HttpSettings { concurrency_max: 2, ..settings(&server.url) };
    let servers = PolicyServers::new(vec![(0, endpoint(settings, &metrics))], runtime.handle().clone());
    let (answers, received) = std::sync::mpsc::channel();
    for request in 0..10 {
        servers.ask(0, b"?".to_vec(), request, &answers);
    }
    runtime.block_on(until("two questions", || server.seen.questions() == 2));
    runtime.shutdown_timeout(PATIENCE);
    servers.ask(0, b"?".to_vec(), 10, &answers);
    drop(answers);
    let mut answered: Vec<(usize, Answer)> = received.iter().collect();
    answered.sort_unstable_by_key(|(request, _)| *request);
    assert!(answered.iter().map(|(request, _)| *request).eq(0..=10));
    assert!(answered.iter().all(|(_, answer)| *answer == Err(ProviderError::Connection)), "{answered:?}");
}
