//! Tests `tollgate loops` through the real binary, and the table of README that it makes.

use serde_json::{Value, json};

use crate::support::{Ran, run, temporary, tollgate};

const CORPUS: &str = "tests/corpus/loops";
const RUNS: [&str; 2] = ["tests/corpus/runs/sweagent-demos.jsonl.zst", "tests/corpus/runs/tau-airline.jsonl.zst"];
/// How the table of README begins.
const HEAD: &str = "| preset | loops found";

fn loops(arguments: &[&str], input: &str) -> Ran {
    let ran = run(tollgate().arg("loops").args(arguments), input.as_bytes());
    assert!(ran.exit == Some(0) || arguments.contains(&"--judged") || arguments.contains(&"--thread"), "{ran:?}");
    ran
}

/// Returns the rows of a report.
fn rows(files: &[&str]) -> Vec<Value> {
    loops(&[&["report", "-o", "json"], files].concat(), "").json_lines()
}

/// Returns the table of README.
fn table() -> String {
    let (corpus, runs) = (rows(&[CORPUS]), rows(&RUNS));
    let head = "| preset | loops found | soft loops found | productive harmed | precision | calls of loops spared | real runs refused or halted | of these, new work lost |\n";
    let percent = |share: &Value| format!("{:.0} %", share.as_f64().unwrap() * 100.0);
    let line = |(corpus, run): (&Value, &Value)| {
        let of = |part: &str, whole: &str| format!("{} of {}", corpus[part], corpus[whole]);
        let lost = run["new_denied"].as_u64().unwrap().max(run["new_cut_off"].as_u64().unwrap());
        format!(
            "| `{}` | {} | {} | {} | {} | {} | {} of {} | {lost} |\n",
            corpus["preset"].as_str().unwrap(),
            of("loops_found", "loops"),
            of("soft_loops_found", "soft_loops"),
            of("productive_harmed", "productive"),
            percent(&corpus["precision"]),
            percent(&corpus["spared"]),
            run["stopped"],
            run["threads"],
        )
    };
    format!("{head}|---|---|---|---|---|---|---|---|\n{}", corpus.iter().zip(&runs).map(line).collect::<String>())
}

#[test]
fn the_table_in_the_readme_is_what_the_report_says() {
    let readme = std::fs::read_to_string("README.md").unwrap();
    let (before, rest) = readme.split_at(readme.find(HEAD).expect("README has the table"));
    let (found, after) = rest.split_at(rest.find("\n\n").expect("a blank line ends the table") + 1);
    let wanted = table();
    if std::env::var_os("TOLLGATE_UPDATE_FIXTURES").is_some() {
        std::fs::write("README.md", format!("{before}{wanted}{after}")).unwrap();
        return;
    }
    assert_eq!(found, wanted, "`TOLLGATE_UPDATE_FIXTURES=1 cargo test --test integration -- loops` writes the table anew");
}

/// Returns the events of a thread that makes the same call again and again.
fn repeated(thread: &str, times: usize) -> String {
    let step = |number: usize| {
        let call = json!({"type": "tool_call", "thread_id": thread, "event_id": format!("c{number}"), "tool_call_id": format!("{number}"), "tool_name": "list", "tool_input": {}});
        let result = json!({"type": "tool_result", "thread_id": thread, "event_id": format!("r{number}"), "tool_call_id": format!("{number}"), "tool_name": "list", "result": "a b"});
        format!("{call}\n{result}\n")
    };
    (0..times).map(step).collect()
}

#[test]
fn labels_give_precision_and_recall_and_a_bad_label_is_named() {
    let events = temporary(&(repeated("stuck", 6) + &repeated("fine", 2)));
    let path = events.path().to_str().unwrap();
    let labels = temporary("{\"thread_id\":\"stuck\",\"verdict\":\"loop\"}\n{\"thread_id\":\"fine\",\"verdict\":\"productive\"}\n");
    let report = loops(&["report", path, "--judged", labels.path().to_str().unwrap(), "-o", "json"], "").json_lines();
    let ours = report.iter().find(|row| row["preset"] == "tollgate").unwrap();
    let expected = json!([2, 1, 1.0, 1.0, 0.5, 0]);
    assert_eq!(
        json!([ours["threads"], ours["denied"], ours["precision"], ours["recall"], ours["spared"], ours["productive_harmed"]]),
        expected
    );
    // A call that was refused live has no result, and was spared all the same.
    let live: Vec<_> =
        repeated("stuck", 6).lines().enumerate().filter(|(at, _)| *at < 6 || at % 2 == 0).map(|(_, line)| format!("{line}\n")).collect();
    let live = temporary(&live.concat());
    let live = live.path().to_str().unwrap();
    let ran = loops(&["report", live, "--judged", labels.path().to_str().unwrap(), "-o", "json"], "");
    let rows = ran.json_lines();
    assert_eq!(rows.iter().find(|row| row["preset"] == "tollgate").unwrap()["spared"], 0.5, "{ran:?}");
    assert!(ran.stderr.contains("--judged: 1 of 2 labels are of threads without a call in the files, and count nowhere: fine"), "{ran:?}");
    let bad = temporary("{\"thread_id\":\"stuck\",\"verdict\":\"maybe\"}\n");
    let ran = loops(&["report", path, "--judged", bad.path().to_str().unwrap()], "");
    assert_eq!(ran.exit, Some(1));
    assert!(ran.stderr.contains("line 1: verdict: found another word, or nothing; write loop, soft_loop or productive"), "{}", ran.stderr);
}

#[test]
fn the_steps_of_a_thread_are_explained() {
    let events = temporary(&repeated("stuck", 5));
    let path = events.path().to_str().unwrap();
    let steps = loops(&["explain", path, "--thread", "stuck", "--preset", "tollgate", "-o", "json"], "").json_lines();
    let seen: Vec<_> = steps.iter().map(|step| json!([step["on_call"], step["result"], step["on_result"], step["result_count"]])).collect();
    let refused = json!(["same_result_denied", "known", "not_executed", 0]);
    let expected = [
        json!(["allow", "new", "allow", 0]),
        json!(["allow", "known", "same_result_warning", 2]),
        json!(["allow", "known", "same_result_warning", 3]),
        refused.clone(),
        refused,
    ];
    assert_eq!(seen, expected);
    let missing = loops(&["explain", path, "--thread", "other"], "");
    assert_eq!(missing.exit, Some(1));
    assert!(missing.stderr.contains("found no call of this thread"), "{}", missing.stderr);
}

#[test]
fn a_conversation_is_explained_by_the_name_of_its_file() {
    let steps = loops(&["explain", CORPUS, "--thread", "again-hotel", "--preset", "openhands", "-o", "json"], "").json_lines();
    assert_eq!((steps.len(), &steps[3]["on_result"], &steps[3]["result_count"]), (8, &json!("same_result_halt"), &json!(4)));
}

#[test]
fn a_line_that_is_no_event_is_told_and_left_out() {
    let events = temporary(&format!("nonsense\n{}", repeated("stuck", 1)));
    let report = |file: &tempfile::NamedTempFile| run(tollgate().args(["loops", "report", "-o", "json"]).arg(file.path()), b"");
    let ran = report(&events);
    assert!(ran.exit == Some(3) && ran.stderr.contains("line 1: "), "{ran:?}");
    assert_eq!(ran.json_lines()[0]["threads"], 1);
    let ran = report(&temporary("thread,tool\n1,bash\n"));
    assert!(ran.exit == Some(1) && ran.stderr.contains("no line holds an event; name a capture"), "{ran:?}");
}
