//! The MCP server: a command that speaks on stdin and stdout, or a URL.

use std::ffi::OsString;
use std::io::{Result as IoResult, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use anyhow::Context as _;
use tokio::runtime::{Handle, Runtime};

use super::http::Http;
use super::lines::{Line, Lines};

/// Sends a frame to the server. A command sees the end of its stdin once this is gone.
pub(super) type Input = Box<dyn FnMut(&[u8]) -> IoResult<()> + Send>;
/// The frames of a server, in their order.
pub(super) type Frames = Box<dyn Iterator<Item = Line> + Send>;

/// The MCP server.
pub(super) enum McpServer {
    Command(Child),
    Url(Arc<Http>),
}

impl McpServer {
    /// Starts a command. Its stderr is that of the proxy.
    pub(super) fn start(program: &OsString, words: &[OsString]) -> anyhow::Result<(Self, Input, Frames)> {
        let mut command = Command::new(program);
        command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped());
        let name = program.display();
        let mut child = command.spawn().with_context(|| format!("{name}: the command of the MCP server cannot be started"))?;
        let mut stdin = child.stdin.take().context("the MCP server has no stdin")?;
        let stdout = child.stdout.take().context("the MCP server has no stdout")?;
        let input = move |line: &[u8]| stdin.write_all(&[line, b"\n"].concat());
        Ok((Self::Command(child), Box::new(input), Box::new(Lines::new(stdout))))
    }

    /// Returns a server at a URL. Nothing is sent yet.
    pub(super) fn at(url: &str, token_file: Option<&Path>, runtime: &Handle) -> anyhow::Result<(Self, Input, Frames)> {
        let (http, mut frames) = Http::new(url, token_file, runtime)?;
        let sender = Arc::clone(&http);
        let input = move |line: &[u8]| {
            Http::send(&sender, line);
            Ok(())
        };
        Ok((Self::Url(http), Box::new(input), Box::new(std::iter::from_fn(move || frames.blocking_recv()))))
    }

    /// Lets a server at a URL know that no frame comes any more.
    pub(super) fn close(&self) {
        if let Self::Url(http) = self {
            http.close();
        }
    }

    /// Ends the server.
    pub(super) fn end(&mut self, runtime: &Runtime) {
        match self {
            Self::Command(child) => {
                // It may have ended by itself.
                let _ended = child.kill();
                let _status = child.wait();
            }
            Self::Url(http) => runtime.block_on(http.end_session()),
        }
    }
}
