//! All policy servers of a process, for callers on threads that must not block.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::Sender;

use tokio::runtime::Handle;

use tollgate_core::decide::guardrail::{Answer, ProviderError};

use super::Endpoint;

/// All endpoints of a process, by the provider's place in the chain, and the runtime on which they are asked.
#[derive(Debug, Clone)]
pub struct PolicyServers {
    endpoints: Arc<BTreeMap<usize, Arc<Endpoint>>>,
    runtime: Handle,
}

impl PolicyServers {
    /// Returns the policy servers of these endpoints, each with its provider's place in the chain. Of two for the same place the last
    /// counts.
    #[must_use]
    pub fn new(endpoints: Vec<(usize, Endpoint)>, runtime: Handle) -> Self {
        let endpoints = endpoints.into_iter().map(|(provider, endpoint)| (provider, Arc::new(endpoint))).collect();
        Self { endpoints: Arc::new(endpoints), runtime }
    }

    /// Starts asking a provider, and returns at once. Exactly one answer is sent to `answers` with the request id: before this returns if
    /// the question is refused, else when the answer has come. It is [`ProviderError::Connection`] if the runtime stopped or the task
    /// panicked before there was an answer, and [`ProviderError::NotAsked`] if the provider has no endpoint.
    pub fn ask<T: Send + 'static>(&self, provider: usize, question: Vec<u8>, request_id: T, answers: &Sender<(T, Answer)>) {
        let awaited = Awaited { request_id: Some(request_id), answers: answers.clone() };
        let Some(endpoint) = self.endpoints.get(&provider) else { return awaited.send(Err(ProviderError::NotAsked)) };
        let admission = match endpoint.admit() {
            Ok(admission) => admission,
            Err(error) => return awaited.send(Err(error)),
        };
        let endpoint = Arc::clone(endpoint);
        self.runtime.spawn(async move {
            let answer = endpoint.answer(admission, question).await;
            awaited.send(answer);
        });
    }

    /// Returns the error of a provider as a sentence, with the cause where its connection failed.
    #[must_use]
    pub fn explain(&self, provider: usize, error: ProviderError) -> String {
        self.endpoints.get(&provider).map_or_else(|| error.to_string(), |endpoint| endpoint.explain(error))
    }
}

/// An answer that is still owed. If it is dropped unsent, an error is sent in its place.
struct Awaited<T> {
    request_id: Option<T>,
    answers: Sender<(T, Answer)>,
}

impl<T> Awaited<T> {
    fn send(mut self, answer: Answer) {
        self.send_once(answer);
    }

    fn send_once(&mut self, answer: Answer) {
        if let Some(request_id) = self.request_id.take() {
            // A receiver that has gone needs no answer.
            let _receiver_gone = self.answers.send((request_id, answer));
        }
    }
}

impl<T> Drop for Awaited<T> {
    fn drop(&mut self) {
        self.send_once(Err(ProviderError::Connection));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn awaited(answers: &Sender<(u8, Answer)>) -> Awaited<u8> {
        Awaited { request_id: Some(7), answers: answers.clone() }
    }

    #[test]
    fn an_answer_is_sent_once() {
        let (answers, received) = std::sync::mpsc::channel();
        awaited(&answers).send(Ok(b"yes".to_vec()));
        drop(answers);
        assert_eq!(received.iter().collect::<Vec<_>>(), [(7, Ok(b"yes".to_vec()))]);
    }

    #[test]
    fn a_task_that_panicked_is_reported_as_a_connection_error() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let (answers, received) = std::sync::mpsc::channel();
        let awaited = awaited(&answers);
        let task = runtime.spawn(async move {
            let _held = &awaited;
            panic!("a fault that nobody thought of");
        });
        assert!(runtime.block_on(task).unwrap_err().is_panic());
        drop(answers);
        assert_eq!(received.iter().collect::<Vec<_>>(), [(7, Err(ProviderError::Connection))]);
    }

    #[test]
    fn a_provider_without_an_endpoint_is_not_asked() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let (answers, received) = std::sync::mpsc::channel();
        PolicyServers::new(Vec::new(), runtime.handle().clone()).ask(3, Vec::new(), 7, &answers);
        assert_eq!(received.try_recv(), Ok((7, Err(ProviderError::NotAsked))));
    }
}
