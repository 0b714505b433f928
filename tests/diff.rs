//! Tests `tollgate diff` and `tollgate eval --digest` on captures, with a second opinion: what two runs of `tollgate eval` say.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::Command;

use crate::support::{Ran, assert_says, run, run_unread, tollgate};
use serde_json::{Value, json};
use tempfile::TempDir;
use tollgate_core::event::record::partition_of;
use tollgate_fixtures::cases::jsonl;
use tollgate_testkit::{Mix, MixEvent, MixSettings};

const DENIES: &str = "guardrails: {enabled: true, provider: {use: allowlist, config: {denied_tools: [deploy, format_disk]}}}\n";
const STRICTER: &str = "tool_loop_guardrails: {same_tool_failure_halt_after: 3, same_tool_failure_warn_after: 2}\n";

/// A folder with a capture and two policies.
struct Trial {
    folder: TempDir,
}

impl Trial {
    fn new(capture: &str) -> Self {
        let trial = Self { folder: TempDir::new().unwrap() };
        trial.write("capture.jsonl", capture.as_bytes());
        trial.write("a.yaml", b"{}\n");
        trial.write("b.yaml", DENIES.as_bytes());
        trial
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        std::fs::write(self.path(name), bytes).unwrap();
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    /// Runs a command in the folder.
    fn run(&self, arguments: &[&str]) -> Ran {
        run(tollgate().args(arguments).current_dir(self.folder.path()), b"")
    }

    fn diff(&self, arguments: &[&str]) -> Ran {
        self.run(&[&["diff", "--policy", "a.yaml", "--policy", "b.yaml", "capture.jsonl"], arguments].concat())
    }
}

fn summary(ran: &Ran) -> Value {
    serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:?}"))
}

/// Puts events on partitions as a producer does, and returns the lines of a capture.
struct Topic {
    lines: String,
    next: BTreeMap<u32, i64>,
    partitions: u32,
}

impl Topic {
    fn new(partitions: u32) -> Self {
        Self { lines: String::new(), next: BTreeMap::new(), partitions }
    }

    fn push(&mut self, thread: &str, value: &str) {
        let partition = u32::try_from(partition_of(thread.as_bytes(), self.partitions).0).unwrap();
        let offset = self.next.entry(partition).or_default();
        let value = serde_json::to_string(value).unwrap();
        let time = 1_700_000_000_000_i64 + *offset * 7;
        writeln!(
            self.lines,
            r#"{{"topic":"agent.events","partition":{partition},"offset":{offset},"timestamp":{time},"key":"{thread}","headers":[],"value":{value}}}"#
        )
        .unwrap();
        *offset += 1;
    }
}

/// The traffic of a fleet, as the load test has it.
fn fleet(events: usize, partitions: u32) -> String {
    let (mut mix, mut event, mut topic) =
        (Mix::new(MixSettings { threads: 300, ..MixSettings::default() }), MixEvent::blank(), Topic::new(partitions));
    for _ in 0..events {
        mix.next_into(&mut event);
        topic.push(&event.thread_id, std::str::from_utf8(&event.value).unwrap());
    }
    topic.lines
}

/// Returns what a verdict says, by its id.
fn verdicts(ran: &Ran) -> BTreeMap<String, (String, String)> {
    let text = |verdict: &Value, name: &str| verdict[name].as_str().unwrap().to_owned();
    ran.json_lines().iter().map(|verdict| (text(verdict, "verdict_id"), (text(verdict, "action"), text(verdict, "code")))).collect()
}

