//! Checks that mistakes are reported with their key, the shape of what was found, and the fix.

use super::*;

#[test]
fn mistakes_name_the_key_what_was_found_and_what_to_write() {
    let cases = vec![
        ("kafak: {}", "kafak: found an unknown key; write `kafka`, or remove it"),
        ("kafka: {broker: x}", "kafka.broker: found an unknown key; write `brokers`, or remove it"),
        ("kafka: {topics: {event: x}}", "kafka.topics.event: found an unknown key; write `events`, or remove it"),
        (
            "tool_loop_guardrails: {exact_failure_warn_afer: 2}",
            "tool_loop_guardrails.exact_failure_warn_afer: found an unknown key; write `exact_failure_warn_after`",
        ),
        (
            "tool_loop_guardrails: {warn_after: {exact_failures: 2}}",
            "tool_loop_guardrails.warn_after.exact_failures: found an unknown key; write `exact_failure`",
        ),
        (
            "safety_finish_reason: {detectors: [{use: anthropic_refusal, config: {finish_reasons: [x]}}]}",
            "safety_finish_reason.detectors[0].config.finish_reasons: found an unknown key; write `stop_reasons`",
        ),
        (
            "guardrails: {enabled: true, provider: {use: allowlist, config: {denied: [x]}}}",
            "guardrails.provider.config.denied: found an unknown key; write `denied_tools`",
        ),
        ("guardrails: {enabled: 1}", "guardrails.enabled: found a number; write true or false"),
        (
            "serve: {tls: {certificate_file: a}}",
            "serve.tls.key_file: found nothing beside certificate_file; name the file of the certificate's private key",
        ),
        (
            "serve: {tls: {key_file: a}}",
            "serve.tls.certificate_file: found nothing beside key_file; name the file of the key's certificate",
        ),
        (
            "serve: {tokens: t, tls: {client_ca_file: a}}",
            "serve.tls.certificate_file: found nothing beside client_ca_file; name the files of the server's certificate and key too",
        ),
        (
            "serve: {tls: {certificate_file: a, key_file: b, client_ca_file: c}}",
            "serve.tls.client_ca_file: found a file, and no serve.tokens, so that no certificate of a client names a caller",
        ),
        ("limits: {event_bytes_max: lots}", "limits.event_bytes_max: found a string; write a whole number of 1 or more"),
        ("limits: {thread_idle_seconds_max: 0}", "limits.thread_idle_seconds_max: found a number; write a whole number of 1 or more"),
        (
            "tool_loop_guardrails: {preset: best}",
            "tool_loop_guardrails.preset: found another word; write seed or tollgate or hermes or openhands or gemini_cli or deerflow",
        ),
        (
            "tool_loop_guardrails: {preset: tollgate, exact_failure_warn_after: 2}",
            "tool_loop_guardrails.exact_failure_warn_after: found an unknown key; remove it",
        ),
        (
            "tool_loop_guardrails: {preset: tollgate, rules: {same_result: {warn_after: 9}}}",
            "tool_loop_guardrails.rules.same_result.warn_after: found a number that is never reached, because `tool_loop_guardrails.rules.same_result.deny_after` comes first; write a smaller number, or 0 to leave it out",
        ),
        (
            "tool_loop_guardrails: {preset: tollgate, rules: {error_class: {deny_after: 2}}}",
            "tool_loop_guardrails.rules.error_class.deny_after: found an unknown key",
        ),
        (
            "tool_loop_guardrails: {preset: tollgate, calls_per_turn_max: {web_search: 0}}",
            "tool_loop_guardrails.calls_per_turn_max.web_search: found a number; write a whole number of 1 or more",
        ),
        (
            "tool_loop_guardrails: {preset: tollgate, calls_per_turn_max: {'Bash(rm *)': 2}}",
            "tool_loop_guardrails.calls_per_turn_max.Bash(rm *): found an entry that the name of no tool matches; write the name of a tool, in which * stands for any characters; what a tool is given is for a passport to limit",
        ),
        (
            "tool_loop_guardrails: {preset: tollgate, waiting_tools: {'poll|wait': 9}}",
            "tool_loop_guardrails.waiting_tools.poll|wait: found an entry that the name of no tool matches; write the name of a tool",
        ),
        ("tool_loop_guardrails: {rules: {}}", "tool_loop_guardrails.rules: found an unknown key"),
        (
            "tool_loop_guardrails: {no_progress_warn_after: -1}",
            "tool_loop_guardrails.no_progress_warn_after: found a negative number; write a whole number of 0 or more",
        ),
        ("worker: {members: 1.5}", "worker.members: found a fraction; write a whole number of 1 or more"),
        ("limits: {thread_bytes_max: 100}", "limits.thread_bytes_max: found a smaller number; write 4096 or more"),
        (
            "kafka: {brokers: 'a:1,http://kafka:9092'}",
            "kafka.brokers: found a URL at place 2; write HOST:PORT, several of them separated by commas",
        ),
        ("kafka: {brokers: 'kafka:x'}", "kafka.brokers: found an address whose port is no number of 1 to 65535"),
        (
            "kafka: {topics: {events: a, decisions: a}}",
            "kafka.topics.decisions: found the name of kafka.topics.events too; give each of the two a topic of its own",
        ),
        (
            "kafka: {topics: {events: agent.events.dlq}}",
            "kafka.topics.dlq: found the name of kafka.topics.events too; give each of the two a topic of its own",
        ),
        ("kafka: {topics: {alerts: b, state: b}}", "kafka.topics.state: found the name of kafka.topics.alerts too"),
        (
            "kafka: {topics: {decisions: d}, reply_topics: [r.*, d]}",
            "kafka.reply_topics: found the name of kafka.topics.decisions among them; remove it: replies need topics of their own",
        ),
        ("kafka: [a]", "kafka: found a list; write a mapping"),
        ("kafka: {brokers: {a: 1}}", "kafka.brokers: found a mapping; write a string"),
        (
            "traces: {endpoint: 'otel-collector:4317'}",
            "traces.endpoint: found a string that is no http or https URL without credentials; write the whole address, such as http://otel-collector:4318/v1/traces",
        ),
        ("traces: {sample_one_in: 0}", "traces.sample_one_in: found a number; write a whole number of 1 or more"),
        ("traces: {headers: {x: 1}}", "traces.headers.x: found a number; write a string"),
        ("kafka: {group_id: \"\"}", "kafka.group_id: found an empty string"),
        ("privacy: {subject_key: a, subject_keys: [b]}", "privacy.subject_keys: found a list beside subject_key; write one of the two"),
        ("privacy: {subject_keys: a}", "privacy.subject_keys: found a string; write a list of strings"),
        ("privacy: {subject_keys: [a, '']}", "privacy.subject_keys[1]: found an empty string; write a string"),
        ("privacy: {subject_keys: [a, b, a]}", "privacy.subject_keys[2]: found a key that stands before it already"),
        ("privacy: {subject_keys: ['[redacted]']}", "privacy.subject_keys[0]: found a secret that was redacted"),
        ("privacy: {subject_keys: [a, b, c, d, e]}", "privacy.subject_keys: found a list of 5 keys; write at most 4"),
        ("[a, b]", "map"),
        ("safety_finish_reason: {detectors: anthropic_refusal}", "safety_finish_reason.detectors: found a string; write a list"),
        (
            "guardrails: {enabled: true, providers: [{use: allowlist, allow_tools: [bash]}]}",
            "guardrails.providers[0].allow_tools: found an unknown key; write `allowed_tools` under `config`, as in `config: {allowed_tools: …}`",
        ),
        (
            "safety_finish_reason: {detectors: [{use: anthropic_refusal, stop_reasons: [refusal]}]}",
            "safety_finish_reason.detectors[0].stop_reasons: found an unknown key; write `stop_reasons` under `config`",
        ),
        (
            "safety_finish_reason: {detectors: [{use: anthropic_refusal, config: {stop_reasons: refusal}}]}",
            "safety_finish_reason.detectors[0].config.stop_reasons: found a string; write a list of strings",
        ),
        (
            "guardrails: {enabled: true, provider: {use: allowlist, config: {denied_tools: bash}}}",
            "guardrails.provider.config.denied_tools: found a string; write a list of strings",
        ),
        (
            "tool_loop_guardrails: {idempotent_tools: [a, 1]}",
            "tool_loop_guardrails.idempotent_tools: found a list; write a list of strings",
        ),
        (
            "safety_finish_reason: {detectors: []}",
            "safety_finish_reason.detectors: found an empty list; omit it for the built-ins, or set `enabled: false`",
        ),
        (
            "safety_finish_reason: {detectors: [{use: gemini_safety, config: {finish_reasons: []}}]}",
            "safety_finish_reason.detectors[0].config.finish_reasons: found an empty list; omit it for the built-in values",
        ),
        (
            "safety_finish_reason: {detectors: [{use: acme:MyDetector}]}",
            "safety_finish_reason.detectors[0].use: found an unknown detector; write `openai_compatible_content_filter`, `anthropic_refusal`, `gemini_safety` or `native`",
        ),
        (
            "safety_finish_reason: {detectors: [gemini_safety]}",
            "safety_finish_reason.detectors[0]: found a string; write a mapping with `use`",
        ),
        (
            "guardrails: {enabled: true}",
            "guardrails.provider: found nothing although `enabled` is true; write `provider: {use: allowlist, config: {denied_tools: [\"bash\"]}}`, or set `enabled: false`",
        ),
        ("guardrails: {enabled: true, providers: []}", "guardrails.provider: found nothing although `enabled` is true"),
        (
            "guardrails: {enabled: true, provider: {use: allowlist}, providers: [{use: allowlist}]}",
            "guardrails.provider: found both `provider` and `providers`; write one of them",
        ),
        (
            "guardrails: {enabled: true, provider: {use: \"acme:Provider\"}}",
            "guardrails.provider.use: found an unknown provider; write `allowlist`",
        ),
        ("guardrails: {enabled: true, provider: {use: http, config: {}}}", "guardrails.provider.config.url: found nothing; write a string"),
        (
            "guardrails: {enabled: true, provider: {use: http, config: {url: 'http://u:p@x/'}}}",
            "guardrails.provider.config.url: found a string that is no http or https URL without credentials; write an absolute URL",
        ),
        (
            "guardrails: {enabled: true, provider: {use: http, config: {url: 'http://x/', dialect: cedar}}}",
            "guardrails.provider.config.dialect: found another word; write tollgate or opa",
        ),
        (
            "guardrails: {enabled: true, provider: {use: allowlist, tools: []}}",
            "guardrails.provider.tools: found an empty list; name tools",
        ),
        (
            "guardrails: {enabled: true, provider: {use: oap_passport, config: {passport_path: /nowhere/passport.json}}}",
            "guardrails.provider.config.passport_path: found /nowhere/passport.json, which cannot be read (",
        ),
        (
            "guardrails: {enabled: true, provider: {use: oap_passport, config: {tool_capabilities: {my_*: web.fetch}}}}",
            "guardrails.provider.config.tool_capabilities.my_*: found a pattern; write the tool's exact name; only browser_* and mcp__* are families",
        ),
        (
            "guardrails: {enabled: true, provider: {use: oap_passport, config: {tool_capabilities: {x: [web.fetch]}}}}",
            "guardrails.provider.config.tool_capabilities.x: found a list; write a capability, `none` if the tool needs none, or null to forget the tool",
        ),
        (
            "guardrails: {enabled: true, provider: {use: oap_passport, config: {hosts: [claude]}}}",
            "guardrails.provider.config.hosts[0]: found the name of no host; write some of claude-code, codex, gemini-cli, cursor, copilot, vscode, langchain, openhands",
        ),
        (
            "guardrails: {enabled: true, provider: {use: oap_passport, config: {unenforced_limits: warn}}}",
            "guardrails.provider.config.unenforced_limits: found another word; write deny or ignore",
        ),
        (
            "tool_loop_guardrails: {exact_failure_warn_after: 2, hard_stop_after: {exact_failure: 5}}",
            "tool_loop_guardrails.exact_failure_warn_after: found both this and `hard_stop_after`; write the flat thresholds or the nested form, not both",
        ),
        (
            "kafka: {properties: {enable.auto.commit: true}}",
            "kafka.properties.enable.auto.commit: found a property that Tollgate sets itself; remove it",
        ),
        ("kafka: {properties: {partitioner: consistent}}", "kafka.properties.partitioner: found a property that Tollgate sets itself"),
        ("kafka: {properties: {group.id: x}}", "kafka.properties.group.id: found a property that Tollgate sets itself"),
        ("kafka: {properties: {a.b: [1]}}", "kafka.properties.a.b: found a list; write a string, a number or a boolean"),
        (
            "guardrails: {provider: {use: allowlist, config: {denied_tools: [bash]}}}",
            "guardrails.enabled: found nothing although there are providers, which nobody would ask; write true, or false to switch them off",
        ),
        ("kafka: {topics: {events: agent events}}", "kafka.topics.events: found a name that no topic can have"),
        ("admin: {listen: localhost}", "admin.listen: found a string that is no address with a port"),
        ("abuse: {pack: on}", "abuse.pack: found another word; write off or alert or enforce"),
        (
            "abuse: {overrides: {safety-stop-usr: {threshold: 8}}}",
            "abuse.overrides.safety-stop-usr: found an unknown key; write `safety-stop-user`, or remove it",
        ),
        (
            "abuse: {overrides: {loop-stop-agent: {threshold: 0}}}",
            "abuse.overrides.loop-stop-agent.threshold: found a number; write a whole number of 1 or more",
        ),
        ("abuse: {rules: [{}]}", "abuse.rules[0].id: found nothing; write a string"),
        (
            "abuse: {rules: [{id: a, detection: {signal: denail}}]}",
            "abuse.rules[0].detection.signal: found an unknown signal; write `denial`",
        ),
        (
            "abuse: {rules: [{id: a, detection: {signal: denial, tool|re: x}}]}",
            "abuse.rules[0].detection.tool|re: found the modifier `re`, which is not supported",
        ),
        (
            "abuse: {rules: [{id: a, detection: {signal: denial}, exceptions: [{tool: a, reason: b, until: 2020-01-01}]}]}",
            "abuse.rules[0].exceptions[0].until: found a moment that is over; remove the exception, or write a later one",
        ),
        ("log: {format: xml}", "log.format: found another word; write text or json"),
    ];
    check_each(cases, |(text, _)| (*text).to_owned(), |(text, expected)| check_refused(&check(&yaml(text)), expected));
}

