//! `tollgate version`: what the program is built of, which state it reads and writes, and the revision of its rules.

use std::io::Write;
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use rdkafka::ClientConfig;
use rdkafka::util::get_rdkafka_version;
use serde::Serialize;

use tollgate_core::decide::policy::RULES_REVISION;
use tollgate_core::engine::checkpoint;
use tollgate_worker::metrics::VERSION;

use crate::commands::shared::process::REVISION;

#[derive(Debug, Args)]
pub(super) struct VersionArgs {
    /// How to print
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = VersionFormat::Text)]
    output: VersionFormat,
    /// Print JSON: short for --output json
    #[arg(long, conflicts_with = "output")]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum VersionFormat {
    /// Lines for people
    Text,
    /// One JSON object
    Json,
}

/// What is known of the build.
#[derive(Debug, Serialize)]
struct Build {
    version: &'static str,
    /// The revision of the sources, or `unknown`.
    revision: &'static str,
    target: &'static str,
    rustc: &'static str,
    profile: &'static str,
    features: Vec<&'static str>,
    librdkafka: Librdkafka,
    /// The OpenSSL that runs, if there is one.
    openssl: Option<String>,
    state: StateVersions,
    /// It goes up when the same settings begin to decide differently.
    rules_revision: u32,
}

#[derive(Debug, Serialize)]
struct Librdkafka {
    version: String,
    features: Vec<String>,
}

/// The versions of the format of state.
#[derive(Debug, Serialize)]
struct StateVersions {
    writes: u8,
    reads_from: u8,
    reads_to: u8,
}

pub(super) fn execute(args: &VersionArgs) -> anyhow::Result<ExitCode> {
    let build = Build::this()?;
    let mut out = std::io::stdout().lock();
    if args.json || args.output == VersionFormat::Json {
        writeln!(out, "{}", serde_json::to_string(&build)?)?;
    } else {
        build.lines().iter().try_for_each(|(what, text)| writeln!(out, "{what:<12} {text}"))?;
    }
    Ok(ExitCode::SUCCESS)
}

impl Build {
    fn this() -> anyhow::Result<Self> {
        let features = [("openssl-vendored", cfg!(feature = "openssl-vendored")), ("openssl-system", cfg!(feature = "openssl-system"))];
        let features = features.into_iter().filter(|(_, is_on)| *is_on).map(|(name, _)| name).collect();
        let builtin = ClientConfig::new().create_native_config()?.get("builtin.features")?;
        Ok(Self {
            version: VERSION,
            revision: REVISION,
            target: env!("TOLLGATE_TARGET"),
            rustc: env!("TOLLGATE_RUSTC"),
            profile: if cfg!(debug_assertions) { "debug" } else { "release" },
            features,
            librdkafka: Librdkafka {
                version: get_rdkafka_version().1,
                features: builtin.split(',').map(str::trim).filter(|feature| !feature.is_empty()).map(str::to_owned).collect(),
            },
            openssl: openssl(),
            state: StateVersions { writes: checkpoint::VERSION, reads_from: checkpoint::VERSION_MIN, reads_to: checkpoint::VERSION },
            rules_revision: RULES_REVISION,
        })
    }

    fn lines(&self) -> Vec<(&'static str, String)> {
        let Self { version, revision, target, rustc, profile, features, librdkafka, openssl, state, rules_revision } = self;
        let list = |list: &str| if list.is_empty() { "none".to_owned() } else { list.to_owned() };
        vec![
            ("tollgate", (*version).to_owned()),
            ("revision", (*revision).to_owned()),
            ("target", format!("{target}, {profile}")),
            ("compiler", (*rustc).to_owned()),
            ("features", list(&features.join(", "))),
            ("librdkafka", format!("{} ({})", librdkafka.version, librdkafka.features.join(", "))),
            ("OpenSSL", openssl.clone().unwrap_or_else(|| "none".to_owned())),
            ("state", format!("writes version {}, reads {} to {}", state.writes, state.reads_from, state.reads_to)),
            ("rules", format!("revision {rules_revision}")),
        ]
    }
}

#[cfg(feature = "tls")]
fn openssl() -> Option<String> {
    Some(openssl::version::version().to_owned())
}

#[cfg(not(feature = "tls"))]
fn openssl() -> Option<String> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_says_what_it_is_made_of() {
        let build = Build::this().unwrap();
        let json = serde_json::to_value(&build).unwrap();
        assert_eq!(json["version"], env!("CARGO_PKG_VERSION"));
        assert_eq!(
            json["state"],
            serde_json::json!({"writes": checkpoint::VERSION, "reads_from": checkpoint::VERSION_MIN, "reads_to": checkpoint::VERSION})
        );
        assert!(build.librdkafka.version.starts_with("2.") && build.librdkafka.features.iter().any(|feature| feature == "sasl_plain"));
        assert!(build.target.contains(std::env::consts::ARCH) && build.rustc.starts_with("rustc "), "{} {}", build.target, build.rustc);
        assert_eq!(build.lines().len(), 9);
        assert_eq!(build.openssl.is_some(), cfg!(feature = "tls"));
    }
}
