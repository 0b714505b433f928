//! `tollgate serve` alone: without a worker, with tokens, two servers on a partition, brokers that go away.

use std::io::Write as _;
use std::net::TcpStream;
use std::process::Command;
use std::sync::{Condvar, Mutex};
use std::time::Duration;

use serde_json::json;
use tollgate_json::digest::Digest;
use tollgate_testkit::{PolicyServer, wait_until};

use super::client::Client;
use super::{Dev, after, call, with};
use crate::brokers::process::Process;
use crate::support::{run, temporary, tollgate};

/// Returns a command that serves on a partition of the broker of a `dev`, with this configuration.
pub fn serve(dev: &Dev, partition: u32, config: &tempfile::NamedTempFile) -> Command {
    let mut command = tollgate();
    command.args(["serve", "--listen", "127.0.0.1:0", "-b", &dev.brokers, "--partition", &partition.to_string(), "--config"]);
    command.arg(config.path()).env("TOLLGATE__ADMIN__LISTEN", "null");
    command
}

/// Starts a server, and waits until it answers.
pub fn started(command: &mut Command) -> (Process, Client) {
    let process = Process::start(command);
    let address = after(&process.line(&["HTTP server", "listen="]), "listen=").to_owned();
    process.line(&["requests are answered"]);
    (process, Client { address })
}

/// Starts a server with an admin endpoint, and waits until it answers. Returns the endpoint behind the server.
fn started_with_admin(command: &mut Command) -> (Process, Client, Client) {
    let (process, client) = started(command.env("TOLLGATE__ADMIN__LISTEN", "127.0.0.1:0"));
    let address = after(&process.line(&["admin endpoint", "listen="]), "listen=").to_owned();
    (process, client, Client { address })
}

#[test]
fn a_server_without_a_worker_says_so_within_the_deadline_and_drains() {
    let dev = Dev::start();
    // Nobody reads these events.
    let config = temporary("{kafka: {topics: {events: agent.shadow, shadow: agent.other}}, serve: {deadline_ms: 50}}");
    let (mut server, client, admin) = started_with_admin(&mut serve(&dev, 1, &config));
    let late = client.events(&call("t", "c", "ls"));
    let verdict = late.json();
    assert_eq!((late.status, &verdict["code"]), (504, &json!("deadline_exceeded")), "{late:?}");
    assert_eq!((&verdict["action"], &verdict["allows_execution"]), (&json!("block"), &json!(false)));
    // The path leads to the same wait.
    let later = client.get(verdict["verdict_path"].as_str().unwrap());
    assert_eq!((later.status, &later.json()["verdict_path"]), (504, &verdict["verdict_path"]), "{later:?}");
    let listed = client.events(&format!("[{}]", call("t", "d", "ls")));
    assert_eq!((listed.status, &listed.json()[0]["code"]), (504, &json!("deadline_exceeded")));
    // Not before a second has passed without any verdict, and the server stays ready: only questions show that workers are back.
    let says_why = || {
        let health = admin.get("/readyz");
        let asked = client.events(&call("t", "e", "ls"));
        assert_eq!((health.status, asked.status), (200, 504), "{health:?}");
        Ok(health.json()["warnings"][0].as_str().is_some_and(|warning| warning.contains("whether workers run")))
    };
    wait_until("the server says that no verdict comes", says_why).unwrap();
    server.interrupt();
    assert!(server.wait().success(), "{}", server.said());
}

/// The threads whose calls the policy server of [`who_waits_gets_a_verdict_from_a_server_that_stops`] answers.
static ANSWERED: (Mutex<Vec<String>>, Condvar) = (Mutex::new(Vec::new()), Condvar::new());

