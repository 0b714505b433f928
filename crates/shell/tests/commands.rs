//! Checks the corpus of commands, in which each line says what is expected under a set of rules, and hostile input. How to add a line:
//! `commands/README.md`.

use std::collections::{BTreeMap, BTreeSet};

use bash_commands::{COMMAND_BYTES_MAX, CommandFinding, CommandRules, analyse};
use serde::Deserialize;

/// A set of rules.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Rules {
    allowed: Option<Vec<String>>,
    blocked: Vec<String>,
}

/// A line of the corpus.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    rules: String,
    command: String,
    /// The expected answer: `allow`, or the code of the first finding, perhaps with a colon and the program or pattern that it names.
    expect: String,
    why: String,
    /// How a line is written that is harmless and refused: it must be allowed.
    instead: Option<String>,
}

fn rules() -> BTreeMap<String, CommandRules> {
    let text = std::fs::read_to_string("tests/commands/rules.json").unwrap();
    let sets: BTreeMap<String, Rules> = serde_json::from_str(&text).unwrap();
    sets.into_iter().map(|(name, set)| (name, CommandRules::new(set.allowed.as_deref(), &set.blocked))).collect()
}

fn corpus() -> Vec<Line> {
    let text = std::fs::read_to_string("tests/commands/corpus.jsonl").unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))).collect()
}

/// Returns the first finding as the corpus writes it, with and without what it names.
fn answers(findings: &[CommandFinding]) -> Vec<String> {
    let Some(first) = findings.first() else { return vec!["allow".to_owned()] };
    let named = match first {
        CommandFinding::NotAllowed { program, .. } => program.name.clone(),
        CommandFinding::Blocked { pattern } => Some(pattern.clone()),
        _ => None,
    };
    let code = first.code().to_owned();
    named.map(|name| format!("{code}: {name}")).into_iter().chain([code]).collect()
}

#[test]
fn every_command_of_the_corpus_gets_its_answer() {
    let rules = rules();
    let mut disagreements = Vec::new();
    for (at, line) in corpus().iter().enumerate() {
        let set = rules.get(&line.rules).unwrap_or_else(|| panic!("line {}: no rules are called {}", at + 1, line.rules));
        let findings = set.check(&line.command).findings;
        let answers = answers(&findings);
        if !answers.contains(&line.expect) {
            let text = format!(
                "line {}: {:?} under {}: expected {}, got {answers:?} ({})",
                at + 1,
                line.command,
                line.rules,
                line.expect,
                line.why
            );
            disagreements.push(format!("{text}\n    {findings:?}"));
        }
    }
    let rewritten =
        corpus().into_iter().filter_map(|line| Some((rules.get(&line.rules)?.check(line.instead.as_ref()?).findings, line.instead?)));
    disagreements.extend(rewritten.filter(|(findings, _)| !findings.is_empty()).map(|(findings, line)| format!("{line:?}: {findings:?}")));
    assert!(disagreements.is_empty(), "{} disagreements:\n{}", disagreements.len(), disagreements.join("\n"));
}

#[test]
fn the_corpus_is_whole() {
    let corpus = corpus();
    assert!(corpus.len() >= 250, "only {} lines", corpus.len());
    let used: BTreeSet<&str> = corpus.iter().map(|line| line.rules.as_str()).collect();
    for name in rules().keys() {
        assert!(used.contains(name.as_str()), "no line uses the rules {name}");
    }
    let mut seen = BTreeSet::new();
    for line in &corpus {
        assert!(line.why.len() > 3, "{:?} has no why", line.command);
        assert!(seen.insert((&line.rules, &line.command)), "{:?} is there twice under {}", line.command, line.rules);
    }
}

/// A message repeats nothing of a command but names that are well known or configured.
#[test]
fn no_message_repeats_what_an_agent_wrote() {
    let rules = CommandRules::new(Some(&["git".to_owned()]), &["rm -rf".to_owned(), "*token*".to_owned()]);
    for command in
        ["hunter2", "hunter2 x", "/opt/hunter2/bin x", "git log; hunter2=hunter2 hunter2", "echo hunter2 | sh -c hunter2", "hunter2 'token"]
    {
        let findings = rules.check(command).findings;
        assert!(!findings.is_empty(), "{command}");
        for finding in findings {
            assert!(!finding.message().contains("hunter2"), "{}", finding.message());
        }
    }
}

/// Pieces of lines that are expensive if they are repeated.
#[rustfmt::skip]
const PIECES: [&str; 65] = [
    "(", "((", "$(", "$((", "`", "`\\", "{", "{ ", "{a,", "\"", "\"$(", "\"${x:-", "'", "${x:-", "$[", "<(", "cat <(", "cat <<E\n",
    "cat <<E;", "if ", "case x in x) ", "while ", "for x in ", "[[ ", "[[ ( ", "f() { ", "coproc ", "time ", "! ", "a=(", "a[", "env ",
    "sudo -u ", "eval ", "sh -c ", "xargs ", "{1..9}", "{a,b}", "$X", "X=$X$X ", "X=$X;", "a|", "a&&", "a;", "\\", "\\\n", "\n", "#", " ",
    "~", "*", "[", "é", "\u{2003}", "$'\\", "> ", "2>&1 ", "git -c alias.x='!", "find -exec ", "ls; ", "trap ", "alias a=", "X=",
    "docker run ", "rm -rf ",
];

