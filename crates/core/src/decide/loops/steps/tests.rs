//! Cases of the rules, one conversation each, under the preset `tollgate` unless something else is said.

use serde_json::{Value, json};

use super::*;
use crate::settings::{self, Collector};
use tollgate_json::Text;
use tollgate_json::digest::{Digest, Fingerprint};
use tollgate_passport::ToolInput;

/// A controller at work on one thread.
struct Talk {
    controller: Steps,
    memory: Rare<StepMemory>,
    calls: u32,
    is_attended: bool,
}

/// What came of a call: its code before it ran, or that of its result.
type Code = Option<&'static str>;

impl Talk {
    fn read(section: &Value) -> Result<StepSettings, String> {
        let (user, defaults, faults) = (json!({"l": section}), settings::defaults().unwrap(), Collector::default());
        let settings = crate::decide::loops::LoopSettings::read(Section::root(&user, &defaults, &faults).section("l"));
        faults.into_result(settings).map(|settings| settings.steps.unwrap()).map_err(|faults| format!("{faults:?}"))
    }

    fn of(section: &Value) -> Self {
        Self { controller: Steps::new(Self::read(section).unwrap()), memory: Rare::default(), calls: 0, is_attended: false }
    }

    fn new() -> Self {
        Self::of(&json!({"preset": "tollgate"}))
    }

    /// Asks about a call, and returns its number for the result.
    fn ask(&mut self, tool: &str, arguments: &str) -> (u32, LoopDecision) {
        self.calls += 1;
        (
            self.calls,
            self.with(tool, arguments, self.calls, |controller, memory, call, context| controller.before_call(memory, call, context)),
        )
    }

    fn answer(&mut self, number: u32, tool: &str, arguments: &str, result: &str) -> LoopDecision {
        self.with(tool, arguments, number, |controller, memory, call, context| {
            let text = Text::plain(result.as_bytes());
            controller.after_call(memory, call, context, &Observation::new(tool, None, Some(&text)))
        })
    }

    fn with<T>(
        &mut self,
        tool: &str,
        arguments: &str,
        number: u32,
        then: impl FnOnce(&Steps, &mut Rare<StepMemory>, &Signature<'_>, &CallContext<'_>) -> T,
    ) -> T {
        let source = json!({"command": arguments}).to_string();
        let input = ToolInput::Encoded(Text::plain(source.as_bytes()));
        let id = Some(Fingerprint::of(&number.to_string()));
        let context = CallContext { id, input: Some(&input), is_attended: self.is_attended, only_warns: false };
        then(&self.controller, &mut self.memory, &Signature::new(tool, Digest::of(source.as_bytes())), &context)
    }

    /// Makes a call and gives it its result, if it may run. Returns the code of the refusal, or that of the result.
    fn step(&mut self, tool: &str, arguments: &str, result: &str) -> Code {
        let (number, decision) = self.ask(tool, arguments);
        match decision.finding {
            Some(code) => Some(code.as_str()),
            None => self.answer(number, tool, arguments, result).finding.map(LoopCode::as_str),
        }
    }

    fn steps(&mut self, times: usize, tool: &str, arguments: &str, result: &str) -> Vec<Code> {
        (0..times).map(|_| self.step(tool, arguments, result)).collect()
    }
}

#[test]
fn the_same_result_is_refused_after_three_and_halted_after_twelve_refusals() {
    let mut talk = Talk::new();
    let codes = talk.steps(17, "list", "/work", "a b c");
    assert_eq!(codes[..4], [None, Some("same_result_warning"), Some("same_result_warning"), Some("same_result_denied")]);
    assert!(codes[3..15].iter().all(|code| *code == Some("same_result_denied")), "{codes:?}");
    assert_eq!(codes[15..], [Some("denials_halt"); 2]);
}

