//! A server of HTTP in front of a worker of its own, on brokers that fail: its clients lose nothing, if they ask again.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{JoinHandle, sleep};
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, ensure};
use serde_json::{Value, json};
use tollgate_testkit::{Cluster, TIME_MAX, Worker};

use super::clock::Chronicle;
use crate::serve::{SentRequest, Served};

const CLIENTS: usize = 4;
/// How long a client waits for a verdict, in milliseconds, and how long before it asks again.
const WAIT_MS: u32 = 2_000;
const PAUSE: Duration = Duration::from_millis(50);

/// A server with its worker and its clients.
pub(super) struct Front {
    served: Served,
    worker: Worker,
    server: Worker,
    is_over: Arc<AtomicBool>,
    clients: Vec<JoinHandle<Result<Client>>>,
}

/// The verdicts that a client got, and how often it asked in vain.
#[derive(Default)]
struct Client {
    verdicts: Vec<Value>,
    in_vain: usize,
}

impl Front {
    /// Starts all of it.
    pub(super) fn start(cluster: &Cluster) -> Result<Self> {
        let served = Served::new(cluster)?;
        let worker = served.deployment.start()?;
        let (server, address) = served.start()?;
        let is_over = Arc::new(AtomicBool::new(false));
        let client = |number| {
            let (address, is_over) = (address.clone(), Arc::clone(&is_over));
            std::thread::spawn(move || ask(&address, number, &is_over))
        };
        let clients = (0..CLIENTS).map(client).collect();
        Ok(Self { served, worker, server, is_over, clients })
    }

    /// Ends the clients, and checks that each of their events has one verdict in the log, which is the verdict that the client got.
    pub(super) fn finish(self, cluster: &Cluster, chronicle: &Chronicle) -> Result<()> {
        let Self { served, worker, server, is_over, clients } = self;
        is_over.store(true, Ordering::Relaxed);
        let (mut got, mut in_vain) = (Vec::new(), 0);
        for client in clients {
            let client = client.join().map_err(|_| anyhow!("a client panicked"))?.with_context(|| server.log())?;
            got.extend(client.verdicts);
            in_vain += client.in_vain;
        }
        ensure!(!got.is_empty(), "no client got a verdict:\n{}", server.log());
        server.wait_ready()?;
        worker.wait_ready()?;
        let log = served.log(cluster, got.len())?;
        for verdict in &got {
            let id = verdict["verdict_id"].as_str().unwrap_or_default();
            ensure!(log.get(id) == Some(verdict), "the client got {verdict}, and the log has {:?}", log.get(id));
        }
        ensure!(log.len() == got.len(), "{} events were answered, and the log has verdicts on {}", got.len(), log.len());
        chronicle.note(format_args!("through the server: {} verdicts, {in_vain} requests in vain", got.len()))?;
        ensure!(server.stop()?.success() && worker.stop()?.success());
        Ok(())
    }
}

/// Asks about call after call, and about each again under the same id until its verdict is there.
fn ask(address: &str, number: usize, is_over: &AtomicBool) -> Result<Client> {
    let mut client = Client::default();
    while !is_over.load(Ordering::Relaxed) {
        let n = client.verdicts.len();
        let call = json!({"type": "tool_call", "thread_id": format!("front-{number}"), "event_id": format!("e{n}"),
            "tool_call_id": format!("c{n}"), "tool_name": "ls", "tool_input": {"n": n}});
        let asked = std::time::Instant::now();
        loop {
            match SentRequest::send(address, &call.to_string(), WAIT_MS).and_then(SentRequest::answer) {
                Ok((200, verdict)) => break client.verdicts.push(verdict),
                Ok((503 | 504, _)) => client.in_vain += 1,
                other => return Err(anyhow!("{other:?}")),
            }
            ensure!(asked.elapsed() < TIME_MAX, "no verdict in time on {call}");
            sleep(PAUSE);
        }
        sleep(PAUSE);
    }
    Ok(client)
}
