//! The rules of `web.fetch` and `web.browser`: URLs by their hosts.
//!
//! A missing list does not restrict, an empty one allows nothing. Hosts outside the public network are never allowed.

use std::borrow::Cow;

use bash_commands::decoded;

use super::super::argument_names::is_web_search;
use super::super::argument_role::ArgumentRole;
use super::super::arguments::{Sorted, text};
use super::super::beginning::{climbs, is_begun};
use super::super::destination::{DomainSet, Host};
use super::super::fields::{is_expression, without};
use super::super::name_kind::leads_to_private;
use super::super::names::NameSet;
use super::secrets::check_no_secret;
use super::{Denial, Field, Malformed, Report, RuleCall, Rules, Section, check_limit, deny_if, report, unknown_argument};

/// The only action of a browser that needs a URL.
const NAVIGATE: &str = "navigate";

#[derive(Debug)]
pub(super) struct WebLimits {
    allowed_domains: Field<DomainSet>,
    blocked_domains: Field<DomainSet>,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Fetch { allowed_methods: Field<NameSet> },
    Browser { allowed_actions: Field<NameSet>, blocked_actions: Field<NameSet> },
}

impl WebLimits {
    pub(super) fn fetching(section: &Section<'_>) -> Self {
        let upper = |methods: Vec<String>| NameSet::new(methods.iter().map(|method| method.to_ascii_uppercase()).collect());
        Self::new(section, Kind::Fetch { allowed_methods: section.strings("allowed_methods").map(upper) })
    }

    pub(super) fn browsing(section: &Section<'_>) -> Self {
        let allowed_actions = section.strings("allowed_actions").map(NameSet::new);
        // What is blocked is so under the whole name of the tool too.
        let own = |entry: String| own_name(&entry).to_owned();
        let blocking = |entries: Vec<String>| NameSet::blocking(entries.into_iter().map(own).collect());
        let is_foreign = |entry: &str| {
            let is_several = entry.trim().contains(|char: char| char.is_whitespace() || char == ',');
            is_several || entry.starts_with("mcp_") || is_expression(entry)
        };
        let said = ("several names, or a rule of another form, which matches nothing", "an action, such as click or browser_click");
        let entries = section.strings("blocked_actions");
        let entries = entries.and_then(|entries| without(entries, is_foreign, &section.path_of("blocked_actions"), said));
        let blocked_actions = entries.map(blocking);
        Self::new(section, Kind::Browser { allowed_actions, blocked_actions })
    }

    fn new(section: &Section<'_>, kind: Kind) -> Self {
        let domains = |key, read: fn(&[String], &str) -> Result<DomainSet, Malformed>| {
            section.strings(key).and_then(|entries| read(&entries, &section.path_of(key)))
        };
        let allowed_domains = domains("allowed_domains", DomainSet::allowing);
        Self { allowed_domains, blocked_domains: domains("blocked_domains", DomainSet::blocking), kind }
    }

    /// Returns the message for a domain that is not in the list, which says whose list that is.
    fn not_listed(&self) -> &'static str {
        match self.kind {
            Kind::Fetch { .. } => "Domain is not in allowed list of web.fetch",
            Kind::Browser { .. } => "Domain is not in allowed list of web.browser",
        }
    }

    /// Judges a text under a name that is not known: as a URL or a host, if it can be one.
    fn check_unknown(&self, text: &str, to: &mut dyn Report) {
        let text = text.trim();
        let has_blank = text.chars().any(|char| char.is_whitespace() || char.is_control());
        if text.contains("://") {
            return match has_blank {
                true => report(to, "unknown arguments", Err(unknown_argument("a URL"))),
                false => self.check_url(text, to),
            };
        }
        if text.contains("::") && text.bytes().all(|byte| byte.is_ascii_hexdigit() || b":.".contains(&byte)) {
            return self.check_url(&format!("http://[{text}]"), to);
        }
        let rest = text.trim_start_matches(['/', '\\']);
        let host = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
        // Some readers decode twice.
        if !has_blank && (rest.len() + 2 <= text.len() || is_host(&decoded(&decoded(host)))) {
            self.check_url(&format!("http://{rest}"), to);
        }
    }

    /// Checks the method of a request, if the text is one. A browser has no methods.
    pub(super) fn check_method(&self, method: &str) -> Result<(), Denial> {
        match (&self.kind, method_of(method)) {
            (Kind::Fetch { allowed_methods }, Some(method)) => check_method(allowed_methods, &[method]),
            _ => Ok(()),
        }
    }

    /// Reports the checks of an address.
    pub(super) fn check_url(&self, url: &str, to: &mut dyn Report) {
        let host = match Host::of_url(url) {
            Ok(host) => host,
            Err(message) => return report(to, "url", Err(Denial::new("oap.invalid_url", message))),
        };
        // The author of the passport wrote this very port of this machine.
        let is_listed = self.allowed_domains.valid().is_some_and(|allowed| allowed.has_port(url));
        let private = deny_if(host.is_private() && !is_listed, "oap.private_network_destination", "Private network destination is blocked");
        report(to, "private network", private);
        let blocked =
            check_limit(&self.blocked_domains, |blocked| deny_if(blocked.contains(&host), "oap.domain_blocked", "Domain is blocked"));
        report(to, "blocked_domains", blocked);
        let allowed = check_limit(&self.allowed_domains, |allowed| {
            deny_if(!is_listed && !allowed.contains(&host), "oap.domain_not_allowed", self.not_listed())
        });
        report(to, "allowed_domains", allowed);
    }
}

