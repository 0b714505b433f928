//! Tests `tollgate serve` on a real broker: a server that is killed while many wait, and a replies topic that goes away.

use std::collections::HashMap;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use tollgate_testkit::{Cluster, Deployment, TIME_MAX, Worker, eventually, parsed, wait_until};

/// Requests that wait at once, each with as many events.
const REQUESTS: usize = 2_000;
const EVENTS: usize = 5;
/// How often a server may be killed too late, when everything was answered.
const ATTEMPTS: usize = 5;
/// How long an event may wait, in milliseconds: as long as it may.
const WAIT_MS: u32 = 60_000;
const DENIED: &str = "format_disk";

/// A deployment with a server, whose partition is the first of the replies topic.
pub(crate) struct Served {
    pub(crate) deployment: Deployment,
    pub(crate) replies: String,
}

impl Served {
    /// Creates the topics of both. Every second tool is denied.
    pub(crate) fn new(cluster: &Cluster) -> Result<Self> {
        let (mut deployment, replies) = (Deployment::new(cluster, 4)?, cluster.topic("replies", 1, &[])?);
        let guardrails = json!({"enabled": true, "provider": {"use": "allowlist", "config": {"denied_tools": [DENIED]}}});
        deployment.configure("/guardrails", guardrails);
        deployment.configure("/kafka/topics/replies", json!(replies));
        deployment.configure("/serve", json!({"in_flight_max": REQUESTS * EVENTS, "listen": "127.0.0.1:0"}));
        Ok(Self { deployment, replies })
    }

    /// Has the events come from another topic.
    pub(crate) fn set_events(&mut self, topic: String) {
        self.deployment.configure("/kafka/topics/events", json!(topic));
        self.deployment.events = topic;
    }

    /// Starts a server, and returns the server with its address once the server answers.
    pub(crate) fn start(&self) -> Result<(Worker, String)> {
        let server = self.deployment.spawn_server()?;
        server.await_line(&["requests are answered"])?;
        let line = server.await_line(&["HTTP server", "listen="])?;
        let address = line.split("listen=").nth(1).and_then(|rest| rest.split(' ').next()).context("an address")?;
        Ok((server, address.to_owned()))
    }

    /// Returns the verdicts of the log by their ids, once there are verdicts on so many events. Copies of a verdict are the same.
    pub(crate) fn log(&self, cluster: &Cluster, count: usize) -> Result<HashMap<String, Value>> {
        eventually(|| {
            let mut log: HashMap<String, Value> = HashMap::new();
            for verdict in cluster.read_all(&self.deployment.decisions)?.iter().map(parsed) {
                let id = verdict["verdict_id"].as_str().context("a verdict has an id")?.to_owned();
                ensure!(log.get(&id).is_none_or(|other| *other == verdict), "two verdicts on an event: {verdict} and {:?}", log.get(&id));
                log.insert(id, verdict);
            }
            ensure!(log.len() >= count, "the log has verdicts on {} of {count} events", log.len());
            Ok(log)
        })
    }
}

/// A request that was sent.
pub(crate) struct SentRequest(TcpStream);

impl SentRequest {
    /// Sends a body, whose verdicts are waited for so many milliseconds.
    pub(crate) fn send(address: &str, body: &str, wait_ms: u32) -> Result<Self> {
        let mut stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(TIME_MAX))?;
        let head = "POST /v1/events HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json";
        write!(stream, "{head}\r\nprefer: wait={wait_ms}\r\ncontent-length: {}\r\n\r\n{body}", body.len())?;
        Ok(Self(stream))
    }

    /// Returns the status and the body of the answer. A connection that ends before the answer does is an error.
    pub(crate) fn answer(mut self) -> Result<(u16, Value)> {
        let mut answer = String::new();
        self.0.read_to_string(&mut answer)?;
        let (head, body) = answer.split_once("\r\n\r\n").context("no head")?;
        let status = head.split(' ').nth(1).context("no status")?.parse()?;
        Ok((status, serde_json::from_str(body)?))
    }
}

/// Returns the request of a round with this number: calls of a thread.
fn request(round: usize, number: usize) -> String {
    let call = |n: usize| {
        let tool = if (number + n).is_multiple_of(2) { DENIED } else { "ls" };
        json!({"type": "tool_call", "thread_id": format!("t{round}-{number}"), "event_id": format!("e{n}"), "tool_call_id": format!("c{n}"),
            "tool_name": tool, "tool_input": {"n": n}})
    };
    Value::Array((0..EVENTS).map(call).collect()).to_string()
}

/// Sends all requests of a round.
fn ask_all(address: &str, round: usize) -> Result<Vec<SentRequest>> {
    (0..REQUESTS).map(|number| SentRequest::send(address, &request(round, number), WAIT_MS)).collect()
}