/// Whatever the policies are, `diff` finds what two runs of `eval` differ in, and nothing else.
#[test]
fn differences_are_those_of_two_runs() {
    let trial = Trial::new(&fleet(40_000, 7));
    let a = trial.run(&["eval", "-c", "a.yaml", "capture.jsonl"]);
    for policy in [DENIES, STRICTER, "safety_finish_reason: {enabled: false}\n"] {
        trial.write("b.yaml", policy.as_bytes());
        let b = trial.run(&["eval", "-c", "b.yaml", "capture.jsonl"]);
        let (one, other) = (verdicts(&a), verdicts(&b));
        assert_eq!(one.len(), other.len());
        let expected: BTreeMap<_, _> =
            one.iter().filter(|(id, said)| other[*id] != **said).map(|(id, said)| (id, (said, &other[id]))).collect();
        let ran = trial.diff(&["--flips", "flips.jsonl"]);
        assert_eq!(ran.exit, Some(0), "{policy}: {}", ran.stderr);
        let summary = summary(&ran);
        assert!(expected.len() > 10, "{policy}: only {} verdicts differ", expected.len());
        assert_eq!(summary["flips"], expected.len(), "{policy}");
        let firsts = trial.read("flips.jsonl").lines().filter(|line| line.contains("\"is_first\":true")).count();
        assert!(summary["first_flips"] == firsts && firsts > 0 && firsts <= expected.len(), "{policy}: {firsts}");
        let mut changes: BTreeMap<Change, u64> = BTreeMap::new();
        for ((a, x), (b, y)) in expected.values() {
            *changes.entry((a.clone(), x.clone(), b.clone(), y.clone())).or_default() += 1;
        }
        let told = summary["changes"].as_array().unwrap().iter().map(|change| {
            let side = |side: &str, name: &str| change[side][name].as_str().unwrap().to_owned();
            ((side("from", "action"), side("from", "code"), side("to", "action"), side("to", "code")), change["flips"].as_u64().unwrap())
        });
        assert_eq!(told.collect::<BTreeMap<_, _>>(), changes, "{policy}");
        let lines = jsonl(trial.path("flips.jsonl"));
        let ids: BTreeSet<String> = lines.iter().map(verdict_id).collect();
        assert_eq!((lines.len(), ids), (expected.len(), expected.keys().map(|id| (*id).clone()).collect()), "{policy}");
    }
}

/// From action, from code, to action, to code.
type Change = (String, String, String, String);

fn verdict_id(flip: &Value) -> String {
    let text = |name: &str| flip[name].as_str().unwrap();
    tollgate_core::decide::evaluate::verdict::verdict_id(text("thread_id"), text("event_id")).to_string()
}

/// A quarter of a million events, of which some are calls that only the second policy denies.
#[test]
fn planted_differences_are_found_exactly() {
    let (mut topic, mut planted) = (Topic::new(16), BTreeSet::new());
    for number in 0..250_000_u32 {
        let thread = format!("t{}", number.wrapping_mul(2_654_435_761) % 5_003);
        let tool = if number % 2_477 == 17 { "deploy" } else { "read_file" };
        if tool == "deploy" {
            planted.insert(format!("e{number}"));
        }
        let tenant = if number % 2 == 0 { "even" } else { "odd" };
        topic.push(
            &thread,
            &format!(
                r#"{{"type":"tool_call","event_id":"e{number}","thread_id":"{thread}","turn_id":"{number}","tool_call_id":"c{number}","agent_id":"a{}","tenant_id":"{tenant}","user_id":"u7","tool_name":"{tool}","tool_input":{{"path":"src/{number}.rs"}}}}"#,
                number % 3
            ),
        );
    }
    let trial = Trial::new(&topic.lines);
    let ran = trial.diff(&["--flips", "flips.jsonl", "--html", "page.html", "--fail-on", "allow->block>0.1%", "--fail-on", "*->halt>0"]);
    assert_eq!((ran.exit, ran.stderr.as_str()), (Some(0), ""));
    let found: BTreeSet<_> = jsonl(trial.path("flips.jsonl")).iter().map(|flip| flip["event_id"].as_str().unwrap().to_owned()).collect();
    assert!(planted.len() > 90);
    assert_eq!(found, planted);
    let summary = summary(&ran);
    assert_eq!((&summary["records"], &summary["verdicts"], &summary["flips"]), (&json!(250_000), &json!(250_000), &json!(planted.len())));
    let changes = summary["changes"].as_array().unwrap();
    assert_eq!(changes.len(), 1);
    assert_eq!((&changes[0]["from"]["action"], &changes[0]["to"]["code"]), (&json!("allow"), &json!("oap.tool_not_allowed")));
    assert_eq!(summary["first_flips"], summary["flips"], "each call is a turn of its own");
    assert_eq!(summary["tools"], json!([{"name": "deploy", "flips": planted.len(), "verdicts": planted.len()}]));
    let of = |kind: &str| summary[kind].as_array().unwrap().iter().map(|named| named["flips"].as_u64().unwrap()).sum::<u64>();
    assert_eq!((of("agents"), of("tenants")), (planted.len() as u64, planted.len() as u64));
    assert!(!ran.stdout.contains("u7") && !trial.read("flips.jsonl").contains("u7") && !trial.read("page.html").contains("u7"));
}

