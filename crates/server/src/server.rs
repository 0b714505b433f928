//! A server: its parts started in order, and drained at the stop.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::Context as _;
use tokio::net::TcpListener;

use tollgate_config::settings::{KafkaSettings, ServeSettings, Settings};
use tollgate_core::event::record::Partition;
use tollgate_worker::Stop;
use tollgate_worker::control_feed::host_name;
use tollgate_worker::health::Health;
use tollgate_worker::metrics::Metrics;
use tollgate_worker::threads::MustRun;

use crate::claim::Claims;
use crate::gate::Gate;
use crate::guard::Guard;
use crate::listen::{self, Answering, TIME_LIMITS, Transport};
use crate::publisher::Publisher;
use crate::replies::Replies;
use crate::routes::{App, router};
use crate::shared::{Condition, PARTITION_TAKEN, Shared};
use crate::token_file;
use crate::tokens::Tokens;
use crate::waits::Waits;
use crate::watch::TopicWatch;
use crate::watched::Watched;

/// What a server is made of.
#[derive(Debug, Clone)]
pub struct ServerParts {
    /// Brokers and topics.
    pub kafka: Arc<KafkaSettings>,
    /// The settings of the server.
    pub settings: ServeSettings,
    /// The most bytes of an event, as the workers read it.
    pub event_bytes_max: usize,
    /// Whether nobody else can be on the broker, since it is in this process.
    pub is_alone: bool,
    /// Whether the process ends where the server cannot go on. Otherwise requests are refused with 503.
    pub ends_process: bool,
    /// The metrics of the process.
    pub metrics: Metrics,
    /// The health of the process.
    pub health: Arc<Health>,
    /// The sign to stop.
    pub stop: Stop,
}

impl ServerParts {
    /// Returns the parts of a server with these settings, on brokers that others use too.
    #[must_use]
    pub fn of(settings: &Settings, (metrics, health): (&Metrics, &Arc<Health>), stop: &Stop) -> Self {
        Self {
            kafka: Arc::new(settings.kafka.clone()),
            settings: settings.serve.clone(),
            event_bytes_max: settings.policy.limits.event_bytes_max,
            is_alone: false,
            ends_process: true,
            metrics: metrics.clone(),
            health: Arc::clone(health),
            stop: stop.clone(),
        }
    }
}

/// The threads that speak with Kafka. They outlive the sign to stop: requests that have begun wait for replies.
#[derive(Debug, Default)]
struct KafkaThreads {
    threads: Vec<JoinHandle<()>>,
    /// The sign to these threads alone, given once no request waits.
    stop: Stop,
}

impl KafkaThreads {
    /// Gives the sign, and waits until the threads have ended and their clients are closed.
    fn join(mut self) {
        self.stop.give();
        for thread in self.threads.drain(..) {
            // A thread that panicked has been reported by the panic itself.
            let _panicked = thread.join();
        }
    }
}

impl Drop for KafkaThreads {
    fn drop(&mut self) {
        self.stop.give();
    }
}

/// A server that runs.
#[derive(Debug)]
pub struct Server {
    shared: Arc<Shared>,
    app: Arc<App>,
    /// Why the server had to end, if it had to.
    ended: Arc<Mutex<Option<anyhow::Error>>>,
    threads: KafkaThreads,
    transport: Transport,
    connections_max: u32,
}

impl Server {
    /// Returns a listener on the address.
    ///
    /// # Errors
    /// Returns a sentence for people if the address cannot be bound.
    pub async fn bind(settings: &ServeSettings) -> anyhow::Result<TcpListener> {
        let listen = settings.listen;
        TcpListener::bind(listen)
            .await
            .map_err(|error| anyhow::anyhow!("serve.listen: {listen} cannot be taken ({error}); choose another port"))
    }

    /// Starts the threads that speak with Kafka. Requests are refused with 503 until the server has seen that its replies arrive.
    ///
    /// # Errors
    /// The file of tokens or a file of TLS is wrong, a property is wrong, or the system gives no more threads.
    pub fn start(parts: ServerParts) -> anyhow::Result<Self> {
        let ServerParts { kafka, settings, event_bytes_max, is_alone, ends_process, metrics, health, stop } = parts;
        let must_run = |name: &str| MustRun::new(name, health.threads(), &stop);
        let guard = match tokens(&settings)? {
            None => Guard::loopback(),
            Some(file) => {
                let tokens = file.current();
                file.watch(must_run("serve-tokens"), stop.clone())?;
                Guard::Tokens(tokens)
            }
        };
        let transport = transport(&settings, &metrics, must_run("serve-tls"), &stop)?;
        let count = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
        let waits = Waits::new(count(settings.in_flight_max), count(settings.remembered_max));
        let partition = Partition(i32::try_from(settings.partition).context("serve.partition: found a number that no partition has")?);
        let shared = Arc::new(Shared::new(waits, partition, Arc::clone(&health), metrics));
        let mut threads = KafkaThreads::default();
        let kafka_stop = threads.stop.clone();
        let of_kafka = |name: &str| must_run(name).until(&kafka_stop);
        let (publisher, publishing) = Publisher::start(&kafka, partition, &shared, (of_kafka("serve-publisher"), &kafka_stop))?;
        threads.threads.push(publishing);
        let publisher = Arc::new(publisher);
        let (found, watching) = TopicWatch::start(&kafka, partition, &shared, (of_kafka("serve-watch"), &kafka_stop))?;
        threads.threads.push(watching);
        let consumer = Replies::consumer(&kafka, partition, &shared).context("kafka.properties")?;
        let claims = Claims::new(host_name(), is_alone);
        let replies = Replies {
            kafka,
            partition,
            shared: Arc::clone(&shared),
            publisher: Arc::clone(&publisher),
            claims,
            found,
            stop: kafka_stop.clone(),
        };
        let ended = Arc::new(Mutex::new(None));
        let (why, cut_off, until) = (Arc::clone(&ended), Arc::clone(&shared), kafka_stop.clone());
        let reading = of_kafka("serve-replies").spawn(move || {
            let Err(error) = replies.run(consumer) else { return };
            cut_off.set(Condition::CutOff { code: PARTITION_TAKEN, why: error.to_string() });
            if ends_process {
                *why.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                stop.give();
            }
            while !until.wait(Duration::from_secs(1)) {
                cut_off.beat();
            }
        })?;
        threads.threads.push(reading);
        let connections_max = settings.connections_max;
        let gate = Gate { shared: Arc::clone(&shared), publisher };
        Ok(Self { shared, app: Arc::new(App { gate, guard, settings, event_bytes_max }), ended, threads, transport, connections_max })
    }

