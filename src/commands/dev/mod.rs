//! `tollgate dev`: everything in one process, on an embedded broker.

mod broker;
mod sample;
mod table;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use tokio::net::TcpListener;

use crate::admin::Admin;
use crate::control_feed::{ControlFeed, FeedParts};
use crate::health::Health;
use crate::logging::start_logging;
use crate::member::Membership;
use crate::metrics::Metrics;
use crate::settings::{KafkaSettings, Settings};
use crate::stages::deciding::deciding;
use crate::stop::Stop;
use crate::worker::{Preflight, Worker, WorkerParts};
use tollgate_core::controls::Controls;
use tollgate_core::policy::{Policy, PolicySettings};

use super::process;
use broker::EmbeddedBroker;

/// Partitions of the embedded topics. The broker holds 5 MiB for each.
const PARTITIONS: u32 = 32;

/// The reply topic that is used if the configuration allows none.
const REPLY_TOPIC: &str = "agent.replies";

/// The policy that the sample is written for, used if no configuration was given.
const SAMPLE_POLICY: &str = "guardrails: {enabled: true, provider: {use: allowlist, config: {denied_tools: [bash]}}}";

#[derive(Debug, Args)]
pub(super) struct DevArgs {
    /// Play bundled sample traffic and print its verdicts: a table on a terminal, JSONL otherwise
    #[arg(long)]
    sample: bool,
    /// End when the sample has been played
    #[arg(long, requires = "sample")]
    once: bool,
}

pub(super) fn execute(args: &DevArgs, mut settings: Settings, has_config: bool) -> anyhow::Result<ExitCode> {
    // Log lines of the workers would mix with the verdicts.
    if settings.log.filter == "info" {
        settings.log.filter = if args.sample { "error" } else { "warn,librdkafka=error" }.to_owned();
    }
    start_logging(&settings.log)?;
    let denies_bash = args.sample && !has_config && settings.policy.guardrails.is_none();
    if denies_bash {
        settings.policy.guardrails = PolicySettings::from_yaml(SAMPLE_POLICY)?.guardrails;
    }
    if settings.kafka.reply_topics.is_empty() {
        settings.kafka.reply_topics.push(REPLY_TOPIC.to_owned());
    }
    let stop = Stop::default();
    let broker = EmbeddedBroker::start(topics_of(&settings.kafka), PARTITIONS)?;
    settings.kafka.brokers = broker.bootstrap().to_owned();
    // On the embedded broker, unlike on real ones, an empty fetch waits for the whole of this time.
    settings.kafka.properties.insert("fetch.wait.max.ms".to_owned(), "1".to_owned());
    let runtime = process::runtime()?;
    runtime.block_on(work(args, settings, stop, denies_bash))
}

async fn work(args: &DevArgs, settings: Settings, stop: Stop, denies_bash: bool) -> anyhow::Result<ExitCode> {
    let (metrics, health) = (Metrics::new()?, Arc::new(Health::default()));
    process::watch_signals(&health, &stop)?;
    let mut admin_url = None;
    if let Some(admin) = &settings.admin {
        let listener = match Admin::bind(admin.listen).await {
            Ok(listener) => listener,
            // Another worker that has the address on this machine should not stop anybody from trying things out.
            Err(_) => TcpListener::bind((admin.listen.ip(), 0)).await?,
        };
        admin_url = Some(format!("http://{}", listener.local_addr()?));
        process::serve_admin(listener, &metrics, &health, &stop);
    }
    let kafka = Arc::new(settings.kafka);
    settings.policy.unusable().for_each(|fault| tracing::error!("{fault}"));
    let servers = process::policy_servers(&settings.policy, &metrics)?;
    let controls = Arc::new(Controls::new(settings.subject_key.as_deref()));
    let policy = Arc::new(Policy::under(&settings.policy, Arc::clone(&controls)));
    let feed = FeedParts { kafka: Arc::clone(&kafka), controls, metrics: metrics.clone(), health: Arc::clone(&health), stop: stop.clone() };
    let feed = ControlFeed::start(feed)?;
    let parts = WorkerParts {
        kafka: Arc::clone(&kafka),
        settings: settings.worker,
        topics: Preflight::of(PARTITIONS),
        membership: Membership::Alone,
        metrics: metrics.clone(),
        health: Arc::clone(&health),
        stop: stop.clone(),
    };
    if !feed.caught_up().await {
        return Ok(ExitCode::SUCCESS);
    }
    let worker = Worker::start(&parts, deciding(&kafka, &policy, &servers, &metrics))?;
    while !health.is_ready() && !stop.is_given() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    greet(&kafka, admin_url.as_deref(), denies_bash);
    let (is_sample, is_once) = (args.sample, args.once);
    let played = tokio::task::spawn_blocking(move || {
        let played = if is_sample { sample::play(&kafka, &stop) } else { Ok(()) };
        if is_once || played.is_err() {
            stop.give();
        }
        worker.join();
        feed.join();
        played
    });
    played.await??;
    Ok(process::stopped(&health))
}

/// Returns every topic that the configuration names. A prefix of reply topics names none.
fn topics_of(kafka: &KafkaSettings) -> Vec<String> {
    let ours = kafka.topics.each().map(|topic| topic.name.to_owned());
    ours.chain(kafka.reply_topics.iter().filter(|topic| !topic.ends_with('*')).cloned()).collect()
}

fn greet(kafka: &KafkaSettings, admin_url: Option<&str>, denies_bash: bool) {
    let (brokers, events, decisions) = (&kafka.brokers, &kafka.topics.events, &kafka.topics.decisions);
    let call = r#"{"type":"tool_call","thread_id":"t1","tool_call_id":"c1","tool_name":"ls","tool_input":{"path":"."}}"#;
    say!("tollgate dev: an embedded broker on {brokers}, {PARTITIONS} partitions a topic, and a worker that decides");
    say!("  watch   kcat -C -b {brokers} -t {decisions} -o beginning");
    say!("  ask     echo '{call}' | kcat -P -b {brokers} -t {events} -k t1 -X topic.partitioner=murmur2_random");
    say!("  replies a verdict goes to {} too, if the event's header kafka_replyTopic asks for it", kafka.reply_topics.join(" or "));
    if let Some(url) = admin_url {
        say!("  metrics curl -s {url}/metrics | grep ^tollgate");
    }
    if denies_bash {
        say!("  policy  the sample's: the defaults, and the tool bash is denied (give --config FILE for your own)");
    }
    say!("Ctrl-C ends it.");
}
