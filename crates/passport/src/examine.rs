//! Examining one call under one passport: every check, in its order.
//!
//! Deciding and explaining use the same walk. It sends what it finds to a [`Report`]: a decision keeps the denials, an explanation keeps
//! everything. The first denial is the primary one. Later checks that are still possible are reported as well.

use crate::ToolInput;
use tollgate_json::{Parser, Text};

use super::argument_names::{ArgumentNames, ToolArguments, is_path_name};
use super::beginning::{climbs, is_begun};
use super::capabilities::{CapabilityMap, Need, how_to_map};
use super::denial::{Denial, Outcome, Report, report};
use super::fields::{Field, quoted};
use super::pack::Pack;
use super::rules::{FileRules, RuleCall, UnenforcedLimits};
use super::{Expiry, Passport, PassportFault, SPEC_VERSION, arguments::Arguments};

/// The longest name of a tool, in bytes.
const TOOL_NAME_BYTES_MAX: usize = 128;

/// A call that is to be examined.
#[derive(Debug, Clone, Copy)]
pub struct Call<'c> {
    /// The tool.
    pub tool_name: &'c str,
    /// Its arguments as they came.
    pub input: &'c ToolInput<'c>,
    /// When it was made, in milliseconds since the epoch: the latest moment that is known, since passports expire by it.
    pub time_ms: Option<i64>,
    /// The earliest moment that is known, since passports begin by it.
    pub earliest_ms: Option<i64>,
}

/// The terms that calls are examined under, besides the passport.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Terms {
    /// The capabilities that tools need.
    pub capabilities: CapabilityMap,
    /// The roles that a configuration gives to arguments of tools.
    pub arguments: ToolArguments,
    /// The treatment of limits that cannot be enforced.
    pub unenforced_limits: UnenforcedLimits,
}

impl Default for Terms {
    fn default() -> Self {
        Self { capabilities: CapabilityMap::default(), arguments: ToolArguments::default(), unenforced_limits: UnenforcedLimits::Deny }
    }
}

/// Examines a call under its passport, which may be missing, unusable or usable.
pub fn examine(passport: Option<Result<&Passport, &PassportFault>>, terms: &Terms, call: &Call<'_>, to: &mut dyn Report) {
    report(to, "tool name", check_tool_name(call.tool_name));
    let mut parser = Parser::new();
    let arguments = Arguments::read(call.input, &mut parser);
    let arguments = match arguments {
        Ok(arguments) => {
            to.outcome("arguments", Outcome::Passed);
            Some(arguments)
        }
        Err(denial) => {
            to.outcome("arguments", Outcome::Denied(denial));
            None
        }
    };
    let passport = find_passport(passport, to);
    match passport {
        Some(passport) => check_standing(passport, call, to),
        None => ["status", "spec_version", "not_before", "expiry"].iter().for_each(|check| to.outcome(check, NO_PASSPORT)),
    }
    let Some(need) = terms.capabilities.need(call.tool_name) else {
        // The name may be quoted, because it is not an argument: the verdict contains it too.
        let message = format!("Tool '{}' is not mapped to a policy pack; {}", quoted(call.tool_name), how_to_map(call.tool_name));
        let denial = Denial::new("oap.unknown_capability", message);
        to.outcome("mapping", Outcome::Denied(denial));
        to.outcome("capability", Outcome::NotAsked("the tool is not mapped"));
        return;
    };
    to.outcome("mapping", Outcome::Passed);
    if let (Need::NoFile, Some(arguments)) = (need, &arguments) {
        report(to, "files", check_no_file(arguments));
    }
    let Some(policy_id) = need.policy_id() else {
        to.outcome("capability", Outcome::NotAsked("the tool needs none"));
        return;
    };
    to.policy(policy_id);
    match (passport, arguments) {
        (None, _) => to.outcome("capability", NO_PASSPORT),
        (Some(passport), arguments) => {
            report(to, "capability", check_capability(passport, need));
            match arguments {
                Some(arguments) => check_limits(passport, need, terms, &(call, arguments), to),
                None => to.outcome("limits", Outcome::NotAsked("the arguments cannot be read")),
            }
        }
    }
}

