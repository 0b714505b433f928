//! What a request to the web holds beside its URL: bodies, routes, and words that a tool fetches.

use super::beginning::is_path;

/// Returns whether the body of a request is a file: behind `@`, as `curl` takes it, or as a path among what is attached.
pub(super) fn is_file_sent(name: &str, said: &str) -> bool {
    let is_attached = matches!(name, "attachment" | "attachments" | "multipart");
    said.trim_start().strip_prefix('@').is_some_and(|path| is_path(path) || path.contains(['/', '.']))
        || is_attached && is_path(said.trim_start())
}

/// Returns whether a route may be more than a path behind the address of a server: `//host`, `@host`, `:80@host`, `.host`.
pub(super) fn may_lead_away(route: &str) -> bool {
    let route = route.trim();
    // Behind a slash it is a path, unless that begins a host.
    if let Some(rest) = route.strip_prefix(['/', '\\']) {
        return rest.starts_with(['/', '\\']);
    }
    let is_port = route.strip_prefix(':').is_some_and(|port| port.starts_with(|first: char| first.is_ascii_digit()));
    let first = route.split(['/', '?', '#']).next().unwrap_or_default();
    is_port || first.contains('@') || first.starts_with('.') && !matches!(first, "." | "..")
}

/// Returns the address to which such a route leads.
pub(super) fn led_to(route: &str) -> String {
    format!("http://{}", route.trim_start_matches(['/', '\\', '@', '.', ':']))
}

/// Returns the URLs among the words of a text, without what stands around them.
pub(super) fn urls_in(text: &str) -> impl Iterator<Item = &str> {
    let words = text
        .split(|char: char| char.is_whitespace() || char == '\u{feff}')
        .map(|word| word.trim_matches(|char: char| "<>()[]{}\"'`,;.".contains(char)));
    words.filter(|word| word.contains("://"))
}
