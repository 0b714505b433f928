//! Measures the cost by rules: whole events under lists and passports of 10 and of 10,000 entries of every kind, and the provider's decision
//! alone.
//!
//! The entry that a call names is drawn from all of them, so that no rule stays in the caches because it always decides.

use std::hint::black_box;
use std::sync::Arc;

use tollgate_core::decide::deciding::Outcome;
use tollgate_core::decide::guardrail::{Allowlist, GuardrailProvider, Step};
use tollgate_core::decide::policy::Policy;
use tollgate_core::decide::ruling::Action;
use tollgate_core::event::decode::Attribution;
use tollgate_fixtures::events::rows::{passport, passport_of, request_of};
use tollgate_fixtures::events::{Feed, policy_with};
use tollgate_fixtures::measure::time_per_event;
use tollgate_fixtures::traffic::Random;
use tollgate_json::{DEPTH_MAX, Parser};
use tollgate_passport::ToolInput;

use super::{Growth, SIZES};

const ENTRIES: [usize; SIZES] = [10, 10_000];
const ROUNDS: usize = 41;
/// The events of a round, each of a thread of its own.
const EVENTS: usize = 1_000;
const SEED: u64 = 20_260_102;

/// A kind of call.
struct Kind {
    name: &'static str,
    is_allowed: bool,
    /// Its tool and its arguments as JSON, for an entry of lists that have so many.
    call: fn(entry: usize, entries: usize) -> (String, String),
}

const LIST_KINDS: [Kind; 2] = [
    Kind { name: "list, allowed", is_allowed: true, call: |entry, _| (format!("tool-{entry}"), "{}".to_owned()) },
    Kind { name: "list, denied", is_allowed: false, call: |entry, _| (format!("unknown-{entry}"), "{}".to_owned()) },
];