/// A server alone, and then the server of a process that decides too.
#[test]
fn who_waits_gets_a_verdict_from_a_server_that_stops() {
    let policy = PolicyServer::start(|input| {
        let (answered, changed) = &ANSWERED;
        let waits = |answered: &mut Vec<String>| !answered.iter().any(|thread| input["thread_id"] == thread.as_str());
        drop(changed.wait_while(answered.lock().unwrap(), waits).unwrap());
        (Duration::ZERO, json!(true))
    });
    let provider = json!({"use": "http", "config": {"url": policy.url(), "dialect": "opa", "timeout_ms": 60_000}});
    let settings = json!({"guardrails": {"enabled": true, "provider": provider}, "serve": {"deadline_ms": 60_000}});
    let mut dev = Dev::configured(&settings.to_string());
    let config = temporary("{serve: {deadline_ms: 60000}}");
    let (mut server, alone) = started(&mut serve(&dev, 1, &config));
    let beside = dev.client.clone();
    let waits = [("alone", &alone), ("beside", &beside)].map(|(thread, client)| {
        let client = client.clone();
        std::thread::spawn(move || client.events(&call(thread, "c", "ls")))
    });
    wait_until("the policy server is asked", || Ok(policy.asked().len() == 2)).unwrap();
    let stopping = [("alone", &alone, &mut server), ("beside", &beside, &mut dev.process)];
    for ((thread, client, process), waits) in stopping.into_iter().zip(waits) {
        process.interrupt();
        wait_until("the server takes no more connections", || Ok(TcpStream::connect(&client.address).is_err())).unwrap();
        let (answered, changed) = &ANSWERED;
        answered.lock().unwrap().push(thread.to_owned());
        changed.notify_all();
        let answer = waits.join().unwrap();
        assert_eq!((answer.status, &answer.json()["action"]), (200, &json!("allow")), "{thread}: {answer:?}");
        assert!(process.wait().success(), "{}", process.said());
    }
}

#[test]
fn a_server_that_stops_answers_until_balancers_have_noticed() {
    let dev = Dev::start();
    let config = temporary("{serve: {stop_delay_ms: 600000}}");
    let (server, client, admin) = started_with_admin(&mut serve(&dev, 1, &config));
    server.interrupt();
    wait_until("the server is not ready any more", || Ok(admin.get("/readyz").status == 503)).unwrap();
    let answer = client.events(&call("t", "c", "ls"));
    assert_eq!((answer.status, &answer.json()["action"]), (200, &json!("allow")), "{answer:?}");
}

#[test]
fn a_client_that_goes_away_frees_its_place() {
    let dev = Dev::start();
    let config = temporary("{kafka: {topics: {events: agent.shadow, shadow: agent.other}}, serve: {deadline_ms: 60000}}");
    let (_server, client, admin) = started_with_admin(&mut serve(&dev, 1, &config));
    let are_waiting =
        |count| wait_until("so many wait", || Ok(admin.get("/metrics").body.contains(&format!("\ntollgate_serve_in_flight {count}\n"))));
    let event = call("t", "c", "ls");
    let request = format!("POST /v1/events HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n\r\n{event}", event.len());
    let mut waits = TcpStream::connect(&client.address).unwrap();
    waits.write_all(request.as_bytes()).unwrap();
    are_waiting(1).unwrap();
    drop(waits);
    are_waiting(0).unwrap();
}

#[test]
fn a_server_beside_another_worker_gets_its_verdicts() {
    let dev = Dev::start();
    let (_server, client) = started(&mut serve(&dev, 1, &temporary("{}")));
    assert_eq!(client.events(&call("t", "c", "bash")).json()["code"], "oap.tool_not_allowed");
    let first = client.events(&with(&call("t", "d", "ls"), "event_id", "e"));
    let there = dev.client.events(&with(&call("t", "d", "ls"), "event_id", "e"));
    assert_eq!(first.body, there.body, "any server gives the same verdict");
}

#[test]
fn who_asks_while_a_server_starts_gets_a_verdict() {
    let dev = Dev::start();
    let config = temporary("{serve: {deadline_ms: 30000}}");
    let server = Process::start(&mut serve(&dev, 1, &config));
    let address = after(&server.line(&["HTTP server", "listen="]), "listen=").to_owned();
    let answer = Client { address }.events(&call("t", "c", "ls"));
    assert_eq!((answer.status, &answer.json()["action"]), (200, &json!("allow")), "{answer:?}");
    assert!(server.said().contains("requests are answered"));
}

#[test]
fn two_servers_on_a_partition_find_out() {
    let dev = Dev::start();
    let config = temporary("{}");
    let (_first, _) = started(&mut serve(&dev, 1, &config));
    let second = run(&mut serve(&dev, 1, &config), b"");
    assert_eq!(second.exit, Some(1), "{second:?}");
    assert!(second.stderr.contains("partition 1 of agent.replies is read by another server already"), "{second:?}");
    let missing = Process::start(&mut serve(&dev, 4_000, &config));
    let address = after(&missing.line(&["HTTP server", "listen="]), "listen=").to_owned();
    missing.line(&["no partition 4000"]);
    let refused = Client { address }.events(&call("t", "c", "ls"));
    assert_eq!((refused.status, &refused.json()["code"]), (503, &json!("reply_partition_missing")));
    assert!(refused.head.contains("retry-after: "), "{refused:?}");
}

