//! The configuration of the passport provider, and the file that it names.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use super::OapPassport;
use crate::decide::controls::Controls;
use crate::decide::guardrail::{GuardrailProvider, NamedFile, ProviderSettings};
use crate::decide::tools::{ToolPatterns, is_foreign};
use crate::settings::{Section, Spelling, shape};
use tollgate_passport::{
    AgentHost, ArgumentRole, BROWSER_FAMILY, CapabilityMap, HOSTS, MCP_FAMILY, Passport, PassportFault, SchemaFault, Terms, ToolArguments,
    UnenforcedLimits, check_schema, known_capabilities, known_tools,
};

/// The settings of the passport provider: the loaded passport, and the terms that calls are examined under.
#[derive(Debug, Serialize)]
pub(super) struct PassportSettings {
    passport_path: Option<String>,
    /// The hosts whose tools are known; `None` is all, as far as their names mean one thing.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "write_hosts")]
    hosts: Option<Vec<AgentHost>>,
    tool_capabilities: BTreeMap<String, Option<String>>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    tool_arguments: BTreeMap<String, ArgumentRole>,
    unenforced_limits: UnenforcedLimits,
    /// The configuration key that names the file.
    #[serde(skip)]
    file_key: Option<String>,
    /// The file's content, or its fault; `None` until it is loaded.
    #[serde(skip)]
    passport: Option<Result<Arc<Passport>, PassportFault>>,
    /// The first fault of the file because of which calls are denied.
    #[serde(skip)]
    denies: Option<String>,
}

impl PassportSettings {
    fn terms(&self) -> Terms {
        let Self { tool_capabilities, tool_arguments, unenforced_limits, hosts, .. } = self;
        let hosts = hosts.as_deref();
        let arguments = tool_arguments.iter().filter_map(|(key, role)| key.rsplit_once('.').map(|(tool, name)| (tool, name, *role)));
        Terms {
            capabilities: CapabilityMap::new(hosts, tool_capabilities),
            arguments: ToolArguments::new(hosts, arguments),
            unenforced_limits: *unenforced_limits,
        }
    }
}

impl ProviderSettings for PassportSettings {
    fn config(&self) -> Value {
        json!(self)
    }

    fn build(&self, controls: &Arc<Controls>) -> Box<dyn GuardrailProvider> {
        Box::new(OapPassport::new(Arc::clone(controls), self.passport.clone(), self.terms()))
    }

    fn file(&self) -> Option<NamedFile<'_>> {
        let (key, path) = self.file_key.as_deref().zip(self.passport_path.as_deref())?;
        Some(NamedFile { key, path, content: "a passport (a JSON file)" })
    }

    fn load(&mut self, content: &[u8]) {
        self.passport = Some(Passport::read(content).map(Arc::new));
        let denies = |fault: &SchemaFault| fault.effect.starts_with("denies every call");
        self.denies = check_schema(content).ok().and_then(|faults| faults.into_iter().find(denies)).map(|fault| {
            let SchemaFault { path, found, expected, effect } = fault;
            format!("{path}: found {found}, expected {expected}; it {effect}")
        });
    }

    fn unusable(&self) -> Option<String> {
        let NamedFile { key, path, .. } = self.file()?;
        match self.passport.as_ref()? {
            Err(fault) => Some(format!(
                "{key}: {path} is no usable passport: {fault}; every call that relies on it is denied with oap.passport_invalid"
            )),
            Ok(_) => self.denies.as_ref().map(|fault| format!("{key}: {path}: {fault}")),
        }
    }

    fn remarks(&self) -> Vec<String> {
        let of_capability = |(tool, capability): (&String, &Option<String>)| {
            let unknown = capability.as_deref().filter(|capability| known_capabilities().all(|known| known != *capability))?;
            Some(format!("tool_capabilities.{tool}: Unknown capability: only a passport that grants '{unknown}' allows the tool"))
        };
        let known = ToolPatterns::new(known_tools().map(str::to_owned).chain(self.tool_capabilities.keys().cloned()));
        let of_argument = |key: &String| {
            let is_known = key.rsplit_once('.').is_some_and(|(tool, _)| known.matches(tool));
            let says = "no tool that is known here has this name, so that the entry says nothing of any call; correct it, or write the tool's capability too (tool_capabilities)";
            (!is_known).then(|| format!("tool_arguments.{key}: {says}"))
        };
        self.tool_capabilities.iter().filter_map(of_capability).chain(self.tool_arguments.keys().filter_map(of_argument)).collect()
    }

    fn basis(&self) -> Option<(&'static str, String)> {
        let passport = match &self.passport {
            None => "none".to_owned(),
            Some(Ok(passport)) => format!("sha256:{}", passport.digest),
            Some(Err(fault)) => format!("unusable: {fault}"),
        };
        Some(("passports", passport))
    }

    fn passport_terms(&self) -> Option<Terms> {
        Some(self.terms())
    }

    fn passport(&self) -> Option<&Arc<Passport>> {
        self.passport.as_ref()?.as_ref().ok()
    }

    fn reads_reference(&self, passport: &str) -> bool {
        !is_path(passport) || self.passport_path.as_deref() == Some(passport)
    }
}

