//! Values: handles into a parsed document.

use std::borrow::Cow;

use super::text::Text;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Null,
    True,
    False,
    Integer,
    Float,
    /// A string without escapes: its source text is its value.
    Text,
    /// A string with at least one escape.
    EscapedText,
    Array,
    Object,
}

/// One value. A container is followed by its children, and `next` is the index behind its whole subtree. A string spans the text between
/// its quotes, everything else spans its source text.
#[derive(Debug, Clone, Copy)]
pub(super) struct Node {
    pub(super) kind: Kind,
    pub(super) start: u32,
    pub(super) end: u32,
    pub(super) next: u32,
}

/// The node of a handle for which there is no node, which is never made.
static NO_NODE: Node = Node { kind: Kind::Null, start: 0, end: 0, next: u32::MAX };

/// One JSON value of a parsed text: a copyable handle.
#[derive(Debug, Clone, Copy)]
pub struct Value<'d> {
    text: &'d [u8],
    nodes: &'d [Node],
    at: u32,
}

/// The kind of a JSON value, in the words of error messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// `null`
    Null,
    /// `true` or `false`
    Boolean,
    /// Any number, including `NaN` and `Infinity`.
    Number,
    /// A string.
    String,
    /// An array.
    Array,
    /// An object.
    Object,
}

impl std::fmt::Display for Shape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Null => "null",
            Self::Boolean => "a boolean",
            Self::Number => "a number",
            Self::String => "a string",
            Self::Array => "an array",
            Self::Object => "an object",
        })
    }
}

impl<'d> Value<'d> {
    pub(super) fn new(text: &'d [u8], nodes: &'d [Node], at: u32) -> Self {
        Self { text, nodes, at }
    }

