//! A TCP proxy between clients and one broker, which can hold connections up, cut them, and delay what they carry.

use std::net::Ipv4Addr;
use std::time::Duration;

use anyhow::{Context as _, Result};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::sync::watch;

/// How much is carried at a time.
const CHUNK_BYTES: usize = 64 * 1024;
const THREADS: usize = 2;

/// What a proxy does with connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Traffic {
    /// It carries everything at once.
    Passing,
    /// It keeps connections, and accepts new ones, but carries nothing, like a network that has gone silent.
    Stalled,
    /// It carries everything so much later.
    Delayed(Duration),
    /// It ends every new connection at once.
    Refused,
}

#[derive(Clone, Copy, Debug)]
struct State {
    traffic: Traffic,
    /// How often all connections were cut. A connection ends when the number is another than at its beginning.
    cuts: u64,
}

/// The proxies of a cluster, on threads of their own.
#[derive(Debug)]
pub(super) struct Proxies {
    runtime: Runtime,
    proxies: Vec<watch::Sender<State>>,
}

impl Proxies {
    /// Starts a proxy for each pair of ports: where clients come, and where the broker listens.
    pub(super) fn start(ports: &[(u16, u16)]) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(THREADS).thread_name("proxy").enable_all().build()?;
        let mut proxies = Vec::new();
        for (port, broker_port) in ports {
            let (sender, state) = watch::channel(State { traffic: Traffic::Passing, cuts: 0 });
            let listener = runtime.block_on(TcpListener::bind((Ipv4Addr::LOCALHOST, *port))).context("cannot listen as a proxy")?;
            runtime.spawn(accept(listener, *broker_port, state));
            proxies.push(sender);
        }
        Ok(Self { runtime, proxies })
    }

    /// Says what the proxy of a node does from now on.
    pub(super) fn set(&self, node: usize, traffic: Traffic) {
        self.proxies[node].send_modify(|state| state.traffic = traffic);
    }

    /// Ends all connections of a node.
    pub(super) fn cut(&self, node: usize) {
        self.proxies[node].send_modify(|state| state.cuts += 1);
    }

    /// Ends the proxies without waiting for their connections.
    pub(super) fn end(self) {
        self.runtime.shutdown_background();
    }
}

async fn accept(listener: TcpListener, broker_port: u16, state: watch::Receiver<State>) {
    while let Ok((client, _)) = listener.accept().await {
        if state.borrow().traffic != Traffic::Refused {
            tokio::spawn(connection(client, broker_port, state.clone()));
        }
    }
}

/// Carries one connection in both directions until either end closes it or it is cut. If the broker is down it is closed at once.
async fn connection(client: TcpStream, broker_port: u16, state: watch::Receiver<State>) {
    let Ok(broker) = TcpStream::connect((Ipv4Addr::LOCALHOST, broker_port)).await else { return };
    // Small requests must not wait for each other's acknowledgements.
    let _quick = client.set_nodelay(true).and_then(|()| broker.set_nodelay(true));
    let (from_client, to_client) = client.into_split();
    let (from_broker, to_broker) = broker.into_split();
    let mut cut = state.clone();
    let cuts = cut.borrow().cuts;
    tokio::select! {
        () = carry(from_client, to_broker, state.clone(), cuts) => {}
        () = carry(from_broker, to_client, state, cuts) => {}
        _ = cut.wait_for(|state| state.cuts != cuts) => {}
    }
}

/// Carries what one end says to the other. Nothing is carried after a cut, however late the cut is noticed.
async fn carry(mut from: impl AsyncRead + Unpin, mut to: impl AsyncWrite + Unpin, mut state: watch::Receiver<State>, cuts: u64) {
    let mut chunk = vec![0; CHUNK_BYTES];
    while let Ok(size @ 1..) = from.read(&mut chunk).await {
        let Ok(now) = state.wait_for(|state| state.traffic != Traffic::Stalled).await.map(|state| *state) else { return };
        if let Traffic::Delayed(delay) = now.traffic {
            tokio::time::sleep(delay).await;
        }
        if state.borrow().cuts != cuts {
            return;
        }
        if to.write_all(&chunk[..size]).await.is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::free_ports;
    use std::io::{Read as _, Write as _};
    use std::time::Instant;

    /// Returns a proxy in front of an echo, and a connection to it.
    fn echo() -> (Proxies, std::net::TcpStream, u16) {
        let [port, broker_port] = free_ports().unwrap();
        let broker = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, broker_port)).unwrap();
        std::thread::spawn(move || {
            while let Ok((mut stream, _)) = broker.accept() {
                std::thread::spawn(move || std::io::copy(&mut stream.try_clone().unwrap(), &mut stream));
            }
        });
        let proxies = Proxies::start(&[(port, broker_port)]).unwrap();
        (proxies, connect(port), port)
    }

    fn connect(port: u16) -> std::net::TcpStream {
        let stream = std::net::TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream
    }

    fn ask(stream: &mut std::net::TcpStream) -> std::io::Result<Duration> {
        let started = Instant::now();
        stream.write_all(b"ping")?;
        stream.read_exact(&mut [0; 4])?;
        Ok(started.elapsed())
    }

    #[test]
    fn it_carries_delays_and_holds_up() {
        let (proxies, mut stream, _) = echo();
        ask(&mut stream).unwrap();
        proxies.set(0, Traffic::Delayed(Duration::from_millis(100)));
        assert!(ask(&mut stream).unwrap() >= Duration::from_millis(200), "there and back");
        proxies.set(0, Traffic::Stalled);
        stream.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
        assert!(ask(&mut stream).is_err());
        proxies.set(0, Traffic::Passing);
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream.read_exact(&mut [0; 4]).unwrap();
        proxies.end();
    }

    #[test]
    fn it_cuts_and_refuses() {
        let (proxies, mut stream, port) = echo();
        ask(&mut stream).unwrap();
        proxies.cut(0);
        assert!(ask(&mut stream).is_err());
        ask(&mut connect(port)).expect("a new connection works");
        proxies.set(0, Traffic::Refused);
        assert!(ask(&mut connect(port)).is_err());
        proxies.end();
    }
}
