//! Descriptors of guardrail providers: the names of a provider, how its configuration is read, and what was read.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Serialize, Serializer, ser::SerializeMap};
use serde_json::Value;

use super::{GuardrailProvider, HttpSettings, Link};
use crate::decide::controls::Controls;
use crate::decide::tools::ToolPatterns;
use crate::settings::{Named, Section};
use tollgate_passport::{Passport, Terms};

/// One kind of provider: its names, and how its configuration is read. It stands beside the provider's code.
#[derive(Debug)]
pub struct ProviderDescriptor {
    /// The name in configuration and, unless the provider says otherwise, in metrics.
    pub name: &'static str,
    /// Other names for it in configuration, such as the class that another system has for it.
    pub aliases: &'static [&'static str],
    /// Reads the `config` of an entry, with the provider's defaults for what it leaves out. The second section is the `guardrails` block
    /// around it. Faults are added to the sections.
    pub read: fn(&Section<'_>, &Section<'_>) -> Box<dyn ProviderSettings>,
}

impl Named for ProviderDescriptor {
    fn name(&self) -> &'static str {
        self.name
    }

    fn aliases(&self) -> &'static [&'static str] {
        self.aliases
    }
}

/// The configuration of a provider. Most need no more than the two methods without a default.
pub trait ProviderSettings: std::fmt::Debug + Send + Sync {
    /// Returns the effective configuration, with defaults filled in and secrets left out. Everything that the provider decides by has to be
    /// in here or in [`ProviderSettings::basis`], because the policy's version is a digest of both.
    fn config(&self) -> Value;

    /// Returns the provider, under these controls. They may change while it is in force.
    fn build(&self, controls: &Arc<Controls>) -> Box<dyn GuardrailProvider>;

    /// Returns the file that has to be loaded before the provider is built, if it names one.
    fn file(&self) -> Option<NamedFile<'_>> {
        None
    }

    /// Takes the content of the file. Content that cannot be used is not an error: the provider then denies, and
    /// [`ProviderSettings::unusable`] says why.
    fn load(&mut self, content: &[u8]) {
        let _ = content;
    }

    /// Returns what is wrong with the content that was loaded, as a sentence for people.
    fn unusable(&self) -> Option<String> {
        None
    }

    /// Returns the lists of tools by which the provider decides: their keys, and the patterns in them.
    fn listed_tools(&self) -> Vec<(&'static str, &BTreeSet<String>)> {
        Vec::new()
    }

    /// Returns what the author of the settings should know about them, as sentences that begin with a key.
    fn remarks(&self) -> Vec<String> {
        Vec::new()
    }

    /// Returns what decisions depend on besides the configuration, such as the digest of a file that was loaded. The first part is the
    /// field that lists it in the version's digest.
    fn basis(&self) -> Option<(&'static str, String)> {
        None
    }

    /// Returns the policy server that the provider asks, if there is one.
    fn server(&self) -> Option<&HttpSettings> {
        None
    }

    /// Returns the policy server to be changed, so that it can be renamed.
    fn server_mut(&mut self) -> Option<&mut HttpSettings> {
        None
    }

    /// Returns the terms that passports are examined under, if the provider examines passports.
    fn passport_terms(&self) -> Option<Terms> {
        None
    }

    /// Returns the passport of calls whose agent has none of its own, if the provider has loaded one.
    fn passport(&self) -> Option<&Arc<Passport>> {
        None
    }

    /// Returns whether the provider reads this value of `guardrails.passport`: the id of an agent, or the path of a file.
    fn reads_reference(&self, _passport: &str) -> bool {
        self.server().is_some()
    }

    /// Returns whether the provider reads the arguments of calls.
    fn reads_arguments(&self) -> bool {
        self.passport_terms().is_some() || self.server().is_some()
    }
}

/// A file that a provider's configuration names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NamedFile<'s> {
    /// The configuration key that names it.
    pub key: &'s str,
    /// Its path.
    pub path: &'s str,
    /// What it contains, with an article, as in `a passport (a JSON file)`.
    pub content: &'static str,
}

/// A configured provider. It is serialised as an entry of `providers` with defaults filled in, and the policy's version is a digest of
/// that.
#[derive(Debug)]
pub struct ConfiguredProvider {
    /// Its name.
    pub name: &'static str,
    /// The only tools that it decides on, by pattern; `None` is all.
    pub tools: Option<Vec<String>>,
    /// Its configuration.
    pub settings: Box<dyn ProviderSettings>,
}

impl ConfiguredProvider {
    /// Builds the provider as a link of a chain.
    #[must_use]
    pub fn build(&self, controls: &Arc<Controls>) -> Link {
        Link { provider: self.settings.build(controls), tools: self.tools.clone().map(ToolPatterns::new) }
    }
}

impl Serialize for ConfiguredProvider {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut entry = serializer.serialize_map(None)?;
        if let Some(tools) = &self.tools {
            entry.serialize_entry("tools", tools)?;
        }
        entry.serialize_entry("use", self.name)?;
        entry.serialize_entry("config", &self.settings.config())?;
        entry.end()
    }
}
