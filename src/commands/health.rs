//! `tollgate health`: asks a worker whether it is alive, or ready, for health checks where there is neither a shell nor curl.

use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::process::ExitCode;

use anyhow::{Context as _, bail, ensure};
use clap::Args;

use tollgate_config::settings::Settings;

use crate::commands::shared::scrape::ask;
use crate::commands::shared::{Finding, process};

#[derive(Debug, Args)]
pub(super) struct HealthArgs {
    /// The address of the worker's admin endpoint [default: admin.listen of the configuration]
    #[arg(value_name = "HOST:PORT", value_parser = read_address)]
    worker: Option<String>,
    /// Ask whether every partition that it holds is restored and decided on, and not only whether its threads do their work
    #[arg(long)]
    ready: bool,
}

/// A port that is left out would be that of any web server.
fn read_address(text: &str) -> Result<String, String> {
    let has_port = text.rsplit_once(':').is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok());
    if has_port { Ok(text.to_owned()) } else { Err("it has no port; write HOST:PORT, such as 127.0.0.1:9464".to_owned()) }
}

/// Prints the worker's answer on stdout if it is well, and fails with it otherwise.
pub(super) fn execute(args: &HealthArgs, settings: &Settings) -> anyhow::Result<ExitCode> {
    let worker = match (&args.worker, &settings.admin) {
        (Some(worker), _) => worker.clone(),
        (None, Some(admin)) => reachable(admin.listen).to_string(),
        (None, None) => bail!("admin is null, so a worker of this configuration has no endpoint to ask; name one as HOST:PORT"),
    };
    let url = format!("http://{worker}{}", if args.ready { "/readyz" } else { "/livez" });
    let (status, text) = process::runtime()?.block_on(ask(&url)).with_context(|| url.clone())?;
    ensure!(status == 200, "{url}: status {status}: {}", text.trim_end());
    Finding.write_all(text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

/// Returns where a listener can be reached from the same machine: one on every address can be on the loopback interface.
fn reachable(listen: SocketAddr) -> SocketAddr {
    let address = match listen.ip() {
        IpAddr::V4(address) if address.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(address) if address.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        address => address,
    };
    SocketAddr::new(address, listen.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_port() {
        assert_eq!(read_address("gate:9464").as_deref(), Ok("gate:9464"));
        for text in ["127.0.0.1", ":9464", "gate:", "gate:http", "gate:99999"] {
            assert!(read_address(text).unwrap_err().contains("HOST:PORT"), "{text}");
        }
    }

    #[test]
    fn a_listener_on_every_address_is_asked_on_loopback() {
        for (listen, asked) in [("0.0.0.0:9464", "127.0.0.1:9464"), ("[::]:1", "[::1]:1"), ("10.1.2.3:9464", "10.1.2.3:9464")] {
            assert_eq!(reachable(listen.parse().unwrap()).to_string(), asked);
        }
    }
}
