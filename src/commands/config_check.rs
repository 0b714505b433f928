//! `tollgate config check`: the effective configuration on stdout, its policy version on stderr.

use std::io::Write;
use std::process::ExitCode;

use crate::settings::Settings;
use tollgate_core::policy::Policy;

pub(super) fn execute(settings: &Settings) -> anyhow::Result<ExitCode> {
    // JSON is YAML too, so what is printed here can be used as a configuration file.
    let text = serde_json::to_string_pretty(&settings.redacted())?;
    writeln!(std::io::stdout(), "{text}")?;
    settings.policy.unusable().for_each(|fault| say!("tollgate: {fault}"));
    say!("the configuration is valid; policy_version {}", Policy::new(&settings.policy).version());
    Ok(ExitCode::SUCCESS)
}
