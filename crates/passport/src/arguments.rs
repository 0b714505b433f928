//! Reading a call's arguments for the rules. Nothing with two readings is accepted, and a value of another type never counts as missing.

use std::borrow::Cow;
use std::collections::HashMap;

use crate::ToolInput;
use tollgate_json::{DEPTH_MAX, Parser, Shape, Text, Value};

use super::argument_bounds::{check_braces, check_pieces, check_size};
use super::argument_names::{ArgumentNames, are_alike, check_name, fold, is_place, shown};
use super::argument_role::{ArgumentRole, holds};
use super::denial::Denial;
use super::fields::Amount;
use super::name_kind::{NameKind, is_written_out};
use super::requests::{is_file_sent, led_to, may_lead_away, quoted_in, runs, urls_in};
use super::words::line_of;
use super::written::names_places;

/// The code of the denial for arguments of another form.
const INVALID: &str = "oap.invalid_tool_arguments";

/// Arguments that were read. If the call has none, they are an empty object.
#[derive(Debug, Clone, Copy)]
pub(super) struct Arguments<'v>(pub(super) Option<Value<'v>>);

impl<'v> Arguments<'v> {
    /// Reads arguments in any form of the event.
    pub(super) fn read(input: &'v ToolInput<'v>, parser: &'v mut Parser) -> Result<Self, Denial> {
        let root = match input {
            ToolInput::Absent { .. } => return Ok(Self(None)),
            ToolInput::Value(value) => *value,
            // So some model servers send a call without parameters.
            ToolInput::Encoded(text) if matches!(text.as_bytes().trim_ascii(), b"" | b"null") => return Ok(Self(None)),
            ToolInput::Encoded(text) => {
                check_size(text.as_bytes())?;
                parser.parse(text.as_bytes(), DEPTH_MAX).map_err(|_| Denial::new(INVALID, "Tool arguments are not JSON"))?
            }
        };
        check_size(root.source())?;
        if !root.is_object() {
            return Err(Denial::new(INVALID, format!("Tool arguments are {}, expected an object", root.shape())));
        }
        if root.repeats_a_key() {
            return Err(Denial::new(INVALID, "Tool arguments hold the same key more than once"));
        }
        Ok(Self(Some(root)))
    }

