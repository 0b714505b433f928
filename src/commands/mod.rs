//! The command line: each command has a module.
//!
//! stdout is data, stderr is for people. Exit codes: 0, 1 for a failure, 2 for wrong usage, 3 for `eval` if it rejected a line, for `replay`
//! if it left a record out and for `topics apply --check` if something differs, 70 for a worker that stopped because one of its threads
//! ended, 130 and 143 if a signal interrupted a command, 129, 130 or 143 if a second signal ended a worker, 141 if the reader of stdout has gone before
//! the result was known.

mod abuse;
mod capture;
mod completions;
mod config_check;
mod control;
mod dev;
mod diff;
mod dlq;
mod eval;
mod health;
mod hook;
mod loops;
mod mcp_proxy;
mod passport;
mod replay;
mod run;
mod sample;
mod schema;
mod serve;
mod shadow;
mod shared;
mod signals;
mod state;
mod tap;
mod test;
mod top;
mod topics_apply;
mod version;
mod why;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use tollgate_config::settings::Settings;
use tollgate_worker::host_time::now_ms;
use tollgate_worker::logging::finish_logging;

use dev::DevContext;
use shared::output::ColorChoice;
use shared::suites::SuiteArgs;
use shared::{Hints, Screen, UsageError, is_reader_gone};
use tollgate_operations::Connection;

