//! The rules of the packs: they check a call against the limits of a capability. Each pack is a file of its own.

mod budget;
mod command;
mod command_patterns;
mod extensions;
mod file;
mod file_arguments;
mod file_path;
mod file_patterns;
mod file_rules;
mod left_behind;
mod left_out;
mod limit;
mod mcp;
mod messaging;
mod secrets;
mod session;
mod web;

use std::collections::HashSet;

use bash_commands::{Below, FileOperand};
use tollgate_json::{Text, Value};

use super::argument_names::{ArgumentNames, fold};
use super::arguments::{Arguments, Sorted};
use super::capabilities::McpTool;
use super::denial::{Denial, Report, report};
use super::fields::{Amount, Field, Malformed, Section, member_path, quoted};
use super::pack::Pack;
use super::schema::SchemaFault;
pub(super) use file_rules::FileRules;
use limit::{check_amount, check_limit, deny_found, deny_if};

/// The treatment of limits that cannot be enforced here, such as numbers of calls over time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum UnenforcedLimits {
    /// A call that such a limit is about is denied.
    Deny,
    /// Such limits are ignored.
    Ignore,
}

/// Says that nobody knows where the call runs.
const SEVERAL_FOLDERS: &str = "Arguments hold several working folders, of which a tool may take any";

/// A call in the form that rules read.
#[derive(Debug, Clone, Copy)]
pub(super) struct RuleCall<'c> {
    pub(super) tool_name: &'c str,
    pub(super) arguments: Arguments<'c>,
    /// What its arguments are by their names.
    pub(super) names: ArgumentNames<'c>,
    /// The MCP server and tool, if the tool's name has them.
    pub(super) mcp: Option<McpTool<'c>>,
    /// The rules for files that a command opens.
    pub(super) files: FileRules<'c>,
}

impl<'c> RuleCall<'c> {
    /// Returns the arguments by what they are to the tool, if all of them can be judged.
    fn sorted(&self) -> Result<Sorted<'c>, Denial> {
        let sorted = self.arguments.sorted(&self.names)?;
        check_judgeable(&sorted).map(|()| sorted)
    }
}

/// Refuses arguments that cannot be judged.
fn check_judgeable(sorted: &Sorted<'_>) -> Result<(), Denial> {
    sorted.refused.map_or(Ok(()), |name| {
        let message = format!("Argument '{name}' changes what the call does, or names things of its own, and cannot be judged");
        Err(Denial::new("oap.invalid_tool_arguments", message))
    })
}

/// Returns the denial of an argument under a name that is not known, whose value may be what the rules are about.
fn unknown_argument(what: &str) -> Denial {
    let message = format!(
        "An argument that the tool is not known to have may be {what}; give it a role in tool_arguments, or leave it out of the call"
    );
    Denial::new("oap.invalid_tool_arguments", message)
}