/// Checks that no argument under the name of a path leads to a place outside of a tool's own.
fn check_no_file(arguments: &Arguments<'_>) -> Result<(), Denial> {
    const MESSAGE: &str = "A tool that needs no capability is given the path of a file; write in tool_capabilities which capability it \
        needs, such as data.file.write";
    let leads_out = |text: &str| is_begun(text) || climbs(text) || text.starts_with('~');
    let mut paths = arguments.under(is_path_name);
    let has_path = paths.any(|value| value.as_text().and_then(Text::into_str).is_some_and(|text| leads_out(text.trim())));
    if has_path { Err(Denial::new("oap.invalid_tool_arguments", MESSAGE)) } else { Ok(()) }
}

const NO_PASSPORT: Outcome = Outcome::NotAsked("there is no passport");

fn check_tool_name(name: &str) -> Result<(), Denial> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.:/".contains(&byte);
    // A gateway that puts the name into a path would call another tool.
    let climbs = name.contains('/') && name.split('/').any(|part| matches!(part, "" | "." | ".."));
    if !name.is_empty() && name.len() <= TOOL_NAME_BYTES_MAX && name.bytes().all(is_plain) && !climbs {
        return Ok(());
    }
    Err(Denial::new("oap.invalid_tool_name", "Tool name contains invalid characters or format"))
}

fn find_passport<'p>(passport: Option<Result<&'p Passport, &PassportFault>>, to: &mut dyn Report) -> Option<&'p Passport> {
    let found = passport.is_some();
    let missing = || Denial::new("oap.passport_not_found", "No passport was found for this call");
    report(to, "passport", found.then_some(()).ok_or_else(missing));
    match passport {
        None => {
            to.outcome("well-formed", NO_PASSPORT);
            None
        }
        Some(read) => {
            let unknown = |passport: &Passport| passport.contents.unknown.as_ref().map_or(Ok(()), |unknown| Err(Denial::invalid(unknown)));
            report(to, "well-formed", read.map_err(Denial::invalid).and_then(unknown));
            read.ok()
        }
    }
}

/// Checks the passport's status, version, beginning and expiry.
fn check_standing(passport: &Passport, call: &Call<'_>, to: &mut dyn Report) {
    report(to, "status", check_revoked(&passport.contents.revoked).and_then(|()| check_status(&passport.contents.status)));
    report(to, "spec_version", check_version(&passport.contents.spec_version));
    report(to, "not_before", check_beginning(&passport.contents.not_before, call.earliest_ms));
    let time_ms = call.time_ms.filter(|time_ms| can_be(*time_ms, passport.contents.made_ms));
    report(to, "expiry", check_expiry(&passport.contents.expiry, time_ms));
}

fn check_revoked(revoked: &Field<bool>) -> Result<(), Denial> {
    match revoked {
        Field::Absent | Field::Valid(false) => Ok(()),
        Field::Valid(true) => Err(Denial::new("oap.passport_suspended", "Passport is revoked. Agent suspended.")),
        Field::Malformed(malformed) => Err(Denial::invalid(malformed)),
    }
}

fn check_beginning(not_before: &Field<(i64, String)>, time_ms: Option<i64>) -> Result<(), Denial> {
    match not_before {
        Field::Absent => Ok(()),
        Field::Valid((ms, _)) if time_ms.is_some_and(|time_ms| time_ms >= *ms) => Ok(()),
        Field::Valid((_, text)) => Err(Denial::new("oap.passport_not_yet_valid", format!("Passport is not valid before {}", quoted(text)))),
        Field::Malformed(malformed) => Err(Denial::invalid(malformed)),
    }
}

fn check_status(status: &Field<String>) -> Result<(), Denial> {
    let status = match status {
        Field::Valid(status) if status == "active" => return Ok(()),
        Field::Valid(status) => quoted(status),
        Field::Absent | Field::Malformed(_) => "unknown".to_owned(),
    };
    Err(Denial::new("oap.passport_suspended", format!("Passport status is '{status}', not 'active'. Agent suspended.")))
}

fn check_version(version: &Field<String>) -> Result<(), Denial> {
    let version = match version {
        Field::Valid(version) if version == SPEC_VERSION => return Ok(()),
        Field::Valid(version) => quoted(version),
        Field::Absent | Field::Malformed(_) => "unknown".to_owned(),
    };
    Err(Denial::new("oap.passport_version_mismatch", format!("Passport spec version is '{version}', expected '{SPEC_VERSION}'")))
}

/// The first of January 2001, in milliseconds since the epoch. An earlier time is one in seconds that was taken for milliseconds.
const FIRST_MS: i64 = 978_307_200_000;

/// How far the clocks of a sender and of a passport's maker may differ, in milliseconds.
const SKEW_MS_MAX: i64 = 5 * 60 * 1_000;