/// A warning that was asked for and can never be given is refused, with the threshold that comes before it.
#[test]
fn thresholds_in_an_order_that_makes_one_unreachable() {
    let refused = [
        (
            "{exact_failure_warn_after: 5, exact_failure_block_after: 3}",
            "exact_failure_warn_after",
            "exact_failure_block_after",
            "no larger number",
        ),
        // The other one is the default.
        ("{exact_failure_warn_after: 3}", "exact_failure_warn_after", "exact_failure_block_after", "no larger number"),
        (
            "{same_tool_failure_warn_after: 4, same_tool_failure_halt_after: 4}",
            "same_tool_failure_warn_after",
            "same_tool_failure_halt_after",
            "a smaller number",
        ),
        (
            "{no_progress_warn_after: 9, no_progress_block_after: 8}",
            "no_progress_warn_after",
            "no_progress_block_after",
            "no larger number",
        ),
        (
            "{hard_stop_enabled: true, warn_after: {exact_failure: 6}}",
            "warn_after.exact_failure",
            "hard_stop_after.exact_failure",
            "no larger number",
        ),
        (
            "{hard_stop_enabled: true, warn_after: {same_tool_failure: 2}, hard_stop_after: {same_tool_failure: 2}}",
            "warn_after.same_tool_failure",
            "hard_stop_after.same_tool_failure",
            "a smaller number",
        ),
        (
            "{hard_stop_enabled: true, warn_after: {idempotent_no_progress: 4}, hard_stop_after: {idempotent_no_progress: 3}}",
            "warn_after.idempotent_no_progress",
            "hard_stop_after.idempotent_no_progress",
            "no larger number",
        ),
    ];
    check_each(
        refused,
        |case| case.0.to_owned(),
        |(section, warn, stop, fix)| {
            let ran = check(&yaml(&format!("tool_loop_guardrails: {section}")));
            let expected = format!(
                "tool_loop_guardrails.{warn}: found a number that is never reached, because `tool_loop_guardrails.{stop}` comes first; write {fix} than that"
            );
            check_refused(&ran, &expected);
            assert!(ran.stderr.contains("--> FILE:1:"), "{}", ran.stderr);
        },
    );
    let variable = [("TOLLGATE__TOOL_LOOP_GUARDRAILS__EXACT_FAILURE_WARN_AFTER", "7")];
    let ran = check(&Setup { variables: variable.to_vec(), ..Setup::default() });
    check_refused(
        &ran,
        "exact_failure_warn_after (TOLLGATE__TOOL_LOOP_GUARDRAILS__EXACT_FAILURE_WARN_AFTER): found a number that is never reached",
    );
    let accepted = [
        "{exact_failure_warn_after: 3, exact_failure_block_after: 3}",
        "{no_progress_warn_after: 3, no_progress_block_after: 3}",
        "{same_tool_failure_warn_after: 3, same_tool_failure_halt_after: 4}",
        // A default that is not reached was not asked for.
        "{exact_failure_block_after: 1}",
        "{same_tool_failure_halt_after: 1}",
        // Nothing is stopped, or nothing is warned of.
        "{exact_failure_warn_after: 5, exact_failure_block_after: 3, hard_stop_enabled: false}",
        "{exact_failure_warn_after: 5, exact_failure_block_after: 3, warnings_enabled: false}",
        "{warn_after: {exact_failure: 7}}",
    ];
    check_each(accepted, |section| (*section).to_owned(), |section| drop(effective(&yaml(&format!("tool_loop_guardrails: {section}")))));
}

