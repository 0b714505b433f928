//! Reading the body of a host: strict JSON, one meaning a body, and errors that name the member, what was found, and the fix.

use serde::de::IgnoredAny;
use tollgate_json::{DEPTH_MAX, Parser, Shape, Value, canonical};

/// Why a body cannot be read. It repeats nothing of the body but names of members that the wire itself knows.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("Tollgate refused a request that it cannot read: {member}: {problem}; {fix}")]
pub(crate) struct Fault {
    /// The member, with the members that it stands in: `tool.name`; `body` for the whole.
    pub member: String,
    /// What was found.
    pub problem: String,
    /// What to do about it.
    pub fix: String,
}

impl Fault {
    pub(crate) fn new(member: impl Into<String>, problem: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { member: member.into(), problem: problem.into(), fix: fix.into() }
    }
}

/// The members of an object of a body. A member that is null counts as left out.
#[derive(Debug, Clone)]
pub(crate) struct Members<'d> {
    value: Value<'d>,
    /// The names of the members that the object stands in, each with a dot behind it.
    path: String,
}

impl<'d> Members<'d> {
    /// Reads a body that is an object.
    pub(crate) fn parse(parser: &'d mut Parser, body: &'d [u8]) -> Result<Self, Fault> {
        const FIX: &str = "send one JSON object in UTF-8, as the host writes it";
        let text = std::str::from_utf8(body).map_err(|_| Fault::new("body", "found bytes that are no UTF-8", FIX))?;
        if text.trim_ascii().is_empty() {
            return Err(Fault::new("body", "is empty", FIX));
        }
        // The parser of events reads what Python reads, such as NaN. No host writes that, and other readers refuse it.
        serde_json::from_str::<IgnoredAny>(text).map_err(|_| Fault::new("body", "found text that is no JSON", FIX))?;
        let value = parser.parse(body, DEPTH_MAX).map_err(|_| Fault::new("body", "found too deep or too large a JSON text", FIX))?;
        if !value.is_object() {
            return Err(Fault::new("body", format!("found {}", value.shape()), FIX));
        }
        if value.has_repeated_keys() {
            return Err(Fault::new("body", "found an object with a repeated key, which readers read differently", "write each key once"));
        }
        Ok(Self { value, path: String::new() })
    }

