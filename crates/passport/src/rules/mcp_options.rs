//! Options of browsers and other programs by which addresses lead to other hosts than they name.

use crate::argument_names::fold;
use crate::denial::{Denial, Report, report};

use super::super::RuleCall;

/// TABLE: names of options that say to which hosts names lead, without case and punctuation.
const RESOLVING: [&str; 6] = ["connectto", "dnsservers", "hostmap", "hostresolverrules", "hostrules", "resolve"];

/// Reports the checks of the words of a text that may be such options. What goes by a proxy goes to the proxy's host.
pub(super) fn check_options(call: &RuleCall<'_>, text: &str, to: &mut dyn Report) {
    for option in text.split_whitespace().filter_map(|word| word.strip_prefix('-')) {
        let (name, value) = option.split_once('=').map_or((option, None), |(name, value)| (name, Some(value)));
        let name = fold(name).unwrap_or_default();
        let is_proxy = name.contains("proxy") && !name.starts_with("noproxy");
        match value.filter(|_| is_proxy) {
            Some(value) if value.contains("://") => call.files.check_address(value, to),
            Some(value) => call.files.check_address(&format!("http://{value}"), to),
            None if is_proxy || RESOLVING.contains(&name.as_str()) => {
                const MESSAGE: &str = "An option says to which hosts addresses lead; leave it out, or write a proxy as --proxy-server=HOST";
                report(to, "options", Err(Denial::new("oap.invalid_tool_arguments", MESSAGE)));
            }
            None => {}
        }
    }
}
