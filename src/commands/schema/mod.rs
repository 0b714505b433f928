//! `tollgate schema`: prints the JSON Schema of events, verdicts, controls or the configuration, the AsyncAPI document of the topics, or the
//! OpenAPI document of the HTTP server.

mod asyncapi;
mod openapi;

use std::io::Write as _;
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use serde_json::Value;

use tollgate_config::settings::Settings;
use tollgate_core::decide::{controls, evaluate};
use tollgate_core::event::decode;
use tollgate_core::settings;

#[derive(Debug, Args)]
pub(super) struct SchemaArgs {
    /// What to print the schema of
    name: SchemaName,
}

/// What there is a schema of.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum SchemaName {
    /// The values of records on the events topic
    Event,
    /// Verdicts
    Verdict,
    /// The values of records on the controls topic
    Control,
    /// The configuration file, for editors
    Configuration,
    /// The topics, as an AsyncAPI document
    Asyncapi,
    /// The HTTP server, as an OpenAPI document
    Openapi,
}

pub(super) fn execute(args: &SchemaArgs) -> anyhow::Result<ExitCode> {
    let schema = match args.name {
        SchemaName::Event => decode::schema(),
        SchemaName::Verdict => evaluate::schema(),
        SchemaName::Control => controls::schema(),
        SchemaName::Configuration => configuration()?,
        SchemaName::Asyncapi => asyncapi::document(),
        SchemaName::Openapi => openapi::document(),
    };
    writeln!(std::io::stdout(), "{}", serde_json::to_string_pretty(&schema)?)?;
    Ok(ExitCode::SUCCESS)
}

fn configuration() -> anyhow::Result<Value> {
    Ok(Settings::schema(&settings::defaults()?))
}
