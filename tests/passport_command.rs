//! Tests passports through the real binary: `passport check`, and what `config check` and `eval` make of a configured passport file.

use crate::support::{Ran, run, temporary, tollgate};
use serde_json::{Value, json};

const RESTRICTIVE: &str = "examples/passports/restrictive.json";
const PERMISSIVE: &str = "examples/passports/permissive.json";

fn check(arguments: &[&str], input: &str) -> Ran {
    run(tollgate().args(["passport", "check"]).args(arguments), input.as_bytes())
}

fn report(ran: &Ran) -> Value {
    serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{ran:?}"))
}

#[test]
fn a_passport_without_faults_ends_with_0_and_one_with_faults_with_1() {
    let good = check(&[PERMISSIVE], "");
    assert_eq!(good.exit, Some(0), "{good:?}");
    assert_eq!(good.stderr, format!("{PERMISSIVE} is a passport without faults\n"));
    let remark = &report(&good)["remarks"][0];
    assert_eq!((&remark["entry"], &remark["runs_anything"]), (&json!("*"), &json!(true)), "said once, on stdout");
    assert_eq!(report(&good)["faults"], json!([]));
    assert!(report(&good)["passport_digest"].as_str().unwrap().starts_with("sha256:"));
    let bad = check(&["-"], r#"{"status": "Active"}"#);
    assert_eq!(bad.exit, Some(1));
    let faults = report(&bad)["faults"].as_array().unwrap().clone();
    let status = faults.iter().find(|fault| fault["path"] == "status").unwrap();
    assert_eq!(
        *status,
        json!({"path": "status", "found": "\"Active\"", "expected": "draft, active, suspended, revoked", "effect": "denies every call: oap.passport_suspended"})
    );
    assert!(bad.stderr.starts_with("the passport is a passport with "), "{}", bad.stderr);
}

#[test]
fn an_interpreter_on_the_list_is_told_and_fails_if_that_is_asked_for() {
    let passport = |list: &str| std::fs::read_to_string(RESTRICTIVE).unwrap().replace("\"git status\"", list);
    let open = check(&["-", "--strict"], &passport("\"python3\", \"docker run\""));
    assert_eq!(open.exit, Some(1), "{open:?}");
    let remarks = report(&open)["remarks"].as_array().unwrap().clone();
    assert!(remarks.iter().any(|remark| remark["entry"] == "python3" && remark["runs_anything"] == true), "{remarks:?}");
    assert!(remarks.iter().any(|remark| remark["entry"] == "docker run" && remark["runs_anything"] == false), "{remarks:?}");
    let entry = |at: usize| format!("a fault with --strict: limits.system.command.execute.allowed_commands[{at}]");
    assert!(open.stderr.contains(&entry(0)) && !open.stderr.contains(&entry(1)), "{}", open.stderr);
    assert_eq!(check(&["-"], &passport("\"python3\"")).exit, Some(0));
    let unknown = check(&["-", "--strict"], &passport("\"frobnicate\""));
    assert_eq!(unknown.exit, Some(1), "nothing is known of the program");
    assert_eq!(check(&["-", "--strict"], &passport("\"python3 --version\"")).exit, Some(0));
    assert_eq!(check(&[RESTRICTIVE, "--strict"], "").exit, Some(0));
}

#[test]
fn a_field_that_works_is_no_fault_and_a_field_that_does_not_says_what_to_write() {
    let with = |member: &str| std::fs::read_to_string(RESTRICTIVE).unwrap().replacen('{', &format!("{{{member}, "), 1);
    let expiring = with(r#""expires_at": "2030-01-01T00:00:00Z""#);
    let ran = check(&["-"], &expiring);
    assert_eq!((ran.exit, report(&ran)["faults"].as_array().unwrap().len()), (Some(0), 1), "{ran:?}");
    assert!(ran.stderr.contains("without faults; evaluation takes fields as they are written that the schema forbids"), "{}", ran.stderr);
    assert_eq!(check(&["-", "--strict"], &expiring).exit, Some(1));
    for (member, expected) in [
        (r#""allowed_commands": ["ls"]"#, "no such field: it belongs under limits.system.command.execute"),
        (r#""allowed_servers": ["github"]"#, "no such field: it belongs under limits.mcp.tool.execute"),
        (r#""expires": "2030-01-01T00:00:00Z""#, "no such field: write expires_at"),
    ] {
        let ran = check(&["-"], &with(member));
        assert_eq!((ran.exit, &report(&ran)["faults"][0]["expected"]), (Some(1), &json!(expected)), "{ran:?}");
    }
}

#[test]
fn what_is_no_passport_says_where() {
    for (text, expected) in [
        ("{\n \"a\": tru}", "not JSON: unexpected character at line 2, column 7"),
        ("{\"limits\": {\"a\": 1, \"a\": 2}}", "limits.a is there more than once"),
        ("[]", "an array, where an object is expected"),
    ] {
        let ran = check(&["-"], text);
        assert_eq!(ran.exit, Some(1));
        assert_eq!(report(&ran)["unusable"], expected, "{text}");
        assert_eq!(report(&ran)["is_passport"], false);
    }
    let missing = check(&["/nowhere/passport.json"], "");
    assert_eq!((missing.exit, missing.stdout.as_str()), (Some(1), ""));
    assert!(missing.stderr.starts_with("tollgate: /nowhere/passport.json: cannot be read: "), "{}", missing.stderr);
    assert_eq!(check(&[], "").exit, Some(2));
    assert_eq!(check(&[PERMISSIVE, "--explain", "bash"], "").exit, Some(2));
    assert_eq!(check(&[PERMISSIVE, "--explain", "bash", "ls", "--at", "noon"], "").exit, Some(2));
}

#[test]
fn a_call_is_explained_check_by_check() {
    let ran = check(&[PERMISSIVE, "--explain", "bash", "echo hi && rm -rf /tmp/x"], "");
    let explanation = &report(&ran)["explanation"];
    assert_eq!(explanation["allow"], false);
    assert_eq!(explanation["code"], "oap.blocked_pattern");
    assert_eq!(explanation["message"], "Command contains blocked pattern: rm -rf");
    assert_eq!(explanation["policy_id"], "system.command.execute.v1");
    let checks: Vec<String> = explanation["checks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|check| format!("{} {}", check["check"], check["said"]).replace('"', ""))
        .collect();
    let expected = [
        "tool name passed",
        "arguments passed",
        "passport passed",
        "well-formed passed",
        "status passed",
        "spec_version passed",
        "not_before passed",
        "expiry passed",
        "mapping passed",
        "capability passed",
        "command denied",
        "secrets passed",
        "files of arguments passed",
        "max_execution_time passed",
        "other limits passed",
    ];
    assert_eq!(checks, expected);
    let commands: Vec<&str> =
        explanation["commands"].as_array().unwrap().iter().map(|command| command["command"].as_str().unwrap()).collect();
    assert_eq!(commands, ["echo hi", "rm -rf /tmp/x"]);
    let text = check(&[PERMISSIVE, "--format", "text", "--explain", "bash", "cat a && rm -rf /"], "").stdout;
    assert!(text.contains("commands in this line:\n  cat a\n  rm -rf /\ndenied by"), "{text}");
    let text = check(&[PERMISSIVE, "--format", "text", "--explain", "read_file", r#"{"path": "/app/.env"}"#], "");
    assert!(
        text.stdout.contains("denied by data.file.read.v1: oap.blocked_pattern: File path matches default sensitive read pattern: .env*\n"),
        "{}",
        text.stdout
    );
    assert_eq!(text.stderr, "");
    let expiring = json!({"status": "active", "spec_version": "oap/1.0", "expires_at": "2026-01-01T00:00:00Z"}).to_string();
    for (at, code) in [("2025-12-31T23:59:59Z", "oap.allowed"), ("2026-01-01T00:00:00Z", "oap.passport_expired")] {
        let ran = check(&["-", "--explain", "todo", "{}", "--at", at], &expiring);
        assert_eq!(report(&ran)["explanation"]["code"], code);
    }
    let beginning = expiring.replace("expires_at", "not_before");
    for (at, code) in [("2025-12-31T23:59:59Z", "oap.passport_not_yet_valid"), ("2026-01-01T00:00:00Z", "oap.allowed")] {
        let ran = check(&["-", "--explain", "todo", "{}", "--at", at], &beginning);
        assert_eq!(report(&ran)["explanation"]["code"], code);
    }
    let restricting = expiring.replace("expires_at", "valid_until");
    let ran = report(&check(&["-", "--explain", "todo", "{}"], &restricting));
    let message = ran["explanation"]["message"].as_str().unwrap();
    assert!(message.contains("valid_until is not known and may be meant to restrict, expected no such member: write"), "{message}");
    let faults = ran["faults"].as_array().unwrap();
    assert!(faults.iter().any(|fault| fault["path"] == "valid_until" && fault["effect"] == "denies every call: oap.passport_invalid"));
}

#[test]
fn the_nearest_entry_of_a_list_is_named() {
    let nearest = |tool: &str, input: &str| {
        let explanation =
            report(&check(&[RESTRICTIVE, "--at", "2026-01-01T00:00:00Z", "--explain", tool, input], ""))["explanation"].clone();
        assert_eq!(explanation["allow"], false, "{explanation}");
        explanation["nearest"].as_array().into_iter().flatten().map(|said| said.as_str().unwrap()).collect::<Vec<_>>().join("; ")
    };
    let near = |entry, word, has| {
        format!(
            "the nearest entry of allowed_commands is '{entry}', and the command departs from it at word {word}, where the entry has '{has}'; "
        )
    };
    let add = "to allow every command of the line, add to limits.system.command.execute.allowed_commands: ";
    assert_eq!(nearest("bash", "ls && git push origin main"), near("git diff", 2, "diff") + add + "\"git push\"");
    assert_eq!(nearest("bash", "/usr/bin/wc x"), near("wc", 1, "wc") + add + "the program at character 1");
    assert_eq!(nearest("bash", "frobnicate"), format!("{add}the program at character 1"));
    assert_eq!(nearest("bash", "ls | tail -5 && jq . x | tail"), format!("{add}\"tail\", \"jq\""));
    assert_eq!(nearest("bash", "ls $("), "", "what cannot be proven is near to nothing");
    assert_eq!(nearest("mcp__github__getissue", "{}"), "the nearest entry of allowed_tools is 'get_*'");
    let text = check(&[RESTRICTIVE, "--format", "text", "--explain", "bash", "git push"], "").stdout;
    assert!(text.contains("\nthe nearest entry of allowed_commands is 'git diff', "), "{text}");
}

#[test]
fn an_explanation_follows_the_configuration() {
    let config = temporary(
        "guardrails: {enabled: true, provider: {use: oap_passport, config: {tool_capabilities: {my_shell: system.command.execute, bash: null}}}}",
    );
    let explain = |tool: &str| {
        let path = config.path().to_str().unwrap();
        report(&check(&[PERMISSIVE, "--config", path, "--explain", tool, r#"{"command": "ls"}"#], ""))["explanation"]["code"].clone()
    };
    assert_eq!(explain("my_shell"), "oap.allowed");
    assert_eq!(explain("bash"), "oap.unknown_capability");
}

/// Runs `config check` and `eval` on a call of `bash` under this passport.
fn evaluate(passport: &str, command: &str) -> (Ran, Ran) {
    let file = temporary(passport);
    let yaml = format!(
        "guardrails:\n  enabled: true\n  provider:\n    use: my_oap_provider:OAPGuardrailProvider\n    config:\n      passport_path: {}\n",
        file.path().display()
    );
    let config = temporary(&yaml);
    let with_config =
        |arguments: &[&str], input: &str| run(tollgate().args(arguments).arg("--config").arg(config.path()), input.as_bytes());
    let event = json!({"type": "tool_call", "thread_id": "t", "event_id": "e", "tool_call_id": "c", "tool_name": "bash", "tool_input": {"command": command}});
    (with_config(&["config", "check"], ""), with_config(&["eval"], &format!("{event}\n")))
}

#[test]
fn the_guides_configuration_gives_the_guides_answer() {
    let (checked, evaluated) = evaluate(&std::fs::read_to_string(PERMISSIVE).unwrap(), "rm -rf test.txt");
    assert_eq!(checked.exit, Some(0), "{checked:?}");
    let verdict = &evaluated.json_lines()[0];
    assert_eq!(
        (&verdict["action"], &verdict["code"], &verdict["decided_by"]),
        (&json!("block"), &json!("oap.blocked_pattern"), &json!("guardrail"))
    );
    let shown = "Guardrail denied: tool 'bash' was blocked (oap.blocked_pattern). Reason: Command contains blocked pattern: rm -rf. Choose an alternative approach.";
    assert_eq!(verdict["synthetic_result"], shown);
    assert_eq!(verdict["reasons"][0]["policy_id"], "system.command.execute.v1");
    assert!(verdict["reasons"][0]["passport_digest"].as_str().unwrap().starts_with("sha256:"));
    let (_, allowed) = evaluate(&std::fs::read_to_string(PERMISSIVE).unwrap(), "ls");
    let verdict = &allowed.json_lines()[0];
    assert_eq!((&verdict["action"], &verdict["code"], &verdict["message"]), (&json!("allow"), &json!("allow"), &json!("")));
    assert_eq!(
        (&verdict["reasons"][0]["code"], &verdict["reasons"][0]["policy_id"]),
        (&json!("oap.allowed"), &json!("system.command.execute.v1"))
    );
}

#[test]
fn a_passport_that_cannot_be_used_starts_and_denies() {
    let (checked, evaluated) = evaluate("{\"status\": \"active\"", "ls");
    assert_eq!(checked.exit, Some(0));
    assert!(checked.stderr.contains("valid, and denies every call under a passport"), "{}", checked.stderr);
    for ran in [&checked, &evaluated] {
        assert!(
            ran.stderr.contains(
                "is no usable passport: not JSON: unexpected end of text at line 1, column 20; every call that relies on it is denied"
            ),
            "{}",
            ran.stderr
        );
    }
    assert_eq!(evaluated.json_lines()[0]["code"], "oap.passport_invalid");
}

#[test]
fn the_policy_version_depends_on_the_passport() {
    let version = |passport: &str| evaluate(passport, "ls").1.json_lines()[0]["policy_version"].clone();
    // The file's name is another each time, so this compares configurations with one file whose content changes.
    let file = temporary("{}");
    let yaml = format!(
        "guardrails: {{enabled: true, passport: {}, provider: {{use: oap_passport}}}}",
        file.path().with_extension("json").display()
    );
    let path = file.path().with_extension("json");
    let config = temporary(&yaml);
    let mut versions = Vec::new();
    for text in ["{}", "{ }", r#"{"status": "active"}"#, "{"] {
        std::fs::write(&path, text).unwrap();
        let ran = run(tollgate().args(["config", "check", "--config"]).arg(config.path()), b"");
        assert_eq!(ran.exit, Some(0), "{ran:?}");
        versions.push(ran.stderr.split("policy_version ").nth(1).unwrap().to_owned());
    }
    std::fs::remove_file(&path).unwrap();
    assert_eq!(versions[0], versions[1]);
    assert!(versions[0] != versions[2] && versions[2] != versions[3] && versions[0] != versions[3]);
    assert!(version("{}").is_string());
    let gone = run(tollgate().args(["config", "check", "--config"]).arg(config.path()), b"");
    assert_eq!((gone.exit, gone.stdout.as_str()), (Some(1), ""));
    assert!(gone.stderr.contains("guardrails.passport: found ") && gone.stderr.contains("write the path of a passport"), "{}", gone.stderr);
}

/// Entries are proposed for what a capture holds and the passport refuses, with places for what changes.
#[test]
fn entries_are_proposed_for_the_refused_commands_of_a_capture() {
    let folder = tempfile::tempdir().unwrap();
    let capture = folder.path().join("capture.jsonl");
    let call = |command: &str| json!({"type": "tool_call", "tool_name": "bash", "tool_input": {"command": command}}).to_string();
    let lines = ["gh pr view 7", "gh pr view 8", "git status", "kubectl get pods && gh pr view 9"].map(call).join("\n");
    let packed = folder.path().join("capture.jsonl.zst");
    std::fs::write(&capture, &lines).unwrap();
    std::fs::write(&packed, zstd::encode_all(lines.as_bytes(), 3).unwrap()).unwrap();
    for capture in [capture, packed] {
        let ran = check(&["-", "--suggest", capture.to_str().unwrap()], &std::fs::read_to_string(RESTRICTIVE).unwrap());
        let found: Value = serde_json::from_str(&ran.stdout).unwrap();
        let expected = json!([{"entry": "gh pr view {number}", "commands": 3}, {"entry": "kubectl get pods", "commands": 1}]);
        assert_eq!(found["suggestions"], expected, "{}", ran.stderr);
        assert!(!ran.stderr.contains("entries are proposed"), "{}", ran.stderr);
    }
    let many = folder.path().join("many.jsonl");
    std::fs::write(&many, (0..51).map(|at| call(&format!("tool{at}"))).collect::<Vec<_>>().join("\n")).unwrap();
    let ran = check(&["-", "--suggest", many.to_str().unwrap()], &std::fs::read_to_string(RESTRICTIVE).unwrap());
    let found: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(found["suggestions"].as_array().unwrap().len(), 50);
    assert!(ran.stderr.contains("50 of 51 entries are proposed"), "{}", ran.stderr);
}