    /// Checks that no reader takes a key for another one of `names`: readers differ in whether they look at case, and a key may be written with
    /// escapes. `others` says whether the object may have more keys.
    pub(crate) fn check_keys(&self, names: &[&str], others: bool) -> Result<(), Fault> {
        let is_clear = |key: Value<'_>| {
            let source = key.source();
            let is_name = names.iter().any(|name| name.as_bytes() == source);
            let is_like_a_name = names.iter().any(|name| name.as_bytes().eq_ignore_ascii_case(source));
            is_name || others && !is_like_a_name && source.is_ascii() && !source.contains(&b'\\')
        };
        if self.value.members().all(|(key, _)| is_clear(key)) {
            return Ok(());
        }
        let fix = format!("write {} as they stand here{}", names.join(", "), if others { "" } else { ", and no other key" });
        Err(Fault::new(format!("{}keys", self.path), "found a key that readers may take for another one", fix))
    }

    /// Checks that no two keys differ in their case alone: some readers take one of them for the other.
    pub(crate) fn check_case(&self) -> Result<(), Fault> {
        let mut keys: Vec<_> = self.value.members().map(|(key, _)| key.text_bytes().to_ascii_lowercase()).collect();
        keys.sort_unstable();
        if keys.windows(2).all(|pair| pair.first() != pair.last()) {
            return Ok(());
        }
        Err(Fault::new(format!("{}keys", self.path), "found two keys that differ in their case alone", "write each key once"))
    }

    /// Returns whether the object has this member, null or not.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.value.get(name).is_some()
    }

    /// Returns a member that is there and not null.
    pub(crate) fn get(&self, name: &str) -> Option<Value<'d>> {
        self.value.get(name).filter(|value| !value.is_null())
    }

    /// Returns a member that has to be there.
    pub(crate) fn required(&self, name: &str) -> Result<Value<'d>, Fault> {
        self.get(name).ok_or_else(|| self.missing(name))
    }

    /// Returns the fault of a member that is missing.
    pub(crate) fn missing(&self, name: &str) -> Fault {
        Fault::new(
            format!("{}{name}", self.path),
            "is missing",
            "send the host's whole request, and ask as this host (`--host`, or the path)",
        )
    }

    fn wrong(&self, name: &str, found: Shape, wanted: &str) -> Fault {
        Fault::new(format!("{}{name}", self.path), format!("found {found}"), format!("send {wanted}"))
    }

    /// Returns the text of a member that has to be a string with at least one character.
    pub(crate) fn text(&self, name: &str) -> Result<String, Fault> {
        self.optional_text(name)?.ok_or_else(|| self.missing(name))
    }

    /// Returns the text of a member that may be missing. An empty string counts as missing.
    pub(crate) fn optional_text(&self, name: &str) -> Result<Option<String>, Fault> {
        let Some(value) = self.get(name) else { return Ok(None) };
        let text = value.as_text().ok_or_else(|| self.wrong(name, value.shape(), "a string"))?;
        let text = text.into_str().ok_or_else(|| {
            Fault::new(format!("{}{name}", self.path), "found a string with half a surrogate pair", "send whole characters")
        })?;
        Ok(Some(text.into_owned()).filter(|text| !text.is_empty()))
    }

    /// Returns a member that has to be `true` or `false`, if it is there.
    pub(crate) fn optional_bool(&self, name: &str) -> Result<Option<bool>, Fault> {
        let Some(value) = self.get(name) else { return Ok(None) };
        value.as_bool().map(Some).ok_or_else(|| self.wrong(name, value.shape(), "true or false"))
    }

    /// Returns an id that threads are named by. A slash in it would read as the border between a thread and its child.
    pub(crate) fn id(&self, name: &str) -> Result<String, Fault> {
        let id = self.text(name)?;
        self.check_id(name, &id)?;
        Ok(id)
    }

    /// Returns an id as [`Members::id`] does, if it is there.
    pub(crate) fn optional_id(&self, name: &str) -> Result<Option<String>, Fault> {
        let id = self.optional_text(name)?;
        id.as_deref().map_or(Ok(()), |id| self.check_id(name, id))?;
        Ok(id)
    }

    fn check_id(&self, name: &str, id: &str) -> Result<(), Fault> {
        if !id.contains('/') {
            return Ok(());
        }
        Err(Fault::new(format!("{}{name}", self.path), "found a slash in an id", "send the host's id as it is: an id without a slash"))
    }

    /// Returns the members of an object that has to be there.
    pub(crate) fn object(&self, name: &str) -> Result<Members<'d>, Fault> {
        let value = self.required(name)?;
        if !value.is_object() {
            return Err(self.wrong(name, value.shape(), "an object"));
        }
        Ok(Members { value, path: format!("{}{name}.", self.path) })
    }

    /// Returns the items of an array of objects; no items if the member is missing.
    pub(crate) fn objects(&self, name: &str) -> Result<Vec<Members<'d>>, Fault> {
        let Some(value) = self.get(name) else { return Ok(Vec::new()) };
        if value.shape() != Shape::Array {
            return Err(self.wrong(name, value.shape(), "an array of objects"));
        }
        let items = value.items().map(|item| {
            let is_object = item.is_object();
            is_object
                .then(|| Members { value: item, path: format!("{}{name}[].", self.path) })
                .ok_or_else(|| Fault::new(format!("{}{name}[]", self.path), format!("found {}", item.shape()), "send an array of objects"))
        });
        items.collect()
    }

    /// Returns the arguments of a call, which have to be an object, as they were written.
    pub(crate) fn arguments(&self, name: &str) -> Result<Arguments, Fault> {
        let value = self.required(name)?;
        if value.is_object() { Ok(Arguments::of(value)) } else { Err(self.wrong(name, value.shape(), "the arguments as an object")) }
    }

    /// Returns the arguments of a call as [`Members::arguments`] does. A call without arguments may leave them out.
    pub(crate) fn arguments_or_none(&self, name: &str) -> Result<Arguments, Fault> {
        if self.get(name).is_some() { self.arguments(name) } else { Ok(Arguments::none()) }
    }

    /// Returns the object's text with one more item in an array of it. Everything else stays as it is written.
    pub(crate) fn text_with_item(&self, name: &str, item: &serde_json::Value) -> String {
        let members = self.value.members().map(|(key, value)| {
            let longer = key.is_text(name).then(|| with_more(value, ']', &item.to_string())).flatten();
            format!("{}:{}", key.as_written(), longer.unwrap_or_else(|| value.as_written()))
        });
        format!("{{{}}}", members.collect::<Vec<_>>().join(","))
    }

    /// Returns the arguments of a call, which are an object or the JSON text of an object. An empty text stands for a call without arguments.
    pub(crate) fn arguments_or_text(&self, name: &str) -> Result<Arguments, Fault> {
        let value = self.required(name)?;
        if value.shape() != Shape::String {
            return self.arguments(name);
        }
        let text = value.as_text().and_then(|text| text.into_str().map(std::borrow::Cow::into_owned)).unwrap_or_default();
        let text = if text.trim().is_empty() { "{}".to_owned() } else { text };
        let mut parser = Parser::new();
        let inner = Members::parse(&mut parser, text.as_bytes());
        let fault =
            |_| Fault::new(format!("{}{name}", self.path), "found a string that is no JSON object", "send the arguments as an object");
        inner.map(|inner| Arguments::of(inner.value)).map_err(fault)
    }
}

