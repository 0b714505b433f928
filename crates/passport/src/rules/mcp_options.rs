//! Options of browsers and other programs by which addresses lead to other hosts than they name, or by which other programs start.

use crate::argument_names::fold;
use crate::denial::{Denial, Report, report};
use crate::name_kind::NameKind;

use super::super::RuleCall;
use super::mcp_effects::{is_one_of, texts_of};

/// TABLE: names of options that say to which hosts names lead, without case and punctuation.
const RESOLVING: [&str; 6] = ["connectto", "dnsservers", "hostmap", "hostresolverrules", "hostrules", "resolve"];

/// TABLE: ends of names of options that say which program starts, without case and punctuation.
const STARTING: [&str; 3] = ["cmdprefix", "launcher", "subprocesspath"];

/// TABLE: variables by which programs and the linker load code. A star stands for any end.
const LOADING: &str = "BASH_ENV DYLD_* JAVA_TOOL_OPTIONS LD_* NODE_OPTIONS PERL5OPT PYTHONSTARTUP RUBYOPT";

/// TABLE: names of arguments that hold headers of requests.
const HEADERS: [&str; 5] = ["extra_headers", "header", "headers", "http_headers", "request_headers"];

/// Checks that a name is not that of a variable by which a program loads code.
pub(super) fn check_variable(name: &str) -> Result<(), Denial> {
    const MESSAGE: &str = "An argument sets a variable by which programs load code; leave the variable out";
    if is_one_of(LOADING, name) { Err(Denial::new("oap.invalid_tool_arguments", MESSAGE)) } else { Ok(()) }
}

/// Reports the checks of the hosts that headers name: the server behind an address may answer for other hosts too.
pub(super) fn check_headers(call: &RuleCall<'_>, to: &mut dyn Report) {
    for (_, headers) in call.arguments.named(&HEADERS) {
        let members =
            headers.members().filter_map(|(name, value)| Some(format!("{}:{}", name.as_text()?.into_str()?, value.as_text()?.into_str()?)));
        let texts: Vec<String> = members.chain(texts_of(headers)).collect();
        let lines = texts.iter().flat_map(|text| text.lines()).filter_map(|line| line.split_once(':'));
        let hosts = lines.filter(|(name, _)| NameKind::under(name.trim()) == NameKind::Host);
        for (_, host) in hosts {
            let scheme = if host.contains("://") { "" } else { "http://" };
            call.files.check_address(&format!("{scheme}{}", host.trim()), to);
        }
    }
}

/// Reports the checks of the words of a text that may be such options. What goes by a proxy goes to the proxy's host.
pub(super) fn check_options(call: &RuleCall<'_>, text: &str, to: &mut dyn Report) {
    for word in text.split_whitespace() {
        let Some(option) = word.strip_prefix('-') else {
            report(to, "options", word.split_once('=').map_or(Ok(()), |(name, _)| check_variable(name)));
            continue;
        };
        let (name, value) = option.split_once('=').map_or((option, None), |(name, value)| (name, Some(value)));
        let name = fold(name).unwrap_or_default();
        let is_proxy = name.contains("proxy") && !name.starts_with("noproxy");
        match value.filter(|_| is_proxy) {
            Some(value) if value.contains("://") => call.files.check_address(value, to),
            Some(value) => call.files.check_address(&format!("http://{value}"), to),
            None if is_proxy || RESOLVING.contains(&name.as_str()) || STARTING.iter().any(|end| name.ends_with(end)) => {
                const MESSAGE: &str = "An option says to which hosts addresses lead, or which program starts; leave it out, or write a proxy \
                    as --proxy-server=HOST";
                report(to, "options", Err(Denial::new("oap.invalid_tool_arguments", MESSAGE)));
            }
            None => {}
        }
    }
}
