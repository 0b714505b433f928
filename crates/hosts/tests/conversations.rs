//! Wires with the gate behind them: what a repeat and a retry count as.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tollgate_core::Gate;
use tollgate_core::decide::policy::{Policy, PolicySettings};
use tollgate_hosts::{Verdict, Wire, wire};

use crate::support::{all, read};

/// A host that asks a gate.
struct Conversation {
    wire: &'static dyn Wire,
    gate: Gate,
}

impl Conversation {
    /// Begins with the better loop controller, as `tollgate dev` has it.
    fn new(host: &str) -> Self {
        let settings = PolicySettings::from_value(&json!({"tool_loop_guardrails": {"preset": "tollgate", "once_tools": ["pay"]}})).unwrap();
        Self { wire: all().into_iter().find(|wire| wire.name() == host).unwrap(), gate: Gate::new(Policy::new(&settings)) }
    }

    fn ask(&mut self, body: &Value) -> Value {
        let question = read(self.wire, "", body.to_string().as_bytes()).unwrap();
        let mut verdicts: Vec<Verdict> = Vec::new();
        for event in &question.events {
            let verdict = self.gate.decide_keyed(None, &serde_json::to_vec(event).unwrap());
            verdicts.extend(serde_json::from_slice::<Verdict>(verdict));
        }
        (question.answer)(Ok(&verdicts)).body.unwrap()
    }
}

