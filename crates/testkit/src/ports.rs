//! Finds free ports, below the range from which systems take the local ports of outgoing connections: a client could take one of that range
//! while nobody listens on it.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::net::{Ipv4Addr, TcpListener};
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context as _, Result};

/// Returns ports that nobody listens on.
///
/// # Errors
/// All of them are taken.
pub fn free_ports<const N: usize>() -> Result<[u16; N]> {
    let random = RandomState::new().build_hasher().finish();
    let start = 15_000 + u16::try_from(random % 15_000)?;
    let mut ports = [0; N];
    let mut free = (start..32_000).filter(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok());
    for port in &mut ports {
        *port = free.next().context("no free port")?;
    }
    Ok(ports)
}

/// Returns a port that nobody listens on, another one every time, so that processes can be started at once.
pub(crate) fn next_free_port() -> Result<u16> {
    const PORTS: u32 = 5_000;
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let port = || 10_000 + (std::process::id() + NEXT.fetch_add(1, Ordering::Relaxed)) % PORTS;
    let mut ports = (0..PORTS).filter_map(|_| u16::try_from(port()).ok());
    ports.find(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok()).context("no free port")
}
