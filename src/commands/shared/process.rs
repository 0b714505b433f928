//! The parts that long-running commands share: the admin endpoint, the HTTP server, policy servers, the end of the process.

use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::process::{Resource, getrlimit, setrlimit};
use tokio::net::TcpListener;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

use tollgate_config::settings::{AdminSettings, Settings, SubjectKeys};
use tollgate_core::decide::controls::Controls;
use tollgate_core::decide::guardrail::{Answer, ProviderError, Question};
use tollgate_core::decide::policy::{GuardrailSettings, PolicySettings};
use tollgate_recordings::AskServers;
use tollgate_server::server::{Server, ServerParts};
use tollgate_worker::Stop;
use tollgate_worker::admin::{Admin, ConnectionLimits};
use tollgate_worker::health::Health;
use tollgate_worker::host_time::now_ms;
use tollgate_worker::logging::finish_logging;
use tollgate_worker::metrics::Metrics;
use tollgate_worker::policy_servers::{Endpoint, PolicyServers};
use tollgate_worker::threads::{MustRun, THREAD_ENDED};

pub(crate) use tollgate_operations::runtime;

/// How long leaving the group may take after the drain timeout.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(5);
/// The files that a process opens besides the connections of callers: to brokers and policy servers, for logs and the admin endpoint.
const OTHER_FILES: u64 = 256;
/// The revision of the sources that the program is built from, or `unknown`.
pub(crate) const REVISION: &str = env!("TOLLGATE_REVISION");
/// How often to check for the sign to stop.
const STOP_POLL: Duration = Duration::from_millis(100);

/// Allows the process as many files as so many connections need, as far as the system lets it. Returns how many connections there may be:
/// a server that spends its last file on a connection cannot connect to Kafka again.
pub(crate) fn connections(wanted: u32) -> u32 {
    let files_wanted = u64::from(wanted) + OTHER_FILES;
    let mut files = getrlimit(Resource::Nofile);
    if files.current.is_some_and(|current| current < files_wanted) {
        files.current = Some(files.maximum.map_or(files_wanted, |maximum| maximum.min(files_wanted)));
        // What was not raised is seen below.
        let _refused = setrlimit(Resource::Nofile, files);
    }
    let current = getrlimit(Resource::Nofile).current.unwrap_or(files_wanted);
    let possible = u32::try_from(current.saturating_sub(OTHER_FILES).max(1)).unwrap_or(u32::MAX).min(wanted);
    if possible < wanted {
        tracing::warn!(
            "serve.connections_max: found {wanted}, and this process may open {current} files, so that there will be {possible} connections; \
             raise the limit of open files (ulimit -Hn, LimitNOFILE)"
        );
    }
    possible
}

/// Says in the log what the settings have in them that decides nothing, or no longer.
pub(crate) fn log_remarks(settings: &Settings) {
    settings.policy.unusable().for_each(|fault| tracing::error!("{fault}"));
    let remarks = settings.abuse.remarks.iter().cloned();
    remarks.chain(settings.abuse.rules.ended_exceptions(now_ms())).for_each(|sentence| tracing::warn!("{sentence}"));
}

/// Returns an empty table of controls, with the configured keys of subject hashes.
pub(crate) fn controls(subject_keys: &SubjectKeys) -> Arc<Controls> {
    let controls = Controls::new(subject_keys.iter());
    if !controls.is_keyed() {
        tracing::warn!("privacy.subject_key is not set: whoever can guess an id can tell its hash in the controls");
    }
    Arc::new(controls)
}

/// Serves the admin endpoint where the configuration has it, unless its address is taken.
pub(crate) async fn start_admin(admin: Option<&AdminSettings>, metrics: &Metrics, health: &Arc<Health>, stop: &Stop) -> anyhow::Result<()> {
    let Some(admin) = admin else { return Ok(()) };
    let listener = Admin::bind(admin.listen).await?;
    tracing::info!(listen = %listener.local_addr()?, "admin endpoint");
    serve_admin(listener, metrics, health, stop);
    Ok(())
}

/// Serves the admin endpoint for as long as the process lives.
pub(crate) fn serve_admin(listener: TcpListener, metrics: &Metrics, health: &Arc<Health>, stop: &Stop) -> JoinHandle<()> {
    if let Err(error) = metrics.add_process(REVISION) {
        tracing::warn!(%error, "the metrics of the process itself are missing");
    }
    let admin = Admin { metrics: metrics.clone(), health: Arc::clone(health) };
    MustRun::new("admin", health.threads(), stop).spawn_task(async {
        fail::fail_point!("admin");
        admin.serve(listener, ConnectionLimits::default(), std::future::pending()).await;
    })
}