/// A server that is killed while ten thousand events wait: every request ends with verdicts of the log or with an error, and a request that
/// is made again gets the verdicts of the log.
pub(crate) fn a_killed_server_allows_nothing(cluster: &Cluster) -> Result<()> {
    let served = Served::new(cluster)?;
    let worker = served.deployment.start()?;
    for round in 0..ATTEMPTS {
        let answers = killed_while_waiting(&served, &worker, round)?;
        let lost = answers.iter().filter(|answer| answer.is_none()).count();
        let (_server, address) = served.start()?;
        let again = ask_all(&address, round)?.into_iter().map(SentRequest::answer).collect::<Result<Vec<_>>>()?;
        let log = served.log(cluster, REQUESTS * EVENTS * (round + 1))?;
        for (number, (first, (status, second))) in answers.iter().zip(&again).enumerate() {
            ensure!(*status == 200, "{number}: {second}");
            is_of_log(second, &log)?;
            ensure!(first.as_ref().is_none_or(|first| first == second), "{number}: {first:?}, and then {second}");
        }
        if lost > 0 && lost < REQUESTS {
            return Ok(());
        }
    }
    anyhow::bail!("in {ATTEMPTS} rounds no server was killed between the first answer and the last")
}

/// Has requests wait, lets the worker decide, kills the server once something was answered, and returns the answers that were whole.
fn killed_while_waiting(served: &Served, worker: &Worker, round: usize) -> Result<Vec<Option<Value>>> {
    let (server, address) = served.start()?;
    worker.signal("STOP")?;
    let asked = ask_all(&address, round)?;
    let waiting = |is_right: fn(f64) -> bool| server.await_metric("tollgate_serve_in_flight", is_right);
    waiting(|count| count == (REQUESTS * EVENTS) as f64)?;
    worker.signal("CONT")?;
    waiting(|count| count < (REQUESTS * EVENTS) as f64)?;
    server.kill()?;
    Ok(asked.into_iter().map(|asked| asked.answer().ok().filter(|(status, _)| *status == 200).map(|(_, body)| body)).collect())
}

/// Every verdict of an answer is the verdict of the log, and a tool that is denied is denied.
fn is_of_log(answer: &Value, log: &HashMap<String, Value>) -> Result<()> {
    let verdicts = answer.as_array().with_context(|| format!("no list: {answer}"))?;
    ensure!(verdicts.len() == EVENTS, "{answer}");
    for verdict in verdicts {
        let id = verdict["verdict_id"].as_str().with_context(|| format!("no verdict: {verdict}"))?;
        ensure!(log.get(id) == Some(verdict), "{verdict} is not the verdict of the log: {:?}", log.get(id));
        let is_denied = verdict["tool_name"] == DENIED;
        ensure!(verdict["allows_execution"] == !is_denied, "{verdict}");
    }
    Ok(())
}

/// The replies topic is deleted under a server: requests are refused, and the reason is named, until the topic is there again.
pub(crate) fn a_replies_topic_that_goes_away_is_named(cluster: &Cluster) -> Result<()> {
    let served = Served::new(cluster)?;
    let _worker = served.deployment.start()?;
    let (server, address) = served.start()?;
    let ask = |number| SentRequest::send(&address, &request(0, number), WAIT_MS)?.answer();
    ensure!(ask(0)?.0 == 200);
    cluster.delete_topics(&[&served.replies])?;
    wait_until("the server is not ready", || Ok(server.get("/readyz")?.0 == 503))?;
    let (status, refused) = ask(1)?;
    ensure!(status == 503 && refused[0]["allows_execution"] == false, "{status} {refused}");
    wait_until("the topic is named", || Ok(server.get("/readyz")?.1.contains(&served.replies)))?;
    // librdkafka may not notice a leader that has come back: the server does not rely on it.
    server.await_line(&["reading the replies with a new consumer"])?;
    eventually(|| cluster.create_topics(&[&served.replies], 1, &[]))?;
    wait_until("the server is ready again", || Ok(server.get("/readyz")?.0 == 200))?;
    wait_until("there are verdicts again", || Ok(ask(2)?.0 == 200))
}

/// The events topic does not take the time of the server's clock: the refusal says so, and so does the health report.
pub(crate) fn a_clock_that_brokers_refuse_is_named(cluster: &Cluster) -> Result<()> {
    let mut served = Served::new(cluster)?;
    // A record is too old for this topic, unless the broker takes it within the millisecond in which it was made.
    served.set_events(cluster.topic("events", 4, &[("message.timestamp.before.max.ms", "0")])?);
    let (server, address) = served.start()?;
    let mut round = 0;
    eventually(|| {
        round += 1;
        let (status, refused) = SentRequest::send(&address, &request(round, 0), 500)?.answer()?;
        ensure!(status == 503 && refused[0]["code"] == "clock_wrong" && refused[0]["allows_execution"] == false, "{status} {refused}");
        let report = server.get("/readyz")?.1;
        ensure!(report.contains("does not take the time of this server's clock (message.timestamp.after.max.ms"), "{report}");
        Ok(())
    })?;
    ensure!(server.stop()?.success());
    Ok(())
}