    /// Returns the value under a name, which is compared as [`fold`] says. Null counts as missing.
    fn value(&self, name: &str) -> Option<Value<'v>> {
        let is_its = |key: &Value<'v>| key.as_text().and_then(Text::into_str).is_some_and(|key| are_alike(&key, name));
        self.0?.members().find(|(key, value)| is_its(key) && !value.is_null()).map(|(_, value)| value)
    }

    /// Sorts the arguments by what they are to a tool, at any depth. What lies in an argument with a role has that role too, unless its own
    /// name has another.
    ///
    /// # Errors
    /// A denial for names that are one name in different spellings, for a name with characters beyond ASCII, and for a value of a type that
    /// its role cannot have.
    pub(super) fn sorted(&self, names: &ArgumentNames<'v>) -> Result<Sorted<'v>, Denial> {
        let mut sorted = Sorted::default();
        if let Some(root) = self.0 {
            sorted.members(root, None, names)?;
        }
        check_pieces(sorted.places())?;
        // What a server is given may be an object that is written out.
        if !names.is_of_server() {
            check_braces(sorted.places().map(|text| &**text))?;
        }
        Ok(sorted)
    }

    /// Returns the arguments with their names.
    pub(super) fn members(&self) -> impl Iterator<Item = (Cow<'v, str>, Value<'v>)> {
        let root = self.0.into_iter().flat_map(|root| root.members());
        root.filter_map(|(key, value)| Some((key.as_text()?.into_str()?, value)))
    }

    /// Returns the string under a key, or `None` if it is missing.
    pub(super) fn text(&self, key: &str) -> Result<Option<Cow<'v, str>>, Denial> {
        self.value(key).map(|value| text(key, value, "a string")).transpose()
    }

    /// Returns the number under a key, which must be 0 or more, or `None` if it is missing.
    pub(super) fn number(&self, key: &str) -> Result<Option<Amount>, Denial> {
        self.value(key).map(|value| amount(key, value)).transpose()
    }

    /// Returns all values at any depth, each with its name if it is a member.
    fn values(&self) -> impl Iterator<Item = (Option<Cow<'v, str>>, Value<'v>)> {
        let mut open: Vec<_> = self.0.map(|root| (None, root)).into_iter().collect();
        std::iter::from_fn(move || {
            let (name, value) = open.pop()?;
            open.extend(value.items().map(|item| (None, item)));
            open.extend(value.members().map(|(name, value)| (name.as_text().and_then(Text::into_str), value)));
            Some((name, value))
        })
    }

    /// Returns the values under some of these names at any depth, each with the place of its name among them. Null counts as missing.
    pub(super) fn named(&self, names: &[&str]) -> Vec<(usize, Value<'v>)> {
        let place = |key: Cow<'_, str>| names.iter().position(|name| are_alike(&key, name));
        let members = self.values().filter(|(_, value)| !value.is_null());
        members.filter_map(|(key, value)| Some((place(key?)?, value))).collect()
    }

    /// Returns the values at any depth under names of which a function says so by their folded forms.
    pub(super) fn under(&self, is_its: impl Fn(&str) -> bool) -> impl Iterator<Item = Value<'v>> {
        self.values().filter(move |(key, _)| key.as_deref().and_then(fold).is_some_and(|name| is_its(&name))).map(|(_, value)| value)
    }

    /// Returns the largest of the numbers under some names at any depth, each with how much one of it is in the unit of the limit.
    pub(super) fn largest<const N: usize>(&self, names: [(&str, f64); N]) -> Result<Option<Amount>, Denial> {
        self.named(&names.map(|(name, _)| name)).into_iter().try_fold(None, |largest, (place, value)| {
            let (name, factor) = names.get(place).copied().unwrap_or_default();
            let asked = Some(amount(name, value)?.times(factor));
            Ok(if asked > largest { asked } else { largest })
        })
    }

    /// Returns whether one of the texts in the arguments, at any depth, is what a function says.
    pub(super) fn has_text(&self, is_it: impl Fn(&str) -> bool) -> bool {
        self.values().any(|(_, value)| value.as_text().and_then(Text::into_str).is_some_and(|text| is_it(&text)))
    }

    /// Returns whether one of the members of the arguments, at any depth, is what a function says of its name and its value.
    pub(super) fn has_member(&self, is_it: impl Fn(&str, Value<'v>) -> bool) -> bool {
        self.values().any(|(name, value)| name.is_some_and(|name| is_it(&name, value)))
    }
}

/// The arguments of a call by what they are to its tool.
#[derive(Debug, Default)]
pub(super) struct Sorted<'v> {
    /// Texts of arguments that have a role, with the names of the tables, in the order of the call.
    pub(super) texts: Vec<(ArgumentRole, &'v str, Cow<'v, str>)>,
    /// Texts under names that no table has.
    pub(super) unknown: Vec<Cow<'v, str>>,
    /// Texts that a tool of an MCP server is given under names that say what they are, and names of members that stand there.
    pub(super) placed: Vec<(NameKind, Cow<'v, str>)>,
    /// Values of headers that no table has.
    pub(super) headers: Vec<Cow<'v, str>>,
    /// Addresses among the texts of which no tool is known to make anything.
    pub(super) mentioned: Vec<Cow<'v, str>>,
    /// Names that no table has. They may be data themselves, such as the files of a patch.
    pub(super) unknown_names: Vec<Cow<'v, str>>,
    /// An argument that cannot be judged, by the name of the table.
    pub(super) refused: Option<&'v str>,
    /// Whether there is a body of a request.
    pub(super) has_body: bool,
    /// Whether they are written out in a text.
    is_written: bool,
}

impl<'v> Sorted<'v> {
    /// Sorts what stands in a text that is written out under a name.
    pub(super) fn under(kind: NameKind, value: Value<'v>, names: &ArgumentNames<'v>) -> Result<Self, Denial> {
        let mut sorted = Self { is_written: true, ..Self::default() };
        sorted.note_addresses(value, kind);
        sorted.unnamed(value, kind, names)?;
        Ok(sorted)
    }

