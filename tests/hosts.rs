//! Tests `tollgate hook` as hosts start it, against servers that answer, fail, or never answer, and the settings that it prints.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, channel};

use serde_json::{Value, json};
use tollgate_core::Gate;
use tollgate_core::decide::policy::{Policy, PolicySettings};
use tollgate_hosts::{Request, Verdict, wire, wires};

use crate::support::{Ran, run, temporary, tollgate};

const PAGE: &str = include_str!("../docs/hosts.md");

/// What a server does with a request.
#[derive(Debug, Clone)]
enum Conduct {
    /// Answers with this status and body, as Tollgate's server.
    Answers(u16, String),
    /// Answers with this body, as any other web server does.
    AnswersElse(String),
    /// Closes the connection without an answer.
    Closes,
    /// Sends the beginning of an answer and closes.
    BreaksOff,
    /// Keeps the connection open.
    Waits,
}

/// A request, as the server got it.
#[derive(Debug)]
struct ReceivedRequest {
    head: String,
    body: Vec<u8>,
}

/// Starts a server for one connection after another. It ends with the process.
fn serve(conduct: impl Fn(&ReceivedRequest) -> Conduct + Send + 'static) -> (String, Receiver<ReceivedRequest>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (sender, requests) = channel();
    std::thread::spawn(move || {
        let mut open = Vec::new();
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let asked = receive(&mut stream);
            let written = match conduct(&asked) {
                Conduct::Answers(status, body) => write!(
                    stream,
                    "HTTP/1.1 {status} x\r\ncontent-type: application/json\r\nx-tollgate: gate\r\ncontent-length: {}\r\nlocation: /\r\n\r\n{body}",
                    body.len()
                ),
                Conduct::AnswersElse(body) => write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len()),
                Conduct::BreaksOff => write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{{\"permission\""),
                Conduct::Closes => Ok(()),
                Conduct::Waits => {
                    open.push(stream);
                    sender.send(asked).unwrap();
                    continue;
                }
            };
            written.unwrap();
            // The test may have seen enough.
            let _seen = sender.send(asked);
        }
    });
    (url, requests)
}

fn receive(stream: &mut TcpStream) -> ReceivedRequest {
    let mut bytes = Vec::new();
    let mut part = [0; 4096];
    loop {
        let count = stream.read(&mut part).unwrap();
        bytes.extend_from_slice(&part[..count]);
        let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else { continue };
        let head = String::from_utf8(bytes[..end].to_vec()).unwrap().to_lowercase();
        let length: usize = head.split("content-length: ").nth(1).unwrap().lines().next().unwrap().parse().unwrap();
        if count == 0 || bytes.len() >= end + 4 + length {
            return ReceivedRequest { head, body: bytes.split_off(end + 4) };
        }
    }
}

fn hook(arguments: &[&str], stdin: &str) -> Ran {
    run(tollgate().arg("hook").args(arguments), stdin.as_bytes())
}

/// Checks that a hook has failed as every host understands it.
fn assert_blocks(ran: &Ran, cause: &str) {
    assert_eq!((ran.exit, ran.stdout.as_str()), (Some(2), ""), "{}", ran.stderr);
    assert!(ran.stderr.contains(cause), "{cause}: {}", ran.stderr);
    assert!(!ran.stderr.contains("rm -rf"), "{}", ran.stderr);
}

const REQUEST: &str = r#"{"tool_input":{"command":"rm -rf /"}}"#;

#[test]
fn the_request_reaches_the_server_and_the_answer_the_host() {
    let token = temporary("secret-token\n");
    for wire in wires() {
        let answer = json!({"from": wire.name()}).to_string();
        let (url, requests) = serve({
            let answer = answer.clone();
            move |_| Conduct::Answers(200, answer.clone())
        });
        let file = token.path().to_str().unwrap();
        let ran = hook(&["--host", wire.name(), "--url", &format!("{url}/"), "--token-file", file], REQUEST);
        assert_eq!((ran.exit, ran.stdout, ran.stderr), (Some(0), answer + "\n", String::new()));
        let asked = requests.recv().unwrap();
        assert!(asked.head.starts_with(&format!("post /v1/hooks/{} http/1.1\r\n", wire.name())), "{}", asked.head);
        assert!(asked.head.contains("\r\ncontent-type: application/json\r\n"), "{}", asked.head);
        assert!(asked.head.contains("\r\nauthorization: bearer secret-token"), "{}", asked.head);
        assert_eq!(asked.body, REQUEST.as_bytes());
    }
}

