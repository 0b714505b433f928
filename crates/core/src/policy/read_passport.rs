//! The `oap_passport` provider's block, and the file that it names.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::passport::{BROWSER_FAMILY, MCP_FAMILY, UnenforcedLimits};
use crate::policy::{PassportSettings, PolicySettings};

use crate::settings::{Fault, Faults, Section, shape};

/// Reads the provider's configuration; `guardrails` is the block around it, whose `passport` may name the file.
pub(super) fn read(config: &Section<'_>, guardrails: &Section<'_>) -> PassportSettings {
    let own = config.optional_string("passport_path").map(|path| (config.path_of("passport_path"), path));
    let shared = || guardrails.optional_string("passport").filter(|reference| is_path(reference));
    let file = own.or_else(|| shared().map(|path| (guardrails.path_of("passport"), path)));
    let (file_key, file_path) = file.map_or((None, None), |(key, path)| (Some(key), Some(path)));
    let unenforced_limits = match config.optional_string("unenforced_limits").as_deref() {
        None | Some("deny" | "") => UnenforcedLimits::Deny,
        Some("ignore") => UnenforcedLimits::Ignore,
        Some(_) => {
            config.fault("unenforced_limits", "another word", "write deny or ignore");
            UnenforcedLimits::Deny
        }
    };
    PassportSettings::new(file_key, file_path, read_tool_capabilities(config), unenforced_limits)
}

/// Whether a passport reference is a file's path rather than an agent's id.
fn is_path(reference: &str) -> bool {
    reference.contains(['/', '\\']) || reference.ends_with(".json")
}

fn read_tool_capabilities(config: &Section<'_>) -> BTreeMap<String, Option<String>> {
    const KEY: &str = "tool_capabilities";
    let mut read = BTreeMap::new();
    for (tool, capability) in config.entries(KEY) {
        let key = format!("{KEY}.{tool}");
        if tool.contains('*') && tool != BROWSER_FAMILY && tool != MCP_FAMILY {
            config.fault(&key, "a pattern", format!("write the tool's exact name; only {BROWSER_FAMILY} and {MCP_FAMILY} are families"));
        }
        match capability {
            Value::Null => drop(read.insert(tool.to_owned(), None)),
            Value::String(capability) if !capability.is_empty() => drop(read.insert(tool.to_owned(), Some(capability.clone()))),
            other => config.fault(&key, shape(other), "write a capability, `none` if the tool needs none, or null to forget the tool"),
        }
    }
    read
}

/// Loads every passport that is named.
pub(super) fn load(policy: &mut PolicySettings, read: impl Fn(&str) -> Result<Vec<u8>, String>) -> Result<(), Faults> {
    let mut faults = Vec::new();
    for settings in policy.passports_mut() {
        let Some((key, path)) = settings.file() else { continue };
        match read(path) {
            Ok(text) => settings.load(&text),
            Err(reason) => faults.push(Fault {
                key: key.to_owned(),
                found: format!("{path}, which cannot be read ({reason})"),
                fix: "write the path of a passport (a JSON file), or null".to_owned(),
            }),
        }
    }
    if faults.is_empty() { Ok(()) } else { Err(Faults(faults)) }
}