    /// Returns the texts with a role.
    pub(super) fn of(&self, role: ArgumentRole) -> impl Iterator<Item = &Cow<'v, str>> {
        self.named(role).map(|(_, text)| text)
    }

    /// Returns the texts with a role, each with the name of its argument in the table.
    pub(super) fn named(&self, role: ArgumentRole) -> impl Iterator<Item = (&'v str, &Cow<'v, str>)> {
        self.texts.iter().filter(move |(other, ..)| *other == role).map(|(_, name, text)| (*name, text))
    }

    /// Returns the texts that may name places.
    pub(super) fn places(&self) -> impl Iterator<Item = &Cow<'v, str>> + Clone {
        let is_path = |(role, ..): &&(ArgumentRole, _, _)| matches!(role, ArgumentRole::Path | ArgumentRole::Pattern);
        let paths = self.texts.iter().filter(is_path).map(|(.., text)| text);
        let placed = self.placed.iter().filter(|(kind, _)| !kind.is_text()).map(|(_, text)| text);
        paths.chain(&self.unknown).chain(&self.unknown_names).chain(placed)
    }

    fn members(&mut self, object: Value<'v>, outer: Option<(ArgumentRole, &'v str)>, names: &ArgumentNames<'v>) -> Result<(), Denial> {
        let mut seen = HashMap::new();
        for (key, value) in object.members().filter(|(_, value)| !value.is_null()) {
            let key =
                key.as_text().and_then(Text::into_str).ok_or_else(|| Denial::new(INVALID, "An argument's name is no Unicode text"))?;
            let own = fold(&key);
            check_name(own.as_deref(), value, names, &mut seen)?;
            let is_host = || names.is_of_web() && NameKind::under(&key) == NameKind::Host;
            let named = own.as_deref().and_then(|folded| names.role(folded)).or_else(|| is_host().then_some((ArgumentRole::Host, "host")));
            // What lies in a URL, or in the name of somebody, is such a thing, whatever it is called. A file may have its contents beside it.
            let is_text = matches!(named, Some((ArgumentRole::Text, _)));
            let role = outer.filter(|outer| is_text && outer.0.holds_its_kind()).or(named).or(outer);
            // A header that holds an end of a line begins another one.
            if let Some((ArgumentRole::Headers, name)) = outer
                && (has_control(&key) || value.as_text().and_then(Text::into_str).is_some_and(|text| has_control(&text)))
            {
                self.refused = self.refused.or(Some(name));
            }
            outer.filter(|_| named.is_none()).into_iter().for_each(|outer| self.member_name(key.clone(), outer, names));
            let says_place = || names.is_of_server() && NameKind::under(&key).may_be_address();
            match role {
                // A place is one in any text that is an object.
                Some((ArgumentRole::Text, _)) if named.is_none() && (own.as_deref().is_some_and(is_place) || says_place()) => {
                    self.note_addresses(value, NameKind::under(&key));
                    self.unnamed(value, NameKind::under(&key), names)?;
                }
                // Edits that are written out name files of their own, or none.
                Some((ArgumentRole::Text, "edits")) if names_places(value, names) => self.refused = self.refused.or(Some("edits")),
                Some(role @ (ArgumentRole::Text | ArgumentRole::Route, _)) => self.inner(value, role, names)?,
                Some(_) if named.is_none() && matches!(outer, Some((ArgumentRole::Headers, _))) && value.shape() == Shape::String => {
                    self.unknown_names.push(key);
                    self.headers.push(text("of a header", value, "a string")?);
                }
                Some(role @ (ArgumentRole::Headers, _)) if value.is_object() => self.members(value, Some(role), names)?,
                Some((ArgumentRole::Headers, name)) => self.refused = self.refused.or(Some(name)),
                Some((role @ (ArgumentRole::Refused | ArgumentRole::RefusedBut(_)), name)) => {
                    self.refused = self.refused.or_else(|| role.refuses(value).then_some(name));
                }
                Some((ArgumentRole::Body, name)) => {
                    self.has_body |= holds(value);
                    self.inner(value, (ArgumentRole::Body, name), names)?;
                }
                Some((role, name)) => self.valued(value, (role, shown(&key, name)), names)?,
                None => {
                    let kind = NameKind::of(&key, names);
                    self.unknown_names.push(key);
                    self.note_addresses(value, kind);
                    self.unnamed(value, kind, names)?;
                }
            }
        }
        Ok(())
    }

    /// Takes the name of a member that no table has, which may be data itself under a name with a role.
    fn member_name(&mut self, key: Cow<'v, str>, outer: (ArgumentRole, &'v str), names: &ArgumentNames<'v>) {
        let is_begun = key.starts_with(['/', '~', '\\']) || key.contains("://");
        match outer {
            (ArgumentRole::Text, _) if is_begun || names.is_of_server() && key.contains(['/', '\\']) => self.unknown.push(key),
            // Edits may be named by the files that they change.
            (ArgumentRole::Text, "edits") => self.unknown_names.push(key),
            (ArgumentRole::Text | ArgumentRole::Body | ArgumentRole::Route | ArgumentRole::Headers, _) => {}
            (ArgumentRole::Refused | ArgumentRole::RefusedBut(_), _) => {}
            (role, name) => self.texts.push((role, name, key)),
        }
    }

    /// Notes the addresses in a text that stands under a name of this kind.
    fn mention(&mut self, kind: NameKind, text: &str) {
        self.mentioned.extend(kind.addresses_in(text).into_iter().map(Cow::Owned));
    }

    /// Notes the addresses that stand without a scheme under a name that no table of the tool has. What lies in a host is one.
    fn note_addresses(&mut self, value: Value<'v>, kind: NameKind) {
        self.mentioned.extend(kind.addresses(value).into_iter().map(Cow::Owned));
        let inner = value.members().map(|(_, value)| value).filter(|_| kind == NameKind::Host);
        value.items().chain(inner).for_each(|value| self.note_addresses(value, kind));
    }

    /// Takes the value of an argument that has a role: a text, or texts in lists and objects.
    fn valued(&mut self, value: Value<'v>, role: (ArgumentRole, &'v str), names: &ArgumentNames<'v>) -> Result<(), Denial> {
        // A list of words is not read as a line by every tool.
        let is_line = matches!(role.0, ArgumentRole::Command | ArgumentRole::Words);
        match value.shape() {
            Shape::Array if role.0 == ArgumentRole::Words => {
                let words = value.items().map(|word| text(role.1, word, "an array of strings")).collect::<Result<Vec<_>, _>>()?;
                self.texts.push((ArgumentRole::Command, role.1, Cow::Owned(line_of(&words))));
                Ok(())
            }
            _ if role.0 == ArgumentRole::Patch => {
                let patch = text(role.1, value, "a string")?;
                let unread = |(line, expected)| format!("Line {line} of the patch in '{}' is not read; expected {expected}", role.1);
                let paths = bash_commands::patched(&patch).map_err(|fault| Denial::new(INVALID, unread(fault)))?;
                self.texts.extend(paths.into_iter().map(|path| (ArgumentRole::Path, role.1, Cow::Owned(path.to_owned()))));
                self.texts.push((role.0, role.1, patch));
                Ok(())
            }
            Shape::Array if !is_line => value.items().try_for_each(|item| self.valued(item, role, names)),
            Shape::Object if !is_line => self.members(value, Some(role), names),
            _ => {
                // Chats are known by numbers.
                let is_id = matches!(role.0, ArgumentRole::Recipient | ArgumentRole::Channel) && value.shape() == Shape::Number;
                let expected = if is_line { "a string" } else { "a string or an array of strings" };
                let text = if is_id { String::from_utf8_lossy(value.source()) } else { text(role.1, value, expected)? };
                let is_name = role.0 == ArgumentRole::Path || role.0.holds_its_kind();
                self.refused = self.refused.or_else(|| (is_name && is_written_out(&text)).then_some(role.1));
                self.texts.push((if is_line { ArgumentRole::Command } else { role.0 }, role.1, text));
                Ok(())
            }
        }
    }

    /// Looks for arguments with roles of their own in a value that has no text for its role.
    fn inner(&mut self, value: Value<'v>, role: (ArgumentRole, &'v str), names: &ArgumentNames<'v>) -> Result<(), Denial> {
        match value.shape() {
            Shape::Array => value.items().try_for_each(|item| self.inner(item, role, names)),
            Shape::Object => self.members(value, Some(role), names),
            _ => {
                let text = value.as_text().and_then(Text::into_str);
                if let Some(text) = text.as_ref().filter(|_| role.0 == ArgumentRole::Text && names.may_be_program(role.1)) {
                    self.placed.extend(quoted_in(role.1, text).map(|(kind, piece)| (kind, Cow::Owned(piece.to_owned()))));
                }
                match (role.0, text) {
                    (ArgumentRole::Text, Some(text)) if names.fetches(role.1) => {
                        self.texts.extend(urls_in(&text).map(|url| (ArgumentRole::Url, role.1, url.to_owned().into())));
                    }
                    (ArgumentRole::Body, Some(text)) if names.is_of_web() && is_file_sent(role.1, &text) => {
                        self.refused = self.refused.or(Some(role.1))
                    }
                    (ArgumentRole::Route, Some(text)) if text.contains("://") => self.unknown.push(text),
                    // Behind the address of a server it leads to another host.
                    (ArgumentRole::Route, Some(text)) if may_lead_away(&text) => self.unknown.push(led_to(&text).into()),
                    (ArgumentRole::Route, Some(text)) => self.mention(NameKind::Place, &text),
                    (ArgumentRole::Text, Some(text)) if names.may_be_path(role.1, &text) => self.placed.push((NameKind::File, text)),
                    (ArgumentRole::Text, Some(text)) if names.may_be_key(role.1, &text) => self.placed.push((NameKind::Id, text)),
                    (ArgumentRole::Text, Some(text))
                        if self.is_written && text.contains("://")
                            || (self.is_written || names.is_of_server() && role.1 == "edits") && is_written_out(&text)
                            || names.is_thing(role.1) && runs(&text) =>
                    {
                        self.unknown.push(text);
                    }
                    (ArgumentRole::Text, Some(text)) if names.may_be_remote(role.1, &text) => self.mention(NameKind::Unknown, &text),
                    (ArgumentRole::Text | ArgumentRole::Body, Some(text))
                        if text.contains("://") && !text.trim().contains(char::is_whitespace) =>
                    {
                        self.mentioned.push(text);
                    }
                    _ => {}
                }
                Ok(())
            }
        }
    }

    /// Takes the value of an argument whose name no table has. Numbers and truth values name nothing.
    fn unnamed(&mut self, value: Value<'v>, kind: NameKind, names: &ArgumentNames<'v>) -> Result<(), Denial> {
        let is_judged = names.is_of_server() && (kind.is_place() || matches!(kind, NameKind::Id | NameKind::Number | NameKind::Prose));
        match value.shape() {
            Shape::Array => value.items().try_for_each(|item| self.unnamed(item, kind, names)),
            Shape::Object => {
                let members = || value.members().filter_map(|(key, inner)| Some((key.as_text()?.into_str()?, inner)));
                // An object that names a place of its own may hold what is written there.
                let names_place = members().any(|(key, _)| key == "name" || NameKind::under(&key).is_place());
                for (key, inner) in members() {
                    let role = fold(&key).and_then(|name| names.role(&name)).map(|(role, _)| role);
                    if names.is_of_server() {
                        // `{"path": {"value": …}}` may be the same place to a server, and the name of a member may be one.
                        self.mention(kind, &key);
                        if kind.is_place() && (!names_place || role == Some(ArgumentRole::Text)) {
                            self.held(inner, kind, names_place);
                        }
                        if kind == NameKind::File || kind.may_be_url() && key.contains(['.', '/', '\\', '~']) {
                            self.placed.push((kind, key.clone()));
                        }
                    }
                    // It is data rather than a name where an object stands under it.
                    let is_data = role.is_none() && (inner.is_object() || key.contains(['/', '\\', '@']));
                    self.unknown.extend(is_data.then_some(key));
                }
                self.members(value, None, names)
            }
            Shape::String => {
                let text = text("of an unknown name", value, "a string")?;
                self.placed.extend(is_judged.then(|| (kind, text.clone())));
                self.unknown.extend((!is_judged).then_some(text));
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Takes all texts in a value for places, at any depth, or `only_words` among them.
    fn held(&mut self, value: Value<'v>, kind: NameKind, only_words: bool) {
        let is_place = |text: &Cow<'_, str>| !only_words || !text.contains(char::is_whitespace);
        self.placed.extend(value.as_text().and_then(Text::into_str).filter(is_place).map(|text| (kind, text)));
        value.items().chain(value.members().map(|(_, value)| value)).for_each(|value| self.held(value, kind, only_words));
    }
}

fn has_control(text: &str) -> bool {
    text.chars().any(|char| char.is_control() && char != '\t')
}

/// Returns the text of an argument, whose name messages show.
pub(super) fn text<'v>(key: &str, value: Value<'v>, expected: &str) -> Result<Cow<'v, str>, Denial> {
    let text = value.as_text().ok_or_else(|| mistyped(key, value, expected))?;
    text.into_str().ok_or_else(|| Denial::new(INVALID, format!("Argument '{key}' holds half of a surrogate pair")))
}

fn amount(key: &str, value: Value<'_>) -> Result<Amount, Denial> {
    Amount::read(value).ok_or_else(|| mistyped(key, value, "a number of 0 or more"))
}

/// Returns the denial for an argument of another type. `key` is one that a rule reads, never one that the call chose.
fn mistyped(key: &str, value: Value<'_>, expected: &str) -> Denial {
    Denial::new(INVALID, format!("Argument '{key}' is {}, expected {expected}", value.shape()))
}