/// The same file gives the same digest and the same figures on one core and on all.
#[test]
fn the_number_of_cores_does_not_matter() {
    let trial = Trial::new(&fleet(10_000, 5));
    let on = |cores: &str, arguments: &[&str]| {
        let mut command = Command::new("taskset");
        command.args(["-c", cores]).arg(env!("CARGO_BIN_EXE_tollgate")).args(arguments).current_dir(trial.folder.path());
        let ran = run(&mut command, b"");
        // Some threads of this fleet begin without a turn_start.
        let others: Vec<_> = ran.stderr.lines().filter(|line| !line.contains("threads begin within a turn")).collect();
        assert_eq!((ran.exit, others), (Some(0), Vec::new()), "{arguments:?}");
        ran.stdout
    };
    // Only some of the machine's may be ours.
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let all = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap().trim();
    let one = all.split([',', '-']).next().unwrap();
    for arguments in
        [&["eval", "--digest", "-c", "b.yaml", "capture.jsonl"][..], &["diff", "-c", "a.yaml", "--policy", "b.yaml", "capture.jsonl"]]
    {
        assert_eq!(on(one, arguments), on(all, arguments), "{arguments:?}");
    }
    let digest = on(one, &["eval", "--digest", "-c", "a.yaml", "capture.jsonl"]);
    assert_ne!(digest, on(one, &["eval", "--digest", "-c", "b.yaml", "capture.jsonl"]));
    assert!(digest.starts_with("sha256-sum:"), "{digest}");
    // Threads do not know which partition they are on, and lines of another order within a thread would be other traffic.
    let other = Trial::new(&fleet(10_000, 11));
    assert_eq!(other.run(&["eval", "--digest", "-c", "a.yaml", "capture.jsonl"]).stdout, digest);
    // It is the sum over the lines that are printed.
    let printed = trial.run(&["eval", "-c", "a.yaml", "capture.jsonl"]).stdout;
    let sum = tollgate_core::decide::evaluate::DistinctVerdicts::default();
    printed.lines().chain(printed.lines().take(5)).for_each(|line| {
        sum.add(line.as_bytes());
    });
    assert_eq!(format!("{}\n", sum.digest()), digest);
}

#[test]
fn a_policy_is_compared_with_what_was_published() {
    let trial = Trial::new(&fleet(20_000, 3));
    let published = trial.run(&["eval", "-c", "a.yaml", "capture.jsonl"]).stdout;
    trial.write("decisions.jsonl", published.as_bytes());
    let against = |policy: &str| {
        let ran = trial.run(&["diff", "--against", "recorded", "--decisions", "decisions.jsonl", "--policy", policy, "capture.jsonl"]);
        assert_eq!((ran.exit, ran.stderr.as_str()), (Some(0), ""));
        summary(&ran)
    };
    assert_eq!(against("a.yaml")["flips"], 0);
    let (found, expected) = (against("b.yaml"), summary(&trial.diff(&[])));
    for part in ["flips", "verdicts", "changes", "tools", "threads", "refused_calls", "cut_off_calls"] {
        assert_eq!(found[part], expected[part], "{part}");
    }
    // What was never answered is on one side only.
    trial.write("decisions.jsonl", published.lines().skip(10).fold(String::new(), |text, line| text + line + "\n").as_bytes());
    assert_eq!(against("b.yaml")["unmatched"], 10);
}