/// The gate that every tool call of a fleet of AI agents passes.
#[derive(Debug, Parser)]
#[command(name = "tollgate", version, about, max_term_width = 110)]
pub struct Cli {
    #[command(flatten)]
    connection: Connection,
    /// When to use colour
    #[arg(long, global = true, value_enum, value_name = "WHEN", default_value_t = ColorChoice::Auto)]
    color: ColorChoice,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Everything in one process, on an embedded broker: topics, a worker, metrics
    Dev(dev::DevArgs),
    /// A worker against real Kafka
    Run(run::RunArgs),
    /// HTTP in front of the gate: one event in, its verdict out; the hooks of agent hosts
    Serve(serve::ServeArgs),
    /// Ask a worker whether it is alive, or ready: for health checks, by the exit code
    Health(health::HealthArgs),
    /// Ask a server about an event of an agent host that only starts commands; print the settings of a host
    Hook(hook::HookArgs),
    /// Stand before an MCP server, and ask a server of Tollgate about each call of a tool and each result
    McpProxy(mcp_proxy::McpProxyArgs),
    /// Play the bundled sample against running workers, as an orchestrator would, and show the verdicts
    Sample(sample::SampleArgs),
    /// Verdicts as they come: lines on a terminal, JSONL in a pipe
    Tap(tap::TapArgs),
    /// Why a call was stopped: the verdict, the events that led there, policy and controls, what to do
    Why(why::WhyArgs),
    /// What is going on, live: rates by verdict, waits, lag, the worst threads
    Top(top::TopArgs),
    /// Events as JSONL (file or stdin) → verdicts as JSONL on stdout, without Kafka
    Eval(eval::EvalArgs),
    /// A topic, or a part of it, as a file from which it can be made again byte for byte
    Capture(capture::CaptureArgs),
    /// What a new policy would have decided otherwise on recorded traffic
    Diff(diff::DiffArgs),
    /// A policy on trial (`run --shadow`): what it would have changed
    Shadow {
        #[command(subcommand)]
        command: shadow::ShadowCommand,
    },
    /// Recorded traffic to a topic again, at its own pace or another: the load test
    Replay(replay::ReplayArgs),
    /// Unit tests of a policy: cases in files, expected verdicts against those that come
    Test(SuiteArgs),
    /// What is remembered of threads: show one, list them, reset one
    State {
        #[command(subcommand)]
        command: state::StateCommand,
    },
    /// The topics: compare them with what is needed, create and change what differs
    Topics {
        #[command(subcommand)]
        command: topics_apply::TopicsCommand,
    },
    /// Dead letters: list them by reason, send them back to their topic
    Dlq {
        #[command(subcommand)]
        command: dlq::DlqCommand,
    },
    /// What loop controllers make of recorded runs
    Loops {
        #[command(subcommand)]
        command: loops::LoopsCommand,
    },
    /// Look at passports
    Passport {
        #[command(subcommand)]
        command: passport::PassportCommand,
    },
    /// Look at what providers send
    Signals {
        #[command(subcommand)]
        command: signals::SignalsCommand,
    },
    /// Switches for the whole fleet: suspend and resume subjects, set passports, list what is in force
    Control {
        #[command(subcommand)]
        command: control::ControlCommand,
    },
    /// Abuse over the whole fleet: who is suspended and why, pardons, which rules fire
    Abuse {
        #[command(subcommand)]
        command: abuse::AbuseCommand,
    },
    /// Look at the configuration
    Config {
        #[command(subcommand)]
        command: ConfigCommand,
    },
    /// Print the JSON Schema of events, verdicts, controls or the configuration
    Schema(schema::SchemaArgs),
    /// Print the version, with what the program is built of and which state it reads and writes
    Version(version::VersionArgs),
    /// Print shell completions
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

#[derive(Debug, Subcommand)]
enum ConfigCommand {
    /// Validate the configuration and print what is in force, secrets redacted
    Check(config_check::CheckArgs),
}

/// Runs a parsed command line, and returns its exit code. An error is printed on stderr.
#[must_use]
pub fn execute(cli: Cli) -> ExitCode {
    let outcome = run(cli);
    finish_logging();
    outcome.unwrap_or_else(|error| {
        if is_reader_gone(&error) {
            return ExitCode::from(READER_GONE);
        }
        say!("tollgate: {error:#}");
        if error.is::<UsageError>() { ExitCode::from(WRONG_USAGE) } else { ExitCode::FAILURE }
    })
}

fn run(Cli { connection, color, command }: Cli) -> anyhow::Result<ExitCode> {
    let (screen, hints) = (Screen::stdout(color), Hints::of(&connection));
    let has_config = connection.config.is_some();
    let settings = || connection.settings();
    match command {
        Command::Completions { shell } => completions::execute(shell),
        Command::Schema(args) => schema::execute(&args),
        Command::Config { command: ConfigCommand::Check(args) } => config_check::execute(&args, &connection.settings_as_of(now_ms())?),
        Command::Eval(args) => eval::execute(&args, &settings()?),
        Command::Capture(args) => capture::execute(&args, &settings()?),
        Command::Diff(args) => diff::execute(&args, &settings()?, has_config, screen),
        Command::Shadow { command } => shadow::execute(&command, settings()?, screen),
        Command::Replay(args) => replay::execute(&args, settings()?),
        Command::Test(args) => test::execute(&args, settings()?, has_config, screen),
        Command::Loops { command } => loops::execute(&command, &settings()?, screen),
        Command::Passport { command } => passport::execute(&command, &settings()?),
        Command::Signals { command } => signals::execute(&command, &settings()?, screen),
        Command::State { command } => state::execute(&command, settings()?, screen),
        Command::Version(args) => version::execute(&args),
        Command::Dlq { command } => dlq::execute(&command, settings()?, screen),
        Command::Topics { command } => topics_apply::execute(&command, settings()?, screen),
        Command::Control { command } => control::execute(&command, settings()?, &hints, screen),
        Command::Abuse { command } => abuse::execute(&command, settings()?, &hints, screen),
        Command::Run(args) => run::execute(&args, worker_settings(&connection)?),
        Command::Serve(args) => serve::execute(&args, worker_settings(&connection)?),
        Command::Health(args) => health::execute(&args, &settings()?),
        Command::Hook(args) => hook::execute(&args),
        Command::McpProxy(args) => mcp_proxy::execute(args),
        Command::Sample(args) => sample::execute(&args, settings()?, screen),
        Command::Tap(args) => tap::execute(&args, settings()?, screen),
        Command::Why(args) => why::execute(&args, &settings()?, screen),
        Command::Top(args) => top::execute(&args, settings()?, screen),
        Command::Dev(args) => {
            let context = DevContext { has_config, has_brokers: connection.brokers.is_some(), screen };
            dev::execute(&args, worker_settings(&connection)?, context)
        }
    }
}

/// The exit code of a command that was used wrongly. The parser of the command line ends with it too.
const WRONG_USAGE: u8 = 2;
/// The exit code of a command whose output nobody reads any more: 128 + SIGPIPE, as shells report a process that this signal ended.
const READER_GONE: u8 = 141;

/// Reads the configuration, and checks that a worker can be started with it. A member that cannot make its clients would try again, as after
/// any other failure.
fn worker_settings(connection: &Connection) -> anyhow::Result<Settings> {
    let settings = connection.settings()?;
    config_check::check_start(&settings)?;
    Ok(settings)
}
