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

use tollgate_json::{Text, Value};

use super::argument_names::{ArgumentNames, fold};
use super::arguments::{Arguments, Sorted};
use super::denial::{Denial, Report, report};
use super::fields::{Amount, Field, Malformed, Section, member_path, quoted};
use super::pack::Pack;
use super::schema::SchemaFault;
use file::FileLimits;
pub(super) use file_rules::FileRules;
use limit::{check_amount, check_limit, deny_found, deny_if};
use web::WebLimits;

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

    /// Returns the rules, if they are about files.
    fn files(&self) -> Option<&FileLimits> {
        None
    }

    /// Returns the rules, if they are about the web.
    fn web(&self) -> Option<&WebLimits> {
        None
    }

    /// Returns what is wrong with each of the limits, if something is.
    fn faults(&self) -> Vec<Option<&Malformed>>;
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
            let found = pack.limit_keys().filter_map(|key| Some((key, limits?.get(key).filter(|value| !value.is_null())?)));
            let mut compiled: Vec<Compiled> = found.map(|(key, value)| Compiled::new(pack, key, Some(value))).collect();
            if compiled.is_empty() {
                compiled.push(Compiled::new(pack, pack.capability(), None));
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
                || Pack::ALL.iter().any(|pack| pack.limit_keys().any(|key| key == name) || is_meant(name, *pack))
                || is_object && OTHERS.split(' ').any(|other| name.starts_with(other))
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
        self.readable().map(FileLimits::weight).sum()
    }

    /// Returns how many entries of files are blocked. A glob, and what is taken whole, is compared with each.
    fn entries(&self) -> usize {
        self.readable().map(FileLimits::entries).sum()
    }

    fn readable(&self) -> impl Iterator<Item = &FileLimits> {
        self.packs.iter().flat_map(|(_, compiled)| compiled).filter_map(|compiled| compiled.rules.as_deref().ok()?.files())
    }

    /// Returns the rules of a pack for files, or the denial where limits cannot be read.
    fn files(&self, pack: Pack) -> impl Iterator<Item = Result<&FileLimits, Denial>> {
        self.rules(pack).filter_map(|rules| rules.map(Rules::files).transpose())
    }

    /// Returns the rules for fetching from the web, or the denial where limits cannot be read.
    fn web(&self) -> impl Iterator<Item = Result<&WebLimits, Denial>> {
        self.rules(Pack::WebFetch).filter_map(|rules| rules.map(Rules::web).transpose())
    }

    fn rules(&self, pack: Pack) -> impl Iterator<Item = Result<&dyn Rules, Denial>> {
        self.of(pack).iter().map(|compiled| compiled.rules.as_deref().map_err(Denial::invalid))
    }

    /// Returns the limits that rules cannot read, and those that they cannot enforce.
    pub(super) fn faults(&self) -> Vec<SchemaFault> {
        const DENIES: &str = "denies every call that needs this capability: oap.passport_invalid";
        let mut faults = Vec::new();
        for compiled in self.packs.iter().flat_map(|(_, compiled)| compiled) {
            let malformed = compiled.rules.as_ref().map_or_else(|malformed| vec![Some(malformed)], |rules| rules.faults());
            faults.extend(malformed.into_iter().flatten().map(|malformed| SchemaFault::new(malformed.clone(), DENIES)));
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
    let keys = limits.members().filter(|(_, value)| !value.is_null()).filter_map(|(key, _)| key.as_text().and_then(Text::into_str));
    keys.filter(move |key| is_meant(key, pack)).map(move |key| {
        let expected = format!("{} as the name of these limits", pack.capability());
        let rules = Err(Malformed::new(member_path("limits", &key), "a name that limits nothing", expected));
        Compiled { rules, unenforced: Vec::new(), known: Vec::new() }
    })
}

/// TABLE: the beginnings of capabilities of the standard that have no rules here. Other limits count only for capabilities that are granted.
const OTHERS: &str = "agent.tool. code. data.export data.report. deliverable. finance. governance. legal. media. payments. repo.";

/// Returns whether limits are meant for a pack by their name, in another case or form or with a version.
fn is_meant(key: &str, pack: Pack) -> bool {
    let begins = |known: &str| fold(known).zip(fold(key)).is_some_and(|(known, key)| key.starts_with(&known));
    !pack.limit_keys().any(|known| known == key) && pack.limit_keys().any(begins)
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
            Pack::FileRead => Box::new(FileLimits::reading(&section)),
            Pack::FileWrite => Box::new(FileLimits::writing(&section)),
            Pack::WebFetch => Box::new(WebLimits::fetching(&section)),
            Pack::WebBrowser => Box::new(WebLimits::browsing(&section)),
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