#[test]
fn tokens_say_who_may_ask_for_whom() {
    let dev = Dev::start();
    let entry =
        |token: &str| format!("tokens: [{{name: ci, sha256: {}, tenant: acme, agents: ['build-*']}}]\n", Digest::of(token.as_bytes()));
    let tokens = temporary(&entry("old"));
    let config = temporary(&format!("{{serve: {{tokens: {:?}}}}}", tokens.path()));
    let (server, client) = started(&mut serve(&dev, 1, &config));
    let of = |token: &str, event: &str| client.post("/v1/events", &[&format!("authorization: Bearer {token}")], event);
    let event = with(&call("t", "c", "ls"), "agent_id", "build-7");
    let answer = of("old", &event).json();
    assert_eq!((&answer["action"], &answer["tenant_id"]), (&json!("allow"), &json!("acme")), "the token names the tenant");
    for (token, event, status, code) in [
        ("new", event.clone(), 401, "unauthorized"),
        ("", event.clone(), 401, "unauthorized"),
        ("old", with(&event, "tenant_id", "other"), 403, "tenant_not_allowed"),
        ("old", with(&event, "agent_id", "deploy"), 403, "agent_not_allowed"),
        ("old", call("t", "c", "ls"), 403, "agent_not_allowed"),
    ] {
        let refused = of(token, &event);
        assert_eq!((refused.status, &refused.json()["code"]), (status, &json!(code)), "{token} {event}");
        assert!(!refused.body.contains("deploy") && !refused.body.contains("other\""), "{refused:?}");
    }
    std::fs::write(tokens.path(), entry("new")).unwrap();
    wait_until("the changed file is in force", || Ok(of("new", &event).status == 200)).unwrap();
    assert_eq!(of("old", &event).status, 401);
    std::fs::write(tokens.path(), "tokens: [{name: ci, sha256: plain-text}]\n").unwrap();
    server.line(&["the changed tokens cannot be used", "tokens[0].sha256"]);
    assert_eq!(of("new", &event).status, 200);
    assert!(!server.said().contains("plain-text"), "{}", server.said());
}

#[test]
fn brokers_that_are_away_are_named_at_once() {
    let dev = Dev::start();
    let (_server, client) = started(&mut serve(&dev, 1, &temporary("{serve: {deadline_ms: 60000}}")));
    drop(dev);
    wait_until("the server knows", || Ok(client.events(&call("t", "c", "ls")).json()["code"] == "kafka_unreachable")).unwrap();
}

#[test]
fn brokers_that_were_never_there_are_named_at_once() {
    let mut command = tollgate();
    command.args(["serve", "--listen", "127.0.0.1:0", "-b", "127.0.0.1:1"]).env("TOLLGATE__ADMIN__LISTEN", "127.0.0.1:0");
    let server = Process::start(&mut command);
    let address = |words| after(&server.line(&[words, "listen="]), "listen=").to_owned();
    let (admin, client) = (Client { address: address("admin endpoint") }, Client { address: address("HTTP server") });
    wait_until("the server knows", || Ok(client.events(&call("t", "c", "ls")).json()["code"] == "kafka_unreachable")).unwrap();
    let refused = client.events(&call("t", "c", "ls"));
    assert_eq!((refused.status, &refused.json()["allows_execution"]), (503, &json!(false)), "{refused:?}");
    assert!(!refused.body.contains("127.0.0.1"), "a model may read it: {refused:?}");
    let ready = admin.get("/readyz");
    assert!(ready.status == 503 && ready.body.contains("the brokers at 127.0.0.1:1 do not answer"), "{ready:?}");
}

#[test]
fn connections_are_bounded_by_the_files_that_a_process_may_open() {
    let mut command = Command::new("sh");
    let serve = "ulimit -n 300; exec \"$0\" serve --listen 127.0.0.1:0 -b 127.0.0.1:1";
    let server = Process::start(command.args(["-c", serve]).arg(tollgate().get_program()).env("TOLLGATE__ADMIN__LISTEN", "null"));
    server.line(&["serve.connections_max: found 20000", "this process may open 300 files", "there will be 44 connections"]);
}

#[test]
fn others_are_not_listened_to_without_tokens() {
    let refused = run(tollgate().args(["serve", "--listen", "0.0.0.0:0"]), b"");
    assert_eq!(refused.exit, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("serve.tokens"), "{refused:?}");
    let config = temporary("{serve: {listen: '0.0.0.0:7878'}}");
    let refused = run(tollgate().args(["config", "check", "--config"]).arg(config.path()), b"");
    assert!(refused.stderr.contains("serve.listen: found an address that others can reach, and no serve.tokens"), "{refused:?}");
}