/// Starts a server in this process. It ends at the first sign, or gives the sign where it cannot go on. When it has answered those who wait, it
/// gives the sign to the rest of the process.
///
/// # Errors
/// The address is taken, the file of tokens is wrong, or a part cannot be started.
pub(crate) async fn start_server(
    settings: &Settings,
    (metrics, health): (&Metrics, &Arc<Health>),
    (first, rest): (&Stop, &Stop),
) -> anyhow::Result<JoinHandle<anyhow::Result<()>>> {
    let listener = Server::bind(&settings.serve).await?;
    let (partition, tls) = (settings.serve.partition, settings.serve.tls.is_some());
    tracing::info!(listen = %listener.local_addr()?, partition, tls, "HTTP server");
    let mut parts = ServerParts::of(settings, (metrics, health), first);
    parts.settings.connections_max = connections(parts.settings.connections_max);
    Ok(spawn_server(Server::start(parts)?, listener, (first, rest)))
}

/// A sign to stop that is given when this value is dropped, also by a panic.
struct GivenAtEnd(Stop);

impl Drop for GivenAtEnd {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// Has a server answer on a listener until the first sign, and gives the sign to the rest of the process when nobody waits any more.
pub(crate) fn spawn_server(server: Server, listener: TcpListener, (first, rest): (&Stop, &Stop)) -> JoinHandle<anyhow::Result<()>> {
    let (first, rest) = (first.clone(), GivenAtEnd(rest.clone()));
    tokio::spawn(async move { server.serve(listener, stopping(&first), rest).await })
}

/// Waits until members that were asked to stop should have done so.
pub(crate) async fn stop_deadline(stop: &Stop, drain_timeout: Duration) {
    stopping(stop).await;
    tokio::time::sleep(drain_timeout + LEAVE_TIMEOUT).await;
}

/// Waits for the sign to stop.
pub(crate) async fn stopping(stop: &Stop) {
    while !stop.is_given() {
        tokio::time::sleep(STOP_POLL).await;
    }
}

/// Ends a process whose members do not stop: the brokers are away and the group cannot be left, or librdkafka hangs in leaving it. Nothing is
/// lost: what is not committed is decided again.
pub(crate) fn end_late(health: &Health) -> ! {
    tracing::error!("not stopped in time; ending");
    finish_logging();
    std::process::exit(if health.threads().has_ended() { THREAD_ENDED.into() } else { 1 });
}

/// Returns the exit code of a process that has stopped: success, unless it had to stop because a thread ended, or verdicts are left that no broker
/// has acknowledged.
pub(crate) fn stopped(health: &Health) -> ExitCode {
    match (health.threads().has_ended(), health.threads().is_undrained()) {
        (true, _) => ExitCode::from(THREAD_ENDED),
        (false, true) => ExitCode::FAILURE,
        (false, false) => ExitCode::SUCCESS,
    }
}

/// Policy servers that one thread asks and waits for.
#[derive(Debug)]
struct WaitedServers {
    servers: PolicyServers,
    /// The providers' names, by their places in the chain.
    names: BTreeMap<usize, String>,
    /// What was said already: a provider's place and the error's label.
    said: Mutex<BTreeSet<(usize, &'static str)>>,
}

impl AskServers for WaitedServers {
    fn ask(&self, question: Question) -> anyhow::Result<Answer> {
        ask_and_wait(&self.servers, question)
    }

    /// Says it once for each provider and error, on stderr.
    fn failed(&self, provider: usize, error: ProviderError) {
        let is_new = self.said.lock().unwrap_or_else(PoisonError::into_inner).insert((provider, error.as_str()));
        if is_new {
            let name = self.names.get(&provider).map_or("", String::as_str);
            say!("tollgate: the guardrail provider {name:?} gave no decision: {}", self.servers.explain(provider, error));
        }
    }
}

/// Returns the policy servers of a configuration, for commands that decide in this process. They are asked on the current runtime.
pub(crate) fn waited_servers(settings: &PolicySettings) -> anyhow::Result<Arc<dyn AskServers>> {
    let names = settings.guardrails.iter().flat_map(GuardrailSettings::servers).map(|(place, server)| (place, server.name.clone()));
    let servers = policy_servers(settings, &Metrics::new()?)?;
    Ok(Arc::new(WaitedServers { servers, names: names.collect(), said: Mutex::default() }))
}

/// Asks a policy server, and returns its answer once the answer is there.
///
/// # Errors
/// The threads that ask have ended.
pub(crate) fn ask_and_wait(servers: &PolicyServers, question: Question) -> anyhow::Result<Answer> {
    let (sender, answers) = channel();
    servers.ask(question.provider, question.body, (), &sender);
    let ((), answer) = answers.recv()?;
    Ok(answer)
}

/// Returns the policy servers of a configuration. They are asked on the current runtime.
pub(crate) fn policy_servers(settings: &PolicySettings, metrics: &Metrics) -> anyhow::Result<PolicyServers> {
    let servers = settings.guardrails.iter().flat_map(GuardrailSettings::servers);
    let endpoints = servers.map(|(place, server)| Ok((place, Endpoint::new(server, metrics)?))).collect::<anyhow::Result<_>>()?;
    Ok(PolicyServers::new(endpoints, Handle::current()))
}
