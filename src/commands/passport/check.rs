//! `tollgate passport check`: lists a passport's faults and, on request, explains the decision on one call under it.

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::bail;
use clap::{Args, ValueEnum};
use serde::Serialize;

use bash_commands::Remark;
use tollgate_core::decide::policy::PolicySettings;
use tollgate_passport::{Passport, PassportFault, SchemaFault, check_schema};

use super::suggest::suggest;
use crate::commands::shared::passport::{Explanation, explain, fault_lines};
use crate::commands::shared::{Finding, now_ms, read_input};

#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// The passport; `-` is stdin
    file: PathBuf,
    /// Show each check of a call in its order, and what it says. INPUT is the tool's arguments as a JSON object, or a command line
    #[arg(long, num_args = 2, value_names = ["TOOL", "INPUT"])]
    explain: Option<Vec<String>>,
    /// When the call is made [default: now]
    #[arg(long, value_name = "RFC3339", value_parser = read_time, requires = "explain")]
    at: Option<i64>,
    /// Fail where an entry of allowed_commands runs whatever it is given, such as an interpreter, or is of a program that is not known here, and
    /// where the passport has a field that works and that the standard's schema forbids
    #[arg(long)]
    strict: bool,
    /// Propose entries for the commands of a capture that the passport refuses: to be read before they are taken over
    #[arg(long, value_name = "CAPTURE")]
    suggest: Option<PathBuf>,
    /// How to print [default: text on a terminal, else json]
    #[arg(long, value_enum)]
    format: Option<Format>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Json,
    Text,
}

/// The result of checking a passport.
#[derive(Debug, Serialize)]
struct Findings {
    /// Whether this is a passport at all, so that calls can be allowed under it.
    is_passport: bool,
    /// The digest of the canonical form, as verdicts carry it.
    #[serde(skip_serializing_if = "Option::is_none")]
    passport_digest: Option<String>,
    /// Why it is not a passport.
    #[serde(skip_serializing_if = "Option::is_none")]
    unusable: Option<String>,
    faults: Vec<SchemaFault>,
    /// What the author should know about entries of `allowed_commands`.
    remarks: Vec<EntryRemark>,
    #[serde(skip_serializing_if = "Option::is_none")]
    explanation: Option<Explanation>,
    /// Proposed entries of `allowed_commands`, with how many commands of the capture each would allow.
    #[serde(skip_serializing_if = "Option::is_none")]
    suggestions: Option<Vec<Suggestion>>,
}

/// A proposed entry.
#[derive(Debug, Serialize)]
struct Suggestion {
    entry: String,
    commands: usize,
}

/// A remark on an entry of a list of commands.
#[derive(Debug, Serialize)]
struct EntryRemark {
    path: String,
    entry: String,
    says: String,
    /// Whether whoever may run it may run anything.
    runs_anything: bool,
    /// Whether nothing is known of its program.
    is_unknown: bool,
}

/// Returns the remarks on a passport's list of commands.
fn entry_remarks(text: &[u8]) -> Vec<EntryRemark> {
    const PATH: &str = "limits.system.command.execute.allowed_commands";
    let document: serde_json::Value = serde_json::from_slice(text).unwrap_or_default();
    let list = document.pointer("/limits/system.command.execute/allowed_commands").and_then(serde_json::Value::as_array);
    let entries: Vec<String> = list.into_iter().flatten().map(|entry| entry.as_str().unwrap_or_default().to_owned()).collect();
    let remark = |Remark { index, says, runs_anything, is_unknown }| {
        let entry = entries.get(index).cloned().unwrap_or_default();
        EntryRemark { path: format!("{PATH}[{index}]"), entry, says, runs_anything, is_unknown }
    };
    bash_commands::remarks(&entries).into_iter().map(remark).collect()
}