/// The arguments of a call.
#[derive(Debug, Clone)]
pub(crate) struct Arguments {
    /// The JSON text, as the host wrote it: a number that no double holds is kept.
    pub text: String,
    /// The same in the canonical form, in which equal arguments are equal bytes.
    pub canonical: Vec<u8>,
}

impl Arguments {
    /// Returns the arguments of a call that has no arguments.
    pub(crate) fn none() -> Self {
        Self { text: "{}".to_owned(), canonical: b"{}".to_vec() }
    }

    /// Returns the arguments with one more, a text. If the argument is there already, whatever it is, they stay as they are.
    pub(crate) fn or_text(self, name: &str, text: &str) -> Self {
        let mut parser = Parser::new();
        let Ok(value) = parser.parse(self.text.as_bytes(), DEPTH_MAX) else { return self };
        let member = || format!("{}:{}", serde_json::Value::from(name), serde_json::Value::from(text));
        let Some(longer) = value.get(name).is_none().then(|| with_more(value, '}', &member())).flatten() else { return self };
        let mut parser = Parser::new();
        parser.parse(longer.as_bytes(), DEPTH_MAX).map(Self::of).unwrap_or(self)
    }

    /// Returns whether an object at any depth has a member of which `is_meant` is true, given its name, and its text if it is one.
    pub(crate) fn has_member(&self, is_meant: &dyn Fn(&str, Option<&str>) -> bool) -> bool {
        let mut parser = Parser::new();
        let Ok(root) = parser.parse(self.text.as_bytes(), DEPTH_MAX) else { return false };
        let mut open = vec![root];
        while let Some(value) = open.pop() {
            for (name, member) in value.members() {
                if is_meant(&name.lossy_text().unwrap_or_default(), member.lossy_text().as_deref()) {
                    return true;
                }
            }
            open.extend(value.items().chain(value.members().map(|(_, member)| member)));
        }
        false
    }

    fn of(value: Value<'_>) -> Self {
        let mut bytes = Vec::new();
        canonical::write(value, &mut bytes);
        Self { text: value.as_written(), canonical: bytes }
    }
}

/// The members of a result that differ between two runs of one and the same call.
const VOLATILE: [&str; 4] = ["durationMs", "duration_ms", "durationSeconds", "totalDurationMs"];

/// Returns a result as text: a string itself, and anything else as its JSON text without its volatile members.
pub(crate) fn result_text(value: Value<'_>) -> String {
    // A host that cuts a text in the middle may leave half a surrogate pair.
    if let Some(text) = value.lossy_text() {
        return text;
    }
    if !value.members().any(|(key, _)| is_volatile(&key)) {
        return value.as_written();
    }
    let kept = value.members().filter(|(key, _)| !is_volatile(key));
    let members: Vec<String> = kept.map(|(key, member)| format!("{}:{}", key.as_written(), member.as_written())).collect();
    format!("{{{}}}", members.join(","))
}

/// Returns whether a result of MCP only asks the client to make the call again, with more input. Clients of older versions of the protocol
/// take a result with content for the call's result.
pub(crate) fn asks_for_input(result: &Members<'_>) -> Result<bool, Fault> {
    Ok(result.optional_text("resultType")?.as_deref() == Some("input_required") && !result.has("content"))
}

/// Returns whether a result of MCP says that the call failed. Many servers mark no failure, so without the mark the gate looks at the text.
pub(crate) fn says_failed(result: &Members<'_>) -> Result<Option<bool>, Fault> {
    Ok(result.optional_bool("isError")?.filter(|failed| *failed))
}

fn is_volatile(key: &Value<'_>) -> bool {
    VOLATILE.iter().any(|name| key.is_text(name))
}

/// Returns the text of an array or object, which ends with `close`, with one more item or member; `None` for any other value.
fn with_more(value: Value<'_>, close: char, more: &str) -> Option<String> {
    let text = value.as_written();
    let comma = if value.items().next().is_some() || value.members().next().is_some() { "," } else { "" };
    text.strip_suffix(close).map(|open| format!("{open}{comma}{more}{close}"))
}
