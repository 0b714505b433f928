//! Tests connections that are kept: they are used again, may be closed in between, and never bring an answer to another question.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::sync::Semaphore;
use tollgate_core::decide::guardrail::HttpSettings;
use tollgate_core::decide::guardrail::ProviderError;
use tollgate_core::settings::Secret;
use tollgate_worker::metrics::Metrics;

use super::limits::until;
use super::server::Server;
use super::{endpoint, settings};

/// Starts a server that answers the first question of its first connection and closes that at the second question, which it may have dealt
/// with as far as the client knows.
async fn closes_at_the_second_question() -> Server {
    Server::start(|mut peer| async move {
        while let Some(question) = peer.question().await {
            if peer.number == 0 && question == b"second" {
                return;
            }
            peer.answer(200, &question).await;
        }
    })
    .await
}

#[tokio::test]
async fn questions_in_a_row_use_one_connection() {
    let (server, metrics) = (Server::echo().await, Metrics::new().unwrap());
    let endpoint = endpoint(settings(&server.url), &metrics);
    for n in 0..50 {
        let question = format!("question {n}").into_bytes();
        assert_eq!(endpoint.ask(question.clone()).await, Ok(question));
    }
    assert_eq!((server.seen.questions(), server.seen.connections()), (50, 1));
}

#[tokio::test]
async fn an_error_status_with_a_small_body_costs_no_connection() {
    let server = Server::start(|mut peer| async move {
        while peer.question().await.is_some() {
            peer.answer(403, b"{}").await;
        }
    })
    .await;
    let metrics = Metrics::new().unwrap();
    let endpoint = endpoint(settings(&server.url), &metrics);
    for _ in 0..50 {
        assert_eq!(endpoint.ask(b"?".to_vec()).await, Err(ProviderError::Status(403)));
    }
    // On a busy machine the body may come too late to be waited for.
    assert!(server.seen.connections() < 25, "{} connections", server.seen.connections());
}

#[tokio::test]
async fn an_idempotent_question_on_a_connection_that_broke_is_asked_exactly_once_more() {
    let (server, metrics) = (closes_at_the_second_question().await, Metrics::new().unwrap());
    let endpoint = endpoint(HttpSettings { is_idempotent: true, ..settings(&server.url) }, &metrics);
    assert_eq!(endpoint.ask(b"first".to_vec()).await, Ok(b"first".to_vec()));
    assert_eq!(endpoint.ask(b"second".to_vec()).await, Ok(b"second".to_vec()));
    assert_eq!((server.seen.questions(), server.seen.connections()), (3, 2));
    assert_eq!(metrics.provider_retries.with_label_values(&["policy"]).get(), 1);
}

#[tokio::test]
async fn a_question_that_is_not_idempotent_is_not_asked_again() {
    let (server, metrics) = (closes_at_the_second_question().await, Metrics::new().unwrap());
    let endpoint = endpoint(settings(&server.url), &metrics);
    assert_eq!(endpoint.ask(b"first".to_vec()).await, Ok(b"first".to_vec()));
    assert_eq!(endpoint.ask(b"second".to_vec()).await, Err(ProviderError::Connection));
    assert_eq!((server.seen.questions(), server.seen.connections()), (2, 1));
    assert_eq!(endpoint.ask(b"second".to_vec()).await, Ok(b"second".to_vec()), "the next one has a connection of its own");
}

#[tokio::test]
async fn a_connection_that_was_closed_between_two_questions_costs_nothing() {
    let gone = Arc::new(AtomicUsize::new(0));
    let clients_gone = Arc::clone(&gone);
    let server = Server::start(move |mut peer| {
        let gone = Arc::clone(&clients_gone);
        async move {
            let question = peer.question().await.unwrap();
            peer.answer(200, &question).await;
            peer.stream.shutdown().await.unwrap();
            // The client closes its side when it has seen that.
            peer.linger().await;
            gone.fetch_add(1, Ordering::SeqCst);
        }
    })
    .await;
    let metrics = Metrics::new().unwrap();
    let endpoint = endpoint(settings(&server.url), &metrics);
    for n in 1..=5 {
        assert_eq!(endpoint.ask(b"?".to_vec()).await, Ok(b"?".to_vec()), "question {n}");
        assert_eq!(server.seen.connections(), n);
        until("the end of the connection", || gone.load(Ordering::SeqCst) == n).await;
    }
    assert_eq!(metrics.provider_retries.with_label_values(&["policy"]).get(), 0);
}

/// Servers close connections that are idle for five seconds: ours are given up before.
#[tokio::test]
async fn a_connection_that_was_idle_for_long_is_not_used_again() {
    let (server, metrics) = (Server::echo().await, Metrics::new().unwrap());
    let endpoint = endpoint(settings(&server.url), &metrics);
    for connections in 1..=2 {
        assert_eq!(endpoint.ask(b"?".to_vec()).await, Ok(b"?".to_vec()));
        assert_eq!(server.seen.connections(), connections);
        if connections == 1 {
            tokio::time::sleep(Duration::from_millis(4_200)).await;
        }
    }
}