impl Rules for WebLimits {
    fn web(&self) -> Option<&WebLimits> {
        Some(self)
    }

    fn faults(&self) -> Vec<Option<&Malformed>> {
        let of_kind = match &self.kind {
            Kind::Fetch { allowed_methods } => [allowed_methods.malformed(), None],
            Kind::Browser { allowed_actions, blocked_actions } => [allowed_actions.malformed(), blocked_actions.malformed()],
        };
        [self.allowed_domains.malformed(), self.blocked_domains.malformed()].into_iter().chain(of_kind).collect()
    }

    fn check(&self, call: &RuleCall<'_>, to: &mut dyn Report) {
        let actions = actions(call);
        let needs_url = match (&self.kind, &actions) {
            (Kind::Fetch { .. }, _) => !is_web_search(call.tool_name),
            (Kind::Browser { .. }, Ok(actions)) => actions.iter().any(|action| action == NAVIGATE),
            (Kind::Browser { .. }, Err(_)) => false,
        };
        let sorted = match call.sorted() {
            Ok(sorted) => sorted,
            Err(denial) => return report(to, "url", Err(denial)),
        };
        if needs_url && sorted.of(ArgumentRole::Url).next().is_none() {
            report(to, "url", Err(Denial::new("oap.missing_required_context", "Web context must include url")));
        }
        sorted.of(ArgumentRole::Url).for_each(|url| self.check_url(url, to));
        for host in sorted.of(ArgumentRole::Host) {
            let url = if host.contains("://") { host.to_string() } else { format!("http://{host}") };
            self.check_url(&url, to);
        }
        sorted.unknown.iter().chain(&sorted.unknown_names).chain(&sorted.headers).for_each(|text| self.check_unknown(text, to));
        report(to, "private network", check_mentioned(&sorted.mentioned));
        if let Kind::Browser { .. } = &self.kind {
            // A browser has no methods: what stands under such a name is not known.
            sorted.of(ArgumentRole::Method).for_each(|text| self.check_unknown(text, to));
        }
        if !sorted.unknown.iter().all(|text| is_plain(text)) {
            report(to, "unknown arguments", Err(unknown_argument("a file, a script or the body of a request")));
        }
        report(to, "files", sorted.unknown.iter().try_for_each(|text| check_file(call, text)));
        match &self.kind {
            Kind::Fetch { allowed_methods } => report(to, "allowed_methods", check_methods(allowed_methods, &sorted)),
            Kind::Browser { allowed_actions, blocked_actions } => {
                report(to, "actions", actions.and_then(|actions| check_actions(allowed_actions, blocked_actions, &actions)));
            }
        }
    }
}

/// Checks a text under a name that no table has, which may be a file that is uploaded or saved: it may be no secret and no blocked place.
fn check_file(call: &RuleCall<'_>, text: &str) -> Result<(), Denial> {
    let may_be_file = text.contains(['/', '.', '_']) && !text.contains("://");
    if may_be_file { check_no_secret(text).and_then(|()| call.files.check_unblocked(text, true)) } else { Ok(()) }
}

