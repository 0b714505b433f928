//! Finds free ports, below the range from which systems take the local ports of outgoing connections: a client could take one of that range
//! while nobody listens on it.

use std::collections::BTreeSet;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::net::{Ipv4Addr, TcpListener};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context as _, Result};

/// The ports that were tried before. Those of them that were free belong to who asked for them, and may not be listened on yet.
static TRIED: Mutex<BTreeSet<u16>> = Mutex::new(BTreeSet::new());

/// Returns ports that nobody listens on, others every time, at a random place: other processes may be looking for ports too.
///
/// # Errors
/// All of them are taken.
pub fn free_ports<const N: usize>() -> Result<[u16; N]> {
    let random = RandomState::new().build_hasher().finish();
    let start = 15_000 + u16::try_from(random % 15_000)?;
    let mut tried = TRIED.lock().unwrap_or_else(PoisonError::into_inner);
    let mut ports = [0; N];
    // To try one again would be in the way of who begins to listen on it.
    let mut free = (start..32_000).filter(|port| tried.insert(*port) && TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok());
    for port in &mut ports {
        *port = free.next().context("no free port")?;
    }
    Ok(ports)
}