    /// Reads the files that the settings name, as a server does when it starts: tokens, certificate, key and authorities of clients.
    ///
    /// # Errors
    /// Names every fault, one a line, with the setting.
    pub fn check(settings: &ServeSettings, metrics: &Metrics) -> anyhow::Result<()> {
        let faults = [tokens(settings).map(drop), check_tls(settings, metrics)].into_iter().filter_map(Result::err);
        let faults: Vec<_> = faults.map(|error| format!("{error:#}")).collect();
        anyhow::ensure!(faults.is_empty(), "{}", faults.join("\n"));
        Ok(())
    }

    /// Answers requests until `stopping` is ready, and then those that have begun. `held` is dropped when nobody waits any more. When it returns,
    /// every client of Kafka is closed.
    ///
    /// # Errors
    /// The server had to end: another server has its partition.
    pub async fn serve<T>(self, listener: TcpListener, stopping: impl Future<Output = ()>, held: T) -> anyhow::Result<()> {
        let shared = Arc::clone(&self.shared);
        let delay = Duration::from_millis(self.app.settings.stop_delay_ms.into());
        let stop = async move {
            stopping.await;
            shared.leave();
            tokio::time::sleep(delay).await;
            shared.set(Condition::Draining);
        };
        let metrics = self.shared.metrics.clone();
        let answering = Answering { transport: self.transport, metrics, router: router(self.app), limits: TIME_LIMITS };
        listen::serve(listener, answering, self.connections_max, stop).await;
        drop(held);
        tokio::task::spawn_blocking(|| self.threads.join()).await?;
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner).take();
        ended.map_or(Ok(()), Err)
    }

    /// Returns the state that says whether requests are answered.
    #[must_use]
    pub fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }
}

/// Returns what the server speaks below HTTP.
#[cfg(feature = "tls")]
fn transport(settings: &ServeSettings, metrics: &Metrics, must_run: MustRun, stop: &Stop) -> anyhow::Result<Transport> {
    let Some(tls) = &settings.tls else { return Ok(plain(settings)) };
    let files = crate::tls::read(tls, metrics)?;
    let current = files.current();
    files.watch(must_run, stop.clone())?;
    Ok(Transport::Tls(current))
}

#[cfg(feature = "tls")]
fn check_tls(settings: &ServeSettings, metrics: &Metrics) -> anyhow::Result<()> {
    settings.tls.as_ref().map_or(Ok(()), |tls| crate::tls::read(tls, metrics).map(drop))
}

#[cfg(not(feature = "tls"))]
fn transport(settings: &ServeSettings, metrics: &Metrics, _: MustRun, _: &Stop) -> anyhow::Result<Transport> {
    check_tls(settings, metrics)?;
    Ok(plain(settings))
}

#[cfg(not(feature = "tls"))]
fn check_tls(settings: &ServeSettings, _: &Metrics) -> anyhow::Result<()> {
    anyhow::ensure!(
        settings.tls.is_none(),
        "serve.tls: this tollgate was built without TLS; end TLS at a proxy, or build it with openssl-vendored"
    );
    Ok(())
}

/// Reads the file of tokens, if the settings name one.
fn tokens(settings: &ServeSettings) -> anyhow::Result<Option<Watched<Tokens>>> {
    let verifies_clients = settings.tls.as_ref().is_some_and(|tls| tls.client_ca_file.is_some());
    settings.tokens.as_deref().map(|path| token_file::read(path, verifies_clients)).transpose()
}

fn plain(settings: &ServeSettings) -> Transport {
    if !settings.listen.ip().is_loopback() {
        tracing::warn!(
            "serve.listen: others can reach the address, and the server speaks plain HTTP, in which tokens can be read on the way; set serve.tls, \
             or let only a proxy that ends TLS reach the port"
        );
    }
    Transport::Plain
}
