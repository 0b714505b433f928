//! `--redact`: the key of the stand-ins, and what they cannot keep.

use std::fs::File;
use std::io::Read as _;

use anyhow::{Context as _, ensure};
use tollgate_core::redact::Redactor;

use tollgate_config::settings::Settings;

use super::CaptureArgs;

/// How many bytes a key has at least. Shorter ones can be tried.
const KEY_BYTES_MIN: usize = 16;
/// How many bytes a key has at most.
const KEY_BYTES_MAX: u64 = 4_096;
/// How many bytes a random key has.
const RANDOM_BYTES: usize = 32;
/// The provider that reads no arguments.
const ALLOWLIST: &str = "allowlist";

/// Returns what replaces the contents, if that is asked for.
pub(super) fn redactor(args: &CaptureArgs, settings: &Settings, goes_on: bool) -> anyhow::Result<Option<Redactor>> {
    if !args.redact {
        return Ok(None);
    }
    ensure!(
        args.redact_key_file.is_some() || !goes_on,
        "--resume: the stand-ins of the first part were made under a random key that is gone; give --redact-key-file from the beginning"
    );
    let others = settings.policy.guardrails.iter().flat_map(|guardrails| &guardrails.providers).map(|provider| provider.name);
    let others = others.into_iter().find(|name| *name != ALLOWLIST);
    if let Some(name) = others {
        say!("tollgate: the provider {name} reads arguments, and decides otherwise on their stand-ins; all other verdicts stay the same");
    }
    let key = match &args.redact_key_file {
        Some(path) => {
            let name = path.display();
            let mut key = Vec::new();
            let file = File::open(path).with_context(|| format!("{name} (--redact-key-file): cannot be read"))?;
            file.take(KEY_BYTES_MAX + 1).read_to_end(&mut key).with_context(|| format!("{name} (--redact-key-file): cannot be read"))?;
            ensure!(
                key.len() >= KEY_BYTES_MIN && key.len() as u64 <= KEY_BYTES_MAX,
                "{name} (--redact-key-file): found {} bytes; write {KEY_BYTES_MIN} to {KEY_BYTES_MAX} random ones: head -c 32 /dev/urandom",
                if key.len() as u64 > KEY_BYTES_MAX { "too many".to_owned() } else { key.len().to_string() }
            );
            key
        }
        None => random_key().context("/dev/urandom gives no random key")?,
    };
    let reasons = settings.policy.detectors.iter().flat_map(|detector| detector.reasons());
    Ok(Some(Redactor::with_reasons(&key, reasons)))
}

fn random_key() -> std::io::Result<Vec<u8>> {
    let mut key = vec![0; RANDOM_BYTES];
    File::open("/dev/urandom")?.read_exact(&mut key)?;
    Ok(key)
}
