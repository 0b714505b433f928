//! The configuration of the passport provider, and the file that it names.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;
use serde_json::{Value, json};

use super::OapPassport;
use crate::decide::controls::Controls;
use crate::decide::guardrail::{GuardrailProvider, NamedFile, ProviderSettings};
use crate::settings::{Section, Spelling, shape};
use tollgate_passport::{BROWSER_FAMILY, CapabilityMap, MCP_FAMILY, Passport, PassportFault, Terms, UnenforcedLimits};

/// The settings of the passport provider: the loaded passport, and the terms that calls are examined under.
#[derive(Debug, Serialize)]
pub(super) struct PassportSettings {
    passport_path: Option<String>,
    tool_capabilities: BTreeMap<String, Option<String>>,
    unenforced_limits: UnenforcedLimits,
    /// The configuration key that names the file.
    #[serde(skip)]
    file_key: Option<String>,
    /// The file's content, or its fault; `None` until it is loaded.
    #[serde(skip)]
    passport: Option<Result<Arc<Passport>, PassportFault>>,
}

impl PassportSettings {
    fn terms(&self) -> Terms {
        Terms { capabilities: CapabilityMap::new(&self.tool_capabilities), unenforced_limits: self.unenforced_limits }
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
    }

    fn unusable(&self) -> Option<String> {
        let NamedFile { key, path, .. } = self.file()?;
        let fault = self.passport.as_ref()?.as_ref().err()?;
        Some(format!("{key}: {path} is no usable passport: {fault}; every call that relies on it is denied with oap.passport_invalid"))
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
        tool_capabilities: read_tool_capabilities(config),
        unenforced_limits,
        file_key,
        passport: None,
    }
}

/// Returns whether a passport reference is a file's path rather than an agent's id.
fn is_path(reference: &str) -> bool {
    reference.contains(['/', '\\']) || reference.ends_with(".json")
}

fn read_tool_capabilities(config: &Section<'_>) -> BTreeMap<String, Option<String>> {
    let mut read = BTreeMap::new();
    for entry in config.entries("tool_capabilities", Spelling::Underscores) {
        if entry.key.contains('*') && entry.key != BROWSER_FAMILY && entry.key != MCP_FAMILY {
            let fix = format!("write the tool's exact name; only {BROWSER_FAMILY} and {MCP_FAMILY} are families");
            entry.fault("a pattern", fix);
        }
        match entry.found.as_str() {
            None if entry.found.is_nothing() => drop(read.insert(entry.key, None)),
            Some(capability) if !capability.is_empty() => drop(read.insert(entry.key, Some(capability.to_owned()))),
            _ => {
                let fix = "write a capability, `none` if the tool needs none, or null to forget the tool";
                entry.fault(shape(entry.found.value), fix);
            }
        }
    }
    read
}
