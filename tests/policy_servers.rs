//! Tests what users read of policy servers: the policy in docs/policy-servers.md, and what an answer that is no decision looks like.

use std::time::Duration;

use serde_json::{Value, json};
use tollgate_testkit::PolicyServer;

use crate::support::{Ran, run, temporary, tollgate};

const PAGE: &str = include_str!("../docs/policy-servers.md");

/// Decides as an OPA with the policy of the page does.
fn decide(input: &Value) -> (Duration, Value) {
    let (_, behind) = PAGE.split_once("```rego\n").unwrap();
    let (policy, _) = behind.split_once("```").unwrap();
    let mut engine = regorus::Engine::new();
    engine.add_policy("agent.rego".to_owned(), policy.to_owned()).unwrap();
    engine.set_input_json(&input.to_string()).unwrap();
    let result = engine.eval_rule("data.agent.decision".to_owned()).unwrap();
    (Duration::ZERO, serde_json::from_str(&result.to_json_str().unwrap()).unwrap())
}

/// Evaluates calls, each an id with its role and its environment, under a policy server.
fn eval(url: &str, calls: &[(&str, &str, &str)]) -> Ran {
    let config = json!({"guardrails": {"enabled": true, "provider": {"use": "http", "config": {"url": url, "dialect": "opa", "timeout_ms": 60_000}}}});
    let file = temporary(&config.to_string());
    let event = |(id, role, environment): &(&str, &str, &str)| {
        let input = json!({"environment": environment});
        json!({"type": "tool_call", "thread_id": id, "event_id": id, "tool_call_id": id, "tool_name": "deploy", "user_role": role, "tool_input": input})
    };
    let events: Vec<_> = calls.iter().map(|call| event(call).to_string()).collect();
    run(tollgate().arg("-c").arg(file.path()).arg("eval"), events.join("\n").as_bytes())
}

fn codes(ran: &Ran) -> Vec<String> {
    ran.json_lines().iter().map(|verdict| verdict["code"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn the_policy_of_the_page_decides_as_it_says() {
    let server = PolicyServer::start(decide);
    let calls = [("a", "operator", "production"), ("b", "developer", "production"), ("c", "developer", "staging")];
    let ran = eval(&server.url(), &calls);
    assert_eq!((codes(&ran), ran.stderr.as_str()), (vec!["allow".into(), "acme.production".into(), "allow".into()], ""));
}

/// Whoever tries a policy server with `eval` reads why it gives no decision, once for each reason; the agent is not sent elsewhere.
#[test]
fn an_answer_that_is_no_decision_is_told() {
    let undefined = PolicyServer::start(|_| (Duration::ZERO, Value::Null));
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let cases = [(undefined.url(), "malformed answer: the policy has no result"), (format!("http://{closed}"), "the connection failed: ")];
    for (url, cause) in cases {
        let ran = eval(&url, &[("a", "operator", "staging"), ("b", "operator", "staging")]);
        assert_eq!(codes(&ran), ["oap.evaluator_error"; 2], "{cause}");
        let told = format!("tollgate: the guardrail provider \"http\" gave no decision: {cause}");
        assert_eq!(ran.stderr.lines().filter(|line| line.starts_with(&told)).count(), 1, "{}", ran.stderr);
        let result = ran.json_lines()[0]["synthetic_result"].as_str().unwrap().to_owned();
        assert!(result.contains("unavailable") && !result.contains("alternative"), "{result}");
    }
}
