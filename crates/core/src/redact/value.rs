//! Redacting the values of a parsed text, each at its place. Nothing is moved: every stand-in takes as many bytes as what it stands for.

use super::roles::Role;
use super::text::{none, respell, stand_in};
use super::words::{self, BLOCK_TYPES, PROVIDERS};
use super::{Keys, Unkept, number};
use crate::decide::safety::reading::Ending;
use crate::decide::safety::reading::outline::is_call_type;
use crate::event::decode::{EventType, TOOL_NAME_BYTES_MAX, short_type};
use tollgate_json::time::parse_timestamp;
use tollgate_json::{DEPTH_MAX, Parser, Shape, Value};

/// Returns a text in which `root`, a value of it, is redacted. Values are visited with a list of those that are open, so that no nesting can
/// overflow the stack.
pub(super) fn redact(keys: &Keys, text: &[u8], root: Value<'_>, role: Role) -> Result<Vec<u8>, Unkept> {
    let mut out = text.to_vec();
    let mut open = vec![(root, root, role)];
    while let Some((value, beside, role)) = open.pop() {
        match value.shape() {
            Shape::Null | Shape::Boolean => {}
            Shape::Number => {
                let says_why = matches!(role, Role::Path(path) if path.says_why());
                if !says_why && !matches!(role, Role::Ratings | Role::Usage) {
                    put(&mut out, value, &number::stand_in(&keys.numbers, value.source())?)?;
                }
            }
            Shape::String => {
                if let Some(standing_in) = string(keys, value, beside, role)? {
                    put(&mut out, value, &respell(value.source(), &standing_in))?;
                }
            }
            Shape::Array => open.extend(value.items().map(|item| (item, item, within(item, of_items(role))))),
            Shape::Object => {
                let role = inside(role);
                for (key, member) in value.members() {
                    let name = key.as_text().map(|name| name.as_bytes().to_vec()).unwrap_or_default();
                    let known = role.member(&name);
                    if known.is_none() {
                        put(&mut out, key, &respell(key.source(), &unknown_name(keys, &name, role)?))?;
                    }
                    let of_member = known.unwrap_or(match role {
                        Role::InResult | Role::Ratings => role,
                        _ => Role::Data,
                    });
                    open.push((member, value, within(member, of_member)));
                }
            }
        }
    }
    Ok(out)
}

/// Returns the role of what is in a container of that role.
fn inside(role: Role) -> Role {
    match role {
        Role::Result => Role::InResult,
        Role::Arguments => Role::Data,
        role => role,
    }
}

/// Returns the role of what is in an array of that role.
fn of_items(role: Role) -> Role {
    match role {
        Role::Path(path) => path.items().map_or(Role::Data, Role::Path),
        role => inside(role),
    }
}

/// Returns the role of a value, which may depend on what it holds: a block says itself whether it is a call.
fn within(value: Value<'_>, role: Role) -> Role {
    match role {
        Role::Path(path) if path.is_call(value) => Role::Call,
        Role::Path(path) if path.has_flags() => Role::Flags,
        role => role,
    }
}

fn put(out: &mut [u8], value: Value<'_>, with: &[u8]) -> Result<(), Unkept> {
    let place = out.get_mut(value.place()).filter(|place| place.len() == with.len()).ok_or(Unkept::Length)?;
    place.copy_from_slice(with);
    Ok(())
}

/// Returns the stand-in of a member's name that is not known at its place. It becomes no name that is known there.
fn unknown_name(keys: &Keys, name: &[u8], role: Role) -> Result<Vec<u8>, Unkept> {
    let is_unknown = |name: &[u8]| role.member(name).is_none();
    if role == Role::InResult {
        return stand_in(&keys.names, name, words::failure_words, is_unknown);
    }
    if role == Role::Ratings {
        // Verdicts repeat both names and texts of ratings as digests, so that equal ones stay equal.
        return stand_in(&keys.texts, name, none, is_unknown);
    }
    keys.name(name, role == Role::Data, is_unknown)
}