#[test]
fn all_mistakes_are_told_at_once_and_no_value_is_quoted() {
    let ran = check(&yaml(
        "kafka: {brokers: [MARKER-7f3a], group: MARKER-7f3a}\nprivacy: {subject_key: {x: MARKER-7f3a}}\nlimits: {thread_bytes_max: MARKER-7f3a}\n",
    ));
    assert_eq!(ran.exit, Some(1));
    for key in ["kafka.brokers", "kafka.group", "privacy.subject_key", "limits.thread_bytes_max"] {
        assert!(ran.stderr.contains(&format!("{key}: found ")), "{key}: {}", ran.stderr);
    }
    assert!(!ran.stderr.contains("MARKER"), "{}", ran.stderr);
    assert!(ran.stderr.starts_with("tollgate: FILE:\n"), "{}", ran.stderr);
    assert_eq!(ran.stderr.lines().filter(|line| line.contains(": found ")).count(), 4, "{}", ran.stderr);
}

#[test]
fn text_that_is_no_yaml() {
    for text in ["kafka: {brokers", "kafka:\n\t- x", "a: b: c", "kafka: {}\n---\nkafka: {}\n"] {
        let ran = check(&yaml(text));
        assert_eq!((ran.exit, ran.stdout.as_str()), (Some(1), ""), "{text}: {ran:?}");
        assert!(ran.stderr.contains("FILE is not valid YAML"), "{text}: {}", ran.stderr);
    }
}