/// Reads the provider's configuration. `guardrails` is the block around it, whose `passport` may name the file.
pub(super) fn read(config: &Section<'_>, guardrails: &Section<'_>) -> PassportSettings {
    let own = config.optional_string("passport_path").map(|path| (config.name_of("passport_path"), path));
    let shared = || guardrails.optional_string("passport").filter(|reference| is_path(reference));
    let file = own.or_else(|| shared().map(|path| (guardrails.name_of("passport"), path)));
    let (file_key, file_path) = file.map_or((None, None), |(key, path)| (Some(key), Some(path)));
    let words = [("deny", UnenforcedLimits::Deny), ("ignore", UnenforcedLimits::Ignore)];
    let unenforced_limits = config.word("unenforced_limits", &words).unwrap_or(UnenforcedLimits::Deny);
    PassportSettings {
        passport_path: file_path,
        hosts: read_hosts(config),
        tool_capabilities: read_tool_capabilities(config),
        tool_arguments: read_tool_arguments(config),
        unenforced_limits,
        file_key,
        passport: None,
        denies: None,
    }
}

/// Returns whether a passport reference is a file's path rather than an agent's id.
fn is_path(reference: &str) -> bool {
    reference.contains(['/', '\\']) || reference.ends_with(".json")
}

fn read_hosts(config: &Section<'_>) -> Option<Vec<AgentHost>> {
    let names = config.strings("hosts")?;
    let mut hosts = Vec::new();
    for (index, name) in names.iter().enumerate() {
        match AgentHost::of(name) {
            Some(host) if hosts.contains(&host) => config.fault(&format!("hosts[{index}]"), "a host that stands there twice", "remove it"),
            Some(host) => hosts.push(host),
            None => {
                let known = HOSTS.map(|host| host.name).join(", ");
                config.fault(&format!("hosts[{index}]"), "the name of no host", format!("write some of {known}"));
            }
        }
    }
    Some(hosts)
}

fn write_hosts<S: Serializer>(hosts: &Option<Vec<AgentHost>>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(hosts.iter().flatten().map(|host| host.name))
}

fn read_tool_capabilities(config: &Section<'_>) -> BTreeMap<String, Option<String>> {
    let mut read = BTreeMap::new();
    for entry in config.entries("tool_capabilities", Spelling::Underscores) {
        if entry.key.contains('*') && entry.key != BROWSER_FAMILY && entry.key != MCP_FAMILY {
            let fix = format!("write the tool's exact name; only {BROWSER_FAMILY} and {MCP_FAMILY} are families");
            entry.fault("a pattern", fix);
        } else if is_foreign(&entry.key) {
            entry.fault("an entry that the name of no tool matches", "write the tool's exact name, such as mcp__github__get_issue");
        }
        match entry.found.as_str() {
            None if entry.found.is_nothing() => drop(read.insert(entry.key, None)),
            Some(capability) if !capability.is_empty() => {
                if let Some(meant) = misspelt(capability) {
                    entry.fault("the name of no capability", format!("write {meant}"));
                }
                drop(read.insert(entry.key, Some(capability.to_owned())));
            }
            _ => {
                let fix = "write a capability, `none` if the tool needs none, or null to forget the tool";
                entry.fault(shape(entry.found.value), fix);
            }
        }
    }
    read
}

/// How many letters a capability that is a slip of the pen differs at most from the one that is meant.
const SLIPS_MAX: usize = 2;

/// Returns the capability that is meant by a name that is none but nearly so: with another letter, a part or an end left out, or a
/// version behind.
fn misspelt(capability: &str) -> Option<&'static str> {
    let name = capability.trim().to_ascii_lowercase();
    let slips = |known: &str| {
        let is_part = known.strip_prefix(name.as_str()).or_else(|| name.strip_prefix(known)).is_some_and(|rest| rest.starts_with('.'));
        let is_cut = name.contains('.') && known.starts_with(name.as_str());
        let slips = strsim::osa_distance(known, &name);
        (is_part || is_cut || slips <= SLIPS_MAX).then_some(slips)
    };
    let near = known_capabilities().filter_map(|known| Some((slips(known)?, known)));
    near.min_by_key(|(slips, _)| *slips).map(|(_, known)| known).filter(|known| *known != capability)
}

/// Reads what arguments of tools are: `TOOL.ARGUMENT` with a role.
fn read_tool_arguments(config: &Section<'_>) -> BTreeMap<String, ArgumentRole> {
    let mut read = BTreeMap::new();
    for entry in config.entries("tool_arguments", Spelling::Underscores) {
        let is_plain = |name: &str| name.is_ascii() && name.bytes().any(|byte| byte.is_ascii_alphanumeric());
        if !entry.key.rsplit_once('.').is_some_and(|(tool, name)| !tool.is_empty() && is_plain(name)) {
            entry.fault("a key of another form", "write the tool's name, a dot and the argument's name in ASCII, such as my_reader.where");
            continue;
        }
        if entry.key.contains('*') || entry.key.rsplit_once('.').is_some_and(|(tool, _)| is_foreign(tool)) {
            entry.fault("an entry that the name of no tool matches", "write the tool's exact name, such as mcp__github__get_issue.owner");
            continue;
        }
        let role = ArgumentRole::CONFIGURABLE.iter().find(|(word, _)| entry.found.as_str() == Some(word));
        match role {
            Some((_, role)) => drop(read.insert(entry.key, *role)),
            None => {
                let words: Vec<_> = ArgumentRole::CONFIGURABLE.iter().map(|(word, _)| *word).collect();
                entry.fault(
                    entry.found.as_str().map_or(shape(entry.found.value), |_| "another word"),
                    format!("write one of {}", words.join(", ")),
                );
            }
        }
    }
    read
}
