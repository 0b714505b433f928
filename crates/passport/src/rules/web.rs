//! The rules of `web.fetch` and `web.browser`: URLs by their hosts.
//!
//! A missing list does not restrict, an empty one allows nothing. Hosts outside the public network are never allowed.

use std::borrow::Cow;

use super::super::destination::{DomainSet, Host};
use super::super::names::NameSet;
use super::{Denial, Field, Malformed, Report, RuleCall, Rules, Section, check_limit, report};

/// Arguments that contain URLs. Each one in a call has to be allowed, those in objects within the arguments too.
const URL_ARGUMENTS: [&str; 12] =
    ["url", "urls", "uri", "uris", "href", "page_url", "start_url", "target_url", "base_url", "image_url", "image_urls", "proxy"];

/// Tools that search, so that there is no URL to check.
const SEARCH_TOOLS: [&str; 2] = ["web_search", "image_search"];

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
        let upper = |methods: Vec<String>| Ok(NameSet::new(methods.iter().map(|method| method.to_ascii_uppercase()).collect()));
        Self::new(section, Kind::Fetch { allowed_methods: section.strings("allowed_methods").and_then(upper) })
    }

    pub(super) fn browsing(section: &Section<'_>) -> Self {
        let names = |key| section.strings(key).and_then(NameSet::read);
        Self::new(section, Kind::Browser { allowed_actions: names("allowed_actions"), blocked_actions: names("blocked_actions") })
    }

    fn new(section: &Section<'_>, kind: Kind) -> Self {
        let domains = |key| section.strings(key).and_then(|entries| DomainSet::new(&entries, &section.path_of(key)));
        Self { allowed_domains: domains("allowed_domains"), blocked_domains: domains("blocked_domains"), kind }
    }

    fn check_url(&self, url: &str, to: &mut dyn Report) {
        let host = match Host::of_url(url) {
            Ok(host) => host,
            Err(message) => return report(to, "url", Err(Denial::new("oap.invalid_url", message))),
        };
        let deny = |is_denied: bool, code, message| if is_denied { Err(Denial::new(code, message)) } else { Ok(()) };
        let private = deny(host.is_private(), "oap.private_network_destination", "Private network destination is blocked");
        report(to, "private network", private);
        let blocked =
            check_limit(&self.blocked_domains, |blocked| deny(blocked.contains(&host), "oap.domain_blocked", "Domain is blocked"));
        report(to, "blocked_domains", blocked);
        let allowed = check_limit(&self.allowed_domains, |allowed| {
            deny(!allowed.contains(&host), "oap.domain_not_allowed", "Domain is not in allowed list")
        });
        report(to, "allowed_domains", allowed);
    }
}

impl Rules for WebLimits {
    fn faults(&self) -> Vec<&Malformed> {
        let of_kind = match &self.kind {
            Kind::Fetch { allowed_methods } => [allowed_methods.malformed(), None],
            Kind::Browser { allowed_actions, blocked_actions } => [allowed_actions.malformed(), blocked_actions.malformed()],
        };
        [self.allowed_domains.malformed(), self.blocked_domains.malformed()].into_iter().chain(of_kind).flatten().collect()
    }

    fn check(&self, call: &RuleCall<'_>, to: &mut dyn Report) {
        let urls = call.arguments.all_texts(&URL_ARGUMENTS);
        let inner = call.arguments.inner_texts(&URL_ARGUMENTS);
        let actions = actions(call);
        let needs_url = match (&self.kind, &actions) {
            (Kind::Fetch { .. }, _) => !SEARCH_TOOLS.contains(&call.tool_name),
            (Kind::Browser { .. }, Ok(actions)) => actions.iter().any(|action| action == NAVIGATE),
            (Kind::Browser { .. }, Err(_)) => false,
        };
        match urls {
            Ok(urls) if urls.is_empty() && needs_url => {
                report(to, "url", Err(Denial::new("oap.missing_required_context", "Web context must include url")));
            }
            Ok(urls) => urls.iter().for_each(|url| self.check_url(url, to)),
            Err(denial) => report(to, "url", Err(denial)),
        }
        match inner {
            Ok(urls) => urls.iter().for_each(|url| self.check_url(url, to)),
            Err(denial) => report(to, "url", Err(denial)),
        }
        match &self.kind {
            Kind::Fetch { allowed_methods } => report(to, "allowed_methods", check_method(allowed_methods, call)),
            Kind::Browser { allowed_actions, blocked_actions } => {
                report(to, "actions", actions.and_then(|actions| check_actions(allowed_actions, blocked_actions, &actions)));
            }
        }
    }
}

/// Checks the method of a request. A request without one is a GET.
fn check_method(allowed: &Field<NameSet>, call: &RuleCall<'_>) -> Result<(), Denial> {
    let method = call.arguments.text("method")?.map_or_else(|| "GET".to_owned(), |method| method.to_ascii_uppercase());
    let denial = || Err(Denial::new("oap.method_not_allowed", "HTTP method is not allowed"));
    check_limit(allowed, |allowed| if allowed.contains(&method) { Ok(()) } else { denial() })
}

/// Returns the actions of a browser: the one that follows `browser_` in the tool's name, and those in its arguments.
fn actions<'c>(call: &RuleCall<'c>) -> Result<Vec<Cow<'c, str>>, Denial> {
    let named = call.tool_name.strip_prefix("browser_").map(Cow::Borrowed);
    Ok(named.into_iter().chain(call.arguments.text("action")?).collect())
}

fn check_actions(allowed: &Field<NameSet>, blocked: &Field<NameSet>, actions: &[Cow<'_, str>]) -> Result<(), Denial> {
    let denial = || Err(Denial::new("oap.action_not_allowed", "Browser action is not allowed"));
    check_limit(allowed, |allowed| {
        if actions.is_empty() {
            return Err(Denial::new("oap.missing_required_context", "Browser context must include action"));
        }
        if actions.iter().all(|action| allowed.contains(action)) { Ok(()) } else { denial() }
    })?;
    check_limit(blocked, |blocked| if actions.iter().any(|action| blocked.contains(action)) { denial() } else { Ok(()) })
}
