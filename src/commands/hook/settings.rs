//! The entries of hosts' settings that start or ask Tollgate, and where each host goes on without a verdict.

use std::io::Write as _;
use std::process::ExitCode;

use anyhow::Context as _;

use crate::commands::shared::server::{DEFAULT_URL, Server};
use crate::commands::shared::wrong;

/// The settings of a host.
struct HostSettings {
    host: &'static str,
    /// Where the entry belongs.
    file: &'static str,
    /// The entry, with `@HOOK@` for the command and `@URL@` for the server.
    entry: &'static str,
    /// The entry that starts the command, where the first entry does without it: a header cannot be read from a file, and the host asks no
    /// private address.
    entry_with_command: Option<&'static str>,
    /// Where the host goes on without a verdict, whatever the entry says.
    fails_open: &'static str,
}

const HOSTS: [HostSettings; 6] = [
    HostSettings {
        host: "claude-code",
        file: "~/.claude/settings.json, or for everyone /etc/claude-code/managed-settings.json",
        entry: include_str!("../../../config/hosts/claude-code.json"),
        entry_with_command: Some(include_str!("../../../config/hosts/claude-code-command.json")),
        fails_open: "Claude Code before 2.1.295 does not know onFailure: every failure of the server lets the call run. It refuses http hooks to \
                     private addresses (10.0.0.0/8 and the like): for --url with an address, the command is printed; a name that leads to such \
                     an address needs the command too, which --token-file prints. --bare and CLAUDE_CODE_SIMPLE run no hooks, @file mentions \
                     pass no hook, and folders that are not trusted have none.",
    },
    HostSettings {
        host: "codex",
        file: "~/.codex/config.toml, or for everyone the managed requirements",
        entry: include_str!("../../../config/hosts/codex.toml"),
        entry_with_command: None,
        fails_open: "Codex runs the call whenever a hook fails in any other way than with exit code 2: if the program is missing or takes longer \
                     than the timeout. A hook that is not managed does nothing until the user has trusted it. Web search and write_stdin polls \
                     pass no hook.",
    },
    HostSettings {
        host: "copilot",
        file: "<repository>/.github/hooks/tollgate.json, ~/.copilot/hooks, or for everyone /etc/github-copilot/policy.d",
        entry: include_str!("../../../config/hosts/copilot.json"),
        entry_with_command: None,
        fails_open: "Copilot runs the call when a hook takes longer than the timeout, from policy files too. It reads what a command says of a \
                     failed call only at exit code 2, so warnings after failures do not reach the model.",
    },
    HostSettings {
        host: "cursor",
        file: "<repository>/.cursor/hooks.json, ~/.cursor/hooks.json, or for everyone /etc/cursor/hooks.json",
        entry: include_str!("../../../config/hosts/cursor.json"),
        entry_with_command: None,
        fails_open: "Cursor before failClosed was known lets the call run after every failure but exit code 2. A session that should stop goes \
                     on: Cursor has no answer for that, so only its calls are refused.",
    },
    HostSettings {
        host: "gemini-cli",
        file: "~/.gemini/settings.json, or for everyone the system's settings.json",
        entry: include_str!("../../../config/hosts/gemini-cli.json"),
        entry_with_command: None,
        fails_open: "Gemini CLI runs the call if the program is missing, is killed, or takes longer than the timeout; there is no switch. Rules of \
                     its policy engine (/etc/gemini-cli/policies) hold without a hook.",
    },
    HostSettings {
        host: "vscode",
        file: "<repository>/.github/hooks/tollgate.json",
        entry: include_str!("../../../config/hosts/vscode.json"),
        entry_with_command: None,
        fails_open: "VS Code goes on after every failure but exit code 2: if the program is missing or takes longer than the timeout. Copilot's \
                     CLI reads .github/hooks in another dialect, and its calls are refused there. Where both work in a repository, write this \
                     entry into .vscode/hooks/tollgate.json, and \"chat.hookFilesLocations\": {\".vscode/hooks\": true, \".github/hooks\": \
                     false, \"~/.copilot/hooks\": false} into the settings of VS Code.",
    },
];

/// Prints the entry of a host on stdout, and what to know about it on stderr.
pub(super) fn print(host: &str, server: &Server) -> anyhow::Result<ExitCode> {
    let settings = HOSTS.iter().find(|settings| settings.host == host);
    let settings = settings.with_context(|| format!("there are no settings for {host}"))?;
    server.check().map_err(|error| wrong(&error.to_string()))?;
    let needs_command = server.files.each().any(|(_, file)| file.is_some()) || server.is_at_foreign_address();
    let entry = settings.entry_with_command.filter(|_| needs_command).unwrap_or(settings.entry);
    let text = entry.replace("@HOOK@", &command(host, server)?).replace("@URL@", &server.url);
    std::io::stdout().lock().write_all(text.as_bytes())?;
    say!("It belongs into {}.", settings.file);
    say!("Where {host} goes on without a verdict: {}", settings.fails_open);
    Ok(ExitCode::SUCCESS)
}

/// Returns the command line of the hook. It stands in a string of JSON or TOML and in a shell, so it holds no character that either reads.
fn command(host: &str, server: &Server) -> anyhow::Result<String> {
    let mut command = format!("tollgate hook --host {host}");
    if server.url != DEFAULT_URL {
        command.push_str(&format!(" --url {}", server.url));
    }
    for (option, file) in server.files.each() {
        let Some(file) = file else { continue };
        // A hook starts in the project's folder. The shell that starts it knows a home.
        let file = if file.starts_with("~") { file.to_owned() } else { std::path::absolute(file).with_context(|| option.to_owned())? };
        let file = file.display().to_string();
        if !file.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/._-+:=~".contains(&byte)) {
            return Err(wrong(&format!("{option}: found a path that a shell reads in parts; use letters, digits and /._-")));
        }
        command.push_str(&format!(" {option} {file}"));
    }
    Ok(command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_host_has_settings_of_its_own() {
        let names: Vec<_> = HOSTS.iter().map(|settings| settings.host).collect();
        let wires: Vec<_> = tollgate_hosts::wires().iter().map(|wire| wire.name()).collect();
        assert_eq!(names, wires);
        for settings in &HOSTS {
            let entries = [Some(settings.entry), settings.entry_with_command];
            assert!(entries.into_iter().flatten().all(|entry| entry.contains("@HOOK@") || entry.contains("@URL@")), "{}", settings.host);
        }
    }
}
