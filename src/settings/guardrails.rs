//! `guardrails`: the block as DeerFlow writes it, with a list of providers besides.

use crate::evaluate::guardrail::{Allowlist, OapPassport};
use crate::policy::{GuardrailSettings, ProviderSettings};

use super::passport;
use super::reader::Section;

const NO_PROVIDER: &str = "write `provider: {use: allowlist, config: {denied_tools: [\"bash\"]}}`, or set `enabled: false`";

pub(super) fn read(section: &Section<'_>) -> Option<GuardrailSettings> {
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
    let settings = GuardrailSettings {
        fail_closed: section.bool("fail_closed"),
        passport: section.optional_string("passport"),
        providers: entries.iter().filter_map(|entry| read_provider(entry, section)).collect(),
    };
    is_enabled.then_some(settings)
}

fn read_provider(entry: &Section<'_>, guardrails: &Section<'_>) -> Option<ProviderSettings> {
    let name = entry.string("use");
    let config = entry.section("config");
    match name.rsplit(':').next().unwrap_or_default() {
        Allowlist::NAME | "AllowlistProvider" => Some(ProviderSettings::Allowlist {
            allowed_tools: config.strings("allowed_tools").map(|tools| tools.into_iter().collect()),
            denied_tools: config.strings("denied_tools").unwrap_or_default().into_iter().collect(),
        }),
        OapPassport::NAME | "OAPGuardrailProvider" => Some(ProviderSettings::OapPassport(passport::read(&config, guardrails))),
        "" => None,
        _ => {
            entry.fault("use", "an unknown provider", "write `allowlist` or `oap_passport`");
            None
        }
    }
}
