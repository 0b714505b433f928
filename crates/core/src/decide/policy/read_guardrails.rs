//! Reading the section `guardrails`: the block as DeerFlow writes it, and a list of providers.

use std::collections::BTreeMap;

use super::{GuardrailSettings, Registry};
use crate::decide::tools::read_tools;

use crate::decide::guardrail::ConfiguredProvider;
use crate::settings::{Section, find};

const NO_PROVIDER: &str = "write `provider: {use: allowlist, config: {denied_tools: [\"bash\"]}}`, or set `enabled: false`";

pub(super) fn read(section: &Section<'_>, registry: &Registry) -> Option<GuardrailSettings> {
    let is_enabled = section.bool("enabled");
    let single = section.value("provider").is_some_and(|value| !value.is_null()).then(|| section.section("provider"));
    let several = section.value("providers").filter(|value| !value.is_null()).and_then(|_| section.sections("providers"));
    if single.is_some() && several.is_some() {
        section.fault("provider", "both `provider` and `providers`", "write one of them");
    }
    let entries: Vec<_> = single.into_iter().chain(several.unwrap_or_default()).collect();
    if is_enabled && entries.is_empty() {
        section.fault("provider", "nothing although `enabled` is true", NO_PROVIDER);
    }
    let mut providers: Vec<_> = entries.iter().filter_map(|entry| read_provider(entry, section, registry)).collect();
    if !entries.is_empty() && !is_enabled && !section.is_written("enabled") {
        section.fault("enabled", "nothing although there are providers, which nobody would ask", "write true, or false to switch them off");
    }
    // Providers that decide at once come first: no policy server has to be asked about a call that they deny.
    providers.sort_by_key(|provider| provider.settings.server().is_some());
    make_names_unique(&mut providers);
    let settings = GuardrailSettings { fail_closed: section.bool("fail_closed"), passport: section.optional_string("passport"), providers };
    is_enabled.then_some(settings)
}

fn read_provider(entry: &Section<'_>, guardrails: &Section<'_>, registry: &Registry) -> Option<ConfiguredProvider> {
    let provider = find(entry, "provider", registry.providers());
    let tools = read_tools(entry, "tools");
    if tools.as_ref().is_some_and(Vec::is_empty) {
        entry.fault("tools", "an empty list", "name tools, such as [\"bash\", \"mcp__*\"], or leave it out for all");
    }
    let config = entry.section("config");
    let provider = provider?;
    Some(ConfiguredProvider { name: provider.name, tools, settings: (provider.read)(&config, guardrails) })
}

/// Numbers servers with the same name, so that metrics tell them apart.
fn make_names_unique(providers: &mut [ConfiguredProvider]) {
    let mut seen = BTreeMap::<String, usize>::new();
    for server in providers.iter_mut().filter_map(|provider| provider.settings.server_mut()) {
        let number = seen.entry(server.name.clone()).and_modify(|number| *number += 1).or_insert(1);
        if *number > 1 {
            server.name = format!("{}-{number}", server.name);
        }
    }
}