/// Returns whether a call can have been made at a time: not long before its passport was made. Such a time tells nothing of an expiry.
fn can_be(time_ms: i64, made_ms: Option<i64>) -> bool {
    time_ms >= FIRST_MS && made_ms.is_none_or(|made_ms| time_ms >= made_ms.saturating_sub(SKEW_MS_MAX))
}

fn check_expiry(expiry: &Expiry, time_ms: Option<i64>) -> Result<(), Denial> {
    const EXPIRED: &str = "oap.passport_expired";
    match (expiry, time_ms) {
        (Expiry::Never, _) => Ok(()),
        (Expiry::At { ms, .. }, Some(time_ms)) if time_ms < *ms => Ok(()),
        (Expiry::At { text, .. }, Some(_)) => Err(Denial::new(EXPIRED, format!("Passport expired at {}", quoted(text)))),
        (Expiry::At { text, .. }, None) => {
            let message = format!("Passport expires at {}, and the call tells no time that can be", quoted(text));
            Err(Denial::new(EXPIRED, message))
        }
        (Expiry::Malformed(malformed), _) => Err(Denial::invalid(malformed)),
    }
}

fn check_capability(passport: &Passport, need: &Need) -> Result<(), Denial> {
    let Some(capability) = need.capability() else { return Ok(()) };
    match &passport.contents.capabilities {
        Field::Valid(granted) if granted.ids.contains(capability) => Ok(()),
        // An entry that cannot be read may be meant to be the missing one.
        Field::Valid(granted) if granted.malformed.is_some() => {
            Err(granted.malformed.as_ref().map_or_else(|| missing(need), Denial::invalid))
        }
        Field::Malformed(malformed) => Err(Denial::invalid(malformed)),
        Field::Valid(_) | Field::Absent => Err(missing(need)),
    }
}

fn missing(need: &Need) -> Denial {
    let (capability, policy_id) = (need.capability().unwrap_or_default(), need.policy_id().unwrap_or_default());
    let message = format!("Passport does not have required capability '{capability}' for policy '{policy_id}'");
    Denial::new("oap.unknown_capability", message)
}

fn check_limits(passport: &Passport, need: &Need, terms: &Terms, (call, arguments): &(&Call<'_>, Arguments<'_>), to: &mut dyn Report) {
    match (&passport.contents.limits, need) {
        (_, Need::Nothing | Need::NoFile) => {}
        (Err(malformed), _) => report(to, "limits", Err(Denial::invalid(malformed))),
        (Ok(limits), Need::Pack(pack)) => {
            let grants = |pack: Pack| {
                check_capability(passport, &Need::Pack(pack)).is_ok() && params_of(passport, pack.capability(), terms).is_none()
            };
            let files = FileRules { limits, reads: grants(Pack::FileRead), writes: grants(Pack::FileWrite) };
            let names = ArgumentNames::new(*pack, call.tool_name, &terms.arguments);
            let call = RuleCall { tool_name: call.tool_name, arguments: *arguments, names, files };
            for compiled in limits.of(*pack) {
                compiled.check(&call, terms.unenforced_limits, to);
            }
            check_params(passport, pack.capability(), terms, to);
        }
        (Ok(limits), Need::Capability(capability)) => {
            let unknown = limits.has_unknown(capability) && terms.unenforced_limits == UnenforcedLimits::Deny;
            let denial = || {
                let message = format!("Passport limits '{}', and no rules are known for that capability", quoted(capability));
                Denial::new("oap.policy_error", message)
            };
            report(to, "limits", if unknown { Err(denial()) } else { Ok(()) });
            check_params(passport, capability, terms, to);
        }
    }
}

/// Returns the path of a capability's parameters, if it has some that deny.
fn params_of<'p>(passport: &'p Passport, capability: &str, terms: &Terms) -> Option<&'p str> {
    let Field::Valid(granted) = &passport.contents.capabilities else { return None };
    granted.params.get(capability).filter(|_| terms.unenforced_limits == UnenforcedLimits::Deny).map(String::as_str)
}

/// Checks that a capability has no parameters: what they restrict cannot be told.
fn check_params(passport: &Passport, capability: &str, terms: &Terms, to: &mut dyn Report) {
    if let Some(path) = params_of(passport, capability, terms) {
        let message = format!("{} may hold limits that cannot be kept here; write them under limits", quoted(path));
        report(to, "params", Err(Denial::new("oap.policy_error", message)));
    }
}
