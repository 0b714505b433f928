//! `tollgate dev`: everything in one process, on an embedded broker or on topics of its own of a real one.

mod broker;
mod cluster;

use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::ensure;
use clap::Args;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use tollgate_abuse::AbuseSettings;
use tollgate_config::settings::{KafkaSettings, Settings};
use tollgate_core::decide::controls::Controls;
use tollgate_core::decide::policy::{Policy, PolicySettings};
use tollgate_server::server::{Server, ServerParts};
use tollgate_server::shared::{Condition, Shared};
use tollgate_worker::Stop;
use tollgate_worker::admin::Admin;
use tollgate_worker::control_feed::{ControlFeed, FeedParts, worker_name};
use tollgate_worker::health::Health;
use tollgate_worker::logging::start_logging;
use tollgate_worker::member::Membership;
use tollgate_worker::metrics::Metrics;
use tollgate_worker::process::{Needs, Preflight, PreflightError, Worker, WorkerParts, check_configs, check_topics, cluster_of_dev};
use tollgate_worker::stages::abuse::abuse;
use tollgate_worker::stages::deciding::{SignalTopic, deciding};
use tollgate_worker::threads::MustRun;
use tollgate_worker::traces::Export;

use crate::commands::shared::console::Console;
use crate::commands::shared::interrupt::watch_signals;
use crate::commands::shared::sample::{Play, Script};
use crate::commands::shared::{Screen, UsageError, process};
use broker::EmbeddedBroker;
use tollgate_operations::{BROKERS_TIMEOUT, reach};

/// Partitions of the embedded topics. The broker holds 5 MiB for each, and takes batches of half of that.
const PARTITIONS: u32 = 32;

/// Partitions of the embedded topics of signals and of what is known of subjects: a few subjects need no more.
const SIGNAL_PARTITIONS: u32 = 4;

/// How often brokers are asked whether they know of topics that were just created.
const KNOWN_POLL: Duration = Duration::from_millis(50);

/// How long fetches of our own clients wait on the embedded broker, in milliseconds.
const FETCH_WAIT_MS: &str = "2000";

/// What the names of topics and of the group begin with on real brokers.
const PREFIX: &str = "tollgate-dev.";

/// The policy that the sample is written for, used if no configuration was given.
const SAMPLE_POLICY: &str = "guardrails: {enabled: true, provider: {use: allowlist, config: {denied_tools: [bash]}}}";

/// The loop controllers where neither a configuration file nor a variable says anything.
const LOOP_POLICY: &str = "tool_loop_guardrails: {preset: tollgate}";

#[derive(Debug, Args)]
pub(super) struct DevArgs {
    /// Play bundled sample traffic
    #[arg(long)]
    sample: bool,
    /// End when the sample has been played
    #[arg(long, requires = "sample")]
    once: bool,
    /// The port of the embedded broker [default: 9092, or another one if that is taken]
    #[arg(long, conflicts_with = "brokers")]
    port: Option<u16>,
    /// Where HTTP requests are answered [default: 127.0.0.1:7878, or another port if that is taken]
    #[arg(long, value_name = "ADDRESS:PORT")]
    http: Option<SocketAddr>,
    /// With --brokers: what the names of the topics and of the group begin with [default: tollgate-dev.]
    #[arg(long)]
    prefix: Option<String>,
}

/// Returns whether a variable sets something of the loop controllers.
fn has_loop_variable() -> bool {
    std::env::vars_os().any(|(name, _)| name.to_string_lossy().starts_with("TOLLGATE__TOOL_LOOP_GUARDRAILS"))
}

/// What the command line says besides the settings.
#[derive(Debug, Clone, Copy)]
pub(super) struct DevContext {
    /// Whether a configuration file was given.
    pub(super) has_config: bool,
    /// Whether brokers were given.
    pub(super) has_brokers: bool,
    pub(super) screen: Screen,
}