/// The compiled rules of one capability.
trait Rules: std::fmt::Debug + Send + Sync {
    /// Reports every check of the pack.
    fn check(&self, call: &RuleCall<'_>, to: &mut dyn Report);

    /// Reports the checks of a file that a command's redirection opens; only packs for files have some. `bytes` is the size of what is
    /// written, if the command tells it.
    fn check_redirect(&self, _path: &str, _bytes: Option<usize>, _to: &mut dyn Report) {}

    /// Reports the checks of an address that a program is given; only packs for the web have some.
    fn check_address(&self, _url: &str, _to: &mut dyn Report) {}

    /// Checks the method of a request; only packs for fetching have something to say.
    fn check_method(&self, _method: &str) -> Result<(), Denial> {
        Ok(())
    }

    /// Checks a file that a program is given by an argument; only packs for files have something to say.
    fn check_operand(&self, _path: &str, _is_glob: bool) -> Result<(), Denial> {
        Ok(())
    }

    /// Checks that a file is not blocked, whether it is in a list or not; only packs for files have something to say.
    fn check_unblocked(&self, _path: &str, _is_glob: bool) -> Result<(), Denial> {
        Ok(())
    }

    /// Checks that nothing blocked lies below a file that is taken away; only packs for files have something to say.
    fn check_tree(&self, _path: &str, _below: Below) -> Result<(), Denial> {
        Ok(())
    }

    /// Checks that no blocked path may have a name that is found below a folder by some patterns, and is read; only packs for files have something
    /// to say.
    fn check_shown_below(&self, _folder: &FileOperand, _patterns: &[String]) -> Result<(), Denial> {
        Ok(())
    }

    /// Checks that no blocked path may have a name that is found below a folder by some patterns, and is written; only packs for files have
    /// something to say.
    fn check_written_below(&self, _folder: &FileOperand, _patterns: &[String]) -> Result<(), Denial> {
        Ok(())
    }

    /// Checks that so many bytes may be written to a file; only packs for files that are written have something to say.
    fn check_bytes(&self, _bytes: usize) -> Result<(), Denial> {
        Ok(())
    }

    /// Checks that no folder above a blocked path is found below a folder by some patterns; only packs for files have something to say.
    fn check_whole_below(&self, _folder: &str, _patterns: &[String]) -> Result<(), Denial> {
        Ok(())
    }

    /// Checks patterns with which programs look for names; only packs for files have something to say.
    fn check_patterns(&self, _patterns: &[String]) -> Result<(), Denial> {
        Ok(())
    }

    /// Checks names that a program has found by some patterns, or by none: what it finds may be blocked.
    fn check_found(&self, _patterns: &[String]) -> Result<(), Denial> {
        Ok(())
    }

    /// Returns how many patterns of files a component of a path may be compared with; only packs for files have some.
    fn weight(&self) -> usize {
        0
    }

    /// Returns how many entries of files are blocked; only packs for files have some.
    fn entries(&self) -> usize {
        0
    }

    /// Returns the limits that could not be read.
    fn faults(&self) -> Vec<&Malformed>;
}

/// One object of limits, compiled.
#[derive(Debug)]
pub(super) struct Compiled {
    rules: Result<Box<dyn Rules>, Malformed>,
    /// The paths of limits that cannot be enforced here.
    unenforced: Vec<String>,
    /// The names of the limits that the rules read.
    known: Vec<&'static str>,
}

/// The limits of a passport.
#[derive(Debug)]
pub(super) struct Limits {
    packs: Vec<(Pack, Vec<Compiled>)>,
    /// Capabilities that have limits but no rules.
    unknown: HashSet<String>,
}

impl Limits {
    /// Compiles the value of `limits`. A pack without limits has rules too. `is_capability` says of a name whether a capability without
    /// rules has it.
    ///
    /// # Errors
    /// [`Malformed`] for limits under a name that is no capability, which limit nothing and read as if they limited all.
    pub(super) fn new(limits: Option<Value<'_>>, is_capability: impl Fn(&str) -> bool) -> Result<Self, Malformed> {
        let compiled = |pack: Pack| {
            let found = pack.limit_keys().iter().filter_map(|key| Some((*key, limits?.get(key).filter(|value| !value.is_null())?)));
            let mut compiled: Vec<Compiled> = found.map(|(key, value)| Compiled::new(pack, key, Some(value))).collect();
            if compiled.is_empty() {
                compiled.extend(pack.limit_keys().first().map(|key| Compiled::new(pack, key, None)));
            }
            compiled.extend(limits.iter().flat_map(|limits| misnamed(*limits, pack)));
            (pack, compiled)
        };
        let limiting = |value: &Value<'_>| !value.is_null() && (!value.is_object() || value.members().next().is_some());
        let members = limits.iter().flat_map(Value::members).filter(|(_, value)| limiting(value));
        let names = members.filter_map(|(key, _)| key.as_text().and_then(Text::into_str)).map(std::borrow::Cow::into_owned);
        let unknown: HashSet<String> = names.collect();
        let is_named = |name: &String| {
            let is_object = limits.and_then(|limits| limits.get(name)).is_some_and(|value| value.is_object());
            is_capability(name)
                || Pack::ALL.iter().any(|pack| pack.limit_keys().contains(&name.as_str()) || is_meant(name, *pack))
                || is_object && OTHERS.iter().any(|other| name.starts_with(other))
        };
        if let Some(stray) = unknown.iter().filter(|name| !is_named(name)).min() {
            let expected = "the name of a capability, such as data.file.read";
            return Err(Malformed::new(member_path("limits", stray), "a name that limits nothing", expected));
        }
        Ok(Self { packs: Pack::ALL.into_iter().map(compiled).collect(), unknown })
    }

    /// Says where a limit belongs that stands outside of the limits; `None` for a name that no pack has.
    pub(super) fn place_of(name: &str) -> Option<String> {
        let takes = |pack: &&Pack| Compiled::new(**pack, "", None).known.contains(&name);
        let places: Vec<String> = Pack::ALL.iter().filter(takes).map(|pack| format!("limits.{}", pack.capability())).collect();
        (!places.is_empty()).then(|| format!("no such field: it belongs under {}", places.join(" or ")))
    }

    /// Returns the compiled limits of a pack.
    pub(super) fn of(&self, pack: Pack) -> &[Compiled] {
        self.packs.iter().find(|(known, _)| *known == pack).map(|(_, compiled)| compiled.as_slice()).unwrap_or_default()
    }

    /// Returns how many patterns of files a component of a path may be compared with.
    fn weight(&self) -> usize {
        self.readable().map(|rules| rules.weight()).sum()
    }

    /// Returns how many entries of files are blocked. A glob, and what is taken whole, is compared with each.
    fn entries(&self) -> usize {
        self.readable().map(|rules| rules.entries()).sum()
    }

    fn readable(&self) -> impl Iterator<Item = &dyn Rules> {
        self.packs.iter().flat_map(|(_, compiled)| compiled).filter_map(|compiled| compiled.rules.as_deref().ok())
    }

