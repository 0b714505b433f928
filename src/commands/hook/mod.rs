//! `tollgate hook`: asks a server of Tollgate about an event of an agent host that only starts commands.
//!
//! Every failure ends with exit code 2, the reason on stderr and nothing on stdout. Every host of [`tollgate_hosts::wires`] blocks on that; most
//! of them go on after any other failure, and after a hook that takes longer than they wait. Where the gate decides nothing, such as the end of a
//! turn, exit code 2 could send the agent on, so a failure there ends with exit code 1.

mod settings;

use std::io::{Read as _, Write as _};
use std::mem::ManuallyDrop;
use std::panic::catch_unwind;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow, bail};
use clap::Args;
use clap::builder::PossibleValuesParser;
use serde::de::IgnoredAny;
use serde_json::Value;
use tokio::runtime::Builder;
use tokio::sync::oneshot;

use crate::commands::shared::interrupt::Signals;
use crate::commands::shared::server::Server;

/// The exit code that stops a call at every host.
const BLOCKED: u8 = 2;
/// The exit code of a failure where nothing is decided: the host says so and goes on.
const UNDECIDED: u8 = 1;
/// The largest request of a host, in bytes: the largest body that the server takes.
const REQUEST_BYTES_MAX: u64 = 8 * 1024 * 1024;
/// How much later than the request to the server the command itself ends, so that the request says what it waited for.
const GRACE: Duration = Duration::from_millis(100);

#[derive(Debug, Args)]
pub(super) struct HookArgs {
    /// The host that starts this command
    #[arg(long, value_name = "NAME", value_parser = host_names(), required_unless_present = "print_settings")]
    host: Option<String>,
    /// The event, where the host does not name it in the request: Copilot's events in camelCase
    #[arg(long, value_name = "EVENT", conflicts_with = "print_settings", value_parser = read_event)]
    event: Option<String>,
    #[command(flatten)]
    server: Server,
    /// How long to wait for host and server together, in milliseconds; it has to be less than the host waits
    #[arg(long, value_name = "MS", default_value_t = 5_000, value_parser = clap::value_parser!(u32).range(1..=600_000))]
    timeout: u32,
    /// Print the entry of this host's settings on stdout, and on stderr where the host goes on without a verdict
    #[arg(long, value_name = "NAME", value_parser = host_names(), conflicts_with = "host")]
    print_settings: Option<String>,
}

fn host_names() -> PossibleValuesParser {
    PossibleValuesParser::new(tollgate_hosts::wires().iter().map(|wire| wire.name()))
}

fn read_event(text: &str) -> Result<String, String> {
    let is_name = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphabetic());
    if is_name { Ok(text.to_owned()) } else { Err("it is no event; write one such as preToolUse".to_owned()) }
}

/// Asks the server and prints its answer, or prints settings.
pub(super) fn execute(args: &HookArgs) -> anyhow::Result<ExitCode> {
    if let Some(host) = &args.print_settings {
        return settings::print(host, &args.server);
    }
    // A process that panics ends with another exit code, which hosts take for no objection.
    let asked = catch_unwind(|| answer(args)).unwrap_or_else(|_| Err(Failure::blocks(anyhow!(GIVEN_UP)))).and_then(|answer| {
        let mut stdout = std::io::stdout().lock();
        let written = stdout.write_all(&answer).and_then(|()| stdout.write_all(b"\n")).and_then(|()| stdout.flush());
        written.context("stdout: cannot be written").map_err(Failure::blocks)
    });
    let Err(Failure { error, follows: (what, code) }) = asked else { return Ok(ExitCode::SUCCESS) };
    say!("tollgate hook: {what}: {error:#}");
    Ok(ExitCode::from(code))
}

