//! Which verdicts are meant: the options of commands that read the decisions topic.

use clap::{Args, ValueEnum};
use serde::Deserialize;

/// The options. A verdict is meant if it fits each option that is given, in one of the option's values.
#[derive(Debug, Default, Args)]
pub(crate) struct VerdictFilter {
    /// Verdicts of this thread only; may be given several times
    #[arg(long = "thread", value_name = "THREAD_ID")]
    threads: Vec<String>,
    /// Verdicts on events of this agent only; may be given several times
    #[arg(long = "agent", value_name = "AGENT_ID")]
    agents: Vec<String>,
    /// Verdicts on events of this tenant only; may be given several times
    #[arg(long = "tenant", value_name = "TENANT_ID")]
    tenants: Vec<String>,
    /// Verdicts on calls and results of this tool only; may be given several times
    #[arg(long = "tool", value_name = "TOOL")]
    tools: Vec<String>,
    /// Verdicts with these codes only, separated by commas
    #[arg(long = "code", value_delimiter = ',', value_name = "CODES")]
    codes: Vec<String>,
    /// Verdicts with these actions only, separated by commas
    #[arg(long, value_enum, value_delimiter = ',', value_name = "ACTIONS")]
    only: Vec<Action>,
}

/// What a verdict says is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Action {
    Allow,
    Warn,
    Block,
    Halt,
    Suppress,
}

/// The members of a verdict that are filtered by.
#[derive(Debug, Deserialize)]
struct Fields {
    action: Action,
    code: String,
    tool_name: Option<String>,
    agent_id: Option<String>,
    tenant_id: Option<String>,
}

impl VerdictFilter {
    /// Returns whether a verdict is meant. `thread` is the key of its record, and `value` its JSON.
    pub(crate) fn means(&self, thread: &[u8], value: &[u8]) -> bool {
        let is_thread = self.threads.is_empty() || self.threads.iter().any(|asked| asked.as_bytes() == thread);
        // Most verdicts of a topic need not be parsed: they are of other threads, or no other option is given.
        is_thread && (!self.looks_inside() || serde_json::from_slice(value).is_ok_and(|fields| self.fits(&fields)))
    }

    /// Returns whether no option is given.
    pub(crate) fn is_empty(&self) -> bool {
        self.threads.is_empty() && !self.looks_inside()
    }

    fn looks_inside(&self) -> bool {
        let lists = [&self.agents, &self.tenants, &self.tools, &self.codes];
        !self.only.is_empty() || lists.iter().any(|list| !list.is_empty())
    }

    fn fits(&self, fields: &Fields) -> bool {
        let is_among = |asked: &[String], found: Option<&String>| asked.is_empty() || found.is_some_and(|found| asked.contains(found));
        (self.only.is_empty() || self.only.contains(&fields.action))
            && is_among(&self.codes, Some(&fields.code))
            && is_among(&self.tools, fields.tool_name.as_ref())
            && is_among(&self.agents, fields.agent_id.as_ref())
            && is_among(&self.tenants, fields.tenant_id.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use serde_json::json;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        filter: VerdictFilter,
    }

    fn filter(words: &str) -> VerdictFilter {
        Line::try_parse_from(std::iter::once("x").chain(words.split_whitespace())).unwrap().filter
    }

    #[test]
    fn a_verdict_fits_every_option_in_one_of_its_values() {
        let verdict =
            json!({"action": "block", "code": "oap.tool_not_allowed", "tool_name": "bash", "agent_id": "coder", "tenant_id": "acme"});
        let means = |words: &str| filter(words).means(b"t1", verdict.to_string().as_bytes());
        for words in [
            "",
            "--thread t1",
            "--thread t2 --thread t1",
            "--agent coder",
            "--tenant acme --agent other --agent coder",
            "--tool ls --tool bash",
            "--code other,oap.tool_not_allowed",
            "--only halt,block",
            "--thread t1 --agent coder --tenant acme --tool bash --code oap.tool_not_allowed --only block",
        ] {
            assert!(means(words), "{words}");
        }
        for words in
            ["--thread t", "--agent Coder", "--tenant globex", "--tool ba", "--code oap", "--only allow", "--agent coder --tool ls"]
        {
            assert!(!means(words), "{words}");
        }
    }

    #[test]
    fn a_verdict_that_does_not_name_the_agent_is_not_of_that_agent() {
        let bare = json!({"action": "allow", "code": "allow"}).to_string();
        assert!(filter("--only allow").means(b"t", bare.as_bytes()));
        for words in ["--agent coder", "--tenant acme", "--tool bash"] {
            assert!(!filter(words).means(b"t", bare.as_bytes()), "{words}");
        }
        // What is no verdict fits only where nothing is asked of it.
        assert!(filter("").is_empty() && !filter("--thread t").is_empty() && !filter("--code a").is_empty());
        assert!(filter("--thread t").means(b"t", b"{") && !filter("--code allow").means(b"t", b"{"));
    }
}