/// The largest number that a configuration may have is reached, and a larger number is refused.
#[test]
fn a_threshold_that_is_never_reached_is_refused() {
    let section = |rule: &str, limits: Value| {
        let off = json!({"halt_after": 0, "warn_after": 0});
        let mut rules = json!({"same_result": off, "same_call_fails": off, "cycle": off});
        rules[rule] = limits;
        json!({"preset": "openhands", "rules": rules})
    };
    for (rule, max, arguments) in [("same_result", 64, ["a", "a"]), ("frequent_call", 8, ["a", "a"]), ("cycle", 32, ["a", "b"])] {
        let mut talk = Talk::of(&section(rule, json!({"halt_after": 0, "deny_after": max})));
        let codes: Vec<_> = (0..33).flat_map(|_| arguments.map(|arguments| talk.step("list", arguments, "a b c"))).collect();
        let allowed = codes.iter().take_while(|code| code.is_none()).count();
        assert_eq!((allowed, codes.get(allowed).copied().flatten().is_some()), (max * if rule == "cycle" { 2 } else { 1 }, true), "{rule}");
        assert!(Talk::read(&section(rule, json!({"halt_after": 0, "deny_after": max + 1}))).is_err(), "{rule}");
    }
    for (key, number) in [("waiting_after", json!(65)), ("acting_after", json!(65)), ("waiting_tools", json!({"*_poll": 65}))] {
        assert!(Talk::read(&json!({"preset": "tollgate", key: number})).is_err(), "{key}");
    }
    for (preset, limits, is_valid) in [
        ("tollgate", json!({"window": 3, "deny_after": 3}), true),
        ("tollgate", json!({"window": 3, "deny_after": 4}), false),
        ("tollgate", json!({"window": 65, "deny_after": 4}), false),
        ("tollgate", json!({"window": 3, "halt_after": 4}), true),
        ("deerflow", json!({"window": 4}), true),
        ("deerflow", json!({"window": 3}), false),
    ] {
        assert_eq!(Talk::read(&json!({"preset": preset, "rules": {"identical_calls": limits}})).is_ok(), is_valid, "{preset} {limits}");
    }
}

#[test]
fn something_new_clears_refusals() {
    let mut talk = Talk::new();
    talk.steps(10, "list", "/work", "a b c");
    assert_eq!((talk.memory.denials, talk.step("read", "a", "text"), talk.memory.denials), (7, None, 0));
    assert_eq!(talk.step("list", "/work", "a b c d"), None, "another call came between");
}

#[test]
fn calls_of_one_response_count() {
    let mut talk = Talk::new();
    let asked: Vec<_> = (0..12).map(|_| talk.ask("fetch", "x")).collect();
    let refused = asked.iter().filter(|(_, decision)| decision.finding.is_some()).count();
    assert_eq!(refused, 9, "three attempts may be under way");
}

/// A host that tells no results, as a guardrail provider alone does: between two tests there is something else each time.
#[test]
fn calls_without_results_are_repeated_in_a_row_alone() {
    let mut talk = Talk::new();
    let mut asked = |tool: &str, arguments: &str| talk.ask(tool, arguments).1.finding.map(LoopCode::as_str);
    for edit in 0..8 {
        assert_eq!((asked("run", "npm test"), asked("edit", &edit.to_string())), (None, None));
    }
    assert_eq!([0; 4].map(|_| asked("run", "npm test")), [None, None, None, Some("identical_calls_denied")]);
}

#[test]
fn siblings_are_one_attempt_at_an_error_class() {
    let parallel = |talk: &mut Talk, round: u32| {
        let hosts: Vec<_> = (0..5).map(|host| format!("get {round}.{host}")).collect();
        let asked: Vec<_> = hosts.iter().map(|host| talk.ask("run", host).0).collect();
        let codes = asked.into_iter().zip(&hosts).map(|(number, host)| talk.answer(number, "run", host, "Error: no such host").finding);
        codes.flatten().map(LoopCode::as_str).last()
    };
    let mut talk = Talk::new();
    let codes: Vec<_> = (0..8).map(|round| parallel(&mut talk, round)).collect();
    assert_eq!(codes[..4], [None; 4]);
    assert_eq!(
        codes[4..],
        [Some("error_class_warning"), Some("error_class_warning"), Some("error_class_warning"), Some("error_class_halt")]
    );
}