/// A turn in which one tool fails three times and then another succeeds twice.
#[test]
fn work_that_would_be_cut_off_is_counted() {
    let mut topic = Topic::new(2);
    let mut number = 0;
    let mut result = |topic: &mut Topic, thread: &str, tool: &str, text: &str| {
        number += 1;
        let input = json!({"n": number});
        let call = json!({"type": "tool_call", "event_id": format!("c{number}"), "thread_id": thread, "turn_id": "1", "tool_call_id": format!("k{number}"), "tool_name": tool, "tool_input": input});
        let result = json!({"type": "tool_result", "event_id": format!("r{number}"), "thread_id": thread, "turn_id": "1", "tool_call_id": format!("k{number}"), "tool_name": tool, "tool_input": input, "result": text});
        topic.push(thread, &call.to_string());
        topic.push(thread, &result.to_string());
    };
    for thread in ["stuck", "fine"] {
        for _ in 0..3 {
            result(&mut topic, thread, "fetch", if thread == "stuck" { "Error: refused" } else { "done" });
        }
        for text in ["42 rows", "Error: no", "7 rows"] {
            result(&mut topic, thread, "query", text);
        }
    }
    let trial = Trial::new(&topic.lines);
    trial.write("b.yaml", STRICTER.as_bytes());
    let ran = trial.diff(&["--fail-on", "cut_off>1"]);
    let summary = summary(&ran);
    assert_eq!((&summary["cut_off_calls"], &summary["cut_off_turns"]), (&json!(2), &json!(1)), "{summary:#}");
    assert_eq!(ran.exit, Some(1));
    assert_says(&ran.stderr, &["--fail-on 'cut_off>1': found 2"]);
    // A list of tools stops no turn. Of each thread two of the three calls that it refuses have succeeded.
    trial.write("b.yaml", b"guardrails: {enabled: true, providers: [{use: allowlist, config: {denied_tools: [query]}}]}");
    let ran = trial.diff(&["--fail-on", "refused>3"]);
    assert_eq!(self::summary(&ran)["refused_calls"], 4);
    assert_says(&ran.stderr, &["--fail-on 'refused>3': found 4"]);
}