/// Returns the stand-in of a string, or `None` if it stays.
fn string(keys: &Keys, value: Value<'_>, beside: Value<'_>, role: Role) -> Result<Option<Vec<u8>>, Unkept> {
    let Some(text) = value.as_text() else { return Ok(None) };
    let text = text.as_bytes();
    let stays = |is_known: &dyn Fn(&str) -> bool| {
        let is_known = |text: &[u8]| std::str::from_utf8(text).is_ok_and(is_known);
        if is_known(text) { Ok(None) } else { stand_in(&keys.texts, text, none, |other| !is_known(other)).map(Some) }
    };
    match role {
        // A longer one is refused, so that its value does not matter. Nor does that of one with half a surrogate pair.
        Role::Id => stays(&|text| text.len() <= TOOL_NAME_BYTES_MAX),
        Role::Version => stays(&is_version),
        Role::Provider => stays(&|text| PROVIDERS.contains(&text)),
        Role::EventType => event_type(keys, text),
        Role::Time => stays(&|text| parse_timestamp(text).is_some()),
        Role::BlockType => stays(&|text| is_call_type(text) || BLOCK_TYPES.contains(&text)),
        Role::Path(path) if path.is_known(value, beside) => Ok(None),
        Role::Path(path) if path.says_why() => stays(&|text| keys.reasons.find(text).is_some()),
        Role::Reason => stays(&|text| Ending::of(text) != Ending::Unknown || keys.reasons.find(text).is_some()),
        Role::Ratings => stays(&words::is_rating),
        Role::Flags => stays(&|text| text == "flagged"),
        Role::Usage => stays(&|text| words::MODALITIES.contains(&text)),
        Role::User => stand_in(&keys.users, text, none, |_| true).map(Some),
        Role::Arguments => json_or_text(keys, text, Role::Data).map(Some),
        Role::Result => json_or_text(keys, text, Role::InResult).map(Some),
        Role::InResult => stand_in(&keys.results, text, words::failure_words, |_| true).map(Some),
        _ => stand_in(&keys.texts, text, none, |_| true).map(Some),
    }
}

/// Returns the stand-in of an event's type, or `None` for one that is known. Of an unknown one the points stay, and a version at its end, so
/// that its name is as long as before.
pub(super) fn event_type(keys: &Keys, text: &[u8]) -> Result<Option<Vec<u8>>, Unkept> {
    let is_known = |text: &[u8]| std::str::from_utf8(text).is_ok_and(|text| EventType::from_name(short_type(text)).is_some());
    if is_known(text) {
        return Ok(None);
    }
    let signs = |codes: &[u32]| {
        let is_point = |code: &u32| *code == u32::from('.');
        let version = codes.iter().rposition(is_point).filter(|at| match codes.get(at + 1..) {
            Some([first, digits @ ..]) => {
                *first == u32::from('v') && !digits.is_empty() && digits.iter().all(|code| (0x30..0x3a).contains(code))
            }
            _ => false,
        });
        codes.iter().enumerate().map(|(at, code)| is_point(code) || version.is_some_and(|point| at > point)).collect()
    };
    stand_in(&keys.texts, text, signs, |other| !is_known(other)).map(Some)
}

/// Returns whether a text is a version in digits and points.
pub(super) fn is_version(text: &str) -> bool {
    text.len() <= 5 && text.bytes().all(|byte| byte == b'.' || byte.is_ascii_digit())
}

/// Redacts a text that is JSON by its values, and any other as a text, which does not become JSON.
fn json_or_text(keys: &Keys, text: &[u8], role: Role) -> Result<Vec<u8>, Unkept> {
    let mut parser = Parser::new();
    if let Ok(root) = parser.parse(text, DEPTH_MAX) {
        return redact(keys, text, root, role);
    }
    let is_text = |text: &[u8]| Parser::new().parse(text, DEPTH_MAX).is_err();
    if role == Role::InResult {
        return stand_in(&keys.results, text, words::failure_words, is_text);
    }
    stand_in(&keys.texts, text, none, is_text)
}
