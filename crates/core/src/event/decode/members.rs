//! Members that stand twice. Which of the two counts would depend on the reader, so an envelope with such a member is rejected, whether
//! its name is known here or not: the orchestrator, or whoever reads the dead letter, may know it.

use super::{Rejection, RejectionCode};
use tollgate_json::Value;

/// How many unknown names are compared one by one. Events rarely bring more.
const FEW: usize = 8;

/// The names in an object that the contract does not know, gathered while its members are read. Nothing is allocated for a few of them.
#[derive(Debug, Default)]
pub(super) struct Others<'d> {
    names: [&'d [u8]; FEW],
    count: usize,
    /// Whether a name stands twice.
    repeat: bool,
    /// Whether there are names that were not compared: because there are many, or because they are written with escapes.
    rest: bool,
}

impl<'d> Others<'d> {
    /// Notes an unknown name.
    pub(super) fn note(&mut self, key: Value<'d>) {
        let name = key.source();
        if self.names.get(..self.count).is_some_and(|names| names.contains(&name)) {
            self.repeat = true;
        }
        match self.names.get_mut(self.count) {
            // One name with an escape may be the other spelling of one without.
            Some(place) if !name.contains(&b'\\') => (*place, self.count) = (name, self.count + 1),
            _ => self.rest = true,
        }
    }

    /// Returns whether one of the names stands twice in the object that they are from.
    pub(super) fn repeat_in(&self, object: Value<'_>) -> bool {
        self.repeat || (self.rest && object.repeats_a_key())
    }
}

/// Returns the rejection of an envelope in which a member stands twice. `field` is its name, or that of what holds it if the name is not
/// of the contract: foreign names are not quoted.
pub(super) fn repeated(field: &'static str) -> Rejection {
    let found = if field == "value" || field == "headers" { "an unknown name more than once" } else { "the field more than once" };
    Rejection::new(RejectionCode::FieldRepeated, field, found, "send each field once")
}

#[cfg(test)]
mod tests {
    use super::*;
    use tollgate_json::Parser;

    fn repeats(names: &[String]) -> bool {
        let members: Vec<_> = names.iter().map(|name| format!("\"{name}\":0")).collect();
        let text = format!("{{{}}}", members.join(","));
        let mut parser = Parser::new();
        let object = parser.parse(text.as_bytes(), 2).unwrap();
        let mut others = Others::default();
        object.members().for_each(|(key, _)| others.note(key));
        others.repeat_in(object)
    }

    #[test]
    fn a_name_that_stands_twice_is_found_wherever_it_stands_and_however_it_is_spelled() {
        for count in [1, 2, FEW - 1, FEW, FEW + 1, 3 * FEW] {
            let names: Vec<_> = (0..count).map(|n| format!("name_{n}")).collect();
            assert!(!repeats(&names), "{count}");
            for (place, spelling) in [(0, "name_0"), (count - 1, "n\\u0061me_0"), (count, "\\u006eame_0")] {
                let mut twice = names.clone();
                twice.insert(place, spelling.to_owned());
                assert!(repeats(&twice), "{spelling} at {place} of {count}");
            }
        }
    }
}