    /// Returns the value's node. Handles are made only for nodes that exist.
    #[inline]
    pub(super) fn node(&self) -> &'d Node {
        self.nodes.get(self.at as usize).unwrap_or(&NO_NODE)
    }

    /// Returns the text that it is a part of, which the places of its node are in.
    pub(super) fn document(&self) -> &'d [u8] {
        self.text
    }

    /// Returns the kind of the value.
    #[must_use]
    #[inline]
    pub fn shape(&self) -> Shape {
        match self.node().kind {
            Kind::Null => Shape::Null,
            Kind::True | Kind::False => Shape::Boolean,
            Kind::Integer | Kind::Float => Shape::Number,
            Kind::Text | Kind::EscapedText => Shape::String,
            Kind::Array => Shape::Array,
            Kind::Object => Shape::Object,
        }
    }

    /// Returns whether it is `null`.
    #[must_use]
    #[inline]
    pub fn is_null(&self) -> bool {
        self.node().kind == Kind::Null
    }

    /// Returns whether it is an object.
    #[must_use]
    pub fn is_object(&self) -> bool {
        self.node().kind == Kind::Object
    }

    /// Returns the boolean, if it is exactly `true` or `false`.
    #[must_use]
    pub fn as_bool(&self) -> Option<bool> {
        match self.node().kind {
            Kind::True => Some(true),
            Kind::False => Some(false),
            _ => None,
        }
    }

    /// Returns the decoded string, if it is a string.
    #[must_use]
    #[inline]
    pub fn as_text(&self) -> Option<Text<'d>> {
        match self.node().kind {
            Kind::Text => Some(Text::plain(self.source())),
            Kind::EscapedText => Some(Text::escaped(self.source())),
            _ => None,
        }
    }

    /// Returns a string without escapes as a part of the text that was parsed, where `document` is that text. So what is known to be UTF-8
    /// as a whole is not checked again piece by piece. It is `None` for anything else.
    #[must_use]
    #[inline]
    pub fn as_str_of(&self, document: &'d str) -> Option<&'d str> {
        let is_its_text = self.node().kind == Kind::Text && std::ptr::eq(self.text, document.as_bytes());
        if is_its_text { document.get(self.place()) } else { None }
    }

    /// Returns the bytes of a string, as [`Text::as_bytes`] does; none for anything else. Nothing is copied where nothing is escaped.
    #[must_use]
    #[inline]
    pub fn text_bytes(&self) -> Cow<'d, [u8]> {
        match self.node().kind {
            Kind::Text => Cow::Borrowed(self.source()),
            _ => self.as_text().map(Text::into_bytes).unwrap_or_default(),
        }
    }

    /// Returns whether Python's `==` calls it equal to `0`: integer and float zeros of either sign, and `false`.
    #[must_use]
    pub fn equals_zero(&self) -> bool {
        match self.node().kind {
            Kind::False => true,
            Kind::Integer => self.source().iter().all(|byte| matches!(byte, b'-' | b'0')),
            Kind::Float => super::number::parse_float(self.source()) == 0.0,
            _ => false,
        }
    }

    /// Returns the value's source text. That of a string is without the quotes and still escaped.
    #[must_use]
    #[inline]
    pub fn source(&self) -> &'d [u8] {
        let node = self.node();
        self.text.get(node.start as usize..node.end as usize).unwrap_or_default()
    }

    /// Returns the value as it is written, a string with its quotes. Bytes that are no UTF-8 are replaced by a sign.
    #[must_use]
    pub fn as_written(&self) -> String {
        let source = String::from_utf8_lossy(self.source());
        if self.shape() == Shape::String { format!("\"{source}\"") } else { source.into_owned() }
    }

    /// Returns the text of a string, with signs in place of half a surrogate pair; `None` for any other value.
    #[must_use]
    pub fn lossy_text(&self) -> Option<String> {
        self.as_text().map(|text| String::from_utf8_lossy(&text.into_bytes()).into_owned())
    }

    /// Returns where [`Value::source`] stands in the text that was parsed, in bytes. That of a string is without the quotes.
    #[must_use]
    #[inline]
    pub fn place(&self) -> std::ops::Range<usize> {
        let node = self.node();
        node.start as usize..node.end as usize
    }

    /// Returns the items of an array, in order; no items for anything else.
    pub fn items(&self) -> impl Iterator<Item = Value<'d>> + use<'d> {
        self.children_of(Kind::Array)
    }

    /// Returns the members of an object in source order, including repeated keys; no members for anything else.
    pub fn members(&self) -> impl Iterator<Item = (Value<'d>, Value<'d>)> + use<'d> {
        let mut children = self.children_of(Kind::Object);
        std::iter::from_fn(move || Some((children.next()?, children.next()?)))
    }

    /// Returns the member of an object under `key`. Of repeated keys it is the last, as in Python.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<Value<'d>> {
        self.members().filter(|(name, _)| name.is_text(key)).map(|(_, value)| value).last()
    }

    /// Returns whether a key is repeated in one object of this value, at any depth. Readers differ in which one they take.
    #[must_use]
    pub fn has_repeated_keys(&self) -> bool {
        let mut open = vec![*self];
        while let Some(value) = open.pop() {
            if value.repeats_a_key() {
                return true;
            }
            open.extend(value.members().map(|(_, member)| member));
            open.extend(value.items());
        }
        false
    }

    /// Returns whether a key is repeated in this object itself; never for anything else. It takes time n log n in the number of keys.
    #[must_use]
    pub fn repeats_a_key(&self) -> bool {
        let keys = || self.members().map(|(key, _)| key);
        // Most keys are written without escapes, and then their sources can be compared, which takes a fraction of the time.
        let sources: Option<Vec<_>> = keys().map(|key| (key.node().kind == Kind::Text).then(|| key.source())).collect();
        sources.map_or_else(|| holds_equals(keys().filter_map(|key| key.as_text()).collect()), holds_equals)
    }

    /// Returns whether this is the string `expected`.
    #[must_use]
    #[inline]
    pub fn is_text(&self, expected: &str) -> bool {
        let node = self.node();
        match node.kind {
            // Most names differ in their lengths, which the node knows.
            Kind::Text => (node.end - node.start) as usize == expected.len() && self.source() == expected.as_bytes(),
            Kind::EscapedText => Text::escaped(self.source()).as_bytes() == expected.as_bytes(),
            _ => false,
        }
    }

    fn children_of(&self, kind: Kind) -> Siblings<'d> {
        if self.node().kind == kind { self.children() } else { Siblings { first: *self, end: 0 } }
    }

    /// Returns the children of a container: items, or keys and values in turn.
    pub(super) fn children(&self) -> Siblings<'d> {
        Siblings { first: Self { at: self.at + 1, ..*self }, end: self.node().next }
    }

    /// Returns the value behind this one in its container, or `None` at the end: for a key, its value.
    pub(super) fn next_sibling(&self) -> Option<Self> {
        let at = self.node().next;
        (self.nodes.len() > at as usize).then_some(Self { at, ..*self })
    }
}