pub(super) fn execute(args: &DevArgs, mut settings: Settings, context: DevContext) -> anyhow::Result<ExitCode> {
    // Log lines of the workers would mix with the verdicts.
    if settings.log.filter == "info" {
        settings.log.filter = if args.sample { "error" } else { "warn,librdkafka=error" }.to_owned();
    }
    start_logging(&settings.log)?;
    let denies_bash = !context.has_config && settings.policy.guardrails.is_none();
    if denies_bash {
        settings.policy.guardrails = PolicySettings::from_yaml(SAMPLE_POLICY)?.guardrails;
    }
    if !context.has_config && !has_loop_variable() {
        settings.policy.tool_loop_guardrails = PolicySettings::from_yaml(LOOP_POLICY)?.tool_loop_guardrails;
    }
    if let Some(listen) = args.http {
        settings.serve.set_listen("--http", listen).map_err(UsageError)?;
    }
    let kafka = &mut settings.kafka;
    let (health, (first, stop)) = (Arc::new(Health::default()), Stop::in_two_steps());
    // It is dropped last.
    let mut broker = None;
    if context.has_brokers {
        cluster::put_prefix(kafka, args.prefix.as_deref().unwrap_or(PREFIX));
    } else {
        ensure!(args.prefix.is_none(), "--prefix is for real brokers; name them with --brokers");
        let guard = MustRun::new("embedded-broker", health.threads(), &stop);
        let cluster = (embedded_topics(kafka)?, cluster_of_dev(&kafka.group_id));
        let embedded = EmbeddedBroker::start(cluster, args.port, guard, stop.clone())?;
        embedded.bootstrap().clone_into(&mut kafka.brokers);
        // Every empty fetch costs some CPU time, and this broker answers at once when there is something.
        kafka.properties.entry("fetch.wait.max.ms".to_owned()).or_insert_with(|| FETCH_WAIT_MS.to_owned());
        broker = Some(embedded);
    }
    let (is_embedded, screen, http) = (broker.is_some(), context.screen, args.http.is_some());
    let is_elsewhere = broker.as_ref().is_some_and(EmbeddedBroker::is_elsewhere);
    let dev = Dev { is_sample: args.sample, is_once: args.once, denies_bash, is_embedded, is_elsewhere, asks_for_port: http, screen };
    let runtime = process::runtime()?;
    let outcome = runtime.block_on(dev.work(settings, health, (first, stop.clone())));
    // What ends with the runtime ends because of this.
    stop.end();
    outcome
}

/// Returns the topics of the embedded broker, each with its partitions. Commands ask the broker where a subject's signals are.
fn embedded_topics(kafka: &KafkaSettings) -> anyhow::Result<Vec<(String, i32)>> {
    let of_subjects = [&kafka.topics.signals, &kafka.topics.abuse];
    let count = |name: &String| if of_subjects.contains(&name) { SIGNAL_PARTITIONS } else { PARTITIONS };
    cluster::topics_of(kafka).into_iter().map(|name| i32::try_from(count(&name)).map(|count| (name, count)).map_err(Into::into)).collect()
}

/// What is to be done.
#[derive(Debug, Clone, Copy)]
struct Dev {
    is_sample: bool,
    is_once: bool,
    denies_bash: bool,
    is_embedded: bool,
    /// Whether the embedded broker listens elsewhere because the port of brokers is taken.
    is_elsewhere: bool,
    /// Whether the command line names the address of the HTTP server.
    asks_for_port: bool,
    screen: Screen,
}

