//! What `config check --connect` asks each policy server: one harmless question, whose answer it shows.

use tollgate_config::settings::Settings;
use tollgate_core::decide::guardrail::{GuardrailProvider, GuardrailRequest, Http, HttpSettings, ProviderError, Question, Step};
use tollgate_core::decide::policy::GuardrailSettings;
use tollgate_core::event::decode::Attribution;
use tollgate_passport::ToolInput;
use tollgate_worker::host_time::now_ms;
use tollgate_worker::policy_servers::PolicyServers;

use crate::commands::shared::process;

/// The tool, the call and the thread of the question, unless the provider is limited to other tools.
const NAME: &str = "tollgate_config_check";

/// Asks each configured policy server about a call without arguments, and says what it answers.
///
/// # Errors
/// Names the servers that give no decision: a worker would deny every call that it asks them about, or let it run unjudged.
pub(super) fn ask(settings: &Settings, servers: &PolicyServers) -> anyhow::Result<()> {
    let mut faults = Vec::new();
    for (place, server) in settings.policy.guardrails.iter().flat_map(GuardrailSettings::servers) {
        let tools = settings.policy.guardrails.as_ref().and_then(|guardrails| guardrails.providers.get(place)?.tools.as_deref());
        let tool = tools.into_iter().flatten().find(|tool| !tool.contains('*')).map_or(NAME, String::as_str);
        let question = format!("policy server {:?}, asked about a call of {tool:?} without arguments:", server.name);
        match decision(servers, place, server, tool) {
            Ok(answer) => say!("{question} {answer}"),
            Err(error) => faults.push(format!("{question} no decision: {}", servers.explain(place, error))),
        }
    }
    anyhow::ensure!(faults.is_empty(), "--connect: {}", faults.join("\n"));
    Ok(())
}

/// Returns what a server answers, in words.
fn decision(servers: &PolicyServers, place: usize, server: &HttpSettings, tool: &str) -> Result<String, ProviderError> {
    let provider = Http::new(server.name.clone(), server.dialect);
    let now = Some(now_ms());
    let request = GuardrailRequest {
        tool_name: tool,
        tool_input: &ToolInput::Absent { null: false },
        tool_call_id: NAME,
        thread_id: NAME,
        turn_id: None,
        time_ms: now,
        latest_ms: now,
        attribution: &Attribution::default(),
        passport: None,
    };
    let Step::Ask(body) = provider.plan(&request) else { return Err(ProviderError::NotAsked) };
    let answer = process::ask_and_wait(servers, Question { provider: place, body }).map_err(|_| ProviderError::NotAsked)?;
    let decision = provider.read(&answer?)?;
    Ok(match decision.reasons.first() {
        _ if decision.allow => "it allows the call".to_owned(),
        Some(reason) => format!("it denies the call ({})", reason.code),
        None => "it denies the call".to_owned(),
    })
}