#[test]
fn the_event_of_a_host_that_does_not_name_it_is_in_the_path() {
    let (url, requests) = serve(|_| Conduct::Answers(200, "{}".to_owned()));
    assert_eq!(hook(&["--host", "copilot", "--event", "preToolUse", "--url", &url], REQUEST).exit, Some(0));
    assert!(requests.recv().unwrap().head.starts_with("post /v1/hooks/copilot/pretooluse "));
}

/// Hosts take the end by a signal, or any other exit code, for no objection.
#[test]
fn a_signal_blocks() {
    let (url, requests) = serve(|_| Conduct::Waits);
    for name in ["INT", "TERM", "HUP"] {
        let mut command = tollgate();
        command.args(["hook", "--host", "codex", "--timeout", "600000", "--url", &url]).stdin(Stdio::piped()).stderr(Stdio::piped());
        let mut hook = command.spawn().unwrap();
        hook.stdin.take().unwrap().write_all(REQUEST.as_bytes()).unwrap();
        requests.recv().unwrap();
        assert!(Command::new("kill").args(["-s", name, &hook.id().to_string()]).status().unwrap().success());
        let ended = hook.wait_with_output().unwrap();
        assert_eq!(ended.status.code(), Some(2), "{name}: {ended:?}");
    }
}