#[test]
fn a_call_that_is_asked_about_again_is_the_same_attempt() {
    let mut talk = Talk::of(&json!({"preset": "tollgate", "once_tools": ["pay*"]}));
    for _ in 0..5 {
        talk.calls = 0;
        assert_eq!(talk.ask("pay_order", "9").1.finding, None);
    }
}

#[test]
fn an_error_that_outlives_edits_counts_on() {
    let mut talk = Talk::new();
    let mut codes = Vec::new();
    for edit in 0..6 {
        assert_eq!(talk.step("edit", &format!("version {edit}"), &format!("saved version {edit}")), None);
        codes.push(talk.step("test", "all", "fatal: cannot start the compiler, pid 48211"));
    }
    let warned = Some("same_error_warning");
    assert_eq!(codes, [None, None, warned, warned, warned, Some("same_error_denied")]);
}

#[test]
fn an_error_that_changes_is_progress() {
    let mut talk = Talk::new();
    for edit in 0..12 {
        assert_eq!(talk.step("edit", &format!("version {edit}"), &format!("saved version {edit}")), None);
        assert_eq!(talk.step("test", "all", &format!("FAILED: {} of 14 tests", 14 - edit)), None);
    }
}

#[test]
fn builds_between_edits_may_say_the_same() {
    let mut talk = Talk::new();
    for edit in 0..12 {
        talk.step("edit", &format!("version {edit}"), &format!("saved version {edit}"));
        assert_eq!(talk.step("build", "all", "done"), None);
    }
}

#[test]
fn waiting_and_outages_have_limits_of_their_own() {
    for (tool, result) in [("job_status", "running"), ("fetch", "HTTP 503"), ("query", "Error: database is locked")] {
        let mut talk = Talk::new();
        let codes = talk.steps(22, tool, "7", result);
        let first = codes.iter().position(|code| code.is_some_and(|code| !code.ends_with("_warning")));
        assert_eq!(first, Some(20), "{tool} {codes:?}");
    }
    let codes = |command: &str| Talk::new().steps(4, "shell", command, "web-1 is there");
    assert_eq!((codes("kubectl get pods")[3], codes("kubectl apply -f web.yaml")[3]), (None, Some("same_result_denied")));
}

#[test]
fn results_that_do_not_tell_have_the_limit_of_actions() {
    let first_refusal = |command: &str, result: &dyn Fn(usize) -> String| {
        let mut talk = Talk::new();
        let codes: Vec<_> = (0..9).map(|number| talk.step("shell", command, &result(number))).collect();
        codes.iter().position(|code| code.is_some_and(|code| code.ends_with("_denied")))
    };
    assert_eq!(first_refusal("probe", &|_| "Exit code 7".to_owned()), Some(6));
    assert_eq!(first_refusal("probe", &|_| "Exit code 7\nno such host".to_owned()), Some(2));
    assert_eq!(first_refusal("count", &|number| format!("{} rows", 48_211 + number * 977)), Some(6));
    assert_eq!(first_refusal("count", &|_| "48211 rows".to_owned()), Some(3));
    assert_eq!(first_refusal("make", &|_| "Command timed out after 2m 0.0s".to_owned()), Some(6));
}

#[test]
fn the_command_counts_for_its_result_though_the_result_has_no_arguments() {
    let codes = |command: &str| {
        let mut talk = Talk::new();
        let (number, _) = talk.ask("shell", command);
        let text = Text::plain(b"<returncode>1</returncode>");
        let id = Some(Fingerprint::of(&number.to_string()));
        let context = CallContext { id, ..CallContext::default() };
        let source = json!({"command": command}).to_string();
        let signature = Signature::new("shell", Digest::of(source.as_bytes()));
        talk.controller.after_call(&mut talk.memory, &signature, &context, &Observation::new("shell", None, Some(&text)));
        talk.memory.steps.last().unwrap().marks.has(Marks::FAILED)
    };
    assert_eq!((codes("grep -rn x ."), codes("make")), (false, true));
}