const PASSPORT_KINDS: [Kind; 9] = [
    Kind {
        name: "command, allowed",
        is_allowed: true,
        call: |entry, entries| command(&format!("tool-{entry} --check && tool-{} build", (entry + 3) % entries)),
    },
    Kind { name: "command, denied", is_allowed: false, call: |entry, _| command(&format!("tool-{entry} --check; other-{entry}")) },
    Kind { name: "file in a directory", is_allowed: true, call: |entry, _| file(&format!("/work/project-{}/src/main.rs", entry / 2)) },
    Kind {
        name: "file by a glob",
        is_allowed: true,
        call: |entry, _| file(&format!("/data/set-{odd}/2026/out-{odd}.csv", odd = entry / 2 * 2 + 1)),
    },
    Kind { name: "file, denied", is_allowed: false, call: |entry, _| file(&format!("/somewhere/else/project-{entry}/a.txt")) },
    Kind { name: "domain, allowed", is_allowed: true, call: |entry, _| page(&format!("https://docs.host-{entry}.example.com/page?x=1")) },
    Kind { name: "domain, denied", is_allowed: false, call: |entry, _| page(&format!("https://docs.host-{entry}.example.org/page?x=1")) },
    Kind {
        name: "MCP tool by a pattern",
        is_allowed: true,
        call: |entry, entries| (format!("mcp__server-{entry}__get_{}_details", (entry + 3) % entries), "{}".to_owned()),
    },
    Kind {
        name: "recipient",
        is_allowed: true,
        call: |entry, _| ("send_message".to_owned(), format!(r#"{{"recipient":"person-{entry}@example.com","message":"hello"}}"#)),
    },
];

fn command(line: &str) -> (String, String) {
    ("bash".to_owned(), format!(r#"{{"command":"{line}"}}"#))
}

fn file(path: &str) -> (String, String) {
    ("read_file".to_owned(), format!(r#"{{"path":"{path}"}}"#))
}

fn page(url: &str) -> (String, String) {
    ("web_fetch".to_owned(), format!(r#"{{"url":"{url}"}}"#))
}

pub fn measure(show: &mut impl FnMut(&Growth)) {
    measure_kinds(&LIST_KINDS, allowlist, show);
    measure_kinds(&PASSPORT_KINDS, |entries| passport(&passport_of(entries)), show);
}

fn allowlist(entries: usize) -> Allowlist {
    let names = |kind: &str| (0..entries).map(|entry| format!("{kind}-{entry}")).collect();
    Allowlist::new(Some(names("tool")), names("other"))
}

fn measure_kinds<P: GuardrailProvider + 'static>(kinds: &[Kind], make: impl Fn(usize) -> P, show: &mut impl FnMut(&Growth)) {
    let providers = ENTRIES.map(&make);
    let policies = ENTRIES.map(|entries| policy_with(make(entries)));
    for kind in kinds {
        show(&whole_events(kind, &policies));
        show(&decisions_alone(kind, &providers));
    }
}

/// Returns the calls of a round.
fn calls<'r>(kind: &'r Kind, entries: usize, random: &'r mut Random) -> impl Iterator<Item = (String, String)> + 'r {
    (0..EVENTS).map(move |_| (kind.call)(random.below(entries), entries))
}

fn whole_events(kind: &Kind, policies: &[Arc<Policy>; SIZES]) -> Growth {
    let mut growth = Growth::new(format!("rules, {}", kind.name), ENTRIES);
    let mut random = Random::new(SEED);
    let mut feeds = policies.each_ref().map(Feed::new);
    for turn in 0..ROUNDS {
        for (size, feed) in feeds.iter_mut().enumerate() {
            // Every event begins a turn, so that there was no ruling on it before.
            let events = |turn: usize, random: &mut Random| -> Vec<String> {
                let calls = calls(kind, ENTRIES[size], random).enumerate();
                calls.map(|(thread, (tool, input))| event(thread, turn, &tool, &input)).collect()
            };
            // Another size has filled the caches meanwhile.
            let warm_up = events(2 * turn, &mut random);
            let events = events(2 * turn + 1, &mut random);
            warm_up.iter().for_each(|event| check(kind, &feed.apply(event)));
            growth.push(size, time_per_event(EVENTS, || feed.apply_all(&events)));
        }
    }
    growth
}

fn check(kind: &Kind, applied: &Outcome) {
    let action = if kind.is_allowed { Action::Allow } else { Action::Block };
    assert!(matches!(applied, Outcome::Verdict { decided, .. } if decided.action == action), "{}: {applied:?}", kind.name);
}

fn event(thread: usize, turn: usize, tool_name: &str, input: &str) -> String {
    format!(
        r#"{{"type":"tool_call","thread_id":"{thread:08x}-4a5b-4c6d-8e7f-0123456789ab","event_id":"e{turn:06}","turn_id":"turn-{turn:06}","agent_id":"coder-7","user_id":"user-4711","tenant_id":"acme","timestamp":"2026-01-01T00:00:00.000Z","tool_call_id":"call_{turn:024}","tool_name":"{tool_name}","tool_input":{input}}}"#
    )
}

fn decisions_alone<P: GuardrailProvider>(kind: &Kind, providers: &[P; SIZES]) -> Growth {
    let mut growth = Growth::detail(format!("rules alone, {}", kind.name), ENTRIES);
    let mut random = Random::new(SEED);
    for _ in 0..ROUNDS {
        for (size, provider) in providers.iter().enumerate() {
            let calls: Vec<(String, String)> = calls(kind, ENTRIES[size], &mut random).collect();
            let mut parsers: Vec<Parser> = calls.iter().map(|_| Parser::new()).collect();
            let texts = calls.iter().map(|(_, input)| input.as_str());
            let inputs: Vec<ToolInput<'_>> = parsers.iter_mut().zip(texts).map(|(parser, text)| parsed(parser, text)).collect();
            let decide_all = || {
                for ((tool_name, _), input) in calls.iter().zip(&inputs) {
                    let step = black_box(plan(provider, tool_name, input));
                    assert!(matches!(step, Step::Decided(Ok(decision)) if decision.allow == kind.is_allowed), "{}", kind.name);
                }
            };
            decide_all();
            growth.push(size, time_per_event(EVENTS, decide_all));
        }
    }
    growth
}

fn parsed<'d>(parser: &'d mut Parser, input: &'d str) -> ToolInput<'d> {
    ToolInput::Value(parser.parse(input.as_bytes(), DEPTH_MAX).expect("arguments are JSON"))
}

fn plan(provider: &impl GuardrailProvider, tool_name: &str, tool_input: &ToolInput<'_>) -> Step {
    let attribution = Attribution::default();
    provider.plan(&request_of(tool_name, tool_input, &attribution))
}
