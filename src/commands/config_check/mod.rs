//! `tollgate config check`: the effective configuration on stdout, its policy version on stderr. Everything is made that a worker makes of
//! it; with `--connect` the brokers and the policy servers are asked too.

mod policy_servers;

use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use clap::Args;

use tollgate_config::settings::{KafkaSettings, Settings};
use tollgate_core::decide::loops::LoopSettings;
use tollgate_core::decide::policy::Policy;
use tollgate_operations::BROKERS_TIMEOUT;
use tollgate_passport::Passport;
use tollgate_server::server::Server;
use tollgate_worker::Stop;
use tollgate_worker::health::Health;
use tollgate_worker::kafka::check_clients;
use tollgate_worker::logging::{read_filter, start_logging};
use tollgate_worker::metrics::Metrics;
use tollgate_worker::process::{Needs, PreflightError, check_configs, check_topics, check_transactions};
use tollgate_worker::traces;

use crate::commands::shared::passport::denies_every_call;
use crate::commands::shared::{Finding, process};

#[derive(Debug, Args)]
pub(super) struct CheckArgs {
    /// Ask the brokers and the policy servers too: whether they answer, and whether the topics fit and may be used
    #[arg(long)]
    connect: bool,
}

pub(super) fn execute(args: &CheckArgs, settings: &Settings) -> anyhow::Result<ExitCode> {
    // JSON is YAML too, so what is printed here can be used as a configuration file.
    let text = serde_json::to_string_pretty(&settings.redacted(tollgate_worker::kafka::is_property))?;
    writeln!(Finding, "{text}")?;
    let denying: Vec<_> = settings.policy.unusable().chain(denied_calls(settings)?).collect();
    denying.iter().for_each(|fault| say!("tollgate: {fault}"));
    settings.policy.remarks().for_each(|remark| say!("tollgate: {remark}"));
    settings.abuse.remarks.iter().for_each(|sentence| say!("tollgate: {sentence}"));
    say!("tollgate: {}", loop_controllers(&settings.policy.tool_loop_guardrails));
    let mut refused = check_start(settings);
    // The commands that only work as a worker do not read the files of the HTTP server.
    let serve = Server::check(&settings.serve, &Metrics::new()?);
    if refused.is_ok() && args.connect {
        let runtime = process::runtime()?;
        let _entered = runtime.enter();
        let servers = process::policy_servers(&settings.policy, &Metrics::new()?)?;
        let asked = policy_servers::ask(settings, &servers);
        refused = match (runtime.block_on(connect(settings)), asked) {
            (Err(brokers), Err(servers)) => Err(anyhow::anyhow!("{brokers:#}\n{servers:#}")),
            (brokers, asked) => brokers.and(asked),
        };
    }
    let version = format!("policy_version {}", Policy::new(&settings.policy).version());
    if let Err(error) = refused {
        serve.err().into_iter().for_each(|error| say!("tollgate: {error:#}"));
        say!("tollgate: {error:#}\na worker would not start with this configuration; {version}");
        return Ok(ExitCode::FAILURE);
    }
    if let Err(error) = serve {
        say!(
            "tollgate: {error:#}\na worker would start with this configuration, and a server (`serve`, `run --serve`) would not; {version}"
        );
        return Ok(ExitCode::FAILURE);
    }
    let denies = if denying.is_empty() { "" } else { ", and denies every call under a passport that it names" };
    say!("the configuration is valid{denies}; {version}");
    Ok(ExitCode::SUCCESS)
}

/// Returns why every call under a configured passport would be denied, for each such passport.
fn denied_calls(settings: &Settings) -> anyhow::Result<Vec<String>> {
    let denial = |passport: &Arc<Passport>| {
        let why = denies_every_call(passport)?;
        Ok(why.map(|why| format!("every call under the passport sha256:{} is denied: {why}", passport.digest)))
    };
    settings.policy.passports().filter_map(|passport| denial(passport).transpose()).collect()
}

/// Says which loop controllers are in force, and by what.
fn loop_controllers(settings: &LoopSettings) -> String {
    let by = if settings.preset.is_default() { ", as where tool_loop_guardrails.preset is left out" } else { "" };
    format!("loop controllers: preset {}{by}; in force: {}", settings.preset.name(), settings.in_force().join(", "))
}

/// Checks all that a worker is started with, without connecting anything: the log's filter, the clients and their TLS, and the policy servers.
///
/// # Errors
/// Names every fault, one a line, with its key and the fix.
pub(super) fn check_start(settings: &Settings) -> anyhow::Result<()> {
    let runtime = process::runtime()?;
    let _entered = runtime.enter();
    let filter = read_filter(&settings.log.filter).map(drop);
    let clients = check_clients(&settings.kafka).map_err(Into::into);
    let servers = process::policy_servers(&settings.policy, &Metrics::new()?).map(drop);
    let traces = traces::check(&settings.traces).map_err(Into::into);
    let faults: Vec<_> = [filter, clients, servers, traces].into_iter().filter_map(Result::err).map(|error| format!("{error:#}")).collect();
    if faults.is_empty() { Ok(()) } else { bail!("{}", faults.join("\n")) }
}

/// Asks the brokers what a worker asks before it joins.
async fn connect(settings: &Settings) -> anyhow::Result<()> {
    start_logging(&settings.log)?;
    let (kafka, needs) = (settings.kafka.clone(), Needs::of_run(settings));
    let asked = needs.clone();
    let topics = tokio::task::spawn_blocking(move || ask(&kafka, &asked)).await??;
    let checked = check_configs(&settings.kafka, &needs, topics, settings.policy.limits.thread_bytes_max).await?;
    say!(
        "the brokers at {} answer, and the topics fit: {} partitions of {}",
        settings.kafka.shown_brokers(),
        checked.partitions,
        settings.kafka.topics.events
    );
    Ok(())
}

fn ask(kafka: &KafkaSettings, needs: &Needs) -> anyhow::Result<tollgate_worker::process::Preflight> {
    let stop = Stop::default();
    let (timer, health) = (stop.clone(), Health::default());
    std::thread::Builder::new().name("timeout".to_owned()).spawn(move || {
        std::thread::sleep(BROKERS_TIMEOUT);
        timer.give();
    })?;
    let checked = check_topics(kafka, needs, &health, &stop);
    if let Err(PreflightError::Stopped(_)) = &checked {
        let why = health.report().problems.join("; ");
        bail!("--connect: no answer within {} s: {why}", BROKERS_TIMEOUT.as_secs());
    }
    let checked = checked.context("--connect")?;
    check_transactions(kafka, needs).context("--connect")?;
    Ok(checked)
}
