//! Puts the benchmark's load on a server of HTTP: each event is posted when it is due, and never waits for the answer to another.

use std::sync::mpsc::channel;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
use hyper::{Request, StatusCode, Uri};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use tokio::sync::Semaphore;
use tollgate_testkit::MixEvent;

use crate::load::{LEAD, sample};
use crate::producer::Sent;
use crate::{Arrivals, Phase, Schedule, Sender, Times, Worker};

/// How many requests of a phase are asked at once. Requests that are due beyond it are late, and open no connections without end.
const CONNECTIONS: usize = 256;

/// A client of HTTP/1.1 that keeps its connections open.
pub(super) struct Http {
    client: Client<HttpConnector, Full<Bytes>>,
    uri: Uri,
    runtime: tokio::runtime::Runtime,
}

impl Http {
    /// Returns a client that posts to a path of a port of loopback.
    pub(super) fn new(port: u16, path: &str) -> Result<Self> {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let uri = format!("http://127.0.0.1:{port}{path}").parse()?;
        Ok(Self { client: Client::builder(TokioExecutor::new()).build(connector), uri, runtime })
    }

    /// Posts an event, and returns the status once the whole answer is there.
    fn post(&self, event: &MixEvent, wait: Duration) -> Result<impl Future<Output = Result<StatusCode>> + use<>> {
        let request = Request::post(self.uri.clone())
            .header("content-type", "application/json")
            .header("prefer", format!("wait={}", wait.as_millis()))
            .body(Full::new(Bytes::copy_from_slice(&event.value)))?;
        let client = self.client.clone();
        Ok(async move {
            let answer = client.request(request).await?;
            let status = answer.status();
            answer.into_body().collect().await?;
            Ok(status)
        })
    }

    /// Runs a phase. `server` is the process whose use of the machine is looked at.
    pub(super) fn run(&self, sender: &mut Sender, server: &mut Worker, rate: f64, times: Times) -> Result<Phase> {
        let schedule = Schedule::new(rate, times.warm_up, times.measured);
        let mut arrivals = Arrivals::new(schedule, sender.next());
        let (start, is_over) = (Instant::now() + LEAD, OnceLock::new());
        let (sent, samples) = std::thread::scope(|threads| {
            let sampling = threads.spawn(|| sample(server, schedule, start, &is_over));
            let sent = self.send(sender, schedule, (start, times.deadline), &mut arrivals);
            let _first = is_over.set(());
            (sent, sampling.join().map_err(|_| anyhow!("a thread of the benchmark panicked")).and_then(|samples| samples))
        });
        Ok(Phase::of(schedule, &arrivals, &sent?, times.deadline, Some(&samples?)))
    }

    fn send(
        &self,
        sender: &mut Sender,
        schedule: Schedule,
        (start, deadline): (Instant, Duration),
        arrivals: &mut Arrivals,
    ) -> Result<Sent> {
        let (mut sent, mut event) = (Sent::default(), MixEvent::blank());
        let (answered, answers) = channel();
        let places = Arc::new(Semaphore::new(CONNECTIONS));
        for number in 0..schedule.count {
            sender.draw(&mut event, &mut sent);
            std::thread::sleep((start + schedule.due_time(number)).saturating_duration_since(Instant::now()));
            let (answer, answered, number) = (self.post(&event, deadline)?, answered.clone(), event.number);
            let places = Arc::clone(&places);
            self.runtime.spawn(async move {
                let in_turn = async {
                    let _place = places.acquire().await?;
                    answer.await
                };
                // A request that is late makes room for those of the next phase.
                let answer = tokio::time::timeout(deadline, in_turn).await;
                if matches!(answer, Ok(Ok(status)) if status.is_success()) {
                    // The phase may be over.
                    let _late = answered.send((number, start.elapsed()));
                }
            });
        }
        drop(answered);
        sent.elapsed = start.elapsed();
        while let Ok((number, elapsed)) = answers.recv_timeout(deadline) {
            arrivals.observe(number, elapsed);
        }
        Ok(sent)
    }

    /// Posts so many events that get verdicts at once, runs `meanwhile`, and returns how many requests got verdicts in the end.
    pub(super) fn flood(&self, sender: &mut Sender, count: usize, wait: Duration, meanwhile: impl FnOnce() -> Result<()>) -> Result<usize> {
        let (mut sent, mut event, mut asked) = (Sent::default(), MixEvent::blank(), Vec::with_capacity(count));
        while asked.len() < count {
            sender.draw(&mut event, &mut sent);
            if event.is_awaited() {
                asked.push(self.runtime.spawn(self.post(&event, wait)?));
            }
        }
        let done = meanwhile();
        let mut verdicts = 0;
        for answer in asked {
            verdicts += usize::from(self.runtime.block_on(answer).context("a request panicked")?? == StatusCode::OK);
        }
        done.map(|()| verdicts)
    }
}