/// Refuses addresses of the private network among texts.
pub(super) fn check_mentioned(said: &[Cow<'_, str>]) -> Result<(), Denial> {
    deny_if(said.iter().any(|text| leads_to_private(text)), "oap.private_network_destination", "Private network destination is blocked")
}

/// Returns whether a text is words and numbers: no path, no script and no form. What may be a URL or a host is judged as such.
fn is_plain(text: &str) -> bool {
    let begins = text.trim_start_matches(|char: char| char.is_whitespace() || "\"'@[\u{feff}".contains(char));
    let is_path = is_begun(begins) || climbs(begins) || begins.starts_with(['~', '-', '%']);
    text.contains("://") || !is_path && !text.contains(|char| "(){};=&<>|`$\\".contains(char))
}

/// Returns whether a text may be a host: a name with a dot, an address, or a number that is the address of a host.
fn is_host(text: &str) -> bool {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-:[]@%".contains(&byte)) || !text.is_ascii();
    let is_number = text.len() >= 8 && text.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'x');
    let dots = ['.', ':', '。', '．', '｡'];
    is_plain && (text.trim_matches(dots).contains(dots) || text.eq_ignore_ascii_case("localhost") || is_number)
}

/// Methods of requests that only count in capitals, since their names are words.
const RARE_METHODS: &str = "ACL BIND CHECKIN CHECKOUT COPY LINK LOCK MERGE MKCALENDAR MKCOL MOVE PRI PROPFIND PROPPATCH PURGE QUERY REPORT SEARCH \
     UNLINK UNLOCK";

/// Methods of requests, as a text under a name that is not known may be one.
const METHODS: [&str; 9] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT"];

/// Returns the method that a text may be, or that a request begins with which is written out.
fn method_of(text: &str) -> Option<String> {
    let first = text.split_whitespace().next()?;
    let is_request = || METHODS.contains(&first) || RARE_METHODS.split(' ').any(|method| method == first);
    let is_alone = || METHODS.contains(&text.trim().to_ascii_uppercase().as_str());
    (is_request() || is_alone()).then(|| first.to_ascii_uppercase())
}

/// Checks the methods of a request. A request without a method is a GET, or a POST if it has a body.
fn check_methods(allowed: &Field<NameSet>, sorted: &Sorted<'_>) -> Result<(), Denial> {
    let named = sorted.of(ArgumentRole::Method).map(|method| method.to_ascii_uppercase());
    let unknown = sorted.unknown.iter().chain(&sorted.headers).filter_map(|text| method_of(text));
    let mut methods: Vec<String> = named.chain(unknown).collect();
    if sorted.has_body && !methods.iter().any(|method| method != "GET" && method != "HEAD") {
        methods.push("POST".to_owned());
    }
    if methods.is_empty() {
        methods.push("GET".to_owned());
    }
    check_method(allowed, &methods)
}

fn check_method(allowed: &Field<NameSet>, methods: &[String]) -> Result<(), Denial> {
    let denial = || Err(Denial::new("oap.method_not_allowed", "HTTP method is not allowed"));
    check_limit(allowed, |allowed| if methods.iter().all(|method| allowed.contains(method)) { Ok(()) } else { denial() })
}

/// Returns the actions of a browser: the one that follows `browser_` in the tool's name, and those in its arguments.
fn actions<'c>(call: &RuleCall<'c>) -> Result<Vec<Cow<'c, str>>, Denial> {
    let named = call.tool_name.strip_prefix("browser_").map(Cow::Borrowed);
    named
        .into_iter()
        .map(Ok)
        .chain(call.arguments.named(&["action"]).into_iter().map(|(_, value)| text("action", value, "a string")))
        .collect()
}

fn check_actions(allowed: &Field<NameSet>, blocked: &Field<NameSet>, actions: &[Cow<'_, str>]) -> Result<(), Denial> {
    let denial = || Err(Denial::new("oap.action_not_allowed", "Browser action is not allowed"));
    check_limit(allowed, |allowed| {
        if actions.is_empty() {
            return Err(Denial::new("oap.missing_required_context", "Browser context must include action"));
        }
        if actions.iter().all(|action| allowed.contains(action)) { Ok(()) } else { denial() }
    })?;
    check_limit(blocked, |blocked| if actions.iter().any(|action| blocked.blocks(own_name(action))) { denial() } else { Ok(()) })
}

/// Returns the name of an action without what stands before it in the name of a tool, in any case.
fn own_name(action: &str) -> &str {
    let action = action.trim();
    action.get(..8).filter(|front| front.eq_ignore_ascii_case("browser_")).and_then(|_| action.get(8..)).unwrap_or(action)
}