/// Returns whether two items are equal.
fn holds_equals<T: Ord>(mut items: Vec<T>) -> bool {
    items.sort_unstable();
    items.windows(2).any(|pair| matches!(pair, [left, right] if left == right))
}

/// The values in one container, in source order.
#[derive(Debug, Clone)]
pub(super) struct Siblings<'d> {
    first: Value<'d>,
    end: u32,
}

impl<'d> Iterator for Siblings<'d> {
    type Item = Value<'d>;

    fn next(&mut self) -> Option<Value<'d>> {
        let value = (self.first.at < self.end).then_some(self.first)?;
        self.first.at = value.node().next;
        Some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Parser;
    use super::*;

    #[test]
    fn members_items_and_the_last_of_equal_keys() {
        let mut parser = Parser::new();
        let text = br#"{"a": [1, {"x": []}, "s"], "b": null, "\u0061": true}"#;
        let root = parser.parse(text, 8).unwrap();
        assert_eq!(root.members().count(), 3);
        assert_eq!(root.get("a").unwrap().as_bool(), Some(true));
        let (_, first) = root.members().next().unwrap();
        assert_eq!(first.items().map(|item| item.shape()).collect::<Vec<_>>(), [Shape::Number, Shape::Object, Shape::String]);
        assert!(root.get("b").unwrap().is_null());
        assert!(root.get("c").is_none());
        assert_eq!(root.get("b").unwrap().items().count(), 0);
    }

    #[test]
    fn a_key_that_is_repeated_is_found_however_it_is_spelled_and_at_its_own_depth() {
        for (text, here, anywhere) in [
            (r#"{"a": 1, "b": 2}"#, false, false),
            (r#"{"b": 1, "a": 2, "b": 3}"#, true, true),
            (r#"{"a": 1, "\u0061": 2}"#, true, true),
            (r#"{"\u0061": 1, "b": {"a": 2}}"#, false, false),
            (r#"{"a": [{"b": 1, "b": 2}]}"#, false, true),
            (r#"["a", "a"]"#, false, false),
            (r#""a""#, false, false),
        ] {
            let mut parser = Parser::new();
            let value = parser.parse(text.as_bytes(), 8).unwrap();
            assert_eq!((value.repeats_a_key(), value.has_repeated_keys()), (here, anywhere), "{text}");
        }
    }

    #[test]
    fn a_plain_string_is_a_part_of_the_text_that_it_was_read_from() {
        let (text, mut parser) = (String::from(r#"["é", "\u00e9", 1]"#), Parser::new());
        let items: Vec<_> = parser.parse(text.as_bytes(), 1).unwrap().items().collect();
        assert_eq!(items.iter().map(|item| item.as_str_of(&text)).collect::<Vec<_>>(), [Some("é"), None, None]);
        assert_eq!(items[0].as_str_of(&text.clone()), None, "another text");
    }

    #[test]
    fn python_zero() {
        for (text, zero) in [
            ("0", true),
            ("-0", true),
            ("0.0", true),
            ("-0.0", true),
            ("1e-400", true),
            ("false", true),
            ("1", false),
            ("\"0\"", false),
            ("null", false),
            ("NaN", false),
            ("[]", false),
        ] {
            assert_eq!(Parser::new().parse(text.as_bytes(), 1).unwrap().equals_zero(), zero, "{text}");
        }
    }
}