/// Whatever goes wrong, every host gets the one exit code that blocks, and nothing on stdout that could be read as leave.
#[test]
fn every_failure_of_the_server_blocks() {
    let answers = |status: u16, body: &str| Conduct::Answers(status, body.to_owned());
    let failures = [
        (answers(500, r#"{"permission":"allow"}"#), "status is 500"),
        (answers(503, "{}"), "status is 503"),
        (answers(401, "{}"), "--token-file"),
        (answers(403, "{}"), "--token-file"),
        (answers(404, "{}"), "is this a server of Tollgate?"),
        (answers(302, "{}"), "status is 302"),
        (answers(204, ""), "status is 204"),
        (answers(200, ""), "no JSON object"),
        (answers(200, "<html>"), "no JSON object"),
        (answers(200, "[{}]"), "no JSON object"),
        (answers(200, r#"{"permission":"allow"}{}"#), "no JSON object"),
        (answers(200, &format!("{{\"a\":\"{}\"}}", "x".repeat(100_000))), ""),
        (Conduct::AnswersElse("{}".to_owned()), "the answer is of another server; is this a server of Tollgate?"),
        (Conduct::AnswersElse(r#"{"permission":"allow"}"#.to_owned()), "the answer is of another server"),
        (Conduct::Closes, ""),
        (Conduct::BreaksOff, ""),
    ];
    for (conduct, cause) in failures {
        let (url, _requests) = serve({
            let conduct = conduct.clone();
            move |_| conduct.clone()
        });
        for wire in wires() {
            let ran = hook(&["--host", wire.name(), "--url", &url, "--timeout", "60000"], REQUEST);
            assert_blocks(&ran, &format!("tollgate hook: the call is blocked, since there is no verdict: {url}: "));
            assert_blocks(&ran, cause);
        }
    }
}

#[test]
fn a_server_that_never_answers_or_is_not_there_blocks() {
    let (url, requests) = serve(|_| Conduct::Waits);
    let ran = hook(&["--host", "codex", "--url", &url, "--timeout", "500"], REQUEST);
    assert_blocks(&ran, "no answer within the deadline of 500 ms (--timeout); the server may hang");
    assert_eq!(requests.recv().unwrap().body, REQUEST.as_bytes());
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    assert_blocks(&hook(&["--host", "codex", "--url", &format!("http://{closed}")], REQUEST), "or name another server with --url");
    assert_blocks(&hook(&["--host", "codex", "--url", &format!("https://{closed}")], REQUEST), "refused");
}

/// A host that never closes the hook's stdin is not waited for longer than a server.
#[test]
fn a_host_that_writes_nothing_is_not_waited_for() {
    let mut command = tollgate();
    command.args(["hook", "--host", "gemini-cli", "--timeout", "300"]);
    command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    let stdin = child.stdin.take();
    let output = child.wait_with_output().unwrap();
    drop(stdin);
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(2), &[][..]));
    assert!(String::from_utf8(output.stderr).unwrap().contains("300 ms have passed; see --timeout"));
}

#[test]
fn wrong_use_blocks_too() {
    let empty = temporary("\n");
    let file = empty.path().to_str().unwrap();
    let (url, _requests) = serve(|_| Conduct::Answers(200, "{}".to_owned()));
    let cases: [(&[&str], &str, &str); 13] = [
        (&["--host", "codex", "--url", &url], " \n", "stdin: is empty"),
        (&["--host", "cursor", "--url", &url], "rm -rf", "stdin: found no JSON"),
        (&["--host", "codexx"], REQUEST, "claude-code, codex, copilot, cursor, gemini-cli, vscode"),
        (&[], REQUEST, "--host"),
        (&["--host", "codex", "--url", "gate:7878"], REQUEST, "no http or https URL"),
        (&["--host", "codex", "--url", "http://user:password@gate"], REQUEST, "credentials"),
        (&["--host", "codex", "--timeout", "0"], REQUEST, "--timeout"),
        (&["--host", "codex", "--token-file", "/none/such"], REQUEST, "--token-file /none/such: cannot be read"),
        (&["--host", "codex", "--token-file", file], REQUEST, "holds no token"),
        (&["--host", "codex", "--url", "http://gate.example", "--token-file", file], REQUEST, "plain http to another machine"),
        (&["--host", "codex", "--url", &url, "--ca-file", file], REQUEST, "which have no effect there"),
        (&["--host", "codex", "--url", "https://127.0.0.1:9", "--ca-file", file], REQUEST, "--ca-file: found no certificates"),
        (&["--host", "codex", "--certificate-file", file], REQUEST, "--key-file"),
    ];
    for (arguments, stdin, cause) in cases {
        assert_blocks(&hook(arguments, stdin), cause);
    }
    let large = format!("{{\"a\":\"{}\"}}", "x".repeat(8 * 1024 * 1024));
    assert_blocks(&hook(&["--host", "codex", "--url", &url], &large), "8388608 bytes");
}

/// Exit code 2 at the end of a turn would send the agent on.
#[test]
fn a_failure_at_the_end_of_a_turn_sends_no_agent_on() {
    let (url, _requests) = serve(|_| Conduct::Closes);
    let request = |event: &str| {
        json!({"session_id": "s", "sessionId": "s", "conversation_id": "s", "hook_event_name": event, "hookEventName": event,
               "timestamp": "2026-11-28T02:00:00Z", "prompt_id": "p", "generation_id": "g", "turn_id": "t", "agent_id": "a", "prompt": "x",
               "tool_name": "Bash", "tool_input": {}, "tool_use_id": "u"})
        .to_string()
    };
    for (host, end, others) in [
        ("claude-code", "Stop", &["UserPromptSubmit", "PreToolUse"][..]),
        ("claude-code", "SubagentStop", &["SubagentStart"]),
        ("codex", "Stop", &["UserPromptSubmit", "PreToolUse"]),
        ("cursor", "stop", &["beforeSubmitPrompt", "preToolUse"]),
        ("gemini-cli", "AfterAgent", &["BeforeAgent", "BeforeTool"]),
        ("vscode", "Stop", &["UserPromptSubmit", "PreToolUse"]),
    ] {
        let ended = hook(&["--host", host, "--url", &url], &request(end));
        assert_eq!((ended.exit, ended.stdout.as_str()), (Some(1), ""), "{host}: {}", ended.stderr);
        assert!(ended.stderr.contains("decides nothing here"), "{host}: {}", ended.stderr);
        for event in others {
            let what = if event.contains("Prompt") || matches!(*event, "BeforeAgent" | "SubagentStart") {
                "the prompt is blocked"
            } else {
                "the call is blocked"
            };
            assert_blocks(&hook(&["--host", host, "--url", &url], &request(event)), what);
        }
    }
}

/// The whole way without Kafka: a host's stdin, the wire, a gate, the host's answer.
#[test]
fn a_denial_of_the_gate_reaches_every_host() {
    let user = json!({"guardrails": {"enabled": true, "provider": {"use": "allowlist", "config": {"denied_tools": ["Bash"]}}}});
    for host in ["claude-code", "codex", "copilot"] {
        let mut gate = Gate::new(Policy::new(&PolicySettings::from_value(&user).unwrap()));
        let (url, _requests) = serve_wire(host, move |event| serde_json::from_slice(gate.decide_keyed(None, event)).unwrap());
        let request = |tool: &str| {
            json!({"session_id": "s", "hook_event_name": "PreToolUse", "tool_use_id": tool, "timestamp": "2026-11-28T02:00:00Z",
                   "tool_name": tool, "tool_input": {}})
            .to_string()
        };
        let ran = hook(&["--host", host, "--url", &url], &request("Bash"));
        let answer = &ran.json_lines()[0];
        let denial = answer["permissionDecision"].as_str().or(answer["hookSpecificOutput"]["permissionDecision"].as_str());
        assert_eq!((ran.exit, denial), (Some(0), Some("deny")), "{host}: {}", ran.stderr);
        assert_eq!(hook(&["--host", host, "--url", &url], &request("Read")).stdout, "{}\n", "{host}");
    }
}

/// Serves one wire, with verdicts on its events.
fn serve_wire(host: &'static str, decide: impl FnMut(&[u8]) -> Verdict + Send + 'static) -> (String, Receiver<ReceivedRequest>) {
    let decide = std::sync::Mutex::new(decide);
    serve(move |asked| {
        let answer = match wire(host).unwrap().read(&Request { path: "", headers: &[], body: &asked.body }) {
            Err(refused) => refused,
            Ok(question) => {
                let mut decide = decide.lock().unwrap();
                let verdicts: Vec<_> = question.events.iter().map(|event| decide(&serde_json::to_vec(event).unwrap())).collect();
                (question.answer)(Ok(&verdicts))
            }
        };
        Conduct::Answers(answer.status, answer.body.unwrap().to_string())
    })
}

/// Returns the settings that are printed, after checking that they are whole: every entry that can fail closed says so.
fn settings(host: &str, more: &[&str]) -> Ran {
    let ran = run(tollgate().args(["hook", "--print-settings", host]).args(more), b"");
    assert_eq!(ran.exit, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.contains(&format!("Where {host} goes on without a verdict: ")), "{}", ran.stderr);
    ran
}

#[test]
fn the_page_shows_the_settings_that_are_printed() {
    for wire in wires() {
        let ran = settings(wire.name(), &[]);
        let language = if wire.name() == "codex" { "toml" } else { "json" };
        let block = format!("```{language}\n{}```", ran.stdout);
        assert!(PAGE.contains(&block), "docs/hosts.md shows other settings than `tollgate hook --print-settings {}`", wire.name());
        let (_, open) = ran.stderr.trim().split_once("goes on without a verdict: ").unwrap();
        assert!(PAGE.replace('\n', " ").contains(open), "docs/hosts.md says it otherwise: {open}");
    }
}

/// Every event that is registered is one that the wire reads, and settings fail closed where the host can.
#[test]
fn settings_register_what_the_wire_knows_and_fail_closed() {
    for wire in wires().iter().filter(|wire| wire.name() != "codex") {
        let text = settings(wire.name(), &[]).stdout;
        let settings: Value = serde_json::from_str(&text).unwrap();
        for (event, groups) in settings["hooks"].as_object().unwrap() {
            let body = json!({"hook_event_name": event, "hookEventName": event}).to_string();
            let refused = wire.read(&Request { path: "", headers: &[], body: body.as_bytes() }).err();
            let refused = refused.map(|answer| answer.body.unwrap().to_string()).unwrap_or_default();
            assert!(!refused.contains("does not know"), "{}: {event}: {refused}", wire.name());
            let word = match wire.name() {
                "claude-code" if !event.ends_with("top") => r#""onFailure":"block""#,
                "cursor" if event != "stop" => r#""failClosed":true"#,
                _ => "",
            };
            assert!(groups.to_string().contains(word), "{}: {event}: {groups}", wire.name());
        }
    }
}

#[test]
fn settings_name_the_server_and_the_token() {
    let more = ["--url", "https://gate.example:8443", "--token-file", "/etc/tollgate/token"];
    for wire in wires() {
        let printed = settings(wire.name(), &more).stdout;
        let command = format!("tollgate hook --host {} --url https://gate.example:8443 --token-file /etc/tollgate/token\"", wire.name());
        assert!(printed.contains(&command), "{}: {printed}", wire.name());
    }
    assert!(settings("claude-code", &more[..2]).stdout.contains("\"https://gate.example:8443/v1/hooks/claude-code\""));
    // The hooks start in another folder, and Claude Code asks no private address by itself.
    let own = std::path::absolute("tokf").unwrap();
    assert!(settings("codex", &["--token-file", "tokf"]).stdout.contains(&format!("--token-file {}\"", own.display())));
    assert!(settings("codex", &["--token-file", "~/tokf"]).stdout.contains("--token-file ~/tokf\""));
    assert!(settings("claude-code", &["--url", "http://10.0.0.5:7878"]).stdout.contains("--url http://10.0.0.5:7878\""));
    let ran = run(tollgate().args(["hook", "--print-settings", "codex", "--token-file", "/tmp/a b"]), b"");
    assert_eq!((ran.exit, ran.stdout.as_str()), (Some(2), ""), "{}", ran.stderr);
}