#[test]
fn actions_have_a_limit_of_their_own() {
    let codes = Talk::new().steps(7, "browser_click", "#next-month", "clicked");
    assert_eq!((codes[..5].iter().all(Option::is_none), codes[6]), (true, Some("same_result_denied")), "{codes:?}");
}

#[test]
fn a_cycle_is_refused_at_its_third_lap() {
    let mut talk = Talk::new();
    let mut codes = Vec::new();
    for _ in 0..3 {
        for page in ["a", "b", "c"] {
            codes.push(talk.step("search", page, &format!("what {page} has")));
        }
    }
    assert!(codes[..5].iter().all(Option::is_none), "{codes:?}");
    assert_eq!(codes[6], Some("cycle_denied"));
}

#[test]
fn a_growing_file_is_seen_through_its_sketch() {
    let mut talk = Talk::new();
    let file = |lines: usize| (0..30 + lines).map(|line| format!("line with the text {}\n", line.min(30) * 7)).collect::<String>();
    let codes: Vec<_> = (0..8).map(|lines| talk.step("append", "x", &format!("{}now {lines} more", file(0)))).collect();
    assert_eq!(codes[6], Some("alike_result_denied"), "{codes:?}");
}

#[test]
fn look_ups_that_find_nothing_halt_in_the_end() {
    let mut talk = Talk::new();
    let codes: Vec<_> = (0..10).map(|name| talk.step("shell", &format!("find / -name made_up_{name}"), "")).collect();
    assert_eq!((codes[4], codes[5], codes[9]), (None, Some("nothing_found_warning"), Some("nothing_found_halt")));
}

#[test]
fn a_missing_program_is_not_cured_by_edits() {
    let mut talk = Talk::new();
    let mut codes = Vec::new();
    for edit in 0..4 {
        talk.step("edit", &edit.to_string(), "saved");
        codes.push(talk.step("shell", "cargo build", "bash: cargo: command not found"));
    }
    assert_eq!(codes, [None, None, None, Some("missing_program_denied")]);
}

#[test]
fn an_error_goes_on_over_turns() {
    let mut talk = Talk::new();
    let mut codes = Vec::new();
    for _ in 0..3 {
        codes.extend(talk.steps(2, "change", "order 9", "The order cannot be changed"));
        crate::decide::loops::ControllerMemory::next_turn(&mut talk.memory);
        assert!(talk.memory.steps.is_empty());
    }
    codes.extend(talk.steps(2, "change", "order 9", "The order cannot be changed"));
    assert_eq!(codes.last(), Some(&Some("same_error_over_turns_denied")), "{codes:?}");
}