/// What follows from a failure, for people, and the exit code for it.
type Follows = (&'static str, u8);

/// What follows where the request is a call, or is not known.
const CALL_BLOCKED: Follows = ("the call is blocked, since there is no verdict", BLOCKED);

/// Why there is no answer where a thread panicked.
const GIVEN_UP: &str = "the request was given up; the lines above say why";

/// Why there is no answer, and what follows.
struct Failure {
    error: anyhow::Error,
    follows: Follows,
}

impl Failure {
    fn blocks(error: anyhow::Error) -> Self {
        Self { error, follows: CALL_BLOCKED }
    }
}

/// Returns the server's answer to the request on stdin, within the deadline. A signal ends the wait: hosts take the end by a signal for no
/// objection.
fn answer(args: &HookArgs) -> Result<Vec<u8>, Failure> {
    let deadline = Instant::now() + Duration::from_millis(args.timeout.into());
    let runtime = Builder::new_current_thread().enable_all().build().context("no runtime").map_err(Failure::blocks)?;
    // The end of the runtime would wait for a look-up of the server's name that hangs.
    let runtime = ManuallyDrop::new(runtime);
    runtime.block_on(async {
        let mut signals = Signals::catch_with_hang_up().context("no signals").map_err(Failure::blocks)?;
        let left = deadline.saturating_duration_since(Instant::now()) + GRACE;
        tokio::select! {
            answer = ask(args, deadline) => answer,
            _ = signals.next() => Err(Failure::blocks(anyhow!("a signal ended the command"))),
            () = tokio::time::sleep(left) => Err(Failure::blocks(anyhow!("{} ms have passed; see --timeout", args.timeout))),
        }
    })
}

/// Posts the request on stdin and returns the answer, which is a JSON object. A thread reads stdin and the files of the server, so that
/// neither outlasts the deadline.
async fn ask(args: &HookArgs, deadline: Instant) -> Result<Vec<u8>, Failure> {
    let host = args.host.clone().context("--host: is missing; name the host that starts this command").map_err(Failure::blocks)?;
    let (server, event) = (args.server.clone(), args.event.clone());
    let (sender, read) = oneshot::channel();
    let work = move || {
        let read = read_request().map_err(Failure::blocks).and_then(|request| {
            let follows = without_answer(&host, event.as_deref(), &request);
            let path = event.map_or_else(|| host.clone(), |event| format!("{host}/{event}"));
            let poster = server.poster(&format!("/v1/hooks/{path}"), deadline.saturating_duration_since(Instant::now()));
            Ok((request, poster.map_err(|error| Failure { error, follows })?, follows))
        });
        // The command may have ended meanwhile.
        let _ended = sender.send(read);
    };
    std::thread::Builder::new().spawn(work).context("no thread").map_err(Failure::blocks)?;
    let (request, poster, follows) = read.await.unwrap_or_else(|_gone| Err(Failure::blocks(anyhow!(GIVEN_UP))))?;
    let answer = poster.post(request).await.map_err(|fault| args.server.fault(&fault.cause, args.timeout));
    answer.and_then(|answer| checked(answer, &args.server)).map_err(|error| Failure { error, follows })
}

/// Returns what follows if a request gets no answer.
fn without_answer(host: &str, event: Option<&str>, request: &[u8]) -> Follows {
    let request = tollgate_hosts::Request { path: event.unwrap_or_default(), headers: &[], body: request };
    let question = tollgate_hosts::wire(host).and_then(|wire| wire.read(&request).ok());
    let kind = question.as_ref().map(|question| question.events.first().and_then(|event| event.get("type")?.as_str()));
    match kind {
        Some(Some("turn_start")) => ("the prompt is blocked, since the gate cannot note it", BLOCKED),
        Some(Some("tool_result")) => ("the result is blocked, since there is no verdict", BLOCKED),
        Some(None) => ("the gate decides nothing here", UNDECIDED),
        _ => CALL_BLOCKED,
    }
}

/// Returns an answer that is a JSON object.
fn checked(answer: Vec<u8>, server: &Server) -> anyhow::Result<Vec<u8>> {
    match serde_json::from_slice(&answer) {
        Ok(Value::Object(_)) => Ok(answer),
        _ => bail!("{}: the answer is no JSON object; is this a server of Tollgate?", server.url),
    }
}

fn read_request() -> anyhow::Result<Vec<u8>> {
    let mut request = Vec::new();
    std::io::stdin().lock().take(REQUEST_BYTES_MAX + 1).read_to_end(&mut request).context("stdin: cannot be read")?;
    if request.len() as u64 > REQUEST_BYTES_MAX {
        bail!("stdin: found more than {REQUEST_BYTES_MAX} bytes, which no server takes");
    }
    if request.iter().all(u8::is_ascii_whitespace) {
        bail!("stdin: is empty; a host writes its event there");
    }
    // The server would say so in the words of every host at once.
    serde_json::from_slice::<IgnoredAny>(&request).map_err(|_| anyhow!("stdin: found no JSON; a host writes its event there"))?;
    Ok(request)
}
