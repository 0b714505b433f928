//! How much the arguments of a call may write.

use std::borrow::Cow;

use tollgate_json::{Shape, Text, Value};

use super::argument_names::are_alike;
use super::arguments::Arguments;

impl<'v> Arguments<'v> {
    /// Returns how many bytes of the arguments may be written: of a text those that it has, of another value those that spell it. Left out are texts
    /// of which a function says so by their names, also in lists, among the arguments and in the items of `edits`.
    pub(super) fn written_bytes(&self, is_left_out: impl Fn(&str, &str) -> bool) -> usize {
        type Member<'v> = (Option<Cow<'v, str>>, Value<'v>);
        let members = |value: Value<'v>| value.members().map(|(key, value)| (key.as_text().and_then(Text::into_str), value));
        let is_edits = |(name, value): &Member<'v>| {
            name.as_deref().is_some_and(|name| are_alike(name, "edits"))
                && value.shape() == Shape::Array
                && value.items().all(|item| item.is_object())
        };
        let (edits, others): (Vec<Member<'v>>, Vec<_>) = self.0.into_iter().flat_map(members).partition(is_edits);
        let given = others.into_iter().chain(edits.into_iter().flat_map(|(_, edits)| edits.items()).flat_map(members));
        let is_written = |(name, value): &Member<'v>| {
            let is_left = |value: Value<'v>| {
                let text = value.as_text().and_then(Text::into_str);
                name.as_deref().zip(text.as_deref()).is_some_and(|(name, text)| is_left_out(name, text))
            };
            if value.shape() == Shape::Array { !value.items().all(is_left) } else { !is_left(*value) }
        };
        // A text that is no Unicode counts as it is spelled.
        let bytes = |value: Value<'v>| value.as_text().and_then(Text::into_str).map_or(value.source().len(), |text| text.len());
        given.filter(is_written).map(|(_, value)| bytes(value)).sum()
    }
}