    /// Returns the rules of a pack, or the denial where limits cannot be read.
    fn rules(&self, pack: Pack) -> impl Iterator<Item = Result<&dyn Rules, Denial>> {
        self.of(pack).iter().map(|compiled| compiled.rules.as_deref().map_err(Denial::invalid))
    }

    /// Returns the limits that rules cannot read, and those that they cannot enforce.
    pub(super) fn faults(&self) -> Vec<SchemaFault> {
        const DENIES: &str = "denies every call that needs this capability: oap.passport_invalid";
        let mut faults = Vec::new();
        for compiled in self.packs.iter().flat_map(|(_, compiled)| compiled) {
            let malformed = compiled.rules.as_ref().map_or_else(|malformed| vec![malformed], |rules| rules.faults());
            faults.extend(malformed.into_iter().map(|malformed| {
                let Malformed { path, found, expected } = malformed.clone();
                SchemaFault { path, found, expected, effect: DENIES.into() }
            }));
            faults.extend(compiled.unenforced.iter().map(|path| SchemaFault {
                path: path.clone(),
                found: "a limit that cannot be kept here".to_owned(),
                expected: format!(
                    "one of {}, or `unenforced_limits: ignore` in the configuration and something else that keeps it",
                    compiled.known.join(", ")
                ),
                effect: "denies every call that needs this capability: oap.policy_error".into(),
            }));
        }
        faults
    }

    /// Returns whether a capability without rules has limits.
    pub(super) fn has_unknown(&self, capability: &str) -> bool {
        self.unknown.contains(capability)
    }
}

/// Returns limits that are meant for a pack by their name, in another case or form or with a version, and would limit nothing.
fn misnamed(limits: Value<'_>, pack: Pack) -> impl Iterator<Item = Compiled> + '_ {
    let known = pack.limit_keys();
    let keys = limits.members().filter(|(_, value)| !value.is_null()).filter_map(|(key, _)| key.as_text().and_then(Text::into_str));
    keys.filter(move |key| is_meant(key, pack)).map(|key| {
        let expected = format!("{} as the name of these limits", known.first().copied().unwrap_or_default());
        let rules = Err(Malformed::new(member_path("limits", &key), "a name that limits nothing", expected));
        Compiled { rules, unenforced: Vec::new(), known: Vec::new() }
    })
}

/// TABLE: the beginnings of capabilities of the standard that have no rules here. Other limits count only for capabilities that are granted.
const OTHERS: [&str; 11] = [
    "agent.tool.",
    "code.",
    "data.export",
    "data.report.",
    "deliverable.",
    "finance.",
    "governance.",
    "legal.",
    "media.",
    "payments.",
    "repo.",
];

/// Returns whether limits are meant for a pack by their name, in another case or form or with a version.
fn is_meant(key: &str, pack: Pack) -> bool {
    let begins = |known: &&str| fold(known).zip(fold(key)).is_some_and(|(known, key)| key.starts_with(&known));
    !pack.limit_keys().contains(&key) && pack.limit_keys().iter().any(begins)
}

impl Compiled {
    fn new(pack: Pack, key: &str, value: Option<Value<'_>>) -> Self {
        let path = member_path("limits", key);
        if let Some(value) = value.filter(|value| !value.is_object()) {
            return Self { rules: Err(Malformed::new(path, value.shape(), "an object")), unenforced: Vec::new(), known: Vec::new() };
        }
        let section = Section::new(path, value);
        let rules: Box<dyn Rules> = match pack {
            Pack::Command => Box::new(command::CommandLimits::new(&section)),
            Pack::FileRead => Box::new(file::FileLimits::reading(&section)),
            Pack::FileWrite => Box::new(file::FileLimits::writing(&section)),
            Pack::WebFetch => Box::new(web::WebLimits::fetching(&section)),
            Pack::WebBrowser => Box::new(web::WebLimits::browsing(&section)),
            Pack::Mcp => Box::new(mcp::McpLimits::new(&section)),
            Pack::Messaging => Box::new(messaging::MessagingLimits::new(&section)),
            Pack::Session => Box::new(session::SessionLimits::new(&section)),
        };
        Self { rules: Ok(rules), unenforced: section.unknown(), known: section.known() }
    }

    pub(super) fn check(&self, call: &RuleCall<'_>, unenforced: UnenforcedLimits, to: &mut dyn Report) {
        match &self.rules {
            Ok(rules) => rules.check(call, to),
            Err(malformed) => report(to, "limits", Err(Denial::invalid(malformed))),
        }
        let kept = match self.unenforced.first().filter(|_| unenforced == UnenforcedLimits::Deny) {
            None => Ok(()),
            Some(path) => Err(Denial::new("oap.policy_error", format!("{} is a limit that cannot be kept here", quoted(path)))),
        };
        report(to, "other limits", kept);
    }
}
