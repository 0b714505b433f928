//! The rule sets that lines are decided by, and the decision.

use anyhow::{Context, Result, anyhow};
use serde_json::json;
use tollgate_json::Text;
use tollgate_passport::ToolInput;
use tollgate_passport::{Call, Outcome, Passport, Report, Terms, examine};

use super::files::{OUT, WORK};

/// A rule set: what is listed, under a name.
#[derive(Debug, Clone, Copy)]
pub(super) struct RuleSet {
    /// Its name.
    pub(super) name: &'static str,
    /// The entries of `allowed_commands`.
    pub(super) listed: &'static [&'static str],
    /// How often lines are made for it, in relation to the others.
    pub(super) weight: usize,
}

/// All rule sets.
#[rustfmt::skip]
pub(super) const RULE_SETS: [RuleSet; 7] = [
    RuleSet { name: "ls", listed: &["ls"], weight: 2 },
    RuleSet { name: "echo", listed: &["echo"], weight: 2 },
    RuleSet { name: "small", listed: &["echo", "cat", "ls"], weight: 3 },
    RuleSet { name: "tests", listed: &["test", "[", "printf", "read", "cd", "true", "echo"], weight: 3 },
    RuleSet { name: "words", listed: &["git log", "git status", "ls", "grep -n"], weight: 2 },
    RuleSet {
        name: "rich",
        listed: &[
            "ls", "cat", "echo", "find", "xargs", "env", "git", "sed", "awk", "sort", "grep", "tar", "timeout", "nice", "head", "tail",
            "wc", "uniq", "cut", "tr", "diff", "test", "[", "true", "false", "cd", "pwd", "read", "printf", "date", "basename", "dirname",
            "exit",
        ],
        weight: 6,
    },
    // Programs that only read and print by their nature. A program that the machine lacks is not tried.
    RuleSet {
        name: "tables",
        listed: &[
            "date", "apt-cache", "ar", "arch", "b2sum", "base64", "bzcat", "cal", "cmp", "column", "comm", "cut", "df", "diff",
            "dpkg-query", "du", "echo", "expr", "fd", "file", "gawk", "grep", "hexdump", "hostname", "iconv", "join", "jq", "lsof", "man",
            "mawk", "md5sum", "nm", "objdump", "od", "openssl", "pgrep", "ps", "readelf", "readlink", "realpath", "rev", "rg", "rpm",
            "sdiff", "seq", "sha256sum", "shuf", "sort", "ssh-keygen", "stat", "strings", "tac", "tree", "uniq", "unzstd", "wc",
            "xmllint", "xxd", "xzcat", "yq", "zcat", "zipinfo", "zstdcat",
        ],
        weight: 6,
    },
];

/// What a listed program runs itself and may run: the program, and what the canary writes down. GNU tar compresses by other programs.
const TOLERATED: [(&str, &str); 6] = [
    ("tar", "/bin/sh -c gzip"),
    ("tar", "/bin/sh -c bzip2"),
    ("tar", "/bin/sh -c xz"),
    ("tar", "/usr/bin/gzip -d"),
    ("tar", "/usr/bin/bzip2 -d"),
    ("tar", "/usr/bin/xz -d"),
];

impl RuleSet {
    /// Returns the programs that are listed: the first words of the entries.
    pub(super) fn programs(&self) -> impl Iterator<Item = &'static str> {
        self.listed.iter().filter_map(|entry| entry.split(' ').next())
    }

    /// Returns whether a canary that wrote this was run by a listed program that has to run it.
    pub(super) fn tolerates(&self, written: &str) -> bool {
        let is_listed = |name: &str| self.programs().any(|program| program == name);
        // To dash `[[` is a program. Where there is one, it is BusyBox's, which tests as the others do.
        let is_test = written.starts_with("/usr/bin/[[ ") || written == "/usr/bin/[[";
        // Git reaches its remotes by helpers of its own.
        let is_remote = is_listed("git") && written.starts_with("/usr/lib/git-core/git-remote-http");
        is_test || is_remote || TOLERATED.iter().any(|(program, text)| is_listed(program) && *text == written)
    }

    /// Returns whether git is listed, which writes to its own folder.
    pub(super) fn has_git(&self) -> bool {
        self.programs().any(|program| program == "git")
    }
}

/// A rule set as a passport.
#[derive(Debug)]
pub(super) struct Rules {
    pub(super) set: RuleSet,
    passport: Passport,
    terms: Terms,
}

impl Rules {
    /// Compiles a rule set: its programs may run, files of [`OUT`] may be written, and files may be read.
    ///
    /// # Errors
    /// If the core cannot read the passport.
    pub(super) fn new(set: RuleSet) -> Result<Self> {
        let passport = json!({
            "passport_id": "7d3f4c1e-52a7-4c8e-9b55-0f6f2f0b6a11",
            "kind": "template",
            "spec_version": "oap/1.0",
            "owner_id": "org_fuzz",
            "owner_type": "org",
            "assurance_level": "L1",
            "status": "active",
            "capabilities": [{"id": "system.command.execute"}, {"id": "data.file.read"}, {"id": "data.file.write"}],
            "limits": {
                "system.command.execute": {"allowed_commands": set.listed},
                "data.file.read": {},
                // With a place below the working folder on the list, no other relative path is taken to be allowed as the folder is.
                "data.file.write": {"allowed_paths": [format!("{WORK}/{OUT}"), "nowhere"]},
            },
            "never_expires": true,
            "created_at": "2026-01-05T09:00:00Z",
            "updated_at": "2026-01-05T09:00:00Z",
            "version": "1.0.0",
        });
        let passport = Passport::read(passport.to_string().as_bytes()).map_err(|fault| anyhow!("{fault:?}"));
        Ok(Self { set, passport: passport.context("the passport of a rule set cannot be read")?, terms: Terms::default() })
    }

    /// Returns whether the line is allowed.
    pub(super) fn allows(&self, line: &str) -> bool {
        let arguments = json!({"command": line}).to_string();
        let input = ToolInput::Encoded(Text::plain(arguments.as_bytes()));
        let call = Call { tool_name: "bash", input: &input, time_ms: Some(1_800_000_000_000), earliest_ms: None };
        let mut verdict = Verdict { allowed: true };
        examine(Some(Ok(&self.passport)), &self.terms, &call, &mut verdict);
        verdict.allowed
    }
}

struct Verdict {
    allowed: bool,
}

impl Report for Verdict {
    fn outcome(&mut self, _check: &'static str, outcome: Outcome) {
        self.allowed &= !matches!(outcome, Outcome::Denied(_));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listed_program_is_allowed_and_another_is_not() {
        for set in RULE_SETS {
            let rules = Rules::new(set).unwrap();
            assert!(rules.allows(set.listed[0]), "{}", set.name);
            assert!(!rules.allows("canary"), "{}", set.name);
        }
    }

    #[test]
    fn files_are_written_in_one_folder_only() {
        let rules = Rules::new(RULE_SETS[1]).unwrap();
        assert!(!rules.allows("echo x >/work/notes.txt"));
    }
}