fn gemini(event: &str, second: u32, more: &Value) -> Value {
    let mut body = json!({"session_id": "s", "hook_event_name": event, "timestamp": format!("2026-11-28T02:00:{second:02}.000Z"),
                          "tool_name": "run_shell_command", "tool_input": {"command": "npm test"}});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

/// A model may write two equal calls in one response.
#[test]
fn equal_calls_without_ids_are_calls_of_their_own() {
    let mut host = Conversation::new("gemini-cli");
    let pay = json!({"tool_name": "pay", "tool_input": {"amount": 5}, "tool_response": {"llmContent": "paid"}});
    let first = host.ask(&gemini("BeforeTool", 1, &pay));
    let again = [host.ask(&gemini("BeforeTool", 1, &pay)), host.ask(&gemini("BeforeTool", 2, &pay))];
    host.ask(&gemini("AfterTool", 3, &pay));
    let later = host.ask(&gemini("BeforeTool", 4, &pay));
    assert_eq!((&first, &again[0]), (&json!({}), &json!({})), "a request that is sent again gets the same answer");
    assert_eq!((&again[1]["decision"], &later["decision"]), (&json!("deny"), &json!("deny")));
}

/// Gemini CLI names no calls. Each call counts all the same.
#[test]
fn calls_without_ids_are_counted_by_their_time() {
    let mut host = Conversation::new("gemini-cli");
    let text = "cat: deploy.yaml: No such file or directory";
    let failure = json!({"tool_response": {"llmContent": text, "error": {"message": text}}});
    let mut answers = Vec::new();
    for second in [1, 3, 5] {
        answers.push(host.ask(&gemini("BeforeTool", second, &json!({}))));
        if answers.last().unwrap()["decision"] != "deny" {
            host.ask(&gemini("AfterTool", second + 1, &failure));
        }
    }
    assert_eq!((&answers[0], &answers[1]), (&json!({}), &json!({})));
    assert_eq!(answers[2]["decision"], "deny", "{answers:?}");
}

/// A tool for files sees a relative path from the host's folder, which every host sends.
#[test]
fn relative_paths_are_seen_from_the_hosts_folder() {
    let arguments = |host: &str, event: &str, tool: &str, input: &Value, folder: Option<&str>| {
        let body = json!({"session_id": "s", "sessionId": "s", "conversation_id": "s", "hook_event_name": event, "hookEventName": event,
                          "timestamp": "2026-11-28T02:00:00Z", "tool_use_id": "u", "tool_name": tool, "tool_input": input, "cwd": folder});
        let question = read(wire(host).unwrap(), "", body.to_string().as_bytes()).unwrap();
        serde_json::from_str::<Value>(question.events[0]["arguments"].as_str().unwrap()).unwrap()
    };
    let path = json!({"path": "src/a"});
    for (host, event, tools) in [
        ("claude-code", "PreToolUse", &["Read", "Write"][..]),
        ("codex", "PreToolUse", &["list_dir", "grep_files"]),
        ("copilot", "PreToolUse", &["view", "create", "Grep"]),
        ("cursor", "preToolUse", &["Read", "Delete", "edit_file"]),
        ("gemini-cli", "BeforeTool", &["read_file", "write_file", "replace", "glob"]),
        ("vscode", "PreToolUse", &["create_file", "editFiles", "list_dir"]),
    ] {
        for tool in tools {
            let seen = json!({"path": "src/a", "cwd": "/srv/app"});
            assert_eq!(arguments(host, event, tool, &path, Some("/srv/app")), seen, "{host}: {tool}");
            assert_eq!(arguments(host, event, tool, &path, None), path, "{host}: {tool}");
            let same = json!({"path": "src/a", "cwd": "/srv/app"});
            assert_eq!(arguments(host, event, tool, &same, Some("/srv/app")), same, "{host}: {tool}");
        }
        assert_eq!(arguments(host, event, "mcp__files__read", &path, Some("/srv/app")), path, "{host}");
    }
}

/// The host looks at no argument that its tool does not have, so the model may not choose the folder by such an argument.
#[test]
fn a_model_chooses_no_working_folder() {
    let ask = |host: &str, event: &str, tool: &str, input: &Value| {
        let body = json!({"session_id": "s", "sessionId": "s", "conversation_id": "s", "hook_event_name": event, "hookEventName": event,
                          "timestamp": "2026-11-28T02:00:00Z", "tool_use_id": "u", "tool_name": tool, "tool_input": input, "cwd": "/srv/app"});
        read(wire(host).unwrap(), "", body.to_string().as_bytes())
            .map(|question| question.events.len())
            .map_err(|answer| answer.to_string())
    };
    for (host, event, tool, input) in [
        ("claude-code", "PreToolUse", "Bash", json!({"command": "cat ../x", "cwd": "/srv/app/docs/sub"})),
        ("claude-code", "PreToolUse", "Read", json!({"file_path": "notes.txt", "CWD": "/srv/app/docs"})),
        ("claude-code", "PreToolUse", "Write", json!({"file_path": "x", "content": "a", "options": {"work_dir": "/etc"}})),
        ("gemini-cli", "BeforeTool", "run_shell_command", json!({"command": "cat ../x", "cwd": "/etc"})),
        ("cursor", "preToolUse", "Shell", json!({"command": "ls", "workdir": "/etc"})),
    ] {
        let answer = ask(host, event, tool, &input).unwrap_err();
        assert!(answer.contains("leave the argument out"), "{host}: {tool}: {answer}");
    }
    for (host, event, tool, input) in [
        ("codex", "PreToolUse", "shell_command", json!({"command": "ls", "workdir": "/srv/app/docs"})),
        ("gemini-cli", "BeforeTool", "run_shell_command", json!({"command": "ls", "dir_path": "docs"})),
        ("cursor", "preToolUse", "Shell", json!({"command": "ls", "working_directory": "/srv/app/docs"})),
        ("claude-code", "PreToolUse", "Bash", json!({"command": "ls", "cwd": "/srv/app"})),
        ("claude-code", "PreToolUse", "mcp__files__read", json!({"path": "a", "cwd": "/etc"})),
    ] {
        assert_eq!(ask(host, event, tool, &input), Ok(1), "{host}: {tool}");
    }
}

/// The same request again, as after a broken connection, changes nothing.
#[test]
fn a_request_that_is_sent_again_counts_once() {
    let mut host = Conversation::new("gemini-cli");
    let failure = json!({"tool_response": {"llmContent": "Exit Code: 1", "error": {"message": "exit 1"}}});
    for _ in 0..6 {
        assert_eq!(host.ask(&gemini("BeforeTool", 1, &json!({}))), json!({}));
    }
    for _ in 0..6 {
        host.ask(&gemini("AfterTool", 2, &failure));
    }
    assert_eq!(host.ask(&gemini("BeforeTool", 3, &json!({}))), json!({}));
}

/// A command that fails is no error to Gemini CLI, and its process is named in the text.
#[test]
fn the_exit_code_of_a_command_is_found_in_the_text() {
    let mut host = Conversation::new("gemini-cli");
    let mut answers = Vec::new();
    for round in 0..3 {
        answers.push(host.ask(&gemini("BeforeTool", 10 * round, &json!({}))));
        if answers.last().unwrap()["decision"] != "deny" {
            let text =
                format!("<untrusted_context>\nOutput: (empty)\nExit Code: 2\nProcess Group PGID: {}\n</untrusted_context>", 1192 + round);
            host.ask(&gemini("AfterTool", 10 * round + 5, &json!({"tool_response": {"llmContent": text, "returnDisplay": ""}})));
        }
    }
    assert_eq!((&answers[0], &answers[1]), (&json!({}), &json!({})));
    assert_eq!(answers[2]["decision"], "deny", "{answers:?}");
}

fn claude(event: &str, call: &str, more: &Value) -> Value {
    let mut body = json!({"session_id": "s", "prompt_id": "p", "hook_event_name": event, "tool_name": "Bash",
                          "tool_input": {"command": "npm test"}, "tool_use_id": call});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

#[test]
fn claude_code_is_warned_after_results_and_refused_before_calls() {
    let mut host = Conversation::new("claude-code");
    let failure = json!({"error": "Exit code 1\n3 tests failed"});
    assert_eq!(host.ask(&claude("PreToolUse", "a", &json!({}))), json!({}));
    assert_eq!(host.ask(&claude("PostToolUseFailure", "a", &failure)), json!({}));
    assert_eq!(host.ask(&claude("PreToolUse", "b", &json!({}))), json!({}));
    let warned = host.ask(&claude("PostToolUseFailure", "b", &failure));
    assert!(warned["hookSpecificOutput"]["additionalContext"].as_str().unwrap().contains("2 times"), "{warned}");
    let refused = host.ask(&claude("PreToolUse", "c", &json!({})));
    assert_eq!(refused["hookSpecificOutput"]["permissionDecision"], "deny", "{refused}");
    // A subagent is a thread of its own, and a new prompt is a new turn.
    assert_eq!(host.ask(&claude("PreToolUse", "d", &json!({"agent_id": "x"}))), json!({}));
    host.ask(&json!({"session_id": "s", "prompt_id": "q", "hook_event_name": "UserPromptSubmit", "prompt": "again"}));
    assert_eq!(host.ask(&claude("PreToolUse", "e", &json!({"prompt_id": "q"}))), json!({}));
}

/// Agents write reminders behind results, and servers of models number the calls of each response anew.
#[test]
fn the_loops_of_litellms_agents_are_seen() {
    let mut host = Conversation::new("litellm");
    let calls = json!([{"id": "call_0", "type": "function", "function": {"name": "bash", "arguments": "{\"command\": \"make\"}"}}]);
    let (mut messages, mut answers) = (vec![json!({"role": "user", "content": "Build it."})], Vec::new());
    for round in 0..4 {
        let (trace, id) = ("trace-7", format!("lc-{round}"));
        let asked =
            host.ask(&json!({"input_type": "request", "litellm_trace_id": trace, "litellm_call_id": id, "structured_messages": messages}));
        assert_eq!(asked["action"], "NONE", "{round}");
        answers.push(host.ask(&json!({"input_type": "response", "litellm_trace_id": trace, "litellm_call_id": id, "tool_calls": calls})));
        messages.push(json!({"role": "assistant", "tool_calls": calls}));
        messages.push(json!({"role": "tool", "tool_call_id": "call_0", "content": "error: make: *** No rule to make target"}));
        messages.push(json!({"role": "user", "content": "<system-reminder>The list of tasks is empty.</system-reminder>"}));
    }
    let actions: Vec<_> = answers.iter().map(|answer| &answer["action"]).collect();
    assert_eq!(actions, ["NONE", "NONE", "BLOCKED", "BLOCKED"], "{answers:?}");
}

/// Another hook may send the agent on where the host ends a turn.
#[test]
fn the_end_of_a_turn_forgets_no_loop() {
    let mut host = Conversation::new("claude-code");
    let mut answers = Vec::new();
    for call in ["a", "b", "c"] {
        answers.push(host.ask(&claude("PreToolUse", call, &json!({}))));
        host.ask(&claude("PostToolUseFailure", call, &json!({"error": "Exit code 1\n3 tests failed"})));
        assert_eq!(host.ask(&claude("Stop", call, &json!({"stop_hook_active": true}))), json!({}));
    }
    assert_eq!(answers[2]["hookSpecificOutput"]["permissionDecision"], "deny", "{answers:?}");
}

/// The calls of Codex's subagents come under the session of their parent, each with a turn of its own.
#[test]
fn the_turns_of_codex_subagents_hide_no_loop() {
    let mut host = Conversation::new("codex");
    let body = |event: &str, turn: &str, call: String| {
        json!({"session_id": "s", "turn_id": turn, "hook_event_name": event, "tool_name": "Bash", "tool_input": {"command": "x"},
               "tool_use_id": call, "tool_response": "Exit code: 1\nOutput:\nerror: x"})
    };
    let mut answers = Vec::new();
    for round in 0..4 {
        for turn in ["main", "child"] {
            answers.push(host.ask(&body("PreToolUse", turn, format!("{turn}{round}"))));
            host.ask(&body("PostToolUse", turn, format!("{turn}{round}")));
        }
    }
    let denied = answers.iter().filter(|answer| answer["hookSpecificOutput"]["permissionDecision"] == "deny").count();
    assert!(denied > 0, "{answers:?}");
}

/// Servers of models number calls anew in each response: the second result under an id is another event, and its repeat is no further one.
#[test]
fn results_under_one_id_have_ids_of_events_that_follow_from_the_content() {
    let wire = wire("claude-code").unwrap();
    let id = |event: &str, more: &Value| {
        let body = claude(event, "call_0", more).to_string();
        read(wire, "", body.as_bytes()).unwrap().events[0]["event_id"].to_string()
    };
    let bodies = [
        ("PostToolUse", json!({"tool_response": "a"})),
        ("PostToolUse", json!({"tool_response": "b"})),
        ("PostToolUse", json!({"tool_response": "a", "tool_input": {"command": "ls"}})),
        ("PostToolUse", json!({"tool_response": "a", "tool_name": "Read"})),
        ("PostToolUseFailure", json!({"error": "a"})),
        ("PreToolUse", json!({})),
    ];
    let ids = || bodies.iter().map(|(event, more)| id(event, more)).collect::<BTreeSet<String>>();
    assert_eq!(ids().len(), bodies.len(), "{:?}", ids());
    assert_eq!(ids(), ids());
}
