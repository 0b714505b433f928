//! What configuration has to know of a provider, and what it has read of one.

use std::sync::Arc;

use serde::{Serialize, Serializer, ser::SerializeMap};
use serde_json::Value;

use super::{GuardrailProvider, HttpSettings, Link, ToolPatterns};
use crate::controls::Controls;
use crate::passport::Terms;
use crate::settings::{Named, Section};

/// One kind of provider: its names, and how its configuration is read. It stands beside the provider's code.
#[derive(Debug)]
pub struct ProviderDescriptor {
    /// The name in configuration and, unless the provider says otherwise, in metrics.
    pub name: &'static str,
    /// Other names for it in configuration, such as the class that another system has for it.
    pub aliases: &'static [&'static str],
    /// Reads the `config` of an entry, with the provider's defaults for what it leaves out; the second section is the `guardrails` around
    /// it. What is wrong goes to the sections' faults.
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

/// What a provider is configured to do. Most need no more than the two methods without a default.
pub trait ProviderSettings: std::fmt::Debug + Send + Sync {
    /// Returns the effective configuration, defaults filled in and secrets left out. Everything that it decides by has to stand in here or
    /// in [`ProviderSettings::basis`]: the policy's version is a digest of both.
    fn config(&self) -> Value;

    /// Returns the provider, under these controls, which may change while it is in force.
    fn build(&self, controls: &Arc<Controls>) -> Box<dyn GuardrailProvider>;

    /// Returns the file that has to be loaded before the provider is built, if it names one.
    fn file(&self) -> Option<NamedFile<'_>> {
        None
    }

    /// Takes what the file holds. Content that cannot be used is no error: the provider denies, and [`ProviderSettings::unusable`] says
    /// why.
    fn load(&mut self, content: &[u8]) {
        let _ = content;
    }

    /// Returns what is wrong with what was loaded, as a sentence for people.
    fn unusable(&self) -> Option<String> {
        None
    }

    /// Returns what decisions stand on besides the configuration, such as the digest of a file that was loaded, and the field of the
    /// version's digest that lists it.
    fn basis(&self) -> Option<(&'static str, String)> {
        None
    }

    /// Returns the policy server that has to be asked, if there is one.
    fn server(&self) -> Option<&HttpSettings> {
        None
    }

    /// Returns the same server, to give it another name.
    fn server_mut(&mut self) -> Option<&mut HttpSettings> {
        None
    }

    /// Returns the terms that passports are examined under, if the provider examines them.
    fn passport_terms(&self) -> Option<Terms> {
        None
    }
}

/// A file that a provider's configuration names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NamedFile<'s> {
    /// The key that names it.
    pub key: &'s str,
    /// Its path.
    pub path: &'s str,
    /// What it holds, with an article, as in `a passport (a JSON file)`.
    pub content: &'static str,
}

/// A provider as it is configured. It is serialised as an entry of `providers`, defaults filled in; the policy's version is a digest of
/// that.
#[derive(Debug)]
pub struct ConfiguredProvider {
    /// Its name.
    pub name: &'static str,
    /// The only tools that it has a say in, by pattern; `None` is all.
    pub tools: Option<Vec<String>>,
    /// What it is configured to do.
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