/// `localhost` is ::1 as well on most machines, where nobody listens.
#[tokio::test]
async fn a_host_with_several_addresses_is_asked_on_the_one_that_answers() {
    let server = Server::echo().await;
    let endpoint = endpoint(settings(&server.url.replace("127.0.0.1", "localhost")), &Metrics::new().unwrap());
    assert_eq!(endpoint.ask(b"?".to_vec()).await, Ok(b"?".to_vec()));
}

#[tokio::test]
async fn an_idempotent_question_after_a_server_error_is_asked_exactly_once_more() {
    for (answers, expected, asked) in [
        ([500, 200], Ok(b"?".to_vec()), 2),
        ([503, 503], Err(ProviderError::Status(503)), 2),
        ([500, 404], Err(ProviderError::Status(404)), 2),
        ([404, 200], Err(ProviderError::Status(404)), 1),
        ([429, 200], Err(ProviderError::Status(429)), 1),
    ] {
        let next = Arc::new(AtomicUsize::new(0));
        let server = Server::start(move |mut peer| {
            let next = Arc::clone(&next);
            async move {
                while let Some(question) = peer.question().await {
                    let status = answers.get(next.fetch_add(1, Ordering::SeqCst)).copied().unwrap_or(200);
                    peer.answer(status, &question).await;
                }
            }
        })
        .await;
        let endpoint = endpoint(HttpSettings { is_idempotent: true, ..settings(&server.url) }, &Metrics::new().unwrap());
        assert_eq!((endpoint.ask(b"?".to_vec()).await, server.seen.questions()), (expected, asked), "{answers:?}");
    }
}

/// A second answer that nobody asked for, in the same breath as the first: it must not be taken for the answer to the next question.
#[tokio::test]
async fn an_answer_too_many_reaches_no_other_question() {
    let server = Server::start(|mut peer| async move {
        while let Some(question) = peer.question().await {
            let body = String::from_utf8(question).unwrap();
            let own = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len());
            peer.send(format!("{own}HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nforged").as_bytes()).await;
        }
    })
    .await;
    let endpoint = endpoint(settings(&server.url), &Metrics::new().unwrap());
    let mut answered = 0;
    for n in 0..200 {
        let question = format!("question {n}").into_bytes();
        match endpoint.ask(question.clone()).await {
            Ok(answer) => assert_eq!(answer, question),
            Err(error) => assert_eq!(error, ProviderError::Connection),
        }
        answered += 1;
    }
    assert_eq!(answered, 200);
    assert!(server.seen.connections() > 50, "a connection with an answer too many is not used again");
}

/// The answer to a question that was given up comes late: on its connection, which is closed.
#[tokio::test]
async fn a_late_answer_reaches_no_other_question() {
    let (given_up, late) = (Arc::new(Semaphore::new(0)), Arc::new(AtomicUsize::new(0)));
    let of_server = (Arc::clone(&given_up), Arc::clone(&late));
    let server = Server::start(move |mut peer| {
        let (given_up, late) = of_server.clone();
        async move {
            while let Some(question) = peer.question().await {
                let is_slow = question == b"slow";
                if is_slow {
                    given_up.acquire().await.unwrap().forget();
                }
                peer.answer(200, &question).await;
                late.fetch_add(usize::from(is_slow), Ordering::SeqCst);
            }
        }
    })
    .await;
    let settings = HttpSettings { timeout_ms: 500, breaker_failures: 0, ..settings(&server.url) };
    let endpoint = endpoint(settings, &Metrics::new().unwrap());
    for n in 0..5 {
        assert_eq!(endpoint.ask(b"slow".to_vec()).await, Err(ProviderError::TimedOut));
        given_up.add_permits(1);
        until("the late answer", || late.load(Ordering::SeqCst) == n + 1).await;
        let question = format!("question {n}").into_bytes();
        // On a busy machine even this one may be late; it must not be wrong.
        let answer = endpoint.ask(question.clone()).await;
        assert!(answer == Ok(question) || answer == Err(ProviderError::TimedOut), "{answer:?}");
    }
}

#[tokio::test]
async fn the_server_sees_the_configured_headers_and_no_wish_for_compression() {
    let server = Server::start(|mut peer| async move {
        while let Some((head, _)) = peer.question_with_head().await {
            peer.answer(200, head.as_bytes()).await;
        }
    })
    .await;
    let mut settings = settings(&server.url);
    settings.headers = [("Authorization".to_owned(), Secret("Bearer s3cret".to_owned()))].into();
    let head = String::from_utf8(endpoint(settings, &Metrics::new().unwrap()).ask(b"{}".to_vec()).await.unwrap()).unwrap();
    assert!(head.starts_with("post /v1/decide http/1.1\r\n"), "{head}");
    for line in ["authorization: bearer s3cret", "content-type: application/json", "accept: application/json", "content-length: 2"] {
        assert!(head.contains(&format!("\r\n{line}\r\n")), "{head}");
    }
    assert!(!head.contains("accept-encoding") && !head.contains("transfer-encoding"), "{head}");
}