/// Returns texts that are made to be expensive.
fn hostile() -> Vec<(String, String)> {
    let mut texts = Vec::new();
    for piece in PIECES {
        for bytes in [1000, 65_000, 1_000_000] {
            texts.push((format!("{piece:?} to {bytes} bytes"), piece.repeat(bytes / piece.len())));
        }
    }
    texts
}

#[test]
fn hostile_commands_fit_the_stack_and_come_to_an_end() {
    let check = || {
        let blocked: Vec<String> = ["rm -rf", "sudo", "*secret*"].map(str::to_owned).to_vec();
        let rules = CommandRules::new(Some(&["git".to_owned()]), &blocked);
        for (name, text) in hostile() {
            let findings = rules.check(&text).findings;
            assert!(text.len() <= COMMAND_BYTES_MAX || !findings.is_empty(), "{name} was allowed");
            let _ = analyse(&text);
        }
    };
    // A thread's stack is smaller than that of the main thread.
    std::thread::Builder::new().stack_size(2 << 20).spawn(check).unwrap().join().unwrap();
}

/// Returns commands of the corpus, cut, doubled and mixed, by a generator with a fixed seed, so that a failure can be had again.
fn mutations(count: usize) -> Vec<String> {
    let corpus = corpus();
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut below = move |limit: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state % limit as u64).unwrap()
    };
    let mutate = |_| {
        let mut text = corpus[below(corpus.len())].command.clone();
        for _ in 0..=below(6) {
            let (one, other) = (below(text.len() + 1), below(text.len() + 1));
            let (from, to) = (boundary(&text, one.min(other)), boundary(&text, one.max(other)));
            match below(3) {
                0 => text.replace_range(from..boundary(&text, to.min(from + 3)), ""),
                1 => text.insert_str(from, &corpus[below(corpus.len())].command),
                _ => {
                    let copy = text.get(from..to).unwrap().to_owned();
                    text.insert_str(to, &copy);
                }
            }
            text.truncate(boundary(&text, 4000));
        }
        text
    };
    (0..count).map(mutate).collect()
}

/// Returns the last place at which the text can be cut that is not behind this one.
fn boundary(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default()
}

#[test]
fn mutated_commands_come_to_an_end() {
    let check = || {
        let rules = rules();
        for text in mutations(5000) {
            for set in ["seed", "wildcard"] {
                let _ = rules[set].check(&text);
            }
        }
    };
    std::thread::Builder::new().stack_size(2 << 20).spawn(check).unwrap().join().unwrap();
}

#[test]
fn deep_but_sane_nesting_is_understood() {
    let rules = CommandRules::new(Some(&["*".to_owned()]), &["rm -rf".to_owned()]);
    for depth in [1, 5, 10, 15] {
        let nested = format!("{}rm -rf x{}", "echo \"$(".repeat(depth), ")\"".repeat(depth));
        assert_eq!(answers(&rules.check(&nested).findings)[0], "oap.blocked_pattern: rm -rf", "{depth}");
    }
    let too_deep = format!("{}ls{}", "$(".repeat(100), ")".repeat(100));
    assert_eq!(answers(&rules.check(&too_deep).findings)[0], "oap.command_unproven");
}

#[test]
fn an_analysis_says_how_each_command_is_reached() {
    let analysis = analyse("sudo sh -c 'for x in a; do echo \"$(id)\" \"$x\"; done'");
    let shown: Vec<(String, String)> = analysis
        .commands
        .iter()
        .map(|command| {
            let words = command.words.iter().map(|word| word.text.clone());
            (words.collect::<Vec<_>>().join(" "), command.how.clone())
        })
        .collect();
    let expected = [
        ("sudo sh -c for x in a; do echo \"$(id)\" \"$x\"; done", ""),
        ("sh -c for x in a; do echo \"$(id)\" \"$x\"; done", "behind sudo"),
        ("id", "behind sudo, in a text given to sh, in a command substitution"),
        ("echo * a", "behind sudo, in a text given to sh"),
    ];
    assert_eq!(shown, expected.map(|(words, how)| (words.to_owned(), how.to_owned())));
}

#[test]
fn what_cannot_be_proven_is_let_through_under_a_star_only_if_that_is_asked_for() {
    let star = ["*".to_owned()];
    let rules = || CommandRules::new(Some(&star), &["rm -rf".to_owned(), "/etc/passwd".to_owned()]);
    let lax = rules().letting_unproven_through(true);
    assert_eq!(answers(&rules().check("echo $((x+1))").findings)[0], "oap.command_unproven");
    assert!(lax.check("echo $((x+1))").findings.is_empty());
    for (line, expected) in [
        ("x=$(rm -r -f /)", "oap.blocked_pattern: rm -rf"),
        ("cat /etc//pass* $((x))", "oap.blocked_pattern: /etc/passwd"),
        (":(){ :|:& };:", "oap.dangerous_operation"),
    ] {
        assert_eq!(answers(&lax.check(line).findings)[0], expected, "{line}");
    }
    let listed = CommandRules::new(Some(&["echo".to_owned()]), &[]).letting_unproven_through(true);
    assert!(!listed.check("echo $((x+1))").findings.is_empty(), "a list lets nothing through that is not proven");
}