pub(super) fn execute(args: &CheckArgs, policy: &PolicySettings) -> anyhow::Result<ExitCode> {
    let text = read(&args.file)?;
    let passport = Passport::read(&text);
    let explanation = match args.explain.as_deref() {
        Some([tool, input]) => Some(explain(
            passport.as_ref(),
            &policy.passport_terms().unwrap_or_default(),
            tool,
            input,
            Some(args.at.unwrap_or_else(now_ms)),
        )?),
        _ => None,
    };
    let suggestions = args.suggest.as_deref().map(|capture| suggestions(capture, passport.as_ref(), policy)).transpose()?;
    let findings = Findings {
        is_passport: passport.is_ok(),
        passport_digest: passport.as_ref().ok().map(|passport| format!("sha256:{}", passport.digest)),
        unusable: passport.as_ref().err().map(PassportFault::to_string),
        faults: check_schema(&text).unwrap_or_default(),
        remarks: entry_remarks(&text),
        explanation,
        suggestions,
    };
    let name = if is_stdin(&args.file) { "the passport".to_owned() } else { args.file.display().to_string() };
    let is_text = args.format.map_or_else(|| std::io::stdout().is_terminal(), |format| format == Format::Text);
    if is_text {
        Finding.write_all(findings.as_text(&name).as_bytes())?;
    } else {
        writeln!(Finding, "{}", serde_json::to_string_pretty(&findings)?)?;
        say!("{}", findings.summary(&name));
    }
    let open: Vec<&EntryRemark> = findings.remarks.iter().filter(|remark| remark.runs_anything || remark.is_unknown).collect();
    if args.strict {
        open.iter().for_each(|remark| say!("a fault with --strict: {}: '{}' {}", remark.path, remark.entry, remark.says));
    }
    let is_open = args.strict && (findings.formal() > 0 || !open.is_empty());
    Ok(if findings.is_passport && findings.faults() == 0 && !is_open { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Proposes entries for the commands of a capture that the passport refuses.
fn suggestions(capture: &Path, passport: Result<&Passport, &PassportFault>, policy: &PolicySettings) -> anyhow::Result<Vec<Suggestion>> {
    let terms = policy.passport_terms().unwrap_or_default();
    let is_allowed = |line: &str| {
        let input = serde_json::json!({"command": line}).to_string();
        explain(passport, &terms, "bash", &input, Some(now_ms())).is_ok_and(|explanation| explanation.allow)
    };
    Ok(suggest(capture, policy.limits.event_bytes_max, is_allowed)?
        .into_iter()
        .map(|(entry, commands)| Suggestion { entry, commands })
        .collect())
}

fn is_stdin(file: &Path) -> bool {
    file.as_os_str() == "-"
}

fn read(file: &Path) -> anyhow::Result<Vec<u8>> {
    let text = read_input(file)?;
    if text.is_empty() && is_stdin(file) {
        bail!("stdin: nothing there; name a file, or pipe a passport in");
    }
    Ok(text)
}

fn read_time(text: &str) -> Result<i64, String> {
    tollgate_json::time::parse_timestamp(text).ok_or_else(|| "it is not RFC 3339; write a time such as 2026-01-01T00:00:00Z".to_owned())
}

impl Findings {
    /// Returns how many fields only the schema has something against.
    fn formal(&self) -> usize {
        self.faults.iter().filter(|fault| fault.is_formal()).count()
    }

    /// Returns how many faults there are besides.
    fn faults(&self) -> usize {
        self.faults.len() - self.formal()
    }

    fn summary(&self, name: &str) -> String {
        let beyond = match self.formal() {
            0 => String::new(),
            _ => "; evaluation takes fields as they are written that the schema forbids, which is a fault with --strict alone".to_owned(),
        };
        match (&self.unusable, self.faults()) {
            (Some(fault), _) => format!("{name} is no usable passport: {fault}; every call under it is denied: oap.passport_invalid"),
            (None, 0) => format!("{name} is a passport without faults{beyond}"),
            (None, 1) => format!("{name} is a passport with 1 fault{beyond}"),
            (None, faults) => format!("{name} is a passport with {faults} faults{beyond}"),
        }
    }

    fn as_text(&self, name: &str) -> String {
        let mut text = format!("{}\n", self.summary(name));
        self.faults.iter().for_each(|fault| text.push_str(&format!("{}\n", fault_lines(fault))));
        for EntryRemark { path, entry, says, runs_anything, .. } in &self.remarks {
            let mark = if *runs_anything { "WARNING" } else { "note" };
            text.push_str(&format!("  {mark}: {path}: '{entry}' {says}\n"));
        }
        for Suggestion { entry, commands } in self.suggestions.iter().flatten() {
            text.push_str(&format!("  entry for {commands} commands: {entry}\n"));
        }
        if let Some(digest) = &self.passport_digest {
            text.push_str(&format!("digest {digest}\n"));
        }
        text.push_str(&self.explanation.as_ref().map(Explanation::as_text).unwrap_or_default());
        text
    }
}
