//! `tollgate signals explain`: what is read in a provider's body, and what follows.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use serde::Serialize;

use crate::commands::shared::output::{OutputArgs, OutputFormat, Screen, Table, text};
use crate::commands::shared::read_input;
use tollgate_core::decide::policy::{Policy, PolicySettings};
use tollgate_core::decide::safety::reading::Explanation;
use tollgate_core::decide::safety::{Inspection, ResponseContent, SAFETY_TERMINATED, Termination};
use tollgate_core::event::decode::ModelBody;
use tollgate_json::{DEPTH_MAX, Parser, Value};

#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// The body as the provider sent it, or the `model_response` event that holds it; `-` is stdin
    file: PathBuf,
    /// What the body is [default: the field of the event that holds it, else what it looks like]
    #[arg(long = "as", value_enum, value_name = "FIELD")]
    field: Option<Field>,
    #[command(flatten)]
    output: OutputArgs,
}

/// The fields of an event that hold a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Field {
    /// A provider's native body, or the events of its stream in a list
    Response,
    /// A LangChain message
    Message,
    /// A provider's API error
    Error,
}

/// What is printed.
#[derive(Debug, Serialize)]
struct Report<'a> {
    field: &'static str,
    #[serde(flatten)]
    read: &'a Explanation,
    /// The calls that the host runs, mirrors counted once.
    tools: Vec<String>,
    action: &'static str,
    code: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    safety: Option<&'a Termination>,
}

pub(super) fn execute(args: &ExplainArgs, policy: &PolicySettings, screen: Screen) -> anyhow::Result<ExitCode> {
    let bytes = read_input(&args.file)?;
    let mut parser = Parser::new();
    let root = parser.parse(&bytes, DEPTH_MAX).with_context(|| format!("{} is no JSON", args.file.display()))?;
    let (field, value) = body_of(root, args.field)?;
    let body = match field {
        Field::Response => ModelBody::Response(value),
        Field::Message => ModelBody::Message(value),
        Field::Error => ModelBody::Error(value),
    };
    let policy = Policy::new(policy);
    let (explanation, found) = (Explanation::of(&body), policy.safety().inspect(&body));
    let tools = ResponseContent::of(&body).calls.iter().map(|call| call.name.as_deref().unwrap_or("unknown").to_owned()).collect();
    let (action, code) = outcome(&found);
    let name = match field {
        Field::Response => "response",
        Field::Message => "message",
        Field::Error => "error",
    };
    let report = Report { field: name, read: &explanation, tools, action, code, safety: found.termination.as_ref() };
    let mut out = std::io::stdout().lock();
    match args.output.format() {
        OutputFormat::Table => write(&mut out, &report, screen)?,
        _ => writeln!(out, "{}", serde_json::to_string(&report)?)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the body, and what it is.
fn body_of(root: Value<'_>, field: Option<Field>) -> anyhow::Result<(Field, Value<'_>)> {
    if root.get("type").is_some_and(|kind| kind.is_text("model_response")) {
        let fields = [("response", Field::Response), ("message", Field::Message), ("error", Field::Error)];
        let held = fields.into_iter().find_map(|(name, field)| Some((field, root.get(name).filter(|value| !value.is_null())?)));
        return held.context("the event holds no response, message or error");
    }
    if !root.is_object() && root.items().next().is_none() {
        bail!("the body is {}; write what the provider sent: an object, or the events of its stream in a list", root.shape());
    }
    let looks_as = || {
        let is_message = ["response_metadata", "additional_kwargs", "kwargs", "lc"].iter().any(|name| root.get(name).is_some());
        if is_message { Field::Message } else { Field::Response }
    };
    Ok((field.unwrap_or_else(looks_as), root))
}

fn outcome(found: &Inspection<'_>) -> (&'static str, &'static str) {
    match (&found.termination, found.doubt) {
        (Some(_), _) => (if found.suppressed.is_empty() { "allow" } else { "suppress" }, SAFETY_TERMINATED),
        (None, Some(doubt)) => (doubt.action().as_str(), doubt.code()),
        (None, None) => ("allow", "allow"),
    }
}

fn write(out: &mut impl Write, report: &Report<'_>, screen: Screen) -> std::io::Result<()> {
    match report.read.shape {
        Some(shape) => writeln!(out, "shape: {shape}, read as `{}`", report.field)?,
        None => writeln!(out, "shape: not known, read as `{}`", report.field)?,
    }
    writeln!(out, "calls: {}", if report.tools.is_empty() { "none".to_owned() } else { report.tools.join(", ") })?;
    if report.read.reasons.is_empty() {
        writeln!(out, "no place that says why the response ended")?;
    } else {
        let mut table = Table::new(const { &[text("place"), text("value"), text("means"), text("rule"), text("shape")] });
        for reason in &report.read.reasons {
            let rule = reason.rule.unwrap_or("-");
            let cells = [reason.path, &reason.value, reason.means, rule, reason.shape];
            table.row(cells.map(str::to_owned).to_vec());
        }
        table.write(out, screen, OutputFormat::Table)?;
    }
    writeln!(out, "verdict: {}, {}", report.action, report.code)
}
