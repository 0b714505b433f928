//! Lines with which attackers got past earlier rules: each is refused under a list on which only harmless programs stand, and where it names
//! a file that must be allowed, it names the right one.

use bash_commands::CommandRules;
use serde::Deserialize;

/// A line of `attacks.jsonl`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Attack {
    allowed: Vec<String>,
    command: String,
    why: String,
}

#[test]
fn no_known_way_around_a_list_is_open() {
    let text = std::fs::read_to_string("tests/commands/attacks.jsonl").unwrap();
    let attacks: Vec<Attack> =
        text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))).collect();
    let is_open = |attack: &&Attack| CommandRules::new(Some(&attack.allowed), &[]).check(&attack.command).findings.is_empty();
    let open: Vec<String> = attacks.iter().filter(is_open).map(|attack| format!("{:?}: {}", attack.command, attack.why)).collect();
    assert!(open.is_empty() && attacks.len() > 50, "{} of {}:\n{}", open.len(), attacks.len(), open.join("\n"));
}

/// Loops and values that multiply, and words that are long: all come to an end, in little memory.
#[test]
fn lines_that_multiply_are_refused() {
    let rules = CommandRules::new(Some(&["echo".to_owned(), "ls".to_owned()]), &[]);
    let nested = |words: &str, depth: usize, body: &str| {
        let names = "abcdefghij";
        let open: String = names.chars().take(depth).map(|name| format!("for {name} in {words}; do ")).collect();
        format!("{open}{body}{}", "; done".repeat(depth))
    };
    let numbers: String = (0..300).map(|number| format!("{number} ")).collect();
    let mut growing = String::new();
    for (name, from) in "bcdefghij".chars().zip("abcdefghi".chars()) {
        growing.push_str(&format!("for {name} in \"{}\"; do ", format!("${from}").repeat(10)));
    }
    for line in [
        nested(&numbers, 3, "for x in; do :; done"),
        nested(&numbers, 3, "echo x"),
        nested(&numbers, 1, &format!("echo {}", "b ".repeat(25_000))),
        format!("for a in aaaaaaaaaa; do {growing} echo \"$j\"{}; done", "; done".repeat(9)),
        format!("for a in {}; do for b in {}; do echo \"$a\"; done; done", "x".repeat(20_000), "1 ".repeat(8_000)),
        "a() { b; }; ".repeat(5_000),
    ] {
        let findings = rules.check(&line).findings;
        assert!(!findings.is_empty() && findings.len() < 100, "{} bytes: {}", line.len(), findings.len());
    }
}
