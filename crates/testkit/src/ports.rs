//! Finds free ports, below the range from which systems take the local ports of outgoing connections: a client could take one of that range
//! while nobody listens on it.
//!
//! A port that is free now may be listened on much later, so a process has blocks of ports to itself: it listens on the first port of a
//! block for as long as it lives, and other processes that look for ports keep off the rest.

use std::collections::BTreeSet;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::net::{Ipv4Addr, TcpListener};
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use anyhow::{Context as _, Result};

const PORTS: Range<u16> = 15_000..32_000;
const BLOCK_PORTS: u16 = 100;

/// The blocks of this process, and what is left of the last one.
struct Blocks {
    held: Vec<TcpListener>,
    tried: BTreeSet<u16>,
    left: Range<u16>,
}

static BLOCKS: Mutex<Blocks> = Mutex::new(Blocks { held: Vec::new(), tried: BTreeSet::new(), left: 0..0 });

/// Returns ports that nobody listens on, others every time.
///
/// # Errors
/// All of them are taken.
pub fn free_ports<const N: usize>() -> Result<[u16; N]> {
    let mut blocks = BLOCKS.lock().unwrap_or_else(PoisonError::into_inner);
    let mut ports = [0; N];
    for port in &mut ports {
        *port = blocks.next()?;
    }
    Ok(ports)
}

fn bind(port: u16) -> Option<TcpListener> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).ok()
}

impl Blocks {
    fn next(&mut self) -> Result<u16> {
        loop {
            if let Some(port) = self.left.find(|port| bind(*port).is_some()) {
                return Ok(port);
            }
            self.take_block()?;
        }
    }

    /// Takes a block that no process has, at a random place.
    fn take_block(&mut self) -> Result<()> {
        let count = (PORTS.end - PORTS.start) / BLOCK_PORTS;
        let random = u16::try_from(RandomState::new().build_hasher().finish() % u64::from(count))?;
        let firsts = (0..count).map(|number| PORTS.start + (random + number) % count * BLOCK_PORTS);
        let mut free = firsts.filter(|first| self.tried.insert(*first)).filter_map(|first| Some((first, bind(first)?)));
        let (first, held) = free.next().context("no free port")?;
        self.left = first + 1..first + BLOCK_PORTS;
        self.held.push(held);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_port_is_given_once_and_its_block_is_held() {
        let given: Vec<u16> = (0..100).flat_map(|_| free_ports::<3>().unwrap()).collect();
        assert_eq!(given.iter().collect::<BTreeSet<_>>().len(), given.len());
        let mut blocks = BLOCKS.lock().unwrap();
        assert!(blocks.held.len() >= 3, "more ports than two blocks have");
        let others = given.iter().map(|port| port - (port - PORTS.start) % BLOCK_PORTS).collect::<BTreeSet<_>>();
        assert!(others.into_iter().all(|first| bind(first).is_none()), "no other process takes a block");
        assert!(blocks.next().is_ok_and(|port| !given.contains(&port)));
    }
}
