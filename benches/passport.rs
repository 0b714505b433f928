//! What deciding by lists and passports costs, and that it does not grow with them: nanoseconds per call with 10, 1,000 and 10,000
//! entries of every kind, timed in turn. `cargo bench --no-default-features --bench passport`
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "a benchmark fails by panicking")]

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use serde_json::{Value, json};
use tollgate::decode::{Attribution, ToolInput};
use tollgate::evaluate::guardrail::{Allowlist, GuardrailProvider, GuardrailRequest, OapPassport, Step};
use tollgate::json::{DEPTH_MAX, Parser};
use tollgate::passport::{Passport, Terms};

const ROUNDS: usize = 25;
const CALLS: usize = 5_000;

const SIZES: [usize; 3] = [10, 1_000, 10_000];

fn main() {
    let started = Instant::now();
    let (passports, lists) = (SIZES.map(provider), SIZES.map(allowlist));
    println!("reading the passports took {:?}", started.elapsed());
    println!("{:<34} {:>10} {:>10} {:>10} {:>8} {:>8}", "call", "10 ns", "1,000 ns", "10,000 ns", "ratio", "ratio");
    for (name, tool, input) in [
        ("command, allowed", "bash", json!({"command": "tool-7 --check && tool-3 build"})),
        ("command, denied", "bash", json!({"command": "tool-7 --check; other"})),
        ("file in a directory", "read_file", json!({"path": "/work/project-7/src/main.rs"})),
        ("file by a glob", "read_file", json!({"path": "/data/set-3/2026/out-3.csv"})),
        ("file, denied", "read_file", json!({"path": "/somewhere/else/entirely/a.txt"})),
        ("domain", "web_fetch", json!({"url": "https://docs.host-7.example.com/page?x=1"})),
        ("domain, denied", "web_fetch", json!({"url": "https://docs.host-7.example.org/page?x=1"})),
        ("MCP tool by a pattern", "mcp__server-3__get_7_details", json!({})),
        ("recipient", "send_message", json!({"recipient": "person-7@example.com", "message": "hello"})),
    ] {
        measure(name, tool, &input, &passports);
    }
    measure("list", "tool-7", &json!({}), &lists);
    measure("list, denied", "tool", &json!({}), &lists);
}

fn allowlist(entries: usize) -> Allowlist {
    let names = |kind: &str| (0..entries).map(|n| format!("{kind}-{n}")).collect();
    Allowlist::new(Some(names("tool")), names("other"))
}

fn provider(entries: usize) -> OapPassport {
    let list = |entry: &dyn Fn(usize) -> String| (0..entries).map(entry).collect::<Vec<String>>();
    let ids = ["system.command.execute", "data.file.read", "web.fetch", "mcp.tool.execute", "messaging.send"];
    let capabilities: Vec<Value> = ids.map(|id| json!({"id": id})).into();
    let passport = json!({
        "spec_version": "oap/1.0", "status": "active",
        "capabilities": capabilities,
        "limits": {
            "system.command.execute": {
                "allowed_commands": list(&|n| format!("tool-{n}")), "blocked_patterns": list(&|n| format!("danger-{n} --force")),
            },
            "data.file.read": {
                "allowed_paths": list(&|n| if n % 2 == 0 { format!("/work/project-{}", n + 1) } else { format!("/data/set-{n}/*/out-{n}.csv") }),
                "blocked_patterns": list(&|n| format!("**/private-{n}/**")),
            },
            "web.fetch": {"allowed_domains": list(&|n| format!("host-{n}.example.com")), "blocked_domains": list(&|n| format!("*.bad-{n}.example"))},
            "mcp.tool.execute": {"allowed_servers": list(&|n| format!("server-{n}")), "allowed_tools": list(&|n| format!("get_{n}_*"))},
            "messaging.send": {"allowed_recipients": list(&|n| format!("person-{n}@example.com"))},
        },
    });
    OapPassport::new(Arc::default(), Some(Passport::read(passport.to_string().as_bytes()).map(Arc::new)), Terms::default())
}

fn measure<P: GuardrailProvider>(name: &str, tool_name: &str, input: &Value, providers: &[P; 3]) {
    let (text, mut parser) = (input.to_string(), Parser::new());
    let tool_input = ToolInput::Value(parser.parse(text.as_bytes(), DEPTH_MAX).unwrap());
    let attribution = Attribution::default();
    let request = GuardrailRequest {
        tool_name,
        tool_input: &tool_input,
        tool_call_id: "c",
        thread_id: "t",
        turn_id: None,
        time_ms: Some(0),
        attribution: &attribution,
        passport: None,
    };
    let allows = |provider: &P| matches!(provider.plan(&request), Step::Decided(Ok(decision)) if decision.allow);
    assert!(providers.iter().all(|provider| allows(provider) != name.ends_with("denied")), "{name}");
    let mut times = [const { Vec::new() }; 3];
    for _ in 0..ROUNDS {
        for (times, provider) in times.iter_mut().zip(providers) {
            times.push(time(provider, &request));
        }
    }
    let ratio = |with: usize| median(times[with].iter().zip(&times[0]).map(|(many, few)| many / few).collect());
    let [few, more, many] = [0, 1, 2].map(|with| median(times[with].clone()));
    println!("{name:<34} {few:>10.0} {more:>10.0} {many:>10.0} {:>8.2} {:>8.2}", ratio(1), ratio(2));
}

fn time(provider: &impl GuardrailProvider, request: &GuardrailRequest<'_>) -> f64 {
    let started = Instant::now();
    for _ in 0..CALLS {
        black_box(provider.plan(black_box(request)));
    }
    started.elapsed().as_nanos() as f64 / CALLS as f64
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