#[test]
fn what_may_be_done_once_is_refused_the_second_time_unless_it_has_not_run() {
    let section = json!({"preset": "tollgate", "once_tools": ["pay*"]});
    let mut talk = Talk::of(&section);
    assert_eq!((talk.step("pay_order", "9", "paid"), talk.step("look", "9", "open")), (None, None));
    assert_eq!((talk.step("pay_order", "9", "paid"), talk.step("pay_order", "10", "paid")), (Some("once_denied"), None));
    let mut talk = Talk::of(&section);
    let declared = r#"{"error":"the card was denied"}"#;
    assert_eq!((talk.step("pay_order", "9", declared), talk.step("pay_order", "9", "paid")), (None, None));
    for (order, may_be_paid) in
        [("20", r#"{"error":"gateway timeout"}"#), ("21", "Error rate: 0%"), ("22", "HTTP 500 Internal Server Error")]
    {
        assert_eq!(
            (talk.step("pay_order", order, may_be_paid), talk.step("pay_order", order, "paid")),
            (None, Some("once_denied")),
            "{order}"
        );
    }
    let (first, second) = (talk.ask("pay_order", "11").1, talk.ask("pay_order", "11").1);
    assert_eq!((first.finding, second.finding.map(LoopCode::as_str)), (None, Some("once_denied")), "in one response");
}

#[test]
fn calls_of_a_turn_may_be_limited_by_pattern() {
    let mut talk = Talk::of(&json!({"preset": "tollgate", "calls_per_turn_max": {"web_*": 2}}));
    let codes: Vec<_> = (0..3).map(|page| talk.step("web_search", &page.to_string(), &format!("page {page}"))).collect();
    assert_eq!(codes, [None, None, Some("calls_per_turn_denied")]);
    assert_eq!(talk.step("read", "x", "y"), None);
}

/// Some servers give every call of a response the same id, or none. The same call under one id is asked about again.
#[test]
fn calls_that_share_an_id_count_each() {
    let ask = |talk: &mut Talk, arguments: &str, id: &str| {
        let context = CallContext { id: Some(Fingerprint::of(id)), input: None, is_attended: false, only_warns: false };
        let call = Signature::new("pay", Digest::of(arguments.as_bytes()));
        talk.controller.before_call(&mut talk.memory, &call, &context).finding.map(LoopCode::as_str)
    };
    let mut talk = Talk::of(&json!({"preset": "tollgate", "calls_per_turn_max": {"pay": 2}}));
    let codes = ["1", "1", "2", "3"].map(|arguments| ask(&mut talk, arguments, "same"));
    assert_eq!(codes, [None, None, None, Some("calls_per_turn_denied")]);
    let mut talk = Talk::of(&json!({"preset": "tollgate", "once_tools": ["pay"]}));
    assert_eq!(["1", "1"].map(|arguments| ask(&mut talk, arguments, "same")), [None, None]);
    assert_eq!(["2", "2"].map(|arguments| ask(&mut talk, arguments, "")), [None, Some("once_denied")]);
}

#[test]
fn a_watched_run_is_not_halted() {
    let mut talk = Talk::new();
    talk.is_attended = true;
    let codes = talk.steps(20, "list", "/work", "a b c");
    assert_eq!(codes.last(), Some(&Some("denials_denied")));
    let mut talk = Talk::new();
    talk.is_attended = true;
    let codes: Vec<_> = (0..9).map(|try_| talk.step("run", &format!("v{try_}"), "ValueError: bad input")).collect();
    assert_eq!(codes.last(), Some(&Some("error_class_warning")));
}

#[test]
fn presets_do_as_their_projects_document() {
    let last = |preset: &str, steps: &[(&str, &str)]| {
        let mut talk = Talk::of(&json!({"preset": preset}));
        steps.iter().map(|(call, result)| talk.step("tool", call, result)).last().flatten()
    };
    assert_eq!(last("openhands", &[("a", "x"); 3]), None);
    assert_eq!(last("openhands", &[("a", "x"); 4]), Some("same_result_halt"));
    assert_eq!(last("openhands", &[("a", "Error: 1"), ("a", "Error: 2"), ("a", "Error: 3")]), Some("same_call_fails_halt"));
    assert_eq!(last("openhands", &[("a", "x"), ("b", "y"), ("a", "x"), ("b", "y"), ("a", "x"), ("b", "y")]), Some("cycle_halt"));
    let changing: Vec<_> = ["1", "2", "3", "4", "5"].map(|result| ("a", result)).to_vec();
    assert_eq!((last("gemini_cli", &changing[..4]), last("gemini_cli", &changing)), (None, Some("identical_calls_halt")));
    let spread: Vec<_> = changing.iter().flat_map(|step| [*step, ("b", step.1)]).collect();
    assert_eq!(
        (last("deerflow", &spread[..5]), last("deerflow", &spread[..9])),
        (Some("identical_calls_warning"), Some("identical_calls_halt"))
    );
    assert_eq!(last("hermes", &[("a", "x"); 5]), Some("same_result_halt"));
}

#[test]
fn a_busy_thread_is_small_and_trims_to_what_it_may_take() {
    let mut talk = Talk::new();
    for number in 0..200 {
        talk.step("run", &number.to_string(), &format!("result {number}"));
    }
    assert_eq!((talk.memory.steps.len(), talk.memory.open.len()), (64, 0));
    assert!(crate::decide::loops::ControllerMemory::heap_bytes(&talk.memory) <= 1_700);
    crate::decide::loops::ControllerMemory::trim(&mut talk.memory, 240);
    assert_eq!(talk.memory.steps.len(), 10);
}
