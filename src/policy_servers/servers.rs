//! All policy servers of a process, asked from threads that must not wait.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::Sender;

use tokio::runtime::Handle;

use tollgate_core::guardrail::{Answer, ProviderError};

use super::Endpoint;

/// All endpoints of a process, by the provider's place in the chain, and the runtime on which they work.
#[derive(Debug, Clone)]
pub struct PolicyServers {
    endpoints: Arc<BTreeMap<usize, Arc<Endpoint>>>,
    runtime: Handle,
}

impl PolicyServers {
    /// The endpoints with their providers' places in the chain. Of two for the same place the last counts.
    #[must_use]
    pub fn new(endpoints: Vec<(usize, Endpoint)>, runtime: Handle) -> Self {
        let endpoints = endpoints.into_iter().map(|(provider, endpoint)| (provider, Arc::new(endpoint))).collect();
        Self { endpoints: Arc::new(endpoints), runtime }
    }

    /// Starts asking a provider, and returns at once. The answer is sent to `answers` with its request_id, exactly once: before this returns if
    /// the question is refused, else when it is there, and as [`ProviderError::Connection`] if the asking ended without one, because
    /// the runtime stopped or the task panicked. A provider without an endpoint is [`ProviderError::NotAsked`].
    pub fn ask<T: Send + 'static>(&self, provider: usize, question: Vec<u8>, request_id: T, answers: &Sender<(T, Answer)>) {
        let awaited = Awaited { request_id: Some(request_id), answers: answers.clone() };
        let Some(endpoint) = self.endpoints.get(&provider) else { return awaited.send(Err(ProviderError::NotAsked)) };
        let entry = match endpoint.enter() {
            Ok(entry) => entry,
            Err(error) => return awaited.send(Err(error)),
        };
        let endpoint = Arc::clone(endpoint);
        self.runtime.spawn(async move {
            let answer = endpoint.answer(entry, question).await;
            awaited.send(answer);
        });
    }
}

/// An answer that someone waits for. If it is dropped without one, they hear that too.
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
            // Who has gone needs no answer.
            let _gone = self.answers.send((request_id, answer));
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
    fn who_waits_hears_of_a_task_that_panicked() {
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