#[test]
fn bad_input_is_named() {
    let whole = fleet(3_000, 2);
    let trial = Trial::new(&whole);
    trial.write("same.yaml", b"# the same, with a comment\n{}\n");
    // One more than the limit allows.
    let flips = summary(&trial.diff(&[]))["flips"].as_u64().unwrap();
    assert_eq!(trial.diff(&["--fail-on", &format!("flips>{flips}")]).exit, Some(0));
    let strict = trial.diff(&["--fail-on", &format!("flips>{}", flips - 1)]);
    assert_eq!(strict.exit, Some(1));
    assert_says(&strict.stderr, &["--fail-on 'flips>", &format!("found {flips} of ")]);
    let unread = ["diff", "--policy", "a.yaml", "--policy", "b.yaml", "capture.jsonl", "--fail-on", "flips>0"];
    let (code, said) = run_unread(tollgate().args(unread).current_dir(trial.folder.path()));
    assert_eq!(code, Some(1), "a limit is exceeded, whether or not somebody reads by how much: {said}");
    let same = trial.run(&["diff", "--policy", "a.yaml", "--policy", "same.yaml", "capture.jsonl"]);
    assert_eq!(same.exit, Some(2));
    assert_says(&same.stderr, &["the same policy_version"]);
    let three = trial.diff(&["--policy", "same.yaml"]);
    assert_eq!(three.exit, Some(2));
    for (limit, says) in [("allow->blocked>1", "the actions are allow, warn, block, halt, suppress"), ("allow->block", "found no limit")] {
        let ran = trial.diff(&["--fail-on", limit]);
        assert_eq!(ran.exit, Some(2), "{limit}");
        assert_says(&ran.stderr, &[says]);
    }
    // A line that is cut off, and a file of another program.
    trial.write("capture.jsonl", &whole.as_bytes()[..whole.len() - 40]);
    let ran = trial.diff(&[]);
    assert_eq!((ran.exit, &summary(&ran)["records"]), (Some(3), &json!(2_999)));
    assert_says(&ran.stderr, &[r#""line":3000"#, "record_not_json"]);
    trial.write("capture.jsonl", b"\x7fELF\x02\x01\x01\x00");
    assert_eq!(summary(&trial.diff(&["--format", "envelope"]))["records"], 0);
    assert_eq!(trial.diff(&["--format", "envelope"]).exit, Some(3));
    // A compressed file that ends in the middle: what comes before counts.
    let packed = zstd::encode_all(whole.as_bytes(), 3).unwrap();
    trial.write("cut.jsonl.zst", &packed[..packed.len() / 2]);
    let ran = trial.run(&["diff", "--policy", "a.yaml", "--policy", "b.yaml", "cut.jsonl.zst"]);
    assert_eq!(ran.exit, Some(3));
    assert_says(&ran.stderr, &["unreadable_from_here", r#""line":"#]);
    let eval = trial.run(&["eval", "cut.jsonl.zst"]);
    assert_eq!(eval.exit, Some(3));
    assert_says(&eval.stderr, &["unreadable_from_here"]);
    trial.write("whole.jsonl.zst", &packed);
    let ran = trial.run(&["diff", "--policy", "a.yaml", "--policy", "b.yaml", "whole.jsonl.zst"]);
    assert_eq!((ran.exit, &summary(&ran)["records"]), (Some(0), &json!(3_000)));
    let missing = trial.run(&["diff", "--policy", "a.yaml", "--policy", "b.yaml", "no.jsonl"]);
    assert_eq!(missing.exit, Some(1));
    assert_says(&missing.stderr, &["no.jsonl"]);
}

/// A sample has the flips of its threads, and no others.
#[test]
fn a_sample_is_a_part_of_the_whole() {
    let trial = Trial::new(&fleet(20_000, 3));
    let sample = tollgate_core::decide::shadow::Sample::of_percent(30.0).unwrap();
    let flips = |arguments: &[&str]| -> Vec<String> {
        let ran = trial.diff(&[arguments, &["--flips", "flips.jsonl"]].concat());
        assert_eq!(ran.exit, Some(0), "{}", ran.stderr);
        let mut lines: Vec<_> = trial.read("flips.jsonl").lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    let thread = |line: &String| serde_json::from_str::<Value>(line).unwrap()["thread_id"].as_str().unwrap().to_owned();
    let (whole, part) = (flips(&[]), flips(&["--sample", "30%"]));
    let expected: Vec<_> = whole.iter().filter(|line| sample.has(&thread(line))).cloned().collect();
    assert!(part.len() > 10 && part.len() < whole.len(), "{} of {}", part.len(), whole.len());
    assert_eq!(part, expected);
}

/// A limit holds over a file without events too, so that a wrong file must not pass for a right one.
#[test]
fn nothing_that_was_compared_is_no_success() {
    let trial = Trial::new(&fleet(300, 2));
    let notes = "# Notes\n".repeat(20) + r#"{"type":"turn_start","thread_id":"a"}"#;
    let verdicts = trial.run(&["eval", "capture.jsonl"]).stdout;
    for (name, bytes, says) in [
        ("empty.jsonl", "", "holds no record"),
        ("notes.md", notes.as_str(), "hardly anything was compared"),
        ("verdicts.jsonl", verdicts.as_str(), "is an event; nothing was compared"),
    ] {
        trial.write(name, bytes.as_bytes());
        let ran = trial.run(&["diff", "--policy", "a.yaml", "--policy", "b.yaml", name, "--fail-on", "flips>0"]);
        assert_eq!(ran.exit, Some(3), "{name}: {}", ran.stderr);
        assert_says(&ran.stderr, &[says, "name a capture of the events topic"]);
    }
    // A file of zstd has a frame even if it holds nothing: a file without bytes is a capture that broke off.
    trial.write("empty.jsonl.zst", b"");
    let ran = trial.run(&["diff", "--policy", "a.yaml", "--policy", "b.yaml", "empty.jsonl.zst", "--fail-on", "flips>0"]);
    assert_eq!(ran.exit, Some(1), "{}", ran.stderr);
    assert_says(&ran.stderr, &["found no file of zstd", "0 bytes"]);
}

/// Verdicts of another day match nothing, and suspensions hold under the key that the policies have.
#[test]
fn what_does_not_belong_together_is_said() {
    let trial = Trial::new(&fleet(300, 2));
    trial.write("other.jsonl", fleet(300, 2).replace("thread-", "other-").as_bytes());
    let decisions = trial.run(&["eval", "other.jsonl"]).stdout;
    trial.write("decisions.jsonl", decisions.as_bytes());
    let ran = trial.run(&[
        "diff",
        "--against",
        "recorded",
        "--decisions",
        "decisions.jsonl",
        "--policy",
        "b.yaml",
        "capture.jsonl",
        "--fail-on",
        "flips>0",
    ]);
    assert_eq!(ran.exit, Some(3), "{}", ran.stderr);
    assert_says(&ran.stderr, &["are on one side only", "name the decisions on the same traffic"]);
    let key = |key: &str, more: &str| format!("privacy: {{subject_key: {key}}}\n{more}");
    let stricter = "tool_loop_guardrails: {exact_failure_block_after: 9}";
    trial.write("k1.yaml", key("a-key-of-some-length", "").as_bytes());
    trial.write("k2.yaml", key("a-key-of-some-length", stricter).as_bytes());
    trial.write("k3.yaml", key("another-key", stricter).as_bytes());
    trial.write("controls.jsonl", b"");
    let both =
        |other: &str| trial.run(&["diff", "--policy", "k1.yaml", "--policy", other, "--controls", "controls.jsonl", "capture.jsonl"]);
    assert_eq!(both("k2.yaml").exit, Some(0));
    assert_eq!(both("k3.yaml").exit, Some(2));
    assert_says(&both("k3.yaml").stderr, &["the configurations differ in privacy.subject_key"]);
}

/// Records of another topic are decided by themselves, and this is said.
#[test]
fn several_topics_are_told() {
    let (one, other) = (fleet(300, 2), fleet(300, 2).replace("agent.events", "other.events"));
    let trial = Trial::new(&(one + &other));
    let says = ["the records are of 2 topics, agent.events and other.events among them", "take a capture of one topic"];
    let ran = trial.diff(&[]);
    assert_eq!(ran.exit, Some(0), "{}", ran.stderr);
    assert_says(&ran.stderr, &says);
    assert_says(&trial.run(&["eval", "--digest", "capture.jsonl"]).stderr, &says);
    trial.write("one.jsonl", other.as_bytes());
    assert!(!trial.run(&["eval", "--digest", "one.jsonl"]).stderr.contains("topics"));
}

/// What a command reads is never written over, and a full disk names the file.
#[test]
fn outputs_are_no_inputs() {
    let whole = fleet(3_000, 2);
    let trial = Trial::new(&whole);
    let controls = r#"{"key":"passport/x","value":null}"#;
    trial.write("controls.jsonl", controls.as_bytes());
    for option in ["--flips", "--html"] {
        for file in ["capture.jsonl", "./a.yaml", "b.yaml", "controls.jsonl"] {
            let before = trial.read(file);
            let ran = trial.diff(&["--controls", "controls.jsonl", option, file]);
            assert_eq!(ran.exit, Some(1), "{option} {file}");
            assert_says(&ran.stderr, &[option, "which this command reads; name another file"]);
            assert_eq!(trial.read(file), before);
        }
        let full = trial.diff(&[option, "/dev/full"]);
        assert_eq!(full.exit, Some(1));
        assert_says(&full.stderr, &[&format!("{option} /dev/full: cannot be written"), "No space left"]);
    }
}

/// Whether a file is compressed is told by its bytes, and a part of a file has no digest without a word.
#[test]
fn a_digest_is_of_what_was_read() {
    let whole = fleet(300, 2);
    let trial = Trial::new(&whole);
    let digest = |name: &str| trial.run(&["eval", "--digest", name]);
    let all = digest("capture.jsonl");
    assert_eq!(all.exit, Some(0), "{}", all.stderr);
    let packed = zstd::encode_all(whole.as_bytes(), 3).unwrap();
    trial.write("packed", &packed);
    assert_eq!((digest("packed").exit, digest("packed").stdout), (Some(0), all.stdout.clone()));
    trial.write("plain.zst", whole.as_bytes());
    assert_says(&digest("plain.zst").stderr, &["plain.zst", "no file of zstd, as its name says"]);
    trial.write("cut.zst", &packed[..packed.len() / 2]);
    let cut = digest("cut.zst");
    assert_eq!(cut.exit, Some(3));
    assert_says(&cut.stderr, &["unreadable_from_here", "--resume"]);
    assert_ne!(cut.stdout, all.stdout);
    let mut damaged = packed.clone();
    damaged[packed.len() / 2..][..4].fill(0xff);
    trial.write("damaged.zst", &damaged);
    assert_eq!(digest("damaged.zst").exit, Some(3));
    assert_says(&digest("damaged.zst").stderr, &["unreadable_from_here", "capture it again"]);
    trial.write("controls.jsonl", br#"{"ky":1}"#);
    let refused = trial.run(&["eval", "--digest", "capture.jsonl", "--controls", "controls.jsonl"]);
    assert_eq!((refused.exit, refused.stdout.as_str()), (Some(3), ""));
    assert_says(&refused.stderr, &["there is no digest"]);
}

/// Each difference has the reason of each side, as its policy gives it, on a terminal too.
#[test]
fn a_difference_is_told_with_the_reason_of_each_side() {
    let mut topic = Topic::new(1);
    let call = r#"{"type":"tool_call","event_id":"e1","thread_id":"t1","turn_id":"1","tool_call_id":"c1","tool_name":"deploy","tool_input":{"path":"MARKER-7f3a"}}"#;
    topic.push("t1", call);
    let trial = Trial::new(&topic.lines);
    let ran = trial.diff(&["--flips", "flips.jsonl"]);
    let flip: Value = serde_json::from_str(&trial.read("flips.jsonl")).unwrap();
    let reason = flip["to_message"].as_str().unwrap().to_owned();
    assert!(!reason.is_empty() && flip.get("from_message").is_none(), "{flip}");
    assert_eq!(summary(&ran)["changes"][0]["examples"][0]["to_message"], reason);
    let table = trial.diff(&["-o", "table"]).stdout;
    assert_says(&table, &["oap.tool_not_allowed", &format!("B: {reason}")]);
    assert!(!format!("{table}{}{flip}", ran.stdout).contains("MARKER-7f3a"));
}

/// A redacted capture has lost what passports judge: this is said once, with how many records it is true of.
#[test]
fn redacted_records_are_told_where_arguments_are_read() {
    let mut topic = Topic::new(1);
    for number in 0..3 {
        topic.push(
            "t1",
            &format!(
                r#"{{"type":"tool_call","event_id":"e{number}","thread_id":"t1","turn_id":"1","tool_call_id":"c{number}","tool_name":"deploy","tool_input":{{}}}}"#
            ),
        );
    }
    let lines: String = topic.lines.lines().map(|line| format!("{},\"redacted\":true}}\n", line.strip_suffix('}').unwrap())).collect();
    let trial = Trial::new(&lines);
    let said = "3 records are redacted: their arguments are stand-ins";
    let plain = trial.diff(&[]);
    assert!(!plain.stderr.contains("redacted") && summary(&plain)["redacted"] == 0, "lists of tools read no arguments: {plain:?}");
    trial.write("b.yaml", b"guardrails: {enabled: true, provider: {use: oap_passport}}\n");
    let ran = trial.diff(&[]);
    assert_eq!((ran.stderr.matches(said).count(), &summary(&ran)["redacted"]), (1, &json!(3)), "{ran:?}");
    assert_says(&trial.diff(&["-o", "table"]).stdout, &[said]);
    for arguments in [&["eval", "-c", "b.yaml", "capture.jsonl"][..], &["eval", "--digest", "-c", "b.yaml", "capture.jsonl"]] {
        let ran = trial.run(arguments);
        assert_eq!(ran.stderr.matches(said).count(), 1, "{ran:?}");
    }
    assert!(!trial.run(&["eval", "-c", "a.yaml", "capture.jsonl"]).stderr.contains("redacted"));
}
