//! Fuzzes the grammar of command lines and the rules over them.

use std::sync::OnceLock;

use bash_commands::{COMMANDS_MAX, CommandFinding, CommandRules, analyse};

use crate::head::Head;

/// Checks a command line under rules. Lines `allow: …` and `block: …` at the top are rules of the input's own, and the rest is the
/// command line; some fixed rules are tried as well.
pub fn check(input: &[u8]) {
    let head = Head::read(input);
    let is_rules = head.lines.iter().all(|(name, value)| matches!(*name, b"allow" | b"block") && value.is_some());
    let texts = |name| head.values(name).map(|text| String::from_utf8_lossy(text).into_owned()).filter(|_| is_rules).collect();
    let (allowed, blocked): (Vec<String>, Vec<String>) = (texts("allow"), texts("block"));
    let command = String::from_utf8_lossy(if is_rules { head.rest } else { input });

    let analysis = analyse(&command);
    assert_eq!(analyse(&command), analysis, "a command line is read as something else the second time");
    assert!(analysis.commands.len() <= COMMANDS_MAX + 1, "{} commands", analysis.commands.len());

    check_rules(&command, &Rules::new(allowed, blocked));
    fixed().iter().for_each(|rules| check_rules(&command, rules));
}

/// Rules, and others with which their answers are compared.
struct Rules {
    these: CommandRules,
    /// The same allowed commands with fewer patterns: without the first one, and without any.
    fewer: [CommandRules; 2],
    /// The same patterns with everything allowed.
    open: CommandRules,
    allows_nothing: bool,
}

impl Rules {
    fn new(allowed: Vec<String>, blocked: Vec<String>) -> Self {
        let rules = |blocked: &[String]| CommandRules::new(Some(&allowed), blocked);
        Self {
            these: rules(&blocked),
            fewer: [rules(blocked.get(1..).unwrap_or_default()), rules(&[])],
            open: CommandRules::new(Some(&["*".to_owned()]), &blocked),
            allows_nothing: allowed.is_empty(),
        }
    }
}

/// Returns rules that allow a list, everything, and nothing.
fn fixed() -> &'static [Rules; 3] {
    static FIXED: OnceLock<[Rules; 3]> = OnceLock::new();
    let own = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    FIXED.get_or_init(|| {
        [
            Rules::new(own(&["git", "npm run", "ls", "echo", "sh", "find", "xargs"]), own(&["rm -rf", "sudo", "git push --force"])),
            Rules::new(own(&["*"]), own(&["dd if=", "*credentials*", "| sh", "chmod 777", "[x]", "a|b"])),
            Rules::new(Vec::new(), Vec::new()),
        ]
    })
}

/// Checks that rules give the same answer each time, that fewer patterns never object to more, and that a command which a list allows is
/// allowed where everything is.
fn check_rules(command: &str, rules: &Rules) {
    let findings = rules.these.check(command).findings;
    assert_eq!(rules.these.check(command).findings, findings, "rules object to something else the second time");
    // Which program a message names depends on the patterns, so names are not compared.
    let is_kept = |finding: &CommandFinding| match finding {
        CommandFinding::NotAllowed { .. } => findings.iter().any(|finding| matches!(finding, CommandFinding::NotAllowed { .. })),
        finding => findings.contains(finding),
    };
    for fewer in &rules.fewer {
        assert!(fewer.check(command).findings.iter().all(is_kept), "fewer blocked patterns object to more");
    }
    let open = rules.open.check(command).findings;
    assert!(!findings.is_empty() || open.is_empty(), "a list allows what is not allowed where everything is");
    assert!(!open.contains(&CommandFinding::NothingAllowed), "a list of everything allows nothing");
    let is_refused = findings.contains(&CommandFinding::NothingAllowed) || findings == [CommandFinding::Empty];
    assert!(is_refused || !rules.allows_nothing, "a list of nothing allows something");
}