impl Dev {
    async fn work(self, settings: Settings, health: Arc<Health>, (first, stop): (Stop, Stop)) -> anyhow::Result<ExitCode> {
        let metrics = Metrics::new()?;
        watch_signals(&health, &first)?;
        let admin_url = serve_admin(&settings, &metrics, &health, &stop).await?;
        let (kafka, needs) = (Arc::new(settings.kafka.clone()), Needs::of_run(&settings));
        let Some(topics) = self.topics(&kafka, &needs, settings.policy.limits.thread_bytes_max, &health, &first).await? else {
            return Ok(process::stopped(&health));
        };
        // Another `dev` may have the server's partition. That keeps nobody from deciding, so the server has a health of its own.
        let (http, served) = self.serve_http(&settings, (&metrics, &Arc::new(Health::default())), (&first, &stop)).await?;
        process::log_remarks(&settings);
        let servers = process::policy_servers(&settings.policy, &metrics)?;
        let controls = Arc::new(Controls::new(settings.subject_keys.iter()));
        let policy = Policy::under(&settings.policy, Arc::clone(&controls));
        let policy = Arc::new(if needs.writes_signals { policy.with_signals(settings.abuse.rules.interest()) } else { policy });
        let parts = WorkerParts {
            worker: worker_name(settings.worker.instance_id.as_deref()),
            kafka: Arc::clone(&kafka),
            settings: settings.worker.clone(),
            topics,
            membership: if self.is_embedded { Membership::Alone } else { Membership::Group },
            metrics: metrics.clone(),
            health: Arc::clone(&health),
            stop: stop.clone(),
        };
        let feed = ControlFeed::start(FeedParts::of(&parts, controls, settings.policy.reads_passports()))?;
        if !feed.caught_up().await {
            return Ok(process::stopped(&health));
        }
        let export = Export::start(&settings.traces, &kafka, &metrics, (health.threads(), &stop))?;
        let signals =
            needs.writes_signals.then(|| SignalTopic::of(&kafka, [topics.signal_partitions, topics.partitions], topics.batch_bytes_max));
        let worker = Worker::start(&parts, deciding(&kafka, &policy, &servers, &metrics, (export.traces(), None, signals)))?;
        let counting = needs.abuse_group.as_deref().map(|group_id| start_abuse(&settings.abuse, group_id, &parts)).transpose()?;
        while !(first.is_given() || health.is_ready() && http.is_up()) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let (drain_timeout, stopping) = (Duration::from_millis(settings.worker.drain_timeout_ms.into()), stop.clone());
        let shown = tokio::task::spawn_blocking(move || {
            let shown = self.show(&kafka, topics.partitions, (&http, admin_url.as_deref()), &first);
            // Either the sample is over, or the sign was given, or there is nobody left to show anything to.
            first.give();
            worker.join();
            counting.into_iter().for_each(Worker::join);
            export.finish();
            feed.join();
            shown
        });
        // The embedded broker outlives every client of its own.
        let ended = async {
            let (shown, served) = tokio::try_join!(shown, served)?;
            shown.and(served)
        };
        tokio::select! {
            ended = ended => ended?,
            () = process::stop_deadline(&stopping, drain_timeout) => process::end_late(&health),
        }
        Ok(process::stopped(&health))
    }

    /// Shows the verdicts until the sample is over or the sign to stop was given.
    fn show(self, kafka: &KafkaSettings, partitions: u32, (http, admin_url): (&Http, Option<&str>), stop: &Stop) -> anyhow::Result<()> {
        let sample = self.is_sample.then_some((Script::Fleet, Play::AsItStands));
        let console = Console::new(kafka, self.screen, sample, self.is_once)?;
        self.greet(kafka, partitions, http, admin_url);
        console.run(stop)
    }

    /// Returns what is known of the topics, which are created on real brokers; `None` if the sign to stop came first.
    async fn topics(
        self,
        kafka: &Arc<KafkaSettings>,
        needs: &Needs,
        thread_bytes_max: usize,
        health: &Arc<Health>,
        stop: &Stop,
    ) -> anyhow::Result<Option<Preflight>> {
        if self.is_embedded {
            return Ok(Some(Preflight { signal_partitions: SIGNAL_PARTITIONS, ..Preflight::of(PARTITIONS) }));
        }
        let (asked, stop_asking) = (Arc::clone(kafka), stop.clone());
        if !tokio::task::spawn_blocking(move || reach(&asked, &stop_asking)).await?? {
            return Ok(None);
        }
        let created = cluster::create_topics(kafka).await?;
        if !created.is_empty() {
            say!("created topics: {}", created.join(", "));
        }
        let (asked, wanted, health, stop_asking) = (Arc::clone(kafka), needs.clone(), Arc::clone(health), stop.clone());
        let known_until = Instant::now() + if created.is_empty() { Duration::ZERO } else { BROKERS_TIMEOUT };
        let check = move || loop {
            match check_topics(&asked, &wanted, &health, &stop_asking) {
                // A broker that has not created the topics itself learns of them a moment later.
                Err(PreflightError::Topics(_)) if Instant::now() < known_until => std::thread::sleep(KNOWN_POLL),
                checked => return checked,
            }
        };
        let checked = tokio::task::spawn_blocking(check).await?;
        if stop.is_given() {
            return Ok(None);
        }
        Ok(Some(check_configs(kafka, needs, checked?, thread_bytes_max).await?))
    }

