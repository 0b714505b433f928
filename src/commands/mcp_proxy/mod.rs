//! `tollgate mcp-proxy`: stands between an MCP client and an MCP server, and asks a server of Tollgate about each call of a tool and about each
//! result.
//!
//! | module | what it does |
//! |---|---|
//! | `lines` | frames of a pipe, one a line, up to a bound |
//! | `proxy` | what is done with each frame; the gate is asked here |
//! | `server` | the MCP server: a command, or a URL |
//! | `http` | an MCP server at a URL: requests as posts, answers and streams as frames |
//!
//! A thread reads the client and another reads the server. Each handles one frame after the other and asks the gate meanwhile, so frames and
//! events keep their order.

mod http;
mod lines;
mod proxy;
mod server;

use std::ffi::OsString;
use std::hash::{BuildHasher as _, RandomState};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use tollgate_hosts::mcp::Session;

use crate::commands::shared::interrupt::Signals;
use crate::commands::shared::server::{DEFAULT_URL, Files, Server, read_url};
use crate::commands::shared::wrong;
use lines::Lines;
use proxy::{Gate, Proxy};
use server::McpServer;

/// How long the MCP server may take to end once the client has closed its side; a server that takes longer is killed.
const GRACE: Duration = Duration::from_secs(5);

#[derive(Debug, Args)]
pub(super) struct McpProxyArgs {
    /// The MCP server's name: policies know its tools as `mcp__NAME__TOOL`
    #[arg(long, value_name = "NAME")]
    server: String,
    /// The MCP server, over streamable HTTP, in place of a command
    #[arg(long, value_name = "URL", conflicts_with = "command", required_unless_present = "command")]
    url: Option<String>,
    /// A file with the token that the MCP server asks for
    #[arg(long, value_name = "FILE", requires = "url")]
    url_token_file: Option<PathBuf>,
    /// The thread of the events; without this option each start of the proxy is a thread of its own
    #[arg(long, value_name = "ID")]
    thread: Option<String>,
    /// The server of Tollgate
    #[arg(long, value_name = "URL", default_value = DEFAULT_URL, value_parser = read_url)]
    gate: String,
    #[command(flatten)]
    files: Files,
    /// How long to wait for a verdict, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 5_000, value_parser = clap::value_parser!(u32).range(1..=600_000))]
    timeout: u32,
    /// The command of the MCP server, which speaks on stdin and stdout
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// Why a proxy ends.
enum End {
    /// The client has closed its side.
    Client,
    /// The MCP server takes no frame any more.
    Input,
    /// The MCP server has ended, or cannot be understood.
    Server(String),
}

/// Stands between client and server until one of them ends.
pub(super) fn execute(args: McpProxyArgs) -> anyhow::Result<ExitCode> {
    let name = format!("mcp-{:016x}", RandomState::new().hash_one(std::process::id()));
    let thread = args.thread.unwrap_or_else(|| name.clone());
    let session = Session::new(&args.server, &thread, &name).map_err(|problem| wrong(&format!("--{problem}")))?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().context("no runtime for HTTP")?;
    let asked = Server { url: args.gate, option: "--gate", files: args.files };
    let poster = asked.poster("/v1/events", Duration::from_millis(args.timeout.into()))?;
    let gate = Gate { server: asked, poster, timeout: args.timeout, runtime: runtime.handle().clone() };
    let (mut server, input, frames) = match (&args.url, args.command.split_first()) {
        (Some(url), _) => McpServer::at(url, args.url_token_file.as_deref(), runtime.handle())?,
        (None, Some((program, words))) => McpServer::start(program, words)?,
        (None, None) => return Err(wrong("--url: is missing; name the MCP server by its URL, or by its command behind `--`")),
    };
    say!("tollgate mcp-proxy: the thread of this session is {thread}");

    let proxy = Arc::new(Proxy::new(session, gate));
    let (ends, ended) = channel();
    // A thread that reads a pipe cannot be woken, so the process ends while it reads.
    std::thread::spawn({
        let (proxy, ends) = (Arc::clone(&proxy), ends.clone());
        move || ends.send(proxy.read_client(Lines::new(std::io::stdin()), input))
    });
    // A signal ends the session as the client does: the call that runs is still reported.
    let mut signals = runtime.block_on(async { Signals::catch_with_hang_up() }).context("no signals")?;
    let ends_by_signal = ends.clone();
    runtime.spawn(async move {
        signals.next().await;
        ends_by_signal.send(End::Client)
    });
    std::thread::spawn(move || ends.send(proxy.read_server(frames)));
    let first = ended.recv().context("a thread of the proxy ended; the lines above say why")?;
    let reason = match first {
        End::Server(reason) => Some(reason),
        // The results of calls that still run are reported first.
        end => {
            server.close();
            let last = ended.recv_timeout(GRACE);
            matches!(end, End::Input).then(|| match last {
                Ok(End::Server(reason)) => reason,
                _ => "the MCP server takes no frame any more".to_owned(),
            })
        }
    };
    server.end(&runtime);
    let Some(reason) = reason else { return Ok(ExitCode::SUCCESS) };
    say!("tollgate mcp-proxy: {reason}");
    Ok(ExitCode::FAILURE)
}