    /// Answers HTTP requests for as long as the process lives.
    async fn serve_http(
        self,
        settings: &Settings,
        (metrics, health): (&Metrics, &Arc<Health>),
        (first, rest): (&Stop, &Stop),
    ) -> anyhow::Result<(Http, JoinHandle<anyhow::Result<()>>)> {
        let listener = match Server::bind(&settings.serve).await {
            // Another server that has the address on this machine should not stop anybody from trying things out.
            Err(_) if !self.asks_for_port => TcpListener::bind((settings.serve.listen.ip(), 0)).await?,
            bound => bound?,
        };
        let parts = ServerParts { is_alone: self.is_embedded, ends_process: false, ..ServerParts::of(settings, (metrics, health), first) };
        let (address, server) = (listener.local_addr()?, Server::start(parts)?);
        let scheme = if settings.serve.tls.is_some() { "https" } else { "http" };
        let has_tokens = settings.serve.tokens.is_some();
        let http = Http { url: format!("{scheme}://{address}"), has_tokens, shared: Arc::clone(server.shared()) };
        Ok((http, process::spawn_server(server, listener, (first, rest))))
    }

    fn greet(self, kafka: &KafkaSettings, partitions: u32, http: &Http, admin_url: Option<&str>) {
        let (header, option) = if http.has_tokens { (" -H 'authorization: Bearer TOKEN'", " --token-file FILE") } else { ("", "") };
        let (http, http_condition) = (&http.url, http.shared.condition());
        let (brokers, events, decisions) = (kafka.shown_brokers(), &kafka.topics.events, &kafka.topics.decisions);
        let call = r#"{"type":"tool_call","thread_id":"t1","tool_call_id":"c1","tool_name":"bash","tool_input":{"command":"ls"}}"#;
        let broker = if self.is_embedded { "an embedded broker on" } else { "topics of its own at" };
        // The commands know the topics by their configured names.
        let own = if self.is_embedded { format!("tollgate top -b {brokers}, or ") } else { String::new() };
        let mut lines = vec![
            format!("tollgate dev: {broker} {brokers}, {partitions} partitions a topic, and a worker that decides"),
            format!("  ask     curl -s {http}/v1/events{header} -H 'content-type: application/json' -d '{call}'"),
            format!("  hooks   tollgate hook --print-settings claude-code --url {http}{option}"),
            format!("  watch   {own}kcat -C -b {brokers} -t {decisions} -o beginning"),
            format!("  publish echo '{call}' | kcat -P -b {brokers} -t {events} -k t1 -X topic.partitioner=murmur2_random"),
        ];
        lines.extend(admin_url.map(|url| format!("  metrics curl -s {url}/metrics | grep ^tollgate")));
        if self.denies_bash {
            lines.push("  policy  the sample's: preset tollgate, and the tool bash is denied (give --config FILE for your own)".to_owned());
        }
        if self.is_elsewhere {
            lines.push(format!(
                "  note    another broker has port 9092: give -b {brokers} to every other command that this broker is meant for"
            ));
        }
        if let Condition::CutOff { why, .. } = &http_condition {
            lines.push(format!("  note    HTTP requests are refused: {why}"));
        }
        lines.push("Ctrl-C ends it.".to_owned());
        say!("{}", lines.join("\n"));
    }
}

/// The HTTP server of this process.
struct Http {
    url: String,
    /// Whether requests have to show a token or a certificate.
    has_tokens: bool,
    shared: Arc<Shared>,
}

impl Http {
    /// Returns whether requests are answered, be it with 503.
    fn is_up(&self) -> bool {
        self.shared.condition() != Condition::Starting
    }
}

/// Starts to count signals beside deciding. Its state is in memory, as the embedded broker is.
fn start_abuse(settings: &AbuseSettings, group_id: &str, parts: &WorkerParts) -> anyhow::Result<Worker> {
    let (rules, own) = (Arc::new(settings.rules.clone()), parts.for_abuse(settings.members)?);
    Ok(Worker::start(&own, abuse(&own.kafka, &rules, group_id, (&parts.metrics, &own.metrics), parts.health.threads()))?)
}

/// Serves metrics and health, and returns the endpoint's address.
async fn serve_admin(settings: &Settings, metrics: &Metrics, health: &Arc<Health>, stop: &Stop) -> anyhow::Result<Option<String>> {
    let Some(admin) = &settings.admin else { return Ok(None) };
    let listener = match Admin::bind(admin.listen).await {
        Ok(listener) => listener,
        // Another worker that has the address on this machine should not stop anybody from trying things out.
        Err(_) => TcpListener::bind((admin.listen.ip(), 0)).await?,
    };
    let url = format!("http://{}", listener.local_addr()?);
    process::serve_admin(listener, metrics, health, stop);
    Ok(Some(url))
}
